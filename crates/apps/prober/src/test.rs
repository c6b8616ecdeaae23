//! The main job: every phase over both IP versions, in turns.
//!
//! ```text
//! connect (both at once) · reserve · path MTU · plan · idle latency in blocks, IPv4 6 6 4 4 6 6 4
//! then rounds of turns, IPv4 6 | 6 4 | …; a turn is, for down and then up:
//!     TCP with one stream · TCP with several · UDP at 80 % of that          (echoes run beside TCP all the time)
//! and if asked for, before the rounds: capacity and available bandwidth from trains, both ways
//! ```
//!
//! How many rounds and phases there are and how long they last is planned once the path's round
//! trip is known ([`planning`]), and again before each direction of each turn.

mod behind;
mod left_out;
mod planning;

use std::collections::{BTreeMap, VecDeque};

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_record::{Direction, IpVersion, Outcome, Record, TcpResult};
use netaware_units::{BitRate, ByteCount, SendRate, Span};
use netaware_wire::control::{MIN_DRAIN, TcpPlan};

use crate::echo::{EchoOrder, EchoSizes};
use crate::estimation::{self, AvailableMethod, CapacityMethod, Estimation, EstimationRequest};
use crate::lane::{self, Lane};
use crate::lease;
use crate::path;
use crate::progress::{Afterwards, Progress, Watch};
use crate::queueing;
use crate::report::{self, Findings, Seen};
use crate::request::{Directions, TestRequest};
use crate::transfer::{self, TcpOrder, TcpRound, UdpOrder, UdpRound};
use behind::{Behind, SetUp};
use left_out::LeftOut;
use planning::{
    Ask, Block, Carried, Datagram, Extent, IdleRhythm, PathKnown, Phase, Plan, Promise, Rest, Step, UdpRate,
    WarmUp,
};

/// Payload of a request and of its response.
const IDLE_PAYLOAD: u32 = 64;
/// Between echoes beside a bulk transfer, at the least, and while nothing is known of the path's
/// rate.
const LOADED_SPACING: Span = Span::from_millis(10);
const CAREFUL_SPACING: Span = Span::from_millis(50);
/// A slow path gets some echoes all the same: so many, as long as they take a twentieth at most.
const LONGEST_SPACING: Span = Span::from_millis(100);
const LONGEST_SLOW_SPACING: Span = Span::from_secs(1);
/// Of the path's rate, at most, for the echoes: 2 promille. They would be missing from what TCP
/// reaches.
const ECHO_SHARE: u64 = 500;
const SLOW_ECHO_SHARE: u64 = 20;
const TICK: Span = Span::from_millis(50);
/// Of each version and direction.
const CAPACITY_TIME: Span = Span::from_secs(3);
const AVAILABLE_TIME: Span = Span::from_secs(5);

/// Measures both versions and compares them. `stop` ends it early with what there is.
pub fn test(request: &TestRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let mut opened = report::Opening::now("test", &request.target, options_of(request));
    let path_time = path_time(request);
    let mut watch = Watch::new(request.budget + path_time, progress);
    watch.phase("connect", None);
    let mut lanes = lane::open_all(&request.target, stop);
    lane::note_dead(&lanes, &mut watch);
    let findings = lanes.iter().map(|_| Findings::default()).collect();

    // Before the set-up the plan is a guess; it is made once the set-up's time is known.
    let (mut course, mut paths) = Course::of(request, &lanes);
    let guess = planning::plan(course.ask, &paths, request.budget - watch.done());
    let lease = planning::set_up(&paths) + guess.takes + path_time;
    let opened_at = watch.done();
    if request.tcp || request.udp || request.path {
        lane::reserve_all(&mut lanes, lease, stop, &mut watch);
        if lane::connect_again(&mut lanes, &request.target) {
            (course, paths) = Course::of(request, &lanes);
        }
    }
    let mut exchanging = watch.done() - opened_at;
    let asked_at = watch.done();
    lane::attach_echo(&mut lanes, &request.target, lease + ECHO_MARGIN, largest_echoes());
    if lacks_flow(&lanes) {
        course.without_flows += watch.done() - asked_at;
    }
    if !stop.is_raised() {
        watch.phase("path MTU", None);
        path::explore_all(&mut lanes);
    }
    // Where datagrams are dropped for good, waiting for them shows nothing of the exchanges.
    if lanes.iter().all(has_healthy_udp) {
        exchanging = watch.done() - opened_at;
    }
    let asked_at = watch.done();
    lane::attach_missing_echo(&mut lanes, &request.target, lease + ECHO_MARGIN, largest_echoes());
    if lacks_flow(&lanes) {
        course.without_flows += watch.done() - asked_at;
    }
    if !stop.is_raised() {
        for lane in lanes.iter_mut().filter(|lane| lane.result.path.is_none()) {
            path::explore(lane);
        }
    }
    // Nor does an outage: it is over.
    let silent = lanes.iter().filter_map(Lane::outlived).max().unwrap_or_default();
    course.was_set_up(&paths, (exchanging - silent).or_zero());
    let mut run = Run { request, stop, lanes, findings, watch };
    let plan = course.settle(&mut run, path_time);
    course.idle_latency(&mut run, plan);
    if request.path {
        let began = run.watch.done();
        estimation::path_rates(&path_requests(request), &mut run.lanes, stop, &mut run.watch);
        // It has its time beyond the budget.
        let took = run.watch.done() - began;
        course.behind.note_path(took, path_time);
        course.promise.ends += took - path_time;
        (course.promise.fills, course.promise.announced) = (course.promise.ends, course.promise.ends);
        run.watch.expect(course.promise.ends);
    }
    course.rounds(&mut run, plan);
    run.watch.phase("done", None);
    let (took, waited) = (run.watch.done(), run.watch.waited());
    let Run { lanes, mut findings, .. } = run;
    let planned = course.extents.first().copied().unwrap_or(Extent::Whole);
    if let Some(what) = planned.left_out(course.ask) {
        opened.leave_out(what);
    }
    opened.advise(course.left_out.more_rounds(course.rounds_run, course.ask.rounds));
    let mut record = report::finish(opened, lanes, &mut findings, stop);
    // Data connections that could not be opened leave no result that could tell.
    let has_no_tcp = record.versions.iter().all(|version| version.tcp.is_empty());
    if request.tcp && has_no_tcp && record.outcome == Outcome::Complete {
        record.outcome = Outcome::Failed;
        let what = "not one transfer over TCP could be made, though connecting worked";
        record.warnings.insert(0, what.to_owned());
    }
    // What failed is said first: a reader takes the first warning for the reason.
    let in_vain =
        request.tcp && record.versions.iter().flat_map(|it| &it.tcp).all(TcpResult::carried_nothing);
    if in_vain {
        course.left_out.no_time_is_enough();
    }
    if stop.is_raised() {
        course.left_out.was_stopped();
    }
    let asked = request.budget + path_time;
    // The header's figure has the end of the sessions in it, and the wait for others.
    let told = (record.elapsed - waited).max(took);
    let causes = |over| course.behind.causes(over);
    record.warnings.extend(left_out::overrun(took, told, asked, causes));
    record.warnings.extend(course.left_out.warnings(course.rounds_run, course.ask.rounds));
    record
}

