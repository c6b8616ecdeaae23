//! Addresses with the interface on which they are valid.
//!
//! A link-local IPv6 address (fe80::/10) exists once on each link, so without its zone, the
//! interface, it leads nowhere (RFC 4007 §6). People write it behind a percent sign, by name or by
//! number: `fe80::1%eth0`, `fe80::1%3`, `[fe80::1%eth0]:14233`. A [`ZonedIp`] keeps the two
//! together from the command line to the socket and back into the result; an [`IpAddr`] alone would
//! lose the zone.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::str::FromStr;

/// An IP address, and the number of the interface on which it is valid where it needs one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ZonedIp {
    ip: IpAddr,
    /// 0 is none, as in `sin6_scope_id`.
    zone: u32,
}

/// Why an address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address at all.
    #[error("'{0}' is not an IP address")]
    NotAnAddress(String),
    /// Not an address with a port.
    #[error("'{0}' is not an address with a port, as 192.0.2.1:80 or [::1]:80")]
    NotASocketAddress(String),
    /// A link-local address without interface.
    #[error("{ip} is a link-local address: add the interface, for example {ip}%{example}")]
    NoZone {
        /// The address.
        ip: Ipv6Addr,
        /// An interface of this host.
        example: String,
    },
    /// This host has no such interface.
    #[error("this host has no interface '{zone}'; it has {present}")]
    UnknownZone {
        /// What was typed behind the percent sign.
        zone: String,
        /// The interfaces that there are.
        present: String,
    },
    /// An address that is the same on all links.
    #[error(
        "{ip} is the same on all interfaces: leave out %{zone}; a link-local address alone has an interface behind it"
    )]
    NeedlessZone {
        /// The address.
        ip: IpAddr,
        /// What was typed behind the percent sign.
        zone: String,
    },
    /// Two different interfaces for one way.
    #[error("{first} and {second} are on different interfaces")]
    Contradiction {
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
}

impl ZonedIp {
    /// The address of a socket, with its zone.
    pub fn of(address: SocketAddr) -> Self {
        let zone = match address {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        Self { ip: address.ip(), zone }
    }

    /// The address without its zone.
    pub fn ip(self) -> IpAddr {
        self.ip
    }

    /// The number of its interface.
    pub fn zone(self) -> Option<u32> {
        (self.zone != 0).then_some(self.zone)
    }

    /// The name of its interface, where that is known.
    pub fn interface(self) -> Option<String> {
        self.zone().and_then(system::name_of)
    }

    /// A port at this address, with its zone.
    pub fn at(self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, self.zone).into(),
            IpAddr::V4(ip) => (ip, port).into(),
        }
    }

    /// The same on this interface, if it needs one and has none yet.
    #[must_use]
    pub fn within(self, zone: Option<u32>) -> Self {
        let zone = zone.filter(|_| self.zone == 0 && needs_zone(self.ip));
        Self { zone: zone.unwrap_or(self.zone), ..self }
    }

    /// The same address, which has a zone if it needs one.
    ///
    /// # Errors
    /// It needs one and has none.
    pub fn complete(self) -> Result<Self, AddressError> {
        match self.ip {
            IpAddr::V6(ip) if self.zone == 0 && needs_zone(self.ip) => {
                Err(AddressError::NoZone { ip, example: example() })
            }
            _ => Ok(self),
        }
    }
}

impl From<IpAddr> for ZonedIp {
    fn from(ip: IpAddr) -> Self {
        Self { ip, zone: 0 }
    }
}

impl From<Ipv4Addr> for ZonedIp {
    fn from(ip: Ipv4Addr) -> Self {
        IpAddr::from(ip).into()
    }
}

impl From<Ipv6Addr> for ZonedIp {
    fn from(ip: Ipv6Addr) -> Self {
        IpAddr::from(ip).into()
    }
}

/// With or without a zone, with or without brackets. A link-local address without zone is an
/// address too: an interface that is named elsewhere may make it complete.
impl FromStr for ZonedIp {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let no_address = || AddressError::NotAnAddress(text.to_owned());
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        let Some((address, zone)) = bare.split_once('%') else {
            return bare.parse().map(|ip| Self { ip, zone: 0 }).map_err(|_| no_address());
        };
        let ip: IpAddr = address.parse().map_err(|_| no_address())?;
        // The percent sign of a URL is itself written with one (RFC 6874).
        let zone =
            zone.strip_prefix("25").filter(|rest| !rest.is_empty() && index(zone).is_none()).unwrap_or(zone);
        if !needs_zone(ip) {
            return Err(AddressError::NeedlessZone { ip, zone: zone.to_owned() });
        }
        let unknown = || AddressError::UnknownZone { zone: zone.to_owned(), present: present() };
        Ok(Self { ip, zone: index(zone).ok_or_else(unknown)? })
    }
}

