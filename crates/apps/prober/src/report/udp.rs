//! UDP results from their rounds.

mod ends;

use netaware_probe::limit::{self, UdpEvidence};
use netaware_probe::loss_split;
use netaware_probe::stream_end::{self, Schedule};
use netaware_record::{
    Direction, Exchanges, Health, Layer, Limit, LimitedBy, Outcome, Pedigree, ReceiverTick, SendRefusal,
    UdpReceiverEnd, UdpResult, UdpSenderEnd, VersionResult, WireRates,
};
use netaware_stats::ceasing::Ceased;
use netaware_units::{BitRate, ByteCount, ClockSource, Span};
use netaware_wire::ethernet;

use super::comparison::is_outage;
use super::{Load, NOT_REPORTED, Path, mean_rate, rejected, worst};
use crate::bulk::GAVE_WAY;
use crate::transfer::UdpRound;

/// One result per direction, in the order first run.
pub(super) fn results(path: Path, rounds: &[UdpRound]) -> Vec<UdpResult> {
    let directions = [Direction::Reverse, Direction::Forward];
    let of = |direction: &Direction| {
        let own: Vec<&UdpRound> =
            rounds.iter().filter(|round| round.order.plan.direction == *direction).collect();
        result(path, *direction, &own, broke_off(rounds, *direction).as_ref())
    };
    directions.iter().filter_map(of).collect()
}

fn result(
    path: Path,
    direction: Direction,
    rounds: &[&UdpRound],
    broke_off: Option<&Ceased>,
) -> Option<UdpResult> {
    let order = &rounds.last()?.order;
    let senders: Vec<&UdpSenderEnd> = rounds.iter().filter_map(|r| r.ended.udp_sender.as_ref()).collect();
    let receivers: Vec<&UdpReceiverEnd> =
        rounds.iter().filter_map(|r| r.ended.udp_receiver.as_ref()).collect();
    let ticks: Vec<ReceiverTick> = rounds.iter().flat_map(|round| slices(round)).collect();
    let received: u64 = receivers.iter().map(|end| end.received).sum();
    let sent: u64 = rounds.iter().map(|round| sent_in(round)).sum();
    let split = |round: &&UdpRound| loss_split::split(sent_in(round), round.ended.udp_receiver.as_ref());
    let arrived: Vec<Arrived> = rounds.iter().filter_map(|round| Arrived::in_round(round)).collect();
    let between: f64 = arrived.iter().map(|it| it.of_which(it.received)).sum();
    let span: Span = arrived.iter().map(|it| it.over).sum();
    let (sender, receiver) = (ends::sender(&senders), ends::receiver(rounds));
    let loss = loss_split::total(sent, rounds.iter().map(split));
    let stamped = receiver.as_ref().is_some_and(|end| end.gaps.is_some());
    let sent_rate = mean_rate(rounds.iter().filter_map(|round| left_in(round)));
    let planned = planned(rounds);
    let ended = worst(rounds.iter().map(|round| round.ended.outcome));
    let outcome = if broke_off.is_some() { Outcome::Failed } else { ended };
    let limit = match (&sender, &receiver) {
        _ if let Some(since) = broke_off => Limit::new(LimitedBy::Unknown, ceased(since)),
        (Some(sender), Some(receiver)) => limit::udp_limit(&UdpEvidence {
            // Datagrams of a round that the sender never reported are among those lost or unknown.
            sender: &UdpSenderEnd { sent, ..sender.clone() },
            receiver,
            planned,
            sent_rate: mean_rate(rounds.iter().filter_map(|round| told_in(round))),
            loss: &loss,
            across: path.across,
            outcome: ended,
        }),
        _ => Limit::new(LimitedBy::Unknown, NOT_REPORTED),
    };
    let limit = by_owner(as_in_an_outage(limit, rounds), order.cap);
    let goodput = mean_rate(arrived.iter().map(Arrived::within));
    Some(UdpResult {
        pedigree: Pedigree {
            method: "udp-stream".into(),
            layer: Layer::Payload,
            direction,
            version: path.version,
            clock: if stamped { ClockSource::Kernel } else { ClockSource::Application },
            uncertainty: "rate: the receiver's count over the time in which it was sent or came, whichever is longer; loss: \
                          95 % Wilson interval, too narrow where losses come in runs"
                .into(),
        },
        outcome,
        payload: ByteCount(u64::from(order.plan.length)),
        planned,
        sent_rate,
        wire: wire(path, rounds, &arrived),
        exchanges: exchanges(rounds),
        goodput,
        sent,
        not_sent: told(&senders, |end| Some(end.not_sent)),
        received,
        packets_per_second: (span.0 > 0 && between > 0.0).then(|| between / span.secs_f64()),
        loss,
        duplicates: told(&receivers, |end| end.duplicates),
        reordered: told(&receivers, |end| end.reordered),
        ticks,
        limit,
        health: health(direction, &senders, &receivers),
        sender,
        receiver,
    })
}

/// What the network lost in a few rows, as in an outage, is not lost because of the rate.
fn as_in_an_outage(limit: Limit, rounds: &[&UdpRound]) -> Limit {
    let mut losing = rounds.iter().filter(|round| lost_in(round) > 0);
    if limit.by != LimitedBy::Network || !losing.all(|round| is_outage(round)) {
        return limit;
    }
    let evidence = format!("{}; most of them in a few rows, which says nothing of the rate", limit.evidence);
    Limit { evidence, ..limit }
}

/// A rate that went as planned, where the responder's owner allowed no more.
fn by_owner(limit: Limit, cap: Option<BitRate>) -> Limit {
    match cap.filter(|_| limit.by == LimitedBy::RequestedRate) {
        Some(cap) => Limit::by_owner(cap, &format!("; {}", limit.evidence)),
        None => limit,
    }
}

/// The sum of what ends counted; `None` where one of them did not: a part is not the whole.
fn told<T>(ends: &[&T], count: impl Fn(&T) -> Option<u64>) -> Option<u64> {
    let counts: Option<Vec<u64>> = ends.iter().map(|end| count(end)).collect();
    counts?.into_iter().reduce(u64::saturating_add)
}

/// Datagrams that left in a round. A sender that died could not tell; the highest number received
/// is the least that it can have been.
fn sent_in(round: &UdpRound) -> u64 {
    let told = round.ended.udp_sender.as_ref().map_or(0, |end| end.sent);
    told.max(round.ended.udp_receiver.as_ref().map_or(0, |end| end.highest))
}

/// What left in a round after its first datagram, and in which time. Of a sender that never
/// reported, what the receiver knows of: up to the highest number that came.
fn left_in(round: &UdpRound) -> Option<(ByteCount, Span)> {
    if round.ended.udp_sender.is_some() {
        return told_in(round);
    }
    let end = round.ended.udp_receiver.as_ref()?;
    let length = u64::from(round.order.plan.length);
    let (share, over) = stream_end::rated(end.highest, end.elapsed, Schedule::of(&round.order.plan))?;
    let bytes = (end.highest.saturating_mul(length) as f64 * share).round();
    Some((ByteCount(bytes as u64), over))
}