/// What `path` asks for: bulks and the curve, which are content within seconds.
fn path_requests(request: &TestRequest) -> Vec<EstimationRequest> {
    if !request.path {
        return Vec::new();
    }
    let of = |estimation, time| EstimationRequest {
        directions: Directions::Both,
        time,
        ..EstimationRequest::new(request.target.clone(), estimation)
    };
    vec![
        of(Estimation::Capacity(CapacityMethod::Bulk), CAPACITY_TIME),
        of(Estimation::Available(AvailableMethod::Curve), AVAILABLE_TIME),
    ]
}

/// What they take beyond the budget, at most.
fn path_time(request: &TestRequest) -> Span {
    let each: Span = path_requests(request).iter().map(|it| it.time * 2).sum();
    each * i64::try_from(request.target.versions.len()).unwrap_or(1)
}

/// What every phase works on.
struct Run<'a, 'w> {
    request: &'a TestRequest,
    stop: &'a StopFlag,
    lanes: Vec<Lane>,
    findings: Vec<Findings>,
    watch: Watch<'w>,
}

impl Run<'_, '_> {
    fn goes_on(&self, lane: usize) -> bool {
        !self.stop.is_raised() && self.lanes[lane].is_alive()
    }

    /// Tells the person who waits.
    fn note(&mut self, note: String) {
        self.watch.tell(Progress::Note(note));
    }

    /// Tells the person who waits, and the record.
    fn note_lasting(&mut self, left_out: &mut LeftOut, note: String) {
        left_out.phases.push(note.clone());
        self.note(note);
    }
}

/// Datagrams of all sizes that its link takes come through, or the lane is dead.
fn has_healthy_udp(lane: &Lane) -> bool {
    let vanish = lane.result.path.as_ref().is_some_and(|path| path.mtu_vanishes.is_some());
    !lane.is_alive() || (lane.echo.is_some() && !vanish)
}

/// Whether a flow of datagrams could not be opened.
fn lacks_flow(lanes: &[Lane]) -> bool {
    lanes.iter().any(|lane| lane.is_alive() && lane.echo.is_none())
}

/// What is known of each path, and how long the rest may take.
struct Course {
    ask: Ask,
    /// Of each lane: reverse, forward.
    known: Vec<[PathKnown; 2]>,
    rhythms: Vec<IdleRhythm>,
    /// When it is to be over, and by how much that may be exceeded before something is left out.
    promise: Promise,
    /// Of each round.
    extents: Vec<Extent>,
    /// Those that have begun.
    rounds_run: u16,
    behind: Behind,
    left_out: LeftOut,
    /// For how long flows of datagrams were asked for in vain while it was set up.
    without_flows: Span,
}

/// One direction of one version's turn.
#[derive(Clone, Copy)]
struct Leg {
    round: u16,
    lane: usize,
    direction: Direction,
}

/// An echo flow of a test carries requests and the search for the MTU.
fn largest_echoes() -> EchoSizes {
    EchoSizes::equal(path::LARGEST_PROBE)
}

/// Where a direction is in [`Course::known`].
fn way(direction: Direction) -> usize {
    usize::from(direction == Direction::Forward)
}

impl Course {
    /// And the paths of those lanes that are alive.
    fn of(request: &TestRequest, lanes: &[Lane]) -> (Self, Vec<PathKnown>) {
        let course = Self::new(request, lanes);
        let paths = course.alive_paths(lanes);
        (course, paths)
    }

