//! `netaware latency`: request-response delay as a measurement of its own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::OnceLock;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_probe::{EchoPlan, Pacing};
use netaware_record::{Arrivals, Direction, Reach, Record, Unreachable};
use netaware_stats::ceasing::Ceasing;
use netaware_stats::patience::{Patience, Waiting};
use netaware_stats::rng::SplitMix64;
use netaware_units::{BitRate, ByteCount, Mono, SendRate, Span};

use crate::broke_off;
use crate::careful::{self, Seen};
use crate::echo::{EchoOrder, EchoRun, EchoSizes, Overdue};
use crate::lane::{self, Lane, Renewed};
use crate::lease;
use crate::own_absence;
use crate::progress::{Progress, Watch};
use crate::queueing;
use crate::report::{self, Findings};
use crate::request::{LatencyRequest, Rhythm, Target, Transport};
use crate::stage::Cause;
use crate::tcp_echo::{Broke, TcpEcho};

/// Versions and transports take turns in this many blocks; short ones, so that a drift hits all
/// alike.
const BLOCKS: u16 = 8;

/// Measures each version and transport asked for, in turns when there are several.
pub fn latency(request: &LatencyRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let opened = report::Opening::now("latency", &request.target, options_of(request));
    let whole = expected(request) * turns_of_each(request);
    let mut watch = Watch::new(whole, progress);
    watch.phase("connect", None);
    let mut lanes = lane::open_all(&request.target, stop);
    lane::note_dead(&lanes, &mut watch);
    let (request, slowness) = slowed(request, &mut lanes, stop);
    let request = &request;
    let mut findings: Vec<Findings> =
        lanes.iter().map(|_| Findings { bins: request.bins, ..Findings::default() }).collect();

    let turns = i64::try_from(lanes.iter().filter(|lane| lane.is_alive()).count()).unwrap_or(1)
        * i64::try_from(request.transports.len()).unwrap_or(1);
    let round_trip = lanes.iter().map(Lane::round_trip).max().unwrap_or_default();
    let blocks = blocks(request, turns, round_trip);
    let blocks = if slowness.is_some() { correctable(request, blocks) } else { blocks };
    let needs = Needs::of(request, &lanes, blocks);
    let lease = (needs.block * (turns * i64::from(blocks)) + SLACK).min(LONGEST_LEASE);
    if is_reserved(request) {
        lane::reserve_all(&mut lanes, lease, stop, &mut watch);
    }
    for lane in &mut lanes {
        note_shortening(request, lane, &needs, blocks, &mut watch);
    }
    let mut probes: Vec<Vec<Probe>> =
        lanes.iter_mut().map(|lane| Probe::open_all(lane, request, lease, stop)).collect();
    let exchange = lease::exchange(&lanes);
    let rest = promise(request, &lanes, &probes, &needs, blocks);
    match slowness {
        Some(why) => watch.announce_because(rest, &why),
        None => watch.announce(rest, exchange),
    }
    let turns_at_most = lanes.len();
    let mut course = Course {
        request,
        lanes: &mut lanes,
        findings: &mut findings,
        probes: &mut probes,
        needs: &needs,
        blocks,
        lease,
        stop,
        watch: &mut watch,
        gone: (0..turns_at_most).map(|_| None).collect(),
        slower: None,
    };
    let ((), away) = own_absence::watching(|| course.run_all());
    let gone = course.gone;
    drop(probes);
    for lane in &mut *lanes {
        lane.note_own_absence(away);
    }
    if !stop.is_raised() {
        for ((lane, found), gone) in lanes.iter_mut().zip(&mut findings).zip(gone) {
            break_off(lane, &mut found.idle, gone.as_ref());
            for runs in [&mut found.idle, &mut found.idle_tcp] {
                note_standing_still(lane, runs);
            }
            if queueing::fills_most(&found.idle) {
                lane.warn(queueing::OWN_QUEUE);
            }
        }
    }
    let is_measured = findings.iter().any(|found| !found.idle.is_empty() || !found.idle_tcp.is_empty());
    let mut record = report::finish(opened, lanes, &mut findings, stop);
    // Short ones may be repeated at close intervals.
    let has_time = record.elapsed >= LONG_ENOUGH;
    record.prober.memory_copy_ns_per_byte = if is_measured && has_time { memory_copy() } else { None };
    record
}

/// Requests of all versions and transports, block by block.
struct Course<'a, 'w> {
    request: &'a LatencyRequest,
    lanes: &'a mut Vec<Lane>,
    findings: &'a mut [Findings],
    probes: &'a mut [Vec<Probe>],
    needs: &'a Needs,
    blocks: u16,
    lease: Span,
    stop: &'a StopFlag,
    watch: &'a mut Watch<'w>,
    /// Lanes whose UDP flow has fallen silent, and has been looked into: they are asked no more.
    gone: Vec<Option<Renewed>>,
    /// The distance between requests since they queued behind each other.
    slower: Option<Span>,
}

impl Course<'_, '_> {
    /// What so many blocks take where every request is answered.
    fn sending(&self, blocks: u16) -> Span {
        let all = promise(self.request, self.lanes, self.probes, self.needs, self.blocks);
        all * i64::from(blocks) / i64::from(self.blocks.max(1))
    }

    /// Runs all blocks, several of them as one where waiting for lost answers takes the time.
    fn run_all(&mut self) {
        let (mut block, mut joined) = (0, 1);
        while block < self.blocks {
            let part = block..(block + joined).min(self.blocks);
            block = part.end;
            let waited = self.run(&part);
            if waited <= Span::ZERO || joined != 1 || block >= self.blocks {
                continue;
            }
            let cap = self.lanes.iter().filter_map(Lane::duration_cap).min();
            let most = self.needs.joined(self.blocks - block, cap);
            joined = (1..=most)
                .rev()
                .find(|joined| is_possible(self.request, &(block..block + joined), self.blocks))
                .unwrap_or(1);
            let times = i64::from((self.blocks - block).div_ceil(joined));
            let rest = self.sending(self.blocks - block) + waited * times;
            let why = format!("answers are missing, and each time {waited} is waited for them");
            self.watch.announce_because(rest, &why);
        }
    }

