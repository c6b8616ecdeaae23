//! Rounds of the same transfer of which one got far less than another.
//!
//! Their mean is the rate of neither. **Measures** the rate of each round of one version and
//! direction. **Assumes** that on a path which stays as it is no round gets less than half of what
//! another one gets. **Biased**: of TCP several streams decide where there are any, because one
//! alone may have met losses; a stream of datagrams counts as slower only if it got less than half
//! of what was sent, because a sender may be slow as well.

use netaware_record::{Direction, VersionResult};
use netaware_units::{BitRate, SendRate};

use super::comparison::is_outage;
use super::{Findings, tcp, udp};

/// What one round got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Got {
    rate: BitRate,
    /// Whether a lower rate than that of another round is the path's.
    is_of_path: bool,
    /// An outage fell into it, of which other warnings tell.
    is_cut: bool,
}

/// The fastest and the slowest round of a transfer, where they are far apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unlike {
    what: String,
    fast: BitRate,
    slow: BitRate,
    pub(super) is_cut: bool,
}

impl Unlike {
    /// Those of TCP in one direction of one version.
    pub(super) fn of_tcp(result: &VersionResult, found: &Findings, direction: Direction) -> Option<Self> {
        let ways = || found.tcp.iter().filter(|round| round.order.direction == direction);
        // One stream alone may have met losses, so several decide where there are any.
        let most = ways().map(|round| round.order.streams).max()?;
        let rounds = ways().filter(|round| round.order.streams > 1 || most == 1);
        let round_trip = result.latency.as_ref().and_then(|idle| idle.rtt).map(|rtt| rtt.p50);
        let seen = rounds.map(|round| tcp::seen(round, round_trip.unwrap_or_default()));
        let got = seen.filter(|seen| !seen.is_lower_bound).filter_map(|seen| {
            let rate = seen.rate.map(SendRate::bit_rate)?;
            Some(Got { rate, is_of_path: true, is_cut: seen.is_cut })
        });
        unlike(got, format!("TCP {} over {}", direction.name(), result.version.name()))
    }

    /// Those of UDP in one direction of one version.
    pub(super) fn of_udp(result: &VersionResult, found: &Findings, direction: Direction) -> Option<Self> {
        let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
        let got = rounds.filter_map(|round| {
            let (rate, sent) = (udp::came_at(round)?, udp::sent_at(round)?);
            Some(Got { rate, is_of_path: is_far_below(rate, sent), is_cut: is_outage(round) })
        });
        unlike(got, format!("UDP {} over {}", direction.name(), result.version.name()))
    }

    fn told(&self) -> String {
        format!("{} had {} in one round and {} in another", self.what, self.fast, self.slow)
    }

    /// Why a comparison with the other version says nothing.
    pub(super) fn doubt(&self) -> String {
        format!("the path changed meanwhile: {}", self.told())
    }

    fn warning(&self) -> String {
        format!(
            "{}: the path changed meanwhile, and the mean of the rounds is the rate of neither",
            self.told()
        )
    }
}

/// The warnings of one version.
pub(super) fn warnings(result: &VersionResult, found: &Findings) -> Vec<String> {
    let ways = [Direction::Reverse, Direction::Forward].into_iter();
    let each = ways.flat_map(|way| {
        [Unlike::of_tcp(result, found, way), Unlike::of_udp(result, found, way)].into_iter().flatten()
    });
    each.filter(|unlike| !unlike.is_cut).map(|unlike| unlike.warning()).collect()
}

fn unlike(got: impl Iterator<Item = Got>, what: String) -> Option<Unlike> {
    let got: Vec<Got> = got.collect();
    let fast = got.iter().map(|round| round.rate).max()?;
    let slow = got.iter().filter(|round| round.is_of_path).min_by_key(|round| round.rate)?;
    is_far_below(slow.rate, fast).then_some(Unlike { what, fast, slow: slow.rate, is_cut: slow.is_cut })
}

/// Whether a rate is so far below another one that the path is no longer the same.
pub(super) fn is_far_below(slow: BitRate, fast: BitRate) -> bool {
    slow.0 < fast.percent(CHANGED).0
}

