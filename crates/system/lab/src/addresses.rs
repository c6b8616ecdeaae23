//! Who has which address in a lab. They are the same in every lab: namespaces keep labs apart.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netaware_netmodel::Side;
use netaware_record::IpVersion;

/// The addresses of one path: two hosts, and a router at the far end of each hop but the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    routers: usize,
}

/// Routers that can have an address of their own: they are told apart by one octet.
pub(crate) const MOST_ROUTERS: usize = 254;

/// Everything in these networks leads into the path; nothing else leads anywhere.
pub(crate) const PREFIX_LENGTHS: [u8; 2] = [16, 32];

/// Under this address host B sees host A behind a NAT.
pub(crate) const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);

/// The network in which host A finds IPv4 hosts behind a NAT64 (RFC 6052).
pub(crate) const NAT64_NETWORK: &str = "64:ff9b::/96";

/// The IPv6 address by which an IPv4 host is reached through a NAT64.
pub(crate) fn through_nat64(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets().map(u16::from);
    Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a << 8 | b, c << 8 | d)
}

/// Of [`PREFIX_LENGTHS`].
pub(crate) const V4_NETWORK: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 0);

/// Whom a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addressee {
    Host(Side),
    /// The router at the far end of this hop, counted from 0 in forward direction.
    Router(usize),
}

impl Addresses {
    /// For a path of `hops` hops; routers above 254 share the last address.
    pub fn new(hops: usize) -> Self {
        Self { routers: hops.saturating_sub(1).min(MOST_ROUTERS) }
    }

    /// How many routers there are.
    pub fn routers(self) -> usize {
        self.routers
    }

    /// Address of a host.
    pub fn host(self, side: Side, version: IpVersion) -> IpAddr {
        let last = match side {
            Side::A => 1,
            Side::B => 2,
        };
        address(version, 0, last)
    }

    /// Address of the router at the far end of hop `hop`.
    pub fn router(self, hop: usize, version: IpVersion) -> IpAddr {
        address(version, (hop + 1).min(MOST_ROUTERS) as u8, 1)
    }

    /// Whom `address` belongs to, if anybody.
    pub(crate) fn addressee(self, address: IpAddr) -> Option<Addressee> {
        let (net, host) = parts(address)?;
        match (net, host) {
            (0, 1) => Some(Addressee::Host(Side::A)),
            (0, 2) => Some(Addressee::Host(Side::B)),
            (net, 1) if usize::from(net) <= self.routers => Some(Addressee::Router(usize::from(net) - 1)),
            _ => None,
        }
    }
}

fn address(version: IpVersion, net: u8, host: u8) -> IpAddr {
    match version {
        IpVersion::V4 => Ipv4Addr::new(10, 77, net, host).into(),
        IpVersion::V6 => Ipv6Addr::new(0xfd77, 0, net.into(), 0, 0, 0, 0, host.into()).into(),
    }
}

fn parts(address: IpAddr) -> Option<(u8, u8)> {
    match address {
        IpAddr::V4(v4) => match v4.octets() {
            [10, 77, net, host] => Some((net, host)),
            _ => None,
        },
        IpAddr::V6(v6) => match v6.segments() {
            [0xfd77, 0, net, 0, 0, 0, 0, host] => Some((net.try_into().ok()?, host.try_into().ok()?)),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_leads_back_to_its_owner_and_no_other_does() {
        let path = Addresses::new(5);
        for version in [IpVersion::V4, IpVersion::V6] {
            for side in [Side::A, Side::B] {
                assert_eq!(path.addressee(path.host(side, version)), Some(Addressee::Host(side)));
            }
            for hop in 0..4 {
                assert_eq!(path.addressee(path.router(hop, version)), Some(Addressee::Router(hop)));
            }
            assert_eq!(path.addressee(path.router(4, version)), None);
        }
        for stranger in
            ["8.8.8.8", "10.77.0.0", "10.77.0.3", "ff02::2", "fe80::1", "fd77::3", "fd77:0:100::1"]
        {
            assert_eq!(path.addressee(stranger.parse().unwrap()), None, "{stranger}");
        }
    }

    #[test]
    fn a_path_longer_than_any_traceroute_does_not_overflow() {
        let path = Addresses::new(100_000);
        assert_eq!(path.router(99_998, IpVersion::V4), path.router(253, IpVersion::V4));
    }
}
