//! TCP results from their rounds.

use netaware_probe::fairness;
use netaware_probe::goodput::{MeasuredRound, goodput};
use netaware_probe::limit::{self, Across, TcpEvidence};
use netaware_probe::outage::Outages;
use netaware_probe::tcp_times::{self, BlocksAsked};
use netaware_probe::unrest::{self, Rising, Stall};
use netaware_probe::{plan_end, rfc6349, warm_up};
use netaware_record::{
    Direction, Health, Interval, IpVersion, LatencyResult, Layer, Limit, LimitedBy, LoadedLatency, Outcome,
    Pedigree, QueueLeft, ReceiverTick, SenderTick, StreamEnd, TcpCount, TcpEnd, TcpResult, UdpResult,
};
use netaware_units::{BitRate, ByteCount, ClockSource, SendRate, Span};

use super::route::Shift;
use super::{Load, Path, latency, most_frequent, outages, worst};
use crate::transfer::{TcpOrder, TcpRound};

/// What one transfer showed of its path: what later phases go by. A rate of zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    /// What the receiver got per second after the warm-up.
    pub(crate) rate: Option<SendRate>,
    /// What it got per second of all the time that was planned, warm-up and silence included.
    pub(crate) mean: Option<SendRate>,
    /// What the receiver got per second in the last third of what counts.
    pub(crate) lately: Option<SendRate>,
    /// It was still speeding up when it ended.
    pub(crate) is_lower_bound: bool,
    /// What came per second behind the last slice in which nothing came.
    pub(crate) behind: Option<SendRate>,
    /// How long the warm-up took; absent where it was not over.
    pub(crate) warm_up: Option<Span>,
    /// An outage fell into it: the path carries more while it lasts.
    pub(crate) is_cut: bool,
}

impl Seen {
    /// What a stream that does not listen to losses may go by: the rate, unless it had fallen by
    /// the end. A token bucket lets more pass at first than it does for good.
    pub(crate) fn lasting(&self) -> Option<SendRate> {
        let rate = self.rate?;
        let lately = self.lately.unwrap_or(rate);
        let has_fallen = lately.bit_rate().0 < rate.bit_rate().percent(HAS_FALLEN).0;
        Some(if has_fallen { lately } else { rate })
    }
}

/// Rates of a transfer vary by less than this share, per cent.
const HAS_FALLEN: u64 = 70;

/// What one transfer showed of a path with this round trip.
pub(crate) fn seen(round: &TcpRound, round_trip: Span) -> Seen {
    let measured = measured(round, Some(round_trip));
    let bytes: ByteCount = measured.ticks.iter().map(|tick| tick.bytes).sum();
    let time: Span = measured.ticks.iter().map(|tick| tick.length.or_zero()).sum();
    let counted = measured.counted();
    let last = &counted[counted.len() - counted.len() / 3..];
    let rate_of = |ticks: &[ReceiverTick]| {
        let bytes: ByteCount = ticks.iter().map(|tick| tick.bytes).sum();
        let time: Span = ticks.iter().map(|tick| tick.length.or_zero()).sum();
        BitRate::mean(bytes, time).and_then(SendRate::new)
    };
    let silent = counted.iter().rposition(|tick| tick.bytes == ByteCount(0));
    let behind = silent.map_or(counted, |at| &counted[at + 1..]);
    Seen {
        lately: rate_of(last).filter(|_| last.len() > 1),
        behind: rate_of(behind),
        rate: goodput(&[measured]).and_then(|goodput| SendRate::new(goodput.rate)),
        mean: BitRate::mean(bytes, time.max(planned(round).unwrap_or_default())).and_then(SendRate::new),
        is_lower_bound: measured.warm_up == warm_up::WarmUpEnd::NeverEnded,
        is_cut: is_cut(round),
        warm_up: (measured.warm_up != warm_up::WarmUpEnd::NeverEnded).then(|| {
            measured.ticks.iter().take(measured.warm_up.first()).map(|tick| tick.length.or_zero()).sum()
        }),
    }
}

/// The kinds of transfers that an outage fell into, by direction and number of streams.
pub(super) fn cut(rounds: &[TcpRound]) -> Vec<(Direction, u16)> {
    rounds.iter().filter(|round| is_cut(round)).map(kind).collect()
}

/// Whether an outage fell into a transfer: its lower rate is that of the outage. Without requests
/// beside it only a long one is seen.
fn is_cut(round: &TcpRound) -> bool {
    match round.under_load() {
        Some(_) => outages::beside(round).is_some(),
        None => stalled(round).is_some(),
    }
}

fn kind(round: &TcpRound) -> (Direction, u16) {
    (round.order.direction, round.order.streams)
}

/// The slices that one round goes by.
pub(super) fn slices(round: &TcpRound) -> &[ReceiverTick] {
    round.count().1
}

/// That a transfer began fast and then held a much lower rate, in words.
fn slowing_down<'a>(rounds: impl IntoIterator<Item = &'a MeasuredRound<'a>>) -> Option<String> {
    rounds.into_iter().find_map(|round| {
        let (first, later) = fallen(round.ticks)?;
        let half = round.ticks.get(..round.ticks.len() / 2)?;
        let fast = half.iter().rposition(|tick| slice_rate(tick) * 2.0 > first + later)?;
        let credit: ByteCount = half.iter().take(fast + 1).map(|tick| tick.bytes).sum();
        let (first, later) = (BitRate(first as u64), BitRate(later as u64));
        Some(format!(
            "it fell for good from {first} to {later} after {credit}, as behind a token bucket that is empty then"
        ))
    })
}

/// The rates at first and later, in bit/s, of a transfer that fell for good in its first half.
fn fallen(ticks: &[ReceiverTick]) -> Option<(f64, f64)> {
    let half = ticks.get(..ticks.len() / 2)?;
    let early = half.iter().map(slice_rate).sum::<f64>() / half.len().max(1) as f64;
    super::path_rates::held_down(early, ticks)
}

fn slice_rate(tick: &ReceiverTick) -> f64 {
    tick.bytes.0 as f64 * 8.0 / tick.length.secs_f64().max(1e-9)
}

/// The rates before and after a fall for good within a transfer of which [`seen`] tells `seen`: in
/// its first half, or by its last third.
pub(super) fn fell_within(round: &TcpRound, seen: &Seen) -> Option<(BitRate, BitRate)> {
    let early = fallen(counting(round))
        .map(|(first, later)| (BitRate(first.round() as u64), BitRate(later.round() as u64)));
    early.or_else(|| Some((seen.rate?.bit_rate(), seen.lately?.bit_rate())))
}

/// That several streams, which came later, got far less than one stream in the same direction: what
/// passes at first does not last. `tcp` and `udp` are the results of one version, TCP's in the
/// order first run, of these rounds. Where an outage fell into the slower transfer, or what came
/// after it had the higher rate again, nothing of the kind is known.
pub(super) fn fell_behind(tcp: &[TcpResult], udp: &[UdpResult], rounds: &[TcpRound]) -> Vec<String> {
    let cut = cut(rounds);
    let whole = tcp.iter().filter(|it| !cut.contains(&(it.pedigree.direction, it.streams)));
    whole.filter_map(|later| fell_behind_one(later, tcp, udp, rounds)).collect()
}