    /// Runs some blocks as one; how long answers that did not come were waited for.
    fn run(&mut self, part: &Range<u16>) -> Span {
        let needed = self.needs.of_blocks(part.len());
        let each = self.sending(u16::try_from(part.len()).unwrap_or(1)) / self.turns();
        let mut rest = self.sending(self.blocks - part.start);
        let mut waited = Span::ZERO;
        for turn in lane::turns(self.lanes.len(), part.start) {
            if is_reserved(self.request)
                && self.lanes[turn].is_alive()
                && lane::keep_reserved(self.lanes, needed, self.lease, self.stop, self.watch)
            {
                self.probes.iter_mut().flatten().for_each(Probe::note_end);
            }
            for probe in lane::turns(self.probes[turn].len(), part.start) {
                if !self.lanes[turn].is_alive() || self.stop.is_raised() {
                    continue;
                }
                self.watch.review(rest, "blocks of requests take longer than planned");
                rest = (rest - each).or_zero();
                waited += self.take_turn(turn, probe, part, needed, rest);
            }
        }
        waited
    }

    /// Of each block.
    fn turns(&self) -> i64 {
        i64::try_from(self.probes.iter().map(Vec::len).sum::<usize>()).unwrap_or(1).max(1)
    }

    fn take_turn(
        &mut self,
        turn: usize,
        probe: usize,
        part: &Range<u16>,
        needed: Span,
        afterwards: Span,
    ) -> Span {
        let asked = respaced(self.request, self.needs, self.slower, (part, self.blocks));
        let (request, watch) = (self.request, &mut *self.watch);
        let (lane, found) = (&mut self.lanes[turn], &mut self.findings[turn]);
        let probe = &mut self.probes[turn][probe];
        let is_udp = probe.transport() == Transport::Udp;
        if is_udp && self.gone[turn].is_some() {
            return Span::ZERO;
        }
        watch.phase(phase(request, probe.transport()), Some(lane.version));
        let order = self.needs.within(lane, asked);
        if !probe.keep(lane, request, needed, self.lease) {
            return Span::ZERO;
        }
        // A flow that has fallen silent is looked into, which is said before it is waited for.
        let opening = lane.entry_patience() + lane.round_trip() * EXCHANGES;
        let run = probe.run(lane, &order, &mut |overdue: Overdue| {
            let longer = (overdue.until - clock::now()).or_zero();
            if is_udp && overdue.in_a_row >= MIN_SILENT {
                // Half of the patience is left.
                let look = looked_into_within(longer * 2, opening);
                return watch.review(longer + look + afterwards, &looks(longer + look));
            }
            watch.review(
                longer + afterwards,
                &format!("answers are missing, and they are waited for {longer} longer"),
            );
        });
        let mut waited = run.as_ref().map_or(Span::ZERO, waited_in_vain);
        let served = run.as_ref().filter(|_| is_udp).and_then(queueing::of_run);
        let run = run.map(|run| {
            let patience = patience_with_a_flow(run.order.patience, lane.round_trip());
            let look = looked_into_within(patience, opening);
            let before = ceasing(&found.idle);
            let (run, gone) = judge_flow(lane, request, (before, run), self.lease, &mut || {
                watch.review(look + afterwards, &looks(look));
            });
            // A turn over TCP has looked into nothing.
            if gone.is_some() {
                self.gone[turn] = gone;
            }
            run
        });
        if self.gone[turn].is_some() {
            waited = Span::ZERO;
        }
        let beside_udp = probe.transport() == Transport::Tcp && request.transports.len() > 1;
        if beside_udp {
            found.idle_tcp.extend(run);
        } else {
            found.idle.extend(run);
        }
        if let Some(served) = served {
            self.slow_down(turn, served);
        }
        waited
    }

    /// The path let requests through at this distance: those that follow keep a longer one, over
    /// both versions, unless somebody typed the distance that they have.
    fn slow_down(&mut self, turn: usize, served: Span) {
        let Rhythm::Open { spacing, .. } = self.request.rhythm else { return };
        let now = self.slower.unwrap_or(spacing);
        let Some(slower) = queueing::slower(now, served).filter(|_| self.request.may_slow_down) else {
            return;
        };
        self.slower = Some(slower);
        self.lanes[turn].warn(&format!(
            "requests queued behind each other, because the path let them through every {served} only: from then on they \
             went every {slower} instead of every {now}"
        ));
    }
}

/// What is asked of a part of so many blocks, at another distance than was planned if that has
/// proved too short: fewer requests then in the same time.
fn respaced(
    request: &LatencyRequest,
    needs: &Needs,
    slower: Option<Span>,
    (part, blocks): (&Range<u16>, u16),
) -> EchoOrder {
    let (Some(spacing), Rhythm::Open { arrivals, seed, .. }) = (slower, request.rhythm) else {
        return plan(request, part, blocks);
    };
    let rhythm = Rhythm::Open { spacing, arrivals, seed };
    let order = plan(&LatencyRequest { rhythm, ..request.clone() }, part, blocks);
    let sends_for = needs.of_blocks(part.len()) - needs.margin;
    EchoOrder { time: Some(order.time.map_or(sends_for, |time| time.min(sends_for))), ..order }
}

/// How long it takes at most to look into a flow that has fallen silent: it is asked again, another
/// one is opened, which takes `opening` where nothing is answered, and is asked as well, and then
/// the silent one is asked once more.
fn looked_into_within(patience: Span, opening: Span) -> Span {
    let asking = FLOW_TRY_SPACING * i64::try_from(FLOW_TRIES).unwrap_or(1) + patience;
    asking * 3 + opening
}

/// How long an answer is waited for that shows whether a flow works: not shorter than the path
/// needs, however soon a request counts as lost.
fn patience_with_a_flow(patience: Span, round_trip: Span) -> Span {
    patience.max(round_trip * 4)
}

fn looks(at_most: Span) -> String {
    format!(
        "answers are missing, and it is found out whether a UDP flow still works, which takes {at_most} at most"
    )
}

