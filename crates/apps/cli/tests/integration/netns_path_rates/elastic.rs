//! Beside a TCP flow that takes all it gets: what is left is nothing, and what the trains get is what the flow gives way by.

use netaware_lab::Side;
use netaware_record::{IpVersion, PathRate, RateBound, Record};
use netaware_testkit::program::{Responder, netaware_path, signal};

use super::*;

/// Where the flow goes, since a responder admits one test at a time.
const FLOWS_PORT: u16 = 14_234;
const LINK: f64 = 10e6;
/// Payload of a segment with timestamps over IPv4, bytes, of packets of 1500.
const PAYLOAD: f64 = 1448.0 / 1500.0;
/// Words for "the traffic is none that this figure can be trusted beside".
const TOLD: [&str; 4] = ["elastic", "ambiguous", "noisy", "lossy"];

/// What a real flow left while `arguments` measured, bit/s, and the record.
fn beside_tcp(queue: &str, seed: u64, arguments: &[&str]) -> (f64, Record, netaware_lab::Report) {
    let path = format!("[[hop]]\nrate = '10Mbit/s'\ndelay = '10ms'\nqueue = {{ bytes = '{queue}' }}\n");
    let lab = lab::up(&path, seed);
    let _responder = lab::responder(&lab, &[]);
    let mut serve = lab.command(Side::B, netaware_path());
    serve.args(["serve", "--port", &FLOWS_PORT.to_string()]);
    let _sink = Responder::launch(serve, &[], FLOWS_PORT);
    let mut flow = lab.command(Side::A, netaware_path());
    flow.args(["tcp", "b", "-4", "-t", "80s", "--format", "json", "--port", &FLOWS_PORT.to_string()]);
    let flow = Program::start(flow);
    // Slow start, and a queue that has found its level.
    netaware_io::clock::sleep(Span::from_secs(3));
    let record = prober(&lab, arguments).finish_within(Span::from_secs(120)).exits_with(0).record();
    signal("INT", flow.id());
    let flow = flow.finish_within(Span::from_secs(30)).record();
    let took = flow.versions.iter().flat_map(|version| &version.tcp).find_map(|tcp| tcp.goodput);
    let left = LINK - took.map_or(0.0, |rate| rate.0 as f64 / PAYLOAD);
    (left.max(0.0), record, lab.end().unwrap())
}

/// It says of itself that it may not be believed, or allows what was left.
fn is_honest(found: &PathRate, left: f64) -> bool {
    let Some(rate) = &found.rate else { return true };
    let told = found.flags.iter().any(|flag| TOLD.contains(&flag.as_str()));
    let allows = match found.bound {
        RateBound::None => rate.lo <= left + 0.05 * LINK && rate.hi >= left - 0.05 * LINK,
        RateBound::AtMost => rate.hi >= left - 0.05 * LINK,
        RateBound::AtLeast => rate.lo <= left + 0.05 * LINK,
    };
    (told || allows) && rate.estimate <= 1.05 * LINK
}

#[test]
fn a_greedy_tcp_flow_is_told_or_allowed_for() {
    if !permitted() {
        return;
    }
    // A queue of a round trip, in which the flow's window falls and rises, and one that it never empties.
    for (queue, method) in [("25kB", "auto"), ("200kB", "auto"), ("200kB", "slops")] {
        let arguments = ["available", "-t", "12s", "--method", method];
        let mut failures = Vec::new();
        for seed in 0..RUNS as u64 {
            let (left, record, report) = beside_tcp(queue, seed, &arguments);
            let found = [IpVersion::V4, IpVersion::V6].map(|version| rate(&record, version));
            for each in found.iter().flatten() {
                println!(
                    "{queue} {method}: left {:.2} Mbit/s; {:?} {:?} {:?}",
                    left / 1e6,
                    each.rate,
                    each.bound,
                    each.flags
                );
            }
            if found.iter().all(|found| found.as_ref().is_ok_and(|found| is_honest(found, left))) {
                failures.clear();
                break;
            }
            failures.push(format!("left {left}: {found:#?} ({:?}; {report})", report.why_invalid(LATE)));
        }
        assert!(failures.is_empty(), "{queue} {method}: in none of {RUNS} runs:\n{}", failures.join("\n"));
    }
}