fn fell_behind_one(
    later: &TcpResult,
    all: &[TcpResult],
    udp: &[UdpResult],
    rounds: &[TcpRound],
) -> Option<String> {
    let before = all.iter().take_while(|it| *it != later);
    let of_direction = |it: &&TcpResult| it.pedigree.direction == later.pedigree.direction;
    let first = before.filter(of_direction).find(|it| it.streams < later.streams)?;
    let is_whole = [first, later].iter().all(|it| it.outcome == Outcome::Complete);
    let (fast, slow) = (first.goodput?, later.goodput?);
    let middle = BitRate(u64::midpoint(fast.0, slow.0));
    if !is_whole || slow.0.saturating_mul(2) > fast.0 || came_again(later, udp, rounds, middle) {
        return None;
    }
    let round = |it: &TcpResult| -> Vec<ReceiverTick> {
        it.receiver_ticks.chunk_by(|one, next| one.end < next.end).next().unwrap_or_default().to_vec()
    };
    let ticks = round(later);
    let is_fast = |it: &ReceiverTick| BitRate::mean(it.bytes, it.length).is_some_and(|rate| rate > middle);
    let credit = ticks.iter().rposition(is_fast).map_or(0, |last| last + 1);
    let bytes: ByteCount = round(first).iter().chain(&ticks[..credit]).map(|it| it.bytes).sum();
    Some(format!(
        "TCP {} came at {fast} for the first {bytes} and at {slow} then: a token bucket was empty, or the path became \
         slower; only the lower rate lasts",
        later.pedigree.direction.name()
    ))
}

/// Whether something came faster than that in the same direction after the first transfer of this
/// kind: a transfer, or the stream of datagrams that follows transfers.
fn came_again(slow: &TcpResult, udp: &[UdpResult], rounds: &[TcpRound], than: BitRate) -> bool {
    let direction = slow.pedigree.direction;
    let of_kind = |round: &&TcpRound| kind(round) == (direction, slow.streams);
    let after = rounds.iter().skip_while(|round| !of_kind(round)).skip(1);
    let mut transfers = after.filter(|round| round.order.direction == direction);
    let mut streams = udp.iter().filter(|it| it.pedigree.direction == direction);
    transfers.any(|round| goodput(&[measured(round, None)]).is_some_and(|it| it.rate > than))
        || streams.any(|it| it.goodput.is_some_and(|rate| rate > than))
}

/// One result per direction and number of streams, in the order first run.
pub(super) fn results(
    path: Path,
    rounds: &[TcpRound],
    idle: Option<&LatencyResult>,
    connects: &[Span],
    shift: Option<Shift>,
) -> Vec<TcpResult> {
    let mut kinds: Vec<(Direction, u16)> = Vec::new();
    for round in rounds {
        let kind = (round.order.direction, round.order.streams);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
        .into_iter()
        .filter_map(|kind| {
            let of_kind = |round: &&TcpRound| (round.order.direction, round.order.streams) == kind;
            // The idle round trip is not that of a path whose route has changed since.
            let mut numbers = (0..).zip(rounds).filter(|(_, round)| of_kind(round)).map(|(number, _)| number);
            let is_moved = shift.is_some_and(|shift| numbers.any(|number| shift.has_moved(number)));
            let base = if is_moved { Base::Moved(shift?.after) } else { Base::Idle(idle) };
            result(path, &rounds.iter().filter(of_kind).collect::<Vec<_>>(), base, connects)
        })
        .collect()
}

/// One round with the part of it that counts. Where no echoes have measured the idle round trip,
/// the sender's TCP knows it: without one, each slice would pass for a round, and on a path of a
/// second slow start would be over after the first pause between its flights.
pub(super) fn measured(round: &TcpRound, idle_rtt: Option<Span>) -> MeasuredRound<'_> {
    let ticks = counting(round);
    let warm_up = if let Some(omit) = round.order.omit {
        warm_up::asked(ticks, omit)
    } else {
        let loaded_rtt = round.loaded_rtt().unwrap_or_default();
        let idle_rtt = idle_rtt.filter(|rtt| *rtt > Span::ZERO);
        // The route may have changed since.
        let own = own_round_trip(round).filter(|own| idle_rtt.is_none_or(|idle| is_far_above(*own, idle)));
        let round_trip = own.or(idle_rtt);
        let round_trip = round_trip.unwrap_or_default();
        let end = warm_up::settled(warm_up::slow_start(ticks, round_trip), ticks, loaded_rtt);
        let is_whole = round.ended.outcome == Outcome::Complete;
        let end = if is_whole { warm_up::unless_full_at_once(end, slices(round), round_trip) } else { end };
        // A rate of two segments is no rate, however evenly those behind them came.
        let bytes: ByteCount = ticks.iter().map(|tick| tick.bytes).sum();
        let is_little = end == warm_up::WarmUpEnd::NoneSeen && bytes < ENOUGH;
        if is_little { warm_up::WarmUpEnd::NeverEnded } else { end }
    };
    MeasuredRound { ticks, warm_up, at_start: with_the_first_byte(round) }
}

/// What the receiver read together with the first byte, with which its clock starts; nothing where
/// what the sender knows to have been acknowledged counts, since its clock starts before.
fn with_the_first_byte(round: &TcpRound) -> ByteCount {
    if round.count().0 != TcpCount::Delivered {
        return ByteCount(0);
    }
    let first = round.ended.tcp_receiver.iter().flat_map(|end| &end.streams);
    let first = first.filter_map(|stream| stream.first_read).filter(|read| *read > ByteCount(0)).min();
    let of_slice = round.ended.receiver_ticks.first().map_or(0, |tick| tick.bytes.0);
    ByteCount(first.map_or(0, |read| read.0.min(of_slice)))
}

/// Eight segments: what comes in one slice or in its neighbour is an eighth of them at most.
const ENOUGH: ByteCount = ByteCount(8 * 1448);

fn is_far_above(round_trip: Span, idle: Span) -> bool {
    netaware_probe::shift::is_far_above(round_trip, idle)
}

/// The smallest round trip that the sender's TCP has seen.
pub(super) fn own_round_trip(round: &TcpRound) -> Option<Span> {
    let streams = round.ended.tcp_sender.iter().flat_map(|end| &end.streams);
    let smallest = streams.filter_map(|stream| stream.min_rtt);
    let of_slices = round.ended.sender_ticks.iter().filter_map(|tick| tick.rtt);
    smallest.chain(of_slices).filter(|rtt| *rtt > Span::ZERO).min()
}

/// Whose count several rounds go by.
fn count_of_all(rounds: &[&TcpRound]) -> TcpCount {
    let mut counts = rounds.iter().map(|round| round.count().0);
    let first = counts.next().unwrap_or_default();
    if counts.all(|count| count == first) { first } else { TcpCount::Mixed }
}

/// The slices up to the planned end. What follows while the last streams wind down, and queues
/// drain, is no full load any more. A transfer of so many bytes has no planned end. Of one that
/// ended early, those up to its last bytes count: how long nobody noticed that nothing came any
/// more says nothing of the path.
fn counting(round: &TcpRound) -> &[ReceiverTick] {
    let (_, ticks) = round.count();
    let ticks = match planned(round) {
        Some(planned) => plan_end::within_plan(ticks, planned),
        None => ticks,
    };
    if round.ended.outcome == Outcome::Complete { ticks } else { plan_end::heard(ticks) }
}

