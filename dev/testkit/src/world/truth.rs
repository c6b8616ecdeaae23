//! What is true of a path, derived from its scenario.
//!
//! A rate, a round trip or a loss that changes while a command runs has no single true value; both
//! ends of what it can be are kept, and a figure is judged by whether it can be right.

use netaware_lab::{Scenario, Side};
use netaware_netmodel::scenario::{
    BucketKind, Distribution, FilterAction, Jitter, Link, Loss, MtuAnswer, NatKind, Pattern, Protocol,
};
use netaware_record::IpVersion;
use netaware_units::{BitRate, ByteCount, Span};

use crate::lab::PORT;

/// What is true of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// IPv4, IPv6.
    pub versions: [VersionTruth; 2],
    /// The path is sometimes without a link.
    pub has_outages: bool,
    /// The sum of what outages last within the first half minute; `None` if one is for good.
    pub out_for: Option<Span>,
    /// Others use the path.
    pub is_shared: bool,
    /// Something acts on flows once they have run for a while: a NAT that forgets, a filter that
    /// resets.
    pub turns_on_flows: bool,
    /// Routers between the hosts.
    pub routers: u64,
}

/// What is true over one IP version. Arrays are by direction: from A, from B.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionTruth {
    /// Whether both hosts have it, and packets of it arrive.
    pub is_there: bool,
    /// Whether TCP to the responder can work at all.
    pub is_reachable: bool,
    /// Whether UDP passes; of what a filter leaves, [`Self::udp_rate`] tells.
    pub passes_udp: bool,
    /// Whether echoes and the errors of routers pass.
    pub passes_icmp: bool,
    /// Least and most round trip of a lone short packet; the most includes jitter, and not queues.
    pub rtt: [Span; 2],
    /// The same of each way.
    pub one_way: [[Span; 2]; 2],
    /// IP-layer rate of the narrowest link, the least that it ever is.
    pub least_rate: [BitRate; 2],
    /// The most, without credit.
    pub rate: [BitRate; 2],
    /// What UDP may have of it.
    pub udp_rate: [BitRate; 2],
    /// Bytes that pass above the rate at first.
    pub credit: [u64; 2],
    /// Bytes of UDP that pass above [`Self::udp_rate`] at first.
    pub udp_credit: [u64; 2],
    /// Share of packets that is lost on the wire, if it is always the same.
    pub loss: [Option<f64>; 2],
    /// Largest IP packet that passes there and back.
    pub mtu: u32,
    /// Whether routers say so where a packet is larger than that.
    pub says_mtu: bool,
    /// Queues drop what is above the rate at once.
    pub is_policed: [bool; 2],
}

const SIDES: [Side; 2] = [Side::A, Side::B];
/// The shortest packet that a command sends, and the longest of those that are to be short.
const SHORT: [u32; 2] = [28, 200];
/// Commands of the table are over by then.
const HALF_MINUTE: Span = Span::from_secs(30);

impl Truth {
    /// What follows from a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let links = || SIDES.iter().flat_map(|side| scenario.links(*side));
        let outages: Vec<_> =
            links().flat_map(|(_, link)| link.wires.iter().flat_map(|wire| &wire.outages)).collect();
        let longest = |outage: &&netaware_netmodel::scenario::Outage| {
            let times = outage.every.map_or(1, |every| HALF_MINUTE.0 / every.0.max(1) + 1);
            outage.lasts.map(|lasts| lasts * times)
        };
        let spans: Option<Vec<Span>> = outages.iter().map(longest).collect();
        let turns = links().any(|(_, link)| link.filters.iter().any(|filter| filter.after > 0));
        Self {
            versions: [IpVersion::V4, IpVersion::V6].map(|version| version_truth(scenario, version)),
            has_outages: !outages.is_empty(),
            out_for: spans.map(|spans| spans.into_iter().max().unwrap_or(Span::ZERO)),
            is_shared: !scenario.cross.is_empty(),
            turns_on_flows: turns || scenario.nat.as_ref().is_some_and(|nat| !nat.rebinds.is_empty()),
            routers: scenario.hops.len() as u64 - 1,
        }
    }

    /// Of one version.
    pub fn over(&self, version: IpVersion) -> &VersionTruth {
        &self.versions[usize::from(version == IpVersion::V6)]
    }

    /// The most that a direction carries over any version.
    pub fn carries(&self, direction: usize) -> BitRate {
        let reachable = self.versions.iter().filter(|version| version.is_reachable);
        reachable.map(|version| version.rate[direction]).max().unwrap_or(self.versions[0].rate[direction])
    }

    /// How many versions there are to measure.
    pub fn reachable(&self) -> i64 {
        self.versions.iter().filter(|version| version.is_reachable).count() as i64
    }
}

