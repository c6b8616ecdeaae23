//! Where a relay listens and connects, as a person writes it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use netaware_io::zone::{self, AddressError, ZonedIp};
use netaware_relay::Forward;
use netaware_units::ByteCount;
use netaware_wire::relay::MAX_SERVICE;

use super::LOOPBACK;

/// Of relays; the responder's is the one before.
pub(super) const RELAY_PORT: u16 = netaware_wire::DEFAULT_PORT + 1;

/// `[ADDR:]PORT`, loopback where no address is said.
#[derive(Debug, Clone)]
pub(super) struct Place(pub(super) Vec<SocketAddr>);

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Port { address, port } = text.parse()?;
        let addresses = address.map_or(LOOPBACK.map(Into::into).to_vec(), |address| vec![address]);
        Ok(Self(addresses.into_iter().map(|address| address.at(port)).collect()))
    }
}

/// `[ADDR:]PORT`, all addresses where none is said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Port {
    pub(super) address: Option<ZonedIp>,
    pub(super) port: u16,
}

impl Port {
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let all: [ZonedIp; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
        let addresses = self.address.map_or(all.to_vec(), |address| vec![address]);
        addresses.into_iter().map(|address| address.at(self.port)).collect()
    }
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(port) = text.parse() {
            return Ok(Self { address: None, port });
        }
        let address = zone::parse_socket(text).map_err(|error| match error {
            AddressError::NotASocketAddress(_) => {
                format!("'{text}' is no port, and no address with a port as 127.0.0.1:8080 or [::1]:8080")
            }
            other => other.to_string(),
        })?;
        Ok(Self { address: Some(ZonedIp::of(address)), port: address.port() })
    }
}

/// `HOST[:PORT]`, several with commas between; the port is one for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// With commas between.
    pub(super) hosts: String,
    pub(super) port: u16,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut hosts, mut port) = (Vec::new(), None);
        for part in text.split(',').map(str::trim) {
            let (host, own) = host_and_port(part)?;
            if host.is_empty() {
                return Err(format!("'{text}' names no host"));
            }
            if own.is_some() && port.is_some() && own != port {
                return Err(format!("'{text}' names two ports; all addresses of a relay have one"));
            }
            port = port.or(own);
            hosts.push(host);
        }
        Ok(Self { hosts: hosts.join(","), port: port.unwrap_or(RELAY_PORT) })
    }
}

/// `[NAME=]HOST:PORT`.
pub(super) fn forward(text: &str) -> Result<Forward, String> {
    let (name, server) = text.split_once('=').unwrap_or(("", text));
    let name = if name.is_empty() { String::new() } else { service(name)? };
    match host_and_port(server)? {
        (host, Some(port)) if !host.is_empty() && port > 0 => Ok(Forward { name, host, port }),
        _ => Err(format!("'{server}' is no server as 127.0.0.1:80, [::1]:80 or name:80")),
    }
}

/// A name for a server.
pub(super) fn service(text: &str) -> Result<String, String> {
    let fits = (1..=MAX_SERVICE).contains(&text.len()) && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(format!("a name has 1 to {MAX_SERVICE} bytes")) }
}

/// Of a stream.
pub(super) fn window(text: &str) -> Result<u32, String> {
    let size: ByteCount = text.parse().map_err(|e: netaware_units::ParseUnitError| e.to_string())?;
    let fits = (64 << 10..=1 << 30).contains(&size.0);
    if fits { Ok(size.0 as u32) } else { Err(format!("'{text}' is not between 64KiB and 1GiB")) }
}

/// A bare IPv6 address has colons and no port.
fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let port = |digits: &str| digits.parse().map(Some).map_err(|_| format!("'{digits}' is no port"));
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(|| format!("'{text}' lacks a ']'"))?;
        return match rest.strip_prefix(':') {
            Some(digits) => Ok((host.to_owned(), port(digits)?)),
            None if rest.is_empty() => Ok((host.to_owned(), None)),
            None => Err(format!("'{rest}' is no port")),
        };
    }
    match text.split_once(':') {
        Some((host, digits)) if !digits.contains(':') => Ok((host.to_owned(), port(digits)?)),
        _ => Ok((text.to_owned(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_port() {
        let target = |text: &str| text.parse::<Target>().map(|it| (it.hosts, it.port));
        assert_eq!(target("lab-b"), Ok(("lab-b".into(), RELAY_PORT)));
        assert_eq!(target("lab-b:7"), Ok(("lab-b".into(), 7)));
        assert_eq!(target("192.0.2.1,2001:db8::1"), Ok(("192.0.2.1,2001:db8::1".into(), RELAY_PORT)));
        assert_eq!(target("192.0.2.1:7,[2001:db8::1]:7"), Ok(("192.0.2.1,2001:db8::1".into(), 7)));
        assert_eq!(target("192.0.2.1,[2001:db8::1]:7"), Ok(("192.0.2.1,2001:db8::1".into(), 7)));
        for wrong in ["", "a,,b", "a:1,b:2", "a:x", "[::1", "[::1]7", "a:65536"] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn servers_may_have_names() {
        let server =
            |name: &str, host: &str, port| Ok(Forward { name: name.into(), host: host.into(), port });
        assert_eq!(forward("127.0.0.1:80"), server("", "127.0.0.1", 80));
        assert_eq!(forward("db=[::1]:5432"), server("db", "::1", 5432));
        for wrong in ["", "80", ":80", "a", "a:0", "db=a", &format!("{}=a:1", "n".repeat(65))] {
            assert!(forward(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_port_alone_is_loopback_for_programs_and_everywhere_for_relays() {
        assert_eq!("80".parse::<Place>().unwrap().0.len(), 2);
        assert!("80".parse::<Place>().unwrap().0.iter().all(|it| it.ip().is_loopback()));
        assert_eq!("[::]:80".parse::<Place>().unwrap().0, ["[::]:80".parse().unwrap()]);
        assert!("80".parse::<Port>().unwrap().addresses().iter().all(|it| it.ip().is_unspecified()));
        assert!("localhost:80".parse::<Port>().unwrap_err().contains("127.0.0.1:8080"));
        assert!(window("1KiB").is_err() && window("64KiB") == Ok(65_536));
    }
}
