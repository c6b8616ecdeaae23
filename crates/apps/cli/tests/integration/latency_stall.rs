//! A responder that stands still for a moment: an open loop shows it, and a closed loop alone would
//! hide it.
//!
//! The responder is a process of its own and is stopped by signal, so its sockets, its kernel and
//! the path go on. What an exchange has to wait then is the responder's own time: it shows in the
//! figures that a user of the service meets, and the round trip of the network, from which that
//! time is taken out over UDP, keeps out of it.

use netaware_io::clock;
use netaware_record::{LatencyResult, Record};
use netaware_testkit::program::{Program, Responder, netaware, signal};
use netaware_units::Span;

const STALL: Span = Span::from_millis(400);
/// A host that is late by its own fault is not late by so much.
const MOST_OF_IT: Span = Span::from_millis(300);
const LITTLE_OF_IT: Span = Span::from_millis(100);

/// Requests, of which the responder sleeps through some.
fn measured(options: &[&str]) -> LatencyResult {
    let responder = Responder::start(&[]);
    let port = responder.port();
    let fixed = ["latency", "127.0.0.1", "--port", &port, "--format", "ndjson", "--no-save"];
    let prober = Program::start(netaware(&[&fixed[..], options].concat()));
    let due = clock::now() + Span::from_secs(10);
    while !prober.printed().contains(r#""what":"latency""#) {
        assert!(clock::now() < due, "{}", prober.complained());
        clock::sleep(Span::from_millis(10));
    }
    signal("STOP", responder.id());
    clock::sleep(STALL);
    signal("CONT", responder.id());
    let finished = prober.finish_within(Span::from_secs(20)).exits_with(0);
    let record: Record = serde_json::from_str(finished.stdout.lines().last().unwrap()).unwrap();
    record.versions[0].latency.clone().unwrap()
}

#[test]
fn open_loops_over_udp_and_tcp_show_a_stall_in_their_p999() {
    for (transport, arrivals) in [("udp", "even"), ("udp", "poisson"), ("tcp", "poisson")] {
        let found =
            measured(&["--time", "2s", "--transport", transport, "--arrivals", arrivals, "--spacing", "2ms"]);
        let from_due = found.rtt_from_due.unwrap();
        assert!(found.lost == 0 && found.received > 700, "{transport}, {arrivals}: {found:#?}");
        assert!(from_due.p999 > MOST_OF_IT, "{transport}, {arrivals}: {from_due:?}");
        // One request in five was due in it and had to wait, one in ten for more than half of it.
        assert!(from_due.p95 > LITTLE_OF_IT, "{transport}, {arrivals}: {from_due:?}");
        // It is no delay of the network, and over UDP the responder says so.
        assert!(transport == "tcp" || found.rtt.unwrap().p95 < LITTLE_OF_IT, "{:?}", found.rtt);
    }
}

#[test]
fn a_closed_loop_alone_hides_a_stall_from_its_p999() {
    for transport in ["udp", "tcp"] {
        // So many that they are not over before the signal comes, which takes a program of its own.
        let found = measured(&["--count", "20000", "--transport", transport, "--ping-pong"]);
        let seen = found.rtt_application.unwrap();
        assert!(found.received > 2000, "{transport}: one in a thousand would be seen");
        assert!(seen.max > MOST_OF_IT, "{transport}: it met the stall: {seen:?}");
        assert!(seen.p999 < LITTLE_OF_IT, "{transport}: {seen:?}");
        assert_eq!(found.rtt_from_due, None);
    }
}