/// Requests after the last answer of a flow are lost if the flow still works, or if no other one
/// does. If another one works and this one still does not, it is the flow that was lost: an address
/// translator has given it another port, or a firewall has forgotten it, and the responder, which
/// heard nothing of the requests or did not know them, has said nothing. Of the path they tell
/// nothing. If the silent flow works again as soon as another one does, the path or the other end
/// was gone for a while. Says as well what became of another flow where nothing comes any more at
/// all.
fn judge_flow(
    lane: &mut Lane,
    request: &LatencyRequest,
    (before, run): (Ceasing, EchoRun),
    lease: Span,
    begins: &mut dyn FnMut(),
) -> (EchoRun, Option<Renewed>) {
    let silent = run.lost_at_end;
    if silent < MIN_SILENT || run.transport != Transport::Udp || lane.echo.is_none() {
        return (run, None);
    }
    let again = EchoOrder {
        count: Some(FLOW_TRIES),
        time: None,
        pacing: Pacing::Even(FLOW_TRY_SPACING),
        waiting: Waiting::Exactly,
        patience: patience_with_a_flow(run.order.patience, lane.round_trip()),
        ..run.order
    };
    let tried = lane.echo(&again);
    // An answer that comes late shows as well that the flow works.
    let works = tried.as_ref().is_none_or(|tried| tried.answers() > 0);
    if works {
        // Answers came again after all, or the session has said why none did.
        return (if let Some(tried) = tried { came_again(run, &tried) } else { run }, None);
    }
    let run = match tried {
        Some(tried) => EchoRun {
            ceasing: run.ceasing.tried_in_vain(tried.ceasing),
            afterwards: run.afterwards.and_tried(&tried),
            ..run
        },
        None => run,
    };
    begins();
    let is_over = before.and_then(run.ceasing).ceased(run.order.patience).is_some();
    let renewed = lane.renew_echo(&request.target, lease, sizes(request));
    let Renewed::Works(silent_flow) = renewed else {
        let is_blocked = is_over && matches!(renewed, Renewed::UdpBlocked);
        return (run, is_blocked.then_some(renewed));
    };
    // A flow is opened with short datagrams: these requests may vanish for their length.
    if lane.echo(&again).is_none_or(|tried| tried.answers() == 0) {
        lane.close_echo(Some(silent_flow));
        return (run, None);
    }
    let fresh = lane.exchange_echo(Some(silent_flow));
    let tried = lane.echo(&again).filter(|tried| tried.answers() > 0);
    if let Some(tried) = tried {
        // It was not forgotten: nothing passed for a while, or the responder did not run.
        lane.close_echo(fresh);
        return (came_again(run, &tried), None);
    }
    let forgotten = lane.exchange_echo(fresh);
    lane.close_echo(forgotten);
    if !lane.is_alive() {
        return (run, None);
    }
    let why = why_forgotten(run.order.shown_spacing());
    lane.warn(&format!(
        "requests on a UDP flow had no answer any more, and a new flow worked at once: {why}; the fate of {silent} \
         requests is unknown, and they are not counted as lost"
    ));
    let mut run = EchoRun { ceasing: Ceasing::default(), ..run };
    run.forget_its_end();
    (run, None)
}

/// Why a flow of requests so far apart may have been lost while another one works.
fn why_forgotten(apart: Span) -> String {
    if apart >= SOONEST_FORGOTTEN {
        return format!(
            "an address translator has given the flow another port, or a firewall has forgotten it, which both do \
             where nothing comes for a while (requests were {apart} apart)"
        );
    }
    format!(
        "something on the way drops a flow of UDP after a number of bytes or a time, or an address translator that \
         was started again has given the flow another port (requests were {apart} apart, so that no flow was \
         forgotten for its silence)"
    )
}

/// Requests that were asked to find out whether anything still comes had answers.
fn came_again(run: EchoRun, tried: &EchoRun) -> EchoRun {
    let came = tried.answers() > 0;
    let ceasing = if came { Ceasing::default() } else { run.ceasing };
    EchoRun { ceasing, afterwards: run.afterwards.and_tried(tried), ..run }
}

/// Marks a version over which nothing came any more from an instant on: what became of the requests
/// since then nobody observed.
fn break_off(lane: &mut Lane, runs: &mut [EchoRun], renewed: Option<&Renewed>) {
    let patience = runs.iter().map(|run| run.order.patience).max().unwrap_or_default();
    let Some(ceased) = ceasing(runs).ceased(patience) else { return };
    let last = runs.iter().rposition(|run| run.ceasing.has_come()).unwrap_or(0);
    runs.iter_mut().skip(last).for_each(EchoRun::forget_its_end);
    let peer = lane.session().map(|session| (session.link.peer(), session.round_trip()));
    let refused = runs.iter().rev().find_map(|run| report::refused(run.why_not_sent?));
    let why = broke_off::unreachable(&ceased, "requests", lane.local, peer, refused);
    lane.break_off(if matches!(renewed, Some(Renewed::UdpBlocked)) { udp_blocked(why) } else { why });
}

/// What was found out of a flow that fell silent: neither it nor another one works.
fn udp_blocked(why: Unreachable) -> Unreachable {
    let found = "another UDP flow had no answer either, while the responder answered over TCP";
    Unreachable {
        reason: format!("{}; {found}", why.reason),
        advice: "see whether a firewall or an address translator on the way drops UDP, and try again"
            .to_owned(),
        ..why
    }
}

/// Names a connection over which nothing came any more, of a version that answers otherwise.
fn note_standing_still(lane: &mut Lane, runs: &mut [EchoRun]) {
    if lane.is_alive()
        && let Some(why) = stood_still(runs)
    {
        // Large packets that vanish are no reason where answers have come.
        let has_answered = runs.iter().any(|run| run.answers() > 0);
        let cause = if has_answered { Cause::System(why) } else { Cause::Unanswered(why) };
        lane.fail("measure latency", cause);
    }
}

/// Why requests over a connection were not measured to their end. What became of those after the
/// last answer nobody observed: TCP would have sent them again.
pub(crate) fn stood_still(runs: &mut [EchoRun]) -> Option<String> {
    let patience = runs.iter().map(|run| run.order.patience).max()?;
    let has_ceased = ceasing(runs).ceased(patience).is_some();
    let last = runs.last_mut().filter(|run| run.transport == Transport::Tcp)?;
    if !has_ceased && !last.gave_up {
        return None;
    }
    last.forget_its_end();
    let silent = last.round.counts().abandoned;
    let them = if silent == 1 { "it" } else { "them" };
    Some(format!(
        "the connection of the requests stood still until they ended: {silent} had no answer, and what became of {them} \
         is unknown"
    ))
}

