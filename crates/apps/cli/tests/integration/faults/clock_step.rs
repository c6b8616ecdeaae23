//! The wall clock is stepped by an hour while something is measured. Kernel stamps come from that
//! clock.

use std::process::Command;

use netaware_io::clock;
use netaware_netns::permitted;
use netaware_testkit::program::{Program, Responder, netaware};
use netaware_units::Span;

/// Says that the owner of this machine agrees: other programs see the step, too. No time namespace
/// has a wall clock of its own.
const AGREED: &str = "NETAWARE_TEST_STEP_CLOCK";

#[test]
#[ignore = "steps the clock of this machine by an hour: run it by name, with NETAWARE_TEST_STEP_CLOCK=1"]
fn stepped_wall_clock_changes_no_result() {
    if std::env::var(AGREED).as_deref() != Ok("1") {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "set {AGREED}=1, or leave this test out");
        return eprintln!("SKIPPED: steps the clock of this machine by an hour; set {AGREED}=1 to run it");
    }
    if !permitted() {
        return;
    }
    let responder = Responder::start(&[]);
    let port = responder.port();
    let prober =
        Program::start(netaware(&["latency", "127.0.0.1", "--port", &port, "-t", "6s", "--format", "json"]));
    clock::sleep(Span::from_secs(2));
    let stepped = SteppedClock::forward();
    clock::sleep(Span::from_secs(2));
    drop(stepped);
    let finished = prober.finish_within(Span::from_secs(15)).exits_with(0);
    let record = finished.record();
    assert!(record.elapsed < Span::from_secs(20), "{}", record.elapsed);
    let latency = record.versions[0].latency.as_ref().unwrap();
    assert!(latency.received > 100 && latency.lost == 0, "{latency:#?}");
    for rtt in [latency.rtt.unwrap(), latency.rtt_application.unwrap()] {
        assert!(rtt.min > Span::ZERO && rtt.max < Span::from_secs(1), "{rtt:#?}");
    }
    let responder = latency.responder.unwrap();
    assert!(responder.min >= Span::ZERO && responder.max < Span::from_secs(1), "{responder:#?}");
}

/// A clock that is put right when this is dropped.
struct SteppedClock;

impl SteppedClock {
    fn forward() -> Self {
        assert!(step_clock("+1 hour"), "the clock could not be set");
        Self
    }
}

impl Drop for SteppedClock {
    fn drop(&mut self) {
        if !step_clock("-1 hour") {
            eprintln!("the clock of this machine is an hour ahead now and could not be set back");
        }
    }
}

/// `date` takes "+1 hour" for an hour from now, to the nanosecond.
fn step_clock(by: &str) -> bool {
    Command::new("date").args(["--set", by]).output().is_ok_and(|set| set.status.success())
}
