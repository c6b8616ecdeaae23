//! The library as a packager installs it, and a stranger's program against that.
//!
//! Needs cargo-c (`cargo install cargo-c`), and builds the library once more: `cargo xtask nightly
//! --only installed`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use netaware_netns::permitted;
use tempfile::TempDir;

use super::c_library::Library;
use super::installation::{Installation, output, repository};
use super::netns_valgrind::{switched_by_a_policy, switched_by_signals};

/// Of what a shared library defines for others.
fn exported(library: &Path) -> BTreeSet<String> {
    let told = output(Command::new("readelf").args(["--dyn-syms", "--wide"]).arg(library));
    let lines = told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let defined = lines.filter(|words| words.len() >= 8 && words[4] != "LOCAL" && words[6] != "UND");
    defined
        .filter(|words| words[3] == "FUNC" || words[3] == "OBJECT" && words[6] != "ABS")
        .map(|words| words[7].to_owned())
        .collect()
}

fn calls_in(header: &str) -> BTreeSet<String> {
    let words = header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("na_")).map(|name| format!("{name}@@NETAWARE_0.1")).collect()
}

#[test]
#[ignore = "installed: needs cargo-c, and builds the library once more"]
fn what_is_installed_has_a_soname_and_versions_and_a_c_program_finds_it_by_pkg_config() {
    let installation = Installation::new();
    let (prefix, lib) = (installation.prefix(), installation.lib());
    let library = lib.join("libnetaware.so.0");
    let dynamic = output(Command::new("readelf").arg("-d").arg(&library));
    assert!(dynamic.contains("Library soname: [libnetaware.so.0]"), "{dynamic}");
    let header = fs::read_to_string(prefix.join("include/netaware.h")).unwrap();
    assert_eq!(header, fs::read_to_string(repository().join("include/netaware.h")).unwrap());
    assert_eq!(exported(&library), calls_in(&header));
    let manual = fs::read_to_string(prefix.join("share/man/man3/libnetaware.3")).unwrap();
    assert_eq!(manual, fs::read_to_string(repository().join("crates/apps/ffi/man/libnetaware.3")).unwrap());

    let folder = TempDir::new().unwrap();
    let program = folder.path().join("echo");
    let mut cc = Command::new("cc");
    cc.args(["-D_POSIX_C_SOURCE=200809L", "-o"]).arg(&program);
    cc.arg(repository().join("crates/apps/ffi/examples/echo.c")).args(installation.flags());
    output(&mut cc);

    let mut server = Command::new(&program);
    server.args(["serve", "0"]).env("LD_LIBRARY_PATH", &lib).stdout(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let mut client = Command::new(&program);
    client.args(["send", "::1,127.0.0.1", port.trim(), "500"]).env("LD_LIBRARY_PATH", &lib);
    let told = output(&mut client);
    assert!(told.starts_with("500 blocks came back"), "{told}");
    assert!(server.wait().unwrap().success());
}

#[test]
#[ignore = "installed: needs cargo-c, and builds the library once more"]
fn under_valgrind_switched_by_signals_and_by_a_policy_nothing_is_found() {
    if !permitted() {
        return;
    }
    let installation = Installation::new();
    let library = Library { folder: installation.lib(), flags: installation.flags() };
    // What the flags name is below the prefix, and the program finds nothing elsewhere.
    let prefix = installation.prefix().display().to_string();
    assert!(library.flags.iter().any(|flag| flag.contains(&prefix)), "{:?}", library.flags);
    switched_by_signals(&library);
    switched_by_a_policy(&library);
}
