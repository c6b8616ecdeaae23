//! Which addresses may use a responder.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network in CIDR notation, "192.0.2.0/24" or "2001:db8::/32"; a single address is a network of
/// its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseNetworkError {
    /// The part before the slash.
    #[error("'{0}' is no IP address; a network is written as in '192.0.2.0/24' or '2001:db8::/32'")]
    Address(String),
    /// The part behind it.
    #[error("'{0}' is no prefix length between 0 and {1}")]
    Prefix(String, u8),
    /// Bits behind the prefix are set: most likely a slip, so it is asked rather than guessed.
    #[error("{0} has bits set behind its prefix; the network is {1}")]
    HostBits(String, Network),
}

impl Network {
    /// Whether `address` belongs to it. An IPv4 address mapped into IPv6 is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.prefix) == self.address
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;
    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let given: IpAddr = address.parse().map_err(|_| ParseNetworkError::Address(address.to_owned()))?;
        let longest = if given.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|prefix| *prefix <= longest)
                .ok_or_else(|| ParseNetworkError::Prefix(digits.to_owned(), longest))?,
        };
        let network = Self { address: masked(given, prefix), prefix };
        if network.address == given {
            Ok(network)
        } else {
            Err(ParseNetworkError::HostBits(text.to_owned(), network))
        }
    }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_its_addresses_and_no_others() {
        let rows = [
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.0/24", "::ffff:192.0.2.7", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "fe80::1", true),
        ];
        for (network, address, want) in rows {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), want, "{network} {address}");
        }
    }

    #[test]
    fn slips_are_named() {
        let parse = |text: &str| text.parse::<Network>().unwrap_err().to_string();
        assert!(parse("home").contains("'home' is no IP address"));
        assert!(parse("192.0.2.0/33").contains("between 0 and 32"));
        assert!(parse("192.0.2.0/-1").contains("between 0 and 32"));
        assert!(parse("192.0.2.7/24").ends_with("the network is 192.0.2.0/24"));
    }
}
