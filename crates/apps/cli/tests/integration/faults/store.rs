//! The result cannot be saved: it is printed all the same, with a warning.

use std::process::Command;

use netaware_netns::permitted;
use netaware_record::Outcome;
use netaware_testkit::program::{Finished, Program, Responder, netaware, netaware_path, run};
use netaware_units::Span;

#[test]
fn store_that_cannot_be_made_costs_a_warning_not_the_result() {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let store = ["--store", "/dev/null/store.db"];
    let command = netaware(
        &[&["latency", "127.0.0.1", "--port", &port, "-t", "300ms", "--format", "json"][..], &store].concat(),
    );
    let finished = Program::start(command).finish_within(Span::from_secs(10));
    is_printed_with_a_warning(finished, "/dev/null/store.db");
}

#[test]
fn full_disk_costs_a_warning_not_the_result() {
    if !permitted() {
        return;
    }
    let responder = Responder::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    // In a mount namespace of its own, which takes the disk with it when the program ends, however
    // it ends.
    let script = format!(
        "mount -t tmpfs -o size=64k none {place} && \
         {{ head -c 1M /dev/zero > {place}/full 2>/dev/null; \
         exec {} latency 127.0.0.1 --port {} -t 300ms --format json --store {place}/store.db; }}",
        netaware_path().display(),
        responder.port()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let finished = Program::start(command).finish_within(Span::from_secs(10));
    is_printed_with_a_warning(finished, place);
}

#[test]
fn reading_results_of_a_file_that_is_not_there_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let typo = folder.path().join("typo/r.db").display().to_string();
    let commands: [&[&str]; 9] = [
        &["list"],
        &["list", "--format", "json"],
        &["show", "last"],
        &["plot", "last"],
        &["export"],
        &["compare", "a", "b"],
        &["delete", "last"],
        &["delays"],
        &["probes"],
    ];
    for words in commands {
        let arguments = [&["results"], words, &["--store", &typo]].concat();
        let finished = run(&arguments, Span::from_secs(5)).exits_with(2);
        assert!(finished.stderr.starts_with("error: no f"), "{words:?}: {finished:#?}");
        assert!(finished.stdout.is_empty(), "{words:?}: {finished:#?}");
    }
    let resumed = ["latency", "127.0.0.1", "--resume", "last", "--store", &typo];
    let finished = run(&resumed, Span::from_secs(5)).exits_with(2);
    assert!(finished.stderr.contains("no file of results at"), "{finished:#?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // Nobody has named a file, and there is none so far.
    let list = netaware(&["results", "list"]);
    let finished = Program::start(list).finish_within(Span::from_secs(5)).exits_with(0);
    assert!(finished.stderr.contains("no results saved yet"), "{finished:#?}");
}

#[test]
fn another_users_readable_results_are_listed_though_nothing_may_be_written_there() {
    use std::os::unix::fs::PermissionsExt as _;

    if !permitted() {
        return;
    }
    let responder = Responder::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let store = place("r.db").display().to_string();
    let latency =
        ["latency", "127.0.0.1", "--port", &responder.port(), "-t", "300ms", "--save", "--store", &store];
    run(&latency, Span::from_secs(10)).exits_with(0);
    // Where others may execute it.
    let program = place("netaware");
    std::fs::copy(netaware_path(), &program).unwrap();
    mode(&program, 0o755);
    let fleet = place("fleet.db").display().to_string();
    drop(netaware_store::fleet::open(&fleet).unwrap());
    mode(&place("r.db"), 0o444);
    mode(&place("fleet.db"), 0o444);
    mode(folder.path(), 0o555);
    let of_file = |words: &str, store: &str| {
        let become_nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        let folders = "unset HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME";
        let program = program.display();
        let script =
            format!("cd / && {folders} && exec {become_nobody} {program} results {words} --store {store}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        Program::start(command).finish_within(Span::from_secs(5))
    };
    let as_nobody = |words: &str| of_file(words, &store);
    for words in ["list", "export", "show last"] {
        let finished = as_nobody(words).exits_with(0);
        assert!(finished.stdout.contains("latency"), "{finished:#?}");
    }
    let finished = as_nobody("compare last last").exits_with(0);
    assert!(finished.stdout.contains("rtt.p50"), "{finished:#?}");
    let drawn = tempfile::tempdir().unwrap();
    mode(drawn.path(), 0o777);
    as_nobody(&format!("plot last --output {}/p.svg", drawn.path().display())).exits_with(0);
    for (words, nothing) in [("delays", "no delays"), ("probes", "no reports of probes")] {
        let finished = of_file(words, &fleet).exits_with(0);
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(said.contains(nothing), "{finished:#?}");
    }
    let finished = as_nobody("delete last").exits_with(2);
    assert!(finished.stderr.contains("cannot be written"), "{finished:#?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn what_is_no_file_of_results_is_said_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(place("folder")).unwrap();
    std::fs::write(place("empty"), "").unwrap();
    std::fs::write(place("text"), "a file that no database has written\n".repeat(9)).unwrap();
    drop(netaware_store::fleet::open(&place("fleet")).unwrap());
    let names = || {
        let all = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
        let mut all: Vec<_> = all.map(|it| (it.file_name(), std::fs::read(it.path()).ok())).collect();
        all.sort();
        all
    };
    let before = names();
    let files = [
        ("folder", "is a folder"),
        ("empty", "empty"),
        ("text", "is no database"),
        ("fleet", "of another program"),
    ];
    let commands: [&[&str]; 8] = [
        &["list"],
        &["show", "last"],
        &["plot", "last"],
        &["export"],
        &["compare", "last", "last"],
        &["delete", "last"],
        &["delays"],
        &["probes"],
    ];
    for (file, why) in files {
        for words in commands {
            if file == "fleet" && matches!(words[0], "delays" | "probes") {
                continue;
            }
            let store = place(file);
            let arguments = [&["results"], words, &["--store", &store]].concat();
            let finished = run(&arguments, Span::from_secs(5)).exits_with(2);
            let is_said = finished.stderr.contains(why) && finished.stderr.contains(&store);
            assert!(is_said && finished.stdout.is_empty(), "{words:?} of {file}: {finished:#?}");
        }
    }
    assert_eq!(names(), before);
}

fn is_printed_with_a_warning(finished: Finished, place: &str) {
    let finished = finished.exits_with(0);
    let record = finished.record();
    assert_eq!(record.outcome, Outcome::Complete);
    assert!(record.versions.iter().any(|version| version.latency.is_some()), "{finished:#?}");
    assert!(finished.stderr.contains("warning") && finished.stderr.contains(place), "{}", finished.stderr);
}
