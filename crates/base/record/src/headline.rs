//! What a record says first: the few figures that stand for it where there is no room for more.
//!
//! Their names are those of the thresholds of `--expect`. A rate is that of the transfer with the
//! most streams; a delay is the median of the idle path. What was not measured to its end stands
//! for nothing: of that there is no headline.

use netaware_units::{BitRate, Span};

use crate::{
    Direction, IpVersion, Outcome, Part, PathMetric, PathRate, RateBound, ReachProtocol, Record,
    VersionResult,
};

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
    /// On which side of it the truth may be.
    pub bound: RateBound,
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
    /// `tcp up over IPv4: 93.1 Mbit/s`, `capacity up over IPv4: at least 40.0 Mbit/s`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = match self.direction {
            Direction::RoundTrip => "",
            Direction::Forward => " up",
            Direction::Reverse => " down",
        };
        let side = match self.bound {
            RateBound::None => "",
            RateBound::AtLeast => "at least ",
            RateBound::AtMost => "at most ",
        };
        write!(f, "{}{way} over {}: {side}{}", self.name, self.version.name(), self.value)
    }
}

impl Record {
    /// The figures that stand for this record, IPv4 first; none where nothing was measured.
    pub fn headlines(&self) -> Vec<Headline> {
        self.versions.iter().flat_map(|version| version.headlines(&self.command, self.outcome)).collect()
    }
}

