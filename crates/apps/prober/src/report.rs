//! From what the phases saw to the record.

mod comparison;
mod ends;
mod hole;
pub(crate) mod hops;
mod latency;
mod outages;
pub(crate) mod owd;
pub(crate) mod path_rates;
pub(crate) mod reach;
pub(crate) mod rejected;
mod rounds;
mod route;
mod tcp;
mod udp;
mod vanished;
mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use netaware_engine::NotSent;
use netaware_io::clock;
use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_io::zone::ZonedIp;
use netaware_probe::compare::Share;
use netaware_probe::limit::Across;
use netaware_record::{
    CpuUse, DelaySummary, Direction, HistogramShape, HostInfo, IpVersion, LEFT_OUT, Limit, LimitedBy,
    Outcome, PathFacts, Record, Request, SCHEMA_VERSION, VersionResult,
};
use netaware_stats::patience::Waiting;
use netaware_units::{BitRate, Mono, Span, Wall};
use uuid::{NoContext, Timestamp, Uuid};

use crate::bulk::Ended;
use crate::echo::EchoRun;
use crate::heavy_loss;
use crate::lane::{self, Lane};
use crate::link::standstill::Standstill;
use crate::request::{Target, Transport};
use crate::transfer::{TcpRound, UdpRound};

use tcp::Stopped;
pub(crate) use tcp::{Seen, seen};
use volume::Volume;

/// Why packets did not leave this host.
pub(crate) fn why_not_sent(why: NotSent) -> String {
    match why {
        NotSent::QueueFull => "the queue of its interface was full".to_owned(),
        NotSent::TooBig(Some(mtu)) => format!("more than the {mtu} that its way there takes"),
        NotSent::TooBig(None) => "more than its way there takes".to_owned(),
        NotSent::Overdue => "it came round to them too late".to_owned(),
        NotSent::Refused(errno) => refusal(errno),
    }
}

/// Why the system itself let packets not out; nothing where it was another reason.
pub(crate) fn refused(why: NotSent) -> Option<String> {
    matches!(why, NotSent::Refused(_)).then(|| why_not_sent(why))
}

/// What the system says, and who it was where that is known.
pub(crate) fn refusal(errno: i32) -> String {
    let said = std::io::Error::from_raw_os_error(errno);
    match said.kind() {
        // A firewall of another host that forbids it is answered with EACCES.
        std::io::ErrorKind::PermissionDenied if errno == EPERM => {
            format!("{said}: its own firewall drops them")
        }
        _ => said.to_string(),
    }
}

/// "Operation not permitted", which has the same number on all systems.
pub(crate) const EPERM: i32 = 1;

/// Why this host itself lets nothing out from one of its addresses to the responder, which a path
/// of this round trip leads to.
pub(crate) fn refused_here(from: ZonedIp, to: SocketAddr, round_trip: Span) -> Option<String> {
    Some(refusal_of(&netaware_io::options::refused_here(from, to, round_trip)?))
}

/// The same as [`refusal`] of an error, which is told as it is where the system did not give it.
pub(crate) fn refusal_of(error: &std::io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), refusal)
}

/// A patience among the options of a record.
pub(crate) fn waited(patience: Span, waiting: Waiting) -> String {
    match waiting {
        Waiting::Exactly => patience.to_string(),
        Waiting::AtLeast => format!("follows the path, at least {patience}"),
    }
}

