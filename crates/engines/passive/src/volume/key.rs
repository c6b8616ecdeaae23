//! Which parts of a packet's headers are the key.

use netaware_record::passive::FlowKey;
use netaware_wire::packet::Packet;

use crate::TaskError;
use crate::flow::{self, Flow};

/// What to count by.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeyParts {
    version: bool,
    source: bool,
    destination: bool,
    protocol: bool,
    source_port: bool,
    destination_port: bool,
    dscp: bool,
    flow_label: bool,
    /// IPv4 and IPv6, bits.
    prefix: Option<(u8, u8)>,
}

impl KeyParts {
    pub(super) fn new(by: &[String], prefix: Option<(u8, u8)>) -> Result<Self, TaskError> {
        if let Some((four, six)) = prefix {
            crate::watch::within("prefix", four.into(), 0, 32)?;
            crate::watch::within("prefix", six.into(), 0, 128)?;
        }
        let mut parts = Self { prefix, ..Self::default() };
        for name in by {
            *parts.part(name).ok_or_else(|| TaskError::KeyPart(name.clone()))? = true;
        }
        Ok(parts)
    }

    fn part(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "version" => &mut self.version,
            "source" => &mut self.source,
            "destination" => &mut self.destination,
            "protocol" => &mut self.protocol,
            "source_port" => &mut self.source_port,
            "destination_port" => &mut self.destination_port,
            "dscp" => &mut self.dscp,
            "flow_label" => &mut self.flow_label,
            _ => return None,
        })
    }

    /// The key of a packet; zero is what is no part of it. An address makes the version part of the
    /// key, too.
    #[inline]
    pub(super) fn of(&self, packet: &Packet<'_>) -> Flow {
        let mut flow = Flow::default();
        if self.source || self.destination {
            let mask = self.mask(packet.version);
            flow.version = packet.version;
            if self.source {
                flow.source = flow::bits(packet.source) & mask;
            }
            if self.destination {
                flow.destination = flow::bits(packet.destination) & mask;
            }
        }
        if self.version {
            flow.version = packet.version;
        }
        if (self.source_port || self.destination_port)
            && let Some(ports) = flow::ports(packet)
        {
            let wanted = if self.source_port { 0xffff_0000 } else { 0 }
                | if self.destination_port { 0xffff } else { 0 };
            flow.ports = ports & wanted;
            flow.has_ports = true;
        }
        if self.protocol {
            flow.protocol = packet.protocol;
        }
        if self.dscp {
            flow.dscp = packet.dscp;
        }
        if self.flow_label {
            flow.label = packet.flow_label;
        }
        flow
    }

    #[inline]
    fn mask(&self, version: u8) -> u128 {
        let Some((four, six)) = self.prefix else { return u128::MAX };
        let bits = if version == 4 { 96 + u32::from(four) } else { six.into() };
        u128::MAX.checked_shl(128 - bits).unwrap_or(0)
    }

    /// As a row says it.
    pub(super) fn key(&self, flow: Flow) -> FlowKey {
        let prefix = self.prefix.map(|(four, six)| if flow.version == 4 { four } else { six });
        let prefix = prefix.filter(|bits| *bits < if flow.version == 4 { 32 } else { 128 });
        let port =
            |wanted: bool, shift: u32| (wanted && flow.has_ports).then_some((flow.ports >> shift) as u16);
        FlowKey {
            version: (flow.version != 0).then(|| flow.ip_version()),
            source: self.source.then(|| flow::address(flow.version, flow.source)),
            source_prefix: prefix.filter(|_| self.source),
            destination: self.destination.then(|| flow::address(flow.version, flow.destination)),
            destination_prefix: prefix.filter(|_| self.destination),
            protocol: self.protocol.then_some(flow.protocol),
            source_port: port(self.source_port, 16),
            destination_port: port(self.destination_port, 0),
            dscp: self.dscp.then_some(flow.dscp),
            flow_label: self.flow_label.then_some(flow.label),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::Made;

    #[test]
    fn each_part_is_in_the_key_alone() {
        let packet = Made::tcp6().dscp(10);
        let names = [
            "version",
            "source",
            "destination",
            "protocol",
            "source_port",
            "destination_port",
            "dscp",
            "flow_label",
        ];
        for name in names {
            let parts = KeyParts::new(&[name.to_string()], None).unwrap();
            let key = parts.key(parts.of(&packet.packet()));
            let there = [
                key.version.is_some() && key.source.is_none() && key.destination.is_none(),
                key.source.is_some(),
                key.destination.is_some(),
                key.protocol == Some(6),
                key.source_port == Some(12345),
                key.destination_port == Some(443),
                key.dscp == Some(10),
                key.flow_label.is_some(),
            ];
            let expected: Vec<bool> = names.iter().map(|other| *other == name).collect();
            assert_eq!(there.to_vec(), expected, "{name}: {key:?}");
        }
    }

    #[test]
    fn prefixes_of_all_lengths_mask_what_they_say() {
        for (four, six, expected) in [(0, 0, 0_u128), (32, 128, 0xc000_0202), (8, 16, 0xc000_0000)] {
            let parts = KeyParts::new(&["destination".into()], Some((four, six))).unwrap();
            assert_eq!(parts.of(&Made::udp4().packet()).destination, expected);
        }
        let parts = KeyParts::new(&["destination".into()], Some((0, 0))).unwrap();
        assert_eq!(parts.of(&Made::udp6().packet()).destination, 0);
    }

    #[test]
    fn a_key_of_all_parts_says_what_the_packet_said() {
        let names = [
            "version",
            "source",
            "destination",
            "protocol",
            "source_port",
            "destination_port",
            "dscp",
            "flow_label",
        ];
        let parts = KeyParts::new(&names.map(String::from), Some((24, 127))).unwrap();
        let key = |made: Made| parts.key(parts.of(&made.packet()));
        let six = FlowKey {
            version: Some(netaware_record::IpVersion::V6),
            source: "2001:db8::".parse().ok(),
            source_prefix: Some(127),
            destination: "2001:db8::2".parse().ok(),
            destination_prefix: Some(127),
            protocol: Some(17),
            source_port: Some(12345),
            destination_port: Some(443),
            dscp: Some(46),
            flow_label: Some(0xabcde),
        };
        assert_eq!(key(Made::udp6().forwarded()), six);
        let four = FlowKey {
            version: Some(netaware_record::IpVersion::V4),
            source: "192.0.2.0".parse().ok(),
            source_prefix: Some(24),
            destination: "192.0.2.0".parse().ok(),
            destination_prefix: Some(24),
            dscp: Some(0),
            flow_label: Some(0),
            ..six
        };
        assert_eq!(key(Made::udp4()), four);
    }

    #[test]
    fn a_prefix_as_long_as_the_address_is_not_told() {
        let told = |prefix: (u8, u8), made: Made| {
            let parts = KeyParts::new(&["source".into(), "destination".into()], Some(prefix)).unwrap();
            let key = parts.key(parts.of(&made.packet()));
            (key.source_prefix, key.destination_prefix)
        };
        assert_eq!(told((31, 128), Made::udp4()), (Some(31), Some(31)));
        assert_eq!(told((32, 127), Made::udp4()), (None, None));
        assert_eq!(told((32, 127), Made::udp6()), (Some(127), Some(127)));
        assert_eq!(told((31, 128), Made::udp6()), (None, None));
    }
}
