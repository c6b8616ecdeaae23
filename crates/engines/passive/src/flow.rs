//! Flows as keys of tables: small, quick to hash, and hashed under a secret.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use foldhash::quality::FixedState;
use netaware_record::IpVersion;
use netaware_record::passive::FlowKey;
use netaware_wire::packet::Packet;

use crate::Seed;

/// A table whose slots nobody outside can aim at: who could, would make every packet look through
/// all of it.
pub(crate) type Table<K, V> = HashMap<K, V, FixedState>;

pub(crate) fn table<K, V>(seed: &Seed, label: &str) -> Table<K, V> {
    HashMap::with_hasher(FixedState::with_seed(seed.key(label).0))
}

/// Addresses, ports and protocol of a packet, and what else a key may hold; zero where it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Flow {
    pub(crate) source: u128,
    pub(crate) destination: u128,
    /// Source port, destination port.
    pub(crate) ports: u32,
    /// IPv6 flow label.
    pub(crate) label: u32,
    pub(crate) protocol: u8,
    pub(crate) version: u8,
    pub(crate) dscp: u8,
    /// Whether the packets have ports.
    pub(crate) has_ports: bool,
}

impl Hash for Flow {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [source, destination] = [self.source, self.destination];
        state.write_u128(source);
        state.write_u128(destination);
        let small = [self.protocol, self.version, self.dscp, self.has_ports.into()];
        state.write_u64(u64::from(self.ports) << 32 | u64::from(u32::from_le_bytes(small)));
        state.write_u32(self.label);
    }
}

impl Flow {
    /// Addresses, protocol and ports: what is called a five-tuple.
    #[inline]
    pub(crate) fn five_tuple(packet: &Packet<'_>) -> Self {
        let ports = ports(packet);
        Self {
            source: bits(packet.source),
            destination: bits(packet.destination),
            ports: ports.unwrap_or(0),
            protocol: packet.protocol,
            version: packet.version,
            has_ports: ports.is_some(),
            ..Self::default()
        }
    }

    /// Addresses alone.
    #[inline]
    pub(crate) fn hosts(packet: &Packet<'_>) -> Self {
        let (source, destination) = (bits(packet.source), bits(packet.destination));
        Self { source, destination, version: packet.version, ..Self::default() }
    }

    /// The other direction.
    #[inline]
    pub(crate) fn reversed(self) -> Self {
        let (source, destination) = (self.destination, self.source);
        Self { source, destination, ports: self.ports.rotate_left(16), ..self }
    }

    /// The same for both directions, and whether this is the other one.
    #[inline]
    pub(crate) fn both_ways(self) -> (Self, bool) {
        let reversed = self.reversed();
        if reversed < self { (reversed, true) } else { (self, false) }
    }

    pub(crate) fn ip_version(self) -> IpVersion {
        if self.version == 4 { IpVersion::V4 } else { IpVersion::V6 }
    }

    /// As a row says it: version, addresses, and protocol and ports where they are part of it.
    pub(crate) fn key(self) -> FlowKey {
        FlowKey {
            version: Some(self.ip_version()),
            source: Some(address(self.version, self.source)),
            destination: Some(address(self.version, self.destination)),
            protocol: (self.protocol != 0).then_some(self.protocol),
            source_port: self.has_ports.then_some((self.ports >> 16) as u16),
            destination_port: self.has_ports.then_some(self.ports as u16),
            ..FlowKey::default()
        }
    }
}

/// Source and destination port, where the protocol has them and they were captured.
#[inline]
pub(crate) fn ports(packet: &Packet<'_>) -> Option<u32> {
    // TCP, UDP, DCCP, SCTP, UDP-Lite: all begin with both ports.
    if packet.later_fragment || !matches!(packet.protocol, 6 | 17 | 33 | 132 | 136) {
        return None;
    }
    let four = packet.bytes.get(packet.transport..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*four))
}

#[inline]
pub(crate) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => four.to_bits().into(),
        IpAddr::V6(six) => six.to_bits(),
    }
}

pub(crate) fn address(version: u8, bits: u128) -> IpAddr {
    if version == 4 { Ipv4Addr::from_bits(bits as u32).into() } else { Ipv6Addr::from_bits(bits).into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::Made;

    #[test]
    fn both_directions_of_a_conversation_are_one() {
        for made in [Made::tcp4(), Made::udp6()] {
            let there = Flow::five_tuple(&made.packet());
            let back = Flow::five_tuple(&made.clone().answer().packet());
            assert_ne!(there, back);
            assert_eq!(there.reversed(), back);
            assert_eq!(there.both_ways().0, back.both_ways().0);
            assert_ne!(there.both_ways().1, back.both_ways().1);
        }
    }

    #[test]
    fn a_key_says_what_the_packet_said() {
        let key = Flow::five_tuple(&Made::tcp6().packet()).key();
        assert_eq!(key.source, Some("2001:db8::1".parse().unwrap()));
        assert_eq!((key.source_port, key.destination_port, key.protocol), (Some(12345), Some(443), Some(6)));
        let key = Flow::five_tuple(&Made::icmp6().packet()).key();
        assert_eq!((key.source_port, key.protocol), (None, Some(58)));
        let cut = Made::udp4().captured(22);
        assert_eq!(Flow::five_tuple(&cut.packet()).key().source_port, None);
        let fragment = Made::udp4().later_fragment();
        assert_eq!(Flow::five_tuple(&fragment.packet()).key().source_port, None);
    }
}
