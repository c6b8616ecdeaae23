//! `netaware owd`: delay and loss of each way, by STAMP packets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use netaware_engine::NotSent;
use netaware_io::stamp::{self, IfSilent, StampOptions, StampRun, StampRunError};
use netaware_io::stop::StopFlag;
use netaware_io::zone::{self, ZonedIp};
use netaware_io::{clock, driver::Drive};
use netaware_probe::outage;
use netaware_probe::stamp::report::StampLog;
use netaware_probe::stamp::{StampCounts, StampEvent};
use netaware_record::passive::ClockState;
use netaware_record::{IpVersion, OwdResult, Record, Unreachable, VersionResult};
use netaware_stats::ceasing::{Ceased, Ceasing};
use netaware_stats::patience::{TIMES, UNKNOWN, Waiting};
use netaware_units::{ByteCount, Mono, Span, Wall};
use netaware_wire::proof::Key;
use netaware_wire::stamp::ErrorEstimate;

use crate::broke_off;
use crate::careful;
use crate::dial::dial_until;
use crate::own_absence;
use crate::progress::{Progress, Watch};
use crate::queueing;
use crate::report;
use crate::request::Target;
use crate::resolve::resolve;
use crate::stage::{Cause, Failure, OWN_HOST};

/// What to find out.
#[derive(Debug, Clone)]
pub struct OwdRequest {
    /// The reflector, and its port.
    pub target: Target,
    /// Packets over each IP version.
    pub count: u64,
    /// From packet to packet.
    pub interval: Span,
    /// UDP payload, bytes.
    pub length: usize,
    /// A packet without an answer for so long is lost.
    pub patience: Span,
    /// How that is meant.
    pub waiting: Waiting,
    /// Packets prove it and must.
    pub key: Option<Key>,
    /// Whether a path that carries less gets fewer packets.
    pub slowing: Slowing,
}

/// What becomes of an interval at which packets would fill the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slowing {
    /// It stays: somebody typed it.
    Never,
    /// It becomes longer, and so does the measurement: somebody typed how many packets are sent.
    KeepsCount,
    /// It becomes longer, and fewer packets are sent in the same time, of which up to a half goes
    /// to finding out what the path carries.
    KeepsTime,
}

impl OwdRequest {
    /// 10 s at 100 packets a second.
    pub fn new(target: Target) -> Self {
        let usual = StampOptions::new();
        let (interval, length, patience) = (usual.interval, usual.length, usual.patience);
        Self {
            target,
            count: 1000,
            interval,
            length,
            patience,
            waiting: usual.waiting,
            key: None,
            slowing: Slowing::KeepsTime,
        }
    }

