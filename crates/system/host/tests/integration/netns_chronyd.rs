//! A real chronyd tells its clock, over UDP and by its socket in the file system, and says the same
//! as its own `chronyc`.
//!
//! ```text
//!  namespace "…-left", loopback:   chronyd (local clock, port 123)  ◄── NTP ──  chronyd -x (told on port 324 and by its socket)
//! ```
//!
//! Neither touches the machine's clock (`-x`). Needs root and chrony (Debian: chrony).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use netaware_host::clock::{Places, read_at};
use netaware_netns::{Pair, Running, permitted};
use netaware_units::Span;

fn start(pair: &Pair, folder: &Path, name: &str, lines: &str) -> Running {
    let own = folder.join(name);
    std::fs::create_dir(&own).unwrap();
    // chronyd refuses a folder in which others could put a socket in its place.
    std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let file = own.join("chrony.conf");
    let (socket, pid) = (own.join("chronyd.sock"), own.join("pid"));
    let text = format!("{lines}\nbindcmdaddress {}\npidfile {}\n", socket.display(), pid.display());
    std::fs::write(&file, text).unwrap();
    let mut chronyd = pair.left().command("chronyd");
    chronyd.args(["-x", "-d", "-u", "root", "-f"]).arg(&file);
    Running::start(&mut chronyd).expect("chronyd is installed (Debian: chrony)")
}

#[test]
fn a_real_chronyd_is_understood() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("chronyd").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let _server = start(&pair, folder.path(), "server", "local stratum 8\nallow 127.0.0.1\ncmdport 0");
    let follower = "server 127.0.0.1 iburst minpoll -2 maxpoll 0\nport 0\ncmdport 324";
    let _follower = start(&pair, folder.path(), "follower", follower);
    // Twenty tries a second apart until it is synchronised.
    let chronyc = |arguments: &[&str]| {
        let mut command = pair.left().command("chronyc");
        let output = command.args(["-h", "127.0.0.1", "-p", "324"]).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    chronyc(&["waitsync", "20", "0", "0", "1"]);
    let udp = SocketAddr::from((Ipv4Addr::LOCALHOST, 324));
    let nowhere = folder.path().join("none");
    let closed = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let by_udp =
        Places { chrony_udp: vec![udp], chrony_socket: nowhere.clone(), ntpd: closed, ptp4l: Vec::new() };
    let by_socket = Places {
        chrony_udp: Vec::new(),
        chrony_socket: folder.path().join("follower/chronyd.sock"),
        ..by_udp.clone()
    };
    for places in [by_udp, by_socket] {
        let state = pair.left().within(|| Ok::<_, io::Error>(read_at(&places))).unwrap();
        assert_eq!(
            (state.source.as_str(), state.synchronised),
            ("chrony", true),
            "{}",
            chronyc(&["tracking"])
        );
        // Over loopback: microseconds, and never nothing.
        let bound = state.bound.expect("it says how far it may be off");
        assert!(bound > Span::ZERO && bound < Span::from_millis(100), "{bound}: {}", chronyc(&["tracking"]));
        // It goes on adjusting: what stands before and after the question was so at the question.
        let told = || chronyc(&["-c", "tracking"]).split(',').nth(7).unwrap().to_owned();
        let read = || pair.left().within(|| Ok::<_, io::Error>(read_at(&places))).unwrap();
        let asked = (0..100).map(|_| (told(), read().frequency_ppm, told()));
        let (told, ppm, _) =
            asked.into_iter().find(|(before, _, after)| before == after).expect("a quiet moment");
        let told: f64 = told.parse().unwrap();
        assert!((ppm.unwrap() - told).abs() < 0.01, "{ppm:?} and {told} ppm");
    }
}
