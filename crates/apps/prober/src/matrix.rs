//! `netaware matrix`: short transfers by protocol, total and block size.
//!
//! One session per version serves the whole matrix. Each transfer is a test of its own: the
//! responder has acknowledged it and is ready before the first byte leaves, and tells what it
//! counted after the last (`open`, `ready`, `started`, `finished`). In each round every cell is run
//! once over each version, in ABBA order from cell to cell and from round to round, so that a drift
//! of the path or of a host hits both versions and all cells alike.

mod plan;

use std::collections::BTreeMap;

use netaware_io::stop::StopFlag;
use netaware_probe::matrix;
use netaware_record::{
    Direction, Layer, MatrixProtocol, MatrixResult, MatrixRun, Outcome, Pedigree, Reach, Record,
};
use netaware_units::{BitRate, ByteCount, ClockSource, Span};
use netaware_wire::control::{UdpPlan, UdpReceive, UdpSend};

use plan::Step;
pub use plan::{MatrixRequest, Pair, Pairs};

use crate::lane::{self, Lane};
use crate::lease;
use crate::progress::{Progress, Watch};
use crate::report::{self, Findings};
use crate::request::Target;
use crate::transfer::{self, TcpOrder, UdpOrder};

/// Measures every cell over each version asked for.
pub fn matrix(request: &MatrixRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let opened = report::Opening::now("matrix", &request.target, request.options());
    let steps = request.steps();
    let mut watch = Watch::new(Span::ZERO, progress);
    watch.phase("connect", None);
    let mut lanes = lane::open_all(&request.target, stop);
    lane::note_dead(&lanes, &mut watch);
    let expected = expected(request, &steps, &lanes);
    watch.expect(expected);
    let slowest = lanes.iter().map(Lane::round_trip).max().unwrap_or_default();
    let slack = lease::exchanges_at_most(slowest, 1);
    lane::reserve_all(&mut lanes, expected + slack, stop, &mut watch);

    let mut ledgers: Vec<Ledger> = lanes.iter().map(|_| Ledger::new(steps.len())).collect();
    let longest = steps.iter().map(|step| at_most(*step, request.patience)).max().unwrap_or_default();
    let mut left = expected;
    for round in 0..request.runs {
        for (at, step) in steps.iter().enumerate() {
            let order = lane::turns(lanes.len(), round.wrapping_add(at as u16));
            for index in order {
                if lanes[index].is_alive() && !stop.is_raised() {
                    let needed = longest + lease::exchanges_at_most(lanes[index].round_trip(), 1);
                    lane::keep_reserved(&mut lanes, needed, left, stop, &mut watch);
                    left = (expected - watch.done()).max(needed);
                }
                let (lane, ledger) = (&mut lanes[index], &mut ledgers[index]);
                if stop.is_raised() || !lane.is_alive() || ledger.has_given_up(step.protocol) {
                    continue;
                }
                watch.phase(step.to_string(), Some(lane.version));
                let run = transfer_of(lane, &request.target, *step, request.patience, stop, &mut watch);
                ledger.enter(lane, at, *step, round, run);
            }
        }
    }
    for (lane, ledger) in lanes.iter_mut().zip(ledgers) {
        lane.result.matrix = ledger.close(lane, &steps);
    }
    let findings: Vec<Findings> = lanes.iter().map(|_| Findings::default()).collect();
    let mut record = report::finish(opened, lanes, &findings, stop);
    // It would compare connect times alone: the cells are compared where they stand side by side.
    record.comparison = None;
    record.warnings.splice(0..0, request.remarks());
    record
}

/// What one transfer came to, before it has its place.
struct Done {
    run: MatrixRun,
    /// Arrivals were stamped by the receiving host's kernel.
    stamped: bool,
}

