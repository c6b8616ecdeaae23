//! Streams of datagrams that each stopped after the same number of bytes.
//!
//! **Measures** after how many bytes nothing of a stream came any more, with the headers of IP and
//! UDP. **Assumes** that each stream is a flow of its own, that its datagrams are no fragments, and
//! that what counts a flow's bytes counts those of each flow alike. Outages end streams at places
//! that have nothing to do with each other, so that streams which agree to a datagram and a
//! twentieth did not meet one. **Biased**: where datagrams are lost before the stop, the volume is
//! told a little too large; streams of one rate stop after the same time as well, so that only
//! those of unlike rates show that bytes are counted; and a path that is so slow that of a whole
//! stream it carries no more than its queue held looks the same. A single stream shows nothing, and
//! streams that run at once show nothing either, because an outage ends both alike.

use netaware_probe::limit;
use netaware_record::{IpVersion, TcpResult, VersionResult};
use netaware_units::BitRate;

use super::{Findings, udp};
use crate::transfer::UdpRound;

/// The bytes after which something on the way drops a flow of UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Volume {
    /// So many came, with headers.
    least: u64,
    /// With the first datagram that did not, they would have been so many.
    most: u64,
    /// Streams that show it.
    streams: usize,
    counted: Counted,
}

/// What ends a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Its bytes: streams of unlike rates stopped after as many.
    Bytes,
    /// Its bytes or its time: the streams had one rate, and stopped after the same time as well.
    BytesOrTime,
}

impl Volume {
    /// That of the streams of one version, if at least two stopped after the same bytes and none
    /// went on for longer.
    pub(super) fn of(version: IpVersion, rounds: &[UdpRound]) -> Option<Self> {
        let apart = || rounds.iter().filter(|round| !round.at_once);
        let stopped: Vec<(u64, u64)> = apart().filter_map(|round| stopped_after(version, round)).collect();
        let (least, most) =
            stopped.iter().copied().reduce(|one, next| (one.0.min(next.0), one.1.max(next.1)))?;
        // The last to stop had so many, and the first to stop no more than that.
        let latest = stopped.iter().map(|(came, _)| *came).max()?;
        let first = stopped.iter().map(|(_, with_next)| *with_next).min()?;
        let are_alike = latest <= first + first / ALIKE;
        let goes_on = |round: &UdpRound| {
            stopped_after(version, round).is_none()
                && came(version, round).is_some_and(|came| came > most + most / ALIKE)
        };
        let streams = stopped.len();
        let counted = counted(apart().filter(|round| stopped_after(version, round).is_some()));
        (streams > 1 && are_alike && !apart().any(goes_on)).then_some(Self { least, most, streams, counted })
    }

    /// "60000 to 61500".
    pub(super) fn in_words(self) -> String {
        format!("{} to {}", self.least, self.most)
    }

    /// The warning of one version.
    pub(super) fn warning(self, result: &VersionResult, found: &Findings) -> String {
        let carried_more = |tcp: &TcpResult| tcp.bytes.is_some_and(|bytes| bytes.0 > self.most);
        let meanwhile = if result.tcp.iter().any(carried_more) {
            ", and TCP carried more"
        } else if found.longest_pause.is_some() {
            ", and the control connection over TCP went on"
        } else {
            ""
        };
        let after = match self.counted {
            Counted::Bytes => "so many bytes",
            Counted::BytesOrTime => "so many bytes, or after so long",
        };
        format!(
            "UDP stopped after the same number of bytes in each of {} streams, {} with headers{meanwhile}: something \
             on the way drops a flow of UDP after {after}; what was lost and what came per second depend on how long \
             the streams were",
            self.streams,
            self.in_words()
        )
    }
}

/// What the streams that stopped after the same bytes can tell apart.
fn counted<'a>(stopped: impl Iterator<Item = &'a UdpRound>) -> Counted {
    let rates: Option<Vec<BitRate>> = stopped.map(udp::sent_at).collect();
    let ends = rates.and_then(|rates| Some((rates.iter().min()?.0, rates.iter().max()?.0)));
    match ends {
        Some((slow, fast)) if fast > slow + slow / ALIKE => Counted::Bytes,
        _ => Counted::BytesOrTime,
    }
}

/// How many bytes of a stream came before nothing did any more until its end, and how many they
/// would have been with the next datagram; `None` where it went on, and where the receiving host
/// may be the reason.
fn stopped_after(version: IpVersion, round: &UdpRound) -> Option<(u64, u64)> {
    let (sender, receiver) = (round.ended.udp_sender.as_ref()?, round.ended.udp_receiver.as_ref()?);
    let is_of_host = receiver.observed.is_some()
        || receiver.drops.total().is_some_and(|drops| drops > 0)
        || limit::stood_still(receiver.stood_still, receiver.elapsed.max(sender.elapsed)).is_some();
    let missing = sender.sent.saturating_sub(receiver.highest);
    let is_whole = receiver.received.saturating_mul(10) >= receiver.highest.saturating_mul(9);
    let has_stopped = missing >= MIN_MISSING.max(receiver.highest / 10);
    let came = came(version, round)?;
    let each = came / receiver.highest.max(1);
    (!is_of_host && is_whole && has_stopped && receiver.received >= MIN_CAME)
        .then(|| (came, came.saturating_add(each)))
}

