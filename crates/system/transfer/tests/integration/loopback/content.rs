//! What comes is what was sent.

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use netaware_io::stop::StopFlag;
use netaware_transfer::{Existing, Progress, ReceiveConfig, Receiver, SendError};

use super::ends::{Ends, config, noise, sent, sent_with};

fn dress(path: &Path, mode: u32, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, 123_456_789);
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn attributes(path: &Path) -> (u32, i64, i64) {
    let about = fs::metadata(path).unwrap();
    (about.mode() & 0o777, about.mtime(), about.mtime_nsec())
}

#[test]
fn folders_files_permissions_and_times_come_as_they_were() {
    let ends = Ends::new();
    ends.put("top/deep/er/large", &noise(1, 3_000_001));
    ends.put("top/empty", b"");
    let script = ends.put("top/script", b"#!/bin/sh\n");
    let top = ends.source.path().join("top");
    fs::create_dir(top.join("nothing")).unwrap();
    symlink("/etc/passwd", top.join("link")).unwrap();
    dress(&script, 0o750, 1_000_000_001);
    dress(&top.join("nothing"), 0o500, 1_000_000_002);
    dress(&top.join("deep"), 0o755, 1_000_000_003);
    let single = ends.put("ünïcode name\n", b"x");
    let report = ends.send(&[&top, &single]);
    assert!(report.ended.is_none(), "{report:?}");
    assert_eq!((report.files, report.written, report.present, report.sent), (4, 4, 0, 3_000_012));
    assert_eq!(report.failures.len(), 1, "the link: {report:?}");
    assert_eq!(ends.got("top/deep/er/large"), noise(1, 3_000_001));
    assert_eq!((ends.got("top/empty").len(), ends.got("ünïcode name\n")), (0, b"x".to_vec()));
    for name in ["top/script", "top/nothing", "top/deep"] {
        let [there, here] = [ends.target.path(), ends.source.path()].map(|at| attributes(&at.join(name)));
        assert_eq!(there, here, "{name}");
    }
    assert!(!ends.target.path().join("top/link").exists());
    let [received] = &ends.reports(1)[..] else { panic!("one") };
    assert!(received.is_complete() && received.written == 4 && received.bytes == 3_000_012, "{received:?}");
}

#[test]
fn thousands_of_files_come_and_are_not_sent_twice() {
    let ends = Ends::new();
    for n in 0..2000 {
        ends.put(&format!("many/{}/{n}", n % 7), format!("file {n}").as_bytes());
    }
    let many = ends.source.path().join("many");
    let report = ends.send(&[&many]);
    assert!(report.is_complete() && report.written == 2000, "{report:?}");
    assert_eq!(ends.got("many/3/1998"), b"file 1998");
    let again = ends.send(&[&many]);
    assert!(again.is_complete(), "{again:?}");
    assert_eq!((again.present, again.written, again.sent), (2000, 0, 0));
}

#[test]
fn an_empty_folder_is_a_transfer_of_no_file() {
    let ends = Ends::new();
    let empty = ends.source.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let report = ends.send(&[&empty]);
    assert!(report.is_complete() && report.files == 0, "{report:?}");
    assert!(ends.target.path().join("empty").is_dir());
}

#[test]
fn a_different_file_stays_unless_it_may_be_replaced() {
    for (existing, content) in [(Existing::Keep, &b"the old one"[..]), (Existing::Overwrite, b"THE NEW ONE")]
    {
        let ends = Ends::with(|config| config.existing = existing);
        fs::write(ends.target.path().join("same-length"), "the old one").unwrap();
        fs::write(ends.target.path().join("other-length"), "old").unwrap();
        let files = ["same-length", "other-length", "free"].map(|name| ends.put(name, b"THE NEW ONE"));
        let report = ends.send(&files.each_ref().map(PathBuf::as_path));
        assert_eq!(ends.got("same-length"), content);
        assert_eq!(ends.got("free"), b"THE NEW ONE");
        if existing == Existing::Keep {
            assert_eq!((report.written, report.failures.len()), (1, 2), "{report:?}");
            assert!(report.failures.iter().all(|it| it.why.contains("--overwrite")), "{report:?}");
            assert_eq!(ends.got("other-length"), b"old");
        } else {
            assert!(report.is_complete() && report.written == 3, "{report:?}");
        }
    }
}

#[test]
fn a_file_that_changes_while_it_is_sent_does_not_come_and_the_others_do() {
    let ends = Ends::new();
    let growing = ends.put("growing", b"");
    OpenOptions::new().write(true).open(&growing).unwrap().set_len(256 << 20).unwrap();
    let other = ends.put("other", b"x");
    let mut grown = false;
    let report = sent_with(&ends.request(&[&growing, &other]), &StopFlag::new(), |progress| {
        if let Progress::Moved { done, .. } = progress
            && done > 0
            && !grown
        {
            grown = true;
            OpenOptions::new().append(true).open(&growing).unwrap().write_all(b"more").unwrap();
        }
    });
    assert!(grown && report.ended.is_none(), "{report:?}");
    assert_eq!((report.written, report.failures.len()), (1, 1), "{report:?}");
    assert!(report.failures[0].why.contains("changed"), "{report:?}");
    assert!(!ends.target.path().join("growing").exists());
    let again = ends.send(&[&growing]);
    assert!(again.is_complete() && again.resumed > 0, "what had come is still right: {again:?}");
    assert_eq!(ends.got("growing").len(), (256 << 20) + 4);
}

#[test]
fn a_file_that_vanishes_before_its_turn_is_told() {
    let ends = Ends::new();
    let [gone, stays] = ["gone", "stays"].map(|name| ends.put(name, b"x"));
    let report = sent_with(&ends.request(&[&gone, &stays]), &StopFlag::new(), |progress| {
        if let Progress::Planned { .. } = progress {
            fs::remove_file(&gone).unwrap();
        }
    });
    assert_eq!((report.written, report.failures.len()), (1, 1), "{report:?}");
    assert!(report.failures[0].why.contains("No such file"), "{report:?}");
}

#[test]
fn a_folder_that_cannot_be_written_refuses_and_says_why() {
    // Nobody makes files there, not even root.
    let ends = Ends::with(|config| config.folder = "/proc".into());
    let file = ends.put("file", b"x");
    let report = ends.send(&[&file]);
    assert_eq!((report.written, report.failures.len()), (0, 1), "{report:?}");
    assert!(report.failures[0].why.contains("os error"), "{report:?}");
}

#[test]
fn a_port_that_somebody_has_in_one_version_is_not_taken_in_the_other() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let other = TcpListener::bind(address).unwrap();
        let port = other.local_addr().unwrap().port();
        let config = ReceiveConfig { port, ..config(folder.path()) };
        let error = Receiver::bind(config).unwrap_err().to_string();
        assert!(error.contains("--port"), "{address}: {error}");
    }
}

#[test]
fn where_nobody_receives_is_told_at_once() {
    let ends = Ends::new();
    let file = ends.put("file", b"x");
    let mut request = ends.request(&[&file]);
    drop(ends);
    request.files = vec!["/etc/hostname".into()];
    let error = sent(&request).unwrap_err();
    assert!(matches!(error, SendError::Connect(_)), "{error}");
    assert!(error.to_string().contains("netaware receive"), "{error}");
    request.files = vec!["/none".into()];
    assert!(matches!(sent(&request), Err(SendError::Read { .. })));
}