/// Per cent of the fastest round: transfers over a path that stays as it is differ by less.
const CHANGED: u64 = 50;

#[cfg(test)]
mod tests {
    use netaware_record::{IpVersion, UdpReceiverEnd, UdpSenderEnd};
    use netaware_units::{ByteCount, Span};

    use super::super::outages;
    use super::*;
    use crate::bulk::Ended;
    use crate::transfer::{TcpRound, UdpOrder, UdpRound};

    #[test]
    fn a_path_that_faded_for_some_seconds_prefers_no_version() {
        let told = |rates: &[u64]| {
            let got = rates.iter().map(|mbits| Got {
                rate: BitRate(mbits * 1_000_000),
                is_of_path: true,
                is_cut: false,
            });
            unlike(got, "TCP up over IPv6".to_owned()).map(|unlike| unlike.doubt())
        };
        assert_eq!(
            told(&[173, 20]).unwrap(),
            "the path changed meanwhile: TCP up over IPv6 had 173 Mbit/s in one round and 20.0 Mbit/s in another"
        );
        assert_eq!([told(&[173, 120]), told(&[20]), told(&[])], [None, None, None]);
    }

    /// A stream of 5 Mbit/s over 5 s, of 2153 datagrams, of which so many came.
    fn stream(sent: u64, received: u64, took_ms: i64, loss_runs: Vec<(u64, u64)>) -> UdpRound {
        let rate = SendRate::at_least(5_000_000);
        let lasts = Span::from_secs(5);
        let order = UdpOrder::paced(Direction::Forward, lasts, 1452, rate, Span::from_millis(100));
        let sender =
            UdpSenderEnd { sent, bytes: ByteCount(sent * 1452), elapsed: lasts, ..UdpSenderEnd::default() };
        let receiver = UdpReceiverEnd {
            received,
            bytes: ByteCount(received * 1452),
            highest: sent,
            elapsed: Span::from_millis(took_ms),
            loss_runs,
            ..UdpReceiverEnd::default()
        };
        let ended = Ended { udp_sender: Some(sender), udp_receiver: Some(receiver), ..Ended::default() };
        UdpRound { order, ended, at_once: false, silence: None }
    }

    /// 2.84 Mbit/s were told, and nobody said of what.
    #[test]
    fn two_rounds_of_a_stream_that_disagree_do_not_pass_for_their_mean() {
        let said = |rounds: [UdpRound; 2]| {
            let found = Findings { udp: rounds.into(), ..Findings::default() };
            warnings(&VersionResult::new(IpVersion::V4), &found)
        };
        let whole = || stream(2153, 2153, 5000, vec![]);
        assert_eq!(
            said([whole(), stream(2153, 487, 5800, vec![(4, 416), (1, 2)])]),
            [
                "UDP up over IPv4 had 5.00 Mbit/s in one round and 975 kbit/s in another: the path changed meanwhile, \
                 and the mean of the rounds is the rate of neither"
            ]
        );
        assert_eq!(said([whole(), stream(2153, 1500, 5000, vec![(1, 653)])]), [""; 0], "it lost a third");
        assert_eq!(said([whole(), stream(500, 500, 5000, vec![])]), [""; 0], "no more was sent");
        assert_eq!(said([whole(), stream(2153, 900, 5000, vec![(1253, 1)])]), [""; 0], "an outage");
    }

    #[test]
    fn rounds_of_tcp_that_disagree_are_told_as_those_of_udp_are() {
        let said = |slow: &[u64]| {
            let round = |mbit: &[u64]| TcpRound {
                load: None,
                ..outages::tests::transfer(mbit, outages::tests::run(60, 0..0))
            };
            let found = Findings { tcp: vec![round(&[20; 20]), round(slow)], ..Findings::default() };
            warnings(&VersionResult::new(IpVersion::V6), &found)
        };
        assert_eq!(
            said(&[1; 20]),
            [
                "TCP down over IPv6 had 20.0 Mbit/s in one round and 1.00 Mbit/s in another: the path changed meanwhile, \
                 and the mean of the rounds is the rate of neither"
            ]
        );
        assert_eq!(said(&[15; 20]), [""; 0]);
    }
}
