//! The example in C, built against the library and the header as a stranger would build it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Where cargo has put the library: beside this test.
fn library() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn build(into: &TempDir) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = into.path().join("echo");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-o"]).arg(&program);
    cc.arg(here.join("examples/echo.c")).arg("-I").arg(here.join("../../../include"));
    cc.arg("-L").arg(library()).arg("-lnetaware").arg(format!("-Wl,-rpath,{}", library().display()));
    assert!(cc.status().expect("a C compiler").success());
    program
}

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
    let program = build(&folder);
    let mut server = Server::start(&program);
    let client = Command::new(&program).args(["send", "localhost", &server.1, "2000"]).output().unwrap();
    let told = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success(), "{told}{}", String::from_utf8_lossy(&client.stderr));
    assert!(told.starts_with("2000 blocks came back, over IPv"), "{told}");
    assert!(server.0.wait().unwrap().success());
}

#[test]
fn nobody_there_is_an_error_in_words() {
    let folder = TempDir::new().unwrap();
    let program = build(&folder);
    let client = Command::new(&program).args(["send", "localhost", "1", "1"]).output().unwrap();
    let told = String::from_utf8_lossy(&client.stderr);
    assert!(!client.status.success() && told.starts_with("na_connect: cannot connect to "), "{told}");
}
