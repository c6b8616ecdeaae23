//! A real ClickHouse for tests, without an installation: the library of chDB from the npm registry
//! holds all of it, and its command-line entry can be told to listen.
//!
//! The library is loaded by a child process, which is this very test program started again: what
//! ClickHouse does to signals and memory stays there, and killing the child ends it. On loopback
//! only, as user `default` without a password.

#![expect(unsafe_code, reason = "a foreign library can be loaded and called in no other way")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::program::free_port;

/// Set for the child: the library, the folder for its data, the port, and further arguments.
const CHILD: &str = "NETAWARE_TEST_CLICKHOUSE";

/// A library that is there already, instead of the one from the registry.
const LIBRARY: &str = "NETAWARE_TEST_CLICKHOUSE_LIBRARY";

const PACKAGE: &str = "@chdb/lib-linux-x64-gnu@26.7.3-stable.1";
const TARBALL: &str = "chdb-lib-linux-x64-gnu-26.7.3-stable.1.tgz";
const SHA512: &str = "5cff7b98caa7739b59a4a432c11f0dedc2d3b073624e61ebdf4a42e66ce8de35\
                      a6ba48ca9f62016bad1cd81fe059435cb858ce3235a8a2b408082a81563e70a7";

/// A ClickHouse server, which ends when this is dropped.
pub struct ClickHouse {
    child: Child,
    /// The port on which it answers HTTP.
    pub port: u16,
    folder: PathBuf,
    more: Vec<String>,
}

impl ClickHouse {
    /// Starts one for the test of this name, which is its path within the executable
    /// (`fleet::away::…`). `None` where there can be none, having said why; under `CI=true` that is
    /// a failure.
    pub fn start(test: &str) -> Option<Self> {
        Self::start_with(test, &[])
    }