/// Everything one lane's phases saw, in the order run.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) idle: Vec<EchoRun>,
    /// Over TCP, where `idle` is over UDP in the same run.
    pub(crate) idle_tcp: Vec<EchoRun>,
    /// Bins of equal width that are wanted of both.
    pub(crate) bins: Option<HistogramShape>,
    pub(crate) tcp: Vec<TcpRound>,
    pub(crate) udp: Vec<UdpRound>,
    /// The longest time in which nothing came over its control connection; `None` where it ended.
    pub(crate) longest_pause: Option<Span>,
    /// For how long nothing came of the responder, over no connection, until it was there again.
    pub(crate) outlived: Option<Span>,
    /// After which time of the run nothing came any more, where its session ended of that.
    pub(crate) silent_after: Option<Span>,
    /// Its session was given up in a silence that the other version shared.
    pub(crate) is_silence_shared: bool,
    /// Each of its streams of datagrams stopped after so many bytes.
    pub(crate) volume: Option<Volume>,
    /// Packets of trains whose fate is unknown because the responder's program did not run.
    pub(crate) left_out_of_trains: u64,
    /// Trains or short transfers were measured, which are not among these: each standstill of the
    /// responder is told.
    pub(crate) tells_each_standstill: bool,
    /// Directions in which each of its transfers over TCP stopped for good.
    pub(crate) stopped: Vec<Stopped>,
}

impl Findings {
    /// Whether there are requests without an answer in time, or round trips that may be those of
    /// requests that waited for the responder's program to go on.
    fn may_have_met_a_standstill(&self) -> bool {
        if self.tells_each_standstill {
            return true;
        }
        let beside = self.tcp.iter().filter_map(|round| round.load.as_ref());
        let may_have = |run: &EchoRun| run.transport == Transport::Tcp || !run.unanswered.is_empty();
        self.idle.iter().chain(&self.idle_tcp).chain(beside).any(may_have)
    }

    /// Requests that came while the responder's program did not run tell nothing of the path. What
    /// there is to say of that.
    fn forget_standstills(&mut self, standstills: &[Standstill]) -> Option<String> {
        let beside = self.tcp.iter_mut().filter_map(|round| round.load.as_mut());
        let runs = self.idle.iter_mut().chain(&mut self.idle_tcp).chain(beside);
        let (mut unknown, mut untimed) = (0, 0);
        for run in runs {
            let forgotten = run.forget_standstills(standstills);
            (unknown, untimed) = (unknown + forgotten.unknown, untimed + forgotten.untimed);
        }
        let met = |run: &EchoRun| run.met_any(standstills);
        let is_told = self.tells_each_standstill && !standstills.is_empty();
        let nothing_met = unknown == 0 && untimed == 0 && self.left_out_of_trains == 0;
        if nothing_met && !is_told && !self.idle.iter().chain(&self.idle_tcp).any(met) {
            return None;
        }
        let lasted: Span = standstills.iter().map(|one| one.lasted).sum();
        let fate = match unknown {
            0 => None,
            1 => Some(
                "the fate of a request that came meanwhile is unknown, and it is not counted as lost"
                    .to_owned(),
            ),
            many => Some(format!(
                "the fate of {many} requests that came meanwhile is unknown, and they are not counted as lost"
            )),
        };
        let left_out = match untimed {
            0 => None,
            1 => Some("the round trip of a request that met that time is left out".to_owned()),
            many => Some(format!("the round trips of {many} requests that met that time are left out")),
        };
        let trains = match self.left_out_of_trains {
            0 => None,
            1 => Some("a packet".to_owned()),
            many => Some(format!("{many} packets")),
        };
        let trains = trains.map(|packets| {
            format!(
                "the fate of {packets} of trains that met that time is unknown, and these trains are left out"
            )
        });
        let what: Vec<String> = fate.into_iter().chain(left_out).chain(trains).collect();
        let what = if what.is_empty() {
            "what it owed an answer then was answered late".to_owned()
        } else {
            what.join("; ")
        };
        Some(format!(
            "the responder's host did not run netaware for {lasted} (it was suspended or stopped): {what}"
        ))
    }

    /// The path fell silent, or the other end did: of requests after the last answer nobody
    /// observed whether the path lost them. Those beside transfers came after those of the idle
    /// path.
    fn forget_the_end(&mut self) {
        let beside = self.tcp.iter_mut().filter_map(|round| round.load.as_mut());
        forget_the_end(self.idle.iter_mut().chain(beside).collect());
        forget_the_end(self.idle_tcp.iter_mut().collect());
    }
}