/// The same as far as the sender told it.
fn told_in(round: &UdpRound) -> Option<(ByteCount, Span)> {
    let end = round.ended.udp_sender.as_ref()?;
    let (share, over) = due(round, end)?;
    (end.sent > 1).then_some((ByteCount((end.bytes.0 as f64 * share) as u64), over))
}

/// The rate at which a round was sent.
pub(super) fn sent_at(round: &UdpRound) -> Option<BitRate> {
    mean_rate(left_in(round).into_iter())
}

/// The rate at which a round came.
pub(super) fn came_at(round: &UdpRound) -> Option<BitRate> {
    mean_rate(Arrived::in_round(round).iter().map(Arrived::within))
}

/// Datagrams of a round that are known to be lost.
pub(super) fn lost_in(round: &UdpRound) -> u64 {
    loss_split::split(sent_in(round), round.ended.udp_receiver.as_ref()).lost
}

/// Datagrams at the end of a round that were lost and are in no row of the receiver's: the marks of
/// the stream's end may have been lost together with its last datagrams. None of what nobody
/// observed.
pub(super) fn lost_at_the_end(round: &UdpRound) -> u64 {
    let receiver = round.ended.udp_receiver.as_ref().filter(|end| end.observed.is_none());
    let Some(receiver) = receiver else { return 0 };
    let rows = receiver.loss_runs.iter().map(|(length, times)| length.saturating_mul(*times));
    lost_in(round).saturating_sub(rows.fold(0, u64::saturating_add))
}

/// The same where what came before had come as fast as it was sent: an outage cut the stream off,
/// and no queue held its end up until nobody waited for it any more. Zero where it was not so, and
/// where nothing came at all.
pub(super) fn cut_off(round: &UdpRound) -> u64 {
    let ends = round.ended.udp_sender.as_ref().zip(round.ended.udp_receiver.as_ref());
    let came_in_time = ends.is_some_and(|(sender, receiver)| {
        if receiver.received == 0 {
            return false;
        }
        let until = receiver.highest as f64 / sender.sent.max(1) as f64;
        let sent_within = sender.elapsed.nanos() as f64 * until;
        receiver.elapsed.nanos() as f64 * SLOWED <= sent_within + NOTICEABLE.nanos() as f64
    });
    if came_in_time { lost_at_the_end(round) } else { 0 }
}

/// Over which time a round was sent, and the share of its datagrams that belongs to it: of those
/// that left, from the first to the last of them, or, where others did not leave, of all of the
/// plan in its time. The time of bursts is that of the plan in any case.
fn due(round: &UdpRound, sender: &UdpSenderEnd) -> Option<(f64, Span)> {
    let schedule = Schedule::of(&round.order.plan);
    let over = stream_end::due_over(sender, schedule);
    let is_of_plan = over > sender.elapsed || schedule.is_of_bursts();
    let not_sent = if is_of_plan { sender.not_sent } else { 0 };
    stream_end::rated(sender.sent.saturating_add(not_sent), over, schedule)
}

/// Since when nothing of the last stream of one direction came, if nothing came until its end, nor
/// of any stream that was begun later: what comes later shows an outage that ended.
pub(super) fn broke_off(rounds: &[UdpRound], direction: Direction) -> Option<Ceased> {
    let last = rounds.iter().rposition(|round| round.order.plan.direction == direction)?;
    let round = &rounds[last];
    let (sender, receiver) = (round.ended.udp_sender.as_ref()?, round.ended.udp_receiver.as_ref()?);
    let later = rounds[last + 1..].iter().filter(|later| !(round.at_once && later.at_once));
    let has_come = |it: &UdpRound| it.ended.udp_receiver.as_ref().is_some_and(|end| end.received > 0);
    if round.ended.outcome != Outcome::Complete || later.into_iter().any(has_come) {
        return None;
    }
    stream_end::broke_off(sender, receiver, Schedule::of(&round.order.plan))
}

/// Why a stream was not measured to its end.
fn ceased(ceased: &Ceased) -> String {
    let Ceased { after, silent, unanswered, not_sent } = *ceased;
    let fate = match (unanswered, not_sent) {
        (0, not_sent) => format!("the last {not_sent} datagrams, due over {silent}, were not sent"),
        (lost, 0) => format!("the last {lost} datagrams, sent over {silent}, were lost"),
        (lost, not_sent) => format!(
            "of the last {} datagrams, due over {silent}, {not_sent} were not sent, and {lost} were lost",
            lost.saturating_add(not_sent)
        ),
    };
    format!("nothing arrived any more after {after}: {fate}")
}

/// The slices of a round, up to the last in which the stream was sent or something came. What was
/// overtaken is not lost in any of them.
pub(super) fn slices(round: &UdpRound) -> Vec<ReceiverTick> {
    let mut slices = loss_split::placed(&round.ended.receiver_ticks);
    loss_split::settle(&mut slices);
    let lasts = round.order.plan.duration;
    let is_over = |slice: &ReceiverTick| {
        slice.packets == 0 && slice.lost == 0 && slice.end - slice.length + slice.length / 2 >= lasts
    };
    while slices.last().is_some_and(is_over) {
        slices.pop();
    }
    slices
}

/// What came in a round, and the time over which its rate is taken: from the first to the last
/// arrival, or the time in which it was sent or due if that is longer. So what was lost at either
/// end of the stream lowers the rate as what was lost in its midst does, and what a queue held up
/// is no faster than it came. A receiver that did not listen to the end knows its own time alone.
struct Arrived {
    received: u64,
    bytes: ByteCount,
    /// The part of both that belongs to the time.
    share: f64,
    over: Span,
}

impl Arrived {
    /// `None` where the receiver never reported, of less than two datagrams, and of one burst.
    fn in_round(round: &UdpRound) -> Option<Self> {
        let end = round.ended.udp_receiver.as_ref().filter(|end| end.received > 1)?;
        let sender = round.ended.udp_sender.as_ref().filter(|_| end.observed.is_none());
        let whole = sender.filter(|sender| sender.sent >= end.received);
        let (share, over) = if let Some(sender) = whole {
            due(round, sender)?
        } else {
            let schedule = Schedule::of(&round.order.plan);
            // The slots of bursts go by the numbers, and not by what came.
            let all = if schedule.is_of_bursts() { end.highest } else { 0 };
            stream_end::rated(all.max(end.received), end.elapsed, schedule)?
        };
        Some(Self { received: end.received, bytes: end.bytes, share, over: over.max(end.elapsed) })
    }

    /// The part of a count that belongs to the time.
    fn of_which(&self, count: u64) -> f64 {
        count as f64 * self.share
    }

    /// What came within the time.
    fn within(&self) -> (ByteCount, Span) {
        (ByteCount(self.of_which(self.bytes.0) as u64), self.over)
    }
}

