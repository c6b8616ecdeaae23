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
use netaware_record::{Direction, FailedPhase, MatrixProtocol, MatrixRun, Reach, Record, TcpEnd};
use netaware_units::{BitRate, ByteCount, Mono, SendRate, Span};
use netaware_wire::control::{TcpPlan, UdpPlan, UdpReceive, UdpSend};

use ledger::{Ledger, Shortfall};
use plan::Step;
pub use plan::{MatrixRequest, Pair, Pairs};

use crate::careful::{self, Seen};
use crate::echo::EchoSizes;
use crate::lane::{self, Lane};
use crate::lease;
use crate::own_absence;
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
    let mut course = Course::new(request, &steps, &lanes);
    for (lane, ledger) in lanes.iter_mut().zip(&mut course.ledgers) {
        ledger.most = lane.session().and_then(|session| session.limits.bytes);
        if let Some(what) = ledger.above_the_cap() {
            lane.warn(&what);
        }
    }
    watch.foretell_because(course.to_come(&lanes) + searches(&steps, &lanes), &long_way(request, &lanes));
    let expected = expected(request, &steps, &lanes);
    let slowest = lanes.iter().map(Lane::round_trip).max().unwrap_or_default();
    let lease = (expected + lease::exchanges_at_most(slowest, 1, Span::ZERO)).max(needed(request, slowest));
    lane::reserve_all(&mut lanes, lease, stop, &mut watch);

    for (lane, ledger) in lanes.iter_mut().zip(&mut course.ledgers) {
        ledger.carried = carried_by(lane, ledger, request, &steps, stop, &mut watch);
        for what in bursts_left_out(ledger, &steps) {
            lane.warn(&what);
        }
    }
    watch.review(course.to_come(&lanes), "the path carries less than its transfers need to be quick");
    let mut drain = Drain::default();
    let all_rounds = || {
        for round in 0..request.runs {
            for (at, step) in steps.iter().enumerate() {
                let order = lane::turns(lanes.len(), round.wrapping_add(at as u16));
                for index in order {
                    let is_over = stop.is_raised() || !lanes[index].is_alive();
                    if is_over || course.ledgers[index].leaves_out(at) {
                        course.passes(index, round, at);
                        continue;
                    }
                    // A cell of each kind and size has shown what transfers take.
                    if round > 0 {
                        watch.review_both(course.to_come(&lanes), SLOWER);
                    } else {
                        watch.review(course.to_come(&lanes), SLOWER);
                    }
                    // What datagrams have left in the path's queues is in nobody's way any more.
                    drain.wait(stop);
                    let needed = needed(request, lanes[index].round_trip());
                    let left = (expected - watch.done()).max(needed);
                    lane::keep_reserved(&mut lanes, needed, left, stop, &mut watch);
                    course.passes(index, round, at);
                    let (lane, ledger) = (&mut lanes[index], &mut course.ledgers[index]);
                    if stop.is_raised() || !lane.is_alive() {
                        continue;
                    }
                    watch.phase(step.to_string(), Some(lane.version));
                    let began_at = watch.done();
                    let run = transfer_of(lane, &request.target, *step, request.patience, stop, &mut watch);
                    if stop.is_raised() && run.is_none() {
                        continue;
                    }
                    ledger.enter(lane, at, round, run);
                    if let Some(rate) = ledger.carried.filter(|_| step.protocol == MatrixProtocol::Udp) {
                        drain.begins(step.on_the_wire(), rate, connect_time(lane));
                    }
                    let took = watch.done() - began_at;
                    let planned = takes(*step, connect_time(lane), ledger.carried, request.patience);
                    if !stop.is_raised() {
                        explain(lane, ledger, *step, request, &mut watch);
                    }
                    course.paces[index].took(took, planned);
                }
            }
        }
    };
    let ((), away) = own_absence::watching(all_rounds);
    for (lane, ledger) in lanes.iter_mut().zip(course.ledgers) {
        lane.note_own_absence(away);
        if !stop.is_raised() {
            ledger.shortfalls().iter().for_each(|what| lane.warn(what));
        }
        lane.result.matrix = ledger.close(lane);
    }
    let nothing = || Findings { tells_each_standstill: true, ..Findings::default() };
    let mut findings: Vec<Findings> = lanes.iter().map(|_| nothing()).collect();
    let mut record = report::finish(opened, lanes, &mut findings, stop);
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
    if short.has_ceased() {
        let reason = format!("nothing arrived any more of transfers over {}", step.protocol.name());
        lane.result.failed_phases.push(FailedPhase { stage: "measure throughput".into(), reason });
    }
}

