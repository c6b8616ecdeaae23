//! TCP results from their rounds.

mod bucket;
mod count;
mod notes;
mod queue;
mod shown;
mod stopped;
mod uncertainty;
mod verdict;

#[cfg(test)]
mod tests;

use netaware_probe::fairness;
use netaware_probe::goodput::{MeasuredRound, goodput};
use netaware_probe::tcp_times::{self, BlocksAsked};
use netaware_probe::{rfc6349, warm_up};
use netaware_record::{
    Direction, Health, Interval, IpVersion, LatencyResult, Layer, Pedigree, SenderTick, TcpCount, TcpEnd,
    TcpResult,
};
use netaware_units::{ByteCount, ClockSource, Span};

use super::route::{self, Shift};
use super::{Load, Path, latency, worst};
use crate::transfer::{TcpOrder, TcpRound};

pub(super) use bucket::{blame_the_path, fell_behind, fell_within};
use count::{count_of_all, planned};
pub(super) use count::{cut, measured, own_round_trip, slices};
pub(super) use notes::{did_not_run, streams, warnings};
use queue::queue_left;
pub(crate) use shown::{Seen, seen};
pub(crate) use stopped::Stopped;
pub(super) use stopped::mark as mark_stopped;
use uncertainty::{echo_rate, edges, gathered_acknowledgements};
use verdict::{judge, with_events};

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
            let base = if is_moved {
                Base::Moved(shift?.after)
            } else {
                began_higher(rounds.iter().filter(of_kind), idle).map_or(Base::Idle(idle), Base::Moved)
            };
            result(path, &rounds.iter().filter(of_kind).collect::<Vec<_>>(), base, connects)
        })
        .collect()
}

/// The smallest round trip of transfers, if even that is far above the idle one: a path that was so
/// long from their start on was longer before there was any load, though it may be so for them
/// alone.
fn began_higher<'a>(
    rounds: impl Iterator<Item = &'a TcpRound>,
    idle: Option<&LatencyResult>,
) -> Option<Span> {
    let idle = idle?.rtt?.p50;
    let least = rounds.map(route::least).collect::<Option<Vec<Span>>>()?.into_iter().min()?;
    netaware_probe::shift::is_far_above(least, idle).then_some(least)
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

fn blocks_asked(order: &TcpOrder) -> BlocksAsked {
    BlocksAsked {
        length: ByteCount(order.block_length().into()),
        spacing: order.block_spacing,
        count: order.blocks,
    }
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