    fn options(&self) -> BTreeMap<String, String> {
        let given = [
            ("count", Some(self.count.to_string())),
            ("interval", Some(self.interval.to_string())),
            ("length", Some(format!("{} B", self.length))),
            ("timeout", Some(report::waited(self.patience, self.waiting))),
            ("key", self.key.as_ref().map(|_| "given".to_owned())),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Our clock is as good as whoever keeps it says, who knows more than the kernel was told.
    fn flow(&self, local: &ClockState) -> StampOptions {
        let told = local.bound.filter(|_| local.synchronised);
        StampOptions {
            error: told.map_or(StampOptions::new().error, |bound| ErrorEstimate::of(bound, true)),
            interval: self.interval,
            count: Some(self.count),
            length: self.length,
            patience: self.patience,
            waiting: self.waiting,
            if_silent: IfSilent::End,
            key: self.key.clone(),
            socket: self.target.options.clone(),
        }
    }

    /// The same with packets so far apart, and fewer of them where it keeps its time.
    fn every(&self, interval: Span) -> Self {
        let fitting = (self.sends_for().nanos() / interval.nanos().max(1)).max(1).cast_unsigned();
        let is_slower = interval > self.interval;
        let count = if is_slower && self.slowing == Slowing::KeepsTime { fitting } else { self.count };
        Self { count, interval, ..self.clone() }
    }

    /// The same once so much has been `spent` on what the path carries: where it keeps its time,
    /// that is part of it, up to a half.
    fn after(&self, spent: Span) -> Self {
        let left = (self.sends_for() - spent).max(self.sends_for() / 2);
        let interval = self.interval.nanos().max(1).cast_unsigned();
        let fitting = left.or_zero().nanos().cast_unsigned().div_ceil(interval).max(1);
        let keeps_time = self.slowing == Slowing::KeepsTime;
        Self { count: if keeps_time { self.count.min(fitting) } else { self.count }, ..self.clone() }
    }

    /// The same for a port that is closed: whoever said so would answer as soon.
    fn of_a_closed_port(&self) -> Self {
        let patience = self.patience.min(FEW_PATIENCE);
        Self { waiting: Waiting::Exactly, patience, ..self.clone() }
    }

    fn lasts(&self) -> Span {
        // The last answers; a path that is slow is known only then.
        self.sends_for() + self.patience
    }

    fn sends_for(&self) -> Span {
        self.interval * i64::try_from(self.count).unwrap_or(i64::MAX)
    }
}

/// What a flow over one version gave.
pub(crate) struct Flow {
    pub(crate) log: StampLog,
    pub(crate) run: StampRun,
    pub(crate) options: StampOptions,
    /// Our clock.
    pub(crate) local: ClockState,
}

/// Measures all versions at the same time, half an interval apart.
pub fn owd(request: &OwdRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let target = &request.target;
    let opened = report::Opening::now("owd", target, request.options());
    let mut watch = Watch::new(request.lasts(), progress);
    watch.phase("look up", None);
    let resolved = resolve(target);
    let addresses: Vec<_> = target
        .versions
        .iter()
        .map(|version| match &resolved {
            Ok(resolved) => resolved.address(*version),
            Err(failure) => Err(failure.clone()),
        })
        .collect();
    let reflectors: Vec<_> = addresses.iter().map(|it| it.as_ref().ok().copied()).collect();
    let (mut versions, mut locals, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    watch.phase("one-way delay: what the path carries", None);
    let Slowed { request: slower, each, heard, warning, round_trip } =
        slowed(request, &reflectors, stop, &mut watch);
    let request = &slower;
    watch.phase(PHASE, None);
    if heard == Heard::Nobody && request.waiting == Waiting::AtLeast {
        announce_silence(request, request.sends_for(), &mut watch);
    } else {
        watch.announce_because(
            request.lasts(),
            "what the path carries is found out first, and packets go at longer intervals where that is less",
        );
    }
    let (flows, away) = all(request, &each, &reflectors, stop, &mut watch);
    let responders = responders(target, &reflectors, &flows, round_trip, stop, &mut watch);
    let each = each.iter().zip(responders);
    for (((version, address), flow), (request, has_responder)) in
        target.versions.iter().zip(addresses).zip(flows).zip(each)
    {
        let mut result = VersionResult::new(*version);
        match (address, flow) {
            (Err(failure), _) => result.unreachable = Some(failure.unreachable()),
            (Ok(to), Some(Ok(flow))) => {
                result.address = Some(ZonedIp::of(to).to_string());
                result.local = flow.run.local.map(|local| ZonedIp::of(local).to_string());
                locals.extend(flow.run.local.map(ZonedIp::of));
                if flow.log.exchanges().is_empty() {
                    result.unreachable = Some(silence(request, to, &flow.run, has_responder, stop));
                } else {
                    // Nobody is waited for to answer who was told to stop.
                    let last = flow.log.exchanges().iter().map(|exchange| exchange.seq).max();
                    let ceased = last.filter(|_| !stop.is_raised()).and_then(|last| {
                        fell_silent(last, &flow.run.counts, request.interval, flow.run.patience)
                    });
                    let local = flow.run.local.map(ZonedIp::of);
                    result.unreachable = ceased.map(|ceased| broken_off(&ceased, &flow, local, to, away));
                    let mut owd = report::owd::result(*version, request, &flow);
                    let unanswered = ceased.map_or(0, |ceased| owd.unknown_are(ceased.unanswered));
                    owd.unknown_are(flow.log.held_up());
                    warnings.extend(warnings_of(*version, &flow, request.interval, &owd, unanswered, away));
                    let class = owd.forward.dscp;
                    warnings.extend(rewritten(*version, request.target.options.dscp, class));
                    result.owd = Some(owd);
                }
            }
            (Ok(to), Some(Err(error))) => result.unreachable = Some(unusable(to, &error)),
            (Ok(_), None) => {}
        }
        versions.push(result);
    }
    // Of packets that nobody answered nothing depends on how far apart they were.
    if versions.iter().any(|version| version.owd.is_some()) {
        warnings.splice(0..0, warning);
    }
    report::finish_alone(opened, versions, warnings, &locals, stop)
}

/// What is sent now that a few packets have shown what the path carries.
struct Slowed {
    /// To versions that answered.
    request: OwdRequest,
    /// To each version: one that did not answer gets packets at the careful rate.
    each: Vec<OwdRequest>,
    heard: Heard,
    /// What is slower and why.
    warning: Option<String>,
    /// The longest that one of the few packets showed.
    round_trip: Span,
}

/// The same request with a longer interval, if nobody typed the one that it has and the packets of
/// both versions together would fill the path: their delays would be those of the queue that they
/// make. What the path carries is seen by a few packets right behind each other. A version that did
/// not answer five of them may be slow or far, and gets what every path is given.
fn slowed(
    request: &OwdRequest,
    reflectors: &[Option<SocketAddr>],
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> Slowed {
    let as_it_is = |heard| Slowed {
        request: request.clone(),
        each: vec![request.clone(); reflectors.len()],
        heard,
        warning: None,
        round_trip: Span::ZERO,
    };
    if request.slowing == Slowing::Never {
        return as_it_is(Heard::Unknown);
    }
    let (options, began_at) = (few(request), clock::now());
    let tried: Vec<Option<(Option<StampLog>, bool)>> = thread::scope(|scope| {
        let each = |to: &Option<SocketAddr>| {
            let (to, options) = ((*to)?, &options);
            Some(scope.spawn(move || {
                let mut log = StampLog::default();
                // Why a flow cannot be is said of the measurement itself.
                let run = stamp::run(to, options, stop, &mut |event| log.observe(&event));
                let is_closed =
                    log.exchanges().is_empty() && run.as_ref().is_ok_and(|run| is_refused(&run.drive));
                (run.is_ok().then_some(log), is_closed)
            }))
        };
        let started: Vec<_> = reflectors.iter().map(each).collect();
        started.into_iter().map(|flow| flow.and_then(|flow| flow.join().ok())).collect()
    });
    let closed: Vec<bool> = tried.iter().map(|it| it.as_ref().is_some_and(|it| it.1)).collect();
    let logs: Vec<_> = tried.into_iter().map(|it| it?.0).collect();
    let heard = heard(&logs, &closed);
    if stop.is_raised() {
        return as_it_is(heard);
    }
    let apart: Vec<Option<Span>> = logs.iter().map(|log| log.as_ref().and_then(apart)).collect();
    let unknown = logs.iter().zip(&apart).filter(|(log, apart)| log.is_some() && apart.is_none()).count();
    // Whoever says that a port is closed is sent next to nothing.
    let silent = unknown.saturating_sub(closed.iter().filter(|is_closed| **is_closed).count());
    let together = together_of(&apart, silent);
    // Where only some were answered in time the path is slow or loses much, whatever those over
    // the other version came to.
    let is_hard = logs
        .iter()
        .zip(&apart)
        .any(|(log, apart)| apart.is_none() && log.as_ref().is_some_and(|log| !log.exchanges().is_empty()));
    let flows = logs.iter().flatten().count();
    let sharing = if is_hard { flows } else { unknown };
    let (seen, careful) = intervals(request, together, sharing);
    let careful = if is_hard {
        let together = together_by_few(&logs, &apart, &closed);
        let longest = logs.iter().flatten().filter_map(StampLog::rtt).map(|rtt| rtt.min).max();
        let passed_at = began_at + passes_within(together, longest.unwrap_or_default());
        wait_until(passed_at, request.after(passed_at - began_at).lasts(), stop, watch);
        careful.max(apart_by_few(together, flows))
    } else {
        careful
    };
    let warning =
        warning_of(request, together, if is_hard { request.interval } else { seen }, careful, unknown);
    let seen = if is_hard { careful } else { seen };
    let request = request.after(clock::now() - began_at);
    let (slower, most_careful) = (request.every(seen), request.every(careful));
    let each = apart.iter().zip(&closed).map(|(apart, is_closed)| match apart {
        _ if *is_closed => most_careful.of_a_closed_port(),
        Some(_) => slower.clone(),
        None => most_careful.clone(),
    });
    let each = each.collect();
    let is_known = apart.iter().any(Option::is_some);
    let round_trip = logs.iter().flatten().filter_map(StampLog::rtt).map(|rtt| rtt.max).max();
    Slowed {
        warning,
        request: match heard {
            Heard::Closed => most_careful.of_a_closed_port(),
            _ if is_known => slower,
            _ => most_careful,
        },
        each,
        heard,
        round_trip: round_trip.unwrap_or_default(),
    }
}

/// How far apart packets of all versions come together. One that is silent is taken for a sharer
/// of the same path: what it is sent passes the same narrow link, answered or not.
fn together_of(apart: &[Option<Span>], silent: usize) -> Span {
    let known = apart.iter().flatten().count();
    let sum: Span = apart.iter().flatten().copied().sum();
    let (all, known) = (known + silent, known.max(1));
    sum * i64::try_from(all).unwrap_or(1) / i64::try_from(known).unwrap_or(1)
}

/// How far apart packets of all versions come together where some had fewer answers than tell: that
/// makes packets slower, and never faster.
fn together_by_few(logs: &[Option<StampLog>], apart: &[Option<Span>], closed: &[bool]) -> Span {
    let of_few = |(log, apart): (&Option<StampLog>, &Option<Span>)| {
        apart.or_else(|| log.as_ref().and_then(hardly_apart))
    };
    let few: Vec<Option<Span>> = logs.iter().zip(apart).map(of_few).collect();
    let is_silent = |it: &((&Option<StampLog>, &Option<Span>), &bool)| {
        let ((log, few), is_closed) = it;
        log.is_some() && few.is_none() && !**is_closed
    };
    let silent = logs.iter().zip(&few).zip(closed).filter(is_silent).count();
    together_of(&few, silent)
}

/// What was sent before has left the queues by then. That it is waited for is said first, where the
/// whole takes longer by it; `afterwards` is what follows.
fn wait_until(at: Mono, afterwards: Span, stop: &StopFlag, watch: &mut Watch<'_>) {
    let left = at - clock::now();
    if left > Span::ZERO {
        watch.review(
            left + afterwards,
            "the first packets wait in a queue of the path, and others go once they have left it",
        );
    }
    while clock::now() < at && !stop.is_raised() {
        clock::sleep_until(at.min(clock::now() + STOP_SEEN_WITHIN));
    }
}

/// The interval of versions that answered, where packets come so far apart together, and that of
/// `unknown` versions that did not, which is no shorter.
fn intervals(request: &OwdRequest, together: Span, unknown: usize) -> (Span, Span) {
    let length = u32::try_from(request.length).unwrap_or(u32::MAX);
    let each = careful::unknown(length).bit_rate().time_for(ByteCount(u64::from(length)));
    let careful = each * i64::try_from(unknown).unwrap_or(1);
    let seen = (together * 5 / 4).max(request.interval);
    (seen, careful.max(seen))
}

fn warning_of(
    request: &OwdRequest,
    together: Span,
    seen: Span,
    careful: Span,
    unknown: usize,
) -> Option<String> {
    let usual = request.interval;
    let came = (seen > usual)
        .then(|| format!("packets came no closer than {together} apart: they are sent every {seen} instead of every {usual}"));
    let silent = (unknown > 0 && careful > usual).then(|| {
        format!(
            "too few of the first packets were answered to tell what the path carries of one version or both: there \
             they are sent every {careful} instead of every {usual}"
        )
    });
    let said: Vec<String> = came.into_iter().chain(silent).collect();
    (!said.is_empty()).then(|| format!("no --interval was given, and {}", said.join("; ")))
}

fn heard(logs: &[Option<StampLog>], closed: &[bool]) -> Heard {
    let mut tried = logs.iter().zip(closed).filter_map(|(log, is_closed)| Some((log.as_ref()?, is_closed)));
    if tried.clone().next().is_none() {
        // Nobody is waited for.
        Heard::Unknown
    } else if tried.clone().any(|(log, _)| !log.exchanges().is_empty()) {
        Heard::Somebody
    } else if closed.contains(&true) && tried.all(|(_, is_closed)| *is_closed) {
        Heard::Closed
    } else {
        Heard::Nobody
    }
}

/// Whether the first few packets were answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// None were sent.
    Unknown,
    Nobody,
    /// Each of them was rejected: nobody listens at that port.
    Closed,
    Somebody,
}

/// A few packets right behind each other.
fn few(request: &OwdRequest) -> StampOptions {
    StampOptions {
        interval: FEW_APART,
        count: Some(FEW),
        patience: FEW_PATIENCE,
        waiting: Waiting::Exactly,
        ..request.flow(&netaware_host::clock::read())
    }
}

/// The mean time from answer to answer; `None` where too few came.
fn apart(log: &StampLog) -> Option<Span> {
    mean_gap(log.exchanges().iter().map(|exchange| exchange.came_at))
}

/// The closest distance of answers, of which there are fewer than [`apart`] needs: a slow path lets
/// none through closer, and a single one that is late says nothing.
fn hardly_apart(log: &StampLog) -> Option<Span> {
    closest(log.exchanges().iter().map(|exchange| (exchange.seq, exchange.came_at)))
}

fn closest(came: impl Iterator<Item = (u64, Wall)>) -> Option<Span> {
    let mut came: Vec<(u64, Wall)> = came.collect();
    came.sort_unstable();
    let began_at = came.first()?.1;
    let answers: Vec<(u64, Span)> = came.into_iter().map(|(seq, at)| (seq, at.since(began_at))).collect();
    queueing::served_closest(&answers)
}

/// The interval that packets of so many `flows` need which come so far apart together, as far as
/// few answers are believed.
fn apart_by_few(together: Span, flows: usize) -> Span {
    (together * 5 / 4).min(LONGEST_BY_FEW * i64::try_from(flows).unwrap_or(1))
}

/// When the few packets of all versions have left the queues of a path over which they come so far
/// apart, since they were sent: those that follow would wait behind them.
fn passes_within(together: Span, round_trip: Span) -> Span {
    (together * FEW.cast_signed() + round_trip).min(LONGEST_PASSING)
}

fn mean_gap(came: impl ExactSizeIterator<Item = Wall> + Clone) -> Option<Span> {
    let gaps = i64::try_from(came.len()).ok().filter(|came| *came >= MIN_CAME)? - 1;
    Some(came.clone().max()?.since(came.min()?) / gaps)
}

/// Packets that show what the path carries, and how long they are waited for.
const FEW: u64 = 8;
/// So many of them tell. A single delay of the first of two or three, with the others held back
/// behind it, makes a slow path look fast.
const MIN_CAME: i64 = 5;
/// Packets of one version are no further apart because few answers say so.
const LONGEST_BY_FEW: Span = Span::from_millis(400);
/// Longer queues are rare.
const LONGEST_PASSING: Span = Span::from_secs(10);
const FEW_PATIENCE: Span = Span::from_secs(2);
/// A plan of packets that are closer has more of them within their patience than it may.
const FEW_APART: Span = Span::from_micros(50);

/// Runs all flows; for how long this host did not run the program meanwhile is said beside them.
fn all(
    request: &OwdRequest,
    each: &[OwdRequest],
    addresses: &[Option<SocketAddr>],
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> (Vec<Option<Result<Flow, StampRunError>>>, Span) {
    let local = netaware_host::clock::read();
    let (local, starts_at) = (&local, clock::now());
    let (tell, told) = channel();
    let run = || {
        thread::scope(|scope| {
            let start = |(index, (to, request)): (usize, (&Option<SocketAddr>, &OwdRequest))| {
                let (to, request) = ((*to)?, request.clone());
                let apart = request.interval / 2 * i64::try_from(index).unwrap_or(0);
                let tell = tell.clone();
                Some(scope.spawn(move || {
                    clock::sleep_until(starts_at + apart.min(Span::from_secs(1)));
                    over(&request, to, local, stop, &tell)
                }))
            };
            let started: Vec<_> = addresses.iter().zip(each).enumerate().map(start).collect();
            drop(tell);
            let flows = addresses.iter().flatten().count();
            announce_patience(request, flows, starts_at, &told, watch);
            started.into_iter().map(|flow| flow.and_then(|flow| flow.join().ok())).collect()
        })
    };
    own_absence::watching(run)
}

/// Says beforehand where the last answers are waited for longer than was promised: as soon as an
/// answer shows that, or where one of the flows had none within the patience that was promised.
/// Returns when all flows are over.
fn announce_patience(
    request: &OwdRequest,
    flows: usize,
    starts_at: Mono,
    told: &Receiver<(IpVersion, Span)>,
    watch: &mut Watch<'_>,
) {
    let (mut longest, mut heard) = (None, Vec::new());
    let mut silent_at = Some(starts_at + request.patience).filter(|_| request.waiting == Waiting::AtLeast);
    let mut ends_at = Some(starts_at + request.sends_for() + ENDS_LATE);
    let until = |patience: Span| starts_at + request.sends_for() + patience - clock::now();
    loop {
        let news = match silent_at.into_iter().chain(ends_at).min() {
            Some(at) => told.recv_timeout((at - clock::now()).or_zero().to_std()),
            None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match news {
            Ok((version, patience)) => {
                if !heard.contains(&version) {
                    heard.push(version);
                }
                silent_at = silent_at.filter(|_| heard.len() < flows);
                if longest.is_none_or(|known| patience > known) {
                    longest = Some(patience);
                    let round_trip = patience / TIMES;
                    ends_at = ends_at.map(|_| starts_at + request.sends_for() + round_trip.max(ENDS_LATE));
                    let why = format!("on this path an answer is waited for {patience}");
                    watch.announce_because(until(patience), &why);
                    // Somebody answers there: what is to be said is said now.
                    watch.phase(PHASE, Some(version));
                }
            }
            Err(RecvTimeoutError::Timeout) if silent_at.is_some_and(|at| at <= clock::now()) => {
                // What is said then is the longest wait.
                (silent_at, ends_at) = (None, None);
                announce_silence(request, until(Span::ZERO), watch);
            }
            Err(RecvTimeoutError::Timeout) => {
                ends_at = None;
                let patience = longest.unwrap_or(request.patience);
                watch.extends(patience, "the last packets have no answer yet, and it is waited for");
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Where all packets have an answer, a flow is over sooner after the last one left.
const ENDS_LATE: Span = Span::from_millis(300);

/// Packets are sent for another `sends_for`, and nobody knows yet how long answers take.
fn announce_silence(request: &OwdRequest, sends_for: Span, watch: &mut Watch<'_>) {
    let patience = UNKNOWN.max(request.patience);
    let why = format!("no answer has come yet, and the first is waited for {patience}");
    watch.announce_because(sends_for.or_zero() + patience, &why);
}

/// Ends early where the first packets have no answer at all: there is nobody. What answers show of
/// how long they must be waited for goes to `tell`.
fn over(
    request: &OwdRequest,
    to: SocketAddr,
    local: &ClockState,
    stop: &StopFlag,
    tell: &Sender<(IpVersion, Span)>,
) -> Result<Flow, StampRunError> {
    let (options, mut log) = (request.flow(local), StampLog::default());
    let version = if to.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
    let run = stamp::run(to, &options, stop, &mut |event| {
        if let StampEvent::Patience(patience) = &event {
            // Whoever listens is there until this flow is over.
            let _ = tell.send((version, *patience));
        }
        log.observe(&event);
    })?;
    Ok(Flow { log, run, options, local: local.clone() })
}

fn silence(
    request: &OwdRequest,
    to: SocketAddr,
    run: &StampRun,
    has_responder: bool,
    stop: &StopFlag,
) -> Unreachable {
    let asked = if request.key.is_some() { "packets that prove the key" } else { "packets" };
    let at = zone::shown(to);
    if run.drive.sends == 0
        && let Some(why) = run.drive.why_not_sent
    {
        let reason = format!("nothing could be sent to {at}: {}", report::why_not_sent(why));
        return Unreachable { stage: "probe".to_owned(), reason, advice: OWN_HOST.to_owned() };
    }
    if run.drive.sends == 0 && stop.is_raised() {
        return Failure::new("probe", Some(to), Cause::Stopped).unreachable();
    }
    let refused = is_refused(&run.drive);
    let (sent, waited) = (run.drive.sends, run.patience);
    let reason = if refused {
        format!("{at} refuses STAMP: UDP port {} is closed", to.port())
    } else {
        format!("{at} answered none of {sent} STAMP {asked} within {waited}")
    };
    let unproven = run.counts.ignored.unproven;
    let advice = if unproven > 0 {
        format!("{unproven} answers do not prove the key: check that both sides have the same")
    } else if has_responder {
        match request.key {
            Some(_) => "check that the responder there has the same key, and that it was started with \
                        'netaware serve --stamp'"
                .to_owned(),
            None => format!(
                "a netaware responder seems to run there: if it was started with 'netaware serve --stamp', a firewall drops UDP \
                 to port {}; if not, start it so",
                to.port()
            ),
        }
    } else if request.key.is_some() {
        "check that the reflector has the same key, and that no firewall drops UDP on that port".to_owned()
    } else {
        "run 'netaware serve --stamp' or another reflector there, name its port with --port; one with a key needs \
         --key-file, and a slower path a longer -W"
            .to_owned()
    };
    Unreachable { stage: "probe".to_owned(), reason, advice }
}

fn is_refused(drive: &Drive) -> bool {
    drive.refusals > 0 && drive.last_refusal.is_none_or(|errno| errno == ECONNREFUSED)
}

/// Whether somebody accepts connections at the responder's usual port, for each version of which
/// nothing came. All are asked at the same time, for as long as the round trips need that another
/// version showed, or this one at first.
fn responders(
    target: &Target,
    reflectors: &[Option<SocketAddr>],
    flows: &[Option<Result<Flow, StampRunError>>],
    round_trip: Span,
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> Vec<bool> {
    let run = || flows.iter().map(|flow| flow.as_ref().and_then(|flow| flow.as_ref().ok()));
    let asked: Vec<Option<SocketAddr>> = reflectors
        .iter()
        .zip(run())
        .map(|(to, flow)| to.filter(|_| flow.is_some_and(is_unanswered)))
        .collect();
    if stop.is_raised() || asked.iter().all(Option::is_none) {
        return vec![false; asked.len()];
    }
    let longest = run().flatten().filter_map(|flow| flow.log.rtt()).map(|rtt| rtt.max).max();
    let patience = look_patience(round_trip.max(longest.unwrap_or_default()));
    if patience > LOOK_PATIENCE {
        watch.review(patience, "of one version or both nothing came, and a responder is looked for there");
    }
    let options = &target.options;
    thread::scope(|scope| {
        let look = |to: &Option<SocketAddr>| {
            let at = ZonedIp::of((*to)?).at(netaware_wire::DEFAULT_PORT);
            Some(scope.spawn(move || dial_until(at, options, patience, stop).is_ok()))
        };
        let looks: Vec<_> = asked.iter().map(look).collect();
        looks.into_iter().map(|look| look.is_some_and(|look| look.join().is_ok_and(|found| found))).collect()
    })
}

/// Whether packets were sent and nothing came that would say why they have no answer.
fn is_unanswered(flow: &Flow) -> bool {
    flow.log.exchanges().is_empty() && flow.run.drive.sends > 0 && flow.run.counts.ignored.unproven == 0
}

/// How long a responder is looked for at the end of a path with this round trip, if one is known.
fn look_patience(round_trip: Span) -> Span {
    (round_trip * TIMES).clamp(LOOK_PATIENCE, LONGEST_LOOK)
}

/// A flow over which nothing came any more: the path is not blamed for packets that were due while
/// this host did not run the program.
fn broken_off(
    ceased: &Ceased,
    flow: &Flow,
    local: Option<ZonedIp>,
    to: SocketAddr,
    away: Span,
) -> Unreachable {
    if away > Span::ZERO && is_overdue(flow) && ceased.not_sent > ceased.unanswered {
        return broke_off::stopped_here(ceased, "packets", away);
    }
    let round_trip = flow.log.rtt().map_or(Span::ZERO, |rtt| rtt.max);
    let refused = flow.run.drive.why_not_sent.and_then(report::refused);
    broke_off::unreachable(ceased, "packets", local, Some((to, round_trip)), refused)
}

/// Whether packets were not sent because the program came round to them too late.
fn is_overdue(flow: &Flow) -> bool {
    flow.run.drive.why_not_sent == Some(NotSent::Overdue)
}

fn unusable(to: SocketAddr, error: &StampRunError) -> Unreachable {
    let advice = match error {
        StampRunError::Plan(_) => "choose another --length or --interval",
        _ => "check that this host has an address and a route of this version",
    };
    Unreachable {
        stage: "probe".to_owned(),
        reason: format!("STAMP to {to}: {error}"),
        advice: advice.to_owned(),
    }
}

/// A flow whose answers ceased before its end: it was not measured to its end. `last` is the number
/// of the last packet that was answered.
fn fell_silent(last: u64, counts: &StampCounts, interval: Span, patience: Span) -> Option<Ceased> {
    let asked = counts.answered + counts.lost + counts.abandoned + counts.not_sent;
    let due = |number: u64| Mono(0) + interval * i64::try_from(number).unwrap_or(i64::MAX);
    let mut ceasing = Ceasing::beginning(due(0));
    ceasing.came(due(last));
    // Where in the flow those are that never left is not known here: at its end, if they can be.
    let silent = asked.saturating_sub(last + 1);
    let unanswered = silent.saturating_sub(counts.not_sent);
    for number in last + 1..asked {
        if number <= last + unanswered {
            ceasing.unanswered(due(number));
        } else {
            ceasing.not_sent(due(number));
        }
    }
    ceasing.ceased(patience)
}

/// A warning that a router on the way wrote another DSCP into the packets.
fn rewritten(version: IpVersion, sent: u8, arrived: Option<u8>) -> Option<String> {
    let arrived = arrived.filter(|arrived| *arrived != sent)?;
    let name = version.name();
    Some(format!(
        "{name}: packets sent with DSCP {sent} arrived with DSCP {arrived}: the path writes it over"
    ))
}

/// What to warn of, so many packets after the last answer being `unanswered`. For so long this host
/// was `away`: it did not run the program.
fn warnings_of(
    version: IpVersion,
    flow: &Flow,
    interval: Span,
    owd: &OwdResult,
    unanswered: u64,
    away: Span,
) -> Vec<String> {
    let name = version.name();
    let mut warnings = Vec::new();
    let not_sent = flow.run.counts.not_sent;
    let overdue = if is_overdue(flow) { not_sent } else { 0 };
    let explained = stopped_in_words(away, overdue);
    warnings.extend(explained.as_ref().map(|text| format!("{name}: {text}")));
    if let Some(by) = flow.run.stepped {
        warnings.push(format!(
            "{name}: this host's clock was set by {by} meanwhile; delays are by the clock as it was before"
        ));
    }
    let is_explained = explained.is_some() && overdue > 0;
    if let Some(why) = flow.run.drive.why_not_sent.filter(|_| !is_explained) {
        let why = report::why_not_sent(why);
        warnings.push(format!("{name}: {not_sent} packets were not sent by this host: {why}"));
    }
    let told = &flow.run.drive.rejections;
    let rejected: Vec<_> = told.iter().map(|one| outage::rejected(one.first, one.last, interval)).collect();
    let in_rows = flow.log.rejected(unanswered, &rejected);
    let rejections = report::rejected::in_words(told, in_rows, owd.lost, "packets", "measurement");
    warnings.extend(rejections.map(|text| format!("{name}: {text}")));
    let outages = flow.log.outages(interval, unanswered, &rejected);
    let outages = outages.and_then(|it| it.in_words(owd.lost, "packets"));
    warnings.extend(outages.map(|text| format!("{name}: {text}")));
    warnings.extend(flow.log.restarts_in_words().map(|text| format!("{name}: {text}")));
    warnings.extend(flow.log.held_up_in_words().map(|text| format!("{name}: {text}")));
    if owd.lost_somewhere > 0 {
        warnings.push(format!(
            "{name}: of {} lost packets it is not known on which way; the reflector does not count its \
             answers, or nothing came behind them",
            owd.lost_somewhere
        ));
    }
    let rtts: Vec<f64> = flow.log.exchanges().iter().map(|exchange| exchange.rtt().nanos() as f64).collect();
    let asked = rtts.len() as u64 + flow.run.counts.lost;
    warnings.extend(queued_or_moved(version, interval, asked, &rtts));
    if flow.run.told.malformed {
        warnings.push(format!("{name}: the reflector finds our TLVs malformed, or its own are"));
    }
    if flow.run.told.unproven {
        warnings.push(format!("{name}: the TLVs do not prove the key, what they tell is not used"));
    }
    warnings
}

/// That the round trips of packets, `asked` of them at this interval, were those of a queue that
/// grew, or that the path's round trip rose or fell in the midst: a queue of their own is no other
/// route.
fn queued_or_moved(version: IpVersion, interval: Span, asked: u64, rtts_ns: &[f64]) -> Option<String> {
    if queueing::grows(interval, asked, rtts_ns) {
        return Some(format!("{}: {OWN_QUEUE}", version.name()));
    }
    report::owd::moved(version, rtts_ns)
}

/// What to say of this host where it did not run the program for so long, and so many packets were
/// not sent because it was too late for them then.
fn stopped_in_words(away: Span, overdue: u64) -> Option<String> {
    let due = match overdue {
        0 => "what was due then left late".to_owned(),
        1 => "one packet that was due then was not sent".to_owned(),
        many => format!("{many} packets that were due then were not sent"),
    };
    own_absence::in_words(away, &due)
}

/// The same number on all systems that we know.
const ECONNREFUSED: i32 = 111;
const PHASE: &str = "one-way delay";
const OWN_QUEUE: &str = "the packets queued behind each other: their delays, and losses by the dozen, are those of a queue that grew \
     meanwhile; a longer --interval would not fill it";
/// A responder is looked for so long where nothing shows that the path is a far one.
const LOOK_PATIENCE: Span = Span::from_millis(2500);
/// A longer wait for an advice is of no use.
const LONGEST_LOOK: Span = Span::from_secs(8);
/// A stop is noticed so soon while a queue drains.
const STOP_SEEN_WITHIN: Span = Span::from_millis(25);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_arrives_as_another_is_said_with_both() {
        let said = rewritten(IpVersion::V4, 46, Some(8)).unwrap();
        assert_eq!(said, "IPv4: packets sent with DSCP 46 arrived with DSCP 8: the path writes it over");
        assert_eq!(
            [rewritten(IpVersion::V4, 46, Some(46)), rewritten(IpVersion::V4, 46, None)],
            [None, None]
        );
    }

    /// "Its route has become longer" and "the packets queued behind each other" in one record.
    #[test]
    fn packets_that_filled_a_queue_are_not_said_to_have_met_a_longer_route_as_well() {
        let apart = Span::from_millis(10);
        let said = |rtts: &[f64]| queued_or_moved(IpVersion::V4, apart, 600, rtts);
        let growing: Vec<f64> = (0..600).map(|n| 40e6 + 1e6 * f64::from(n)).collect();
        assert!(report::owd::moved(IpVersion::V4, &growing).is_some(), "a step it looks like as well");
        assert_eq!(said(&growing).unwrap(), format!("IPv4: {OWN_QUEUE}"));
        let moved: Vec<f64> = (0..600).map(|n| if n < 291 { 40e6 } else { 600e6 }).collect();
        assert!(said(&moved).unwrap().contains("its route has become longer"));
        assert_eq!(said(&[40e6; 600]), None);
    }

    /// A prober that was stopped said that it "came round to them too late".
    #[test]
    fn packets_that_were_due_while_this_host_did_not_run_the_program_say_so() {
        let said = stopped_in_words(Span::from_secs(3), 200).unwrap();
        assert_eq!(
            said,
            "this host did not run netaware for 3.00 s (it was suspended or stopped); 200 packets that were due then \
             were not sent, and what arrived then may have been dropped here"
        );
        let late = stopped_in_words(Span::from_secs(3), 0).unwrap();
        assert!(late.contains("what was due then left late"), "{late}");
        assert_eq!(stopped_in_words(Span::ZERO, 200), None, "it was busy with something else");
    }

    /// A responder at the end of a path of 3 s was not found, and its owner was asked to start it;
    /// then a silent host was waited for 5 s and more, though nothing spoke for a far path.
    #[test]
    fn a_responder_is_looked_for_longer_only_where_the_path_is_seen_to_be_far() {
        let looked = [0, 20, 800, 3000].map(|ms| look_patience(Span::from_millis(ms)));
        assert_eq!(looked, [2500, 2500, 3200, 8000].map(Span::from_millis));
    }

    /// `-t 3s` took 0.25 s longer than that and the wait for the last answers.
    #[test]
    fn what_the_path_carries_is_found_out_within_the_time_that_was_asked_for() {
        let request = OwdRequest { count: 300, ..OwdRequest::new(Target::new("h")) };
        let left = [0, 3, 250, 2000].map(|ms| request.after(Span::from_millis(ms)).count);
        assert_eq!(left, [300, 300, 275, 150]);
        let slower = request.after(Span::from_millis(250)).every(Span::from_millis(100));
        assert_eq!(slower.count, 27);
        let counted = OwdRequest { slowing: Slowing::KeepsCount, ..request };
        assert_eq!(counted.after(Span::from_millis(2000)).count, 300);
    }

    /// What is said of a run whose flows show this patience and are over then.
    fn said(patience: &[Span]) -> Vec<String> {
        let request = OwdRequest { count: 300, ..OwdRequest::new(Target::new("h")) };
        let (tell, told) = channel();
        for it in patience {
            tell.send((IpVersion::V6, *it)).unwrap();
        }
        drop(tell);
        let mut notes = Vec::new();
        let mut listener = |progress| match progress {
            Progress::Longer(note) => notes.push(note),
            // People are shown notes once it is known that somebody answers.
            other => assert!(matches!(other, Progress::Phase { version: Some(_), .. }), "{other:?}"),
        };
        announce_patience(&request, 1, clock::now(), &told, &mut Watch::new(request.lasts(), &mut listener));
        notes
    }

    #[test]
    fn who_is_stopped_before_the_first_packet_is_not_said_to_have_had_no_answer() {
        let run = StampRun {
            counts: StampCounts::default(),
            told: netaware_wire::stamp::tlv::Told::default(),
            same_clock: None,
            stateful: None,
            patience: Span::from_secs(5),
            asked_questions: false,
            drive: Drive::default(),
            local: None,
            stepped: None,
        };
        let (request, stop) = (OwdRequest::new(Target::new("h")), StopFlag::new());
        stop.raise();
        let said = silence(&request, SocketAddr::from(([192, 0, 2, 1], 862)), &run, false, &stop);
        assert!(said.reason.starts_with("stopped by the user"), "{said:?}");
        assert_eq!(said.advice, "");
    }

    #[test]
    fn a_flow_whose_answers_ceased_was_not_measured_to_its_end() {
        let (interval, patience) = (Span::from_millis(10), Span::from_secs(1));
        let silent = |last, answered, lost, not_sent| {
            let counts = StampCounts { answered, lost, not_sent, ..StampCounts::default() };
            fell_silent(last, &counts, interval, patience).map(|it| (it.after, it.unanswered, it.not_sent))
        };
        let after = Span::from_millis(9990);
        assert_eq!(silent(999, 1000, 800, 0), Some((after, 800, 0)));
        assert_eq!(silent(999, 1000, 120, 0), Some((after, 120, 0)));
        assert_eq!(silent(999, 1000, 3, 197), Some((after, 3, 197)));
        // Lost in the midst; for a moment at the end; a last few at long intervals.
        assert_eq!(silent(1799, 1000, 800, 0), None);
        assert_eq!(silent(999, 1000, 80, 0), None);
        let counts = StampCounts { answered: 10, lost: 2, ..StampCounts::default() };
        assert_eq!(fell_silent(9, &counts, Span::from_secs(10), patience), None);
    }

    #[test]
    fn a_version_of_which_nothing_is_known_does_not_get_packets_at_the_full_rate() {
        let request = OwdRequest { length: 44, ..OwdRequest::new(Target::new("h")) };
        let millis = Span::from_millis;
        // 16 kbit/s of packets of 44 B and their headers, shared by those that are not known.
        let rows = [
            (Span::ZERO, 0, (10, 10)),
            (millis(4), 0, (10, 10)),
            (millis(40), 0, (50, 50)),
            (millis(4), 1, (10, 46)),
            (millis(40), 1, (50, 50)),
            (Span::ZERO, 2, (10, 92)),
        ];
        for (together, unknown, (seen, careful)) in rows {
            let found = intervals(&request, together, unknown);
            let rounded = [found.0, found.1].map(|span| (span + millis(1) / 2) / 1_000_000);
            assert_eq!(rounded, [Span(seen), Span(careful)], "{together}, {unknown}");
        }
        let slower = request.every(millis(92));
        assert_eq!((slower.count, request.every(millis(10)).count), (108, 1000));
        let kept = OwdRequest { slowing: Slowing::KeepsCount, ..request };
        assert_eq!(kept.every(millis(92)).count, 1000);
    }

    #[test]
    fn versions_that_share_a_slow_path_share_its_rate_where_only_one_has_answered() {
        let apart = Span::from_millis(60);
        assert_eq!(together_of(&[Some(apart), None], 1), apart * 2);
        assert_eq!(together_of(&[Some(apart), Some(apart * 2)], 0), apart * 3);
        assert_eq!(together_of(&[Some(apart), None], 0), apart, "its port is closed");
        assert_eq!(together_of(&[None, None], 2), Span::ZERO);
    }

    #[test]
    fn two_answers_that_came_together_do_not_make_a_slow_path_a_fast_one() {
        let came = |millis: &[i64]| {
            let at = millis.iter().map(|millis| Wall(millis * 1_000_000)).collect::<Vec<_>>();
            mean_gap(at.into_iter())
        };
        assert_eq!([came(&[]), came(&[1400, 1403]), came(&[1400, 1401, 1402, 1403])], [None; 3]);
        let all = [1400, 1488, 1576, 1664, 1752, 1840, 1928, 2016];
        assert_eq!(came(&all), Some(Span::from_millis(88)));
    }

    /// 8 kbit/s was sent 15 kbit/s of both versions, though three answers had shown 156 ms each.
    #[test]
    fn few_answers_make_packets_slower_than_what_every_path_is_given() {
        let came = |answers: &[(u64, i64)]| {
            let at = answers.iter().map(|(seq, millis)| (*seq, Wall(millis * 1_000_000)));
            closest(at.collect::<Vec<_>>().into_iter())
        };
        assert_eq!([came(&[]), came(&[(3, 1400)])], [None; 2]);
        assert_eq!(came(&[(0, 1400), (1, 1556), (3, 1868)]), Some(Span::from_millis(156)));
        // One of two that a radio held back is no rate; of three the closest two count, and one
        // that was overtaken shows jitter.
        assert_eq!(came(&[(3, 40), (4, 740)]), None);
        assert_eq!(came(&[(3, 40), (4, 740), (5, 752)]), Some(Span::from_millis(12)));
        assert_eq!(came(&[(3, 40), (4, 740), (5, 52)]), None);
        assert_eq!(apart_by_few(Span::from_millis(312), 2), Span::from_millis(390));
        assert_eq!(
            [1, 2].map(|flows| apart_by_few(Span::from_secs(1), flows)),
            [400, 800].map(Span::from_millis)
        );
        // Eight packets of each version, 312 ms together, and 1.2 s of round trip.
        let passed = passes_within(Span::from_millis(312), Span::from_millis(1200));
        assert_eq!(passed, Span::from_millis(3696));
    }

    #[test]
    fn a_closed_port_is_not_waited_for_like_one_that_is_silent() {
        let silent = || Some(StampLog::default());
        assert_eq!(heard(&[silent(), None], &[true, false]), Heard::Closed);
        assert_eq!(heard(&[silent(), silent()], &[true, false]), Heard::Nobody);
        assert_eq!(heard(&[None, None], &[false, false]), Heard::Unknown, "a name without an address");
        let request = OwdRequest::new(Target::new("h"));
        let closed = request.of_a_closed_port();
        assert_eq!((closed.patience, closed.waiting), (request.patience.min(FEW_PATIENCE), Waiting::Exactly));
    }

    #[test]
    fn a_version_that_does_not_answer_is_announced_before_the_promise_is_broken() {
        let request = OwdRequest { count: 300, ..OwdRequest::new(Target::new("h")) };
        let (tell, told) = channel();
        tell.send((IpVersion::V4, request.patience)).unwrap();
        let (mut tell, mut notes) = (Some(tell), Vec::new());
        let mut listener = |progress| {
            if let Progress::Longer(note) = progress {
                notes.push(note);
                // The flows are over.
                tell.take();
            }
        };
        let began_at = clock::now() - request.patience;
        announce_patience(&request, 2, began_at, &told, &mut Watch::new(request.lasts(), &mut listener));
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("no answer has come yet, and the first is waited for 5.00 s"), "{notes:?}");
    }

    #[test]
    fn the_packets_that_show_what_a_path_carries_are_a_plan_that_can_be_carried_out() {
        let stop = StopFlag::new();
        stop.raise();
        let options = few(&OwdRequest::new(Target::new("127.0.0.1")));
        let run = stamp::run("127.0.0.1:9".parse().unwrap(), &options, &stop, &mut |_| {});
        assert!(!matches!(run, Err(StampRunError::Plan(_))), "{:?}", run.err());
    }

    #[test]
    fn last_answers_that_take_longer_than_promised_are_announced() {
        let (near, far) = (Span::from_secs(1), Span::from_secs(12));
        assert_eq!(said(&[near]), [""; 0]);
        let notes = said(&[near, far, far]);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("this takes about 16.0 s instead of 4.00 s: on this path"), "{notes:?}");
    }
}
