//! The `netaware` binary as a stranger runs it: a responder that ends with its guard, clients that
//! are bounded in time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use netaware_io::clock;
use netaware_netns::{Running, Transport, is_bound, wait_until_bound};
use netaware_record::Record;
use netaware_units::{Mono, Span};
use tempfile::TempDir;

/// The binary under test: the one that cargo or the test runner names in `CARGO_BIN_EXE_netaware`,
/// or the one in the folder above that of the running test executable.
///
/// # Panics
/// If it is not there.
pub fn netaware_path() -> &'static Path {
    static FOUND: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = std::env::var_os("CARGO_BIN_EXE_netaware").map_or_else(beside_the_tests, PathBuf::from);
        let path = path.canonicalize().unwrap_or(path);
        assert!(
            path.is_file(),
            "the netaware binary is not at {}: build it first: cargo build --profile checked",
            path.display()
        );
        path
    });
    &FOUND
}

/// A test executable is `target/<profile>/deps/<name>`, the binary is `target/<profile>/netaware`.
fn beside_the_tests() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let profile = test.ancestors().nth(2).expect("cargo puts tests two folders deep");
    profile.join("netaware").with_extension(std::env::consts::EXE_EXTENSION)
}

/// The binary with these arguments.
pub fn netaware(arguments: &[&str]) -> Command {
    let mut command = Command::new(netaware_path());
    command.args(arguments);
    command
}

/// Runs a program to its end, without the settings of whoever runs the tests.
///
/// # Panics
/// If it cannot be started, or if one of its threads panicked.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    without_settings(command);
    let output = command.output().unwrap();
    assert_no_panic(&String::from_utf8_lossy(&output.stderr));
    output
}

/// Keeps the variables `NETAWARE_…` and the folder of settings of whoever runs the tests from a
/// program; what the command itself sets stays.
fn without_settings(command: &mut Command) {
    let own: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"NETAWARE_") && !own.contains(&name) {
            command.env_remove(name);
        }
    }
    if !own.iter().any(|name| name == "XDG_CONFIG_HOME") {
        command.env("XDG_CONFIG_HOME", "/nonexistent");
    }
}

/// A panic of any of a program's threads is a failure, whatever the test asks of it.
#[track_caller]
fn assert_no_panic(complained: &str) {
    assert!(!complained.contains("panicked at"), "the program panicked: {complained}");
}

/// A port free for TCP and UDP. Below the range that the kernel gives out by itself, so that no
/// passing connection takes it between the look and the use. Looked up and not tried: a program
/// that another test starts at that moment would inherit the socket of the try, and keep the port
/// until it runs.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const LOWEST: u32 = 15_000;
    const SPAN: u32 = 17_000;
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        // Test binaries that run at the same time start far apart.
        let offset = std::process::id().wrapping_mul(997).wrapping_add(step) % SPAN;
        let port = u16::try_from(LOWEST + offset).expect("below 32768");
        let taken =
            [Transport::Tcp, Transport::Udp].map(|transport| is_bound(std::process::id(), transport, port));
        if taken == [Some(false); 2] {
            return port;
        }
    }
}

/// Sends a signal by name ("INT") with the shell's own `kill`.
pub fn signal(name: &str, process: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status().unwrap();
    assert!(sent.success(), "process {process} was gone before SIG{name}");
}

/// A program with its output in files, killed when dropped.
pub struct Program {
    running: Running,
    started_at: Mono,
    /// Its working directory, home, store and output: nothing of the user's settings reaches it.
    home: TempDir,
}

/// What a program left behind.
#[derive(Debug)]
pub struct Finished {
    /// Absent when a signal ended it.
    pub code: Option<i32>,
    /// Everything that it printed.
    pub stdout: String,
    /// Everything that it complained of.
    pub stderr: String,
    /// The time from its start until its end was seen.
    pub took: Span,
}

impl Program {
    /// Starts a program in an empty home, without any `NETAWARE_` variable of the environment.
    pub fn start(mut command: Command) -> Self {
        let home = tempfile::tempdir().unwrap();
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"NETAWARE_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(home.path())
            .env("HOME", home.path())
            .env("XDG_CACHE_HOME", home.path())
            .env("XDG_CONFIG_HOME", home.path())
            .env("XDG_DATA_HOME", home.path())
            .env("NETAWARE_STORE", home.path().join(STORE))
            .stdin(Stdio::null())
            .stdout(File::create(home.path().join(STDOUT)).unwrap())
            .stderr(File::create(home.path().join(STDERR)).unwrap());
        let started_at = clock::now();
        Self { running: Running::start(&mut command).unwrap(), started_at, home }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it runs for longer than `limit` from now.
    pub fn finish_within(mut self, limit: Span) -> Finished {
        self.finished_within(limit).unwrap_or_else(|| {
            panic!("still running after {limit}\n{}\n{}", self.printed(), self.complained())
        })
    }

    /// Waits for its end for at most this time; `None` if it still runs then.
    pub fn finished_within(&mut self, limit: Span) -> Option<Finished> {
        let due = clock::now() + limit;
        loop {
            if let Some(status) = self.running.child().try_wait().unwrap() {
                let took = clock::now() - self.started_at;
                let (stdout, stderr) = (self.printed(), self.complained());
                return Some(Finished { code: status.code(), stdout, stderr, took });
            }
            if clock::now() >= due {
                return None;
            }
            clock::sleep(Span::from_millis(10));
        }
    }

    /// Standard output so far.
    pub fn printed(&self) -> String {
        self.content(STDOUT)
    }

    /// Standard error so far.
    pub fn complained(&self) -> String {
        self.content(STDERR)
    }

    /// Where its results are saved unless told otherwise.
    pub fn store(&self) -> PathBuf {
        self.home.path().join(STORE)
    }

    fn content(&self, file: &str) -> String {
        let bytes = std::fs::read(self.home.path().join(file)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_no_panic(&self.complained());
        }
    }
}

const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";
const STORE: &str = "store.db";

impl Finished {
    /// Returns itself if the program ended with this exit code.
    ///
    /// # Panics
    /// When it ended with another exit code.
    #[expect(clippy::return_self_not_must_use, reason = "often only the exit code is claimed")]
    pub fn exits_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Standard output of `--format json`.
    pub fn record(&self) -> Record {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// Runs a client to its end.
pub fn run(arguments: &[&str], limit: Span) -> Finished {
    Program::start(netaware(arguments)).finish_within(limit)
}

/// `netaware serve` on a port of its own.
pub struct Responder {
    program: Program,
    port: u16,
}

impl Responder {
    /// Starts one on this host.
    pub fn start(options: &[&str]) -> Self {
        let port = free_port();
        Self::launch(netaware(&["serve", "--port", &port.to_string()]), options, port)
    }

    /// Starts one by a command that ends where the options begin, and waits until it listens.
    pub fn launch(mut command: Command, options: &[&str], port: u16) -> Self {
        command.args(options);
        let program = Program::start(command);
        for transport in [Transport::Tcp, Transport::Udp] {
            if let Err(error) = wait_until_bound(program.id(), transport, port) {
                panic!("{error}\n{}", program.complained());
            }
        }
        Self { program, port }
    }

    /// The port it listens on, as an argument of a client.
    pub fn port(&self) -> String {
        self.port.to_string()
    }

    /// Its address on loopback over IPv4.
    pub fn address(&self) -> std::net::SocketAddr {
        (std::net::Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.program.id()
    }

    /// The program without the knowledge of its port.
    pub fn into_program(self) -> Program {
        self.program
    }
}