/// The interface is named, or numbered where it has no name any more.
impl fmt::Display for ZonedIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.zone {
            0 => write!(f, "{}", self.ip),
            zone => write!(f, "{}%{}", self.ip, name_of(zone)),
        }
    }
}

/// An address and port as people write them, with the name of the interface.
pub fn shown(address: SocketAddr) -> String {
    match ZonedIp::of(address) {
        zoned if zoned.zone == 0 => address.to_string(),
        zoned => format!("[{zoned}]:{}", address.port()),
    }
}

/// An address that is complete.
///
/// # Errors
/// Not an address, or without the zone that it needs.
pub fn parse_ip(text: &str) -> Result<ZonedIp, AddressError> {
    text.parse::<ZonedIp>()?.complete()
}

/// An address with a port, complete: `192.0.2.1:80`, `[::1]:80`, `[fe80::1%eth0]:80`.
///
/// # Errors
/// Anything else.
pub fn parse_socket(text: &str) -> Result<SocketAddr, AddressError> {
    let neither = || AddressError::NotASocketAddress(text.to_owned());
    let (address, port) = text.rsplit_once(':').ok_or_else(neither)?;
    let is_bracketed = address.starts_with('[') && address.ends_with(']');
    if address.contains(':') != is_bracketed {
        return Err(neither());
    }
    let port = port.parse().map_err(|_| neither())?;
    match parse_ip(address) {
        Ok(ip) => Ok(ip.at(port)),
        Err(AddressError::NotAnAddress(_)) => Err(neither()),
        Err(error) => Err(error),
    }
}

/// Whether a text is an IPv6 address, with or without zone; looks up nothing.
pub fn is_v6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').map_or((text, None), |(a, z)| (a, Some(z)));
    address.parse::<Ipv6Addr>().is_ok() && zone != Some("")
}

/// The addresses of a name or of an address as typed, each complete. A link-local address that the
/// name has without a zone is left out where there are others.
///
/// # Errors
/// What the system's resolver says, or an address that is not complete ([`AddressError`] within).
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    match resolve_literal(host) {
        Some(literal) => Ok(vec![literal.and_then(ZonedIp::complete).map_err(invalid)?.at(port)]),
        None => complete_all((host, port).to_socket_addrs()?, None).map_err(invalid),
    }
}

/// The address that was typed; `None` where it is a name.
pub fn resolve_literal(host: &str) -> Option<Result<ZonedIp, AddressError>> {
    match host.parse() {
        Err(AddressError::NotAnAddress(_)) => None,
        known => Some(known),
    }
}

/// Those addresses of a name that can be used; link-local ones without zone are given this one.
///
/// # Errors
/// All of them lack a zone.
pub fn complete_all(
    found: impl IntoIterator<Item = SocketAddr>,
    zone: Option<u32>,
) -> Result<Vec<SocketAddr>, AddressError> {
    let (mut complete, mut incomplete) = (Vec::new(), None);
    for address in found {
        match ZonedIp::of(address).within(zone).complete() {
            Ok(whole) => complete.push(whole.at(address.port())),
            Err(error) => incomplete = Some(error),
        }
    }
    incomplete.filter(|_| complete.is_empty()).map_or(Ok(complete), Err)
}

/// Whether the address means nothing without an interface: link-local ones, and groups of one link
/// or one interface.
pub fn needs_zone(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V6(v6) => {
            let scope = v6.segments()[0] & 0xf;
            v6.is_unicast_link_local() || (v6.is_multicast() && matches!(scope, 1 | 2))
        }
        IpAddr::V4(_) => false,
    }
}

/// The number of an interface of this network namespace.
pub fn index(zone: &str) -> Option<u32> {
    let by_number = || zone.parse().ok().filter(|number| *number != 0);
    system::index_of(zone).or_else(|| by_number().filter(|number| system::name_of(*number).is_some()))
}

fn name_of(zone: u32) -> String {
    system::name_of(zone).unwrap_or_else(|| zone.to_string())
}

