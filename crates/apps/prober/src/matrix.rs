//! `netaware matrix`: short transfers by protocol, total and block size.
//!
//! One session per version serves the whole matrix. Each transfer is a test of its own: the
//! responder has acknowledged it and is ready before the first byte leaves, and tells what it
//! counted after the last (`open`, `ready`, `started`, `finished`). In each round every cell is run
//! once over each version, in ABBA order from cell to cell and from round to round, so that a drift
//! of the path or of a host hits both versions and all cells alike.

mod ledger;
mod plan;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_probe::matrix;
use netaware_record::{Direction, MatrixProtocol, MatrixRun, Reach, Record};
use netaware_units::{BitRate, ByteCount, Mono, SendRate, Span};
use netaware_wire::control::{TcpPlan, UdpPlan, UdpReceive, UdpSend};

use ledger::{Ledger, Shortfall};
use plan::Step;
pub use plan::{MatrixRequest, Pair, Pairs};

use crate::careful::{self, Seen};
use crate::echo::EchoSizes;
use crate::lane::{self, Lane};
use crate::lease;
use crate::path;
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
    watch.expect(promised(steps.len(), request.runs, &lanes));
    if let Some(note) = long_way(steps.len(), request.runs, &lanes) {
        watch.tell(Progress::Note(note));
    }
    let expected = expected(request, &steps, &lanes);
    let slowest = lanes.iter().map(Lane::round_trip).max().unwrap_or_default();
    let lease = (expected + lease::exchanges_at_most(slowest, 1, Span::ZERO)).max(needed(request, slowest));
    lane::reserve_all(&mut lanes, lease, stop, &mut watch);

    let carried: Vec<Option<SendRate>> =
        lanes.iter_mut().map(|lane| carried_by(lane, request, &steps, stop, &mut watch)).collect();
    let mut drain = Drain::default();
    let mut ledgers: Vec<Ledger<'_>> = lanes.iter().map(|_| Ledger::new(&steps)).collect();
    let mut paces = vec![Pace::default(); lanes.len()];
    for round in 0..request.runs {
        for (at, step) in steps.iter().enumerate() {
            let order = lane::turns(lanes.len(), round.wrapping_add(at as u16));
            for index in order {
                let is_over = stop.is_raised() || !lanes[index].is_alive();
                if is_over || ledgers[index].leaves_out(at) {
                    continue;
                }
                let needed = needed(request, lanes[index].round_trip());
                let left = (expected - watch.done()).max(needed);
                lane::keep_reserved(&mut lanes, needed, left, stop, &mut watch);
                let (lane, ledger) = (&mut lanes[index], &mut ledgers[index]);
                if stop.is_raised() || !lane.is_alive() {
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
                let began_at = watch.done();
                let run = transfer_of(lane, &request.target, *step, request.patience, stop, &mut watch);
                if stop.is_raised() && run.is_none() {
                    continue;
                }
                ledger.enter(lane, at, round, run);
                paces[index].took(watch.done() - began_at);
                if !stop.is_raised() {
                    explain(lane, ledger, *step, request, &mut watch);
                    let to_come = ledgers.iter().map(|ledger| ledger.to_come(round, at, request.runs));
                    announce(&lanes, &paces, &to_come.collect::<Vec<_>>(), &mut watch);
                }
            }
        }
    }
    for (lane, ledger) in lanes.iter_mut().zip(ledgers) {
        if !stop.is_raised() {
            ledger.shortfalls().iter().for_each(|what| lane.warn(what));
        }
        lane.result.matrix = ledger.close(lane);
    }
    let findings: Vec<Findings> = lanes.iter().map(|_| Findings::default()).collect();
    let mut record = report::finish(opened, lanes, &findings, stop);
    // It would compare connect times alone: the cells are compared where they stand side by side.
    record.comparison = None;
    record.warnings.splice(0..0, request.remarks());
    record
}

/// For how long the responder's place has to be ours for one transfer, which may take all of the
/// patience.
fn needed(request: &MatrixRequest, round_trip: Span) -> Span {
    let drain = TcpPlan::longest_drain_after(request.patience);
    request.patience + lease::exchanges_at_most(round_trip, 1, drain)
}

/// Says why larger cells are left out, once two have failed.
fn explain(
    lane: &mut Lane,
    ledger: &mut Ledger<'_>,
    step: Step,
    request: &MatrixRequest,
    watch: &mut Watch<'_>,
) {
    let Some(short) = ledger.is_to_be_explained(step.protocol) else { return };
    if short.is_of_large_packets() && lane.result.path.is_none() {
        search_path_mtu(lane, &request.target, watch);
    }
    warn_of(lane, short, request.patience, watch);
}

