//! The echo train, over a path whose round trips are known one by one.

use netaware_netmodel::{Scenario, Side};
use netaware_probe::delay_report::{self, Context, EchoLog};
use netaware_probe::echo::PlanError;
use netaware_probe::summary;
use netaware_probe::{EchoPlan, EchoTrain, Pacing};
use netaware_record::{DelaySummary, Health, IpVersion, LatencyResult, PathFacts, VersionResult};
use netaware_stats::patience::Waiting;
use netaware_units::{ByteCount, Span};

use super::{Figure, Found, LONGEST, UDP_HEADER, Unit, WaySummary};
use crate::drive::Drive;
use crate::echo_responder::EchoResponder;
use crate::simulation::{Flow, Fragments, Simulation};
use crate::truth::PathTruth;

/// What to ask of a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyAsk {
    /// Requests; absent: as many as fit `time`.
    pub count: Option<u64>,
    /// How long; absent: as long as `count` takes.
    pub time: Option<Span>,
    /// When the next one goes.
    pub pacing: Pacing,
    /// Payload of a request, bytes.
    pub length: u32,
    /// Payload of an answer, bytes.
    pub response: u32,
    /// After how long without an answer a request is lost.
    pub patience: Span,
    /// How that is meant.
    pub waiting: Waiting,
}

pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    version: IpVersion,
    ask: &LatencyAsk,
) -> Result<Found, PlanError> {
    let mut sim = Simulation::new(scenario, seed);
    let plan = EchoPlan {
        flow: 1,
        count: ask.count,
        pacing: ask.pacing,
        length: ask.length as usize,
        response: ask.response as usize,
        patience: ask.patience,
        start: sim.local_now(Side::A) + HEAD_START,
    };
    let mut train = match ask.waiting {
        Waiting::Exactly => EchoTrain::new(plan)?,
        Waiting::AtLeast => EchoTrain::following(plan, None)?,
    };
    let flow = Flow {
        // Nobody forbids it to a real train's requests.
        fragments: Fragments::Allowed,
        stop_after: ask.time.map(|time| HEAD_START + time),
        cut_off_after: LONGEST,
        ..Flow::new(version)
    };
    let mut log = EchoLog::default();
    let mut far = EchoResponder::new().answering(ask.response as usize);
    let drive = sim.run_against(&flow, &mut train, &mut far, |event| log.observe(&event));
    let round = log.finish(train.counts());
    let (hops_forward, hops_reverse) = round.hops();
    let context = Context {
        method: "latency",
        version,
        payload: ByteCount(u64::from(ask.length)),
        response: ByteCount(u64::from(ask.response)),
        pacing: ask.pacing,
        bins: None,
        spacing: ask.pacing.spacing(),
        patience: train.patience(),
        health: Health::default(),
    };
    let latency = delay_report::latency(&[round], &context);
    let truth = PathTruth::of(scenario, &sim, version, ask.length + version.header_len() + UDP_HEADER);
    let path = PathFacts { hops_forward, hops_reverse, ..PathFacts::default() };
    let (forward, reverse) = (WaySummary::of(drive.way(Side::A)), WaySummary::of(drive.way(Side::B)));
    Ok(Found {
        version,
        figures: figures(&latency, &path, &truth, &drive, [&forward, &reverse]),
        truth,
        forward,
        reverse,
        elapsed: drive.ended_at.since(drive.began_at),
        result: VersionResult { latency: Some(latency), path: Some(path), ..VersionResult::new(version) },
    })
}

fn figures(
    latency: &LatencyResult,
    path: &PathFacts,
    truth: &PathTruth,
    drive: &Drive,
    [forward, reverse]: [&WaySummary; 2],
) -> Vec<Figure> {
    let (answered, rtts) = true_round_trips(drive);
    let rtts = summary::of_delays(&rtts);
    let time = |name, of: fn(&DelaySummary) -> Span| {
        Figure::new(name, Unit::Nanoseconds, ns(latency.rtt.as_ref().map(of)), ns(rtts.as_ref().map(of)))
    };
    let only_time = |name, span| Figure::only_true(name, Unit::Nanoseconds, ns(span));
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let lost = share(forward.sent.saturating_sub(answered), forward.sent);
    let mut figures = vec![
        time("round trip, min", |rtt| rtt.min),
        time("round trip, median", |rtt| rtt.p50),
        time("round trip, p95", |rtt| rtt.p95),
        time("round trip, p99", |rtt| rtt.p99),
        time("round trip, max", |rtt| rtt.max),
        time("round trip, mean", |rtt| rtt.mean),
        Figure::new("lost, there and back", Unit::Share, share(latency.lost, latency.settled()), lost),
        Figure::new("routers", Unit::Count, path.hops_forward.map(f64::from), Some(truth.routers as f64)),
        only_time("round trip, empty path", truth.base_rtt),
        only_time("one way up, median", forward.delay.map(|delay| delay.p50)),
        only_time("one way down, median", reverse.delay.map(|delay| delay.p50)),
        Figure::only_true("lost up", Unit::Share, forward.loss()),
        Figure::only_true("lost down", Unit::Share, reverse.loss()),
    ];
    figures.extend(super::stream::rates(truth));
    figures
}

/// How many requests were answered at all, and the round trips of those. Where the path makes
/// copies, there and back may be those of different copies.
fn true_round_trips(drive: &Drive) -> (u64, Vec<Span>) {
    let by_number = |side| {
        let mut delays = drive.way(side).delays.clone();
        // In order of arrival before: the first answer is the one that counts.
        delays.sort_by_key(|(number, _)| *number);
        delays.dedup_by_key(|(number, _)| *number);
        delays
    };
    let (there, back) = (by_number(Side::A), by_number(Side::B));
    let mut there = there.into_iter().peekable();
    let mut rtts = Vec::with_capacity(back.len());
    for (number, back) in &back {
        while there.next_if(|(other, _)| other < number).is_some() {}
        if let Some((_, forward)) = there.next_if(|(other, _)| other == number) {
            rtts.push(forward + *back);
        }
    }
    (rtts.len() as u64, rtts)
}

fn ns(span: Option<Span>) -> Option<f64> {
    span.map(|span| span.nanos() as f64)
}

/// The first request is due a little later than the run begins, as in real life.
const HEAD_START: Span = Span::from_millis(1);