/// Name, way and value.
type Figure = (&'static str, Direction, HeadlineValue);

impl VersionResult {
    /// Those of a record of this command that came to this end.
    fn headlines(&self, command: &str, record: Outcome) -> impl Iterator<Item = Headline> {
        let holds = |part| self.extent(part, command).holds(record);
        let ways = [Direction::Forward, Direction::Reverse];
        let mut found: Vec<Figure> = ways.into_iter().flat_map(|way| self.bulk(way, &holds)).collect();
        found.extend(self.round_trips(&holds));
        let version = self.version;
        let exact = found.into_iter().map(move |(name, direction, value)| Headline {
            name,
            version,
            direction,
            value,
            bound: RateBound::None,
        });
        let has_trains = holds(Part::Trains);
        let rates = self.path_rates.iter().filter(move |_| has_trains);
        exact.chain(rates.filter_map(move |it| headline_of(version, it)))
    }

    fn bulk(&self, way: Direction, holds: &dyn Fn(Part) -> bool) -> Vec<Figure> {
        let tcp = self.tcp.iter().filter(|it| it.pedigree.direction == way).max_by_key(|it| it.streams);
        let tcp = tcp.filter(|it| it.goodput.is_some());
        let is_paced_by_tcp = tcp.is_some();
        let tcp = tcp.filter(|_| holds(Part::Tcp(Some(way)))).and_then(|it| it.goodput);
        let tcp = tcp.map(|rate| ("tcp", way, HeadlineValue::Rate(rate.0 as f64)));
        let udp = self.udp.iter().filter(|it| it.pedigree.direction == way);
        let udp = udp.filter(|_| holds(Part::Udp(Some(way)))).flat_map(move |it| {
            let loss = share(it.loss.lost, it.sent.saturating_sub(it.loss.unknown));
            let loss = loss.map(|loss| ("udp.loss", way, loss));
            // Beside TCP its rate was a share of TCP's, and says nothing of the path.
            let rate = it.goodput.map(|rate| ("udp", way, HeadlineValue::Rate(rate.0 as f64)));
            [rate.filter(|_| !is_paced_by_tcp), loss]
        });
        tcp.into_iter().chain(udp.flatten()).collect()
    }

    fn round_trips(&self, holds: &dyn Fn(Part) -> bool) -> Vec<Figure> {
        let time = |name, span| (name, Direction::RoundTrip, HeadlineValue::Time(span));
        let over_udp = self.latency.as_ref().filter(|_| holds(Part::RoundTrip));
        let over_tcp = self.latency_tcp.as_ref().filter(|_| holds(Part::RoundTripOverTcp));
        let idle = over_udp.or(over_tcp);
        let median = idle.and_then(|it| it.rtt.as_ref()).map(|rtt| time("rtt.p50", rtt.p50));
        let delay = over_udp.filter(|it| !it.hides_losses());
        let lost = delay.and_then(|it| share(it.lost, it.settled()));
        let hops = self.hops.as_ref().filter(|_| holds(Part::Hops));
        let hop = hops.and_then(|it| it.hops.last()?.rtt_min).map(|rtt| time("hops.rtt", rtt));
        let probes = if holds(Part::Reach) { self.reach_probes.as_slice() } else { &[] };
        let echo = probes.iter().find(|it| it.protocol == ReachProtocol::Echo);
        // A probe without privileges has no echoes; what else answered stands for them.
        let answered = echo.into_iter().chain(probes).find_map(|it| it.rtt.as_ref());
        let reach = answered.map(|rtt| time("reach.rtt", rtt.p50));
        let unanswered = echo.and_then(|it| it.loss).map(HeadlineValue::Share);
        let shares = [("loss", lost), ("reach.loss", unanswered)];
        let shares = shares.into_iter().filter_map(|(name, it)| Some((name, Direction::RoundTrip, it?)));
        [median, hop, reach].into_iter().flatten().chain(shares).collect()
    }
}

/// A rate of a path; there is none of a path that was filled, which no threshold names.
fn headline_of(version: IpVersion, rate: &PathRate) -> Option<Headline> {
    let name = match rate.metric {
        PathMetric::Capacity => "capacity",
        PathMetric::Available => "available",
        PathMetric::Maximum => return None,
    };
    let value = HeadlineValue::Rate(rate.rate.as_ref()?.estimate);
    Some(Headline { name, version, direction: rate.pedigree.direction, value, bound: rate.bound })
}

fn share(part: u64, whole: u64) -> Option<HeadlineValue> {
    (whole > 0).then(|| HeadlineValue::Share(part as f64 / whole as f64))
}

#[cfg(test)]
mod tests {
    use netaware_units::{ByteCount, ClockSource};

    use super::*;
    use crate::{FailedPhase, LatencyResult, Layer, Pedigree, Unreachable};

    #[test]
    fn a_figure_is_told_with_its_way_and_its_unit() {
        let bounded = |name, direction, value, bound| {
            Headline { name, version: IpVersion::V6, direction, value, bound }.to_string()
        };
        let told = |name, direction, value| bounded(name, direction, value, RateBound::None);
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
        assert_eq!(
            bounded("capacity", Direction::Reverse, HeadlineValue::Rate(40e6), RateBound::AtLeast),
            "capacity down over IPv6: at least 40.0 Mbit/s"
        );
    }

    #[test]
    fn requests_that_broke_off_have_no_headline() {
        let pedigree = Pedigree {
            method: "latency".to_owned(),
            layer: Layer::Payload,
            direction: Direction::RoundTrip,
            version: IpVersion::V4,
            clock: ClockSource::Kernel,
            uncertainty: String::new(),
        };
        let requests = LatencyResult::before_any(pedigree, ByteCount(64));
        let latency = LatencyResult { sent: 100, received: 99, lost: 1, ..requests };
        let whole = VersionResult { latency: Some(latency), ..VersionResult::new(IpVersion::V4) };
        let names = |of: &VersionResult| {
            of.headlines("latency", Outcome::Failed).map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&whole), ["loss"]);
        let failed = |stage: &str| {
            let phase = FailedPhase { stage: stage.to_owned(), reason: "nothing came any more".to_owned() };
            VersionResult { failed_phases: vec![phase], ..whole.clone() }
        };
        assert!(names(&failed("measure latency")).is_empty());
        assert!(names(&failed("attach a UDP flow")).is_empty());
        assert_eq!(names(&failed("send trains")), ["loss"]);
        let (stage, reason, advice) = ("ping".to_owned(), "it fell silent".to_owned(), String::new());
        let gone =
            VersionResult { unreachable: Some(Unreachable { stage, reason, advice }), ..whole.clone() };
        assert!(names(&gone).is_empty());
    }
}
