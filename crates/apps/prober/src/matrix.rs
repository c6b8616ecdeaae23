//! `netaware matrix`: short transfers by protocol, total and block size.
//!
//! One session per version serves the whole matrix. Each transfer is a test of its own: the
//! responder has acknowledged it and is ready before the first byte leaves, and tells what it
//! counted after the last (`open`, `ready`, `started`, `finished`). In each round every cell is run
//! once over each version, in ABBA order from cell to cell and from round to round, so that a drift
//! of the path or of a host hits both versions and all cells alike.

mod plan;

use std::collections::BTreeMap;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_probe::matrix;
use netaware_record::{
    Direction, Layer, MatrixProtocol, MatrixResult, MatrixRun, Outcome, Pedigree, Reach, Record,
};
use netaware_units::{BitRate, ByteCount, ClockSource, Mono, SendRate, Span};
use netaware_wire::control::{TcpPlan, UdpPlan, UdpReceive, UdpSend};

use plan::Step;
pub use plan::{MatrixRequest, Pair, Pairs};

use crate::careful;
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
    if let Some(note) = long_way(steps.len(), request.runs, &lanes) {
        watch.tell(Progress::Note(note));
    }
    let slowest = lanes.iter().map(Lane::round_trip).max().unwrap_or_default();
    let longest_drain = TcpPlan::longest_drain_after(request.patience);
    let slack = lease::exchanges_at_most(slowest, 1, longest_drain);
    lane::reserve_all(&mut lanes, expected + slack, stop, &mut watch);

    let carried: Vec<Option<SendRate>> =
        lanes.iter_mut().map(|lane| carried_by(lane, request, &steps, stop, &mut watch)).collect();
    let mut drain = Drain::default();
    let mut ledgers: Vec<Ledger> = lanes.iter().map(|_| Ledger::new(steps.len())).collect();
    let longest = steps.iter().map(|step| at_most(*step, request.patience)).max().unwrap_or_default();
    let mut left = expected;
    for round in 0..request.runs {
        for (at, step) in steps.iter().enumerate() {
            let order = lane::turns(lanes.len(), round.wrapping_add(at as u16));
            for index in order {
                if lanes[index].is_alive() && !stop.is_raised() {
                    let needed =
                        longest + lease::exchanges_at_most(lanes[index].round_trip(), 1, longest_drain);
                    lane::keep_reserved(&mut lanes, needed, left, stop, &mut watch);
                    left = (expected - watch.done()).max(needed);
                }
                let (lane, ledger) = (&mut lanes[index], &mut ledgers[index]);
                if stop.is_raised() || !lane.is_alive() || ledger.has_given_up(step.protocol) {
                    continue;
                }
                if step.protocol == MatrixProtocol::Udp {
                    let Some(rate) = carried[index] else { continue };
                    if !may_burst(step.pair.bytes, rate) {
                        lane.warn(&format!(
                            "{step} is left out: at {rate}, which is what the path was seen to carry, it would fill \
                             the path for more than {LONGEST_BURST}"
                        ));
                        continue;
                    }
                    drain.wait(stop);
                    drain.begins(step.pair.bytes, rate);
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

/// What the path carries of datagrams, where a matrix has any: they leave as fast as the host hands
/// them over, so how many may leave at once, and how often, depends on it.
fn carried_by(
    lane: &mut Lane,
    request: &MatrixRequest,
    steps: &[Step],
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> Option<SendRate> {
    if !lane.is_alive() || !steps.iter().any(|step| step.protocol == MatrixProtocol::Udp) {
        return None;
    }
    watch.phase("UDP: what the path carries", Some(lane.version));
    let carried = careful::carried(lane, &request.target, Direction::Forward, SEEN_BY, HIGHEST_SEEN, stop);
    if carried.is_none() && lane.is_alive() && !stop.is_raised() {
        lane.warn("UDP is left out: no answer came to datagrams, so what the path carries is not known");
    }
    carried
}

/// Whether so many bytes of datagrams may leave at once on a path of this rate.
fn may_burst(bytes: ByteCount, rate: SendRate) -> bool {
    bytes <= ALWAYS_BURST || rate.bit_rate().time_for(bytes) <= LONGEST_BURST
}

/// Keeps UDP transfers, which do not listen to losses, as far apart as the path needs to carry
/// them.
#[derive(Debug, Default)]
struct Drain {
    free_at: Option<Mono>,
}

impl Drain {
    fn begins(&mut self, bytes: ByteCount, rate: SendRate) {
        self.free_at = Some(clock::now() + rate.bit_rate().time_for(bytes));
    }

    fn wait(&self, stop: &StopFlag) {
        let Some(free_at) = self.free_at else { return };
        while clock::now() < free_at && !stop.is_raised() {
            clock::sleep_until(free_at.min(clock::now() + LOOK));
        }
    }
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
            plan: udp_plan(step, patience),
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

fn udp_plan(step: Step, patience: Span) -> UdpPlan {
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
        settle: None,
        round_trip: Span::ZERO,
        window: None,
        dscp: 0,
    }
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

/// What is said beforehand where the round trips of so many transfers take long.
fn long_way(steps: usize, runs: u16, lanes: &[Lane]) -> Option<String> {
    let transfers = i64::try_from(steps).unwrap_or(i64::MAX).saturating_mul(i64::from(runs));
    let alive = lanes.iter().filter(|lane| lane.is_alive());
    said_of(transfers, &alive.map(connect_time).collect::<Vec<_>>())
}

fn said_of(transfers: i64, round_trips: &[Span]) -> Option<String> {
    let longest = round_trips.iter().max()?;
    let takes: Span = round_trips.iter().map(|rtt| *rtt * ROUND_TRIPS * transfers).sum();
    let number = transfers.saturating_mul(i64::try_from(round_trips.len()).unwrap_or(1));
    (takes > LONG_WAY).then(|| {
        let rounded = Span::from_secs(takes.nanos() / 1_000_000_000 + 1);
        format!(
            "this takes about {rounded}: {number} transfers of some {ROUND_TRIPS} round trips each, and a round trip \
             takes {longest} on this path; fewer --runs, pairs or --protocols take less"
        )
    })
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
/// Opening, attaching, starting and ending a transfer, and slow start.
const ROUND_TRIPS: i64 = 10;
const OVERHEAD: Span = Span::from_millis(100);
const SLOW: BitRate = BitRate(1_000_000);
/// Payload of the datagrams that show what the path carries, short enough for every path.
const SEEN_BY: u32 = 1000;
/// Above this nothing has to wait.
const HIGHEST_SEEN: SendRate = SendRate::at_least(100_000_000);
/// So much may leave at once on every path, as the trains of other methods do.
const ALWAYS_BURST: ByteCount = ByteCount(32_000);
const LONGEST_BURST: Span = Span::from_secs(1);
/// How often a waiting matrix looks whether it was stopped.
const LOOK: Span = Span::from_millis(20);
/// Whoever starts a matrix expects to wait for so long.
const LONG_WAY: Span = Span::from_secs(60);
/// A protocol that a firewall swallows costs seconds each time.
const MOST_REFUSED: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_listen_to_losses_does_not_flood_a_slow_path_at_once() {
        let rows = [
            (1_000, 20_000, true),
            (10_000, 20_000, true),
            (100_000, 20_000, false),
            (100_000, 64_000, false),
            (100_000, 1_000_000, true),
            (1_000_000, 1_000_000, false),
            (1_000_000, 100_000_000, true),
        ];
        for (bytes, rate, may) in rows {
            assert_eq!(may_burst(ByteCount(bytes), SendRate::at_least(rate)), may, "{bytes} B at {rate}");
        }
    }

    #[test]
    fn a_matrix_over_a_long_way_says_beforehand_how_long_it_takes() {
        let far = Span::from_millis(600);
        assert_eq!(said_of(100, &[Span::from_millis(20); 2]), None);
        assert_eq!(said_of(5, &[far]), None);
        let said = said_of(100, &[far; 2]).unwrap();
        assert!(said.starts_with("this takes about 1201 s: 200 transfers"), "{said}");
    }
}
