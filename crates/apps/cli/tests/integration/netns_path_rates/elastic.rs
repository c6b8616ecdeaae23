//! Beside a TCP flow that takes all it gets: what is left is nothing, and what the trains get is
//! what the flow gives way by.
//!
//! Which flag says so is held on virtual time
//! (`crates/system/sim/tests/integration/hostile_paths.rs`).

use netaware_record::RateBound;
use netaware_testkit::figures::is_doubt;
use netaware_testkit::program::{Responder, signal};

use super::*;

/// Where the flow goes, since a responder admits one test at a time.
const FLOWS_PORT: u16 = 14_234;
const LINK: f64 = 10e6;
/// Payload of a segment with timestamps over IPv4, bytes, of packets of 1500.
const PAYLOAD: f64 = 1448.0 / 1500.0;

/// What a real flow left while `arguments` measured, bit/s, and the record.
fn beside_tcp(queue: &str, arguments: &[&str]) -> (f64, Record, Report) {
    let path = format!("[[hop]]\nrate = '10Mbit/s'\ndelay = '10ms'\nqueue = {{ bytes = '{queue}' }}\n");
    let lab = lab::up(&path, 1);
    let _responder = lab::responder(&lab, &[]);
    let mut serve = lab.command(Side::B, netaware_path());
    serve.args(["serve", "--port", &FLOWS_PORT.to_string()]);
    let _sink = Responder::launch(serve, &[], FLOWS_PORT);
    let mut flow = lab.command(Side::A, netaware_path());
    flow.args(["tcp", "b", "-4", "-t", "80s", "--format", "json", "--port", &FLOWS_PORT.to_string()]);
    let flow = Program::start(flow);
    // Slow start, and a queue that has found its level.
    netaware_io::clock::sleep(Span::from_secs(2));
    let record = prober(&lab, arguments).finish_within(Span::from_secs(120)).exits_with(0).record();
    signal("INT", flow.id());
    let flow = flow.finish_within(Span::from_secs(30)).record();
    let took = flow.versions.iter().flat_map(|version| &version.tcp).find_map(|tcp| tcp.goodput);
    let took = took.expect("the flow has a rate");
    (LINK - took.0 as f64 / PAYLOAD, record, lab.end().unwrap())
}

/// Why a figure without any doubt is wrong beside a flow that left so little.
fn is_too_much(found: &PathRate, left: f64) -> Option<String> {
    let rate = found.rate.as_ref()?;
    let (half, slack) = ((rate.hi - rate.lo) / 2.0, 0.05 * LINK);
    let allows = match found.bound {
        RateBound::None => rate.lo - half <= left + slack && rate.hi + half >= left - slack,
        RateBound::AtMost => rate.hi >= left - slack,
        RateBound::AtLeast => rate.lo <= left + slack,
    };
    let doubts = found.flags.iter().any(|flag| is_doubt(flag));
    (!allows && !doubts).then(|| format!("left {left:.4e}: {found:#?}"))
}

/// One run, in which no figure but a bound above it is higher than the link, and none is told
/// without a doubt that the flow did not leave.
pub(super) fn is_told_or_allowed_for(queue: &str, arguments: &[&str]) {
    if !permitted() {
        return;
    }
    let (left, record, report) = beside_tcp(queue, arguments);
    let found = figures(&record);
    for each in found {
        println!(
            "{queue} {arguments:?}: left {:.2} Mbit/s; {:?} {:?} {:?}",
            left / 1e6,
            each.rate,
            each.bound,
            each.flags
        );
    }
    let rates: Vec<f64> = found.iter().filter_map(|it| Some(it.rate.as_ref()?.estimate)).collect();
    assert!(!rates.is_empty(), "nothing was said: {found:#?}");
    let mut off: Vec<String> = found.iter().filter_map(|it| is_too_much(it, left)).collect();
    // A most above the link is weak, and true: a method that a busy host cut short has no better
    // one.
    let told = found.iter().filter(|it| it.bound != RateBound::AtMost).filter_map(|it| it.rate.as_ref());
    let above = told.map(|rate| rate.estimate).filter(|rate| *rate > 1.05 * LINK);
    off.extend(above.map(|rate| format!("{rate:.4e} is above the link")));
    judge(&off, &report, LATE);
}

/// The flow never empties the queue.
#[test]
fn a_greedy_tcp_flow_is_told_or_allowed_for() {
    is_told_or_allowed_for("200kB", &["available", "-t", "5s"]);
}
