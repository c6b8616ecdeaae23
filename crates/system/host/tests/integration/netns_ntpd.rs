//! A real ntpd (NTPsec) tells its clock: before it has a server that it knows nothing, and
//! afterwards how far it may be off.
//!
//! ```text
//!  namespace "…-left":  ntpd, asked on port 123  ◄── NTP ──  namespace "…-right":  chronyd -x (local clock, 1 s from the truth as it says)
//! ```
//!
//! Neither touches the machine's clock: ntpd runs without the right to. Needs root and NTPsec; its
//! Debian package cannot be installed beside chrony's, so `cargo xtask` unpacks it into a folder of
//! its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use netaware_host::clock::{Places, read_at};
use netaware_netns::{Pair, Running, permitted};
use netaware_record::passive::ClockState;
use netaware_units::Span;

/// The program, unpacked or installed.
fn ntpd() -> PathBuf {
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ntpsec/usr/sbin/ntpd");
    if unpacked.exists() { unpacked } else { "ntpd".into() }
}

#[expect(clippy::disallowed_methods, reason = "waits for a program that is not ours; nothing is timed by it")]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}

/// Asks until `wanted` is told.
///
/// # Panics
/// If that takes longer than 50 s.
#[track_caller]
fn told(pair: &Pair, places: &Places, wanted: impl Fn(&ClockState) -> bool) -> ClockState {
    let read = || pair.left().within(|| Ok::<_, io::Error>(read_at(places))).unwrap();
    for _ in 0..500 {
        let state = read();
        if wanted(&state) {
            return state;
        }
        pause();
    }
    panic!("it is not told within 50 s: {:?}", read());
}

#[test]
fn a_real_ntpd_is_understood() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("ntpd").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = format!(
        "server {} iburst minpoll 3 maxpoll 3\ntos mindist 1\nrestrict default\nrestrict 127.0.0.1\n",
        pair.right().v4()
    );
    std::fs::write(path("ntp.conf"), text).unwrap();
    let mut ntpd_command = pair.left().command("setpriv");
    ntpd_command.args(["--bounding-set=-sys_time", "--inh-caps=-sys_time"]).arg(ntpd());
    ntpd_command.args(["-n", "-g", "-c"]).arg(path("ntp.conf")).arg("-f").arg(path("drift"));
    let _ntpd = Running::start(&mut ntpd_command).unwrap();
    let places = Places {
        chrony_udp: Vec::new(),
        chrony_socket: path("none"),
        ntpd: SocketAddr::from((Ipv4Addr::LOCALHOST, 123)),
        ptp4l: Vec::new(),
    };
    // Its server does not answer it yet. The machine's own kernel, if a program keeps that right,
    // is believed instead.
    let state = told(&pair, &places, |state| state.source != "none");
    match state.source.as_str() {
        "kernel" => assert!(state.synchronised, "{state:?}"),
        "ntpd" => assert!(!state.synchronised && state.bound.is_none(), "{state:?}"),
        _ => panic!("{state:?}"),
    }

    let own = path("server");
    std::fs::create_dir(&own).unwrap();
    // chronyd refuses a folder in which others could put a socket in its place.
    std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let (socket, pid) = (own.join("chronyd.sock"), own.join("pid"));
    let lines = format!(
        "local stratum 8\nallow\ncmdport 0\nbindcmdaddress {}\npidfile {}\n",
        socket.display(),
        pid.display()
    );
    std::fs::write(own.join("chrony.conf"), lines).unwrap();
    let mut chronyd = pair.right().command("chronyd");
    chronyd.args(["-x", "-d", "-u", "root", "-f"]).arg(own.join("chrony.conf"));
    let _chronyd = Running::start(&mut chronyd).expect("chronyd is installed (Debian: chrony)");

    // The server says that it is up to a second off; on the way come microseconds, once it has
    // asked often enough. Both have one clock.
    let state = told(&pair, &places, |state| {
        state.source == "ntpd"
            && state.synchronised
            && state.bound.is_some_and(|bound| bound < Span::from_millis(1100))
            && state.offset.is_some_and(|offset| offset.abs() < Span::from_millis(10))
    });
    assert!(state.bound.unwrap() >= Span::from_secs(1), "{state:?}");
    assert!(state.frequency_ppm.is_some_and(|ppm| ppm.abs() < 500.0), "{state:?}");
}
