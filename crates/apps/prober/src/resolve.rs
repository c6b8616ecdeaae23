//! Names to addresses, with a limit on the wait.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc;

use netaware_io::clock;
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
    if let Some(ip) = literal(&host) {
        return Ok(Resolved { took: None, addresses: vec![SocketAddr::new(ip, target.port)], host });
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
    let patience = target.connect_patience;
    let addresses = told
        .recv_timeout(patience.to_std())
        .map_err(|_| failed(format!("no answer for '{host}' within {patience}")))?
        .map_err(|e| failed(format!("'{host}': {e}")))?;
    Ok(Resolved { took: Some(clock::now() - began_at), addresses, host })
}

/// Accepts `::1`, `[::1]` and `fe80::1%eth0` is left to the system's resolver, which knows zones.
fn literal(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host).parse().ok()
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
    fn an_unknown_name_says_so() {
        let failure = resolve(&Target::new("no-such-host.invalid")).err().unwrap();
        assert_eq!(failure.stage, "resolve");
        assert!(failure.to_string().contains("no-such-host.invalid"));
    }
}
