//! Whose page asks.
//!
//! A browser runs pages of strangers inside networks that strangers cannot reach. It says in
//! `Origin` whose page asks, and in `Host` by what name it was sent here. A name that somebody else
//! may point at this host (DNS rebinding) proves nothing, so only these count: addresses as they
//! are, `localhost`, and names of one label or below `.local` and `.lan`, which no stranger can
//! hold.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderValue;

/// Whose page may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// The very host that it came from, or no page at all.
    Same,
    /// This responder by another of its addresses, or by its name.
    Ours(HeaderValue),
}

/// Why somebody may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    NoHost,
    /// Anybody may own the name.
    Name,
    /// A page from elsewhere.
    Foreign,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoHost => "the request does not say which host it is for",
            Self::Name => "open this page by the host's address: a name in the DNS could be anybody's",
            Self::Foreign => "this page did not come from here, so it may not measure from here",
        })
    }
}

impl Origin {
    /// `host` and `origin` as in the request, `local` the end of the connection that is ours.
    pub(super) fn judge(
        host: Option<&str>,
        origin: Option<&str>,
        local: SocketAddr,
    ) -> Result<Self, Refusal> {
        Self::judge_among(host, origin, local, netaware_host::reachable_addresses)
    }

    fn judge_among(
        host: Option<&str>,
        origin: Option<&str>,
        local: SocketAddr,
        ours: impl Fn() -> Vec<IpAddr>,
    ) -> Result<Self, Refusal> {
        let host = host.ok_or(Refusal::NoHost)?;
        let (name, _) = parted(host).ok_or(Refusal::NoHost)?;
        if !cannot_be_a_strangers(name) {
            return Err(Refusal::Name);
        }
        let Some(origin) = origin else { return Ok(Self::Same) };
        let page = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let page = page.ok_or(Refusal::Foreign)?;
        if page.eq_ignore_ascii_case(host) {
            return Ok(Self::Same);
        }
        let (name, port) = parted(page).ok_or(Refusal::Foreign)?;
        let is_ours = match address(name) {
            // Both loopback addresses are this host.
            Some(address) if address.is_loopback() => local.ip().to_canonical().is_loopback(),
            Some(address) => address == local.ip().to_canonical() || ours().contains(&address),
            None => cannot_be_a_strangers(name),
        };
        let value = HeaderValue::from_str(origin).map_err(|_| Refusal::Foreign)?;
        if is_ours && port == Some(local.port()) { Ok(Self::Ours(value)) } else { Err(Refusal::Foreign) }
    }

    /// What a browser has to be told before it shows the answer to the page.
    pub(super) fn other(&self) -> Option<&HeaderValue> {
        match self {
            Self::Same => None,
            Self::Ours(origin) => Some(origin),
        }
    }
}

/// Name and port of `name:port`, `[address]:port`, or one without a port.
fn parted(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port.parse().ok()?)),
        _ => (host, None),
    };
    (!name.is_empty()).then_some((name, port))
}

fn address(name: &str) -> Option<IpAddr> {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

fn cannot_be_a_strangers(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    address(name).is_some() || !lower.contains('.') || OURS_ALONE.iter().any(|end| lower.ends_with(end))
}

/// RFC 6762 §3, RFC 8375, and what routers of homes call theirs.
const OURS_ALONE: &[&str] = &[".local", ".localhost", ".lan", ".home.arpa", ".internal"];

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(host: &str, origin: Option<&str>) -> Result<Origin, Refusal> {
        let local = "192.0.2.1:14233".parse().unwrap();
        let ours = || vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        Origin::judge_among(Some(host), origin, local, ours)
    }

    #[test]
    fn the_page_reaches_its_responder_by_each_of_its_addresses() {
        assert_eq!(judge("192.0.2.1:14233", None), Ok(Origin::Same));
        assert_eq!(judge("192.0.2.1:14233", Some("http://192.0.2.1:14233")), Ok(Origin::Same));
        assert_eq!(judge("laptop.local:14233", Some("http://laptop.local:14233")), Ok(Origin::Same));
        for page in ["http://[2001:db8::1]:14233", "http://laptop:14233"] {
            assert!(matches!(judge("192.0.2.1:14233", Some(page)), Ok(Origin::Ours(_))), "{page}");
        }
    }

    #[test]
    fn a_page_on_loopback_reaches_the_other_version_and_one_from_elsewhere_does_not() {
        let judge = |local: &str, page| {
            Origin::judge_among(Some("[::1]:14233"), Some(page), local.parse().unwrap(), Vec::new)
        };
        assert!(matches!(judge("[::1]:14233", "http://127.0.0.1:14233"), Ok(Origin::Ours(_))));
        assert_eq!(judge("192.0.2.1:14233", "http://127.0.0.1:14233"), Err(Refusal::Foreign));
    }

    #[test]
    fn pages_of_others_are_refused_and_so_are_names_that_anybody_may_own() {
        for (host, origin, why) in [
            ("192.0.2.1:14233", Some("http://evil.example"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("http://evil.example:14233"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("http://198.51.100.9:14233"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("http://192.0.2.1:80"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("null"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("file://"), Refusal::Foreign),
            ("evil.example:14233", Some("http://evil.example:14233"), Refusal::Name),
            ("evil.example:14233", None, Refusal::Name),
            ("", None, Refusal::NoHost),
        ] {
            assert_eq!(judge(host, origin), Err(why), "{host} {origin:?}");
        }
        let local = "192.0.2.1:14233".parse().unwrap();
        assert_eq!(Origin::judge_among(None, None, local, Vec::new), Err(Refusal::NoHost));
    }
}