fn version_truth(scenario: &Scenario, version: IpVersion) -> VersionTruth {
    let nat64 = scenario.nat.as_ref().is_some_and(|nat| nat.kind == NatKind::Nat64);
    let has = |host: usize| {
        let stands_in = nat64 && host == 1 && version == IpVersion::V6;
        scenario.hosts[host].lacks != Some(version) || stands_in
    };
    let links = |side: Side| scenario.links(side).into_iter().map(|(_, link)| link);
    let both = || SIDES.iter().flat_map(|side| links(*side));
    let swallows = both().any(|link| link.wire(version).black_hole);
    let passes = |protocol| !both().any(|link| blocks(link, version, protocol));
    let is_there = has(0) && has(1) && !swallows;
    let is_reachable = is_there && passes(Protocol::Tcp);
    let credits = |side| links(side).filter_map(|link| link.bucket).map(|bucket| bucket.initial);
    let one_way = SIDES.map(|side| one_way(scenario, side, version));
    let rates = SIDES.map(|side| rates(scenario, side, version));
    VersionTruth {
        is_there,
        is_reachable,
        passes_udp: passes(Protocol::Udp),
        passes_icmp: passes(Protocol::Icmp),
        rtt: [one_way[0][0] + one_way[1][0], one_way[0][1] + one_way[1][1]],
        one_way,
        least_rate: rates.map(|rate| rate[0]),
        rate: rates.map(|rate| rate[1]),
        udp_rate: SIDES.map(|side| udp_rate(scenario, side, version, rates[side as usize][1])),
        credit: SIDES.map(|side| credits(side).sum()),
        udp_credit: SIDES
            .map(|side| limits(scenario, side, version).map(|(_, burst)| burst).chain(credits(side)).sum()),
        loss: SIDES.map(|side| loss(scenario, side, version)),
        mtu: SIDES.map(|side| scenario.path_mtu(side, version)).into_iter().min().unwrap_or_default(),
        says_mtu: both().all(|link| {
            let wire = link.wire(version);
            wire.mtu >= 1500 || wire.mtu_answer == MtuAnswer::Icmp
        }),
        is_policed: SIDES.map(|side| scenario.is_policed(side)),
    }
}

/// Whether every packet of a protocol ends there, or every one to our port.
fn blocks(link: &Link, version: IpVersion, protocol: Protocol) -> bool {
    link.filters.iter().any(|filter| {
        filter.version.is_none_or(|it| it == version)
            && filter.protocol.is_none_or(|it| it == protocol)
            && filter.port.is_none_or(|port| port == PORT)
            && filter.longer_than == 0
            && filter.after == 0
            && !filter.ecn
            && matches!(filter.action, FilterAction::Drop | FilterAction::Reset)
    })
}

fn one_way(scenario: &Scenario, side: Side, version: IpVersion) -> [Span; 2] {
    let mut sum = [Span::ZERO; 2];
    for (_, link) in scenario.links(side) {
        let wire = link.wire(version);
        let delays = wire.delay.iter().map(|change| change.value);
        let bytes = SHORT.map(|length| ByteCount(u64::from(length + link.overhead)));
        let slowest = wire.rate.iter().map(|change| change.value).min().unwrap_or_default();
        let fastest = wire.rate.iter().map(|change| change.value).max().unwrap_or_default();
        let access = link.aggregation.map_or([Span::ZERO; 2], |it| [it.access, it.access + it.contention]);
        sum[0] += delays.clone().min().unwrap_or_default() + fastest.time_for(bytes[0]) + access[0];
        sum[1] += delays.max().unwrap_or_default() + slowest.time_for(bytes[1]) + access[1];
        sum[1] += wire.jitter.map_or(Span::ZERO, most_jitter);
        sum[1] += wire.reordering.map_or(Span::ZERO, |it| it.by);
    }
    sum
}

fn most_jitter(jitter: Jitter) -> Span {
    let most = match jitter.distribution {
        Distribution::Uniform { mean } => mean * 2,
        Distribution::Normal { mean, deviation } => mean + deviation * 5,
        Distribution::Exponential { .. } | Distribution::Pareto { .. } => jitter.max,
    };
    most.min(jitter.max) + jitter.grid
}

