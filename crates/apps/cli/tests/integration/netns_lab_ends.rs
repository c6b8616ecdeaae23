//! However a lab ends, and whoever ends it: nothing is left behind, and nothing of others is
//! touched. Run one at a time: `cargo xtask netns`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::SystemTime;

use netaware_io::clock;
use netaware_lab::LabState;
use netaware_netns::permitted;
use netaware_testkit::lab;
use netaware_testkit::program::{self, netaware_path};
use netaware_units::{Mono, Span};

fn netaware(arguments: &[&str]) -> Output {
    program::netaware(arguments).output().unwrap()
}

fn started(arguments: &[&str]) -> Child {
    let mut command = program::netaware(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn words(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// With the shell's own `kill`; false when there is no such process any more.
fn signal(name: &str, process: u32) -> bool {
    let kill = format!("kill -{name} {process}");
    Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status().unwrap().success()
}

/// Whatever a lab of this prefix could leave, by name.
fn left_of(prefix: &str) -> Vec<String> {
    let namespaces = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let namespaces = String::from_utf8(namespaces.stdout).unwrap();
    let listed = namespaces.lines().filter_map(|line| line.split_whitespace().next());
    let mut left: Vec<String> = listed.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect();
    for folder in ["/run/netaware-lab", "/run/netns", "/etc/netns"] {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        left.extend(names.filter(|name| name.starts_with(prefix)).map(|name| format!("{folder}/{name}")));
    }
    left.extend(holders(prefix).into_iter().map(|pid| format!("process {pid}")));
    left
}

/// Processes `netaware lab hold` of this prefix.
fn holders(prefix: &str) -> Vec<u32> {
    let is_hold = |words: &[&[u8]]| words.windows(2).any(|pair| pair == [&b"lab"[..], &b"hold"[..]]);
    processes(|words| is_hold(words) && words.contains(&prefix.as_bytes()))
}

/// Processes in whose command the prefix stands, also as the beginning of a name: whatever makes
/// something of a lab has it there, before it runs its own program as well as after.
fn makers(prefix: &str) -> Vec<u32> {
    processes(|words| words.iter().any(|word| word.starts_with(prefix.as_bytes())))
}

fn processes(is_it: impl Fn(&[&[u8]]) -> bool) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_one = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        is_it(&line.split(|byte| *byte == 0).collect::<Vec<_>>())
    };
    pids.filter(is_one).collect()
}

/// Waits until `done`, at most ten seconds.
#[track_caller]
fn await_that(what: &str, done: impl Fn() -> bool) {
    let until = clock::now() + Span::from_secs(10);
    while !done() {
        assert!(clock::now() < until, "not within 10 s: {what}");
        clock::sleep(Span::from_millis(10));
    }
}

#[track_caller]
fn assert_cleared(prefix: &str, story: &str) {
    let down = netaware(&["lab", "down", "--prefix", prefix]);
    assert!(down.status.success(), "{story}: {}", words(&down));
    // A program that was just being started when its parent was killed may appear after `down` has
    // looked; it finds nobody to report to, and ends itself.
    await_that(&format!("nothing is left, {story}"), || is_cleared_for_good(prefix));
}

/// Whether nothing is left and nothing can come any more: what makes something of a lab is looked
/// for before what it makes.
fn is_cleared_for_good(prefix: &str) -> bool {
    makers(prefix).is_empty() && left_of(prefix).is_empty()
}

/// From before anything is made until after all is there.
const MOMENTS_MS: [i64; 5] = [0, 10, 30, 80, 200];

/// The same, each five milliseconds.
fn every_moment_ms() -> impl Iterator<Item = i64> {
    (0..200).step_by(5)
}

#[test]
fn up_killed_at_any_moment_is_cleared_away_by_down() {
    if permitted() {
        kill_up_and_take_it_down(MOMENTS_MS);
    }
}

#[test]
fn down_right_after_a_killed_up_does_not_come_too_early() {
    if permitted() {
        kill_up_and_take_it_down_at_once(MOMENTS_MS);
    }
}

#[test]
fn the_process_behind_up_killed_at_any_moment_is_cleared_away_by_down() {
    if permitted() {
        kill_the_holder_and_take_it_down(MOMENTS_MS);
    }
}

#[test]
#[ignore = "long: 2 minutes"]
fn whoever_is_killed_within_five_milliseconds_of_any_moment_is_cleared_away_by_down() {
    if permitted() {
        kill_up_and_take_it_down(every_moment_ms());
        kill_up_and_take_it_down_at_once(every_moment_ms());
        kill_the_holder_and_take_it_down(every_moment_ms());
    }
}

fn kill_up_and_take_it_down(moments: impl IntoIterator<Item = i64>) {
    let prefix = &lab::prefix();
    for moment in moments {
        let mut up = started(&["lab", "up", "three-hops", "--prefix", prefix]);
        clock::sleep(Span::from_millis(moment));
        up.kill().unwrap();
        up.wait().unwrap();
        // Nobody was told that it is up: then it ends by itself, or it was up before.
        let is_up = || LabState::read(prefix).is_some_and(|state| state.is_running());
        await_that("up or gone", || holders(prefix).is_empty() || is_up());
        assert_cleared(prefix, &format!("`up` killed after {moment} ms"));
    }
}

fn kill_up_and_take_it_down_at_once(moments: impl IntoIterator<Item = i64>) {
    let prefix = &lab::prefix();
    for moment in moments {
        let mut up = started(&["lab", "up", "three-hops", "--prefix", prefix]);
        clock::sleep(Span::from_millis(moment));
        up.kill().unwrap();
        up.wait().unwrap();
        let down = netaware(&["lab", "down", "--prefix", prefix]);
        assert!(down.status.success(), "{moment} ms: {}", words(&down));
        // Whatever was still on its way when `down` looked finds nobody to report to, and ends
        // itself.
        await_that("nothing left", || is_cleared_for_good(prefix));
    }
}

fn kill_the_holder_and_take_it_down(moments: impl IntoIterator<Item = i64>) {
    let prefix = &lab::prefix();
    let mut killed = 0;
    for moment in moments {
        let mut up = started(&["lab", "up", "three-hops", "--prefix", prefix]);
        await_that("its holder begins", || !holders(prefix).is_empty() || up_ended(&up));
        clock::sleep(Span::from_millis(moment));
        for pid in holders(prefix) {
            killed += usize::from(signal("9", pid));
        }
        let _ = up.wait().unwrap();
        assert_cleared(prefix, &format!("the holder killed after {moment} ms"));
        // And the prefix can be used again.
        if moment == 30 {
            let up = netaware(&["lab", "up", "three-hops", "--prefix", prefix]);
            assert!(up.status.success(), "{}", words(&up));
            assert_cleared(prefix, "after a lab that worked");
        }
    }
    assert!(killed > 0, "no holder was there to be killed at any of the moments");
}

/// Whether a `sleep` runs in a namespace.
fn runs_sleep(namespace: &str) -> bool {
    let pids = Command::new("ip").args(["netns", "pids", namespace]).output().unwrap().stdout;
    let pids = String::from_utf8(pids).unwrap();
    let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    pids.split_whitespace().any(|pid| name(pid).trim() == "sleep")
}

fn up_ended(up: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", up.id())).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn sigterm_to_run_brings_the_lab_down() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    for name in ["TERM", "INT"] {
        let mut run = started(&[
            "lab",
            "run",
            "three-hops",
            "--prefix",
            prefix,
            "--",
            "sleep",
            "1000",
            ":::",
            "sleep",
            "1000",
        ]);
        await_that("the lab is up", || LabState::read(prefix).is_some_and(|state| state.is_running()));
        let sleeps = || ["a", "b"].map(|host| runs_sleep(&format!("{prefix}-{host}"))) == [true; 2];
        await_that("both programs run", sleeps);
        assert!(signal(name, run.id()));
        await_that("it ends", || up_ended(&run));
        let status = run.wait().unwrap();
        // As a shell counts a program that SIGTERM ended: that is how it ends its own.
        assert_eq!(status.code(), Some(143), "after SIG{name}");
        assert_eq!(left_of(prefix), Vec::<String>::new(), "after SIG{name}");
    }
}

