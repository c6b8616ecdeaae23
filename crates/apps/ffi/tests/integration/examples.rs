//! The examples in C and Python, built against the library and the header as a stranger would build them.
#![expect(unsafe_code, reason = "kill(2)")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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
    let client = Command::new(&program).args(["send", BOTH, &server.1, "5000"]).output().unwrap();
    let told = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success(), "{told}{}", String::from_utf8_lossy(&client.stderr));
    assert_eq!(told, "5000 blocks came back, 1 changes of IP version\n");
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn a_c_program_sends_datagrams_and_its_own_policy_moves_them() {
    let folder = TempDir::new().unwrap();
    let program = Library::built().compile("datagrams", folder.path());
    let mut server = Server::start(&program);
    let client = Command::new(&program).args(["send", BOTH, &server.1, "2000"]).output().unwrap();
    let told = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success(), "{told}{}", String::from_utf8_lossy(&client.stderr));
    assert_eq!(told, "all came back, 1 changes of IP version\n");
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn signals_from_outside_move_it() {
    let folder = TempDir::new().unwrap();
    let program = Library::built().compile("echo", folder.path());
    let server = Server::start(&program);
    let mut client = Command::new(&program);
    let client = client.args(["send", BOTH, &server.1, "20000"]).stdout(Stdio::piped());
    let mut client = client.spawn().unwrap();
    // Its first signal must not come before it listens to them.
    clock::sleep_until(clock::now() + Span::from_millis(500));
    let mut to_v4 = true;
    while client.try_wait().unwrap().is_none() {
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

#[test]
fn nobody_there_is_an_error_in_words() {
    let folder = TempDir::new().unwrap();
    let program = Library::built().compile("echo", folder.path());
    let client = Command::new(&program).args(["send", "localhost", "1", "1"]).output().unwrap();
    let told = String::from_utf8_lossy(&client.stderr);
    assert!(!client.status.success() && told.starts_with("na_connect: cannot connect to "), "{told}");
}

#[test]
fn a_python_program_does_the_same() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new("python3");
    python.arg(here.join("examples/python/echo.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    let told =
        python.env("LIBNETAWARE", Library::built().folder.join("libnetaware.so")).output().expect("python3");
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!(text, "500 blocks came back, over IPv4 and IPv6\n");
}

#[test]
fn a_python_program_sends_datagrams_and_decides_itself() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new("python3");
    python.arg(here.join("examples/python/datagrams.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    let told =
        python.env("LIBNETAWARE", Library::built().folder.join("libnetaware.so")).output().expect("python3");
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!(text, "decided by the program: IPv6 to IPv4\n200 datagrams came back, over IPv4 and IPv6\n");
}