/// The least and the most of the narrowest link, over time.
fn rates(scenario: &Scenario, side: Side, version: IpVersion) -> [BitRate; 2] {
    let of_link = |(_, link): (usize, &Link)| {
        let wire = link.wire(version);
        let length = u128::from(wire.mtu.min(1500));
        let of = |rate: BitRate| {
            let bucket = link.bucket.map_or(u64::MAX, |bucket| bucket.rate.0);
            let share = u128::from(rate.0.min(bucket)) * length / (length + u128::from(link.overhead));
            BitRate(share as u64)
        };
        let values = wire.rate.iter().map(|change| of(change.value));
        [values.clone().min().unwrap_or_default(), values.max().unwrap_or_default()]
    };
    let of_links: Vec<[BitRate; 2]> = scenario.links(side).into_iter().map(of_link).collect();
    [0, 1].map(|end| of_links.iter().map(|rates| rates[end]).min().unwrap_or_default())
}

fn udp_rate(scenario: &Scenario, side: Side, version: IpVersion, rate: BitRate) -> BitRate {
    limits(scenario, side, version).map(|(rate, _)| rate).fold(rate, BitRate::min)
}

/// Rates to which UDP is limited, with the bytes that pass above each at first.
fn limits(
    scenario: &Scenario,
    side: Side,
    version: IpVersion,
) -> impl Iterator<Item = (BitRate, u64)> + use<'_> {
    let filters = scenario.links(side).into_iter().flat_map(|(_, link)| &link.filters);
    filters.filter_map(move |filter| match filter.action {
        FilterAction::Limit { rate, burst }
            if filter.protocol.is_none_or(|it| it == Protocol::Udp)
                && filter.version.is_none_or(|it| it == version) =>
        {
            Some((rate, burst))
        }
        _ => None,
    })
}

/// `None` where it depends on when one looks.
fn loss(scenario: &Scenario, side: Side, version: IpVersion) -> Option<f64> {
    let greedy = |cross: &netaware_netmodel::scenario::Cross| {
        cross.from == side && matches!(cross.pattern, Pattern::Tcp { .. })
    };
    if scenario.cross.iter().any(greedy) {
        return None;
    }
    let mut arrives = 1.0;
    for (_, link) in scenario.links(side) {
        let wire = link.wire(version);
        let is_policer = link.bucket.is_some_and(|bucket| bucket.kind == BucketKind::Policer);
        if !wire.outages.is_empty() || is_policer || !link.filters.is_empty() {
            return None;
        }
        arrives *= match wire.loss {
            Loss::None => 1.0,
            Loss::Bernoulli { probability } => 1.0 - probability,
            Loss::Periodic { every } => 1.0 - 1.0 / every as f64,
            Loss::GilbertElliott { .. } => return None,
        };
    }
    Some(1.0 - arrives)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(name: &str) -> Truth {
        let path = super::super::paths().into_iter().find(|path| path.name == name);
        let path = path.unwrap_or_else(|| panic!("no {name}"));
        Truth::of(&Scenario::parse(path.text).unwrap())
    }

    fn reachable(name: &str) -> [bool; 2] {
        truth(name).versions.each_ref().map(|version| version.is_reachable)
    }

    #[test]
    fn what_a_path_is_follows_from_its_scenario() {
        let satellite = truth("geostationary");
        let v4 = satellite.over(IpVersion::V4);
        assert_eq!((v4.rate, v4.mtu), ([BitRate(3_000_000), BitRate(10_000_000)], 1500));
        assert_eq!(v4.rtt[0].0 / 1_000_000, 600);
        assert_eq!(v4.loss, [Some(0.0); 2]);
        let lossy = truth("loss-3-120ms").versions[0].loss;
        assert!(lossy.iter().all(|loss| loss.is_some_and(|loss| (loss - 0.03).abs() < 1e-9)), "{lossy:?}");
        assert_eq!(truth("policer-small-credit").versions[0].credit, [15_000; 2]);
        assert_eq!(truth("udp-limited-2m").versions[1].udp_rate, [BitRate(2_000_000); 2]);
        assert_eq!(truth("udp-limited-2m").versions[1].udp_credit, [32_000; 2]);
        assert_eq!(truth("black-hole-ipv6").versions.each_ref().map(|version| version.mtu), [1500, 1400]);
        assert_eq!(truth("blip-2s").out_for, Some(Span::from_secs(2)));
        assert_eq!(truth("path-dies").out_for, None);
        assert_eq!(truth("route-change-longer").versions[0].rtt.map(|rtt| rtt.0 / 1_000_000), [40, 120]);
    }

    #[test]
    fn who_can_be_reached_follows_too() {
        let rows = [
            ("geostationary", [true, true]),
            ("ipv6-only", [false, true]),
            ("ipv4-only", [true, false]),
            ("nat64", [false, true]),
            ("reset-by-port", [false, false]),
            ("udp-blocked", [true, true]),
        ];
        for (name, want) in rows {
            assert_eq!(reachable(name), want, "{name}");
        }
        assert!(!truth("udp-blocked").versions[0].passes_udp);
        assert!(!truth("icmp-filtered").versions[0].passes_icmp);
    }
}
