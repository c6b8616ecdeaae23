//! `netaware send` and `netaware receive` as people run them: killed and started again, refused,
//! encrypted.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use netaware_io::clock;
use netaware_testkit::program::{Finished, Program, free_port, netaware, netaware_path, run, signal};
use netaware_units::Span;
use serde_json::Value;
use tempfile::TempDir;

/// Of which [`PASSED`] come before a transfer is broken off.
const LARGE: usize = 16 << 20;
/// Bytes that a [`Passage`] lets pass before it stops.
const PASSED: usize = 8 << 20;
/// Of these so much is in the receiver's file when the transfer is broken off; some may lie in
/// sockets.
const WRITTEN: u64 = 4 << 20;
const LIMIT: Span = Span::from_secs(30);

/// A program between sender and receiver that passes [`PASSED`] bytes of what the sender sends, and
/// then no more until it is opened: so a transfer is in its middle for as long as a test wants.
struct Passage {
    port: u16,
    left: Arc<(Mutex<usize>, Condvar)>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Passage {
    fn to(receiver: u16) -> Self {
        let port = free_port();
        let left = Arc::new((Mutex::new(PASSED), Condvar::new()));
        let streams = Arc::<Mutex<Vec<TcpStream>>>::default();
        for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let listener = TcpListener::bind((ip, port)).unwrap();
            let (left, streams) = (left.clone(), streams.clone());
            thread::spawn(move || {
                for sender in listener.incoming().flatten() {
                    let Ok(receiver) = TcpStream::connect((ip, receiver)) else { continue };
                    let [near, far] = [&sender, &receiver].map(|stream| stream.try_clone().unwrap());
                    streams.lock().unwrap().extend([&near, &far].map(|stream| stream.try_clone().unwrap()));
                    let left = left.clone();
                    thread::spawn(move || pass(near, far, Some(&left)));
                    thread::spawn(move || pass(receiver, sender, None));
                }
            });
        }
        Self { port, left, streams }
    }

    fn port(&self) -> String {
        self.port.to_string()
    }

    /// Ends all connections. A passage that has stopped reads no more, and does not see that a
    /// sender is gone.
    fn end_connections(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Lets everything pass from now on.
    fn open(&self) {
        *self.left.0.lock().unwrap() = usize::MAX;
        self.left.1.notify_all();
    }
}

/// Passes bytes on until one end closes, and no more than are left.
fn pass(mut from: TcpStream, mut to: TcpStream, left: Option<&(Mutex<usize>, Condvar)>) {
    let mut bytes = vec![0; 64 << 10];
    let mut pass_some = || -> io::Result<bool> {
        let length = from.read(&mut bytes)?;
        if let Some((left, opened)) = left {
            let mut left = opened.wait_while(left.lock().unwrap(), |left| *left < length).unwrap();
            *left -= length;
        }
        to.write_all(&bytes[..length])?;
        Ok(length > 0)
    };
    while pass_some().unwrap_or(false) {}
    for stream in [&from, &to] {
        // It may be closed already.
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

struct Place {
    folder: TempDir,
    port: String,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), port: free_port().to_string() };
        fs::create_dir(place.incoming()).unwrap();
        place
    }

    /// A way to the receiver on which a transfer stops in its middle.
    fn passage(&self) -> Passage {
        Passage::to(self.port.parse().unwrap())
    }

    fn incoming(&self) -> PathBuf {
        self.folder.path().join("incoming")
    }

    fn source(&self, bytes: usize) -> PathBuf {
        let path = self.folder.path().join("large");
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut content = Vec::with_capacity(bytes);
        while content.len() < bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            content.extend_from_slice(&state.to_le_bytes());
        }
        fs::write(&path, &content).unwrap();
        path
    }

    fn receive(&self, options: &[&str]) -> Program {
        let incoming = self.incoming();
        let mut arguments = vec!["receive", incoming.to_str().unwrap(), "-p", &self.port, "--format", "json"];
        arguments.extend(options);
        let program = Program::start(netaware(&arguments));
        wait_for("it listens", || program.printed().contains("listening"));
        program
    }

    fn send(&self, file: &Path, options: &[&str]) -> Finished {
        run(&send_arguments(file, &self.port, options), LIMIT)
    }

    /// What has come of the large file.
    fn partial(&self) -> u64 {
        let partial = self.incoming().join(".large.netaware-part");
        fs::metadata(partial).map_or(0, |about| about.len())
    }

    fn assert_same(&self, file: &Path) {
        let [there, here] =
            [self.incoming().join("large"), file.to_owned()].map(|path| fs::read(path).unwrap());
        assert!(there == here, "the same bytes");
        assert_eq!(fs::read_dir(self.incoming()).unwrap().count(), 1, "nothing else is left");
    }
}

fn send_arguments<'a>(file: &'a Path, port: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["send", file.to_str().unwrap(), "::1,127.0.0.1", "-p", port, "--format", "json"];
    [&fixed[..], options].concat()
}