    fn new(request: &TestRequest, lanes: &[Lane]) -> Self {
        Self {
            ask: Ask { rounds: request.rounds, streams: request.streams, tcp: request.tcp, udp: request.udp },
            known: lanes.iter().map(|lane| [PathKnown::new(lane.round_trip()); 2]).collect(),
            rhythms: lanes.iter().map(|_| IdleRhythm::new()).collect(),
            promise: Promise {
                ends: request.budget,
                fills: request.budget,
                announced: Span::ZERO,
                tolerance: Span::ZERO,
                said: 0,
            },
            extents: vec![Extent::Whole],
            rounds_run: 0,
            behind: Behind::default(),
            left_out: LeftOut::default(),
            without_flows: Span::ZERO,
        }
    }

    /// Setting up took so long: exchanges that lose segments will take longer in each phase, too.
    fn was_set_up(&mut self, paths: &[PathKnown], took: Span) {
        let late = planning::late_after_set_up(paths, took);
        self.known.iter_mut().flatten().for_each(|known| known.late = late);
    }

    fn alive_paths(&self, lanes: &[Lane]) -> Vec<PathKnown> {
        let alive = lanes.iter().zip(&self.known).filter(|(lane, _)| lane.is_alive());
        alive.map(|(_, known)| known[0]).collect()
    }

    /// Plans the rest, and says what it leaves out or by how much it is longer than asked for.
    fn settle(&mut self, run: &mut Run<'_, '_>, path_time: Span) -> Plan {
        let (done, budget) = (run.watch.done(), run.request.budget);
        self.note_flows(&run.lanes);
        self.behind = Behind::new(self.known.clone());
        let paths = self.alive_paths(&run.lanes);
        let plan = planning::plan(self.ask, &paths, budget - done);
        let takes = done + plan.takes;
        let round_trip = paths.iter().map(|known| known.round_trip).max();
        let slowest = round_trip.unwrap_or_default();
        // Sessions are opened at the same time, and what follows is done for one after the other.
        let usual = slowest * lease::OPENING_ROUND_TRIPS + planning::set_up(&paths);
        let unanswered = unanswered(&run.lanes, self.without_flows);
        let set_up = SetUp::new(done - usual, unanswered, takes - budget, slowest);
        self.behind.note_set_up(set_up);
        self.extents = vec![plan.extent; plan.rounds.into()];
        self.promise = Promise {
            ends: takes + path_time,
            fills: takes + path_time,
            announced: takes + path_time,
            tolerance: takes / 10,
            said: u8::from(takes > budget + budget / 20),
        };
        run.watch.expect(self.promise.ends);
        let asked = run.watch.asked();
        let longer = (takes > budget + budget / 20)
            .then(|| format!("it takes about {} instead of {asked}", whole_seconds(takes + path_time)));
        if let Some(round_trip) = round_trip {
            let is_known = run.lanes.iter().all(has_healthy_udp);
            let enough = if is_known { Ok(done + done / 10 + plan.enough) } else { Err(left_out::UNKNOWN) };
            let phases = plan.extent.left_out(self.ask);
            self.left_out.plan(budget, round_trip, phases, enough);
            let note = self.left_out.announcement(plan.rounds, self.ask.rounds, longer);
            if let Some(note) = note {
                run.note(note);
            }
        }
        plan
    }

    /// A lane whose flow of datagrams could not be opened, or broke, has no UDP.
    fn note_flows(&mut self, lanes: &[Lane]) {
        for (lane, known) in lanes.iter().zip(&mut self.known) {
            for known in known {
                known.has_udp = lane.echo.is_some();
            }
        }
    }

    fn idle_latency(&mut self, run: &mut Run<'_, '_>, plan: Plan) {
        let (began, paths) = (run.watch.done(), self.alive_paths(&run.lanes));
        for block in 0..plan.blocks {
            for turn in lane::turns(run.lanes.len(), block) {
                if !run.goes_on(turn) {
                    continue;
                }
                let lane = &mut run.lanes[turn];
                run.watch.phase("idle latency", Some(lane.version));
                if block == 0
                    && planning::empties_queues(plan.blocks)
                    && let Some(served) = empty_queues(lane)
                {
                    self.rhythms[turn].begin_at(served);
                }
                let next = self.rhythms[turn].next(plan.blocks - block, plan.blocks);
                let Block { count, spacing } = next;
                let round_trip = lane.round_trip();
                let order = EchoOrder {
                    patience: idle_patience(round_trip),
                    ..EchoOrder::open_loop(Some(count), spacing, IDLE_PAYLOAD)
                };
                let lasting = spacing * count.cast_signed() + order.patience + round_trip + LEASE_MARGIN / 4;
                let rest = (self.promise.ends - run.watch.done()).or_zero() + ECHO_MARGIN;
                lane.keep_echo(&run.request.target, lasting, rest, largest_echoes());
                let Some(echoes) = lane.echo(&order) else { continue };
                self.rhythms[turn].observe(next, &echoes.round.rtts_ns());
                run.findings[turn].idle.push(echoes);
            }
        }
        for (lane, found) in run.lanes.iter_mut().zip(&run.findings) {
            if queueing::fills_most(&found.idle) {
                lane.warn(queueing::OWN_QUEUE);
            }
        }
        self.behind.note_idle(run.watch.done() - began, planning::idle_time(&paths, plan.blocks));
    }

