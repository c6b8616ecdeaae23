//! Whose page asks.
//!
//! A browser runs pages of strangers inside networks that strangers cannot reach. It says in
//! `Origin` whose page asks, and in `Host` by what name it was sent here. A name that somebody else
//! may point at this host (DNS rebinding) proves nothing, so only these count: addresses as they
//! are written, and the names of this responder ([`crate::names`]).

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderValue;

use crate::names::{HostName, Names, Scheme};

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
            Self::Name => {
                "the responder does not know itself by this name, which could be anybody's: open its page by its \
                 address, or start the responder with --name NAME"
            }
            Self::Foreign => {
                "this page did not come from the responder, so it may not measure from here; if it came through a \
                 reverse proxy, start the responder with --name NAME"
            }
        })
    }
}

impl Origin {
    /// `host` and `origin` as in the request, `local` the end of the connection that is ours.
    pub(super) fn judge(
        host: Option<&str>,
        origin: Option<&str>,
        local: SocketAddr,
        names: &Names,
    ) -> Result<Self, Refusal> {
        Self::judge_among(host, origin, local, names, netaware_host::reachable_addresses)
    }

    fn judge_among(
        host: Option<&str>,
        origin: Option<&str>,
        local: SocketAddr,
        names: &Names,
        ours: impl Fn() -> Vec<IpAddr>,
    ) -> Result<Self, Refusal> {
        let host = host.and_then(HostName::of).ok_or(Refusal::NoHost)?;
        if !names.has(&host) {
            return Err(Refusal::Name);
        }
        let Some(origin) = origin else { return Ok(Self::Same) };
        let (scheme, page) = Scheme::of(origin).ok_or(Refusal::Foreign)?;
        let page = HostName::of(page).ok_or(Refusal::Foreign)?;
        if page == host {
            return Ok(Self::Same);
        }
        let (here, has_port) = (local.ip().to_canonical(), page.port_of(scheme) == local.port());
        let is_ours = if page.is_loopback() {
            // Both loopback addresses are this host, and a page of the browser's own host is not
            // from here.
            here.is_loopback() && has_port
        } else {
            let is_here = |address| address == here || ours().contains(&address);
            names.has_origin(scheme, &page, local.port()) || (has_port && page.address().is_some_and(is_here))
        };
        let value = HeaderValue::from_str(origin).map_err(|_| Refusal::Foreign)?;
        if is_ours { Ok(Self::Ours(value)) } else { Err(Refusal::Foreign) }
    }

