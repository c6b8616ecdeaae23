//! Programs whose log goes to a pipe that nobody reads any more: a script that started them and was
//! killed, a supervisor that is stuck.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{ChildStderr, Stdio};

use netaware_io::clock;
use netaware_netns::Running;
use netaware_testkit::program::{free_port, netaware, run, signal};
use netaware_units::Span;

use crate::faults::side_by_side;

/// What becomes of whoever reads the log.
#[derive(Debug, Clone, Copy)]
enum Reader {
    /// The pipe is closed.
    Goes,
    /// The pipe is full.
    Stops,
}

#[test]
fn a_reader_of_the_log_who_goes_or_stops_keeps_nobody_from_serving_or_ending() {
    let programs: [&[&str]; 4] = [
        &["serve", "-v"],
        &["collect", "run"],
        &["relay", "--accept", "127.0.0.1:0", "--forward", "localhost:1"],
        &["receive", ".", "-p", "0"],
    ];
    let cases = programs.into_iter().flat_map(|words| [(words, Reader::Goes), (words, Reader::Stops)]);
    side_by_side(cases, |(words, reader)| ends_when_told(words, reader));
}

fn ends_when_told(words: &[&str], reader: Reader) {
    let folder = tempfile::tempdir().unwrap();
    let fleet = "listen = [\"127.0.0.1:0\"]\nstate = \"state\"\n[probes.a]\nkey_file = \"a.key\"\n";
    std::fs::write(folder.path().join("collect.toml"), fleet).unwrap();
    std::fs::write(folder.path().join("a.key"), "key of a\n").unwrap();
    let port = free_port().to_string();
    let mut command = netaware(words);
    if words[0] == "serve" {
        command.args(["-p", &port]);
    }
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = Running::start(&mut command).unwrap();
    let mut said = BufReader::new(program.child().stdout.take().unwrap());
    // By then it listens for signals, too.
    said.read_line(&mut String::new()).unwrap();
    let log = program.child().stderr.take().unwrap();
    let log = match reader {
        Reader::Goes => {
            drop(log);
            None
        }
        Reader::Stops => Some(filled(log)),
    };
    if words[0] == "serve" {
        // Each session is a line of the log, and a responder has one thread for all sessions.
        for _ in 0..2 {
            let latency = ["latency", "127.0.0.1", "-p", &port, "-t", "100ms", "--no-save"];
            run(&latency, Span::from_secs(10)).exits_with(0);
        }
    }
    signal("TERM", program.id());
    let due = clock::now() + Span::from_secs(8);
    let status = loop {
        if let Some(status) = program.child().try_wait().unwrap() {
            break status;
        }
        assert!(clock::now() < due, "{words:?} has not ended: its reader {reader:?}");
        clock::sleep(Span::from_millis(10));
    };
    assert_eq!(status.code(), Some(0), "{words:?}, its reader {reader:?}");
    drop(log);
}

/// The pipe, with as much in it as it takes.
fn filled(log: ChildStderr) -> ChildStderr {
    const NONBLOCKING: i32 = 0o4000;
    let path = format!("/proc/self/fd/{}", log.as_raw_fd());
    let mut pipe = OpenOptions::new().write(true).custom_flags(NONBLOCKING).open(path).unwrap();
    for piece in [&[b'.'; 4096][..], b"."] {
        while pipe.write(piece).is_ok() {}
    }
    log
}