#[test]
fn run_killed_is_cleared_away_by_down_with_its_programs() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    for moment in [0, 20, 60, 200, 700] {
        let mut run = started(&["lab", "run", "three-hops", "--prefix", prefix, "--", "sleep", "1234"]);
        clock::sleep(Span::from_millis(moment));
        run.kill().unwrap();
        run.wait().unwrap();
        assert_cleared(prefix, &format!("`run` killed after {moment} ms"));
    }
}

#[test]
fn sigusr1_has_the_report_written_at_once() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let up = netaware(&["lab", "up", "three-hops", "--prefix", prefix]);
    assert!(up.status.success(), "{}", words(&up));
    let ping = ["lab", "exec", "--prefix", prefix, "a", "ping", "-n", "-c", "5", "-i", "0.05", "b4"];
    let ping = netaware(&ping);
    assert!(ping.status.success(), "{}", words(&ping));
    let state = LabState::read(prefix).unwrap();
    let file = &Path::new("/run/netaware-lab").join(prefix).join("report.json");
    let waits = [(); 3].map(|()| asked_to_written(file, state.holder.pid));
    let report = LabState::read(prefix).unwrap().report();
    assert_cleared(prefix, "after SIGUSR1");
    // It writes by itself once a second: what came much earlier came because it was asked for.
    assert!(waits.iter().all(|wait| *wait < Span::from_millis(700)), "{waits:?}");
    assert!(report.is_some_and(|report| report.taken >= 10 && report.released >= 10), "five pings each way");
}