/// How long the receiver was to receive; absent where a number of bytes ended it.
fn planned(round: &TcpRound) -> Option<Span> {
    round.order.bytes.is_none().then_some(round.order.duration)
}

/// The round that left most in the path's queues.
fn queue_left(rounds: &[&TcpRound]) -> Option<QueueLeft> {
    let left = |round: &&TcpRound| {
        let left = plan_end::queue_left(&round.ended.receiver_ticks, planned(round)?)?;
        let ends = [&round.ended.tcp_sender, &round.ended.tcp_receiver];
        let stood = ends.into_iter().flatten().filter_map(|end| end.stood_still).max().unwrap_or_default();
        if stood > Span::ZERO && stood * 2 >= left.drained {
            return None;
        }
        // More was not on the way: the rest waited in the sender's own buffer.
        let in_flight = in_flight(round);
        let bytes = in_flight.map_or(left.bytes, |on_the_way| left.bytes.min(on_the_way));
        (bytes > ByteCount(0)).then_some(QueueLeft { bytes, in_flight, ..left })
    };
    rounds.iter().filter_map(left).max_by_key(|left| left.drained)
}

/// What the sender had sent and nobody had acknowledged when its time was up, lost segments
/// included.
fn in_flight(round: &TcpRound) -> Option<ByteCount> {
    let end = round.ended.tcp_sender.as_ref()?;
    let sent = |stream: &StreamEnd| Some(stream.bytes_sent?.0.saturating_sub(stream.bytes_resent?.0));
    let sent: Option<u64> = end.streams.iter().map(sent).sum();
    Some(ByteCount(sent?.saturating_sub(end.acknowledged_bytes?.0)))
}

/// The round trip without load that belongs to a transfer.
#[derive(Clone, Copy)]
enum Base<'a> {
    /// The idle round trip that was measured before the transfers, if there is one.
    Idle(Option<&'a LatencyResult>),
    /// The route had changed, to about this round trip.
    Moved(Span),
}

fn result(path: Path, rounds: &[&TcpRound], base: Base<'_>, connects: &[Span]) -> Option<TcpResult> {
    let order = &rounds.last()?.order;
    let (idle, idle_rtt) = match base {
        Base::Idle(idle) => (idle, idle.and_then(|idle| idle.rtt).map(|rtt| rtt.p50)),
        Base::Moved(after) => (None, Some(after)),
    };
    let measured: Vec<MeasuredRound<'_>> = rounds.iter().map(|round| measured(round, idle_rtt)).collect();
    let reached = goodput(&measured);
    let interval = reached.as_ref().and_then(|reached| reached.interval);
    let senders: Vec<&TcpEnd> = rounds.iter().filter_map(|round| round.ended.tcp_sender.as_ref()).collect();
    let receivers: Vec<&TcpEnd> =
        rounds.iter().filter_map(|round| round.ended.tcp_receiver.as_ref()).collect();
    let load = latency::loaded(path.version, &rounds.iter().filter_map(|round| round.under_load()), idle);
    let sender_ticks: Vec<SenderTick> = rounds.iter().flat_map(|r| r.ended.sender_ticks.clone()).collect();
    let receiver = receivers.last().map(|end| (*end).clone());
    let sender = senders.last().map(|end| (*end).clone());
    let streams = || senders.iter().flat_map(|end| &end.streams);
    let counted = count_of_all(rounds);
    let rtt = mean_span(sender_ticks.iter().filter_map(|tick| tick.rtt));
    let min_rtt = streams().filter_map(|s| s.min_rtt).min();
    let rfc6349 = rfc6349::figures(&rfc6349::Rounds {
        version: path.version,
        bottleneck: order.bottleneck,
        connects,
        mean_rtt: rtt,
        min_rtt,
        senders: &senders,
        receivers: &receivers,
    });
    let edges = reached.as_ref().map_or(0.0, |reached| edges(rounds, &senders, reached.measured));
    let gathered = gathered_acknowledgements(rounds, &measured);
    Some(TcpResult {
        pedigree: pedigree(path.version, order.direction, counted),
        outcome: worst(rounds.iter().map(|round| round.ended.outcome)),
        planned: rounds.iter().map(|round| planned(round)).sum::<Option<Span>>(),
        ended_early: rounds.iter().find_map(|round| round.ended.early.clone()),
        queue_left: queue_left(rounds),
        streams: order.streams,
        congestion: streams().map(|s| s.congestion.clone()).find(|name| !name.is_empty()).unwrap_or_default(),
        goodput: reached.as_ref().map(|reached| reached.rate),
        goodput_interval: interval.map(|interval| Interval {
            lo: (interval.lo - edges - gathered).max(0.0),
            hi: interval.hi + edges + echo_rate(path.version, rounds),
            ..interval
        }),
        rounds: reached.as_ref().map(|reached| reached.rounds.clone()).unwrap_or_default(),
        counted,
        bytes: (!receivers.is_empty()).then(|| receivers.iter().map(|end| end.bytes).sum()),
        measured: reached.as_ref().map(|reached| reached.measured).unwrap_or_default(),
        warm_up: warm_up::published(measured.iter().map(|round| (round.ticks, round.warm_up))),
        retransmits: streams().filter_map(|stream| stream.retransmits).reduce(u64::saturating_add),
        rtt,
        min_rtt,
        cwnd: mean_bytes(sender_ticks.iter().filter_map(|tick| tick.cwnd)),
        receiver_ticks: rounds.iter().flat_map(|round| round.ended.receiver_ticks.clone()).collect(),
        times: tcp_times::times(&senders, &receivers),
        blocks: tcp_times::blocks(blocks_asked(order), &senders),
        window_asked: order.window.map(|window| ByteCount(window.into())),
        // What TCP sends again and again into a path that carries none of it is no transfer.
        rfc6349: rfc6349.filter(|_| rounds.iter().any(|round| !round.carried_nothing())),
        fairness: receiver.as_ref().and_then(|end| {
            fairness::jain(&end.streams.iter().map(|stream| stream.bytes).collect::<Vec<_>>())
        }),
        limit: with_events(judge(rounds, &measured, idle_rtt, load.as_ref(), path.across), rounds, &measured),
        latency_under_load: load,
        health: health(order.direction, &senders, &receivers),
        sender_ticks,
        sender,
        receiver,
    })
}

/// "stream" or "streams".
pub(super) fn streams(count: u16) -> &'static str {
    if count == 1 { "stream" } else { "streams" }
}

/// What a person has to know of transfers beside their rates: what the mean hides.
pub(super) fn warnings(rounds: &[TcpRound]) -> Vec<String> {
    let mut warnings = Vec::new();
    for round in rounds {
        let what = format!(
            "TCP {} with {} {}",
            round.order.direction.name(),
            round.order.streams,
            streams(round.order.streams)
        );
        // What the requests beside it tell of that is said of all phases together.
        if let Some(Stall { at, lasted }) = stalled(round).filter(|_| outages::beside(round).is_none()) {
            warnings.push(format!("{what}: for {lasted} nothing came, {at} after its start"));
        }
        warnings.extend(stood_still(round).into_iter().map(|text| format!("{what}: {text}")));
        if let Some((came, asked)) = faster_than_asked(round) {
            warnings.push(format!(
                "{what} came at {came} and not at the {asked} asked for: a segment leaves at once, and at that rate \
                 the next one was not due in its time"
            ));
        }
        if let Some(starved) = starved(round) {
            let all = round.order.streams;
            warnings.push(format!(
                "{what}: {starved} of its {all} streams got nothing in its time: the path is too slow for so many"
            ));
        }
        if let Some(late) = round.under_load().map(latency::held_up).filter(|late| *late > 0) {
            let most = latency::MAX_HELD_UP;
            warnings.push(format!(
                "{what}: {late} requests beside it left more than {most} after they were due, because this host gave \
                 their thread no core: they may have met no load, and are not in the round trip under load"
            ));
        }
        let planned = planned(round).unwrap_or(Span(i64::MAX));
        if let Some(Rising { least, median, last }) = unrest::rising(&round.ended.sender_ticks, planned) {
            warnings.push(format!(
                "{what}: the round trip was still rising when it ended ({least} at first, {median} in the middle, \
                 {last} at the end): the path's queue may be deeper than that"
            ));
        }
    }
    warnings
}