fn present() -> String {
    let names = system::names();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// An interface to show in an example, one that is not loopback where there is one.
fn example() -> String {
    let names = system::names();
    names.iter().find(|name| *name != "lo").or(names.first()).cloned().unwrap_or_else(|| "eth0".to_owned())
}

fn invalid(error: AddressError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

#[cfg(unix)]
mod system {
    use std::ffi::{CStr, CString};

    pub(super) fn index_of(name: &str) -> Option<u32> {
        let name = CString::new(name).ok()?;
        // SAFETY: a terminated text that outlives the call.
        Some(unsafe { libc::if_nametoindex(name.as_ptr()) }).filter(|index| *index > 0)
    }

    pub(super) fn name_of(index: u32) -> Option<String> {
        let mut name = [0; libc::IF_NAMESIZE];
        // SAFETY: `name` is writable for IF_NAMESIZE bytes, which is what the call may write.
        let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
        // SAFETY: on success the name in `name` is terminated.
        (!found.is_null()).then(|| unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// In the system's order.
    pub(super) fn names() -> Vec<String> {
        // SAFETY: takes nothing; the array is freed below.
        let first = unsafe { libc::if_nameindex() };
        if first.is_null() {
            return Vec::new();
        }
        let mut names = Vec::new();
        let mut next = first;
        // SAFETY: the array ends with an entry whose index is 0 and whose name is null; names are
        // terminated.
        unsafe {
            while (*next).if_index != 0 && !(*next).if_name.is_null() {
                names.push(CStr::from_ptr((*next).if_name).to_string_lossy().into_owned());
                next = next.add(1);
            }
            libc::if_freenameindex(first);
        }
        names
    }
}

/// Interfaces are known by their numbers alone.
#[cfg(not(unix))]
mod system {
    pub(super) fn index_of(_: &str) -> Option<u32> {
        None
    }

    pub(super) fn name_of(index: u32) -> Option<String> {
        Some(index.to_string())
    }

    pub(super) fn names() -> Vec<String> {
        Vec::new()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Every network namespace has loopback as its first interface.
    fn loopback() -> u32 {
        index("lo").unwrap()
    }

    #[test]
    fn a_zone_is_read_by_name_and_by_number_and_is_printed_by_name() {
        let number = loopback();
        let by_number = format!("fe80::1%{number}");
        for text in ["fe80::1%lo", "[fe80::1%lo]", "fe80::1%25lo", &by_number] {
            let address: ZonedIp = text.parse().unwrap();
            assert_eq!((address.zone(), address.to_string()), (Some(number), "fe80::1%lo".into()), "{text}");
            let at = address.at(99);
            assert_eq!((ZonedIp::of(at), shown(at)), (address, "[fe80::1%lo]:99".into()));
        }
        assert_eq!(parse_socket("[fe80::1%lo]:99").map(shown), Ok("[fe80::1%lo]:99".into()));
        for text in ["192.0.2.1:80", "[2001:db8::1]:80", "[::]:0"] {
            assert_eq!(parse_socket(text).map(shown), Ok(text.into()));
        }
        for wrong in ["192.0.2.1", "::1:80", "[::1]", "[::1]:x", "[192.0.2.1:80", "name:80"] {
            assert_eq!(parse_socket(wrong), Err(AddressError::NotASocketAddress(wrong.into())), "{wrong}");
        }
    }

    #[test]
    fn a_link_local_address_without_its_zone_is_refused_with_what_to_type() {
        let text = parse_ip("fe80::1").unwrap_err().to_string();
        assert!(text.starts_with("fe80::1 is a link-local address: add the interface"), "{text}");
        assert!(text.contains("for example fe80::1%"), "{text}");
        let io = resolve("fe80::1", 9).unwrap_err();
        assert_eq!((io.kind(), io.to_string()), (io::ErrorKind::InvalidInput, text));
        assert!(parse_ip("ff02::1").is_err() && parse_ip("ff05::1").is_ok());
    }

    #[test]
    fn a_zone_that_is_unknown_or_needless_says_so() {
        let text = parse_ip("fe80::1%no-such-if").unwrap_err().to_string();
        assert!(text.starts_with("this host has no interface 'no-such-if'; it has "), "{text}");
        assert!(text.contains("lo"), "{text}");
        assert!(matches!(parse_ip("fe80::1%0"), Err(AddressError::UnknownZone { .. })));
        for needless in ["2001:db8::1%lo", "192.0.2.1%lo"] {
            assert!(matches!(parse_ip(needless), Err(AddressError::NeedlessZone { .. })), "{needless}");
        }
        for name in ["lab-b", "fe80::1%", "", "%lo"] {
            assert!(parse_ip(name).is_err() && resolve_literal(name).is_none_or(|it| it.is_err()), "{name}");
        }
    }

    #[test]
    fn an_interface_named_elsewhere_completes_an_address_and_changes_no_other() {
        let bare: ZonedIp = "fe80::1".parse().unwrap();
        assert_eq!(bare.within(Some(7)).zone(), Some(7));
        assert_eq!(bare.within(Some(7)).within(Some(8)).zone(), Some(7));
        assert_eq!(ZonedIp::from(Ipv6Addr::LOCALHOST).within(Some(7)).zone(), None);
        let found = || ["[fe80::1]:9", "[2001:db8::1]:9"].map(|text| text.parse().unwrap());
        assert_eq!(complete_all(found(), None).unwrap(), [found()[1]]);
        assert_eq!(complete_all(found(), Some(7)).unwrap(), ["[fe80::1%7]:9".parse().unwrap(), found()[1]]);
        assert!(complete_all(found().into_iter().take(1), None).is_err());
    }
}
