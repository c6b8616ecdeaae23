//! A real ptp4l tells how far its clock is from its master, and says the same as linuxptp's own
//! `pmc`.
//!
//! ```text
//!  namespace "…-left":  ptp4l, the master  ── PTP over UDP, stamps of the software ──►  namespace "…-right":  ptp4l
//! ```
//!
//! Neither touches the machine's clock (`free_running`), which is the same on both sides: an offset
//! is an error of the stamps. Needs root and linuxptp (Debian: linuxptp).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use netaware_host::clock::{Places, read_at};
use netaware_netns::{Pair, Running, Side, permitted};
use netaware_units::Span;

/// Starts one, and gives the socket by which it is asked.
fn start(side: &Side, folder: &Path, name: &str, more: &str) -> (Running, PathBuf) {
    let (file, socket) = (folder.join(format!("{name}.conf")), folder.join(name));
    // An interval of 1/8 s instead of 1 s: it is a slave after two seconds and not after ten.
    let intervals = "logAnnounceInterval -3\nlogSyncInterval -3\nlogMinDelayReqInterval -3";
    let text = format!(
        "[global]\nfree_running 1\ntime_stamping software\nuds_address {}\n{intervals}\n{more}\n",
        socket.display()
    );
    std::fs::write(&file, text).unwrap();
    let mut ptp4l = side.command("ptp4l");
    ptp4l.args(["-i", side.device(), "-f"]).arg(&file);
    (Running::start(&mut ptp4l).expect("ptp4l is installed (Debian: linuxptp)"), socket)
}

/// What `pmc` says of a data set's field, in nanoseconds.
fn told(side: &Side, socket: &Path, set: &str, field: &str) -> Option<f64> {
    let mut pmc = side.command("pmc");
    let output = pmc.args(["-u", "-b", "0", "-s"]).arg(socket).arg(format!("GET {set}")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.trim_start().starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[expect(clippy::disallowed_methods, reason = "waits for a program that is not ours; nothing is timed by it")]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}

#[test]
fn a_real_ptp4l_is_understood() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("ptp4l").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (_master, _) = start(pair.left(), folder.path(), "master", "priority1 100");
    let (_slave, socket) = start(pair.right(), folder.path(), "slave", "slaveOnly 1");
    let closed = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let places = Places {
        chrony_udp: Vec::new(),
        chrony_socket: folder.path().join("none"),
        ntpd: closed,
        ptp4l: vec![socket.clone()],
    };
    let ask = || pair.right().within(|| Ok::<_, io::Error>(read_at(&places))).unwrap();
    let has_a_master = || told(pair.right(), &socket, "CURRENT_DATA_SET", "stepsRemoved") == Some(1.0);
    let measured = || told(pair.right(), &socket, "CURRENT_DATA_SET", "meanPathDelay").filter(|ns| *ns > 0.0);
    let settled = (0..300).any(|_| {
        pause();
        has_a_master() && measured().is_some()
    });
    assert!(settled, "no master within half a minute");

    let state = ask();
    let offset_ns =
        told(pair.right(), &socket, "TIME_STATUS_NP", "master_offset").expect("pmc says the offset");
    let delay_ns = measured().expect("pmc says the path delay");
    assert_eq!(state.source, "ptp4l");
    let offset = state.offset.expect("it says how far it is off");
    // Both are asked for at different times, and a virtual machine's stamps are off by tens of
    // microseconds.
    let near = Span::from_micros(500);
    assert!((offset - Span(offset_ns as i64)).abs() < near, "{offset} and {offset_ns} ns");
    // The clock that it compares is the host's: it is kept right if the host's own kernel says so,
    // and has a bound only then.
    let nothing = Places { ptp4l: Vec::new(), ..places.clone() };
    let kernel = pair.right().within(|| Ok::<_, io::Error>(read_at(&nothing))).unwrap();
    assert_eq!(state.synchronised, kernel.synchronised, "{state:?}, {kernel:?}");
    let theirs = Span((offset_ns.abs() + delay_ns) as i64);
    match state.bound {
        Some(bound) => {
            assert!(state.synchronised && (bound - theirs).abs() < near + near, "{bound}, {theirs}");
        }
        None => assert!(!state.synchronised, "{state:?}"),
    }
}