fn warn_of(lane: &mut Lane, short: Shortfall, patience: Span, watch: &mut Watch<'_>) {
    let limits = lane.session().map(|session| (session.limits.duration, session.limits.rate));
    let (duration, rate) = limits.unwrap_or_default();
    let cap = capped(short.asked(), patience, duration, rate);
    let what = short.explained(lane.result.path.as_ref(), patience, cap.as_deref());
    watch.tell(Progress::Note(format!("{}: {what}", lane.version.name())));
    lane.warn(&what);
}

/// What the responder's owner allows, if a transfer that would have ended in the patience need not
/// do so within it.
fn capped(bytes: ByteCount, patience: Span, duration: Option<Span>, rate: Option<BitRate>) -> Option<String> {
    if let Some(longest) = duration.filter(|longest| *longest < patience) {
        return Some(format!("transfers no longer than {longest}"));
    }
    // Headers and the beginning of a transfer take a part of the time.
    let highest = rate.filter(|rate| rate.time_for(bytes) * 2 > patience)?;
    Some(format!("no more than {highest}"))
}

/// Whether packets above some size vanish is seen over UDP, with which nothing stalls.
fn search_path_mtu(lane: &mut Lane, target: &Target, watch: &mut Watch<'_>) {
    let lasts = SEARCH + lane.round_trip() * SEARCH_ROUND_TRIPS;
    watch.extends(lasts, "large packets seem to vanish, and whether they do is looked into");
    watch.phase("path MTU", Some(lane.version));
    lane::attach_echo(std::slice::from_mut(lane), target, lasts, EchoSizes::equal(path::LARGEST_PROBE));
    path::explore(lane);
    let (flow, session) = (lane.echo.take(), lane.session());
    if let Some(Err(cause)) = flow.zip(session).map(|(flow, session)| flow.close(session)) {
        lane.fail_to_end("end a UDP flow", cause);
    }
}

/// How far a matrix has come, by version.
struct Course<'a> {
    request: &'a MatrixRequest,
    steps: &'a [Step],
    ledgers: Vec<Ledger<'a>>,
    paces: Vec<Pace>,
    /// Cells of all rounds that were run or left out.
    passed: Vec<usize>,
}

impl<'a> Course<'a> {
    fn new(request: &'a MatrixRequest, steps: &'a [Step], lanes: &[Lane]) -> Self {
        Self {
            request,
            steps,
            ledgers: lanes.iter().map(|_| Ledger::new(steps)).collect(),
            paces: vec![Pace::default(); lanes.len()],
            passed: vec![0; lanes.len()],
        }
    }

    /// The turn of this version at this cell is over, or has begun.
    fn passes(&mut self, index: usize, round: u16, at: usize) {
        self.passed[index] = usize::from(round) * self.steps.len() + at + 1;
    }

    /// What the transfers that are still to come take, by the plan and by those so far.
    fn to_come(&self, lanes: &[Lane]) -> Span {
        let alive = lanes.iter().enumerate().filter(|(_, lane)| lane.is_alive());
        alive.map(|(index, lane)| self.to_come_of(index, connect_time(lane))).sum()
    }

    fn to_come_of(&self, index: usize, round_trip: Span) -> Span {
        let ledger = &self.ledgers[index];
        let left = ledger.to_come(self.passed[index], self.request.runs);
        let takes = |at: usize| takes(self.steps[at], round_trip, ledger.carried, self.request.patience);
        let waits = |at: usize| waits(self.steps[at], ledger.carried);
        left.map(|(at, times)| ((takes(at) + self.paces[index].excess()).or_zero() + waits(at)) * times).sum()
    }
}

/// By how much the transfers of one version have taken longer than planned so far, or less.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    transfers: i64,
    longer: Span,
    /// The most of one.
    longest: Span,
}

