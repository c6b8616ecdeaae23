//! The example in C as server and client in two namespaces, both under valgrind: no invalid access,
//! and every byte and thread given back at the end.
//!
//! The same against the library as a packager installs it is in `install`.
#![expect(unsafe_code, reason = "kill(2)")]

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use netaware_io::clock;
use netaware_netns::{Pair, Side, Transport, permitted, wait_until_bound};
use netaware_units::{BitRate, Span};
use tempfile::TempDir;

use super::c_library::Library;

const PORT: &str = "4449";
/// Of valgrind, where it finds something.
const FOUND: i32 = 99;
const RATE: BitRate = BitRate(100_000_000);

/// What is only "still reachable" at the end is no finding: glibc and Rust's runtime keep some for
/// good.
fn valgrind(side: &Side, program: &Path, words: &[&str]) -> Child {
    let mut command = side.command("valgrind");
    command.args(["--leak-check=full", "--errors-for-leak-kinds=definite,indirect,possible"]);
    command.args([&format!("--error-exitcode={FOUND}"), "--fair-sched=yes"]).arg(program).args(words);
    // Cargo's own, which comes before what the program names, and may lead to a library of an
    // earlier build.
    command.env_remove("LD_LIBRARY_PATH");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("valgrind is installed")
}

/// The client's last words; both ends have had this library and no other, and nothing was found.
fn echo(pair: &Pair, library: &Library, words: &[&str], meanwhile: impl FnOnce(&mut Child)) -> String {
    let folder = TempDir::new().unwrap();
    let program = library.compile("echo", folder.path());
    let server = valgrind(pair.right(), &program, &["serve", PORT]);
    wait_until_bound(server.id(), Transport::Tcp, PORT.parse().unwrap()).unwrap();
    let (v4, v6) = (pair.right().v4(), pair.right().v6());
    let mut client =
        valgrind(pair.left(), &program, &[&["send", &format!("{v6},{v4}"), PORT], words].concat());
    // Its first signal must not come before it listens to them, which it does before it connects.
    wait_until_connected(client.id());
    let file = std::fs::metadata(library.folder.join("libnetaware.so")).unwrap().ino();
    for process in [&server, &client] {
        assert_eq!(loaded(process.id()), BTreeSet::from([file]));
    }
    meanwhile(&mut client);
    let client = without_a_finding("client", &ended(client));
    without_a_finding("server", &ended(server));
    client
}

/// The files of our library that a process has in its memory, by their numbers: a path depends on
/// the root from which it is read.
fn loaded(process: u32) -> BTreeSet<u64> {
    // A line: addresses, rights, offset, device, number of the file, its path.
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let lines = maps.lines().filter(|line| line.contains("libnetaware"));
    lines.map(|line| line.split_whitespace().nth(4).and_then(|number| number.parse().ok()).unwrap()).collect()
}

/// What a program has printed, which is little enough for a pipe, when it has ended.
///
/// # Panics
/// If it does not end; it is killed then.
fn ended(mut child: Child) -> Output {
    let deadline = clock::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if clock::now() > deadline {
            let _ = child.kill();
            panic!("it does not end within {PATIENCE}: {:?}", child.wait_with_output());
        }
        clock::sleep(Span::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

const PATIENCE: Span = Span::from_secs(55);

fn without_a_finding(who: &str, ended: &Output) -> String {
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{who}: {}\n{told}", ended.status);
    for claim in ["definitely lost: 0 bytes", "indirectly lost: 0 bytes", "possibly lost: 0 bytes"] {
        // Where everything was given back it says so in one line instead.
        assert!(told.contains(claim) || told.contains("no leaks are possible"), "{who}: {told}");
    }
    assert!(told.contains("ERROR SUMMARY: 0 errors"), "{who}: {told}");
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

/// Whether anything in its namespace, where it is alone, has a connection. Until `ip` has entered
/// that, the process is in ours, where others may have some.
fn is_connected(process: u32) -> bool {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let own = namespace(&process.to_string());
    if own.is_none() || own == namespace("self") {
        return false;
    }
    // A line of /proc/net/tcp: number, local address, that of the other end, state.
    let established = |line: &str| line.split_whitespace().nth(3) == Some("01");
    let table = |name| std::fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    ["tcp", "tcp6"].into_iter().any(|name| table(name).lines().any(established))
}

fn wait_until_connected(process: u32) {
    let deadline = clock::now() + Span::from_secs(60);
    while !is_connected(process) {
        assert!(clock::now() < deadline, "the client does not connect");
        clock::sleep_until(clock::now() + Span::from_millis(20));
    }
}

fn changes(told: &str) -> u32 {
    let number = told.split(' ').nth(4).and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number of changes: {told}"))
}

pub(crate) fn switched_by_signals(library: &Library) {
    let pair = Pair::new("valgrind").unwrap();
    let told = echo(&pair, library, &["4000"], |client| {
        // None must come when it has ended and valgrind looks for leaks: that would end valgrind.
        let mut signals = [libc::SIGUSR1, libc::SIGUSR2].into_iter().cycle();
        let deadline = clock::now() + PATIENCE;
        while is_connected(client.id()) {
            assert!(clock::now() < deadline, "it is connected still");
            let signal = signals.next().expect("no end");
            // SAFETY: a child that has not been waited for.
            unsafe { libc::kill(client.id() as i32, signal) };
            clock::sleep_until(clock::now() + Span::from_millis(100));
        }
    });
    println!("by signals: {told}");
    assert!(changes(&told) > 2, "{told}");
}

pub(crate) fn switched_by_a_policy(library: &Library) {
    let pair = Pair::new("valgrind").unwrap();
    // A block takes 80 ms there over IPv6, where the stream begins.
    pair.shape_two_classes(RATE, BitRate(2_000_000)).unwrap();
    let policy = "[policy]\nmetric = \"round-trip\"\nafter = \"1s\"\nevery = \"200ms\"\nprefer = \"none\"\n";
    let told = echo(&pair, library, &["400", policy], |_| {});
    println!("by a policy: {told}");
    assert_eq!(changes(&told), 1, "{told}");
}

#[test]
fn switched_by_signals_nothing_is_found() {
    if permitted() {
        switched_by_signals(&Library::built());
    }
}

#[test]
fn switched_by_a_policy_nothing_is_found() {
    if permitted() {
        switched_by_a_policy(&Library::built());
    }
}