/// Of all blocks.
fn ceasing(runs: &[EchoRun]) -> Ceasing {
    runs.iter().map(|run| run.ceasing).reduce(Ceasing::and_then).unwrap_or_default()
}

/// One request alone may be lost anywhere.
const MIN_SILENT: u64 = 2;
/// No translator and no firewall forgets a flow over which something came that lately.
const SOONEST_FORGOTTEN: Span = Span::from_secs(1);
/// Requests that show whether a flow still works.
const FLOW_TRIES: u64 = 2;
const FLOW_TRY_SPACING: Span = Span::from_millis(50);

/// Messages that fill the path need the responder for themselves.
fn is_reserved(request: &LatencyRequest) -> bool {
    sizes(request).fills_the_path() && request.transports.contains(&Transport::Tcp)
}

/// A host carries to itself whatever it sends.
fn is_loopback(lane: &Lane) -> bool {
    let address = lane.result.address.as_deref().and_then(|address| address.parse::<IpAddr>().ok());
    address.is_some_and(|address| address.is_loopback())
}

/// The same request with longer distances, if nobody typed those that it has and the path was seen
/// to carry less: requests would fill a slow path, and their round trips would tell of the queue
/// that they make. With it comes what it does and why, where the distances are longer.
fn slowed(request: &LatencyRequest, lanes: &mut [Lane], stop: &StopFlag) -> (LatencyRequest, Option<String>) {
    let as_it_is = (request.clone(), None);
    let Rhythm::Open { spacing, arrivals, seed } = request.rhythm else { return as_it_is };
    let is_udp = request.transports.contains(&Transport::Udp);
    let length = request.request.max(request.response);
    let rate = BitRate::mean(ByteCount(u64::from(length)), spacing).and_then(SendRate::new);
    let Some(rate) = rate.filter(|_| request.may_slow_down && is_udp) else { return as_it_is };
    let sessions = lanes.iter().filter(|lane| lane.is_alive()).count();
    let mut slowest: Option<(Span, String)> = None;
    for lane in lanes.iter_mut().filter(|lane| lane.is_alive() && !is_loopback(lane)) {
        let seen = careful::seen(lane, &request.target, Direction::RoundTrip, length, rate, stop);
        let Some(wanted) = careful_spacing(seen, length, rate, sessions).filter(|wanted| *wanted > spacing)
        else {
            continue;
        };
        let version = lane.version.name();
        let why = match seen {
            Seen::Carried(carried) => format!("short trains of them came at {carried} over {version}"),
            Seen::AtLeast(carried) => format!(
                "delays vary so much over {version} that short trains of them show only that {carried} are carried"
            ),
            Seen::Nothing | Seen::NotAsked => {
                format!("too few of them were answered over {version} to tell what the path carries")
            }
        };
        if slowest.as_ref().is_none_or(|(longest, _)| wanted > *longest) {
            slowest = Some((wanted, why));
        }
    }
    // Both versions keep the same distance, or their figures could not be compared.
    let Some((longest, why)) = slowest else { return as_it_is };
    let why = format!("requests go every {longest} instead of every {spacing}, because {why}");
    if let Some(lane) = lanes.iter_mut().find(|lane| lane.is_alive()) {
        lane.warn(&format!("no --spacing was given: {why}"));
    }
    let rhythm = Rhythm::Open { spacing: longest, arrivals, seed };
    (LatencyRequest { rhythm, ..request.clone() }, Some(why))
}

/// The distance at which requests fit what was seen beside the pings of so many sessions, where
/// `rate` is more than that.
fn careful_spacing(seen: Seen, length: u32, rate: SendRate, sessions: usize) -> Option<Span> {
    let time_at = |rate: SendRate| rate.bit_rate().time_for(ByteCount(u64::from(length)));
    match seen {
        Seen::Carried(carried) | Seen::AtLeast(carried) if carried.percent(125) >= rate => None,
        Seen::Carried(carried) | Seen::AtLeast(carried) => {
            Some(time_at(careful::beside_pings(carried, length, sessions)))
        }
        Seen::Nothing => Some(time_at(careful::unknown(length))),
        Seen::NotAsked => None,
    }
}

/// How long a block has waited for answers that did not come.
fn waited_in_vain(run: &EchoRun) -> Span {
    if run.round.counts().lost > 0 { run.order.patience } else { Span::ZERO }
}

/// A measurement that took so long is not noticeably longer for what [`memory_copy`] takes.
const LONG_ENOUGH: Span = Span::from_secs(1);

/// What copying memory costs on this host, ns per byte: a part of what a byte more costs. It does
/// not change while a program runs, so it is measured once, in some 50 ms.
pub fn memory_copy() -> Option<f64> {
    static COST: OnceLock<Option<f64>> = OnceLock::new();
    *COST.get_or_init(|| netaware_host::memory_copy_ns_per_byte(clock::now))
}

/// What asks: the lane's UDP flow, or a TCP connection.
enum Probe {
    Udp,
    Tcp(TcpEcho),
}

impl Probe {
    fn open_all(lane: &mut Lane, request: &LatencyRequest, lease: Span, stop: &StopFlag) -> Vec<Self> {
        request
            .transports
            .iter()
            .take_while(|_| !stop.is_raised())
            .filter_map(|transport| Self::open(lane, request, *transport, lease))
            .collect()
    }

    fn open(lane: &mut Lane, request: &LatencyRequest, transport: Transport, lease: Span) -> Option<Self> {
        let target: &Target = &request.target;
        // An owner's cap is on one test: one that blocks outlast is opened again between them.
        let cap = lane.duration_cap();
        let lease = cap.map_or(lease, |cap| cap.min(lease));
        match transport {
            Transport::Udp => {
                lane::attach_echo(std::slice::from_mut(lane), target, lease, sizes(request));
                lane.echo.is_some().then_some(Self::Udp)
            }
            Transport::Tcp => match TcpEcho::open(lane.session()?, &target.options, lease, sizes(request)) {
                Ok(echo) => Some(Self::Tcp(echo)),
                Err(cause) => {
                    lane.fail("open the echo connection", cause);
                    None
                }
            },
        }
    }

    /// The responder has ended a connection whose messages need its place.
    fn note_end(&mut self) {
        if let Self::Tcp(echo) = self {
            echo.until = clock::now();
        }
    }