impl Pace {
    fn took(&mut self, time: Span, planned: Span) {
        let longer = time - planned;
        self.transfers += 1;
        self.longer += longer;
        self.longest = self.longest.max(longer);
    }

    /// By how much one more takes longer if it is as those so far. One that hung is no rule.
    fn excess(self) -> Span {
        if self.transfers < 2 {
            return Span::ZERO;
        }
        (self.longer - self.longest) / (self.transfers - 1)
    }
}

/// What the path carries of datagrams, where a matrix has any: they leave as fast as the host hands
/// them over, so how many may leave at once, and how often, depends on it.
fn carried_by(
    lane: &mut Lane,
    ledger: &Ledger<'_>,
    request: &MatrixRequest,
    steps: &[Step],
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> Option<SendRate> {
    let is_to_run = |step: &Step| step.protocol == MatrixProtocol::Udp && ledger.allows(*step);
    if !lane.is_alive() || !steps.iter().any(is_to_run) {
        return None;
    }
    watch.phase("UDP: what the path carries", Some(lane.version));
    // Datagrams leave at once here: where nothing is known of the path, none do.
    match careful::seen(lane, &request.target, Direction::Forward, SEEN_BY, HIGHEST_SEEN, stop) {
        Seen::Carried(carried) | Seen::AtLeast(carried) => Some(carried),
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

/// The cells of a version that would fill its path, one sentence for each.
fn bursts_left_out(ledger: &Ledger<'_>, steps: &[Step]) -> Vec<String> {
    let Some(rate) = ledger.carried else { return Vec::new() };
    let asked = steps.iter().filter(|step| ledger.allows(**step));
    let too_long = asked.filter(|step| step.protocol == MatrixProtocol::Udp);
    let too_long = too_long.filter(|step| !may_burst(step.pair.bytes, rate));
    let said = |step: &Step| {
        format!(
            "{step} is left out: at {rate}, which is what the path was seen to carry, it would fill the path for more \
             than {LONGEST_BURST}"
        )
    };
    too_long.map(said).collect()
}

/// Keeps all transfers away from the queue that datagrams leave, which do not listen to losses.
#[derive(Debug, Default)]
struct Drain {
    free_at: Option<Mono>,
}

impl Drain {
    /// So many bytes of datagrams have left, half a round trip before their end was reported or
    /// earlier.
    fn begins(&mut self, bytes: ByteCount, rate: SendRate, round_trip: Span) {
        self.free_at = Some(clock::now() - round_trip / 2 + rate.bit_rate().time_for(bytes));
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
    /// For how long nothing had come when a transfer over TCP ended, where its receiver told.
    silent: Option<Span>,
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
            cap: None,
            is_derived: false,
            affinity: Vec::new(),
            tell_every: None,
        };
        let ended = transfer::udp(lane, target, &[order], stop, watch).pop()?.ended;
        let receiver = ended.udp_receiver.as_ref();
        let stamped = receiver.is_some_and(|end| end.gaps.is_some());
        let run = matrix::udp_run(0, ended.outcome, step.pair.block, ended.udp_sender.as_ref(), receiver);
        return Some(Done { run, stamped, silent: None });
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
    let silent = silent_for(ended.tcp_sender.as_ref(), ended.tcp_receiver.as_ref(), patience);
    Some(Done { run, stamped: false, silent })
}

/// For how long nothing had come when a transfer ended. The receiver's clock begins with the first
/// byte and the sender's before, so that this is a round trip too long at most.
fn silent_for(sender: Option<&TcpEnd>, receiver: Option<&TcpEnd>, patience: Span) -> Option<Span> {
    let came_for = receiver.filter(|end| end.bytes > ByteCount(0))?.received?;
    Some((sender?.elapsed.min(patience) - came_for).or_zero())
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
        let overhead = connect_time(lane) * MOST_ROUND_TRIPS + UDP_OVERHEAD;
        steps.iter().map(|step| overhead + at_most(*step, request.patience)).sum()
    };
    alive.map(round).sum::<Span>() * i64::from(request.runs)
}

/// What one transfer takes on a path of this round trip that carries so much, if nothing is lost.
fn takes(step: Step, round_trip: Span, carries: Option<SendRate>, patience: Span) -> Span {
    let moves = carries.map_or(Span::ZERO, |rate| rate.bit_rate().time_for(step.on_the_wire()));
    let overhead = if step.protocol == MatrixProtocol::Udp { UDP_OVERHEAD } else { TCP_OVERHEAD };
    round_trip * ROUND_TRIPS + overhead + moves.min(patience)
}

/// For how long what comes after a transfer waits for the queue that it may have left.
fn waits(step: Step, carries: Option<SendRate>) -> Span {
    let rate = carries.filter(|_| step.protocol == MatrixProtocol::Udp);
    rate.map_or(Span::ZERO, |rate| rate.bit_rate().time_for(step.on_the_wire()))
}

/// What finding out takes how much the paths carry of datagrams.
fn searches(steps: &[Step], lanes: &[Lane]) -> Span {
    if !steps.iter().any(|step| step.protocol == MatrixProtocol::Udp) {
        return Span::ZERO;
    }
    let alive = lanes.iter().filter(|lane| lane.is_alive());
    alive.map(|lane| connect_time(lane) * ROUND_TRIPS + UDP_OVERHEAD).sum()
}

/// Why it takes long where it does, and what takes less.
fn long_way(request: &MatrixRequest, lanes: &[Lane]) -> String {
    let alive = lanes.iter().filter(|lane| lane.is_alive());
    reason(request.transfers(), &alive.map(connect_time).collect::<Vec<_>>())
}

fn reason(transfers: u64, round_trips: &[Span]) -> String {
    let longest = round_trips.iter().max().copied().unwrap_or_default();
    let number = transfers.saturating_mul(round_trips.len() as u64);
    format!(
        "{number} transfers of some {ROUND_TRIPS} round trips each, and a round trip takes {longest} on this path; \
         fewer --runs, pairs or --protocols take less"
    )
}

/// How long one transfer sends.
fn at_most(step: Step, patience: Span) -> Span {
    SLOW.time_for(step.pair.bytes).min(patience)
}

/// No transfer is looked into while it runs.
const TICK: Span = Span::from_millis(100);
/// Opening, attaching, starting and ending a transfer, and slow start.
const ROUND_TRIPS: i64 = 7;
/// The same where messages are lost now and then.
const MOST_ROUND_TRIPS: i64 = 10;
/// What the hosts take beside the round trips. A receiver of datagrams waits a while for late ones.
const TCP_OVERHEAD: Span = Span::from_millis(20);
const UDP_OVERHEAD: Span = Span::from_millis(150);
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
const SEARCH_ROUND_TRIPS: i64 = 8;
/// How often a waiting matrix looks whether it was stopped.
const LOOK: Span = Span::from_millis(20);
const SLOWER: &str = "its transfers take longer than the round trips of this path";

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;

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
    fn one_transfer_that_hung_does_not_announce_a_long_matrix_and_two_do() {
        let mut pace = Pace::default();
        let planned = Span::from_millis(300);
        let mut after = |millis| {
            pace.took(Span::from_millis(millis), planned);
            pace.excess()
        };
        assert_eq!(
            [after(200), after(10_300), after(300)],
            [Span::ZERO, Span::from_millis(-100), Span::from_millis(-50)]
        );
        assert!(after(9_300) > Span::from_millis(2900));
    }

    /// A cap of 2 s ended the transfers, and a longer --patience was said to let them end.
    #[test]
    fn what_a_cap_ended_is_not_the_fault_of_the_path() {
        let (bytes, patience) = (ByteCount(100_000), Span::from_secs(10));
        let at = |rate| capped(bytes, patience, None, Some(BitRate(rate)));
        assert_eq!(
            capped(bytes, patience, Some(Span::from_secs(2)), None).as_deref(),
            Some("transfers no longer than 2.00 s")
        );
        assert_eq!(capped(bytes, patience, Some(patience), None), None);
        assert!(at(100_000).is_some() && at(1_000_000).is_none());
    }

    #[test]
    fn the_place_outlasts_a_transfer_that_takes_all_of_the_patience() {
        let request = MatrixRequest::new(Target::new("h"));
        let drain = TcpPlan::longest_drain_after(request.patience);
        assert!(needed(&request, Span::from_millis(600)) > request.patience + drain);
    }

    #[test]
    fn a_matrix_over_a_long_way_says_beforehand_how_long_it_takes() {
        let request = MatrixRequest::new(Target::new("h"));
        let steps = request.steps();
        let mut course = Course::new(&request, &steps, &[Lane::empty(IpVersion::V6)]);
        // Of one version, with nothing known of the rate.
        course.ledgers[0].carried = None;
        let far = course.to_come_of(0, Span::from_millis(600));
        assert_eq!(far, Span::from_millis(4220) * 102, "without UDP");
        let why = reason(153, &[Span::from_millis(600); 2]);
        assert!(why.starts_with("306 transfers of some 7 round trips each"), "{why}");
        // A cell that is passed is not to come, in any round.
        course.passes(0, 1, 0);
        assert_eq!(course.to_come_of(0, Span::from_millis(600)), Span::from_millis(4220) * (102 - 34 - 1));
    }

    #[test]
    fn a_slow_path_makes_a_matrix_longer_and_what_is_left_out_makes_it_shorter() {
        let request = MatrixRequest { runs: 1, ..MatrixRequest::new(Target::new("h")) };
        let steps = request.steps();
        let mut course = Course::new(&request, &steps, &[Lane::empty(IpVersion::V6)]);
        let mut at = |rate: u64| {
            course.ledgers[0].carried = Some(SendRate::at_least(rate));
            course.to_come_of(0, Span::from_millis(20))
        };
        let (fast, slow, slower) = (at(100_000_000), at(1_000_000), at(64_000));
        assert!(fast < Span::from_secs(17), "{fast}");
        assert!(slow > fast + Span::from_secs(15), "{slow}");
        // Cells of 100 kB of datagrams are left out, and are not counted.
        let udp =
            |step: &&Step| step.protocol == MatrixProtocol::Udp && step.pair.bytes == ByteCount(100_000);
        assert_eq!(steps.iter().filter(udp).count(), 7);
        let all: Span = steps
            .iter()
            .map(|step| {
                let rate = Some(SendRate::at_least(64_000));
                takes(*step, Span::from_millis(20), rate, request.patience) + waits(*step, rate)
            })
            .sum();
        assert!(slower + Span::from_secs(69) < all, "{slower} of {all}");
        assert_eq!(bursts_left_out(&course.ledgers[0], &steps).len(), 7);
    }

    /// 131 s were promised, then 152, 173 and 191: the waits between datagrams were in no plan.
    #[test]
    fn the_waits_for_queues_to_drain_are_part_of_the_promise() {
        let request = MatrixRequest { runs: 1, ..MatrixRequest::new(Target::new("h")) };
        let step = |protocol, block| Step {
            protocol,
            pair: Pair { bytes: ByteCount(10_000), block: ByteCount(block) },
        };
        let steps = [step(MatrixProtocol::Udp, 50), step(MatrixProtocol::Tcp, 50)];
        let rate = SendRate::at_least(18_300);
        assert_eq!(waits(steps[0], Some(rate)), rate.bit_rate().time_for(ByteCount(19_600)));
        assert_eq!((waits(steps[1], Some(rate)), waits(steps[0], None)), (Span::ZERO, Span::ZERO));
        let mut course = Course::new(&request, &steps, &[Lane::empty(IpVersion::V4)]);
        course.ledgers[0].carried = Some(rate);
        let round_trip = Span::from_millis(288);
        let transfers: Span =
            steps.iter().map(|step| takes(*step, round_trip, Some(rate), request.patience)).sum();
        assert_eq!(course.to_come_of(0, round_trip), transfers + waits(steps[0], Some(rate)));
    }

    #[test]
    fn nothing_is_sent_into_the_queue_that_datagrams_have_left() {
        let mut drain = Drain::default();
        let before = clock::now();
        drain.begins(ByteCount(10_000), SendRate::at_least(64_000), Span::from_millis(100));
        let free_at = drain.free_at.unwrap();
        assert!(free_at >= before + Span::from_millis(1200), "{free_at:?}");
        // The headers of small datagrams fill it as well.
        let step = Step {
            protocol: MatrixProtocol::Udp,
            pair: Pair { bytes: ByteCount(1000), block: ByteCount(50) },
        };
        assert_eq!(step.on_the_wire(), ByteCount(1960));
    }
}