    /// All turns, in order. What proves too slow on the way is left out, and that is said.
    fn rounds(&mut self, run: &mut Run<'_, '_>, plan: Plan) {
        let mut agenda: VecDeque<Leg> = (0..plan.rounds)
            .flat_map(|round| lane::turns(run.lanes.len(), round).into_iter().map(move |lane| (round, lane)))
            .flat_map(|(round, lane)| {
                [Direction::Reverse, Direction::Forward].map(|direction| Leg { round, lane, direction })
            })
            .collect();
        loop {
            agenda.retain(|leg| run.goes_on(leg.lane));
            self.cut(run, &mut agenda);
            if agenda.is_empty() {
                agenda.extend(self.another_round(run));
            }
            let Some(leg) = agenda.front().copied() else { return };
            self.rounds_run = leg.round + 1;
            let of_round = agenda.iter().take_while(|it| it.round == leg.round).count();
            self.leg(run, leg, &self.ahead(&agenda), of_round);
            agenda.pop_front();
        }
    }

    /// A round that was not planned, where the time is there for it all the same: a version that
    /// died needs no more, or what was expected to take long did not.
    fn another_round(&mut self, run: &Run<'_, '_>) -> Vec<Leg> {
        let round = self.rounds_run;
        let alive: Vec<usize> =
            lane::turns(run.lanes.len(), round).into_iter().filter(|lane| run.goes_on(*lane)).collect();
        if round == 0 || round >= self.ask.rounds || alive.is_empty() {
            return Vec::new();
        }
        let legs = alive.into_iter().flat_map(|lane| {
            [Direction::Reverse, Direction::Forward].map(|direction| Leg { round, lane, direction })
        });
        let legs: Vec<Leg> = legs.collect();
        let paths: Vec<PathKnown> = self.ahead(&legs).into_iter().map(|step| step.known).collect();
        let left = self.promise.fills - run.watch.done();
        let Some(extent) = planning::another_round(self.ask, &paths, left) else { return Vec::new() };
        self.extents.resize(usize::from(round) + 1, extent);
        self.extents[usize::from(round)] = extent;
        legs
    }

    fn extent(&self, round: u16) -> Extent {
        self.extents.get(usize::from(round)).copied().unwrap_or(Extent::Whole)
    }