fn forget_the_end(mut runs: Vec<&mut EchoRun>) {
    while let Some(run) = runs.pop() {
        run.forget_its_end();
        if run.answers() > 0 {
            return;
        }
    }
}

/// The head of a record, written when the measurement begins.
pub(crate) struct Opening {
    command: &'static str,
    request: Request,
    started_at: Wall,
    began_at: Mono,
    /// How a person gets more rounds.
    more: Option<String>,
}

impl Opening {
    pub(crate) fn now(command: &'static str, target: &Target, mut options: BTreeMap<String, String>) -> Self {
        options.extend(header_options(&target.options));
        let request = Request {
            host: target.host.clone(),
            port: target.port,
            own_responder: target.own_responder,
            options,
        };
        Self { command, request, started_at: clock::wall(), began_at: clock::now(), more: None }
    }

    /// Fewer rounds were run than asked for, and this is how a person gets all of them.
    pub(crate) fn advise(&mut self, more: Option<String>) {
        self.more = more;
    }

    /// The plan left these out, and said so: nobody expects a figure of them.
    pub(crate) fn leave_out(&mut self, what: &str) {
        self.request.options.insert(LEFT_OUT.to_owned(), what.to_owned());
    }

    /// The record, ended now, of what this host found alone.
    fn record(
        self,
        outcome: Outcome,
        versions: Vec<VersionResult>,
        warnings: Vec<String>,
        local: &[ZonedIp],
    ) -> Record {
        Record {
            schema: SCHEMA_VERSION,
            id: id_at(self.started_at),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.command.to_owned(),
            started_at: self.started_at,
            started_at_utc: utc(self.started_at),
            elapsed: clock::now() - self.began_at,
            outcome,
            request: self.request,
            label: None,
            series: None,
            prober: netaware_host::describe(&local.iter().map(|local| local.at(0)).collect::<Vec<_>>()),
            responder: None,
            comparison: None,
            versions,
            ability: None,
            expectations: Vec::new(),
            warnings,
        }
    }
}

