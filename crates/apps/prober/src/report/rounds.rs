//! Rounds of the same transfer of which one got far less than another.
//!
//! Their mean is the rate of neither. **Measures** the rate of each round of one version and
//! direction. **Assumes** that on a path which stays as it is no round gets less than half of what
//! another one gets. **Biased**: of TCP several streams decide where there are any, because one
//! alone may have met losses, and where there is one alone that is said; a stream of datagrams
//! counts as slower only if it got less than half of what was sent, because a sender may be slow as
//! well.

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
    cause: Cause,
}

/// What a slow round can come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Path,
    /// A single stream of TCP is slowed by losses, too.
    PathOrLosses,
}

impl Unlike {
    /// Those of TCP in one direction of one version.
    pub(super) fn of_tcp(result: &VersionResult, found: &Findings, direction: Direction) -> Option<Self> {
        tcp_rounds(result, found, direction)?.unlike()
    }

    /// Those of UDP in one direction of one version. What an outage cut is doubted as such.
    pub(super) fn of_udp(result: &VersionResult, found: &Findings, direction: Direction) -> Option<Self> {
        udp_rounds(result, found, direction).without_cut().unlike()
    }

    fn told(&self) -> String {
        format!("{} had {} in one round and {} in another", self.what, self.fast, self.slow)
    }

    fn why(&self) -> &'static str {
        match self.cause {
            Cause::Path => "the path changed meanwhile",
            Cause::PathOrLosses => "the path changed, or losses slowed one of them",
        }
    }

    /// Why a comparison with the other version says nothing.
    pub(super) fn doubt(&self) -> String {
        match self.cause {
            Cause::Path => format!("{}: {}", self.why(), self.told()),
            Cause::PathOrLosses => format!("{}: {}", self.told(), self.why()),
        }
    }

    fn warning(&self) -> String {
        format!("{}: {}, and the mean of the rounds is the rate of neither", self.told(), self.why())
    }
}

/// The rounds of a transfer.
struct Rounds {
    got: Vec<Got>,
    what: String,
    cause: Cause,
}

impl Rounds {
    fn unlike(self) -> Option<Unlike> {
        let Self { got, what, cause } = self;
        let fast = got.iter().map(|round| round.rate).max()?;
        let slow = got.iter().filter(|round| round.is_of_path).map(|round| round.rate).min()?;
        is_far_below(slow, fast).then_some(Unlike { what, fast, slow, cause })
    }

    /// The same rounds, of which none is slow because of an outage.
    fn without_cut(mut self) -> Self {
        for round in &mut self.got {
            round.is_of_path &= !round.is_cut;
        }
        self
    }
}

fn tcp_rounds(result: &VersionResult, found: &Findings, direction: Direction) -> Option<Rounds> {
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
    let what = format!("TCP {} over {}", direction.name(), result.version.name());
    let cause = if most == 1 { Cause::PathOrLosses } else { Cause::Path };
    Some(Rounds { got: got.collect(), what, cause })
}

fn udp_rounds(result: &VersionResult, found: &Findings, direction: Direction) -> Rounds {
    let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
    let got = rounds.filter_map(|round| {
        let (rate, sent) = (udp::came_at(round)?, udp::sent_at(round)?);
        Some(Got { rate, is_of_path: is_far_below(rate, sent), is_cut: is_outage(round) })
    });
    let what = format!("UDP {} over {}", direction.name(), result.version.name());
    Rounds { got: got.collect(), what, cause: Cause::Path }
}

/// The warnings of one version. Of a round that an outage fell into other warnings tell.
pub(super) fn warnings(result: &VersionResult, found: &Findings) -> Vec<String> {
    let ways = [Direction::Reverse, Direction::Forward].into_iter();
    let each = ways.flat_map(|way| {
        [tcp_rounds(result, found, way), Some(udp_rounds(result, found, way))].into_iter().flatten()
    });
    each.filter_map(|rounds| rounds.without_cut().unlike()).map(|unlike| unlike.warning()).collect()
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

    /// Rounds of so many Mbit/s.
    fn rounds_of(rates: &[u64], cause: Cause) -> Rounds {
        let got = |mbits: &u64| Got { rate: BitRate(mbits * 1_000_000), is_of_path: true, is_cut: false };
        Rounds { got: rates.iter().map(got).collect(), what: "TCP up over IPv6".to_owned(), cause }
    }

    /// Of two slow rounds an outage fell into the slower one, and nothing was said of the other.
    #[test]
    fn a_round_that_an_outage_cut_does_not_hide_another_slow_one() {
        let mut rounds = rounds_of(&[173, 20, 40], Cause::Path);
        rounds.got[1].is_cut = true;
        let said = rounds.without_cut().unlike().unwrap().warning();
        assert!(said.contains("173 Mbit/s in one round and 40.0 Mbit/s in another"), "{said}");
        let mut rounds = rounds_of(&[173, 20], Cause::Path);
        rounds.got[1].is_cut = true;
        assert_eq!(rounds.without_cut().unlike(), None);
    }

    /// "The path changed meanwhile", where one of two single streams had met losses.
    #[test]
    fn a_single_stream_that_was_slow_once_may_have_met_losses() {
        let unlike = rounds_of(&[173, 20], Cause::PathOrLosses).unlike().unwrap();
        let told = "TCP up over IPv6 had 173 Mbit/s in one round and 20.0 Mbit/s in another: the path changed, or \
                    losses slowed one of them";
        assert_eq!(unlike.doubt(), told);
        assert_eq!(unlike.warning(), format!("{told}, and the mean of the rounds is the rate of neither"));
    }

    #[test]
    fn a_path_that_faded_for_some_seconds_prefers_no_version() {
        let told = |rates: &[u64]| rounds_of(rates, Cause::Path).unlike().map(|unlike| unlike.doubt());
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
