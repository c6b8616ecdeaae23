//! Which addresses are counted as one.

use std::net::{IpAddr, Ipv6Addr};

/// A network that is counted as one host: an IPv4 address, or an IPv6 /64, of which one host has
/// 2^64 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(IpAddr);

/// A network that is counted as one site: an IPv4 address, or an IPv6 /48 (RFC 6177 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(IpAddr);

impl Host {
    /// Returns the host of an address. An IPv4 address mapped into IPv6 is the IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        Self(masked(address, 64))
    }

    /// Returns the address with which the network begins.
    pub fn address(self) -> IpAddr {
        self.0
    }
}

impl Site {
    /// Returns the site of an address. An IPv4 address mapped into IPv6 is the IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        Self(masked(address, 48))
    }
}

/// `prefix` is between 1 and 128 and counts for IPv6 alone.
fn masked(address: IpAddr, prefix: u32) -> IpAddr {
    match address.to_canonical() {
        v4 @ IpAddr::V4(_) => v4,
        IpAddr::V6(v6) => {
            let mask = u128::MAX << (128 - prefix);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_host_is_an_ipv4_address_or_an_ipv6_64_and_one_site_a_48() {
        let host = |text| Host::of(address(text));
        let site = |text| Site::of(address(text));
        assert_eq!(host("2001:db8:1:2::1"), host("2001:db8:1:2:ffff::9"));
        assert_ne!(host("2001:db8:1:2::1"), host("2001:db8:1:3::1"));
        assert_eq!(site("2001:db8:1:2::1"), site("2001:db8:1:3::1"));
        assert_ne!(site("2001:db8:1::1"), site("2001:db8:2::1"));
        assert_eq!(host("::ffff:192.0.2.1"), host("192.0.2.1"));
        assert_ne!(host("192.0.2.1"), host("192.0.2.2"));
        assert_ne!(site("192.0.2.1"), site("192.0.2.2"));
        assert_eq!(host("2001:db8:1:2::9").address(), address("2001:db8:1:2::"));
    }
}
