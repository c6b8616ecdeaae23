//! `netaware capacity` and `netaware available`: what the path can carry, estimated from trains.

use std::collections::BTreeMap;

use netaware_host::CpuSnapshot;
use netaware_io::clock;
use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_io::volley::Calibration;
use netaware_path::available::Search;
use netaware_path::{Careful, Instrument, NoFigure, RateMethod, Use};
use netaware_record::{CpuUse, Direction, Interval, IpVersion, PathMetric, Record};
use netaware_stats::ceasing::Ceased;
use netaware_units::{BitRate, ByteCount, Mono, Span};
use netaware_wire::control::MAX_VOLLEY_PATIENCE;

use crate::host::{self, During, Known};
use crate::lane::{self, Lane};
use crate::lease;
use crate::path;
use crate::progress::{Progress, Watch};
use crate::report::path_rates::{self, Estimated};
use crate::report::{self, Findings};
use crate::request::{Directions, Target};
use crate::session::Session;
use crate::stage::Cause;
use crate::trains::{Silence, Trains};

mod following;
mod interleaved;

/// How capacity is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapacityMethod {
    /// Bulks first, modes where these leave doubt.
    #[default]
    Automatic,
    /// Bulks of least delay (CapProbe, PBProbe).
    Bulk,
    /// Modes of many pairs and trains (Pathrate).
    Pathrate,
}

/// How available bandwidth is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AvailableMethod {
    /// The curve, confirmed by streams.
    #[default]
    Automatic,
    /// How far trains of several rates are stretched (TOPP).
    Curve,
    /// Streams that do or do not build up a queue (Pathload).
    Slops,
    /// Trains whose rate grows within them (pathChirp), tracked.
    Chirp,
    /// Pairs as far apart as the tight link sends them, whose rate is given (Spruce).
    Spruce(BitRate),
    /// The path is filled (RFC 9097, Type B).
    MaximumB,
    /// The same with a fast search (Type C).
    MaximumC,
}

/// What to estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimation {
    /// The rate of the narrow link.
    Capacity(CapacityMethod),
    /// What is left of the tight one.
    Available(AvailableMethod),
}

/// A path rate to be estimated.
#[derive(Debug, Clone)]
pub struct EstimationRequest {
    /// To whom.
    pub target: Target,
    /// What.
    pub estimation: Estimation,
    /// Which way; both ways follow each other.
    pub directions: Directions,
    /// What each version and direction may take.
    pub time: Span,
    /// Share of the capacity that the trains may use on average, 0..=1.
    pub max_load: f64,
    /// Largest IP packet, bytes; absent: what fits the path.
    pub packet: Option<u32>,
    /// Of random distances.
    pub seed: u64,
    /// Follow the path for `time`, or until stopped where that is absent: a figure this often.
    pub follow: Option<Follow>,
}

/// How a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follow {
    /// From figure to figure of a version and direction.
    pub interval: Span,
    /// For how long; absent: until it is stopped.
    pub lasting: Option<Span>,
}

impl EstimationRequest {
    /// The usual one.
    pub fn new(target: Target, estimation: Estimation) -> Self {
        Self {
            target,
            estimation,
            directions: Directions::Forward,
            time: Span::from_secs(30),
            max_load: if fills_the_path(estimation) { 1.0 } else { MAX_LOAD },
            packet: None,
            seed: 1,
            follow: None,
        }
    }

    fn metric(&self) -> PathMetric {
        match self.estimation {
            Estimation::Capacity(_) => PathMetric::Capacity,
            it if fills_the_path(it) => PathMetric::Maximum,
            Estimation::Available(_) => PathMetric::Available,
        }
    }