/// What every command can ask of the IP header.
fn header_options(options: &SocketOptions) -> impl Iterator<Item = (String, String)> {
    let given = [
        ("dscp", (options.dscp > 0).then(|| options.dscp.to_string())),
        ("ttl", options.ttl.map(|ttl| ttl.to_string())),
        ("flow-label", options.flow_label.map(|label| format!("{label:#x}"))),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// Closes the sessions and writes the record.
pub(crate) fn finish(
    opened: Opening,
    mut lanes: Vec<Lane>,
    findings: &mut [Findings],
    stop: &StopFlag,
) -> Record {
    for lane in &mut lanes {
        lane.check("finish");
    }
    for (lane, found) in lanes.iter_mut().zip(findings.iter_mut()) {
        note_standstills(lane, found);
    }
    for (_, found) in lanes.iter().zip(findings.iter_mut()).filter(|(lane, _)| lane.has_fallen_silent()) {
        found.forget_the_end();
    }
    for (lane, found) in lanes.iter().zip(findings.iter_mut()) {
        (found.longest_pause, found.outlived) = (lane.longest_pause(), lane.outlived());
        found.volume = Volume::of(lane.version, &found.udp);
        found.silent_after = lane.fell_silent_at().map(|at| at - opened.began_at);
    }
    lane::note_common_silence(&mut lanes);
    let losses: Vec<(IpVersion, Share)> = lanes
        .iter()
        .zip(findings.iter())
        .map(|(lane, found)| (lane.version, heavy_loss::of_runs(&found.idle)))
        .collect();
    lane::note_single_loss(&mut lanes, &losses);
    for (lane, found) in lanes.iter().zip(findings.iter_mut()) {
        found.is_silence_shared = lane.is_silence_shared();
    }
    let cut = if stop.is_raised() { Vec::new() } else { cut_lanes(&mut lanes, findings) };
    mark_stopped(&lanes, findings);
    let findings = &*findings;
    let told = if cut.is_empty() { lane::outcome(&lanes, stop) } else { Outcome::Failed };
    let local: Vec<ZonedIp> = lanes.iter().filter_map(|lane| lane.local).collect();
    let responder: Option<HostInfo> = lanes.iter().find_map(|lane| lane.responder.clone());
    let mut warnings: Vec<String> = lanes.iter().flat_map(|lane| lane.warnings.clone()).collect();
    let mut versions: Vec<VersionResult> = Vec::with_capacity(lanes.len());
    // Hops are guessed from what TTLs usually begin with, which `--ttl` changes.
    let ttl = if opened.request.options.contains_key("ttl") { Ttl::Asked } else { Ttl::Usual };
    for (lane, found) in lanes.into_iter().zip(findings) {
        let mut result = version_result(lane, found, ttl);
        path_rates::mark_peaks(&mut result, &tcp::cut(&found.tcp));
        versions.push(result);
    }
    for way in [Direction::Reverse, Direction::Forward] {
        if comparison::fell_over_both(&versions, findings, way) {
            let results = versions.iter_mut().flat_map(|result| &mut result.tcp);
            results.filter(|tcp| tcp.pedigree.direction == way).for_each(tcp::blame_the_path);
        }
    }
    for (result, found) in versions.iter().zip(findings) {
        let name = result.version.name();
        warnings.extend(of_transfers(result, found));
        warnings.extend(route::Shift::of(found).map(|shift| shift.warning(result.version)));
        let ways = [Direction::Reverse, Direction::Forward].into_iter();
        warnings.extend(ways.filter_map(|way| comparison::did_not_last(result, found, way)));
        warnings.extend(rounds::warnings(result, found));
        warnings.extend(latency::bad_answers(found).map(|warning| format!("{name}: {warning}")));
        warnings.extend(latency::kept_in(found).map(|warning| format!("{name}: {warning}")));
        warnings.extend(rejected::warning(found).map(|warning| format!("{name}: {warning}")));
        warnings.extend(outages::warning(found).map(|warning| format!("{name}: {warning}")));
        let paces = udp::paces(result, &found.udp);
        warnings.extend(paces.into_iter().map(|warning| format!("{name}: {warning}")));
        let fell = tcp::fell_behind(&result.tcp, &result.udp, &found.tcp);
        warnings.extend(fell.into_iter().map(|warning| format!("{name}: {warning}")));
        let rateless = path_rates::missing_warnings(result);
        warnings.extend(rateless.into_iter().map(|warning| format!("{name}: {warning}")));
    }
    let mut left_out = Vec::new();
    for result in &versions {
        let streams = hole::take_left_out(result, &mut warnings);
        warnings.extend(hole::warning(result, &streams));
        left_out.push(streams);
    }
    warnings.extend(warnings_of(&versions, told));
    if cut.contains(&Cut::Unexplained) {
        let what = "the responder ended a transfer early; the figures stand for the time that was measured";
        warnings.push(what.to_owned());
    }
    let class =
        opened.request.options.get("dscp").filter(|_| versions.iter().any(VersionResult::has_figures));
    warnings.extend(class.map(|class| not_looked_at(class)));
    let comparison = comparison::compare(&versions, findings, opened.more.as_deref());
    let mut record = Record { responder, comparison, ..opened.record(told, versions, warnings, &local) };
    record.settle();
    let is_explained = |missing: &String| {
        let mut holes = record.versions.iter().zip(&left_out);
        holes.any(|(result, left_out)| hole::explains_missing(result, left_out, missing))
    };
    let missing: Vec<String> = record.missing().into_iter().filter(|it| !is_explained(it)).collect();
    record.warnings.extend(missing);
    if told == Outcome::Complete && record.outcome == Outcome::Failed && has_broken_transfer(&record) {
        let what = "a transfer did not run to its end; the figures stand for what was measured";
        record.warnings.push(what.to_owned());
    }
    say_once(&mut record.warnings);
    record
}

/// What met a time in which the responder's program did not run is not the path's doing.
fn note_standstills(lane: &mut Lane, found: &mut Findings) {
    if found.may_have_met_a_standstill() {
        lane.await_overdue_pong();
    }
    found.left_out_of_trains = lane.left_out_of_trains();
    if let Some(standstill) = found.forget_standstills(&lane.standstills()) {
        lane.warn(&standstill);
    }
}

/// Marks the transfers over TCP that stopped for good. Where the session ended, its reason says
/// more.
fn mark_stopped(lanes: &[Lane], findings: &mut [Findings]) {
    for (_, found) in lanes.iter().zip(findings).filter(|(lane, _)| lane.is_alive()) {
        tcp::mark_stopped(found);
    }
}

/// What a person has to know of the transfers of one version, beside their figures.
fn of_transfers(result: &VersionResult, found: &Findings) -> Vec<String> {
    let name = result.version.name();
    let of_tcp = tcp::warnings(&found.tcp).into_iter();
    let stopped = found.stopped.iter().copied().map(Stopped::warning);
    let volume = found.volume.map(|volume| volume.warning(result, found));
    let of_udp = udp::warnings(&found.udp, result.unreachable.is_some());
    let all = of_tcp.chain(stopped).chain(volume).chain(of_udp);
    all.map(|warning| format!("{name}: {warning}")).chain(vanished::warning(result)).collect()
}

/// What holds for several rounds or transfers is one warning.
fn say_once(warnings: &mut Vec<String>) {
    let mut said = BTreeSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
}

/// Packets were marked, and nobody has seen what became of the marks.
fn not_looked_at(class: &str) -> String {
    format!(
        "whether the path keeps DSCP {class} was not looked at; 'netaware owd --dscp {class}' measures it, where 'netaware \
         serve --stamp' runs"
    )
}

fn has_broken_transfer(record: &Record) -> bool {
    let ended = |version: &VersionResult| version.tcp.iter().any(|tcp| tcp.outcome == Outcome::Failed);
    // The warning of the black hole says this already.
    let mut others = record.versions.iter().filter(|version| !hole::explains(version));
    record.is_measured() && others.any(ended)
}

/// Writes the record of a measurement that needed no session.
pub(crate) fn finish_alone(
    opened: Opening,
    versions: Vec<VersionResult>,
    mut warnings: Vec<String>,
    local: &[ZonedIp],
    stop: &StopFlag,
) -> Record {
    let outcome = if stop.is_raised() { Outcome::Interrupted } else { Outcome::Complete };
    warnings.extend(warnings_of(&versions, outcome));
    let mut record = opened.record(outcome, versions, warnings, local);
    record.settle();
    say_once(&mut record.warnings);
    record
}

/// A transfer that the other end ended early though nobody here asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The session ended with it, and its lane says why.
    Explained,
    /// The session lives.
    Unexplained,
}

/// The lanes of which the other end cut a transfer short. A responder that is stopping ends its
/// transfers and then says goodbye: the goodbye is waited for, so that the reason does not depend
/// on which of the two is read first. It says it to all lanes at once.
fn cut_lanes(lanes: &mut [Lane], findings: &[Findings]) -> Vec<Cut> {
    let began_at = clock::now();
    let alive = lanes.iter_mut().zip(findings).filter(|(lane, _)| lane.is_alive());
    let cut = alive.filter_map(|(lane, found)| {
        let tcp = found.tcp.iter().map(|round| &round.ended);
        let ended = || tcp.clone().chain(found.udp.iter().map(|round| &round.ended));
        if !ended().any(Ended::may_have_been_cut) {
            return None;
        }
        let until = began_at + goodbye_within(lane.round_trip());
        lane.await_goodbye("finish", (until - clock::now()).or_zero());
        if !lane.is_alive() {
            return Some(Cut::Explained);
        }
        // What failed at this end has its own reason.
        ended().any(|ended| ended.outcome == Outcome::Interrupted).then_some(Cut::Unexplained)
    });
    cut.collect()
}

/// How long a goodbye may take to come over a path of this round trip: it travels, and it is sent
/// again where it is lost.
fn goodbye_within(round_trip: Span) -> Span {
    (GOODBYE_PATIENCE + round_trip * 2).min(LONGEST_GOODBYE)
}

/// The responder says goodbye within a second of ending its transfers.
const GOODBYE_PATIENCE: Span = Span::from_millis(1500);
/// A person waits for it.
const LONGEST_GOODBYE: Span = Span::from_secs(8);

/// What every figure of a lane has to know of its path.
#[derive(Clone, Copy)]
struct Path {
    version: IpVersion,
    across: Across,
}

impl Path {
    /// Traffic to an address of this very host never leaves it.
    fn of(lane: &Lane) -> Self {
        let peer: Option<ZonedIp> = lane.result.address.as_deref().and_then(|address| address.parse().ok());
        let own = peer.is_some_and(|peer| peer.ip().is_loopback() || lane.local == Some(peer));
        Self { version: lane.version, across: if own { Across::Loopback } else { Across::Network } }
    }
}

/// What packets begin their way with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ttl {
    Usual,
    Asked,
}