    fn ahead<'a>(&self, legs: impl IntoIterator<Item = &'a Leg>) -> Vec<Step> {
        let known = |leg: &Leg| self.known[leg.lane][way(leg.direction)];
        legs.into_iter().map(|leg| Step { known: known(leg), extent: self.extent(leg.round) }).collect()
    }

    fn cause(&self) -> String {
        self.behind.cause(self.ask, &self.known)
    }

    /// Leaves out later rounds, and then phases, where the rest no longer fits.
    fn cut(&mut self, run: &mut Run<'_, '_>, agenda: &mut VecDeque<Leg>) {
        self.note_flows(&run.lanes);
        self.cut_rounds(run, agenda);
        let Some(round) = agenda.front().map(|leg| leg.round) else { return };
        let left = self.promise.ends - run.watch.done();
        let needed = |it: &Self| planning::needed(it.ask, &it.ahead(agenda.iter()));
        let fits = |it: &Self| needed(it) <= left + it.promise.tolerance;
        let rest = needed(self);
        if round == 0
            && !fits(self)
            && planning::are_near(&self.ahead(agenda.iter()))
            && self.stay_in_time(run, rest, planning::transfers(self.ask, &self.ahead(agenda.iter())), true)
        {
            // Phases would save little, and a version that is slow must not cost the other's.
            return;
        }
        while !fits(self) && self.extent(round) > Extent::SeveralStreams {
            self.extents[usize::from(round)] = self.extent(round).less();
            if let Some(what) = self.extent(round).left_out(self.ask) {
                let note = format!("left out from here on: {what}; {}", self.cause());
                run.note_lasting(&mut self.left_out, note);
            }
        }
        if round > 0 && !fits(self) {
            let note = format!("the rest of round {} was left out: {}", round + 1, self.cause());
            run.note_lasting(&mut self.left_out, note);
            agenda.clear();
        }
    }

    /// Leaves out the rounds behind the present one that no longer fit, and parts of one that is
    /// about to begin.
    fn cut_rounds(&mut self, run: &mut Run<'_, '_>, agenda: &mut VecDeque<Leg>) {
        let Some(round) = agenda.front().map(|leg| leg.round) else { return };
        let alive = (0..run.lanes.len()).filter(|lane| run.goes_on(*lane)).count();
        let of_round = agenda.iter().filter(|leg| leg.round == round).count();
        let begins = round > 0 && of_round == alive * 2;
        let first = if begins { round } else { round + 1 };
        let last = agenda.back().map_or(round, |leg| leg.round);
        let later: Vec<Vec<PathKnown>> = (first..=last)
            .map(|round| self.ahead(agenda.iter().filter(|leg| leg.round == round)))
            .take_while(|steps| !steps.is_empty())
            .map(|steps| steps.into_iter().map(|step| step.known).collect())
            .collect();
        if later.is_empty() {
            return;
        }
        let before = self.ahead(agenda.iter().filter(|leg| leg.round < first));
        // A round that is missing is worth more than the little that it takes longer.
        let left = self.promise.fills - run.watch.done() + self.promise.tolerance / 2;
        let kept = planning::later_rounds(self.ask, &before, &later, left);
        let end = first + u16::try_from(kept.rounds).unwrap_or(u16::MAX);
        for extent in self.extents.iter_mut().skip(first.into()) {
            *extent = kept.extent;
        }
        if begins
            && kept.rounds > 0
            && let Some(what) = kept.extent.left_out(self.ask)
        {
            let note = format!("round {} goes without {what}: {}", first + 1, self.cause());
            run.note_lasting(&mut self.left_out, note);
        }
        if kept.rounds < later.len() {
            agenda.retain(|leg| leg.round < end);
            let cause = self.cause();
            run.note(left_out::of_rounds(end + 1, &cause));
            self.left_out.rounds_for = Some(cause);
        }
    }

    /// One direction of one version's turn. Of what is `ahead`, so many are of the present round.
    fn leg(&mut self, run: &mut Run<'_, '_>, leg: Leg, ahead: &[Step], of_round: usize) {
        let done = run.watch.done();
        let left = self.promise.ends - done;
        let known = self.known[leg.lane][way(leg.direction)];
        let plan = planning::durations(self.ask, ahead, self.promise.fills - done);
        let needed = self.extent(leg.round).direction_cost(self.ask, &known)
            + plan.iter().map(|(_, duration)| *duration).sum::<Span>()
            + plan
                .iter()
                .map(|(_, duration)| TcpPlan::longest_drain_after(*duration))
                .max()
                .unwrap_or_default()
            + plan
                .iter()
                .map(|(phase, duration)| phase.prolonged(self.ask, &known, *duration))
                .sum::<Span>()
                .min(left)
            + LEASE_MARGIN;
        if !plan.is_empty() {
            lane::keep_reserved(&mut run.lanes, needed, left + LEASE_MARGIN, run.stop, &mut run.watch);
            self.behind.note_reopening(run.watch.done() - done);
        }
        // Later rounds are left out sooner than the test is made longer.
        let later = planning::needed(self.ask, ahead.get(1..of_round).unwrap_or_default());
        let later_well = planning::needed_well(self.ask, ahead.get(1..).unwrap_or_default());
        let later_transfers = planning::transfers(self.ask, ahead.get(1..of_round).unwrap_or_default());
        let mut transfers = plan.len() + later_transfers;
        let mut rest: Span = plan.iter().map(|(phase, duration)| *duration + phase.overhead(&known)).sum();
        for (phase, duration) in plan {
            if !run.goes_on(leg.lane) {
                return;
            }
            // In the first round nothing stands for it, and a later one makes no test longer.
            let is_in_time = if leg.round > 0 {
                run.watch.will_go_on_for(Afterwards::AtLeast(Span::ZERO));
                self.promise.holds(run.watch.done(), rest + later)
            } else {
                run.watch.will_go_on_for(Afterwards::AtLeast((rest - duration + later).or_zero()));
                self.stay_in_time(run, rest + later, transfers, phase != Phase::SeveralStreams)
            };
            transfers -= 1;
            let duration = self.outlasting(run, leg, phase, duration, rest + later_well);
            rest = rest - duration - phase.overhead(&known);
            if !is_in_time {
                let name = run.lanes[leg.lane].version.name();
                let what = format!("{} {}", phase.name(), leg.direction.name());
                let note = format!("{name}: {what} was left out: {}", self.cause());
                run.note_lasting(&mut self.left_out, note);
                continue;
            }
            match phase {
                Phase::OneStream => self.tcp(run, leg, 1, duration),
                Phase::SeveralStreams => self.tcp(run, leg, run.request.streams, duration),
                Phase::Udp => self.udp(run, leg, duration),
            }
        }
        run.lanes[leg.lane].note_measured();
    }

    /// Whether what is still to come fits. Where it does not, it is said that the test takes
    /// longer: an outage or a phase that failed may have taken the time. What was said twice is
    /// kept, if what comes next may be left out.
    fn stay_in_time(
        &mut self,
        run: &mut Run<'_, '_>,
        rest: Span,
        transfers: usize,
        may_be_left_out: bool,
    ) -> bool {
        self.promise = self.promise.or_announced(run.watch.total());
        match self.promise.judge(run.watch.done(), rest, self.behind.late(transfers), may_be_left_out) {
            Rest::Fits => true,
            Rest::Takes(promise) => {
                self.promise = promise;
                run.watch.expect(promise.announced);
                let (whole, asked) = (whole_seconds(promise.announced), run.watch.asked());
                let cause = self.cause();
                run.note(format!("this may take up to {whole} instead of {asked}: {cause}"));
                true
            }
            Rest::TooLong => false,
        }
    }

    /// How long a phase lasts after an earlier one of its kind that was still speeding up when it
    /// ended: twice as long, as far as there is time beside the `rest`.
    fn outlasting(&self, run: &Run<'_, '_>, leg: Leg, phase: Phase, duration: Span, rest: Span) -> Span {
        let known = &self.known[leg.lane][way(leg.direction)];
        let spare = (self.promise.fills - run.watch.done() - rest).or_zero();
        duration + phase.prolonged(self.ask, known, duration).min(spare)
    }

    fn tcp(&mut self, run: &mut Run<'_, '_>, leg: Leg, streams: u16, duration: Span) {
        let Run { request, stop, lanes, findings, watch } = run;
        let lane = &mut lanes[leg.lane];
        let Leg { direction, .. } = leg;
        let what = format!("TCP {}, {}", direction.name(), count(streams));
        watch.phase(what, Some(lane.version));
        let drain = TcpPlan::longest_drain_after(duration);
        let lasting = duration + lease::exchanges_at_most(lane.round_trip(), 1, drain);
        let done = watch.done();
        let rest = (self.promise.ends - done).or_zero() + ECHO_MARGIN;
        lane.keep_echo(&request.target, lasting, rest, largest_echoes());
        self.behind.note_reopening(watch.done() - done);
        let order = TcpOrder {
            streams,
            duration,
            congestion: request.congestion.clone(),
            ..TcpOrder::new(direction, TICK)
        };
        let known = self.known[leg.lane][way(direction)];
        let rate = known.rate.or_else(|| slow_rate(self.rhythms[leg.lane].slowly_served()?, lane.version));
        let spacing = spacing_beside(rate, lane.version);
        let load = EchoOrder::beside_load(spacing, IDLE_PAYLOAD, known.round_trip);
        let began_at = clock::now();
        let rounds = transfer::tcp(lane, &request.target, &[order], Some(&load), stop, watch);
        let took = clock::now() - began_at;
        if rounds.iter().any(TcpRound::carried_nothing) {
            let done = watch.done();
            path::explain_silence(lane, &request.target, stop, watch);
            self.behind.note_search(watch.done() - done);
        }
        if rounds.is_empty() {
            self.behind.note_unopened(took);
        }
        if let Some(round) = rounds.first() {
            let seen = report::seen(round, known.round_trip);
            // More time makes nothing of what carried nothing.
            let carried = seen.mean.map(|_| seen.warm_up.map_or(WarmUp::NotOver(duration), WarmUp::Took));
            self.known[leg.lane][way(direction)].warm_up[planning::kind(streams)] = carried;
            let phase = if streams > 1 { Phase::SeveralStreams } else { Phase::OneStream };
            self.behind.note_end(leg.lane, way(direction), phase, took - duration);
            self.learn(leg, seen, took - duration);
        }
        findings[leg.lane].tcp.extend(rounds);
    }

    /// Takes note of what a transfer showed, which took `over` longer than its duration. What is
    /// known of one direction is a first guess of the other.
    fn learn(&mut self, leg: Leg, seen: Seen, over: Span) {
        let ways = &mut self.known[leg.lane];
        let (this, other) = (way(leg.direction), 1 - way(leg.direction));
        let is_credible = planning::learn_drain(&mut ways[this], over);
        if let Some(rate) = seen.rate.or(seen.mean) {
            (ways[this].rate, ways[this].is_lower_bound) = (Some(rate), seen.is_lower_bound);
        }
        let PathKnown { rate, is_lower_bound, drain, .. } = ways[this];
        if ways[other].rate.is_none() {
            (ways[other].rate, ways[other].is_lower_bound) = (rate, is_lower_bound);
        }
        if is_credible {
            ways[other].drain = ways[other].drain.or(drain);
        }
    }

    fn udp(&mut self, run: &mut Run<'_, '_>, leg: Leg, duration: Span) {
        let Run { request, stop, lanes, findings, watch } = run;
        let (lane, found) = (&mut lanes[leg.lane], &mut findings[leg.lane]);
        if lane.echo.is_none() {
            return;
        }
        let direction = leg.direction;
        let what = format!("UDP {}", direction.name());
        let carried = self.carried(request, found, leg);
        let headers = lane.version.header_len() + 8;
        let largest = request.udp_length.unwrap_or_else(|| path::udp_payload(lane));
        let rate = planning::udp_rate(&carried, Datagram { payload: largest, headers });
        let rate = match rate {
            UdpRate::At(rate) => rate,
            UdpRate::LeftOut(why) => return lane.warn(&format!("{what} was left out: {why}")),
        };
        watch.phase(what, Some(lane.version));
        let rate = if carried.typed.is_some() { rate } else { paceable(lane, rate, largest) };
        let order = UdpOrder {
            is_derived: carried.typed.is_none(),
            ..UdpOrder::paced(direction, duration, largest, rate, TICK)
        };
        let began_at = clock::now();
        let mut rounds = transfer::udp(lane, &request.target, &[order], stop, watch);
        for round in &mut rounds {
            round.accept_giving_way();
        }
        found.udp.extend(rounds);
        let over = clock::now() - began_at - duration;
        self.behind.note_end(leg.lane, way(direction), Phase::Udp, over);
        for known in &mut self.known[leg.lane] {
            known.late = planning::late(known, over).max(known.late / 2);
        }
    }

    /// What is known of a direction when its UDP stream is due: of TCP the latest, in this round or
    /// an earlier one.
    fn carried(&self, request: &TestRequest, found: &Findings, leg: Leg) -> Carried {
        let round_trip = self.known[leg.lane][0].round_trip;
        let of_direction = |round: &&TcpRound| round.order.direction == leg.direction;
        let rounds = found.tcp.iter().filter(of_direction);
        let seen: Vec<(u16, Seen)> =
            rounds.map(|round| (round.order.streams, report::seen(round, round_trip))).collect();
        Carried {
            typed: request.udp_rate,
            had_tcp: request.tcp,
            tcp: for_one_flow(&seen),
            tcp_mean: seen.iter().rev().find_map(|(_, seen)| seen.mean),
            lossy_udp: found.udp.iter().rev().find_map(|round| received_of_lossy(round, leg.direction)),
            echoes: self.rhythms[leg.lane].carried(IDLE_PAYLOAD),
        }
    }
}