/// The bytes up to the last datagram that came, with headers.
fn came(version: IpVersion, round: &UdpRound) -> Option<u64> {
    let receiver = round.ended.udp_receiver.as_ref()?;
    let each = u64::from(round.order.plan.length) + u64::from(version.header_len()) + UDP_HEADER;
    Some(receiver.highest.saturating_mul(each))
}

const UDP_HEADER: u64 = 8;
/// Fewer say nothing of a volume.
const MIN_CAME: u64 = 4;
/// Fewer at the end of a stream may be lost by chance, or in a queue.
const MIN_MISSING: u64 = 16;
/// Volumes are the same up to one part in so many, beside the datagram that did not come; rates are
/// the same up to that part.
const ALIKE: u64 = 20;

#[cfg(test)]
mod tests {
    use netaware_record::{Direction, UdpReceiverEnd};
    use netaware_units::{ByteCount, Span};

    use super::super::outages::tests::stream;
    use super::*;

    /// A stream of 1000 datagrams of 1500 bytes on IPv4, of which nothing came behind so many.
    fn cut(direction: Direction, came: u64) -> UdpRound {
        stream(direction, Vec::new(), came)
    }

    /// A filter that drops UDP after 60 kB of each flow was said to be outages.
    #[test]
    fn streams_that_stop_after_the_same_bytes_are_no_outages() {
        let [down, up] = [Direction::Reverse, Direction::Forward];
        let of = |rounds: &[UdpRound]| Volume::of(IpVersion::V4, rounds);
        let found = of(&[cut(down, 40), cut(up, 40)]).unwrap();
        let counted = Counted::BytesOrTime;
        assert_eq!(found, Volume { least: 60_000, most: 61_500, streams: 2, counted });
        // One stream shows nothing, and outages end streams anywhere.
        assert_eq!(of(&[cut(down, 40)]), None);
        assert_eq!(of(&[cut(down, 40), cut(up, 90)]), None);
        // One that stopped a datagram later agrees, and one that went on does not.
        assert_eq!(of(&[cut(down, 40), cut(up, 41)]).map(|it| it.streams), Some(2));
        assert_eq!(of(&[cut(down, 40), cut(up, 40), cut(up, 1000)]), None);
        // One outage ends streams that run at once alike.
        let at_once = [down, up].map(|way| UdpRound { at_once: true, ..cut(way, 40) });
        assert_eq!(of(&at_once), None);
    }

    #[test]
    fn what_the_receiving_host_did_not_take_in_is_no_volume_of_the_path() {
        let stopped = |receiver: &dyn Fn(UdpReceiverEnd) -> UdpReceiverEnd| {
            let mut rounds = [cut(Direction::Reverse, 40), cut(Direction::Forward, 40)];
            for round in &mut rounds {
                round.ended.udp_receiver = round.ended.udp_receiver.take().map(receiver);
            }
            Volume::of(IpVersion::V4, &rounds)
        };
        assert!(stopped(&|end| end).is_some());
        assert_eq!(stopped(&|end| UdpReceiverEnd { observed: Some(40), ..end }), None);
        let stood_still = Some(Span::from_millis(500));
        assert_eq!(stopped(&|end| UdpReceiverEnd { stood_still, ..end }), None);
    }

    #[test]
    fn the_warning_names_the_volume_and_what_went_on() {
        let rounds = [cut(Direction::Reverse, 40), cut(Direction::Forward, 40)];
        let volume = Volume::of(IpVersion::V4, &rounds).unwrap();
        let result = VersionResult::new(IpVersion::V4);
        let found = Findings { longest_pause: Some(Span::from_millis(20)), ..Findings::default() };
        let said = volume.warning(&result, &found);
        let want = "UDP stopped after the same number of bytes in each of 2 streams, 60000 to 61500 with headers, and \
                    the control connection over TCP went on: something on the way drops a flow of UDP after so many \
                    bytes, or after so long; what was lost";
        assert!(said.starts_with(want), "{said}");
    }

    /// A firewall that drops a flow after two seconds was said to drop it after so many bytes.
    #[test]
    fn streams_of_one_rate_do_not_show_whether_bytes_or_time_end_a_flow() {
        let counted = |other_ms: i64| {
            let mut rounds = [cut(Direction::Reverse, 40), cut(Direction::Forward, 40)];
            for (round, ms) in rounds.iter_mut().zip([1000, other_ms]) {
                let sender = round.ended.udp_sender.as_mut().unwrap();
                (sender.bytes, sender.elapsed) = (ByteCount(1_472_000), Span::from_millis(ms));
            }
            Volume::of(IpVersion::V4, &rounds).unwrap().counted
        };
        let found = [1000, 1030, 2000].map(counted);
        assert_eq!(found, [Counted::BytesOrTime, Counted::BytesOrTime, Counted::Bytes]);
    }
}
