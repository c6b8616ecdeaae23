//! `netaware lab` as a person uses it, and after it was killed. Run one at a time: `cargo xtask
//! netns`.

use std::process::{Command, Output};

use netaware_io::clock;
use netaware_netns::permitted;
use netaware_testkit::lab;
use netaware_testkit::program;
use netaware_units::Span;

fn netaware(arguments: &[&str]) -> Output {
    program::netaware(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn listed(prefix: &str) -> serde_json::Value {
    let all: serde_json::Value =
        serde_json::from_str(&out(&netaware(&["lab", "list", "--format", "json"]))).unwrap();
    all.as_array().unwrap().iter().find(|lab| lab["prefix"] == prefix).cloned().unwrap_or_default()
}

fn is_there(prefix: &str) -> bool {
    let names = out(&Command::new("ip").args(["netns", "list"]).output().unwrap());
    names.contains(&format!("{prefix}-a")) || names.contains(&format!("{prefix}-b"))
}

#[test]
fn a_lab_that_was_killed_stands_still_and_is_cleared_away() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let up = netaware(&["lab", "up", "three-hops", "--prefix", prefix]);
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    assert!(out(&up).contains("10.77.0.2"), "{}", out(&up));
    let pid = listed(prefix)["pid"].as_u64().unwrap();
    let ping = ["lab", "exec", "--prefix", prefix, "a", "ping", "-c", "1", "-W", "1", "b4"];
    assert!(netaware(&ping).status.success());
    assert_eq!(netaware(&["lab", "up", "three-hops", "--prefix", prefix]).status.code(), Some(2));
    Command::new("sh").args(["-c", &format!("kill -9 {pid}")]).status().unwrap();
    let due = clock::now() + Span::from_secs(10);
    while listed(prefix)["standing"] == "running" {
        assert!(clock::now() < due, "10 s after its process was killed the lab is listed as running");
        clock::sleep(Span::from_millis(50));
    }
    assert!(!netaware(&ping).status.success());
    let inside = Command::new("ip")
        .args(["netns", "exec", &format!("{prefix}-a"), "ping", "-c", "1", "-W", "1", "10.77.0.2"])
        .output();
    assert!(!inside.unwrap().status.success(), "no packet moves without the emulator");
    for _ in 0..2 {
        assert!(netaware(&["lab", "down", "--prefix", prefix]).status.success());
        assert!(!is_there(prefix));
    }
}

#[test]
fn run_ends_as_its_first_program_did_and_leaves_nothing() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let run = [
        "lab",
        "run",
        "three-hops",
        "--prefix",
        prefix,
        "--",
        "sh",
        "-c",
        "ping -c 2 -i 0.2 b && exit 7",
        ":::",
        "sleep",
        "1000",
    ];
    let ended = program::run(&run, Span::from_secs(20)).exits_with(7);
    assert!(ended.stdout.contains("2 received"), "{ended:#?}");
    assert!(!is_there(prefix));
    assert_eq!(listed(prefix), serde_json::Value::Null);
}