/// What TCP showed that a single stream of datagrams may go by: the latest rate of several streams,
/// and no more than one stream alone had once it had warmed up, where others' flows have a fair
/// share each. What an outage fell into counts only where there is nothing else; but what came
/// behind one of the latest transfer is the latest that is known of the path, and bounds the rest.
fn for_one_flow(seen: &[(u16, Seen)]) -> Option<SendRate> {
    let cut = seen.last().map(|(_, last)| last).filter(|last| last.is_cut);
    let bound = cut.and_then(|last| last.behind.or(last.mean));
    let whole: Vec<(u16, Seen)> = seen.iter().filter(|(_, seen)| !seen.is_cut).copied().collect();
    let seen = if whole.iter().any(|(_, seen)| seen.lasting().is_some()) { &whole } else { seen };
    let latest = |is_wanted: &dyn Fn(u16, &Seen) -> bool| {
        let wanted = seen.iter().rev().filter(|(streams, seen)| is_wanted(*streams, seen));
        wanted.map(|(_, seen)| seen).find_map(Seen::lasting)
    };
    let one = latest(&|streams, seen| streams == 1 && !seen.is_lower_bound);
    let several = latest(&|streams, _| streams > 1).or_else(|| latest(&|_, _| true))?;
    let known = one.map_or(several, |one| several.min(one));
    Some(bound.map_or(known, |bound| known.min(bound)))
}