fn version_result(lane: Lane, found: &Findings, ttl: Ttl) -> VersionResult {
    let path = Path::of(&lane);
    let version = path.version;
    let mut result = lane.result;
    result.latency = latency::idle(version, &found.idle, found.bins);
    result.latency_tcp = latency::idle(version, &found.idle_tcp, found.bins);
    if ttl == Ttl::Usual {
        latency::note_hops(&mut result, &found.idle);
    }
    let connects = result.reach.as_ref().map(|reach| reach.connects.clone()).unwrap_or_default();
    let shift = route::Shift::of(found);
    result.tcp = tcp::results(path, &found.tcp, result.latency.as_ref(), &connects, shift);
    result.udp = udp::results(path, &found.udp);
    for stopped in &found.stopped {
        for tcp in result.tcp.iter_mut().filter(|tcp| stopped.is_of(tcp.pedigree.direction)) {
            tcp.limit = Limit::new(LimitedBy::Network, stopped.seen());
        }
    }
    if let Some(hole) = result.path.as_ref().and_then(PathFacts::black_hole) {
        for tcp in result.tcp.iter_mut().filter(|tcp| tcp.carried_nothing()) {
            tcp.limit = Limit::new(LimitedBy::Network, format!("{hole}: TCP stalls on it"));
        }
    }
    result
}

