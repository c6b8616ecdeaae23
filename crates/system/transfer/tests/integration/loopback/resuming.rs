//! What broke off goes on.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_transfer::{Broken, Progress, SendReport, SendRequest};
use netaware_units::Span;

use super::ends::{Ends, noise, sent_with};

const LARGE: usize = 32 << 20;
/// What passes before the way is blocked.
const PASSED: u64 = 16 << 20;

/// A way to the receiver, over both versions, on which so many bytes pass and then none, until the
/// connection ends. Returns its port.
fn way_of_so_many_bytes(to: u16, bytes: u64) -> u16 {
    let left = Arc::new(AtomicU64::new(bytes));
    let (port, listeners) = listeners_on_one_port();
    for listener in listeners {
        let left = left.clone();
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let to = SocketAddr::new(near.local_addr().unwrap().ip(), to);
                let far = TcpStream::connect(to).unwrap();
                let (back_from, back_to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
                let left = left.clone();
                thread::spawn(move || pass(near, far, &left));
                thread::spawn(move || pass(back_from, back_to, &AtomicU64::new(u64::MAX)));
            }
        });
    }
    port
}

/// Listens over both versions on a port that is free over both.
fn listeners_on_one_port() -> (u16, [TcpListener; 2]) {
    loop {
        let v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        let port = v6.local_addr().unwrap().port();
        // The kernel chose a port that is free over IPv6; over IPv4 another program may use it.
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(v4) => return (port, [v6, v4]),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Passes bytes on until either end closes, or so many have passed on all connections together.
fn pass(mut from: TcpStream, mut to: TcpStream, left: &AtomicU64) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let more = |left: u64| left.checked_sub(count as u64);
        if left.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_err() {
            // Blocked: it is read no further, and stays open until the sender has given it up.
            clock::sleep(Span::from_secs(5));
            break;
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Sends until some of it has moved.
fn broken_off(ends: &Ends, file: &Path) -> SendReport {
    let stop = StopFlag::new();
    let request = SendRequest { port: way_of_so_many_bytes(ends.port, PASSED), ..ends.request(&[file]) };
    let report = sent_with(&request, &stop, |progress| {
        if let Progress::Moved { done, .. } = progress
            && done > 8 << 20
        {
            stop.raise();
        }
    });
    assert!(matches!(report.ended, Some(Broken::Stopped)), "{report:?}");
    report
}

#[test]
fn a_transfer_that_broke_off_goes_on_where_it_was() {
    let ends = Ends::new();
    let content = noise(3, LARGE);
    let file = ends.put("large", &content);
    let partial = ends.target.path().join(".large.netaware-part");
    broken_off(&ends, &file);
    let report = ends.send(&[&file]);
    assert!(ends.got("large") == content && !partial.exists());
    assert!(report.is_complete() && report.present == 0, "{report:?}");
    assert!((4 << 20..=PASSED).contains(&report.resumed), "{report:?}");
    assert_eq!(report.sent + report.resumed, LARGE as u64, "{report:?}");
}

#[test]
fn a_damaged_partial_file_is_found_and_sent_anew() {
    let ends = Ends::new();
    let content = noise(4, 1 << 20);
    let file = ends.put("file", &content);
    let partial = ends.target.path().join(".file.netaware-part");
    let mut damaged = content[..700_000].to_vec();
    damaged[123_456] ^= 1;
    for (there, resumed) in [(damaged, 0), (content[..700_000].to_vec(), 700_000), (noise(9, 2 << 20), 0)] {
        fs::write(&partial, &there).unwrap();
        let mut notes = 0;
        let report = sent_with(&ends.request(&[&file]), &StopFlag::new(), |progress| {
            notes += u32::from(matches!(progress, Progress::Note(_)));
        });
        assert!(report.is_complete() && report.resumed == resumed, "{report:?}");
        assert_eq!(notes > 0, resumed == 0 && there.len() < content.len());
        assert!(ends.got("file") == content && !partial.exists());
        fs::remove_file(ends.target.path().join("file")).unwrap();
    }
}

#[test]
fn whole_content_that_lacked_only_its_name_is_not_sent_again() {
    let ends = Ends::new();
    let content = noise(5, 1 << 20);
    let file = ends.put("file", &content);
    fs::write(ends.target.path().join(".file.netaware-part"), &content).unwrap();
    let report = ends.send(&[&file]);
    assert_eq!((report.is_complete(), report.sent, report.resumed), (true, 0, 1 << 20), "{report:?}");
    assert!(ends.got("file") == content);
}