    /// Makes sure that the responder answers for another `needed`; `false` where it does not.
    fn keep(&mut self, lane: &mut Lane, request: &LatencyRequest, needed: Span, lease: Span) -> bool {
        let cap = lane.duration_cap();
        let at_most = cap.map_or(needed, |cap| needed.min(cap - lane.round_trip() * 4));
        match self {
            Self::Udp => {
                lane.keep_echo(&request.target, needed, lease, sizes(request));
                lane.echo.is_some()
            }
            Self::Tcp(echo) if echo.until >= clock::now() + at_most => true,
            Self::Tcp(_) => {
                let Some(Self::Tcp(fresh)) = Self::open(lane, request, Transport::Tcp, lease) else {
                    return false;
                };
                let Self::Tcp(old) = std::mem::replace(self, Self::Tcp(fresh)) else { return true };
                if let Some(Err(cause)) = lane.session().map(|session| old.close(session)) {
                    lane.fail_to_end("end the echo connection", cause);
                }
                lane.is_alive()
            }
        }
    }

    fn transport(&self) -> Transport {
        match self {
            Self::Udp => Transport::Udp,
            Self::Tcp(_) => Transport::Tcp,
        }
    }

    /// `overdue` is told until when the last answers are waited for where they are late.
    fn run(
        &mut self,
        lane: &mut Lane,
        order: &EchoOrder,
        overdue: &mut dyn FnMut(Overdue),
    ) -> Option<EchoRun> {
        let Self::Tcp(echo) = self else { return lane.echo_telling(order, overdue) };
        let over = lane.session()?.over.clone();
        match echo.run(order, &over) {
            Ok(run) => {
                lane.check("measure latency");
                Some(run)
            }
            Err(Broke { cause, run }) => {
                // The person who stopped it knows why nothing more came.
                if !matches!(cause, Cause::Stopped) {
                    lane.fail("measure latency", cause);
                }
                run.map(|run| *run)
            }
        }
    }
}

fn sizes(request: &LatencyRequest) -> EchoSizes {
    EchoSizes { request: request.request, response: request.response }
}

fn phase(request: &LatencyRequest, transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp if request.transports.len() > 1 => "latency over TCP",
        Transport::Udp if request.transports.len() > 1 => "latency over UDP",
        _ => "latency",
    }
}

fn turns_of_each(request: &LatencyRequest) -> i64 {
    i64::try_from(request.target.versions.len() * request.transports.len()).unwrap_or(1)
}

/// How long one version takes over one transport, for the person who waits: a closed loop as on a
/// path of 100 us.
fn expected(request: &LatencyRequest) -> Span {
    let each = match request.rhythm {
        Rhythm::Closed(_) => Span::from_micros(100),
        Rhythm::Open { spacing, .. } => spacing,
    };
    lasting(request, each)
}

/// The same now that the round trips are known: a closed loop takes one per request, and each block
/// waits for its last answers.
fn promise(
    request: &LatencyRequest,
    lanes: &[Lane],
    probes: &[Vec<Probe>],
    needs: &Needs,
    blocks: u16,
) -> Span {
    let of = |lane: &Lane| {
        let rtt = lane.round_trip();
        let cap = lane
            .duration_cap()
            .filter(|cap| needs.block > *cap)
            .map(|cap| needs.longest(cap) * i64::from(blocks));
        let sending = lasting_at(request, rtt);
        cap.map_or(sending, |cap| sending.min(cap)) + rtt * i64::from(blocks)
    };
    let all = lanes.iter().zip(probes);
    all.map(|(lane, probes)| of(lane) * i64::try_from(probes.len()).unwrap_or(1)).sum()
}

/// What a block needs of the responder.
struct Needs {
    /// Of one version and transport, with the last answers and the exchanges around it.
    block: Span,
    /// What of that is not spent on sending.
    margin: Span,
}

impl Needs {
    fn of(request: &LatencyRequest, lanes: &[Lane], blocks: u16) -> Self {
        let reaches = lanes.iter().filter_map(|lane| lane.result.reach.as_ref());
        let connect = reaches.filter_map(Reach::longest_round_trip).max().unwrap_or_default();
        let patience = Patience::of(request.patience, request.waiting).knowing(Some(connect)).span();
        let margin = patience + connect * EXCHANGES + AROUND_BLOCK;
        Self { block: at_most(request, connect) / i64::from(blocks.max(1)) + margin, margin }
    }

    /// What so many blocks need that are run as one.
    fn of_blocks(&self, blocks: usize) -> Span {
        (self.block - self.margin) * i64::try_from(blocks).unwrap_or(i64::MAX) + self.margin
    }

    /// How many of the blocks that are left are run as one on a path that loses answers: each block
    /// waits for those that are missing, and blocks cancel a drift, which is worth less than that
    /// time. Not more than the responder's owner allows one test to last.
    fn joined(&self, left: u16, cap: Option<Span>) -> u16 {
        let fits = |blocks: &u16| cap.is_none_or(|cap| self.of_blocks(usize::from(*blocks)) <= cap);
        (1..=left).rev().find(fits).unwrap_or(1)
    }

    /// How long a block may send, where the responder's owner lets tests run no longer than `cap`.
    fn longest(&self, cap: Span) -> Span {
        (cap - self.margin).max(cap / 2)
    }

    /// A block that ends in time.
    fn within(&self, lane: &mut Lane, order: EchoOrder) -> EchoOrder {
        let Some(cap) = lane.duration_cap() else { return order };
        if self.block <= cap {
            return order;
        }
        let longest = self.longest(cap);
        EchoOrder { time: Some(order.time.map_or(longest, |time| time.min(longest))), ..order }
    }
}

/// Says before it goes on that the responder's owner has a version measured for less time than was
/// asked for.
fn note_shortening(
    request: &LatencyRequest,
    lane: &mut Lane,
    needs: &Needs,
    blocks: u16,
    watch: &mut Watch<'_>,
) {
    let Some(cap) = lane.duration_cap() else { return };
    let (asked, longest) = (expected(request), needs.longest(cap) * i64::from(blocks));
    if needs.block <= cap || asked <= longest {
        return;
    }
    let note = shortening(cap, needs.margin, longest, asked);
    watch.tell(Progress::Note(format!("{}: {note}", lane.version.name())));
    lane.warn(&note);
}

