//! The result cannot be saved: it is printed all the same, with a warning.

use std::process::Command;

use netaware_netns::permitted;
use netaware_record::Outcome;
use netaware_testkit::program::{Finished, Program, Responder, netaware, netaware_path};
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

fn is_printed_with_a_warning(finished: Finished, place: &str) {
    let finished = finished.exits_with(0);
    let record = finished.record();
    assert_eq!(record.outcome, Outcome::Complete);
    assert!(record.versions.iter().any(|version| version.latency.is_some()), "{finished:#?}");
    assert!(finished.stderr.contains("warning") && finished.stderr.contains(place), "{}", finished.stderr);
}
