//! The examples in C and Python, built against the library and the header as a stranger would build
//! them.
#![expect(unsafe_code, reason = "kill(2)")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use netaware_io::clock;
use netaware_units::Span;
use tempfile::TempDir;

use super::c_library::Library;

/// Whatever "localhost" means here.
const BOTH: &str = "::1,127.0.0.1";

struct Server(Child, String);

impl Server {
    fn start(program: &Path) -> Self {
        let mut server = Command::new(program).args(["serve", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self(server, port.trim().to_owned())
    }
}

/// A program that takes longer than this hangs.
const PATIENCE: Span = Span::from_secs(50);

/// Waits until it ends by itself.
///
/// # Panics
/// If it does not within [`PATIENCE`]; it is killed then.
fn wait_within(child: &mut Child) -> ExitStatus {
    let deadline = clock::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if clock::now() > deadline {
            let _ = child.kill();
            panic!("it does not end within {PATIENCE}");
        }
        clock::sleep(Span::from_millis(10));
    }
}

/// What a program prints, which is little enough for a pipe, and how it ends.
fn output(command: &mut Command) -> Output {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_within(&mut child);
    child.wait_with_output().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_c_program_sends_switches_and_gets_everything_back() {
    let folder = TempDir::new().unwrap();
    let program = Library::built().compile("echo", folder.path());
    let mut server = Server::start(&program);
    let client = output(Command::new(&program).args(["send", BOTH, &server.1, "5000"]));
    let told = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success(), "{told}{}", String::from_utf8_lossy(&client.stderr));
    assert_eq!(told, "5000 blocks came back, 1 changes of IP version\n");
    assert!(wait_within(&mut server.0).success());
}

#[test]
fn a_c_program_sends_datagrams_and_its_own_policy_moves_them() {
    let folder = TempDir::new().unwrap();
    let program = Library::built().compile("datagrams", folder.path());
    let mut server = Server::start(&program);
    let client = output(Command::new(&program).args(["send", BOTH, &server.1, "2000"]));
    let told = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success(), "{told}{}", String::from_utf8_lossy(&client.stderr));
    assert_eq!(told, "all came back, 1 changes of IP version\n");
    assert!(wait_within(&mut server.0).success());
}

#[test]
fn signals_from_outside_move_it() {
    let folder = TempDir::new().unwrap();
    let program = Library::built().compile("echo", folder.path());
    let server = Server::start(&program);
    let mut client = Command::new(&program);
    let client = client.args(["send", BOTH, &server.1, "20000"]).stdout(Stdio::piped());
    let mut client = client.spawn().unwrap();
    let deadline = clock::now() + PATIENCE;
    // Its first signal must not come before it listens to them.
    while !takes_signals(client.id()) {
        assert!(clock::now() < deadline && client.try_wait().unwrap().is_none(), "it takes no signals");
        clock::sleep(Span::from_millis(5));
    }
    let mut to_v4 = true;
    while client.try_wait().unwrap().is_none() {
        assert!(clock::now() < deadline, "it does not end within {PATIENCE}");
        let signal = if to_v4 { libc::SIGUSR1 } else { libc::SIGUSR2 };
        // SAFETY: a child that has not been waited for.
        unsafe { libc::kill(client.id() as i32, signal) };
        to_v4 = !to_v4;
        clock::sleep_until(clock::now() + Span::from_millis(40));
    }
    let told = client.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let changes: Option<u32> = text.split(' ').nth(4).and_then(|word| word.parse().ok());
    assert!(told.status.success() && changes.is_some_and(|changes| changes > 2), "{text}");
}

/// Whether a process has a handler for both signals, as its mask of caught ones says.
fn takes_signals(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    [libc::SIGUSR1, libc::SIGUSR2].iter().all(|signal| caught & 1 << (signal - 1) != 0)
}

#[test]
fn nobody_there_is_an_error_in_words() {
    let folder = TempDir::new().unwrap();
    let program = Library::built().compile("echo", folder.path());
    let client = output(Command::new(&program).args(["send", "localhost", "1", "1"]));
    let told = String::from_utf8_lossy(&client.stderr);
    assert!(!client.status.success() && told.starts_with("na_connect: cannot connect to "), "{told}");
}

#[test]
fn a_python_program_does_the_same() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new("python3");
    python.arg(here.join("examples/python/echo.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    let told = output(python.env("LIBNETAWARE", Library::built().folder.join("libnetaware.so")));
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!(text, "500 blocks came back, over IPv4 and IPv6\n");
}

#[test]
fn a_python_program_sends_datagrams_and_decides_itself() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new("python3");
    python.arg(here.join("examples/python/datagrams.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    let told = output(python.env("LIBNETAWARE", Library::built().folder.join("libnetaware.so")));
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!(text, "decided by the program: IPv6 to IPv4\n200 datagrams came back, over IPv4 and IPv6\n");
}