/// That an end was stopped while it was to move data. What this host has noticed of itself is said
/// of the whole measurement.
fn stood_still(round: &TcpRound) -> Vec<String> {
    let ends = [&round.ended.tcp_sender, &round.ended.tcp_receiver].map(|end| end.as_ref());
    let elapsed = ends.iter().flatten().map(|end| end.elapsed).max().unwrap_or_default();
    let [sender, receiver] = ends.map(|end| limit::stood_still(end?.stood_still, elapsed));
    let rate = if round.ran.is_some() {
        "that time is not in the rate"
    } else {
        "the rate is no property of the path"
    };
    let said = did_not_run(round.order.direction, sender, receiver);
    let said = said.map(|said| format!("{said}: nothing was sent or read there meanwhile, and {rate}"));
    said.collect()
}

/// That the ends of a transfer did not run for so long, but for what this host has noticed of
/// itself in all.
pub(super) fn did_not_run(
    direction: Direction,
    sender: Option<Span>,
    receiver: Option<Span>,
) -> impl Iterator<Item = String> {
    let (own, other) = if direction == Direction::Forward { (sender, receiver) } else { (receiver, sender) };
    let own = own.filter(|stood| *stood < crate::link::NOTICED).map(|stood| ("this host", stood));
    let told = own.into_iter().chain(other.map(|stood| ("the responder's host", stood)));
    told.map(|(who, stood)| format!("{who} did not run netaware for {stood} (it was suspended or stopped)"))
}

/// What came, and what was asked for, where the rate is too low for the time.
fn faster_than_asked(round: &TcpRound) -> Option<(BitRate, BitRate)> {
    let asked = round.order.rate?.bit_rate();
    if round.order.bytes.is_some() {
        return None;
    }
    let came = BitRate::mean(round.ended.tcp_receiver.as_ref()?.bytes, round.order.duration)?;
    (came.0 / 5 > asked.0 / 4).then_some((came, asked))
}

/// How many streams of a transfer that is whole got nothing while others did.
fn starved(round: &TcpRound) -> Option<usize> {
    if round.order.bytes.is_some() {
        // A stream may move all of the bytes before another one has begun.
        return None;
    }
    let receiver = round.ended.tcp_receiver.as_ref().filter(|end| end.outcome == Outcome::Complete)?;
    let starved = receiver.streams.iter().filter(|stream| stream.bytes.0 == 0).count();
    Some(starved).filter(|starved| *starved > 0 && receiver.bytes.0 > 0)
}

/// The longest time in which nothing came of a transfer that was to fill the path. Each end knows
/// its own slices best: those of the other end travel, and are joined where little came.
fn stalled(round: &TcpRound) -> Option<Stall> {
    if round.order.held_to().is_some() {
        return None;
    }
    let round_trip = round.loaded_rtt().unwrap_or_default();
    let told = &round.ended.sender_ticks;
    let acknowledged = || round.arrived.clone().or_else(|| unrest::acknowledged(told));
    let own = if round.order.direction == Direction::Forward { acknowledged() } else { None };
    let received = &round.ended.receiver_ticks;
    // Of one that ended otherwise the end is told with its reason.
    let planned = planned(round).filter(|_| round.ended.outcome == Outcome::Complete);
    let stall = unrest::stall(own.as_deref().unwrap_or(received), round_trip, planned)?;
    // An end that did not run says so itself, and the path is not to blame.
    let ends = [&round.ended.tcp_sender, &round.ended.tcp_receiver];
    let stood = ends.into_iter().flatten().filter_map(|end| end.stood_still).max().unwrap_or_default();
    if stall.lasted <= stood * 3 / 2 {
        return None;
    }
    // Acknowledgements may wait on the way back while data arrive.
    (!unrest::contradicts(received, &stall)).then_some(stall)
}

fn blocks_asked(order: &TcpOrder) -> BlocksAsked {
    BlocksAsked {
        length: ByteCount(order.block_length().into()),
        spacing: order.block_spacing,
        count: order.blocks,
    }
}

/// What the edges of the count are uncertain by, bit/s, at 95 %: it begins and ends between two
/// acknowledgements, which as a rule stand for two segments (RFC 1122 §4.2.3.2), in each stream of
/// each round. The slices do not know of it.
fn edges(rounds: &[&TcpRound], senders: &[&TcpEnd], measured: Span) -> f64 {
    let streams: f64 = rounds.iter().map(|round| f64::from(round.order.streams)).sum();
    let mss = senders.iter().flat_map(|end| &end.streams).filter_map(|stream| stream.mss).max().unwrap_or(0);
    // Two even draws from 0 to two segments for each stream: standard deviation of their sum.
    let bytes = (2.0 * streams).sqrt() * 2.0 * f64::from(mss) / 12_f64.sqrt();
    1.96 * bytes * 8.0 / measured.secs_f64().max(1e-6)
}