/// Starts a sender on the way through a passage.
fn sender(file: &Path, passage: &Passage, options: &[&str]) -> Program {
    Program::start(netaware(&send_arguments(file, &passage.port(), options)))
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = clock::now() + Span::from_secs(30);
    while !done() {
        assert!(clock::now() < deadline, "{what}, within 30 s");
        clock::sleep(Span::from_millis(1));
    }
}

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|why| panic!("{why}: {finished:?}"))
}

/// The second line: the first transfer that ended.
fn received(program: &Program) -> Value {
    // Whole lines: the file may end in the midst of one.
    wait_for("a transfer ends", || program.printed().matches('\n').count() > 1);
    serde_json::from_str(program.printed().lines().nth(1).unwrap()).unwrap()
}

#[test]
fn a_killed_sender_goes_on_where_it_was() {
    let place = Place::new();
    let file = place.source(LARGE);
    let receiver = place.receive(&[]);
    let passage = place.passage();
    let sender = sender(&file, &passage, &["--switch", "off"]);
    wait_for("some of it comes", || place.partial() > WRITTEN);
    signal("KILL", sender.id());
    let killed = sender.finish_within(LIMIT);
    assert_eq!(killed.code, None, "{killed:?}");
    passage.end_connections();
    assert!(!place.incoming().join("large").exists());
    let report = json(&place.send(&file, &[]).exits_with(0));
    let (resumed, sent) = (report["resumed_bytes"].as_u64().unwrap(), report["sent_bytes"].as_u64().unwrap());
    assert!(resumed > WRITTEN && resumed + sent == LARGE as u64, "{report}");
    place.assert_same(&file);
    assert!(!received(&receiver)["ended"].is_null());
}

#[test]
fn a_killed_receiver_is_waited_for_and_the_transfer_goes_on_where_it_was() {
    let place = Place::new();
    let file = place.source(LARGE);
    let receiver = place.receive(&[]);
    let passage = place.passage();
    let sender = sender(&file, &passage, &["--switch", "off"]);
    wait_for("some of it comes", || place.partial() > WRITTEN);
    signal("KILL", receiver.id());
    let killed = receiver.finish_within(LIMIT);
    assert_eq!(killed.code, None, "{killed:?}");
    passage.open();
    let receiver = place.receive(&["--once"]);
    let report = json(&sender.finish_within(LIMIT).exits_with(0));
    assert!(report["resumed_bytes"].as_u64().unwrap() > WRITTEN, "{report}");
    assert!(report["reconnects"].as_u64().unwrap() >= 1, "{report}");
    place.assert_same(&file);
    let took = receiver.finish_within(LIMIT).exits_with(0);
    let second: Value = serde_json::from_str(took.stdout.lines().nth(1).unwrap()).unwrap();
    let (came, resumed) =
        (second["received_bytes"].as_u64().unwrap(), second["resumed_bytes"].as_u64().unwrap());
    assert_eq!(came + resumed, LARGE as u64, "what was there did not travel again: {second}");
}

#[test]
fn both_killed_in_an_encrypted_transfer_go_on_where_they_were() {
    let place = Place::new();
    let file = place.source(LARGE);
    let key = place.folder.path().join("key");
    fs::write(&key, "a key of both").unwrap();
    let options = ["--tls", "--key-file", key.to_str().unwrap()];
    let receiver = place.receive(&options);
    let passage = place.passage();
    let sender = sender(&file, &passage, &options);
    wait_for("some of it comes", || place.partial() > WRITTEN);
    for program in [sender, receiver] {
        signal("KILL", program.id());
        assert_eq!(program.finish_within(LIMIT).code, None);
    }
    let there = place.partial();
    let _receiver = place.receive(&options);
    let report = json(&place.send(&file, &options).exits_with(0));
    assert_eq!(report["resumed_bytes"].as_u64(), Some(there), "{report}");
    assert_eq!(report["sent_bytes"].as_u64(), Some(LARGE as u64 - there), "{report}");
    place.assert_same(&file);
}

#[test]
fn a_folder_whose_sender_was_killed_gets_only_what_it_lacks() {
    const FILES: usize = 800;
    let place = Place::new();
    let many = place.folder.path().join("many");
    fs::create_dir(&many).unwrap();
    for n in 0..FILES {
        fs::write(many.join(n.to_string()), vec![(n % 251) as u8; 20_000]).unwrap();
    }
    let _receiver = place.receive(&[]);
    let came = || fs::read_dir(place.incoming().join("many")).map_or(0, Iterator::count);
    let passage = place.passage();
    let sender = sender(&many, &passage, &[]);
    wait_for("some of them come", || came() > 200);
    signal("KILL", sender.id());
    sender.finish_within(LIMIT);
    passage.end_connections();
    assert!(came() < FILES, "it was killed in the middle");
    let report = json(&place.send(&many, &[]).exits_with(0));
    let [written, present, sent] =
        ["written", "present", "sent_bytes"].map(|name| report[name].as_u64().unwrap());
    assert!(written + present == FILES as u64 && present >= 200, "{report}");
    // The receiver may have had bytes of the killed sender left: of 64 files at most it then says
    // too early that it lacks them.
    assert!(sent <= (written + 64) * 20_000, "{report}");
    for n in 0..FILES {
        let there = fs::read(place.incoming().join("many").join(n.to_string())).unwrap();
        assert_eq!(there, vec![(n % 251) as u8; 20_000], "{n}");
    }
    assert_eq!(came(), FILES, "nothing else is left there");
}

