//! What a record says first: the few figures that stand for it where there is no room for more.
//!
//! Their names are those of the thresholds of `--expect`. A rate is that of the transfer with the
//! most streams; a delay is the median of the idle path.

use netaware_units::{BitRate, Span};

use crate::{Direction, IpVersion, PathMetric, ReachProtocol, Record, VersionResult};

/// One figure of one IP version.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// `tcp`, `udp`, `udp.loss`, `rtt.p50`, `loss`, `capacity`, `available`, `hops.rtt`,
    /// `reach.rtt` or `reach.loss`.
    pub name: &'static str,
    /// Which IP version.
    pub version: IpVersion,
    /// Which way it ran.
    pub direction: Direction,
    /// What it is.
    pub value: HeadlineValue,
}

/// A value with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HeadlineValue {
    /// bit/s.
    Rate(f64),
    /// A delay.
    Time(Span),
    /// 0..1.
    Share(f64),
}

impl std::fmt::Display for HeadlineValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rate(rate) => BitRate(*rate as u64).fmt(f),
            Self::Time(span) => span.fmt(f),
            Self::Share(share) => write!(f, "{:.2} %", share * 100.0),
        }
    }
}

impl std::fmt::Display for Headline {
    /// `tcp up over IPv4: 93.1 Mbit/s`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = match self.direction {
            Direction::RoundTrip => "",
            Direction::Forward => " up",
            Direction::Reverse => " down",
        };
        write!(f, "{}{way} over {}: {}", self.name, self.version.name(), self.value)
    }
}

impl Record {
    /// The figures that stand for this record, IPv4 first; none where nothing was measured.
    pub fn headlines(&self) -> Vec<Headline> {
        self.versions.iter().flat_map(VersionResult::headlines).collect()
    }
}

/// Name, way and value.
type Figure = (&'static str, Direction, HeadlineValue);

impl VersionResult {
    fn headlines(&self) -> impl Iterator<Item = Headline> {
        let ways = [Direction::Forward, Direction::Reverse];
        let mut found: Vec<Figure> = ways.into_iter().flat_map(|way| self.bulk(way)).collect();
        found.extend(self.round_trips());
        found.extend(self.path_rates.iter().filter_map(|it| {
            let name = match it.metric {
                PathMetric::Capacity => "capacity",
                PathMetric::Available => "available",
                // No threshold names it.
                PathMetric::Maximum => return None,
            };
            Some((name, it.pedigree.direction, HeadlineValue::Rate(it.rate.as_ref()?.estimate)))
        }));
        let version = self.version;
        found.into_iter().map(move |(name, direction, value)| Headline { name, version, direction, value })
    }

    fn bulk(&self, way: Direction) -> Vec<Figure> {
        let tcp = self.tcp.iter().filter(|it| it.pedigree.direction == way).max_by_key(|it| it.streams);
        let tcp = tcp.and_then(|it| it.goodput).map(|rate| ("tcp", way, HeadlineValue::Rate(rate.0 as f64)));
        let is_paced_by_tcp = tcp.is_some();
        let udp = self.udp.iter().filter(|it| it.pedigree.direction == way).flat_map(move |it| {
            let loss = share(it.loss.lost, it.sent.saturating_sub(it.loss.unknown));
            let loss = loss.map(|loss| ("udp.loss", way, loss));
            // Beside TCP its rate was a share of TCP's, and says nothing of the path.
            let rate = it.goodput.map(|rate| ("udp", way, HeadlineValue::Rate(rate.0 as f64)));
            [rate.filter(|_| !is_paced_by_tcp), loss]
        });
        tcp.into_iter().chain(udp.flatten()).collect()
    }

    fn round_trips(&self) -> Vec<Figure> {
        let time = |name, span| (name, Direction::RoundTrip, HeadlineValue::Time(span));
        let idle = self.latency.as_ref().or(self.latency_tcp.as_ref());
        let median = idle.and_then(|it| it.rtt.as_ref()).map(|rtt| time("rtt.p50", rtt.p50));
        let delay = self.latency.as_ref().filter(|it| !it.hides_losses());
        let lost = delay.and_then(|it| share(it.lost, it.settled()));
        let hop = self.hops.as_ref().and_then(|it| it.hops.last()?.rtt_min).map(|rtt| time("hops.rtt", rtt));
        let echo = self.reach_probes.iter().find(|it| it.protocol == ReachProtocol::Echo);
        // A probe without privileges has no echoes; what else answered stands for them.
        let answered = echo.into_iter().chain(&self.reach_probes).find_map(|it| it.rtt.as_ref());
        let reach = answered.map(|rtt| time("reach.rtt", rtt.p50));
        let unanswered = echo.and_then(|it| it.loss).map(HeadlineValue::Share);
        let shares = [("loss", lost), ("reach.loss", unanswered)];
        let shares = shares.into_iter().filter_map(|(name, it)| Some((name, Direction::RoundTrip, it?)));
        [median, hop, reach].into_iter().flatten().chain(shares).collect()
    }
}

fn share(part: u64, whole: u64) -> Option<HeadlineValue> {
    (whole > 0).then(|| HeadlineValue::Share(part as f64 / whole as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_told_with_its_way_and_its_unit() {
        let told =
            |name, direction, value| Headline { name, version: IpVersion::V6, direction, value }.to_string();
        assert_eq!(
            told("tcp", Direction::Forward, HeadlineValue::Rate(93.1e6)),
            "tcp up over IPv6: 93.1 Mbit/s"
        );
        let time = HeadlineValue::Time(Span(1_234_567));
        assert_eq!(told("rtt.p50", Direction::RoundTrip, time), "rtt.p50 over IPv6: 1.23 ms");
        assert_eq!(
            told("loss", Direction::RoundTrip, HeadlineValue::Share(0.0123)),
            "loss over IPv6: 1.23 %"
        );
    }
}