/// What a rate may be too high by, bit/s, because acknowledgements came sooner and sooner: where
/// the way back has a queue that drains while they are counted, those of more than the time that
/// counts come within it. Where the queue drained on the way there, the rate was right, which the
/// round trip does not tell.
fn gathered_acknowledgements(rounds: &[&TcpRound], measured: &[MeasuredRound<'_>]) -> f64 {
    let (mut bits, mut time) = (0.0, 0.0);
    for (round, counts) in rounds.iter().zip(measured) {
        let lasted: Span = counts.counted().iter().map(|tick| tick.length.or_zero()).sum();
        let bytes: ByteCount = counts.counted().iter().map(|tick| tick.bytes).sum();
        time += lasted.secs_f64();
        if round.count().0 != TcpCount::Acknowledged || lasted <= Span::ZERO {
            continue;
        }
        let rtt = |slice: &ReceiverTick| {
            round.ended.sender_ticks.iter().find(|tick| tick.end >= slice.end).and_then(|tick| tick.rtt)
        };
        let counted = counts.counted();
        let ends = counted.first().and_then(rtt).zip(counted.last().and_then(rtt));
        let shorter = ends.map_or(Span::ZERO, |(first, last)| (first - last).or_zero());
        bits += bytes.0 as f64 * 8.0 / lasted.secs_f64() * shorter.secs_f64();
    }
    if time > 0.0 { bits / time } else { 0.0 }
}

/// What the echoes beside took of the path in this direction, bit/s of IP packets, as if TCP had
/// gone without: by so much the path may carry more than was counted.
fn echo_rate(version: IpVersion, rounds: &[&TcpRound]) -> f64 {
    let spacings = rounds.iter().filter_map(|round| round.under_load()).map(|run| {
        let bits = (run.order.length + 8 + version.header_len()) * 8;
        f64::from(bits) / run.order.shown_spacing().secs_f64().max(1e-6)
    });
    spacings.fold(0.0, f64::max)
}

fn pedigree(version: IpVersion, direction: Direction, counted: TcpCount) -> Pedigree {
    let slices = match counted {
        TcpCount::Delivered => "slices of what the receiver read",
        TcpCount::Acknowledged => {
            "slices of what the sender's TCP_INFO shows acknowledged, in order and selectively"
        }
        TcpCount::Mixed => {
            "slices of what the receiver read or, in rounds with losses, of what the sender's TCP_INFO shows acknowledged"
        }
    };
    Pedigree {
        method: "tcp-throughput".into(),
        layer: Layer::Payload,
        direction,
        version,
        clock: ClockSource::Application,
        uncertainty: format!(
            "95 % interval of the mean over {slices}, after the warm-up, resampled by rounds"
        ),
    }
}

/// The verdict, and what happened to the rate of its rounds: that an outage fell into one, or that
/// it does not last.
fn with_events(mut limit: Limit, rounds: &[&TcpRound], measured: &[MeasuredRound<'_>]) -> Limit {
    let outage = rounds.iter().filter_map(|round| outages::beside(round)).reduce(Outages::and);
    if let Some(Outages { longest, .. }) = outage {
        limit.evidence = format!("nothing came for {longest} in its midst; {}", limit.evidence);
    }
    let whole = rounds.iter().zip(measured).filter(|(round, _)| !is_cut(round)).map(|(_, measured)| measured);
    if let Some(slowing) = slowing_down(whole) {
        limit.evidence = format!("{slowing}; {}", limit.evidence);
    }
    limit
}

/// The verdict of most rounds.
fn judge(
    rounds: &[&TcpRound],
    measured: &[MeasuredRound<'_>],
    idle_rtt: Option<Span>,
    load: Option<&LoadedLatency>,
    across: Across,
) -> Limit {
    let all = rounds.len();
    let is_held_down = is_held_down(rounds, measured);
    // The figures behind a verdict are those of its round, and the rows above count all of them.
    let of_round = |number: usize, limit: Limit| {
        let which = if all > 1 { format!("in round {number} of {all}: ") } else { String::new() };
        Limit { evidence: format!("{which}{}", limit.evidence), ..limit }
    };
    let verdicts: Vec<Limit> = (1..)
        .zip(rounds.iter().zip(measured))
        .filter_map(|(number, (round, measured))| {
            let limit = limit::tcp_limit(&TcpEvidence {
                sender: round.ended.tcp_sender.as_ref()?,
                receiver: round.ended.tcp_receiver.as_ref()?,
                goodput: goodput(std::slice::from_ref(measured))?.rate,
                requested: round.order.held_to(),
                idle_rtt,
                loaded_rtt: load.and_then(|load| load.latency.rtt).map(|rtt| rtt.p50),
                counted: measured.counted(),
                is_held_down,
                across,
                is_both_ways: round.order.at_once,
            });
            Some(of_round(number, by_owner(limit, round)))
        })
        .collect();
    if verdicts.is_empty() {
        return undecided(rounds);
    }
    // One round that had not settled makes all of them together a lower bound.
    let why = (1..).zip(rounds.iter().zip(measured)).find_map(|(number, (round, measured))| {
        unsettled(round, measured)
            .map(|what| if all > 1 { format!("{what} (round {number})") } else { what.to_owned() })
    });
    taken_back(most_frequent(&verdicts), why)
}

/// Whether each round that no outage fell into began far faster than it went on.
fn is_held_down(rounds: &[&TcpRound], measured: &[MeasuredRound<'_>]) -> bool {
    let mut whole = rounds.iter().zip(measured).filter(|(round, _)| !is_cut(round)).peekable();
    whole.peek().is_some() && whole.all(|(_, measured)| slowing_down([measured]).is_some())
}

/// A rate that nobody asked for, but the responder's owner allowed no more.
fn by_owner(limit: Limit, round: &TcpRound) -> Limit {
    let Some(cap) = round.order.cap.filter(|_| limit.by == LimitedBy::RequestedRate) else { return limit };
    let evidence = format!("the responder's owner allows no more than {cap}, which was reached");
    Limit { evidence, ..limit }
}

/// How a transfer went that had not settled when it ended.
fn unsettled(round: &TcpRound, measured: &MeasuredRound<'_>) -> Option<&'static str> {
    let is_whole = round.ended.outcome == Outcome::Complete;
    let has_settled = measured.warm_up != warm_up::WarmUpEnd::NeverEnded;
    if !is_whole || has_settled {
        return None;
    }
    Some(if warm_up::has_grown(measured.ticks) {
        "still speeding up when it ended"
    } else {
        "too short to tell what lasts"
    })
}

/// A transfer that had not settled has not shown what the network carries.
fn taken_back(limit: Limit, unsettled: Option<String>) -> Limit {
    match (limit.by, unsettled) {
        (LimitedBy::Network | LimitedBy::Shaper | LimitedBy::Unknown, Some(what)) => {
            Limit::new(LimitedBy::Unknown, format!("{what}; {}", limit.evidence))
        }
        _ => limit,
    }
}

/// Why no round has a verdict.
fn undecided(rounds: &[&TcpRound]) -> Limit {
    let has_reports =
        |round: &&TcpRound| round.ended.tcp_sender.is_some() && round.ended.tcp_receiver.is_some();
    let is_interrupted = |round: &&TcpRound| round.ended.outcome == Outcome::Interrupted;
    let why = if !rounds.iter().any(has_reports) {
        "the transfer ended before both ends had reported"
    } else if rounds.iter().all(|round| round.carried_nothing()) {
        if rounds.iter().all(is_interrupted) {
            "it was ended before anything had arrived"
        } else {
            "nothing of what was sent arrived"
        }
    } else {
        "too little arrived to tell a rate"
    };
    Limit::new(LimitedBy::Unknown, why)
}

fn health(direction: Direction, senders: &[&TcpEnd], receivers: &[&TcpEnd]) -> Health {
    let sending = Load::of(senders.iter().filter_map(|end| end.cpu));
    let receiving = Load::of(receivers.iter().filter_map(|end| end.cpu));
    let (prober, responder) =
        if direction == Direction::Forward { (sending, receiving) } else { (receiving, sending) };
    let stood = |ends: &[&TcpEnd]| added_up(ends.iter().filter_map(|end| end.stood_still));
    let (sender, receiver) = (stood(senders), stood(receivers));
    let (prober_stood_still, responder_stood_still) =
        if direction == Direction::Forward { (sender, receiver) } else { (receiver, sender) };
    Health {
        steal: prober.steal,
        prober_busiest_core: prober.busiest_core,
        responder_busiest_core: responder.busiest_core,
        prober_stood_still,
        responder_stood_still,
        ..Health::default()
    }
}

/// In all; `None` where that is nothing.
pub(super) fn added_up(spans: impl Iterator<Item = Span>) -> Option<Span> {
    Some(spans.sum()).filter(|sum| *sum > Span::ZERO)
}

fn mean_span(spans: impl Iterator<Item = Span>) -> Option<Span> {
    let (sum, count) = spans.fold((Span::ZERO, 0), |(sum, count), span| (sum + span, count + 1));
    (count > 0).then(|| sum / count)
}

fn mean_bytes(counts: impl Iterator<Item = ByteCount>) -> Option<ByteCount> {
    let (sum, count) = counts.fold((0, 0_u64), |(sum, count), bytes: ByteCount| (sum + bytes.0, count + 1));
    sum.checked_div(count).map(ByteCount)
}

#[cfg(test)]
mod tests {
    use netaware_probe::warm_up::WarmUpEnd;

    use super::*;
    use crate::bulk::Ended;

    /// BBR on a path of 10 Mbit/s and 1.2 s, as it was seen: the rate is below a third of the
    /// path's and still grows by half each round, with pauses between the flights.
    #[test]
    fn slow_start_is_not_over_at_its_first_pause_on_a_path_whose_round_trip_nobody_measured_before() {
        let (tick, rtt) = (Span::from_millis(100), Span::from_millis(1200));
        let flights = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2];
        let slices = flights.iter().flat_map(|rate| {
            // The flight takes half of the round.
            std::iter::repeat_n(2.0 * rate, 6).chain(std::iter::repeat_n(0.0, 6))
        });
        let receiver_ticks: Vec<ReceiverTick> = slices
            .enumerate()
            .map(|(n, rate): (usize, f64)| ReceiverTick {
                end: tick * (n as i64 + 1),
                length: tick,
                bytes: ByteCount((rate * 12_500.0) as u64),
                streams: 1,
                ..ReceiverTick::default()
            })
            .collect();
        let sender_ticks = vec![SenderTick { rtt: Some(rtt), ..SenderTick::default() }];
        let duration = tick * receiver_ticks.len() as i64;
        let order = TcpOrder { duration, ..TcpOrder::new(Direction::Forward, tick) };
        let ended = Ended { outcome: Outcome::Complete, receiver_ticks, sender_ticks, ..Ended::default() };
        let round = TcpRound { order, ended, arrived: None, ran: None, load: None };
        for idle in [None, Some(Span::ZERO), Some(rtt)] {
            assert_eq!(measured(&round, idle).warm_up, WarmUpEnd::NeverEnded, "{idle:?}");
        }
    }

    /// Slices of 100 ms, of bytes received and of the sender's round trip in ms.
    fn transfer(direction: Direction, slices: &[(u64, i64)]) -> TcpRound {
        let tick = Span::from_millis(100);
        let at = |n: usize| tick * (n as i64 + 1);
        let receiver = |(n, (bytes, _)): (usize, &(u64, i64))| ReceiverTick {
            end: at(n),
            length: tick,
            bytes: ByteCount(*bytes),
            streams: 1,
            ..ReceiverTick::default()
        };
        let sender = |(n, (bytes, rtt)): (usize, &(u64, i64))| SenderTick {
            end: at(n),
            length: tick,
            acked: Some(ByteCount(*bytes)),
            rtt: Some(Span::from_millis(*rtt)),
            ..SenderTick::default()
        };
        let ended = Ended {
            receiver_ticks: slices.iter().enumerate().map(receiver).collect(),
            sender_ticks: slices.iter().enumerate().map(sender).collect(),
            ..Ended::default()
        };
        let duration = tick * slices.len() as i64;
        let order = TcpOrder { duration, ..TcpOrder::new(direction, tick) };
        TcpRound { order, ended, arrived: None, ran: None, load: None }
    }

    /// 51 Mbit/s of payload were once told of a link that carries 48, whose way back was full of
    /// others' traffic.
    #[test]
    fn acknowledgements_that_come_sooner_and_sooner_widen_the_interval_and_not_the_link() {
        let of = |from: i64, until: i64, counted: bool| {
            let slices: Vec<(u64, i64)> = (0..10).map(|n| (600_000, from + (until - from) * n / 9)).collect();
            let mut round = transfer(Direction::Reverse, &slices);
            round.arrived = counted.then(|| round.ended.receiver_ticks.clone());
            let counts = measured(&round, Some(Span::from_millis(20)));
            let counts = MeasuredRound { warm_up: WarmUpEnd::SlowStartOver(0), ..counts };
            gathered_acknowledgements(&[&round], &[counts])
        };
        // 48 Mbit/s over a second, in which acknowledgements came 60 ms sooner in the end.
        assert!((of(80, 20, true) / 2.88e6 - 1.0).abs() < 0.01, "{}", of(80, 20, true));
        assert_eq!((of(20, 80, true), of(80, 20, false)), (0.0, 0.0));
    }

    #[test]
    fn a_transfer_that_stood_still_for_a_while_says_so() {
        let slices = [vec![(360_000, 30); 20], vec![(0, 30); 14], vec![(360_000, 30); 20]].concat();
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut round = transfer(direction, &slices);
            let said = warnings(std::slice::from_ref(&round));
            let [said] = said.as_slice() else { panic!("{said:?}") };
            assert!(said.ends_with("for 1.40 s nothing came, 2.00 s after its start"), "{said}");
            // Who asks for blocks with pauses between them gets them.
            round.order.rate = Some(SendRate::at_least(20_000));
            assert_eq!(warnings(&[round]), [""; 0]);
        }
    }

    /// The prober was stopped for 4 s of a transfer at 9.6 Mbit/s, in either direction: 2.7 Mbit/s
    /// were told as the rate of the time in which data came.
    #[test]
    fn a_transfer_has_the_rate_of_the_time_in_which_both_ends_ran() {
        let even = vec![(360_000, 30); 30];
        let late = [(0, 30); 80];
        let ways = [Direction::Forward, Direction::Reverse];
        let cases = ways.map(|way| [true, false].map(|is_sender| [0, 1].map(|held| (way, is_sender, held))));
        for (direction, is_sender, held) in cases.into_iter().flatten().flatten() {
            let stopped = transfer(direction, &[even.clone(), late.to_vec(), even.clone()].concat());
            let (order, mut ended) = (stopped.order, stopped.ended);
            // What is held back makes acknowledgements the count.
            ended.sender_ticks[0].held = Some(ByteCount(held));
            // The end that was stopped cut one slice late; the other one saw nothing meanwhile.
            let long = order.tick * 80;
            if is_sender {
                ended.sender_ticks.drain(30..109);
                ended.sender_ticks[30].length = long;
            } else {
                ended.receiver_ticks.drain(30..109);
                ended.receiver_ticks[30].length = long;
            }
            let end = |stood: bool| TcpEnd {
                elapsed: order.duration,
                stood_still: Some(if stood { order.tick * 79 } else { Span::ZERO }),
                ..TcpEnd::default()
            };
            (ended.tcp_sender, ended.tcp_receiver) = (Some(end(is_sender)), Some(end(!is_sender)));
            let round = TcpRound::new(order, ended, None);
            let path = Path { version: IpVersion::V4, across: Across::Network };
            let found = results(path, std::slice::from_ref(&round), None, &[], None).remove(0);
            let rate = found.goodput.unwrap().0 as f64 / f64::from(360_000 * 8) * round.order.tick.secs_f64();
            assert!((rate - 1.0).abs() < 0.02, "{direction:?} {is_sender} {held}: {rate}");
            assert_eq!(found.counted == TcpCount::Acknowledged, held > 0);
            assert!(found.measured < round.order.tick * 60, "{:?}", found.measured);
            let is_other = is_sender == (direction == Direction::Reverse);
            let said = warnings(&[round]);
            assert_eq!(
                said.iter().any(|it| it.ends_with("that time is not in the rate")),
                is_other,
                "{said:?}"
            );
        }
    }

    #[test]
    fn a_responder_that_was_stopped_is_named_and_not_a_path_that_was_silent() {
        let stood = |sender: i64, receiver: i64, direction| {
            let mut round = transfer(direction, &[(360_000, 30); 30]);
            let end = |ms| TcpEnd {
                elapsed: Span::from_secs(3),
                stood_still: Some(Span::from_millis(ms)),
                ..TcpEnd::default()
            };
            (round.ended.tcp_sender, round.ended.tcp_receiver) = (Some(end(sender)), Some(end(receiver)));
            let (senders, receivers) = (round.ended.tcp_sender.iter(), round.ended.tcp_receiver.iter());
            let health = health(direction, &senders.collect::<Vec<_>>(), &receivers.collect::<Vec<_>>());
            (warnings(&[round]), health.prober_stood_still, health.responder_stood_still)
        };
        let away = Some(Span::from_millis(1980));
        for (direction, sender, receiver) in [(Direction::Forward, 0, 1980), (Direction::Reverse, 1980, 0)] {
            let (said, prober, responder) = stood(sender, receiver, direction);
            assert_eq!((prober, responder), (None, away));
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains("the responder's host did not run netaware for 1.98 s"), "{said:?}");
        }
        // The lane says so of this host where it was for long.
        assert_eq!(stood(1980, 0, Direction::Forward), (vec![], away, None));
        let (said, ..) = stood(400, 0, Direction::Forward);
        assert!(said[0].contains(": this host did not run netaware for 400 ms"), "{said:?}");
        assert_eq!(stood(0, 60, Direction::Forward).0, [""; 0], "it has not set the rate");
    }

    #[test]
    fn a_queue_that_was_still_filling_is_not_the_final_delay_under_load() {
        let ramp: Vec<(u64, i64)> = (0..40).map(|n| (60_000, 30 + n * 8)).collect();
        let said = warnings(&[transfer(Direction::Forward, &ramp)]);
        let [said] = said.as_slice() else { panic!("{said:?}") };
        assert!(
            said.contains("still rising when it ended (30.0 ms at first") && said.contains("342 ms"),
            "{said}"
        );
    }

    #[test]
    fn what_was_in_flight_at_the_end_is_told_beside_what_still_came() {
        let mut round = transfer(Direction::Forward, &[(60_000, 30); 20]);
        round.order.duration = Span::from_secs(1);
        let stream = StreamEnd {
            bytes_sent: Some(ByteCount(3_000_000)),
            bytes_resent: Some(ByteCount(100_000)),
            ..StreamEnd::default()
        };
        round.ended.tcp_sender = Some(TcpEnd {
            streams: vec![stream],
            acknowledged_bytes: Some(ByteCount(600_000)),
            ..TcpEnd::default()
        });
        let left = queue_left(&[&round]).unwrap();
        assert_eq!((left.bytes, left.in_flight), (ByteCount(600_000), Some(ByteCount(2_300_000))));
        // 1.68 MiB were "left" where the path's queues held a third of that.
        round.ended.tcp_sender.as_mut().unwrap().acknowledged_bytes = Some(ByteCount(2_500_000));
        assert_eq!(queue_left(&[&round]).unwrap().bytes, ByteCount(400_000));
        // A system that does not tell leaves it unknown.
        round.ended.tcp_sender.as_mut().unwrap().acknowledged_bytes = None;
        assert_eq!(queue_left(&[&round]).unwrap().in_flight, None);
    }

    /// "Left 115 KiB in the path's queues, which took 1.90 s to drain", of a responder that was
    /// stopped meanwhile.
    #[test]
    fn an_end_that_stood_still_when_the_time_was_up_left_no_queue() {
        let mut round = transfer(Direction::Forward, &[(60_000, 30); 20]);
        round.order.duration = Span::from_secs(1);
        let left = |round: &TcpRound| queue_left(&[round]).map(|left| left.drained);
        assert_eq!(left(&round), Some(Span::from_secs(1)));
        round.ended.tcp_receiver =
            Some(TcpEnd { stood_still: Some(Span::from_millis(900)), ..TcpEnd::default() });
        assert_eq!(left(&round), None);
        let end = round.ended.tcp_receiver.take().map(|end| TcpEnd { acknowledged_bytes: None, ..end });
        round.ended.tcp_sender = end;
        assert_eq!(left(&round), None);
        round.ended.tcp_sender = Some(TcpEnd { stood_still: Some(Span::ZERO), ..TcpEnd::default() });
        assert_eq!(left(&round), Some(Span::from_secs(1)));
    }

    #[test]
    fn udp_goes_by_what_a_token_bucket_lets_pass_for_good_and_not_by_its_credit() {
        // A policer of 15 Mbit/s with 6 MB of credit on a link of 90 Mbit/s.
        let mbit = [16, 24, 50, 75, 88, 86, 82, 84, 74, 102, 86, 86, 85, 27, 3, 3, 4, 14, 10];
        let seen_of = |mbit: &[u64]| {
            let tick = |(n, mbit): (i64, &u64)| ReceiverTick {
                end: Span::from_millis(50) * (n + 1),
                length: Span::from_millis(50),
                bytes: ByteCount(mbit * 6250),
                streams: 4,
                ..ReceiverTick::default()
            };
            let order = TcpOrder {
                duration: Span::from_millis(50) * mbit.len() as i64,
                streams: 4,
                ..TcpOrder::new(Direction::Forward, Span::from_millis(50))
            };
            let ended = Ended { receiver_ticks: (0..).zip(mbit).map(tick).collect(), ..Ended::default() };
            seen(&TcpRound { order, ended, arrived: None, ran: None, load: None }, Span::from_millis(40))
        };
        let fallen = seen_of(&mbit);
        assert!(fallen.rate.unwrap().bit_rate().0 > 40_000_000, "{fallen:?}");
        assert!(fallen.lasting().unwrap().bit_rate().0 < 15_000_000, "{fallen:?}");
        let steady = seen_of(&[20, 40, 80, 88, 86, 84, 87, 60, 88, 86, 85, 88]);
        assert_eq!(steady.lasting(), steady.rate);
        // The link was gone for a while, and no rate follows from that.
        let cut = seen_of(&[20, 40, 80, 88, 86, 84, 87, 88, 86, 85, 88, 87, 0, 0, 0, 0, 0, 0]);
        assert_eq!((cut.lately, cut.lasting()), (None, cut.rate), "a silent end is no rate of 1 bit/s");
    }

    fn slices(rates: &[u64]) -> Vec<ReceiverTick> {
        let length = Span::from_millis(50);
        let tick = |(at, rate): (i64, &u64)| ReceiverTick {
            end: length * (at + 1),
            length,
            bytes: ByteCount(rate * 1_000_000 / 160),
            ..ReceiverTick::default()
        };
        (0..).zip(rates).map(tick).collect()
    }

    #[test]
    fn what_one_stream_got_of_a_buckets_credit_does_not_pass_for_what_lasts() {
        // 15 Mbit/s with 6 MB of credit on a link of 90 Mbit/s.
        let one = [5, 7, 16, 37, 78, 86, 87, 87, 87, 86, 88, 87, 87, 86, 87, 87];
        let four = [17, 29, 61, 86, 86, 87, 87, 87, 34, 0, 5, 14, 17, 24, 19, 9, 14, 24, 17, 15, 14, 15];
        let round = |mbit: &[u64], streams: u16| {
            let order = TcpOrder {
                duration: Span::from_millis(50) * mbit.len() as i64,
                streams,
                ..TcpOrder::new(Direction::Reverse, Span::from_millis(50))
            };
            TcpRound {
                order,
                ended: Ended { receiver_ticks: slices(mbit), ..Ended::default() },
                arrived: None,
                ran: None,
                load: None,
            }
        };
        let path = Path { version: IpVersion::V4, across: Across::Network };
        let said = |rounds: &[TcpRound]| {
            let results = results(path, rounds, None, &[Span::from_millis(40)], None);
            fell_behind(&results, &[], rounds)
        };
        let fell = said(&[round(&one, 1), round(&four, 4)]);
        assert_eq!(fell.len(), 1, "{fell:?}");
        assert!(fell[0].starts_with("TCP down came at 8") && fell[0].contains("token bucket"), "{fell:?}");
        let first = fell[0].split(" for the first ").nth(1).unwrap();
        assert!(first.starts_with("9.") && first.contains(" MiB and at 1"), "{fell:?}");
        assert_eq!(said(&[round(&one, 1), round(&one, 4)]), [""; 0], "as much as before");
        assert_eq!(said(&[round(&four, 1), round(&one, 4)]), [""; 0], "several streams got more");
    }

    /// A link of 34 Mbit/s that was down for 0.4 s: one stream had it all, and four after it met
    /// the outage, or the one after those had the whole rate again.
    #[test]
    fn a_path_that_was_cut_for_a_moment_is_no_token_bucket() {
        let one = [5, 20, 34, 34, 34, 34, 34, 34, 34, 34, 34, 34];
        let cut = [17, 34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let round = |mbit: &[u64], streams: u16| {
            let order = TcpOrder {
                duration: Span::from_millis(50) * mbit.len() as i64,
                streams,
                ..TcpOrder::new(Direction::Reverse, Span::from_millis(50))
            };
            let ended = Ended { receiver_ticks: slices(mbit), ..Ended::default() };
            TcpRound { order, ended, arrived: None, ran: None, load: None }
        };
        let path = Path { version: IpVersion::V4, across: Across::Network };
        let said = |rounds: &[TcpRound]| {
            let results = results(path, rounds, None, &[Span::from_millis(40)], None);
            fell_behind(&results, &[], rounds)
        };
        let met = |lost: std::ops::Range<u64>| TcpRound {
            load: Some(outages::tests::run(60, lost)),
            ..round(&cut, 4)
        };
        assert_eq!(
            said(&[round(&one, 1), met(0..0)]).len(),
            1,
            "no request was lost: a bucket, for all we know"
        );
        assert_eq!(said(&[round(&one, 1), met(10..50)]), [""; 0]);
        assert_eq!(said(&[round(&one, 1), met(0..0), round(&one, 1)]), [""; 0], "the rate came again");
        // Nor is it one in what explains the rate.
        let emptied = [34, 34, 34, 34, 34, 34, 34, 3, 3, 3, 3, 3, 3, 3, 3, 3];
        let evidence = |lost: std::ops::Range<u64>| {
            let hit = TcpRound { load: Some(outages::tests::run(60, lost)), ..round(&emptied, 4) };
            results(path, &[hit], None, &[], None).remove(0).limit.evidence
        };
        assert!(evidence(0..0).contains("token bucket"), "{}", evidence(0..0));
    }

    /// 20 kbit/s: a segment each 0.6 s, of which two count.
    #[test]
    fn the_rate_of_two_segments_is_not_that_of_a_full_path() {
        let of = |bytes: u64| {
            let length = Span::from_millis(600);
            let tick = |n: i64| ReceiverTick {
                end: length * (n + 1),
                length,
                bytes: ByteCount(bytes),
                ..ReceiverTick::default()
            };
            let order = TcpOrder { duration: length * 2, ..TcpOrder::new(Direction::Forward, length) };
            let ended = Ended {
                receiver_ticks: (0..6).map(tick).collect(),
                outcome: Outcome::Complete,
                ..Ended::default()
            };
            measured(
                &TcpRound { order, ended, arrived: None, ran: None, load: None },
                Some(Span::from_millis(60)),
            )
            .warm_up
        };
        assert_eq!(of(1448), WarmUpEnd::NeverEnded);
        assert_eq!(of(14_480), WarmUpEnd::NoneSeen);
    }

    /// 45 Mbit/s of a path of 86, and still doubling.
    #[test]
    fn a_transfer_that_was_still_speeding_up_is_not_limited_by_the_network() {
        let limit = |by| Limit::new(by, "3 segments sent again");
        let ramp = slices(&[2, 5, 8, 16, 29, 53, 29, 100]);
        let order = TcpOrder {
            duration: Span::from_millis(400),
            ..TcpOrder::new(Direction::Reverse, Span::from_millis(50))
        };
        let ended = Ended { receiver_ticks: ramp, outcome: Outcome::Complete, ..Ended::default() };
        let round = TcpRound { order, ended, arrived: None, ran: None, load: None };
        let of = |round: &TcpRound| {
            unsettled(round, &measured(round, Some(Span::from_millis(49)))).map(str::to_owned)
        };
        let found = taken_back(limit(LimitedBy::Network), of(&round));
        assert_eq!(found.by, LimitedBy::Unknown);
        assert_eq!(found.evidence, "still speeding up when it ended; 3 segments sent again");
        // A host, or the rate that was asked for, stays the limit.
        for by in [LimitedBy::SenderCpu, LimitedBy::ReceiveWindow, LimitedBy::RequestedRate] {
            assert_eq!(taken_back(limit(by), of(&round)).by, by);
        }
        assert_eq!(taken_back(limit(LimitedBy::Network), None).by, LimitedBy::Network);
        let settled =
            Ended { receiver_ticks: slices(&[40; 8]), outcome: Outcome::Complete, ..Ended::default() };
        assert_eq!(of(&TcpRound { ended: settled, ..round }), None);
    }

    #[test]
    fn a_transfer_that_emptied_a_bucket_is_said_to_have() {
        let emptied = slices(&[80, 80, 79, 80, 80, 80, 14, 14, 14, 15, 14, 14, 14, 14, 14]);
        let round =
            [MeasuredRound { ticks: &emptied, warm_up: WarmUpEnd::NeverEnded, at_start: ByteCount(0) }];
        let said = slowing_down(&round).unwrap();
        assert!(said.contains("from 80.0 Mbit/s to 14.0 Mbit/s"), "{said}");
        // One that holds its rate, speeds up, or has one slow moment at its end did not empty one.
        for rates in [
            &[80; 15][..],
            &[5, 10, 20, 40, 60, 70, 80, 80, 80, 80, 80, 80, 80, 80, 80],
            &[80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80, 14, 14],
            &[80, 14, 14],
        ] {
            let ticks = slices(rates);
            let round =
                [MeasuredRound { ticks: &ticks, warm_up: WarmUpEnd::NeverEnded, at_start: ByteCount(0) }];
            assert_eq!(slowing_down(&round), None, "{rates:?}");
        }
    }
}