/// The rates as a link sees them. Of a path whose MTU nobody knows, that of Ethernet is taken.
fn wire(path: Path, rounds: &[&UdpRound], arrived: &[Arrived]) -> Option<WireRates> {
    let last = rounds.last()?;
    let mtu = last.ended.path_mtu.unwrap_or(ETHERNET_MTU);
    let vlan = last.order.vlan;
    let each = ethernet::occupancy(path.version, last.order.plan.length, mtu, vlan);
    let bytes = |datagrams: u64| ByteCount(datagrams.saturating_mul(each.bytes));
    Some(WireRates {
        bytes: ByteCount(each.bytes),
        frames: each.frames,
        vlan,
        sent: mean_rate(rounds.iter().filter_map(|round| {
            let end = round.ended.udp_sender.as_ref()?;
            let (share, over) = due(round, end)?;
            let between = ByteCount((bytes(end.sent).0 as f64 * share) as u64);
            (end.sent > 1).then_some((between, over))
        })),
        received: mean_rate(arrived.iter().map(|it| {
            let on_wire = bytes(it.received);
            (ByteCount(it.of_which(on_wire.0) as u64), it.over)
        })),
    })
}

const ETHERNET_MTU: u32 = 1500;

/// The bytes of all datagrams but one of mean length.
fn but_one(bytes: ByteCount, datagrams: u64) -> ByteCount {
    ByteCount(bytes.0 - bytes.0.checked_div(datagrams).unwrap_or(0))
}

fn exchanges(rounds: &[&UdpRound]) -> Exchanges {
    let all: Vec<&Exchanges> = rounds.iter().map(|round| &round.ended.exchanges).collect();
    Exchanges { clearing: told(&all, |one| one.clearing), fetching: told(&all, |one| one.fetching) }
}

/// The rate aimed at over all rounds, which may have had different ones; `None` where one was to be
/// as fast as possible.
fn planned(rounds: &[&UdpRound]) -> Option<BitRate> {
    let (mut bits, mut time) = (0_u128, 0_u128);
    for round in rounds {
        let lasts = u128::from(round.order.plan.duration.or_zero().0.unsigned_abs()).max(1);
        bits += u128::from(round.order.planned?.bit_rate().0) * lasts;
        time += lasts;
    }
    bits.checked_div(time).and_then(|mean| u64::try_from(mean).ok()).map(BitRate)
}

/// What a reader of the figures has to know: that a stream did not end as planned; datagrams that
/// were not sent, with the system's reason; and those whose fate is unknown. The first is left out
/// where the version is unreachable, whose reason says it.
pub(super) fn warnings(rounds: &[UdpRound], is_unreachable: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for direction in [Direction::Reverse, Direction::Forward] {
        let way = direction.name();
        let mut own = rounds.iter().filter(|round| round.order.plan.direction == direction);
        if let Some(since) = broke_off(rounds, direction) {
            warnings.push(format!("UDP {way}: {}; the stream was not measured to its end", ceased(&since)));
        } else if own.clone().any(|round| round.ended.gave_way) {
            warnings.push(format!("UDP {way}: the stream was ended before its time: {GAVE_WAY}"));
        } else if !is_unreachable && own.any(|round| round.ended.outcome == Outcome::Failed) {
            warnings.push(format!(
                "UDP {way}: the stream did not end as planned; its figures stand for the time that was measured"
            ));
        }
        for round in rounds.iter().filter(|round| round.order.plan.direction == direction) {
            warnings.extend(round.ended.udp_sender.iter().flat_map(|end| refusals(way, end)));
            let of_ends = stood_still(round)
                .chain(sender_stood_still(round).or_else(|| was_away(round)))
                .chain(is_one_burst(round));
            warnings.extend(of_ends.map(|text| format!("UDP {way}: {text}")));
            let sent = sent_in(round);
            if round.ended.udp_sender.is_none() && round.ended.udp_receiver.is_some() {
                warnings.push(format!(
                    "UDP {way}: the sending end never told how many datagrams it sent: {sent} are known of, and what \
                     became of any others is unknown; loss and rate are those of these"
                ));
            }
            let unknown = loss_split::split(sent, round.ended.udp_receiver.as_ref()).unknown;
            if unknown > 0 {
                warnings.push(format!(
                    "UDP {way}: the fate of {unknown} of {sent} datagrams is unknown, because the receiver's reports \
                     ended before the stream; they are not counted as lost"
                ));
            }
        }
    }
    warnings
}

/// That the receiving end was stopped while it was to receive.
fn stood_still(round: &UdpRound) -> impl Iterator<Item = String> {
    let receiver = round.ended.udp_receiver.as_ref();
    let sender = round.ended.udp_sender.as_ref().map_or(Span::ZERO, |end| end.elapsed);
    let stood = receiver.and_then(|end| limit::stood_still(end.stood_still, end.elapsed.max(sender)));
    let said = super::tcp::did_not_run(round.order.plan.direction, None, stood);
    said.map(|said| format!("{said}: what came meanwhile waited there or may have been dropped there"))
}

/// That the sending end was away once, for most of what it did not send. What this host has noticed
/// of itself is said of the whole measurement, and what its system refused is said of that.
fn sender_stood_still(round: &UdpRound) -> Option<String> {
    let end = round.ended.udp_sender.as_ref()?;
    let pause = limit::stood_still(limit::udp_sender_pause(end), end.elapsed)?;
    let refused = end.refusals.iter().map(|it| it.not_sent).fold(0, u64::saturating_add);
    let is_own = round.order.plan.direction == Direction::Forward;
    if refused >= end.not_sent.div_ceil(2) || (is_own && pause >= crate::link::NOTICED) {
        return None;
    }
    let who = if is_own { "this host" } else { "the responder's host" };
    Some(format!(
        "{who} sent nothing for {pause} (it was suspended or stopped, or had no CPU time): {} of {} datagrams were not \
         sent, most of them for that",
        end.not_sent,
        end.sent.saturating_add(end.not_sent)
    ))
}

/// That this host did not run the program for a part of its stream, by its own count.
fn was_away(round: &UdpRound) -> Option<String> {
    let end = round.ended.udp_sender.as_ref()?;
    let away = limit::stood_still(round.ended.own_absence, end.elapsed);
    let said = super::tcp::did_not_run(Direction::Forward, away, None).next()?;
    Some(format!("{said}: what was due then was not sent, or left late"))
}

/// That all datagrams left in one burst, so that there is no rate beside the planned one.
fn is_one_burst(round: &UdpRound) -> Option<String> {
    let (end, plan) = (round.ended.udp_sender.as_ref()?, &round.order.plan);
    let is_one = end.sent.saturating_add(end.not_sent) <= u64::from(plan.burst);
    (is_one && end.sent > 1 && Schedule::of(plan).is_of_bursts()).then(|| {
        format!(
            "its {} datagrams left in one burst, which has no rate; two bursts have one, with a longer --time or a \
             smaller --burst",
            end.sent
        )
    })
}

/// That the datagrams of a version came at another pace than they were sent, one warning for each
/// direction.
pub(super) fn paces(result: &VersionResult, rounds: &[UdpRound]) -> Vec<String> {
    let varies = result.latency.as_ref().and_then(|idle| Some(idle.pdv?.p99)).unwrap_or_default();
    let of = |udp: &UdpResult| {
        let is_own = |round: &&UdpRound| round.order.plan.direction == udp.pedigree.direction;
        let own: Vec<&UdpRound> = rounds.iter().filter(is_own).collect();
        came_faster(udp, &own).or_else(|| came_slower(&own, varies))
    };
    result.udp.iter().filter_map(of).collect()
}