/// Runs one transfer. `None` when it could not even begin; the lane then says why.
fn transfer_of(
    lane: &mut Lane,
    target: &Target,
    step: Step,
    patience: Span,
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> Option<Done> {
    if step.protocol == MatrixProtocol::Udp {
        let order = UdpOrder {
            vlan: false,
            plan: udp_plan(step, patience, settle(lane)),
            planned: None,
            affinity: Vec::new(),
            tell_every: None,
        };
        let ended = transfer::udp(lane, target, &[order], stop, watch).pop()?.ended;
        let receiver = ended.udp_receiver.as_ref();
        let stamped = receiver.is_some_and(|end| end.gaps.is_some());
        let run = matrix::udp_run(0, ended.outcome, step.pair.block, ended.udp_sender.as_ref(), receiver);
        return Some(Done { run, stamped });
    }
    let order = TcpOrder {
        duration: patience,
        bytes: Some(step.pair.bytes),
        length: Some(u32::try_from(step.pair.block.0).unwrap_or(u32::MAX)),
        nodelay: step.protocol == MatrixProtocol::TcpNodelay,
        congestion: target.options.congestion.clone(),
        ..TcpOrder::new(Direction::Forward, TICK)
    };
    let ended = transfer::tcp(lane, target, &[order], None, stop, watch).pop()?.ended;
    let run = matrix::tcp_run(0, ended.outcome, ended.tcp_sender.as_ref(), ended.tcp_receiver.as_ref());
    Some(Done { run, stamped: false })
}

fn udp_plan(step: Step, patience: Span, settle: Span) -> UdpPlan {
    UdpPlan {
        burst: 1,
        histogram: None,
        log: false,
        direction: Direction::Forward,
        duration: patience,
        packets: Some(step.datagrams()),
        length: u32::try_from(step.pair.block.0).unwrap_or(u32::MAX),
        gap_ps: None,
        send: UdpSend::Single,
        receive: UdpReceive::Single,
        tick: TICK,
        settle: Some(settle),
        window: None,
        dscp: 0,
    }
}

/// The end queues behind the data, so only what another way round delays comes after it.
fn settle(lane: &Lane) -> Span {
    (connect_time(lane) * 2 + LEAST_SETTLE).min(MOST_SETTLE)
}

fn connect_time(lane: &Lane) -> Span {
    lane.result.reach.as_ref().and_then(Reach::shortest_round_trip).unwrap_or(Span::ZERO)
}

/// How long the whole takes, a path of [`SLOW`] assumed: the reservation must not run out before
/// the matrix is through.
fn expected(request: &MatrixRequest, steps: &[Step], lanes: &[Lane]) -> Span {
    let alive = lanes.iter().filter(|lane| lane.is_alive());
    let round = |lane: &Lane| -> Span {
        let overhead = connect_time(lane) * ROUND_TRIPS + OVERHEAD;
        steps.iter().map(|step| overhead + at_most(*step, request.patience)).sum()
    };
    alive.map(round).sum::<Span>() * i64::from(request.runs)
}

/// How long one transfer sends.
fn at_most(step: Step, patience: Span) -> Span {
    SLOW.time_for(step.pair.bytes).min(patience)
}

/// What one version has yielded so far.
struct Ledger {
    /// One entry per step.
    runs: Vec<Vec<MatrixRun>>,
    stamped: bool,
    /// Transfers in a row that could not begin, by protocol.
    refused: BTreeMap<MatrixProtocol, u32>,
}

impl Ledger {
    fn new(steps: usize) -> Self {
        Self { runs: vec![Vec::new(); steps], stamped: false, refused: BTreeMap::new() }
    }

    fn has_given_up(&self, protocol: MatrixProtocol) -> bool {
        self.refused.get(&protocol).is_some_and(|refused| *refused >= MOST_REFUSED)
    }

    fn enter(&mut self, lane: &mut Lane, at: usize, step: Step, round: u16, done: Option<Done>) {
        let Some(Done { mut run, stamped }) = done else {
            let refused = self.refused.entry(step.protocol).or_default();
            *refused += 1;
            if *refused == MOST_REFUSED {
                lane.warn(&format!("{} is left out: transfers could not begin", step.protocol.name()));
            }
            self.runs[at].push(matrix::tcp_run(round, Outcome::Failed, None, None));
            return;
        };
        self.refused.remove(&step.protocol);
        self.stamped |= stamped;
        run.round = round;
        if run.outcome == Outcome::Complete && run.client.is_some_and(|end| end.bytes < step.pair.bytes) {
            // Out of patience: the ends say that they kept to the plan's time.
            run.outcome = Outcome::Interrupted;
            lane.warn(&format!("{step} did not end in time; a longer --patience would let it"));
        }
        self.runs[at].push(run);
    }

    fn close(self, lane: &Lane, steps: &[Step]) -> Vec<MatrixResult> {
        let mut results: Vec<MatrixResult> = Vec::new();
        for (step, runs) in steps.iter().zip(self.runs) {
            if runs.iter().all(|run| run.client.is_none_or(|end| end.bytes == ByteCount(0))) {
                continue;
            }
            let cell = matrix::cell(step.pair.bytes, step.pair.block, runs);
            match results.iter_mut().find(|result| result.protocol == step.protocol) {
                Some(result) => result.cells.push(cell),
                None => results.push(MatrixResult {
                    pedigree: pedigree(lane, step.protocol, self.stamped),
                    protocol: step.protocol,
                    cells: vec![cell],
                }),
            }
        }
        results
    }
}

fn pedigree(lane: &Lane, protocol: MatrixProtocol, stamped: bool) -> Pedigree {
    let by_kernel = stamped && protocol == MatrixProtocol::Udp;
    Pedigree {
        method: "matrix".into(),
        layer: Layer::Payload,
        direction: Direction::Forward,
        version: lane.version,
        clock: if by_kernel { ClockSource::Kernel } else { ClockSource::Application },
        uncertainty: "median of the runs, between the smallest and the largest".into(),
    }
}

/// No transfer is looked into while it runs.
const TICK: Span = Span::from_millis(100);
const LEAST_SETTLE: Span = Span::from_millis(20);
const MOST_SETTLE: Span = Span::from_millis(300);
/// Opening, attaching, starting and ending a transfer, and slow start.
const ROUND_TRIPS: i64 = 10;
const OVERHEAD: Span = Span::from_millis(100);
const SLOW: BitRate = BitRate(1_000_000);
/// A protocol that a firewall swallows costs seconds each time.
const MOST_REFUSED: u32 = 2;