/// What makes a path unfit for calls and video though little of it is lost: delays that differ by
/// more than players hold back, and packets that overtake each other.
fn unsteady(result: &VersionResult) -> Vec<String> {
    let name = result.version.name();
    let varies = |what: &str, excess: Option<DelaySummary>| {
        let excess = excess.filter(|it| it.count >= MIN_VARIED && it.p95 >= MUCH_VARIATION)?;
        Some(format!(
            "{name}: {what} vary: one in twenty is {} above the smallest, which is more than calls and video hold back",
            excess.p95
        ))
    };
    let overtaken = |what: &str, reordered: u64, of: u64| {
        let is_many = of >= MIN_VARIED && reordered.saturating_mul(10) >= of;
        is_many.then(|| format!("{name}: {reordered} of {of} {what} were overtaken by later ones"))
    };
    let latency = result.latency.iter().flat_map(|latency| {
        [varies("round trips", latency.pdv), overtaken("answers", latency.reordered, latency.received)]
    });
    let owd = result.owd.iter().flat_map(|owd| {
        [(&owd.forward, "up"), (&owd.reverse, "down")].map(|(way, name)| {
            [
                varies(&format!("delays {name}"), way.pdv),
                overtaken(&format!("packets {name}"), way.reordered, owd.received),
            ]
        })
    });
    let udp = result.udp.iter().filter_map(|udp| {
        let what = format!("datagrams {}", udp.pedigree.direction.name());
        overtaken(&what, udp.reordered?, udp.received)
    });
    latency.chain(owd.flatten()).flatten().chain(udp).collect()
}