/// Waits until what came before, such as the search for the path MTU, has left the path's queues: a
/// request that nothing else is in front of takes no longer than connecting did. What others keep
/// in the queues is not waited for. Returns the distance at which the path let the last few
/// requests through: they are right behind each other.
fn empty_queues(lane: &mut Lane) -> Option<Span> {
    let round_trip = lane.round_trip();
    let mut served = None;
    for _ in 0..MAX_EMPTYING {
        let order = EchoOrder {
            patience: idle_patience(round_trip),
            ..EchoOrder::open_loop(Some(FIRST_ECHOES), FIRST_ECHO, IDLE_PAYLOAD)
        };
        let Some(echoes) = lane.echo(&order) else { break };
        served = queueing::served_closest(&echoes.round.arrivals(FIRST_ECHO)).or(served);
        let as_idle = (round_trip + round_trip / 10).nanos() as f64;
        if echoes.round.rtts_ns().iter().any(|rtt| *rtt <= as_idle) {
            break;
        }
    }
    served
}

/// What was received per second of a stream in this direction that lost a tenth or more.
fn received_of_lossy(round: &UdpRound, direction: Direction) -> Option<SendRate> {
    let (sender, receiver) = (round.ended.udp_sender.as_ref()?, round.ended.udp_receiver.as_ref()?);
    let is_lossy = receiver.received.saturating_mul(10) < sender.sent.saturating_mul(9);
    let received = BitRate::mean(receiver.bytes, receiver.elapsed)?;
    (is_lossy && round.order.plan.direction == direction).then(|| SendRate::new(received))?
}

/// After which an answer on an idle path counts as lost. Each block in which one is lost waits that
/// long: with a second, a path that loses 1 % would cost a third of the budget. A long path has its
/// round trip and as much again.
fn idle_patience(round_trip: Span) -> Span {
    (round_trip * 10).clamp(Span::from_millis(250), Span::from_secs(1)).max(round_trip * 2)
}

/// The rate of a path that an idle request takes so long to pass.
fn slow_rate(served: Span, version: IpVersion) -> Option<SendRate> {
    BitRate::mean(ByteCount(idle_bits(version) / 8), served).and_then(SendRate::new)
}

/// Of an idle request with its headers.
fn idle_bits(version: IpVersion) -> u64 {
    u64::from(IDLE_PAYLOAD + 8 + version.header_len()) * 8
}

/// Between the echoes beside a transfer that will reach about `rate`.
fn spacing_beside(rate: Option<SendRate>, version: IpVersion) -> Span {
    let Some(rate) = rate else { return CAREFUL_SPACING };
    let bits = idle_bits(version);
    let spacing = |share: u64| {
        let nanos = u128::from(bits) * u128::from(share) * 1_000_000_000 / u128::from(rate.bit_rate().0);
        Span(i64::try_from(nanos).unwrap_or(i64::MAX))
    };
    let longest = spacing(SLOW_ECHO_SHARE).clamp(LONGEST_SPACING, LONGEST_SLOW_SPACING);
    spacing(ECHO_SHARE).clamp(LOADED_SPACING, longest)
}

/// Of a few requests, however long a queue lasts.
const MAX_EMPTYING: usize = 3;
/// Three distances: the smallest is no jitter.
const FIRST_ECHOES: u64 = 4;
/// Right behind each other.
const FIRST_ECHO: Span = Span::from_millis(1);

fn count(streams: u16) -> String {
    if streams == 1 { "1 stream".into() } else { format!("{streams} streams") }
}

/// Whole seconds, rounded up, as a person types them.
fn seconds(time: Span) -> String {
    format!("{}s", whole_seconds(time).0 / 1_000_000_000)
}

/// The same as a time that is announced.
fn whole_seconds(time: Span) -> Span {
    Span::from_secs((time.0 + 999_999_999) / 1_000_000_000)
}

/// For how long setting up had no answer: of a connection, of the path as a whole, or of the
/// `flows` of datagrams, which an outage takes away as well. Versions wait for theirs at the same
/// time.
fn unanswered(lanes: &[Lane], flows: Span) -> Span {
    let of_lane = |lane: &Lane| lane.unanswered_for + lane.outlived().unwrap_or_default().max(flows);
    lanes.iter().map(of_lane).max().unwrap_or_default()
}