    /// The same with arguments of ClickHouse beside the usual ones; with `--tcp_port=N` other
    /// servers can ask it, too.
    pub fn start_with(test: &str, more: &[String]) -> Option<Self> {
        match library() {
            Ok(library) => Some(Self::with(&library, test, more)),
            Err(why) => {
                assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "no ClickHouse to test with: {why}");
                eprintln!("SKIPPED: no ClickHouse to test with: {why}");
                None
            }
        }
    }

    fn with(library: &Path, test: &str, more: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap().keep();
        let (port, more) = (free_port(), more.to_vec());
        let child = serve_in_a_child(library, &folder, port, test, &more);
        let mut server = Self { child, port, folder, more };
        server.wait();
        server
    }

    /// As after a crash: the same data, the same port.
    pub fn restart(&mut self, test: &str) {
        self.stop();
        self.child = serve_in_a_child(&library().unwrap(), &self.folder, self.port, test, &self.more);
        self.wait();
    }

    /// Kills it, as a crash would.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The name of a store in this database, as the product takes it.
    pub fn place(&self, database: &str) -> String {
        format!("clickhouse://127.0.0.1:{}/{database}", self.port)
    }

    /// What it answers to a statement.
    pub fn ask(&self, sql: &str) -> Result<String, String> {
        self.ask_in("default", sql)
    }

    /// The same, tables being those of a database.
    pub fn ask_in(&self, database: &str, sql: &str) -> Result<String, String> {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let url = format!("http://127.0.0.1:{}/?database={database}", self.port);
        let mut response = agent.post(&url).send(sql).map_err(|error| error.to_string())?;
        let text = response.body_mut().read_to_string().map_err(|error| error.to_string())?;
        if response.status().is_success() { Ok(text) } else { Err(text) }
    }

    /// Until it answers, or has ended.
    fn wait(&mut self) {
        let (gate, bell) = (std::sync::Mutex::new(()), std::sync::Condvar::new());
        for _ in 0..600 {
            if self.ask("SELECT 1").is_ok() {
                return;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "ClickHouse ended as it began");
            let pause = std::time::Duration::from_millis(50);
            let _ = bell.wait_timeout(gate.lock().unwrap(), pause).unwrap();
        }
        panic!("ClickHouse does not answer on port {}", self.port);
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn serve_in_a_child(library: &Path, folder: &Path, port: u16, test: &str, more: &[String]) -> Child {
    let told =
        [&[library.display().to_string(), folder.display().to_string(), port.to_string()], more].concat();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, told.join("\n"))
        // It runs in a thread of the test harness and needs more than two megabytes of stack.
        .env("RUST_MIN_STACK", (64 << 20).to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// In the child this serves until it is killed; elsewhere it does nothing. To be called first by
/// the test named to [`ClickHouse::start`].
pub fn serve_if_told() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let told: Vec<&str> = told.lines().collect();
    let [library, folder, port, more @ ..] = &told[..] else { panic!("{CHILD} holds three lines and more") };
    serve(library, folder, port, more);
    std::process::exit(1);
}

fn serve(library: &str, folder: &str, port: &str, more: &[&str]) {
    let asked_by_others = more.iter().any(|argument| argument.starts_with("--tcp_port"));
    let tcp = if asked_by_others { "SYSTEM START LISTEN TCP; " } else { "" };
    // It serves as long as this statement runs: five minutes, should whoever is to kill it be
    // killed before.
    let query = "SELECT max(sleepEachRow(1)) FROM numbers(300) SETTINGS \
                 function_sleep_max_microseconds_per_block = 0, max_block_size = 1, max_threads = 1 FORMAT Null";
    let usual = [
        "clickhouse".to_owned(),
        format!("--path={folder}"),
        "--listen_host=127.0.0.1".to_owned(),
        format!("--http_port={port}"),
        format!("--query=SYSTEM START LISTEN HTTP; {tcp}{query}"),
    ];
    let all = usual.into_iter().chain(more.iter().map(|argument| (*argument).to_owned()));
    let arguments: Vec<CString> = all.map(|argument| CString::new(argument).unwrap()).collect();
    let mut pointers: Vec<*mut c_char> =
        arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
    // SAFETY: initialisers of a library that chDB's makers give out to be loaded like this; nothing
    // else runs in this process.
    let library = unsafe { libloading::Library::new(library) }.unwrap();
    // SAFETY: the types are those of chdb.h of this version; the strings outlive the calls.
    unsafe {
        type Run = unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut c_void;
        type Error = unsafe extern "C" fn(*mut c_void) -> *const c_char;
        let run: libloading::Symbol<'_, Run> = library.get(b"chdb_query_cmdline\0").unwrap();
        let error: libloading::Symbol<'_, Error> = library.get(b"chdb_result_error\0").unwrap();
        let result = run(pointers.len() as c_int, pointers.as_mut_ptr());
        let words = if result.is_null() { std::ptr::null() } else { error(result) };
        if !words.is_null() {
            eprintln!("{}", CStr::from_ptr(words).to_string_lossy());
        }
    }
}

/// The library, from the registry if it was never fetched.
fn library() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(LIBRARY) {
        return Ok(path.into());
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("there is one for Linux on x86-64 only".into());
    }
    // Cargo's folder for files of tests, `target/tmp`, seen from `target/<profile>/deps/<name>`.
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = test.ancestors().nth(3).ok_or("the test is not in a target folder")?;
    let folder = target.join("tmp/chdb");
    let library = folder.join("package/libchdb.so");
    if library.exists() {
        return Ok(library);
    }
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    // Tests that run at once would each fetch it into the same place: the first does, the others
    // wait until it is there.
    let turn = std::fs::File::create(folder.join("turn")).map_err(|error| error.to_string())?;
    turn.lock().map_err(|error| error.to_string())?;
    if library.exists() {
        return Ok(library);
    }
    let hurry = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"];
    run(&folder, "npm", &["pack", "--silent", hurry[0], hurry[1], PACKAGE])?;
    let sum = run(&folder, "sha512sum", &[TARBALL])?;
    if !sum.starts_with(SHA512) {
        return Err(format!("{PACKAGE} is not what it was: {sum}"));
    }
    // Into its place in one step: a half unpacked library would be taken for a whole one.
    let fresh = folder.join("fresh");
    std::fs::create_dir_all(&fresh).map_err(|error| error.to_string())?;
    run(&folder, "tar", &["xzf", TARBALL, "-C", "fresh", "package/libchdb.so"])?;
    std::fs::rename(fresh.join("package"), folder.join("package")).map_err(|error| error.to_string())?;
    let _ = std::fs::remove_file(folder.join(TARBALL));
    Ok(library)
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}