/// Fewer say little of the others.
const MIN_VARIED: u64 = 10;
/// ITU-T Y.1541 allows 50 ms of variation for calls, and players hold back twice that.
const MUCH_VARIATION: Span = Span::from_millis(100);

fn warnings_of(versions: &[VersionResult], outcome: Outcome) -> Vec<String> {
    let mut warnings = Vec::new();
    for result in versions {
        let name = result.version.name();
        warnings.extend(unsteady(result));
        let vanishing =
            result.reach_probes.iter().filter(|it| it.flags.iter().any(|flag| flag == reach::TOO_LARGE));
        warnings.extend(vanishing.filter_map(|it| {
            let why = it.remarks.iter().find(|remark| remark.starts_with("no echo of"))?;
            Some(format!("{name}: {why}"))
        }));
        let kept_in = result.reach_probes.iter().filter_map(reach::kept_in);
        warnings.extend(kept_in.map(|warning| format!("{name}: {warning}")));
        let silent = hole::explains(result);
        let ended = result.tcp.iter().filter(|tcp| !(silent && tcp.carried_nothing()));
        warnings.extend(ends::warnings(ended).into_iter().map(|warning| format!("{name}: {warning}")));
        for tcp in &result.tcp {
            if let Some(left) = tcp.queue_left.filter(|left| left.drained >= LONG_DRAIN) {
                warnings.push(format!(
                    "{name}: TCP {} with {} {} left {} in the path's queues when its time was up, which took {} to drain",
                    tcp.pedigree.direction.name(),
                    tcp.streams,
                    tcp::streams(tcp.streams),
                    left.bytes,
                    left.drained,
                ));
            }
        }
    }
    if outcome == Outcome::Interrupted {
        warnings.push("ended early on request; the figures stand for the time that was measured".into());
    }
    warnings
}

/// A queue that drains sooner is what TCP leaves on any path.
const LONG_DRAIN: Span = Span::from_secs(1);

/// The id carries the start time, so that ids sort by it.
pub(crate) fn id_at(at: Wall) -> Uuid {
    let since = at.0.max(0).cast_unsigned();
    let nanos = u32::try_from(since % 1_000_000_000).unwrap_or(0);
    Uuid::new_v7(Timestamp::from_unix(NoContext, since / 1_000_000_000, nanos))
}

pub(crate) fn utc(at: Wall) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(at.0)).map(|at| format!("{at:.3}")).unwrap_or_default()
}

/// The mean rate over several transfers, weighted by their times; `None` when nothing moved or no
/// time passed: no rate was then observed.
fn mean_rate(parts: impl Iterator<Item = (netaware_units::ByteCount, Span)>) -> Option<BitRate> {
    let (bytes, span) = parts.fold(Default::default(), |(bytes, span), (b, s)| (bytes + b, span + s));
    BitRate::mean(bytes, span).filter(|rate| rate.0 > 0)
}

/// The verdict of most rounds. Where they are even, one that found something at its limit counts
/// more than the rate that was asked for, and that more than not knowing.
fn most_frequent(verdicts: &[Limit]) -> Limit {
    let votes = |limit: &Limit| verdicts.iter().filter(|other| other.by == limit.by).count();
    let says = |limit: &Limit| match limit.by {
        LimitedBy::Unknown => 0,
        LimitedBy::RequestedRate => 1,
        _ => 2,
    };
    verdicts
        .iter()
        .max_by_key(|limit| (votes(limit), says(limit)))
        .cloned()
        .unwrap_or_else(|| Limit::new(LimitedBy::Unknown, NOT_REPORTED))
}