/// Why requests go on for less time than was asked for. `margin` is what of a test is not spent on
/// sending, or more than that where at least half of a test is spent on it.
fn shortening(cap: Span, margin: Span, longest: Span, asked: Span) -> String {
    let around = "the wait for the last answers and the messages around it";
    let why = if cap - margin < cap / 2 {
        format!(
            "and {around} may take {margin}: half of a test is left to them, so that the last answers may not be waited \
             for to the end, and"
        )
    } else {
        format!("of which {around} take up to {margin}:")
    };
    format!(
        "the responder's owner allows tests no longer than {cap}, {why} requests go on for {longest} instead of {asked}"
    )
}

/// How long one version takes over one transport at most, for the responder: a closed loop with
/// round trips of four times what connecting took, and messages at 100 Mbit/s.
fn at_most(request: &LatencyRequest, connect: Span) -> Span {
    let bytes = ByteCount(u64::from(request.request) + u64::from(request.response));
    let each = match request.rhythm {
        Rhythm::Closed(_) => connect * 4 + Span::from_millis(1) + SLOW.time_for(bytes),
        Rhythm::Open { spacing, .. } => spacing,
    };
    lasting(request, each)
}

/// Added to what is asked for: opening and ending.
const SLACK: Span = Span::from_secs(10);
/// Of a block: its own opening where the one before is over, and its last answer.
const EXCHANGES: i64 = 6;
const AROUND_BLOCK: Span = Span::from_millis(250);
/// What a responder grants at most.
const LONGEST_LEASE: Span = Span::from_secs(7 * 24 * 3600);
const SLOW: BitRate = BitRate(100_000_000);

fn lasting(request: &LatencyRequest, each: Span) -> Span {
    let by_count = request.count.map(|count| each * i64::try_from(count).unwrap_or(i64::MAX));
    match (request.time, by_count) {
        (Some(time), Some(count)) => time.min(count),
        (Some(time), None) => time,
        (None, Some(count)) => count,
        (None, None) => Span::from_secs(2),
    }
}

/// One alone needs no turns, and few requests are not worth splitting. Each block waits for its
/// last answer, so on a long path there are fewer: their round trips take a fifth of the time at
/// most.
fn blocks(request: &LatencyRequest, taking_turns: i64, round_trip: Span) -> u16 {
    let enough = request.count.is_none_or(|count| count >= u64::from(BLOCKS) * MIN_OF_BLOCK);
    if taking_turns <= 1 || !enough {
        return 1;
    }
    let fitting = lasting_at(request, round_trip).nanos() / 5 / round_trip.nanos().max(1);
    let filled = due(request).map_or(u64::from(BLOCKS), |due| due / MIN_OF_BLOCK);
    u16::try_from(fitting.min(filled.cast_signed()).clamp(1, i64::from(BLOCKS))).unwrap_or(BLOCKS)
}

/// The same where short trains have shown that the path is slow: a second block can correct a
/// distance that proves too short.
fn correctable(request: &LatencyRequest, blocks: u16) -> u16 {
    let asked = request.count.or_else(|| due(request)).unwrap_or_default();
    if asked >= MIN_OF_BLOCK * 2 { blocks.max(2) } else { blocks }
}

/// A block of fewer requests is not one of the distance that was asked for: it ends with its last
/// answer, and the next one begins at once.
const MIN_OF_BLOCK: u64 = 10;

/// How many requests are due in the time over one version and transport, where their distance is
/// given: the first one at once.
fn due(request: &LatencyRequest) -> Option<u64> {
    let Rhythm::Open { spacing, .. } = request.rhythm else { return None };
    let time = request.time?.nanos().cast_unsigned();
    Some(time.div_ceil(spacing.nanos().max(1).cast_unsigned()))
}

/// How long one version takes over one transport where round trips are known.
fn lasting_at(request: &LatencyRequest, round_trip: Span) -> Span {
    match request.rhythm {
        Rhythm::Closed(depth) => lasting(request, round_trip / i64::from(depth.max(1))),
        Rhythm::Open { spacing, .. } => lasting(request, spacing),
    }
}

/// What is asked of a part of the blocks, run as one.
fn plan(request: &LatencyRequest, part: &Range<u16>, blocks: u16) -> EchoOrder {
    let pacing = pacing(request.rhythm, part.start);
    let [from, to, blocks] = [part.start, part.end, blocks].map(u64::from);
    let is_even = matches!(pacing, Pacing::Even(_));
    let due = due(request).filter(|_| is_even).unwrap_or(u64::MAX);
    let all = request.count.map_or(due, |count| count.min(due));
    // Rounding must lose or add no request: each block takes up to where it should be by then.
    let count = (all < u64::MAX).then(|| all * to / blocks - all * from / blocks);
    EchoOrder {
        count,
        time: request.time.map(|time| time * (to - from).cast_signed() / blocks.cast_signed()),
        pacing,
        length: request.request,
        response: request.response,
        patience: request.patience,
        waiting: request.waiting,
    }
}

/// Whether a part of the blocks can be run as one: not so many requests would await their answers
/// at once that they cannot be told apart.
fn is_possible(request: &LatencyRequest, part: &Range<u16>, blocks: u16) -> bool {
    let EchoOrder { count, pacing, length, response, patience, .. } = plan(request, part, blocks);
    let [length, response] = [length, response].map(|size| size as usize);
    let udp = EchoPlan { flow: 0, count, pacing, length, response, patience, start: Mono(0) };
    pacing.check(patience, count).is_ok()
        && (!request.transports.contains(&Transport::Udp) || udp.check().is_ok())
}

/// Each block has random distances of its own.
fn pacing(rhythm: Rhythm, block: u16) -> Pacing {
    match rhythm {
        Rhythm::Closed(1) => Pacing::PingPong,
        Rhythm::Closed(depth) => Pacing::Pipeline(depth),
        Rhythm::Open { spacing, arrivals: Arrivals::Even, .. } => Pacing::Even(spacing),
        Rhythm::Open { spacing, arrivals: Arrivals::Poisson, seed } => {
            let seed = SplitMix64::new(seed.wrapping_add(u64::from(block))).next_u64();
            Pacing::Poisson { mean: spacing, seed }
        }
    }
}