fn warn_of(lane: &mut Lane, short: Shortfall, patience: Span, watch: &mut Watch<'_>) {
    let what = short.explained(lane.result.path.as_ref(), patience);
    watch.tell(Progress::Note(format!("{}: {what}", lane.version.name())));
    lane.warn(&what);
}

/// Whether packets above some size vanish is seen over UDP, with which nothing stalls.
fn search_path_mtu(lane: &mut Lane, target: &Target, watch: &mut Watch<'_>) {
    watch.phase("path MTU", Some(lane.version));
    let lasts = SEARCH + lane.round_trip() * ROUND_TRIPS;
    lane::attach_echo(std::slice::from_mut(lane), target, lasts, EchoSizes::equal(path::LARGEST_PROBE));
    path::explore(lane);
    let (flow, session) = (lane.echo.take(), lane.session());
    if let Some(Err(cause)) = flow.zip(session).map(|(flow, session)| flow.close(session)) {
        lane.fail("end a UDP flow", cause);
    }
}

/// What the transfers of one version have taken so far.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    transfers: i64,
    time: Span,
}

impl Pace {
    fn took(&mut self, time: Span) {
        self.transfers += 1;
        self.time += time;
    }

    /// What so many more take, if they are as those so far.
    fn rest(self, to_come: i64) -> Span {
        if self.transfers == 0 { Span::ZERO } else { self.time / self.transfers * to_come }
    }
}

/// Says that the whole takes longer than was promised, and where that is so once more.
fn announce(lanes: &[Lane], paces: &[Pace], to_come: &[i64], watch: &mut Watch<'_>) {
    let each = lanes.iter().zip(paces).zip(to_come);
    let rest: Span = each.filter(|((lane, _), _)| lane.is_alive()).map(|((_, pace), n)| pace.rest(*n)).sum();
    if is_much_longer(watch.total(), watch.done() + rest) {
        watch.announce_because(rest, "its transfers take longer than the round trips of this path");
    }
}

/// So much longer that whoever waits has to know: half as long again, and ten seconds.
fn is_much_longer(promised: Span, whole: Span) -> bool {
    whole > promised + promised / 2 && whole > promised + NOTICEABLE
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
    // Datagrams leave at once here: where nothing is known of the path, none do.
    match careful::seen(lane, &request.target, Direction::Forward, SEEN_BY, HIGHEST_SEEN, stop) {
        Seen::Carried(carried) => Some(carried),
        Seen::Nothing | Seen::NotAsked => {
            if lane.is_alive() && !stop.is_raised() {
                lane.warn(
                    "UDP is left out: too few answers came to datagrams, so what the path carries is not known",
                );
            }
            None
        }
    }
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

/// What the round trips of so many transfers take.
fn promised(steps: usize, runs: u16, lanes: &[Lane]) -> Span {
    let transfers = i64::try_from(steps).unwrap_or(i64::MAX).saturating_mul(i64::from(runs));
    let alive = lanes.iter().filter(|lane| lane.is_alive());
    alive.map(|lane| (connect_time(lane) * ROUND_TRIPS + OVERHEAD) * transfers).sum()
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
/// The search for the path MTU is over sooner.
const SEARCH: Span = Span::from_secs(5);
/// By so much the promised time may be exceeded without a word.
const NOTICEABLE: Span = Span::from_secs(10);
/// How often a waiting matrix looks whether it was stopped.
const LOOK: Span = Span::from_millis(20);
/// Whoever starts a matrix expects to wait for so long.
const LONG_WAY: Span = Span::from_secs(60);

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
    fn a_matrix_whose_cells_wait_in_vain_says_that_it_takes_longer() {
        let mut pace = Pace::default();
        assert_eq!(pace.rest(100), Span::ZERO);
        for seconds in [0, 1, 11] {
            pace.took(Span::from_secs(seconds));
        }
        assert_eq!(pace.rest(10), Span::from_secs(40));
        let (promised, seconds) = (Span::from_secs(30), Span::from_secs);
        assert!(is_much_longer(promised, seconds(46)) && !is_much_longer(promised, seconds(44)));
        assert!(!is_much_longer(seconds(4), seconds(13)) && is_much_longer(seconds(4), seconds(15)));
    }

    #[test]
    fn the_place_outlasts_a_transfer_that_takes_all_of_the_patience() {
        let request = MatrixRequest::new(Target::new("h"));
        let drain = TcpPlan::longest_drain_after(request.patience);
        assert!(needed(&request, Span::from_millis(600)) > request.patience + drain);
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