    /// What a browser has to be told before it shows the answer to the page.
    pub(super) fn other(&self) -> Option<&HeaderValue> {
        match self {
            Self::Same => None,
            Self::Ours(origin) => Some(origin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(named: &[&str]) -> Names {
        Names::new("laptop", named.iter().map(|name| name.parse().unwrap()).collect(), None)
    }

    fn judge_with(named: &[&str], host: &str, origin: Option<&str>) -> Result<Origin, Refusal> {
        let local = "192.0.2.1:14233".parse().unwrap();
        let ours = || vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        Origin::judge_among(Some(host), origin, local, &names(named), ours)
    }

    fn judge(host: &str, origin: Option<&str>) -> Result<Origin, Refusal> {
        judge_with(&[], host, origin)
    }

    #[test]
    fn the_page_reaches_its_responder_by_each_of_its_addresses() {
        assert_eq!(judge("192.0.2.1:14233", None), Ok(Origin::Same));
        assert_eq!(judge("192.0.2.1:14233", Some("http://192.0.2.1:14233")), Ok(Origin::Same));
        assert_eq!(judge("laptop.local:14233", Some("http://laptop.local:14233")), Ok(Origin::Same));
        assert_eq!(judge("LAPTOP.:14233", Some("http://laptop:14233")), Ok(Origin::Same));
        for page in ["http://[2001:db8::1]:14233", "http://laptop:14233", "http://laptop.local:14233"] {
            assert!(matches!(judge("192.0.2.1:14233", Some(page)), Ok(Origin::Ours(_))), "{page}");
        }
    }

    #[test]
    fn a_page_on_loopback_reaches_the_other_version_and_one_from_elsewhere_does_not() {
        let judge = |local: &str, page| {
            Origin::judge_among(
                Some("[::1]:14233"),
                Some(page),
                local.parse().unwrap(),
                &names(&[]),
                Vec::new,
            )
        };
        assert!(matches!(judge("[::1]:14233", "http://127.0.0.1:14233"), Ok(Origin::Ours(_))));
        assert!(matches!(judge("[::1]:14233", "http://localhost:14233"), Ok(Origin::Ours(_))));
        for page in ["http://127.0.0.1:14233", "http://localhost:14233"] {
            assert_eq!(judge("192.0.2.1:14233", page), Err(Refusal::Foreign), "{page}");
        }
    }

    #[test]
    fn pages_of_others_are_refused_and_so_are_names_that_anybody_may_own() {
        for (host, origin, why) in [
            ("192.0.2.1:14233", Some("http://evil.example"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("http://evil.example:14233"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("http://198.51.100.9:14233"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("http://192.0.2.1:80"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("http://laptop"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("null"), Refusal::Foreign),
            ("192.0.2.1:14233", Some("file://"), Refusal::Foreign),
            ("evil.example:14233", Some("http://evil.example:14233"), Refusal::Name),
            ("evil.example:14233", None, Refusal::Name),
            ("laptop.evil.example:14233", None, Refusal::Name),
            ("", None, Refusal::NoHost),
        ] {
            assert_eq!(judge(host, origin), Err(why), "{host} {origin:?}");
        }
        let local = "192.0.2.1:14233".parse().unwrap();
        assert_eq!(Origin::judge_among(None, None, local, &names(&[]), Vec::new), Err(Refusal::NoHost));
    }

    /// Who shares a network with this host can claim any name below `.local`, and a router's owner
    /// any one of one word.
    #[test]
    fn a_neighbours_page_cannot_read_from_here_by_a_local_name_of_its_own() {
        for name in ["evil.local", "evil.lan", "evil.internal", "evil.home.arpa", "evil.localhost", "evil"] {
            let (host, page) = (format!("{name}:14233"), format!("http://{name}:14233"));
            assert_eq!(judge(&host, Some(&page)), Err(Refusal::Name), "{name}");
            assert_eq!(judge("192.0.2.1:14233", Some(&page)), Err(Refusal::Foreign), "{name}");
        }
        for refusal in [Refusal::Name, Refusal::Foreign] {
            assert!(refusal.to_string().contains("--name NAME"), "{refusal}");
        }
    }

    #[test]
    fn behind_a_reverse_proxy_the_page_works_by_the_name_that_the_owner_gave() {
        let named = ["Speed.example.com", "https://example.org:8443/speed/"];
        for (host, page) in [
            ("speed.example.com", None),
            ("speed.example.com.", Some("https://speed.example.com")),
            ("speed.example.com:14233", Some("http://speed.example.com:14233")),
            ("example.org:8443", Some("https://example.org:8443")),
        ] {
            assert_eq!(judge_with(&named, host, page), Ok(Origin::Same), "{host} {page:?}");
        }
        // A proxy that asks by the responder's own address.
        for page in
            ["https://speed.example.com", "http://speed.example.com:14233", "https://example.org:8443"]
        {
            assert!(
                matches!(judge_with(&named, "127.0.0.1:14233", Some(page)), Ok(Origin::Ours(_))),
                "{page}"
            );
        }
        // Other services of the same hosts.
        for page in [
            "https://speed.example.com:9443",
            "https://example.org",
            "http://example.org:8443",
            "https://x.org",
        ] {
            let judged = judge_with(&named, "127.0.0.1:14233", Some(page));
            assert_eq!(judged, Err(Refusal::Foreign), "{page}");
        }
    }
}
