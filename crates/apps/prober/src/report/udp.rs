//! UDP results from their rounds.

use netaware_probe::limit::{self, UdpEvidence};
use netaware_probe::loss_split;
use netaware_record::{
    Direction, Exchanges, Health, Layer, Limit, Pedigree, ReceiverTick, UdpReceiverEnd, UdpResult,
    UdpSenderEnd, WireRates,
};
use netaware_units::{BitRate, ByteCount, ClockSource, Span};
use netaware_wire::ethernet;

use super::{Load, Path, mean_rate, most_frequent, worst};
use crate::transfer::UdpRound;

/// One result per direction, in the order first run.
pub(super) fn results(path: Path, rounds: &[UdpRound]) -> Vec<UdpResult> {
    let directions = [Direction::Reverse, Direction::Forward];
    let of = |direction: &Direction| {
        let rounds: Vec<&UdpRound> =
            rounds.iter().filter(|round| round.order.plan.direction == *direction).collect();
        result(path, *direction, &rounds)
    };
    directions.iter().filter_map(of).collect()
}

fn result(path: Path, direction: Direction, rounds: &[&UdpRound]) -> Option<UdpResult> {
    let order = &rounds.last()?.order;
    let senders: Vec<&UdpSenderEnd> = rounds.iter().filter_map(|r| r.ended.udp_sender.as_ref()).collect();
    let receivers: Vec<&UdpReceiverEnd> =
        rounds.iter().filter_map(|r| r.ended.udp_receiver.as_ref()).collect();
    let ticks: Vec<ReceiverTick> = rounds.iter().flat_map(|r| r.ended.receiver_ticks.clone()).collect();
    let received: u64 = receivers.iter().map(|end| end.received).sum();
    // A sender that died could not tell what it sent; the highest number received is the least it
    // can have been.
    let told: u64 = senders.iter().map(|end| end.sent).sum();
    let sent = told.max(receivers.iter().map(|end| end.highest).sum());
    let drops = loss_split::sum(receivers.iter().map(|end| end.drops));
    let between: u64 = receivers.iter().map(|end| end.received.saturating_sub(1)).sum();
    let span: Span = receivers.iter().map(|end| end.elapsed).sum();
    let sender = senders.last().map(|end| (*end).clone()).unwrap_or_default();
    let receiver = receivers.last().map(|end| (*end).clone()).unwrap_or_default();
    let loss = loss_split::split(sent, received, drops);
    let stamped = receiver.gaps.is_some();
    let sent_rate = mean_rate(senders.iter().map(|end| (end.bytes, end.elapsed)));
    // From the first arrival to the last there is one datagram less than arrived.
    let goodput = mean_rate(receivers.iter().map(|end| (but_one(end.bytes, end.received), end.elapsed)));
    Some(UdpResult {
        pedigree: Pedigree {
            method: "udp-stream".into(),
            layer: Layer::Payload,
            direction,
            version: path.version,
            clock: if stamped { ClockSource::Kernel } else { ClockSource::Application },
            uncertainty: "rate: the receiver's count over its first to last datagram; loss: 95 % Wilson interval, too narrow \
                          where losses come in runs"
                .into(),
        },
        outcome: worst(rounds.iter().map(|round| round.ended.outcome)),
        payload: ByteCount(u64::from(order.plan.length)),
        planned: order.planned,
        sent_rate,
        wire: wire(path, rounds, &senders, &receivers),
        exchanges: exchanges(rounds),
        goodput,
        sent,
        not_sent: senders.iter().map(|end| end.not_sent).sum(),
        received,
        packets_per_second: if span.0 > 0 { between as f64 / span.secs_f64() } else { 0.0 },
        loss,
        duplicates: receivers.iter().map(|end| end.duplicates).sum(),
        reordered: receivers.iter().map(|end| end.reordered).sum(),
        ticks,
        limit: judge(path, rounds),
        health: health(direction, &senders, &receivers),
        sender,
        receiver,
    })
}

/// The rates as a link sees them. Of a path whose MTU nobody knows, that of Ethernet is taken.
fn wire(
    path: Path,
    rounds: &[&UdpRound],
    senders: &[&UdpSenderEnd],
    receivers: &[&UdpReceiverEnd],
) -> Option<WireRates> {
    let last = rounds.last()?;
    let mtu = last.ended.path_mtu.unwrap_or(ETHERNET_MTU);
    let vlan = last.order.vlan;
    let each = ethernet::occupancy(path.version, last.order.plan.length, mtu, vlan);
    let bytes = |datagrams: u64| ByteCount(datagrams.saturating_mul(each.bytes));
    Some(WireRates {
        bytes: ByteCount(each.bytes),
        frames: each.frames,
        vlan,
        sent: mean_rate(senders.iter().map(|end| (bytes(end.sent), end.elapsed))),
        received: mean_rate(receivers.iter().map(|end| (bytes(end.received.saturating_sub(1)), end.elapsed))),
    })
}

const ETHERNET_MTU: u32 = 1500;

/// The bytes of all datagrams but one of mean length.
fn but_one(bytes: ByteCount, datagrams: u64) -> ByteCount {
    ByteCount(bytes.0 - bytes.0.checked_div(datagrams).unwrap_or(0))
}

fn exchanges(rounds: &[&UdpRound]) -> Exchanges {
    let all = rounds.iter().map(|round| round.ended.exchanges);
    all.fold(Exchanges::default(), |sum, one| Exchanges {
        clearing: sum.clearing + one.clearing,
        fetching: sum.fetching + one.fetching,
    })
}

/// Each round is judged by itself: they may have had different plans.
fn judge(path: Path, rounds: &[&UdpRound]) -> Limit {
    let verdict = |round: &&UdpRound| {
        let (sender, receiver) = (round.ended.udp_sender.as_ref()?, round.ended.udp_receiver.as_ref()?);
        Some(limit::udp_limit(&UdpEvidence {
            sender,
            receiver,
            planned: round.order.planned,
            sent_rate: BitRate::mean(sender.bytes, sender.elapsed),
            loss: &loss_split::split(sender.sent, receiver.received, receiver.drops),
            across: path.across,
        }))
    };
    most_frequent(&rounds.iter().filter_map(verdict).collect::<Vec<_>>())
}

fn health(direction: Direction, senders: &[&UdpSenderEnd], receivers: &[&UdpReceiverEnd]) -> Health {
    let drops = loss_split::sum(receivers.iter().map(|end| end.drops));
    let sending = Load::of(senders.iter().filter_map(|end| end.cpu));
    let receiving = Load::of(receivers.iter().filter_map(|end| end.cpu));
    let (prober, responder) =
        if direction == Direction::Forward { (sending, receiving) } else { (receiving, sending) };
    Health {
        late_sends: senders.iter().map(|end| end.late).sum(),
        worst_lateness: senders.iter().map(|end| end.worst_lateness).max().unwrap_or_default(),
        not_sent: senders.iter().map(|end| end.not_sent).sum(),
        host_drops: drops.socket.max(drops.stack).saturating_add(drops.nic),
        stamp_fallbacks: 0,
        steal: prober.steal,
        prober_busiest_core: prober.busiest_core,
        responder_busiest_core: responder.busiest_core,
        ..Health::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netaware_probe::limit::Across;
    use netaware_record::{IpVersion, Outcome};

    #[test]
    fn without_rounds_there_is_no_result() {
        assert!(results(Path { version: IpVersion::V4, across: Across::Network }, &[]).is_empty());
        assert_eq!(worst(std::iter::empty()), Outcome::Complete);
    }
}