/// Asks right after a routine writing, so that the next one by itself is a second away.
fn asked_to_written(file: &Path, holder: u32) -> Span {
    // Each is a new file. The time alone is that of the kernel's tick, which two may share.
    let written = || file.metadata().ok().map(|metadata| (metadata.ino(), metadata.modified().ok()));
    let await_change = |before: Option<(u64, Option<SystemTime>)>| -> Mono {
        await_that("the report is written", || written() != before);
        clock::now()
    };
    await_change(written());
    let (before, asked_at) = (written(), clock::now());
    assert!(signal("USR1", holder));
    await_change(before) - asked_at
}

/// In a mount namespace of its own, so that "all" are the labs of this test and no others of this
/// machine.
#[test]
fn down_all_takes_every_lab_and_nothing_else() {
    if !permitted() {
        return;
    }
    let script = r#"
        set -e
        mkdir -p /run/netaware-lab /run/netns /etc/netns
        for folder in /run/netaware-lab /run/netns /etc/netns; do mount -t tmpfs none $folder; done
        ip netns add somebody
        "$0" lab up three-hops --prefix one >&2
        "$0" lab up idle-10m --prefix two >&2
        "$0" lab down --all
        "$0" lab down --all
        "$0" lab list --format json
        ls /run/netaware-lab /etc/netns
        ip netns list
    "#;
    let output =
        Command::new("unshare").args(["--mount", "sh", "-c", script]).arg(netaware_path()).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let gone = printed.lines().filter(|line| line.ends_with("is gone")).count();
    assert_eq!(gone, 2, "{printed}");
    let rest = printed.split_once("[]").expect("an empty list").1;
    let names: Vec<&str> = rest
        .split_whitespace()
        .filter(|word| !word.starts_with("/run") && !word.starts_with("/etc"))
        .collect();
    assert_eq!(names, ["somebody"], "{printed}");
}

#[test]
fn a_command_refuses_names_of_others_and_says_what_to_do() {
    if !permitted() {
        return;
    }
    let prefix = &lab::prefix();
    let theirs = &format!("{prefix}-a");
    let ip = |arguments: &[&str]| assert!(Command::new("ip").args(arguments).status().unwrap().success());
    ip(&["netns", "add", theirs]);
    let up = netaware(&["lab", "up", "three-hops", "--prefix", prefix]);
    let down = netaware(&["lab", "down", "--prefix", prefix]);
    let there = Path::new("/run/netns").join(theirs).exists();
    ip(&["netns", "delete", theirs]);
    assert_eq!((up.status.code(), down.status.code(), there), (Some(2), Some(0), true));
    let said = words(&up);
    assert!(
        said.contains(&format!("'{theirs}'")) && said.contains("--prefix") && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!(left_of(prefix), Vec::<String>::new());
}