/// That datagrams came closer together than they were sent: at a rate that the sender did not plan,
/// and that may exceed what the path carries.
fn came_faster(udp: &UdpResult, rounds: &[&UdpRound]) -> Option<String> {
    // A burst is followed by nothing, which belongs to its rate.
    let has_bursts = rounds.iter().any(|round| Schedule::of(&round.order.plan).is_of_bursts());
    let receiver = udp.receiver.as_ref().filter(|end| end.bursts.is_none() && !has_bursts)?;
    // What was not sent makes the rate of the plan's time a lower one.
    let while_sent = |end: &UdpSenderEnd| BitRate::mean(but_one(end.bytes, end.sent), end.elapsed);
    let cut = udp.sender.as_ref().filter(|sender| sender.not_sent > 0);
    let sent = cut.and_then(while_sent).or(udp.sent_rate)?;
    let came = BitRate::mean(but_one(receiver.bytes, receiver.received), receiver.elapsed)?;
    let late = udp.health.worst_lateness.filter(|late| *late > Span::ZERO);
    let why = late.map_or(String::new(), |late| {
        format!(": some left up to {late} late, and those behind them came closer together than planned")
    });
    let way = udp.pedigree.direction.name();
    (came.0 > sent.percent(HURRIED).0).then(|| {
        format!("UDP {way} came at {came} from its first to its last datagram, and was sent at {sent}{why}")
    })
}

/// That what was not lost came at a lower rate than it was sent with, in one of these rounds of one
/// direction: without that, the rates and the share of losses seem to contradict each other.
/// `varies` is by how much the idle path's delay does: the last datagram may be as much later than
/// the first one without any queue. A queue is named only where the arrivals show one: jitter and a
/// longer route make a stream longer, too. Of several rounds the one is told whose last datagram
/// was delayed most.
fn came_slower(rounds: &[&UdpRound], varies: Span) -> Option<String> {
    let slow = rounds.iter().filter_map(|round| Slow::of(round, varies));
    let slow = slow.max_by_key(|slow| slow.longer)?;
    let Slow { sent, came, left, arrived, longer, has_queued, pause } = slow;
    let later = format!("what came last was delayed by {longer} more than what came first");
    let why = match pause {
        None if has_queued => "a queue on the path filled".to_owned(),
        None => later,
        Some(pause) => format!("{later}, and for {pause} in between nothing came"),
    };
    let way = rounds.first()?.order.plan.direction.name();
    let which =
        if rounds.len() > 1 { format!(", in one of {} rounds,", rounds.len()) } else { String::new() };
    Some(format!(
        "UDP {way} was{which} sent at {sent} within {left}, and what of it was not lost came at {came} within {arrived}: \
         {why}"
    ))
}

/// A round whose datagrams came at a lower rate than they were sent with.
struct Slow {
    sent: BitRate,
    came: BitRate,
    /// From the first datagram to the last: when they were sent, and when they came.
    left: Span,
    arrived: Span,
    /// By how much more the last datagram that came was delayed than the first one.
    longer: Span,
    /// They came as they leave a queue that is filling.
    has_queued: bool,
    /// A single gap that makes up for most of that.
    pause: Option<Span>,
}

impl Slow {
    fn of(round: &UdpRound, varies: Span) -> Option<Self> {
        let (sender, receiver) = (round.ended.udp_sender.as_ref()?, round.ended.udp_receiver.as_ref()?);
        let (sent, came) = (sent_at(round)?, came_at(round)?);
        let lost = lost_in(round) as f64 / sent_in(round).max(1) as f64;
        let unknown = loss_split::split(sent_in(round), Some(receiver)).unknown;
        // The last datagram that came need not be the last that was sent.
        let until = receiver.highest as f64 / sent_in(round).max(1) as f64;
        let sent_within = Span((sender.elapsed.nanos() as f64 * until).round() as i64);
        let longer = receiver.elapsed - sent_within;
        // Datagrams that the sender's own system refused in between show no queue on the path.
        let is_refused = sender.refusals.iter().any(|refusal| refusal.not_sent > 0);
        let is_slower = unknown == 0 && !is_refused && longer >= NOTICEABLE.max(varies);
        let without_queue = sent.0 as f64 * (1.0 - lost);
        (is_slower && (came.0 as f64) < without_queue * SLOWED).then(|| Self {
            sent,
            came,
            left: sender.elapsed,
            arrived: receiver.elapsed,
            longer,
            has_queued: came_steadily_slower(sender, receiver, lost),
            pause: longest_pause(receiver).filter(|pause| *pause >= longer / 2),
        })
    }
}

/// The time by which the longest gap between arrivals exceeds a usual one: where it makes up for
/// most of what a stream took longer, the delay rose in one step.
fn longest_pause(receiver: &UdpReceiverEnd) -> Option<Span> {
    receiver.gaps.map(|gaps| gaps.max - gaps.p50)
}

/// Whether most datagrams came further apart than losses alone would make them, and in order, as
/// they leave a queue that is filling. Delays that vary make some gaps longer and others shorter,
/// and let datagrams overtake each other.
fn came_steadily_slower(sender: &UdpSenderEnd, receiver: &UdpReceiverEnd, lost: f64) -> bool {
    let sent_apart = sender.elapsed.nanos() as f64 / sender.sent.max(1) as f64;
    let is_in_order = receiver.reordered.unwrap_or(0).saturating_mul(10) < receiver.received;
    let is_further = |gap: Span| gap.nanos() as f64 * (1.0 - lost) * SLOWED >= sent_apart;
    is_in_order && receiver.gaps.is_some_and(|gaps| is_further(gaps.p50))
}

/// A stream that takes so little longer is one on any path.
const NOTICEABLE: Span = Span::from_millis(20);
/// The share of what was sent and not lost below which the rates seem to contradict the losses.
const SLOWED: f64 = 0.9;
/// Per cent of the sent rate up to which clocks and the first and last gap differ.
const HURRIED: u64 = 110;

fn refusals(way: &str, end: &UdpSenderEnd) -> Vec<String> {
    let planned = end.sent.saturating_add(end.not_sent);
    let (kept_in, about_earlier): (Vec<_>, Vec<_>) =
        end.refusals.iter().cloned().partition(|refusal| refusal.not_sent > 0);
    let said = |refusal: &SendRefusal| {
        let when = if refusal.first == refusal.last {
            format!("{} into the stream", refusal.first)
        } else {
            format!("from {} to {} into the stream", refusal.first, refusal.last)
        };
        format!(
            "UDP {way}: {} of {planned} datagrams were not sent; the sender's system refused them {when}: {}",
            refusal.not_sent, refusal.cause
        )
    };
    let on_the_way = rejected::in_words(&about_earlier, 0, 0, "datagrams", "stream");
    let on_the_way = on_the_way.map(|text| format!("UDP {way}: {text}"));
    kept_in.iter().map(said).chain(on_the_way).collect()
}