/// Beyond this many datagrams per second one core can no longer keep an even pace on the hosts we
/// know, and the phase would tell their limit instead of the path's loss.
const MOST_PACED: u64 = 200_000;

/// A rate that is derived from TCP's is cut to what can be paced, with a warning; one that a person
/// asked for is not.
fn paceable(lane: &mut Lane, rate: SendRate, length: u32) -> SendRate {
    let highest = SendRate::at_least(MOST_PACED * u64::from(length) * 8);
    if rate <= highest {
        return rate;
    }
    lane.warn(&format!(
        "UDP ran at {highest} and not at {} % of TCP's rate: hosts cannot pace more than {MOST_PACED} \
         datagrams per second one by one",
        planning::UDP_PERCENT
    ));
    highest
}

/// Asked for beyond what a leg needs, so that an end that comes late is not refused.
const LEASE_MARGIN: Span = Span::from_secs(2);
/// An echo flow answers for so long beyond the plan's end: the queues of the last transfer may have
/// to drain, and a flow that would end before is opened again.
const ECHO_MARGIN: Span = Span(LEASE_MARGIN.0 + MIN_DRAIN.0);

fn options_of(request: &TestRequest) -> BTreeMap<String, String> {
    let mut options = BTreeMap::from([
        ("time".to_owned(), request.budget.to_string()),
        ("streams".to_owned(), request.streams.to_string()),
        ("rounds".to_owned(), request.rounds.to_string()),
        ("tcp".to_owned(), request.tcp.to_string()),
        ("udp".to_owned(), request.udp.to_string()),
        ("path".to_owned(), request.path.to_string()),
    ]);
    let optional = [
        ("rate", request.udp_rate.map(|rate| rate.to_string())),
        ("length", request.udp_length.map(|length| format!("{length} B"))),
        ("congestion", request.congestion.clone()),
    ];
    options.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four streams had 13.2 Mbit/s beside three neighbours, one had 5.8.
    #[test]
    fn one_stream_of_datagrams_gets_no_more_than_one_flow_has_where_shares_are_fair() {
        let rate = |kbits: u64| SendRate::at_least(kbits * 1000);
        let seen =
            |kbits, is_lower_bound| Seen { rate: Some(rate(kbits)), is_lower_bound, ..Seen::default() };
        let fair = [(1, seen(5_800, false)), (4, seen(13_200, false))];
        assert_eq!(for_one_flow(&fair), Some(rate(5_800)));
        // One that was still speeding up shows a lower bound.
        assert_eq!(for_one_flow(&[(1, seen(5_800, true)), (4, seen(13_200, false))]), Some(rate(13_200)));
        assert_eq!(for_one_flow(&[(1, seen(5_800, true))]), Some(rate(5_800)));
        // An outage fell into the transfer of several streams.
        let cut = |kbits| Seen { is_cut: true, ..seen(kbits, false) };
        assert_eq!(for_one_flow(&[(1, seen(33_700, false)), (4, cut(746))]), Some(rate(33_700)));
        assert_eq!(for_one_flow(&[(1, cut(900)), (4, cut(746))]), Some(rate(746)));
        assert_eq!(for_one_flow(&[]), None);
        // A hand-over to 1 Mbit/s, behind which UDP went on at 80 % of 50.
        let fell = Seen { behind: Some(rate(980)), ..cut(40_000) };
        assert_eq!(for_one_flow(&[(1, seen(50_000, false)), (4, fell)]), Some(rate(980)));
        // The next transfer shows what the path carries now.
        assert_eq!(for_one_flow(&[(1, fell), (4, seen(1_900, false))]), Some(rate(1_900)));
        // Nothing came behind it.
        let died = Seen { mean: Some(rate(20_000)), ..cut(40_000) };
        assert_eq!(for_one_flow(&[(1, seen(50_000, false)), (4, died)]), Some(rate(20_000)));
    }

    #[test]
    fn echoes_take_two_promille_of_a_path_at_most_or_ten_a_second() {
        let spacing = |kbit: u64| spacing_beside(SendRate::new(BitRate(kbit * 1000)), IpVersion::V6);
        // 112 bytes of IPv6 packet: 896 bits.
        assert_eq!(spacing(10_000), Span::from_micros(44_800));
        assert_eq!((spacing(1000), spacing(1_000_000)), (LONGEST_SPACING, LOADED_SPACING));
        assert_eq!(spacing_beside(None, IpVersion::V4), CAREFUL_SPACING);
    }

    #[test]
    fn on_a_slow_path_echoes_take_a_twentieth_at_most() {
        let spacing = |kbit: u64| spacing_beside(SendRate::new(BitRate(kbit * 1000)), IpVersion::V6);
        assert_eq!(spacing(64), Span::from_millis(280));
        assert_eq!(spacing(1), LONGEST_SLOW_SPACING);
        // 92 bytes take 92 ms on 8 kbit/s: echoes each 50 ms were twice as much.
        let slow = slow_rate(Span::from_millis(92), IpVersion::V4);
        assert_eq!(slow, SendRate::new(BitRate(8000)));
        assert!(spacing_beside(slow, IpVersion::V4) > Span::from_millis(92) * 5);
    }

    #[test]
    fn an_idle_path_is_given_ten_round_trips_and_a_long_one_two() {
        let millis = Span::from_millis;
        assert_eq!(
            [0, 40, 300, 600, 1200].map(|rtt| idle_patience(millis(rtt))),
            [250, 400, 1000, 1200, 2400].map(millis)
        );
    }
}