fn options_of(request: &LatencyRequest) -> BTreeMap<String, String> {
    let transport = match &request.transports[..] {
        [one] => format!("{one:?}").to_lowercase(),
        _ => "both".to_owned(),
    };
    let given = [
        ("count", request.count.map(|count| count.to_string())),
        ("time", request.time.map(|time| time.to_string())),
        ("request", Some(format!("{} B", request.request))),
        ("response", Some(format!("{} B", request.response))),
        ("transport", Some(transport)),
        ("timeout", Some(report::waited(request.patience, request.waiting))),
        ("window", request.target.options.window.map(|window| format!("{window} B"))),
        (
            "hist",
            request.bins.map(|shape| format!("{} from {}, {} bins", shape.width, shape.low, shape.bins)),
        ),
    ];
    let rhythm = match request.rhythm {
        Rhythm::Closed(1) => vec![("ping-pong", "true".to_owned())],
        Rhythm::Closed(depth) => vec![("depth", depth.to_string())],
        Rhythm::Open { spacing, arrivals: Arrivals::Even, .. } => vec![("spacing", spacing.to_string())],
        Rhythm::Open { spacing, arrivals: Arrivals::Poisson, seed } => vec![
            ("spacing", spacing.to_string()),
            ("arrivals", "poisson".to_owned()),
            ("seed", seed.to_string()),
        ],
    };
    let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.chain(rhythm).map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_measured_in_fewer_blocks() {
        let timed = LatencyRequest {
            count: None,
            time: Some(Span::from_secs(3)),
            ..LatencyRequest::new(Target::new("::1"))
        };
        let blocks = |millis| blocks(&timed, 2, Span::from_millis(millis));
        assert_eq!([0, 20, 120, 600, 3000].map(blocks), [BLOCKS, BLOCKS, 5, 1, 1]);
    }

    /// 50 requests each 140 ms on 8 kbit/s were one block, which nothing could slow down.
    #[test]
    fn a_slow_path_has_a_second_block_that_can_be_slower() {
        let asked = |count| {
            let request = LatencyRequest { count: Some(count), ..LatencyRequest::new(Target::new("::1")) };
            correctable(&request, blocks(&request, 2, Span::from_millis(1200)))
        };
        assert_eq!([10, 50, 200].map(asked), [1, 2, 2]);
    }

    #[test]
    fn blocks_that_lose_answers_are_joined_as_far_as_a_cap_allows() {
        let needs = Needs { block: Span::from_secs(3), margin: Span::from_secs(1) };
        assert_eq!(needs.of_blocks(3), Span::from_secs(7));
        let joined = |cap| needs.joined(7, cap);
        assert_eq!(joined(None), 7);
        assert_eq!([20, 8, 3, 1].map(|cap| joined(Some(Span::from_secs(cap)))), [7, 3, 1, 1]);
        let request = LatencyRequest { count: Some(203), ..LatencyRequest::new(Target::new("::1")) };
        let parts = [0..1, 1..BLOCKS];
        assert_eq!(parts.iter().filter_map(|part| plan(&request, part, BLOCKS).count).sum::<u64>(), 203);
    }

    /// Blocks of 25 numbers each can be told apart in datagrams of 1 B, and 175 in a row cannot.
    #[test]
    fn blocks_are_not_joined_to_more_requests_than_can_be_told_apart() {
        let rhythm = Rhythm::even(Span::from_millis(1));
        let short = LatencyRequest {
            count: Some(200),
            rhythm,
            request: 1,
            response: 1,
            ..LatencyRequest::new(Target::new("::1"))
        };
        let parts = [0..1, 1..6, 1..8];
        assert_eq!(parts.map(|part| is_possible(&short, &part, BLOCKS)), [true, true, false]);
    }

    /// A flow was dropped after 60 kB at a request each 10 ms, and its silence was blamed.
    #[test]
    fn a_flow_that_was_never_silent_was_not_forgotten_for_its_silence() {
        let said = [Span::from_millis(10), Span::from_secs(30)].map(why_forgotten);
        assert!(said[0].contains("after a number of bytes"), "{}", said[0]);
        assert!(said[1].contains("where nothing comes for a while"), "{}", said[1]);
    }

    /// 200 requests each 10 ms went on at that rate on a path that had fallen to 20 kbit/s.
    #[test]
    fn requests_that_queued_become_fewer_in_the_same_time() {
        let request = LatencyRequest::new(Target::new("::1"));
        let needs = Needs { block: Span::from_millis(1250), margin: Span::from_secs(1) };
        let part = 3..4;
        let order = |slower| respaced(&request, &needs, slower, (&part, BLOCKS));
        let planned = order(None);
        assert_eq!((planned.pacing, planned.count), (Pacing::Even(Span::from_millis(10)), Some(25)));
        let slower = order(Some(Span::from_millis(50)));
        assert_eq!((slower.pacing, slower.count), (Pacing::Even(Span::from_millis(50)), Some(25)));
        assert_eq!(slower.time, Some(Span::from_millis(250)));
    }

    #[test]
    fn what_was_found_out_of_a_flow_that_fell_silent_is_in_the_result() {
        let (stage, reason) = ("measure".to_owned(), "nothing came any more after 903 ms".to_owned());
        let why = udp_blocked(Unreachable { stage, reason, advice: "try again".to_owned() });
        let want = "nothing came any more after 903 ms; another UDP flow had no answer either, while the responder \
                    answered over TCP";
        assert_eq!(why.reason, want);
        assert!(why.advice.contains("drops UDP"), "{}", why.advice);
    }

    /// With `--timeout 1us` every answer was late: the flow was called silent, and 6 s were
    /// promised.
    #[test]
    fn a_short_patience_does_not_make_a_flow_silent() {
        let ms = Span::from_millis;
        assert_eq!(patience_with_a_flow(Span::from_micros(1), ms(20)), ms(80));
        assert_eq!(patience_with_a_flow(ms(1000), ms(20)), ms(1000));
    }

    #[test]
    fn looking_into_a_silent_flow_is_announced_once_with_all_that_it_takes() {
        let mut notes = Vec::new();
        let mut listener = |progress| {
            if let Progress::Longer(note) = progress {
                notes.push(note);
            }
        };
        let mut watch = Watch::new(Span::from_secs(6), &mut listener);
        let (patience, opening) = (Span::from_secs(1), Span::from_secs(3));
        let look = looked_into_within(patience, opening);
        let rest = Span::from_secs(5);
        // Half of the patience before the first verdict, when asking again begins, and afterwards.
        watch.review(patience / 2 + look + rest, &looks(patience / 2 + look));
        watch.review(look + rest, &looks(look));
        watch.review(rest, "blocks of requests take longer than planned");
        let [note] = notes.as_slice() else { panic!("{notes:?}") };
        assert!(note.starts_with("this takes about 13.0 s instead of 6.00 s: "), "{note}");
        assert!(note.ends_with("which takes 6.80 s at most"), "{note}");
    }

    #[test]
    fn a_path_of_which_nothing_is_known_does_not_get_requests_at_the_full_rate() {
        let rate = SendRate::at_least(51_200);
        let spacing = |seen| careful_spacing(seen, 64, rate, 0);
        assert_eq!(spacing(Seen::Nothing), Some(Span(56_005_251)));
        assert_eq!(spacing(Seen::Carried(SendRate::at_least(12_800))), Some(Span::from_millis(50)));
        assert_eq!([Seen::Carried(rate), Seen::NotAsked].map(spacing), [None; 2]);
        // 8 kbit/s: at 140 ms the requests and the pings of both sessions were more than that.
        let beside = careful_spacing(Seen::Carried(SendRate::at_least(4571)), 64, rate, 2).unwrap();
        assert_eq!(beside, Span(224_070_022));
    }

    #[test]
    fn blocks_lose_no_request() {
        let request = LatencyRequest { count: Some(203), ..LatencyRequest::new(Target::new("::1")) };
        let sum: u64 =
            (0..BLOCKS).filter_map(|block| plan(&request, &(block..block + 1), BLOCKS).count).sum();
        assert_eq!(sum, 203);
    }

    #[test]
    fn blocks_keep_the_distance_between_requests_that_was_asked_for() {
        let open = |time: i64, spacing: i64| LatencyRequest {
            count: None,
            time: Some(Span::from_millis(time)),
            rhythm: Rhythm::Open { spacing: Span::from_millis(spacing), arrivals: Arrivals::Even, seed: 0 },
            ..LatencyRequest::new(Target::new("::1"))
        };
        // Blocks of one request each would follow each other as fast as they are answered.
        for (time, spacing, due, of) in [(20_000, 3000, 7, 1), (6000, 500, 12, 1), (10_000, 100, 100, 8)] {
            let request = open(time, spacing);
            let blocks = blocks(&request, 2, Span::from_millis(1));
            let counts = (0..blocks).filter_map(|block| plan(&request, &(block..block + 1), blocks).count);
            let counts: Vec<u64> = counts.collect();
            assert_eq!((counts.len(), counts.iter().sum::<u64>()), (of, due), "{counts:?}");
        }
    }

    #[test]
    fn random_distances_differ_from_block_to_block_and_not_from_run_to_run() {
        let rhythm = Rhythm::Open { spacing: Span(5), arrivals: Arrivals::Poisson, seed: 3 };
        assert_eq!(pacing(rhythm, 2), pacing(rhythm, 2));
        assert_ne!(pacing(rhythm, 2), pacing(rhythm, 3));
    }

    #[test]
    fn a_closed_loop_is_given_the_time_that_its_path_and_its_messages_take() {
        let request = LatencyRequest {
            count: Some(10),
            rhythm: Rhythm::Closed(1),
            request: 100_000_000,
            response: 25_000_000,
            ..LatencyRequest::new(Target::new("::1"))
        };
        // A gigabit each at 100 Mbit/s, 1 ms on top.
        assert_eq!(at_most(&request, Span::ZERO), (Span::from_secs(10) + Span::from_millis(1)) * 10);
        let timed = LatencyRequest { count: None, time: Some(Span::from_secs(3)), ..request };
        assert_eq!(at_most(&timed, Span::ZERO), Span::from_secs(3));
    }

    /// A cap of 2 s halved 1.5 s without saying what the rest was for.
    #[test]
    fn a_shortened_measurement_says_what_else_counts() {
        let ms = Span::from_millis;
        let request =
            LatencyRequest { count: None, time: Some(ms(1500)), ..LatencyRequest::new(Target::new("::1")) };
        let needs = Needs::of(&request, &[], 1);
        let said = shortening(ms(2000), needs.margin, needs.longest(ms(2000)), ms(1500));
        let want = "the wait for the last answers and the messages around it may take 1.25 s: half of a test";
        assert!(said.contains(want), "{said}");
        assert!(said.ends_with("requests go on for 1.00 s instead of 1.50 s"), "{said}");
        let said = shortening(ms(4000), needs.margin, needs.longest(ms(4000)), ms(9000));
        let want = "no longer than 4.00 s, of which the wait for the last answers and the messages around it take up to \
                    1.25 s: requests go on for 2.75 s instead of 9.00 s";
        assert!(said.ends_with(want), "{said}");
    }

    /// "No longer than 1.00 s, of which ... up to 1.37 s: requests go on for 500 ms."
    #[test]
    fn a_sum_of_times_that_is_longer_than_a_test_may_be_is_not_said_to_be_part_of_it() {
        let ms = Span::from_millis;
        let said = shortening(ms(1000), ms(1370), ms(500), ms(6000));
        assert!(!said.contains("of which") && said.contains("half of a test is left to them"), "{said}");
        assert!(said.ends_with("requests go on for 500 ms instead of 6.00 s"), "{said}");
    }

    #[test]
    fn a_block_under_an_owners_cap_ends_before_the_responder_ends_it() {
        let request = LatencyRequest {
            count: None,
            time: Some(Span::from_secs(40)),
            ..LatencyRequest::new(Target::new("::1"))
        };
        let needs = Needs::of(&request, &[], 1);
        let cap = Span::from_secs(30);
        assert!(needs.block > cap && needs.longest(cap) + needs.margin == cap);
        assert!(needs.longest(cap) >= Span::from_secs(28), "a second of patience and what is around it");
        // In eight blocks the same time needs no shortening.
        assert!(Needs::of(&request, &[], 8).block < cap);
        assert_eq!(needs.longest(Span::from_millis(100)), Span::from_millis(50), "some, however little");
    }
}