fn health(direction: Direction, senders: &[&UdpSenderEnd], receivers: &[&UdpReceiverEnd]) -> Health {
    let drops = loss_split::sum(receivers.iter().map(|end| end.drops));
    // Of a sender the gaps and the datagrams that it did not send tell.
    let stood = super::tcp::added_up(receivers.iter().filter_map(|end| end.stood_still));
    let sending = Load::of(senders.iter().filter_map(|end| end.cpu));
    let receiving = Load::of(receivers.iter().filter_map(|end| end.cpu));
    let (prober, responder) =
        if direction == Direction::Forward { (sending, receiving) } else { (receiving, sending) };
    Health {
        late_sends: told(senders, |end| Some(end.late)),
        worst_lateness: senders.iter().map(|end| end.worst_lateness).max(),
        not_sent: told(senders, |end| Some(end.not_sent)),
        host_drops: drops.total(),
        steal: prober.steal,
        prober_busiest_core: prober.busiest_core,
        responder_busiest_core: responder.busiest_core,
        prober_stood_still: stood.filter(|_| direction == Direction::Reverse),
        responder_stood_still: stood.filter(|_| direction == Direction::Forward),
        ..Health::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::Ended;
    use crate::request::Pace;
    use crate::transfer::UdpOrder;
    use netaware_probe::limit::Across;
    use netaware_record::{GapSummary, HostDrops, IpVersion, Side};
    use netaware_units::SendRate;

    const PATH: Path = Path { version: IpVersion::V4, across: Across::Network };

    #[test]
    fn a_stream_whose_sending_end_never_reported_is_not_said_to_be_whole() {
        let ended = Ended { udp_receiver: Some(receiver(1060, None)), ..Ended::default() };
        let said = warnings(&[round(ended)], true);
        assert!(said.iter().any(|it| it.contains("never told how many datagrams it sent")), "{said:?}");
        let both = Ended {
            udp_sender: Some(sender(1060, 0)),
            udp_receiver: Some(receiver(1060, None)),
            ..Ended::default()
        };
        assert!(warnings(&[round(both)], true).iter().all(|it| !it.contains("never told")));
    }

    #[test]
    fn without_rounds_there_is_no_result() {
        assert!(results(PATH, &[]).is_empty());
        assert_eq!(worst(std::iter::empty()), Outcome::Complete);
    }

    fn round(ended: Ended) -> UdpRound {
        let rate = SendRate::at_least(10_000_000);
        let mut order =
            UdpOrder::paced(Direction::Forward, Span::from_secs(6), 1472, rate, Span::from_millis(100));
        order.plan.gap_ps = Pace::Rate(rate).gap_ps(1472);
        UdpRound { order, ended, at_once: false, silence: None }
    }

    /// It ended with "the stream did not end as planned" alone, and nobody knew why.
    #[test]
    fn a_stream_that_gave_way_says_why_and_is_no_failure_among_other_phases() {
        let sender = UdpSenderEnd { sent: 100, outcome: Outcome::Failed, ..UdpSenderEnd::default() };
        let ended =
            Ended { gave_way: true, outcome: Outcome::Failed, udp_sender: Some(sender), ..Ended::default() };
        let mut round = round(ended);
        round.accept_giving_way();
        let outcomes = [round.ended.outcome, round.ended.udp_sender.as_ref().unwrap().outcome];
        assert_eq!(outcomes, [Outcome::Complete; 2]);
        let said = warnings(&[round], false);
        assert!(said.iter().any(|it| it.contains(GAVE_WAY)), "{said:?}");
    }

    fn sender(sent: u64, not_sent: u64) -> UdpSenderEnd {
        let (bytes, elapsed) = (ByteCount(sent * 1472), Span::from_secs(6));
        UdpSenderEnd { sent, not_sent, bytes, elapsed, ..UdpSenderEnd::default() }
    }

    fn receiver(received: u64, observed: Option<u64>) -> UdpReceiverEnd {
        let highest = observed.unwrap_or(received);
        let (bytes, elapsed) = (ByteCount(received * 1472), Span::from_secs(6));
        UdpReceiverEnd { received, observed, highest, bytes, elapsed, ..UdpReceiverEnd::default() }
    }

    /// 518 of 1378 datagrams were not sent by a responder that was stopped, and no warning said so.
    #[test]
    fn a_responder_that_was_stopped_while_it_sent_is_named() {
        let of = |direction, pause_ms, refused| {
            let refusal = SendRefusal { not_sent: refused, ..SendRefusal::default() };
            let end = UdpSenderEnd {
                worst_lateness: Span::from_millis(pause_ms),
                refusals: vec![refusal],
                ..sender(860, 518)
            };
            let ended =
                Ended { udp_sender: Some(end), udp_receiver: Some(receiver(860, None)), ..Ended::default() };
            let mut round = round(ended);
            round.order.plan.direction = direction;
            sender_stood_still(&round)
        };
        let want = "the responder's host sent nothing for 3.13 s (it was suspended or stopped, or had no CPU time): 518 \
                    of 1378 datagrams were not sent, most of them for that";
        assert_eq!(of(Direction::Reverse, 3130, 0).as_deref(), Some(want));
        // The system refused them; the datagrams were late one by one; this host says it of itself.
        let others =
            [(Direction::Reverse, 3130, 300), (Direction::Reverse, 100, 0), (Direction::Forward, 3130, 0)];
        for (direction, pause_ms, refused) in others {
            assert_eq!(of(direction, pause_ms, refused), None);
        }
    }

    /// The prober was stopped for 0.8 s while it sent, and no warning said so.
    #[test]
    fn a_host_that_was_stopped_for_a_moment_while_it_sent_says_so() {
        let of = |ms: i64| {
            let own_absence = Some(Span::from_millis(ms));
            was_away(&round(Ended { udp_sender: Some(sender(860, 0)), own_absence, ..Ended::default() }))
        };
        let want = "this host did not run netaware for 800 ms (it was suspended or stopped): what was due then was not \
                    sent, or left late";
        assert_eq!(of(800).as_deref(), Some(want));
        assert_eq!(of(0), None);
        assert_eq!(of(2000), None, "it is said of the whole measurement");
    }

    /// A stream in bursts of 100 at 1 Mbit/s, of which the sender and the receiver tell so much.
    fn in_bursts(sent: u64, elapsed_ms: i64) -> UdpRound {
        let elapsed = Span::from_millis(elapsed_ms);
        let came = UdpReceiverEnd { elapsed, ..receiver(sent, None) };
        let gaps = GapSummary { planned: Some(Span::from_micros(1_177_600)), ..GapSummary::default() };
        let ended = Ended {
            udp_sender: Some(UdpSenderEnd { elapsed, gaps: Some(gaps), ..sender(sent, 0) }),
            udp_receiver: Some(came),
            ..Ended::default()
        };
        let mut round = round(ended);
        let rate = SendRate::at_least(1_000_000);
        (round.order.planned, round.order.plan.burst) = (Some(rate), 100);
        round.order.plan.gap_ps = Pace::Rate(rate).gap_ps(1472 * 100);
        round
    }

    /// Two bursts were sent "at 1.99 Mbit/s" of 1 Mbit/s, and one at 378 Mbit/s of 200 kbit/s.
    #[test]
    fn bursts_have_the_rate_of_their_slots_and_one_alone_has_none() {
        let rounds = [in_bursts(200, 1178)];
        let result = results(PATH, &rounds).remove(0);
        let wire = result.wire.as_ref().unwrap();
        for rate in [result.sent_rate, result.goodput] {
            assert_eq!(rate, Some(BitRate(1_000_000)), "{result:#?}");
        }
        assert_eq!(wire.sent, wire.received);
        assert!(result.limit.evidence.contains("1.00 Mbit/s was sent as planned"), "{:?}", result.limit);
        assert_eq!((came_faster(&result, &[&rounds[0]]), warnings(&rounds, false)), (None, Vec::new()));
        // A sender that never reported.
        let mut alone = in_bursts(200, 1178);
        alone.ended.udp_sender = None;
        assert_eq!(results(PATH, &[alone])[0].sent_rate, Some(BitRate(1_000_000)));

        let rounds = [in_bursts(100, 1)];
        let result = results(PATH, &rounds).remove(0);
        assert_eq!((result.sent_rate, result.goodput, result.packets_per_second), (None, None, None));
        assert_eq!(result.wire.as_ref().map(|wire| (wire.sent, wire.received)), Some((None, None)));
        assert!(result.limit.evidence.starts_with("100 datagrams left in one burst"), "{:?}", result.limit);
        let said = warnings(&rounds, false);
        assert!(said[0].starts_with("UDP up: its 100 datagrams left in one burst"), "{said:?}");
    }

    /// Of 10 Mbit/s that were lowered to 1, the result had "limited by requested rate".
    #[test]
    fn a_rate_that_the_owner_of_the_responder_lowered_is_said_to_be_granted() {
        let of = |cap| {
            let mut round = in_bursts(200, 1178);
            round.order.cap = cap;
            results(PATH, &[round]).remove(0).limit
        };
        let limit = of(Some(BitRate(1_000_000)));
        let want =
            "the responder's owner allows no more than 1.00 Mbit/s; 1.00 Mbit/s was sent as planned and ";
        assert!(limit.evidence.starts_with(want), "{limit:?}");
        assert_eq!((limit.by, limit.name()), (LimitedBy::RequestedRate, "granted rate"));
        assert_eq!(of(None).name(), "requested rate");
    }

    /// A stream over whose end the responder was stopped: a sixth was lost by the network, and
    /// nothing else was said.
    #[test]
    fn a_responder_that_was_stopped_is_named_and_the_network_is_not_blamed() {
        let of = |ms: i64, drops| {
            let mut end = receiver(2148, None);
            end.stood_still = Some(Span::from_millis(ms));
            end.loss_runs = vec![(400, 1)];
            end.highest = 2548;
            end.drops = drops;
            let ended =
                Ended { udp_sender: Some(sender(2548, 0)), udp_receiver: Some(end), ..Ended::default() };
            let rounds = [round(ended)];
            let result = results(PATH, &rounds).remove(0);
            (warnings(&rounds, false), result)
        };
        let none = HostDrops { socket: Some(0), stack: Some(0), nic: Some(0) };
        let (said, result) = of(1000, none);
        assert_eq!(
            said,
            [
                "UDP up: the responder's host did not run netaware for 1.00 s (it was suspended or stopped): what came \
             meanwhile waited there or may have been dropped there"
            ]
        );
        assert_eq!((result.loss.lost, result.loss.network, result.limit.by), (400, None, LimitedBy::Unknown));
        assert!(result.limit.evidence.contains("the receiver did not run for 1.00 s"), "{:?}", result.limit);
        let (said, result) = of(0, none);
        assert_eq!((said.len(), result.loss.network, result.limit.by), (0, Some(400), LimitedBy::Network));
        assert!(
            result.limit.evidence.ends_with("in a few rows, which says nothing of the rate"),
            "{:?}",
            result.limit
        );
    }

    #[test]
    fn a_responder_that_died_is_not_loss_by_the_network() {
        for udp_receiver in [Some(receiver(2497, Some(2497))), None] {
            let received = udp_receiver.as_ref().map_or(0, |end| end.received);
            let rounds =
                [round(Ended { udp_sender: Some(sender(2548, 0)), udp_receiver, ..Ended::default() })];
            let found = results(PATH, &rounds);
            let result = &found[0];
            assert_eq!((result.sent, result.received, result.loss.lost), (2548, received, 0));
            assert_eq!(result.loss.unknown, 2548 - received);
            assert_eq!(result.limit.by, LimitedBy::Unknown, "{:?}", result.limit);
            let warnings = warnings(&rounds, true);
            assert!(warnings[0].contains(&format!("fate of {} of 2548", 2548 - received)), "{warnings:?}");
        }
    }

    /// A stream of 6 s, 5096 datagrams, of which nothing came after 0.6 s; the rest was lost, or
    /// not even sent.
    fn broken(is_sent: bool) -> UdpRound {
        let end = if is_sent {
            sender(5096, 0)
        } else {
            UdpSenderEnd { elapsed: Span::from_millis(600), ..sender(510, 4586) }
        };
        let came = UdpReceiverEnd { elapsed: Span::from_millis(600), ..receiver(510, None) };
        round(Ended { udp_sender: Some(end), udp_receiver: Some(came), ..Ended::default() })
    }

    /// 265 of 2583 datagrams had left, and 9.95 Mbit/s of 10 were told.
    #[test]
    fn a_stream_that_broke_off_has_the_rate_of_its_time_and_is_not_complete() {
        for (is_sent, why) in [
            (true, "the last 4586 datagrams, sent over 5.40 s, were lost"),
            (false, "the last 4586 datagrams, due over 5.40 s, were not sent"),
        ] {
            let rounds = [broken(is_sent)];
            let result = results(PATH, &rounds).remove(0);
            assert_eq!((result.outcome, result.limit.by), (Outcome::Failed, LimitedBy::Unknown));
            let rate = |rate: Option<BitRate>| rate.unwrap().0 as f64 / 1e6;
            assert!((rate(result.goodput) - 1.0).abs() < 0.01, "{result:#?}");
            assert!((rate(result.sent_rate) - if is_sent { 10.0 } else { 1.0 }).abs() < 0.01, "{result:#?}");
            assert_eq!(came_faster(&result, &[&rounds[0]]), None);
            let warnings = warnings(&rounds, false);
            let want = format!(
                "UDP up: nothing arrived any more after 600 ms: {why}; the stream was not measured to its end"
            );
            assert!(warnings.contains(&want), "{warnings:?}");
            // What comes in a later stream shows an outage that ended.
            let whole = Ended {
                udp_sender: Some(sender(5096, 0)),
                udp_receiver: Some(receiver(5096, None)),
                ..Ended::default()
            };
            assert_eq!(results(PATH, &[broken(is_sent), round(whole)])[0].outcome, Outcome::Complete);
        }
    }

    #[test]
    fn a_refused_datagram_is_named_with_its_cause_and_its_time() {
        let refusal = SendRefusal {
            cause: "Network is unreachable (os error 101)".into(),
            count: 26,
            not_sent: 26,
            first: Span::from_secs(2),
            last: Span::from_millis(2300),
        };
        let end = UdpSenderEnd { refusals: vec![refusal], ..sender(491, 26) };
        let ended =
            Ended { udp_sender: Some(end), udp_receiver: Some(receiver(491, None)), ..Ended::default() };
        let told = warnings(&[round(ended)], true);
        assert_eq!(
            told,
            [
                "UDP up: 26 of 517 datagrams were not sent; the sender's system refused them from 2.00 s to 2.30 s into \
              the stream: Network is unreachable (os error 101)"
            ]
        );
    }

    /// A stall in one round, whichever it is.
    fn stalled(stalls_first: bool) -> UdpResult {
        let gaps = |max| GapSummary {
            count: 2500,
            p99: Span::from_millis(2),
            max: Span::from_millis(max),
            ..GapSummary::default()
        };
        let end = |lost: u64, max, jitter| UdpReceiverEnd {
            loss_runs: if lost > 0 { vec![(lost, 1)] } else { Vec::new() },
            gaps: Some(gaps(max)),
            jitter: Some(Span::from_micros(jitter)),
            highest: 2548,
            ..receiver(2548 - lost, None)
        };
        let of = |lost, max, jitter| {
            round(Ended {
                udp_sender: Some(sender(2548, 0)),
                udp_receiver: Some(end(lost, max, jitter)),
                ..Ended::default()
            })
        };
        let (bad, good) = (of(625, 1500, 90), of(0, 30, 40));
        let rounds = if stalls_first { [bad, good] } else { [good, bad] };
        results(PATH, &rounds).remove(0)
    }

    #[test]
    fn a_loss_in_one_of_two_rounds_is_not_no_loss_whichever_round_it_was() {
        for result in [stalled(true), stalled(false)] {
            assert_eq!((result.sent, result.loss.lost), (5096, 625));
            assert_ne!(result.limit.side, Side::Request, "{:?}", result.limit);
            assert!(result.limit.evidence.starts_with("625 of 5096 datagrams lost"), "{:?}", result.limit);
        }
    }

    #[test]
    fn both_ends_are_told_of_the_same_rounds_as_the_loss_beside_them() {
        for result in [stalled(true), stalled(false)] {
            let (sender, receiver) = (result.sender.unwrap(), result.receiver.unwrap());
            assert_eq!((sender.sent, sender.elapsed), (5096, Span::from_secs(12)));
            assert_eq!((receiver.received, receiver.elapsed), (4471, Span::from_secs(12)));
            assert_eq!(receiver.loss_runs, [(625, 1)]);
            let gaps = receiver.gaps.unwrap();
            assert_eq!((gaps.count, gaps.max), (5000, Span::from_millis(1500)));
            assert_eq!(receiver.jitter, Some(Span::from_micros(90)));
        }
    }

    #[test]
    fn rounds_of_different_plans_have_their_mean_as_plan() {
        let ended = || Ended {
            udp_sender: Some(sender(2548, 0)),
            udp_receiver: Some(receiver(2548, None)),
            ..Ended::default()
        };
        let (one, mut other) = (round(ended()), round(ended()));
        other.order.planned = Some(SendRate::at_least(2_000_000));
        assert_eq!(results(PATH, &[one, other])[0].planned, Some(BitRate(6_000_000)));
    }

    #[test]
    fn a_stream_that_came_faster_than_it_was_sent_says_why() {
        let of = |sent, came: u64, late: Option<Span>| {
            let rounds = [round(Ended::default())];
            let mut result = results(PATH, &rounds).remove(0);
            let bytes = ByteCount(came / 8 * 101 / 100);
            let receiver = UdpReceiverEnd {
                bytes,
                received: 101,
                elapsed: Span::from_secs(1),
                ..UdpReceiverEnd::default()
            };
            (result.sent_rate, result.receiver) = (Some(BitRate(sent)), Some(receiver));
            result.health.worst_lateness = late;
            came_faster(&result, &[&rounds[0]])
        };
        let want = "UDP up came at 1.81 Mbit/s from its first to its last datagram, and was sent at 1.53 Mbit/s: some left up to 65.0 ms late, and \
                    those behind them came closer together than planned";
        assert_eq!(of(1_530_000, 1_810_000, Some(Span::from_millis(65))).as_deref(), Some(want));
        assert_eq!(of(1_530_000, 1_550_000, None), None);
    }

    /// The gap of the last round, which was slower, was longer than that of the mean rate, and so
    /// its datagrams passed for bursts.
    #[test]
    fn rounds_of_unlike_rates_are_not_taken_for_bursts() {
        let rounds = [round(Ended::default())];
        let mut result = results(PATH, &rounds).remove(0);
        let receiver = UdpReceiverEnd {
            bytes: ByteCount(1_810_000 / 8 * 101 / 100),
            received: 101,
            elapsed: Span::from_secs(1),
            ..UdpReceiverEnd::default()
        };
        let gaps = GapSummary { planned: Some(Span::from_micros(5888)), ..GapSummary::default() };
        result.sender = Some(UdpSenderEnd { gaps: Some(gaps), ..UdpSenderEnd::default() });
        (result.planned, result.sent_rate) = (Some(BitRate(6_000_000)), Some(BitRate(1_530_000)));
        result.receiver = Some(receiver);
        assert!(came_faster(&result, &[&rounds[0]]).is_some());
    }

    /// 496 of 1168 datagrams came, and the rest was lost in a row at the end: 27 Mbit/s were told
    /// as received.
    #[test]
    fn a_rate_does_not_hide_that_the_end_of_the_stream_was_lost() {
        let of = |received: u64, elapsed: Span, observed: Option<u64>| {
            let receiver = UdpReceiverEnd { elapsed, ..receiver(received, observed) };
            let ended =
                Ended { udp_sender: Some(sender(1168, 0)), udp_receiver: Some(receiver), ..Ended::default() };
            results(PATH, &[round(ended)]).remove(0)
        };
        let sixth = Span::from_secs(6) / 1168;
        let tail = of(496, sixth * 495, None);
        let agrees = |result: &UdpResult| {
            let left = result.sent_rate.unwrap().0 as f64 * (1.0 - result.loss.ratio.unwrap().estimate);
            (result.goodput.unwrap().0 as f64 / left - 1.0).abs() < 0.001
        };
        assert!(agrees(&tail), "{:?} {:?}", tail.sent_rate, tail.goodput);
        assert!(agrees(&of(496, Span::from_secs(6), None)), "lost one by one");
        let (wire, pps) = (tail.wire.unwrap(), tail.packets_per_second.unwrap());
        assert!((wire.received.unwrap().0 as f64 / (pps * wire.bytes.0 as f64 * 8.0) - 1.0).abs() < 0.001);
        // Of a receiver whose reports ended early the rest is unknown, and lowers nothing.
        let cut = of(496, sixth * 495, Some(496));
        assert!((cut.goodput.unwrap().0 as f64 / cut.sent_rate.unwrap().0 as f64 - 1.0).abs() < 0.01);
    }

    /// A stream of 375 datagrams within 420 ms, of which 289 came within this time.
    fn slower(elapsed_ms: i64, gaps: Option<GapSummary>, reordered: u64) -> UdpRound {
        let sender = UdpSenderEnd { elapsed: Span::from_millis(420), ..sender(375, 0) };
        let elapsed = Span::from_millis(elapsed_ms);
        let reordered = Some(reordered);
        let receiver = UdpReceiverEnd { elapsed, gaps, reordered, highest: 375, ..receiver(289, None) };
        round(Ended { udp_sender: Some(sender), udp_receiver: Some(receiver), ..Ended::default() })
    }

    /// Half of the gaps between arrivals are no longer than `p50_us`.
    fn gaps_of(p50_us: i64, max_ms: i64) -> GapSummary {
        let (p50, max) = (Span::from_micros(p50_us), Span::from_millis(max_ms));
        GapSummary { count: 288, p50, max, ..GapSummary::default() }
    }

    /// One flow of 6 Mbit/s was sent at 10.5: 23 % were lost, and the rate was 44 % lower.
    #[test]
    fn a_rate_below_what_was_sent_and_not_lost_says_that_a_queue_filled() {
        let queue = Some(gaps_of(2000, 3));
        let want = "UDP up was sent at 10.5 Mbit/s within 420 ms, and what of it was not lost came at 5.89 Mbit/s \
                    within 576 ms: a queue on the path filled";
        assert_eq!(came_slower(&[&slower(576, queue, 0)], Span::ZERO).as_deref(), Some(want));
        assert_eq!(came_slower(&[&slower(430, queue, 0)], Span::ZERO), None);
        let jitters = came_slower(&[&slower(576, queue, 0)], Span::from_millis(160));
        assert_eq!(jitters, None, "the path jitters by as much");
    }

    /// "A queue on the path filled", where delays varied by 150 ms and where a route became longer.
    #[test]
    fn jitter_and_a_longer_route_are_not_called_a_queue() {
        let late = "what came last was delayed by 156 ms more than what came first";
        let paused = format!("{late}, and for 148 ms in between nothing came");
        for (gaps, reordered, want) in [
            (Some(gaps_of(800, 20)), 220, late),
            (Some(gaps_of(2000, 20)), 220, late),
            (Some(gaps_of(1100, 20)), 0, late),
            (None, 0, late),
            (Some(gaps_of(2000, 150)), 0, paused.as_str()),
        ] {
            let said = came_slower(&[&slower(576, gaps, reordered)], Span::ZERO).unwrap();
            assert!(said.ends_with(&format!(" within 576 ms: {want}")), "{said}");
        }
    }

    /// Two rounds of 78 ms were said to be "up to 156 ms".
    #[test]
    fn the_delays_of_two_rounds_are_not_added_up() {
        let [one, other] = [498, 488].map(|ms| slower(ms, Some(gaps_of(1100, 20)), 0));
        let want = "UDP up was, in one of 2 rounds, sent at 10.5 Mbit/s within 420 ms, and what of it was not lost came \
                    at 6.82 Mbit/s within 498 ms: what came last was delayed by 78.0 ms more than what came first";
        assert_eq!(came_slower(&[&other, &one], Span::ZERO).as_deref(), Some(want));
        // One gap makes up for most of it, which it did not of the sum.
        let paused = slower(498, Some(gaps_of(2000, 60)), 0);
        let said = came_slower(&[&other, &paused], Span::ZERO).unwrap();
        assert!(
            said.ends_with(" more than what came first, and for 58.0 ms in between nothing came"),
            "{said}"
        );
    }

    #[test]
    fn a_stream_whose_end_was_lost_is_compared_with_the_time_in_which_its_last_arrival_was_sent() {
        let mut round = slower(500, Some(gaps_of(1100, 20)), 0);
        round.ended.udp_receiver.as_mut().unwrap().highest = 300;
        // The 300th of 375 left after 336 of 420 ms.
        let said = came_slower(&[&round], Span::ZERO).unwrap();
        assert!(said.contains("delayed by 164 ms more than what came first"), "{said}");
    }

    /// "The sender's system reported 1 errors about datagrams that had left."
    #[test]
    fn a_stream_that_was_rejected_on_the_way_says_so_as_requests_do() {
        let cause = std::io::Error::from_raw_os_error(13).to_string();
        let at = Span::from_secs(2);
        let refusal = SendRefusal { cause: cause.clone(), count: 1, not_sent: 0, first: at, last: at };
        let end = UdpSenderEnd { refusals: vec![refusal], ..sender(491, 0) };
        let ended =
            Ended { udp_sender: Some(end), udp_receiver: Some(receiver(491, None)), ..Ended::default() };
        let want = format!(
            "UDP up: rejected on the way: ICMP messages came back; one such message came at 2.00 s into the stream: \
             {cause} (administratively prohibited)"
        );
        assert_eq!(warnings(&[round(ended)], true), [want]);
    }

    #[test]
    fn two_datagrams_a_gap_apart_are_one_datagram_in_that_time_and_not_two() {
        let end = UdpSenderEnd { bytes: ByteCount(2944), elapsed: Span::from_millis(148), ..sender(2, 0) };
        let of =
            |end| results(PATH, &[round(Ended { udp_sender: Some(end), ..Ended::default() })])[0].sent_rate;
        assert_eq!(of(end.clone()), Some(BitRate(1472 * 8 * 1000 / 148)));
        assert_eq!(
            of(UdpSenderEnd { sent: 1, bytes: ByteCount(1472), ..end }),
            None,
            "one alone has no rate"
        );
    }

    #[test]
    fn a_sender_that_never_reported_has_not_sent_at_zero_bits_a_second() {
        let ended = Ended { udp_receiver: Some(receiver(5001, Some(5001))), ..Ended::default() };
        let found = results(PATH, &[round(ended)]);
        assert_eq!((found[0].sent, found[0].sent_rate), (5001, Some(BitRate(5000 * 1472 * 8 / 6))));
    }

    #[test]
    fn an_end_that_never_reported_leaves_figures_unknown_and_not_zero() {
        let nobody = results(PATH, &[round(Ended::default())]);
        let result = &nobody[0];
        assert_eq!((result.sent_rate, result.goodput, result.packets_per_second), (None, None, None));
        assert_eq!((&result.sender, &result.receiver), (&None, &None));
        assert_eq!((result.not_sent, result.duplicates, result.reordered), (None, None, None));
        assert_eq!(result.exchanges, Exchanges { clearing: None, fetching: None });
        assert_eq!(result.health, Health::default());
        let wire = result.wire.unwrap();
        assert_eq!((wire.sent, wire.received), (None, None));
        // The receiver was pieced together from its slices: it counted no copies and no drops.
        let ended = Ended {
            udp_sender: Some(sender(2548, 3)),
            udp_receiver: Some(receiver(2490, Some(2497))),
            ..Ended::default()
        };
        let pieced = results(PATH, &[round(ended)]);
        let result = &pieced[0];
        assert!(result.goodput.is_some());
        assert_eq!((result.not_sent, result.duplicates, result.reordered), (Some(3), None, None));
        assert_eq!((result.loss.lost, result.loss.host, result.loss.network), (7, None, None));
        assert_eq!((result.health.not_sent, result.health.host_drops), (Some(3), None));
    }

    #[test]
    fn a_stream_of_which_nothing_came_has_no_goodput_and_all_of_its_loss() {
        let ended = Ended {
            udp_sender: Some(sender(2548, 0)),
            udp_receiver: Some(receiver(0, None)),
            ..Ended::default()
        };
        let found = results(PATH, &[round(ended)]);
        assert_eq!((found[0].goodput, found[0].packets_per_second), (None, None));
        assert_eq!((found[0].loss.lost, found[0].loss_ratio()), (2548, Some(1.0)));
    }
}