    fn command(&self) -> &'static str {
        match self.estimation {
            Estimation::Capacity(_) => "capacity",
            Estimation::Available(_) => "available",
        }
    }

    fn method(&self) -> &'static str {
        match self.estimation {
            Estimation::Capacity(CapacityMethod::Automatic)
            | Estimation::Available(AvailableMethod::Automatic) => "auto",
            Estimation::Capacity(CapacityMethod::Bulk) => "bulk",
            Estimation::Capacity(CapacityMethod::Pathrate) => "pathrate",
            Estimation::Available(AvailableMethod::Curve) => "curve",
            Estimation::Available(AvailableMethod::Slops) => "slops",
            Estimation::Available(AvailableMethod::Chirp) => "chirp",
            Estimation::Available(AvailableMethod::Spruce(_)) => "spruce",
            Estimation::Available(AvailableMethod::MaximumB) => "maximum-b",
            Estimation::Available(AvailableMethod::MaximumC) => "maximum-c",
        }
    }

    /// Whether the method goes on for ever, with a figure at any time.
    fn tracks(&self) -> bool {
        self.estimation == Estimation::Available(AvailableMethod::Chirp)
    }

    /// The method behind first trains, so that it sends no more than the path was seen to carry.
    fn estimator(&self, instrument: &Instrument) -> Careful {
        match self.follow {
            Some(_) => self.rate_method().following(instrument, self.seed, TESTED_EVERY),
            None => self.rate_method().careful(instrument, self.seed),
        }
    }

    fn rate_method(&self) -> RateMethod {
        match self.estimation {
            Estimation::Capacity(CapacityMethod::Automatic) => RateMethod::Capacity,
            Estimation::Capacity(CapacityMethod::Bulk) => RateMethod::Bulk,
            Estimation::Capacity(CapacityMethod::Pathrate) => RateMethod::Pathrate,
            Estimation::Available(AvailableMethod::Automatic) => RateMethod::Available,
            Estimation::Available(AvailableMethod::Curve) => RateMethod::Curve,
            Estimation::Available(AvailableMethod::Slops) => RateMethod::Slops,
            Estimation::Available(AvailableMethod::Chirp) => RateMethod::Chirp,
            Estimation::Available(AvailableMethod::Spruce(capacity)) => RateMethod::Spruce(capacity.0 as f64),
            Estimation::Available(AvailableMethod::MaximumB) => RateMethod::Maximum(Search::TypeB),
            Estimation::Available(AvailableMethod::MaximumC) => RateMethod::Maximum(Search::TypeC),
        }
    }

    /// Until it ends by itself.
    fn lasting(&self) -> Option<Span> {
        self.follow.map_or(Some(self.time), |follow| follow.lasting)
    }

    fn options(&self) -> BTreeMap<String, String> {
        let given = [
            ("method", Some(self.method().to_owned())),
            ("direction", Some(format!("{:?}", self.directions).to_lowercase())),
            ("time", self.lasting().map(|time| time.to_string())),
            ("max-load", Some(format!("{} %", self.max_load * 100.0))),
            ("packet", self.packet.map(|packet| format!("{packet} B"))),
            ("watch", self.follow.map(|follow| follow.interval.to_string())),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// Estimates in each direction asked for, over both versions volley by volley: two at a time would
/// be each other's traffic.
pub fn estimate(request: &EstimationRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let opened = report::Opening::now(request.command(), &request.target, request.options());
    let versions = i64::try_from(request.target.versions.len()).unwrap_or(1);
    let ways = i64::try_from(request.directions.each().len()).unwrap_or(1);
    let whole = match request.follow {
        Some(follow) => follow.lasting.unwrap_or(ENDLESS),
        None => request.time * versions * ways,
    };
    let mut watch = Watch::new(whole, progress);
    watch.phase("connect", None);
    let mut lanes = lane::open_all(&request.target, stop);
    lane::note_dead(&lanes, &mut watch);
    let at_once = request.follow.map_or(whole, |follow| follow.interval + request.time);
    let alive = lanes.iter().filter(|lane| lane.is_alive());
    let beside: Span = alive.map(|lane| beside_exchanges(lane.round_trip(), ways)).sum();
    let around = lease::around(&lanes, ways, 1) + beside;
    lane::reserve_all(&mut lanes, at_once + around + SLACK, stop, &mut watch);
    if let Some(follow) = request.follow {
        following::follow(request, follow, &mut lanes, stop, &mut watch);
    } else {
        let exchange = lease::exchange(&lanes);
        let alive = i64::try_from(lanes.iter().filter(|lane| lane.is_alive()).count()).unwrap_or(1);
        if lanes.iter().any(Lane::is_alive) {
            watch.foretell(request.time * (ways * alive));
        }
        watch.announce(with_opening(request.time, exchange) * (ways * alive), exchange);
        let farthest = lanes.iter().filter(|lane| lane.is_alive()).map(Lane::round_trip).max();
        if let Some(note) = farthest.and_then(|round_trip| too_far_for(request, round_trip)) {
            watch.tell(Progress::Longer(note));
        }
        if let Some(lane) = lanes.iter().find(|lane| lane.is_alive()) {
            // Somebody answers: what is to be said is said now.
            watch.phase(request.metric().name(), Some(lane.version));
        }
        path_rates(std::slice::from_ref(request), &mut lanes, stop, &mut watch);
    }
    let is_silent = |lane: &Lane| lane.result.path_rates.iter().any(path_rates::is_silent);
    for lane in lanes.iter_mut().filter(|lane| is_silent(lane)) {
        path::explain_silence(lane, &request.target, stop, &mut watch);
    }
    let nothing = || Findings { tells_each_standstill: true, ..Findings::default() };
    let mut findings: Vec<Findings> = lanes.iter().map(|_| nothing()).collect();
    let mut record = report::finish(opened, lanes, &mut findings, stop);
    // It would compare connect times alone; the rates stand side by side.
    record.comparison = None;
    record
}

/// Each request over each lane, a direction at a time, versions in turns of a volley each. A lane
/// of which capacity and available bandwidth of a direction are known is told what they say
/// together.
pub(crate) fn path_rates(
    requests: &[EstimationRequest],
    lanes: &mut [Lane],
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) {
    learn_path_mtus(lanes, requests);
    let known = host::known();
    let mut answers = Vec::new();
    let each = requests.iter().flat_map(|it| it.directions.each().iter().map(move |way| (it, *way)));
    for (round, (request, direction)) in (0..).zip(each) {
        let metric = request.metric();
        for group in interleaved::groups(lanes, request.time, round) {
            if stop.is_raised() {
                continue;
            }
            let alone = match group[..] {
                [index] => Some(lanes[index].version),
                _ => None,
            };
            let members = group.iter().map(|index| &lanes[*index]);
            let needed: Span = members
                .map(|lane| {
                    request.time + lease::exchanges_at_most(lane.round_trip(), 1, MAX_VOLLEY_PATIENCE)
                })
                .sum();
            // Others of the group need their share of what comes after, too.
            lane::keep_reserved(lanes, needed, needed * 2, stop, watch);
            watch.phase(format!("{} {}", metric.name(), direction.name()), alone);
            for (index, done) in interleaved::estimate(lanes, &group, request, direction, &known, stop) {
                let lane = &mut lanes[index];
                lane.result.path_rates.push(path_rates::result(metric, lane.version, direction, &done));
                answers.push((index, direction, metric, done.answer));
            }
        }
    }
    for (index, lane) in lanes.iter_mut().enumerate() {
        for direction in [Direction::Forward, Direction::Reverse] {
            let of = |wanted: PathMetric| {
                let is_it = |(of, way, metric, _): &&(usize, Direction, PathMetric, _)| {
                    (*of, *way, *metric) == (index, direction, wanted)
                };
                answers.iter().find(is_it).map(|(.., answer)| answer.as_ref().ok())
            };
            if let (Some(capacity), Some(available)) = (of(PathMetric::Capacity), of(PathMetric::Available)) {
                lane.result.path_use.push(path_rates::path_use(direction, Use::of(capacity, available)));
            }
        }
    }
}

/// What a method may take, so that the responder's owner lets its test run to its end; a time that
/// is shortened for that is told.
fn allowed(lane: &mut Lane, asked: Span) -> Option<Span> {
    lane.session()?;
    let Some((cap, longest)) = longest(lane) else { return Some(asked) };
    if asked > longest {
        lane.warn(&format!(
            "the responder's owner allows tests no longer than {cap}: each method had {longest} instead of {asked}"
        ));
    }
    Some(asked.min(longest))
}

/// Says that trains ended at the most bytes that the responder's owner allows, and returns how many
/// these are.
fn told_cap_on_bytes(lane: &mut Lane) -> Option<ByteCount> {
    let most = lane.session()?.limits.bytes?;
    lane.warn(&format!("the responder's owner allows tests of no more than {most}: trains ended at that"));
    Some(most)
}

/// How long a test may be by the responder's owner, and how much of that is left for a method.
fn longest(lane: &mut Lane) -> Option<(Span, Span)> {
    let session = lane.session()?;
    let cap = session.limits.duration?;
    Some((cap, longest_within(cap, session.round_trip())))
}

/// What a method may take of a test that lasts as long as that: beginning it and the last answers
/// take the rest, over a path of this round trip.
fn longest_within(cap: Span, round_trip: Span) -> Span {
    (cap - ENDING - round_trip * 2).max(cap / 2)
}

/// What both hosts can do over this session.
fn instrument(
    session: &Session,
    request: &EstimationRequest,
    known: &Known,
    direction: Direction,
    time_limit: Span,
) -> Instrument {
    // Larger ones would travel in pieces, or not at all.
    let fits = path_mtu(session, &request.target.options).unwrap_or(request.packet.unwrap_or(USUAL_MTU));
    let largest = request.packet.unwrap_or(MOST_MTU).min(fits).clamp(LEAST_MTU, MOST_MTU);
    let rtt = session.reach.shortest_round_trip().unwrap_or_default();
    let here = known.calibration;
    // A responder that does not say what it can do is taken for one like this host.
    let there = session.responder.stamps.map_or(here, |stamps| Calibration::from(stamps).sane());
    let (sender, receiver) = match direction {
        Direction::Reverse => (there, here),
        Direction::Forward | Direction::RoundTrip => (here, there),
    };
    Instrument {
        largest,
        smallest: SMALLEST.min(largest),
        rtt: rtt.max(Span::from_micros(50)),
        send_gap: sender.send_gap,
        send_error: sender.stamp_error,
        receive_error: receiver.stamp_error,
        largest_burst: known
            .largest_burst(direction, session.responder.stamps.and_then(|stamps| stamps.room)),
        max_load: request.max_load,
        time_limit,
        carried: None,
    }
}

/// What is left for a method of the time that was asked for, where the round trip is so long that
/// opening and ending take a good part of it: all together is to last as long as was said.
fn without_opening(lane: &mut Lane, time: Span) -> Span {
    let Some(session) = lane.session() else { return time };
    let rtt = session.round_trip();
    let opening = rtt * OPENING_TRIPS;
    let left = left_of(time, opening);
    if left == time {
        return time;
    }
    lane.warn(&format!(
        "at a round trip of {rtt} opening and ending take {opening} of {time}: each method had {left}"
    ));
    left
}

/// The path MTU that the system knows, for the control connection or for datagrams.
fn path_mtu(session: &Session, options: &SocketOptions) -> Option<u32> {
    let of_connection = session.link.tcp_info().map(|info| info.path_mtu);
    let of_datagrams = netaware_io::path_mtu::known(session.link.peer(), options);
    [of_connection, of_datagrams].into_iter().flatten().filter(|mtu| *mtu >= LEAST_MTU).min()
}

/// Lets the system learn the MTU of each lane's path, so that no train has packets that are too big
/// for it: these would be lost, and later ones sent in pieces.
fn learn_path_mtus(lanes: &mut [Lane], requests: &[EstimationRequest]) {
    let Some(first) = requests.first() else { return };
    let options = &first.target.options;
    let longest = requests.iter().map(|request| request.packet.unwrap_or(MOST_MTU)).max().unwrap_or(MOST_MTU);
    std::thread::scope(|scope| {
        for lane in lanes.iter_mut().filter(|lane| lane.is_alive()) {
            let Some(session) = lane.session() else { continue };
            let round_trip = session.reach.shortest_round_trip().unwrap_or_default();
            let (to, patience) = (session.link.peer(), mtu_patience(round_trip));
            scope.spawn(move || netaware_io::path_mtu::learn(to, options, longest, patience));
        }
    });
}

/// What became of one opening of trains.
struct Turn {
    sent: u64,
    sent_bytes: u64,
    /// From its begin to the end of the last volley of which is known what was sent.
    lasted: Span,
    received: u64,
    unstamped: u64,
    during: During,
    silence: Silence,
    /// Nothing came any more from an instant on until the end.
    ceased: Option<Ceased>,
    ended: Result<(), Cause>,
}

impl Turn {
    /// Trains that could not even be opened.
    fn failed(cause: Cause) -> Self {
        Self {
            sent: 0,
            sent_bytes: 0,
            lasted: Span::ZERO,
            received: 0,
            unstamped: 0,
            during: During::default(),
            silence: Silence::default(),
            ceased: None,
            ended: Err(cause),
        }
    }
}

/// Trains in a direction that are open, and the processors when they were.
struct Opened<'a> {
    trains: Trains<'a>,
    /// A session's flag is a child of the person's: either ends it.
    over: StopFlag,
    cpu: CpuSnapshot,
    began_at: Mono,
}

impl<'a> Opened<'a> {
    fn open(
        session: &'a mut Session,
        request: &EstimationRequest,
        direction: Direction,
        largest: u32,
        duration: Span,
    ) -> Result<Self, Cause> {
        let over = session.over.clone();
        let duration = session.limits.duration.map_or(duration, |cap| duration.min(cap));
        let trains = Trains::open(session, &request.target.options, direction, largest, duration)?;
        Ok(Self { trains, over, cpu: CpuSnapshot::take(), began_at: clock::now() })
    }

    fn close(self, ran: Result<(), Cause>) -> Turn {
        let Self { mut trains, over, cpu, began_at } = self;
        if ran.is_ok() && !over.is_raised() {
            clock::sleep_until(began_at + SHORTEST_LOOK);
        }
        let cpu = CpuSnapshot::take().use_since(&cpu, clock::now() - began_at);
        let cpu = CpuUse { denied: trains.demand.denied(), ..cpu };
        let during = During::new(std::mem::take(&mut trains.departures), &cpu);
        let (sent, received, unstamped) = (trains.sent, trains.received, trains.unstamped);
        let (sent_bytes, silence) = (trains.sent_bytes, trains.silence);
        let lasted = trains.over_at.map_or(Span::ZERO, |over_at| over_at - began_at);
        // What a person ended may have gone on a moment later.
        let ceased = if over.is_raised() { None } else { trains.ceased() };
        let ended = ran.and_then(|()| trains.close());
        let during = during.with_responder(ended.as_ref().ok().and_then(Option::as_ref));
        let ended = ended.map(|_| ());
        Turn { sent, sent_bytes, lasted, received, unstamped, during, silence, ceased, ended }
    }
}

/// Opens trains in a direction, runs what is to run over them until the session or a person ends
/// it, and closes them.
fn turn(
    session: &mut Session,
    request: &EstimationRequest,
    direction: Direction,
    largest: u32,
    duration: Span,
    run: impl FnOnce(&mut Trains<'_>, &StopFlag) -> Result<(), Cause>,
) -> Turn {
    match Opened::open(session, request, direction, largest, duration) {
        Ok(mut opened) => {
            let ran = run(&mut opened.trains, &opened.over);
            opened.close(ran)
        }
        Err(cause) => Turn::failed(cause),
    }
}

/// Whether it is no estimate from little traffic, but all that passes.
fn fills_the_path(estimation: Estimation) -> bool {
    matches!(estimation, Estimation::Available(AvailableMethod::MaximumB | AvailableMethod::MaximumC))
}

/// 0..=1; of nothing none.
fn share_of(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// IP and UDP.
fn headers(version: IpVersion) -> u32 {
    version.header_len() + 8
}

/// What an [`Interval`] of the record is made of. It is of a rate or of a share, and neither is
/// below zero, which the statistics do not know.
pub(crate) fn interval(of: &netaware_stats::interval::Interval) -> Interval {
    Interval { estimate: of.estimate, lo: of.lo.max(0.0), hi: of.hi, confidence: of.confidence }
}

/// See [`without_opening`].
fn left_of(time: Span, opening: Span) -> Span {
    if opening * 20 <= time { time } else { (time - opening).max(time / 2) }
}

/// The time to ask for, so that so much of it is left for a method.
fn asking(left: Span, opening: Span) -> Span {
    if opening * 20 <= left { left } else { (left + opening).min(left * 2) }
}

/// The same of a method that says what time would have been enough for it.
fn with_time_to_open(why: NoFigure, opening: Span) -> NoFigure {
    match why {
        NoFigure::TooShort { carried, enough } => {
            NoFigure::TooShort { carried, enough: enough.map(|enough| asking(enough, opening)) }
        }
        other => other,
    }
}

/// That a method has no time for its volleys over a path of this round trip, with the time to ask
/// for: it waits for the answer to each. A method that tracks a path has a figure at any time.
fn too_far_for(request: &EstimationRequest, round_trip: Span) -> Option<String> {
    let round_trip = round_trip.or_zero();
    let opening = round_trip * OPENING_TRIPS;
    let left = left_of(request.time, opening);
    let volleys = round_trip * i64::from(request.rate_method().needs().rounds);
    (volleys > left && !request.tracks()).then(|| {
        // As a method says itself what would have been enough: two round trips and a fifth more.
        let enough = asking(volleys * 12 / 5, opening).secs_f64().ceil();
        format!(
            "at a round trip of {round_trip} the volleys of this method take about {volleys}, and {left} are left for \
             them: there may be no figure, or a rough one; -t {enough}s or more would be enough"
        )
    })
}

/// What the trains of so many directions need of the responder's place beside the exchanges that a
/// lease counts: learning the MTU of the path, and the round trips that opening takes more.
fn beside_exchanges(round_trip: Span, ways: i64) -> Span {
    let round_trip = round_trip.or_zero();
    mtu_patience(round_trip) + round_trip * (MORE_TRIPS * ways)
}

/// How long an answer to a packet that is too big for the path is waited for.
fn mtu_patience(round_trip: Span) -> Span {
    round_trip * 2 + MTU_ANSWER
}

/// What a method takes that was asked for `time`, opening and ending included.
fn with_opening(time: Span, round_trip: Span) -> Span {
    let opening = round_trip.or_zero() * OPENING_TRIPS;
    left_of(time, opening) + opening
}

/// Share of the capacity that trains may use on average, unless somebody says otherwise.
const MAX_LOAD: f64 = 0.1;
/// A path that is followed may get a token bucket, and lose it.
const TESTED_EVERY: Span = Span::from_secs(60);
/// For who follows a path until stopped: as long as anybody may.
const ENDLESS: Span = Span::from_secs(24 * 3600);
/// Added to the time asked for: opening and ending.
const SLACK: Span = Span::from_secs(10);
/// Of a test that the responder's owner bounds: what beginning and the last answers take, beside
/// the way there and back.
const ENDING: Span = Span::from_secs(1);
/// Round trips that opening trains, the session before, and ending them take.
const OPENING_TRIPS: i64 = 9;
/// Of these, round trips that [`lease::exchanges`] does not count.
const MORE_TRIPS: i64 = 3;
/// Processors are looked at for so long, at both ends: over less a share of a core says nothing.
const SHORTEST_LOOK: Span = Span::from_millis(120);
const LEAST_MTU: u32 = 576;
/// What a router or a host may take to answer a packet that is too big.
const MTU_ANSWER: Span = Span::from_millis(20);
const USUAL_MTU: u32 = 1500;
/// Loopback has more; packets of several segments would say little about a path.
const MOST_MTU: u32 = 9000;
/// Below this the headers are what is measured.
const SMALLEST: u32 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    /// The responder ended such a test, and was told to have broken the protocol.
    #[test]
    fn a_method_ends_before_the_longest_test_that_the_owner_allows() {
        let rows = [(30_000, 0, 29_000), (2_000, 0, 1_000), (1_000, 0, 500), (30_000, 1_200, 26_600)];
        for (cap, round_trip, want) in rows {
            let found = longest_within(Span::from_millis(cap), Span::from_millis(round_trip));
            assert_eq!(found, Span::from_millis(want), "{cap} ms");
        }
    }

    #[test]
    fn no_interval_of_a_rate_or_a_share_reaches_below_zero() {
        let found =
            netaware_stats::interval::Interval { estimate: 0.5, lo: -0.25, hi: 1.25, confidence: 0.95 };
        let want = Interval { estimate: 0.5, lo: 0.0, hi: 1.25, confidence: 0.95 };
        assert_eq!(interval(&found), want);
    }

    #[test]
    fn opening_is_a_part_of_the_time_until_it_takes_half_of_it() {
        let ten = Span::from_secs(10);
        let takes = |rtt_ms| with_opening(ten, Span::from_millis(rtt_ms)).nanos() / 1_000_000;
        assert_eq!([takes(0), takes(20), takes(300), takes(3000)], [10_000, 10_180, 10_000, 32_000]);
    }

    /// Over a far path the place ran out before the last direction was over.
    #[test]
    fn a_lease_of_trains_contains_their_opening_and_the_search_for_the_mtu() {
        for (ms, ways) in [(0, 1), (20, 2), (600, 1), (2600, 2)] {
            let round_trip = Span::from_millis(ms);
            let leased = lease::exchanges(round_trip, 1) * ways + beside_exchanges(round_trip, ways);
            let needed = round_trip * (OPENING_TRIPS * ways) + mtu_patience(round_trip);
            assert!(leased >= needed, "{ms} ms: {leased} of {needed}");
            assert!(leased <= needed + Span::from_millis(100 * ways), "{ms} ms: {leased} of {needed}");
        }
    }

    /// `capacity` over 2.6 s took 46 s, had no figure, and said only then that it had no time.
    #[test]
    fn a_path_that_is_too_far_for_the_time_is_said_to_be_before_anything_is_sent() {
        let request = EstimationRequest::new(Target::new("h"), Estimation::Capacity(CapacityMethod::Bulk));
        let said = |ms| too_far_for(&request, Span::from_millis(ms));
        assert_eq!(
            said(2600).unwrap(),
            "at a round trip of 2.60 s the volleys of this method take about 36.4 s, and 15.0 s are left for them: \
             there may be no figure, or a rough one; -t 111s or more would be enough"
        );
        assert_eq!([said(0), said(300)], [None, None]);
        let tracking =
            EstimationRequest::new(Target::new("h"), Estimation::Available(AvailableMethod::Chirp));
        assert_eq!(too_far_for(&tracking, Span::from_millis(2600)), None);
    }

    /// "-t 96s would be enough" left 72.6 s for a method that needs 96.
    #[test]
    fn a_time_that_is_said_to_be_enough_is_so_with_opening_and_ending() {
        for (left, opening) in [(96_000, 23_400), (96_000, 100), (10_000, 18_000), (10_000, 501)] {
            let [left, opening] = [left, opening].map(Span::from_millis);
            assert!(left_of(asking(left, opening), opening) >= left, "{left} {opening}");
        }
        let short = |enough| NoFigure::TooShort { carried: None, enough: Some(Span::from_millis(enough)) };
        assert_eq!(with_time_to_open(short(96_000), Span::from_millis(23_400)), short(119_400));
        assert_eq!(with_time_to_open(NoFigure::Batched, Span::from_secs(9)), NoFigure::Batched);
    }
}