const NOT_REPORTED: &str = "the transfer ended before both ends had reported";

/// The worst end of several.
fn worst(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    outcomes.max().unwrap_or_default()
}

/// How busy one end was, the worst of several rounds.
#[derive(Default)]
struct Load {
    busiest_core: Option<f64>,
    steal: Option<f64>,
}

impl Load {
    fn of(ends: impl Iterator<Item = CpuUse>) -> Self {
        let worse = |a: Option<f64>, b: Option<f64>| [a, b].into_iter().flatten().reduce(f64::max);
        ends.fold(Self::default(), |load, cpu| Self {
            busiest_core: worse(load.busiest_core, cpu.busiest_core),
            steal: worse(load.steal, cpu.steal),
        })
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::{LatencyResult, Layer, Pedigree};
    use netaware_units::{ByteCount, ClockSource};

    use super::*;

    /// A filter on the way that forbids it (ICMPv6) was said to be this host's own firewall.
    #[test]
    fn a_filter_of_another_host_is_not_called_a_firewall_of_this_one() {
        assert!(refusal(EPERM).contains("its own firewall drops them"));
        assert!(!refusal(13).contains("firewall"));
    }

    /// On a path of 1.2 s a goodbye came after it had been waited for.
    #[test]
    fn a_goodbye_over_a_far_path_is_waited_for_longer_than_over_a_near_one() {
        let within = [0, 1200, 60_000].map(|ms| goodbye_within(Span::from_millis(ms)));
        assert_eq!(within, [1500, 3900, 8000].map(Span::from_millis));
    }

    #[test]
    fn one_warning_of_two_rounds_is_said_once() {
        let mut warnings = ["a", "b", "a"].map(str::to_owned).to_vec();
        say_once(&mut warnings);
        assert_eq!(warnings, ["a", "b"]);
    }

    #[test]
    fn delays_that_vary_by_half_a_second_and_packets_that_overtake_are_said_in_a_sentence() {
        let said = |p95_ms: i64, reordered: u64| {
            let pedigree = Pedigree {
                method: "latency".into(),
                layer: Layer::Payload,
                direction: Direction::RoundTrip,
                version: IpVersion::V4,
                clock: ClockSource::Kernel,
                uncertainty: String::new(),
            };
            let pdv = DelaySummary { count: 24, p95: Span::from_millis(p95_ms), ..DelaySummary::default() };
            let latency = LatencyResult {
                received: 24,
                reordered,
                pdv: Some(pdv),
                ..LatencyResult::before_any(pedigree, ByteCount(64))
            };
            unsteady(&VersionResult { latency: Some(latency), ..VersionResult::new(IpVersion::V4) })
        };
        assert_eq!(said(99, 2), [""; 0]);
        assert_eq!(
            said(502, 16),
            [
                "IPv4: round trips vary: one in twenty is 502 ms above the smallest, which is more than calls and \
                 video hold back",
                "IPv4: 16 of 24 answers were overtaken by later ones"
            ]
        );
    }

    #[test]
    fn the_last_of_two_rounds_does_not_hide_what_was_at_its_limit_in_the_first() {
        let [none, rate, path] =
            [LimitedBy::Unknown, LimitedBy::RequestedRate, LimitedBy::Network].map(|by| Limit::new(by, ""));
        let of = |rounds: &[&Limit]| {
            most_frequent(&rounds.iter().map(|limit| (*limit).clone()).collect::<Vec<_>>()).by
        };
        assert_eq!((of(&[&path, &rate]), of(&[&rate, &path])), (path.by, path.by));
        assert_eq!((of(&[&rate, &none]), of(&[&none, &path])), (rate.by, path.by));
        assert_eq!((of(&[&rate, &path, &rate]), of(&[])), (rate.by, none.by));
    }
}
