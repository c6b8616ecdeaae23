//! Names to addresses, with a limit on the wait.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc;

use netaware_io::clock;
use netaware_io::zone;
use netaware_record::IpVersion;
use netaware_units::Span;

use crate::request::Target;
use crate::stage::{Cause, Failure};

/// What a lookup gave.
pub(crate) struct Resolved {
    /// How long it took; absent for a literal address.
    pub(crate) took: Option<Span>,
    addresses: Vec<SocketAddr>,
    host: String,
}

impl Resolved {
    /// The system's first choice of a version (RFC 6724 order).
    pub(crate) fn address(&self, version: IpVersion) -> Result<SocketAddr, Failure> {
        self.addresses
            .iter()
            .find(|address| IpVersion::of(address.ip()) == version)
            .copied()
            .ok_or_else(|| Failure::new("resolve", None, Cause::NoAddress(self.host.clone())))
    }
}

/// Looks the target up. The system's resolver cannot be cancelled, so it runs in a thread that is
/// left behind when it takes too long. A responder of our own is on both loopback addresses,
/// whatever "localhost" means on this host.
pub(crate) fn resolve(target: &Target) -> Result<Resolved, Failure> {
    let host = target.host.clone();
    if target.own_responder {
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let addresses = loopback.map(|ip| SocketAddr::new(ip, target.port)).to_vec();
        return Ok(Resolved { took: None, addresses, host });
    }
    let unusable = |why: String| Failure::new("resolve", None, Cause::Address(why));
    let zone = target.options.zone();
    if let Some(literal) = zone::resolve_literal(&host) {
        let complete = literal.and_then(|address| address.within(zone).complete());
        let address = complete.map_err(|e| unusable(e.to_string()))?;
        one_host(address.ip()).map_err(unusable)?;
        return Ok(Resolved { took: None, addresses: vec![address.at(target.port)], host });
    }
    let began_at = clock::now();
    let (tell, told) = mpsc::channel();
    let question = (host.clone(), target.port);
    let failed = |why: String| Failure::new("resolve", None, Cause::Resolve(why));
    std::thread::Builder::new()
        .name("resolve".into())
        .spawn(move || {
            // Nobody listens any more when it took too long; that is fine.
            let _ = tell.send(question.to_socket_addrs().map(Vec::from_iter));
        })
        .map_err(|e| failed(e.to_string()))?;
    let patience = lookup_patience(target.connect_patience);
    let addresses = told
        .recv_timeout(patience.to_std())
        .map_err(|_| failed(format!("no answer for '{host}' within {patience}")))?
        .map_err(|e| failed(format!("'{host}': {e}")))?;
    let took = Some(clock::now() - began_at);
    let addresses = zone::complete_all(addresses, zone).map_err(|e| unusable(format!("'{host}': {e}")))?;
    Ok(Resolved { took, addresses, host })
}

/// The system's resolver asks a server that does not answer again after five seconds
/// (resolv.conf(5)), twice in all: one datagram that is lost is not a name without an address.
const RESOLVER_TRIES: Span = Span::from_secs(12);

/// How long the name is waited for where connecting has so long. Who wants less than usual gets no
/// more than that.
fn lookup_patience(connect_patience: Span) -> Span {
    if connect_patience < USUAL { connect_patience } else { connect_patience.max(RESOLVER_TRIES) }
}

/// What connecting has where nobody typed it.
const USUAL: Span = Span::from_secs(5);

/// A measurement has one host at its other end, which is measured over the version that its address
/// says.
fn one_host(ip: IpAddr) -> Result<(), String> {
    match ip {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            let v4 = ip.to_canonical();
            Err(format!("{ip} is an IPv4 address written as IPv6: give {v4}"))
        }
        IpAddr::V4(v4) if v4.is_broadcast() => {
            Err(format!("{ip} is the broadcast address: give the address of one host"))
        }
        _ if ip.is_multicast() => Err(format!("{ip} is a multicast address: give the address of one host")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_address_has_one_version_and_no_lookup() {
        let resolved = resolve(&Target::new("127.0.0.1")).ok().unwrap();
        assert!(resolved.took.is_none());
        assert!(resolved.address(IpVersion::V4).is_ok());
        assert!(matches!(resolved.address(IpVersion::V6).unwrap_err().cause, Cause::NoAddress(_)));
    }

    #[test]
    fn an_address_that_is_no_host_says_what_to_type() {
        let said = |host: &str| resolve(&Target::new(host)).err().unwrap().to_string();
        assert!(said("fe80::1").starts_with("fe80::1 is a link-local address: add the interface"));
        assert!(said("fe80::1%no-such-if").starts_with("this host has no interface 'no-such-if'"));
        assert_eq!(
            said("::ffff:192.0.2.1"),
            "::ffff:192.0.2.1 is an IPv4 address written as IPv6: give 192.0.2.1"
        );
        for (group, kind) in
            [("ff05::2", "a multicast"), ("224.0.0.1", "a multicast"), ("255.255.255.255", "the broadcast")]
        {
            assert_eq!(said(group), format!("{group} is {kind} address: give the address of one host"));
        }
    }

    #[test]
    fn the_zone_of_an_address_is_not_lost_with_its_name() {
        let at = |target: &Target| resolve(target).ok().unwrap().address(IpVersion::V6).unwrap();
        let lo = zone::index("lo");
        let typed = at(&Target::new("fe80::1%lo"));
        assert_eq!(zone::ZonedIp::of(typed).zone(), lo);
        // As named by another flag.
        let mut target = Target::new("fe80::1");
        target.options.interface = Some("lo".to_owned());
        assert_eq!(at(&target), typed);
    }

    /// One lost datagram of DNS was "no answer for 'h' within 3.00 s".
    #[test]
    fn a_name_is_not_given_up_before_the_resolver_asks_again() {
        let asks_again_after = Span::from_secs(5);
        assert!(lookup_patience(Span::from_secs(5)) > asks_again_after * 2);
        for typed in [1, 3, 30] {
            assert_eq!(lookup_patience(Span::from_secs(typed)), Span::from_secs(typed));
        }
    }

    #[test]
    fn an_unknown_name_says_so() {
        let failure = resolve(&Target::new("no-such-host.invalid")).err().unwrap();
        assert_eq!(failure.stage, "resolve");
        assert!(failure.to_string().contains("no-such-host.invalid"));
    }
}