#[test]
fn a_receiver_that_cannot_write_more_says_so_and_keeps_what_came() {
    let place = Place::new();
    let file = place.source(8 << 20);
    let incoming = place.incoming();
    // No file may become longer than 2 MiB, which is as good as a full disk.
    let mut limited = std::process::Command::new("bash");
    let script = format!(
        "ulimit -f 2048; trap '' XFSZ; exec {} receive \"$0\" -p \"$1\" --once --format json",
        netaware_path().display()
    );
    limited.args(["-c", &script, incoming.to_str().unwrap(), &place.port]);
    let receiver = Program::start(limited);
    wait_for("it listens", || receiver.printed().contains("listening"));
    let report = json(&place.send(&file, &[]).exits_with(2));
    assert!(report["failures"][0]["why"].as_str().unwrap().contains("too large"), "{report}");
    assert_eq!(place.partial(), 2 << 20);
    receiver.finish_within(LIMIT).exits_with(2);
    let receiver = place.receive(&["--once"]);
    let report = json(&place.send(&file, &[]).exits_with(0));
    assert_eq!(report["resumed_bytes"], 2 << 20, "{report}");
    place.assert_same(&file);
    receiver.finish_within(LIMIT).exits_with(0);
}

#[test]
fn what_is_there_with_other_content_stays_without_overwrite() {
    let place = Place::new();
    let file = place.source(1 << 20);
    fs::write(place.incoming().join("large"), "other").unwrap();
    let receiver = place.receive(&["--once"]);
    let report = json(&place.send(&file, &[]).exits_with(2));
    assert!(report["failures"][0]["why"].as_str().unwrap().contains("--overwrite"), "{report}");
    receiver.finish_within(LIMIT).exits_with(2);
    let receiver = place.receive(&["--once", "--overwrite"]);
    place.send(&file, &[]).exits_with(0);
    place.assert_same(&file);
    receiver.finish_within(LIMIT).exits_with(0);
}

#[test]
fn a_wrong_key_a_missing_receiver_and_a_missing_file_end_with_2() {
    let place = Place::new();
    let file = place.source(1000);
    let [right, wrong] = ["right", "wrong"].map(|name| {
        let path = place.folder.path().join(name);
        fs::write(&path, name).unwrap();
        path
    });
    let nobody = place.send(&file, &[]).exits_with(2);
    assert!(nobody.stderr.contains("is 'netaware receive' running there"), "{nobody:?}");
    let missing = place.send(Path::new("/none"), &[]).exits_with(2);
    assert!(missing.stderr.contains("cannot read /none"), "{missing:?}");
    let _receiver = place.receive(&["--key-file", right.to_str().unwrap()]);
    let refused = place.send(&file, &["--key-file", wrong.to_str().unwrap()]).exits_with(2);
    assert!(refused.stderr.contains("does not fit"), "{refused:?}");
    assert!(place.send(&file, &[]).exits_with(2).stderr.contains("--key-file"));
    place.send(&file, &["--key-file", right.to_str().unwrap()]).exits_with(0);
    place.assert_same(&file);
}

#[test]
fn an_encrypted_receiver_prints_what_the_sender_needs() {
    let place = Place::new();
    let file = place.source(4 << 20);
    let receiver = place.receive(&["--tls", "--once"]);
    let printed = receiver.printed();
    let listening: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
    let fingerprint = listening["fingerprint"].as_str().unwrap();
    place.send(&file, &["--fingerprint", &"00".repeat(32)]).exits_with(2);
    place.send(&file, &["--fingerprint", fingerprint]).exits_with(0);
    place.assert_same(&file);
    receiver.finish_within(LIMIT).exits_with(0);
}

#[test]
fn ctrl_c_breaks_off_and_the_same_command_goes_on() {
    let place = Place::new();
    let file = place.source(LARGE);
    let _receiver = place.receive(&[]);
    let passage = place.passage();
    let sender = sender(&file, &passage, &[]);
    wait_for("some of it comes", || place.partial() > WRITTEN);
    signal("INT", sender.id());
    let broken = sender.finish_within(LIMIT).exits_with(2);
    assert!(broken.stderr.contains("the same command goes on"), "{broken:?}");
    assert_eq!(json(&broken)["ended"], "interrupted");
    passage.end_connections();
    let report = json(&place.send(&file, &[]).exits_with(0));
    assert!(report["resumed_bytes"].as_u64().unwrap() > WRITTEN, "{report}");
    place.assert_same(&file);
}
