//! What follows from a scenario by arithmetic alone, before a packet is sent.

use netaware_record::IpVersion;
use netaware_units::{BitRate, ByteCount, Span};

use super::{BucketKind, Link, Scenario};
use crate::Side;

impl Scenario {
    /// The links that packets from `from` meet, in order of travel, with their hop as numbered from
    /// A.
    pub fn links(&self, from: Side) -> Vec<(usize, &Link)> {
        let hops = self.hops.iter().enumerate();
        match from {
            Side::A => hops.map(|(n, hop)| (n, &hop.forward)).collect(),
            Side::B => hops.rev().map(|(n, hop)| (n, &hop.reverse)).collect(),
        }
    }

    /// IP-layer capacity (RFC 5136) that packets of `length` bytes find at time zero, without other
    /// traffic: the least of all links, hidden switches and token buckets, less layer 2's overhead.
    /// Access times of aggregation are left out, so it is an upper bound there. `None` where this
    /// version or length does not get through.
    pub fn capacity(&self, from: Side, version: IpVersion, length: u32) -> Option<BitRate> {
        let of_link = |(_, link): (usize, &Link)| {
            let wire = link.wire(version);
            if wire.black_hole || wire.mtu < length {
                return None;
            }
            let switches = link.switches.iter().map(|switch| switch.rate.0);
            let bucket = link.bucket.map(|bucket| bucket.rate.0);
            let layer2 = wire.rate[0].value.0 * u64::from(link.members.count);
            let layer2 = switches.chain(bucket).fold(layer2, u64::min);
            let share = u128::from(layer2) * u128::from(length) / u128::from(length + link.overhead);
            Some(BitRate(share as u64))
        };
        let links: Option<Vec<BitRate>> = self.links(from).into_iter().map(of_link).collect();
        links?.into_iter().min()
    }

    /// One-way delay of a lone packet at time zero: transmissions and propagation, nothing random,
    /// member 0 of parallel links. `None` where it does not get through.
    pub fn base_delay(&self, from: Side, version: IpVersion, length: u32) -> Option<Span> {
        self.capacity(from, version, length)?;
        let of_link = |(_, link): (usize, &Link)| {
            let wire = link.wire(version);
            let bytes = ByteCount(u64::from(length + link.overhead));
            let switches = link.switches.iter().map(|switch| switch.rate.time_for(bytes) + switch.delay);
            let access = link.aggregation.map_or(Span::ZERO, |aggregation| aggregation.access);
            wire.rate[0].value.time_for(bytes) + wire.delay[0].value + access + switches.sum()
        };
        let receive = self.hosts[from.other().index()].receive;
        let coalescing = receive.filter(|receive| receive.batch != 1).map_or(Span::ZERO, |r| r.period);
        Some(self.links(from).into_iter().map(of_link).sum::<Span>() + coalescing)
    }

    /// There and back with packets of the same length, without the time inside host B.
    pub fn base_rtt(&self, version: IpVersion, length: u32) -> Option<Span> {
        Some(self.base_delay(Side::A, version, length)? + self.base_delay(Side::B, version, length)?)
    }

    /// Largest IP packet that gets through, bytes.
    pub fn path_mtu(&self, from: Side, version: IpVersion) -> u32 {
        self.links(from).iter().map(|(_, link)| link.wire(version).mtu).min().unwrap_or(0)
    }

    /// Names the first thing that only the lab can show; `None` if the simulator shows all of it.
    /// The simulator has no addresses and no headers, and its packets have no protocol.
    pub fn lab_only(&self) -> Option<&'static str> {
        let mut links = self.hops.iter().flat_map(|hop| [&hop.forward, &hop.reverse]);
        if self.nat.is_some() {
            return Some("a NAT");
        }
        if self.hosts.iter().any(|host| host.lacks.is_some()) {
            return Some("a host that lacks an IP version");
        }
        if links.clone().any(|link| link.rewrite.is_some()) {
            return Some("a hop that rewrites headers");
        }
        links.any(|link| !link.filters.is_empty()).then_some("a filter by protocol, port or size")
    }

    /// Whether some link in this direction drops above a rate instead of queueing.
    pub fn is_policed(&self, from: Side) -> bool {
        let policed = |link: &Link| link.bucket.is_some_and(|bucket| bucket.kind == BucketKind::Policer);
        self.links(from).iter().any(|(_, link)| policed(link))
    }
}
