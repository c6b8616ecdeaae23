//! By which names browsers may ask for this responder.
//!
//! A name that somebody else may point at this host (DNS rebinding) proves nothing, so the DNS is
//! never asked, and no ending of a name is believed: who shares a network with this host may claim
//! any name below `.local` or `.lan`. What counts is what this host calls itself, what its
//! certificate was made for, and what its owner named.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use netaware_tls::Identity;

/// A name that the owner gave the page: `speed.example.com`, with a port, or the whole address of
/// a page behind a reverse proxy, as in `https://example.com/speed/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicName {
    scheme: Option<Scheme>,
    /// In lower case, without a dot at its end.
    host: String,
    port: Option<u16>,
    /// "/speed"; empty for the whole host.
    base: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// The scheme of an address and what follows it.
    pub(crate) fn of(address: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = address.split_once("://")?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" => Some((Self::Http, rest)),
            "https" => Some((Self::Https, rest)),
            _ => None,
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Why a text is no name of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseNameError {
    /// Before the path.
    #[error(
        "'{0}' is no name of a host; a name is given as in speed.example.com or https://example.com/speed/"
    )]
    Host(String),
    /// After the host.
    #[error(
        "'{0}' is no path of a page; a path has letters, digits, '-', '.', '_' and '~' between its slashes"
    )]
    Path(String),
}

impl FromStr for PublicName {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, ParseNameError> {
        let (scheme, rest) = Scheme::of(text).map_or((None, text), |(scheme, rest)| (Some(scheme), rest));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = HostName::of(authority).filter(|host| host.is_address() || is_name(&host.name));
        let host = host.ok_or_else(|| ParseNameError::Host(authority.to_owned()))?;
        let path = path.trim_matches('/');
        let parts = || path.split('/');
        if !path.is_empty() && !parts().all(is_part) {
            return Err(ParseNameError::Path(path.to_owned()));
        }
        let base = if path.is_empty() { String::new() } else { format!("/{path}") };
        Ok(Self { scheme, host: host.name, port: host.port, base })
    }
}

impl fmt::Display for PublicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.scheme {
            None => "",
            Some(Scheme::Http) => "http://",
            Some(Scheme::Https) => "https://",
        })?;
        f.write_str(&self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if self.base.is_empty() { Ok(()) } else { write!(f, "{}/", self.base) }
    }
}

impl PublicName {
    /// Returns the name alone, for a certificate.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// A port that was not given is the scheme's own, or that on which the responder listens.
    fn is_origin(&self, scheme: Scheme, host: &HostName, local_port: u16) -> bool {
        let port = host.port_of(scheme);
        let fits = match self.port {
            Some(given) => port == given,
            None => port == scheme.default_port() || port == local_port,
        };
        self.host == host.name && fits && self.scheme.is_none_or(|given| given == scheme)
    }
}

/// A host as headers have it: `name:port`, `[address]:port`, or one without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostName {
    /// In lower case, without a dot at its end.
    name: String,
    port: Option<u16>,
}

impl HostName {
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        (!name.is_empty()).then_some(Self { name, port })
    }

    /// An address as it is written, which nobody can point elsewhere.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let bare = self.name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&self.name);
        bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
    }

    fn is_address(&self) -> bool {
        self.address().is_some()
    }

    /// This host, from wherever it is asked.
    pub(crate) fn is_loopback(&self) -> bool {
        self.name == "localhost" || self.address().is_some_and(|address| address.is_loopback())
    }

    /// The port of a page that came by this scheme.
    pub(crate) fn port_of(&self, scheme: Scheme) -> u16 {
        self.port.unwrap_or(scheme.default_port())
    }
}

/// What this responder is called.
#[derive(Debug)]
pub(crate) struct Names {
    /// By itself.
    own: Vec<String>,
    /// By its owner.
    named: Vec<PublicName>,
    /// What its certificate was made for counts too.
    certificate: Option<Identity>,
}

impl Names {
    /// `host` is what this host calls itself (gethostname).
    pub(crate) fn new(host: &str, named: Vec<PublicName>, certificate: Option<Identity>) -> Self {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let first = host.split('.').next().unwrap_or_default().to_owned();
        let mut own = vec!["localhost".to_owned()];
        if !first.is_empty() {
            // RFC 6762 §3: by multicast DNS a host has its own name, and no other, below `.local`.
            own.extend([format!("{first}.local"), first, host]);
        }
        Self { own, named, certificate }
    }

    /// Whether a request may be for this host.
    pub(crate) fn has(&self, host: &HostName) -> bool {
        host.is_address() || self.is_own(&host.name) || self.named.iter().any(|it| it.host == host.name)
    }

    /// Whether a page that came from a name came from this responder, which listens on that port.
    pub(crate) fn has_origin(&self, scheme: Scheme, host: &HostName, local_port: u16) -> bool {
        let is_named = self.named.iter().any(|it| it.is_origin(scheme, host, local_port));
        is_named || (host.port_of(scheme) == local_port && self.is_own(&host.name))
    }

    fn is_own(&self, name: &str) -> bool {
        self.own.iter().any(|own| own == name)
            || self.certificate.as_ref().is_some_and(|certificate| certificate.is_for(name))
    }

    /// Returns the path without the one below which the owner's reverse proxy shows this responder;
    /// as it is where a proxy has left that out.
    pub(crate) fn below_base<'a>(&self, path: &'a str) -> &'a str {
        let bases = self.named.iter().filter(|name| !name.base.is_empty());
        let mut found = bases.filter_map(|name| path.strip_prefix(name.base.as_str()));
        found.find(|rest| rest.starts_with('/')).unwrap_or(path)
    }

    /// Leaves the same out of what a request asks for.
    pub(crate) fn rebase(&self, uri: &mut Uri) {
        let path = self.below_base(uri.path());
        if path.len() == uri.path().len() {
            return;
        }
        let target = uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        let Ok(target) = target.parse::<PathAndQuery>() else { return };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(target);
        if let Ok(rebased) = Uri::from_parts(parts) {
            *uri = rebased;
        }
    }

    /// Whether it is such a path without the slash at its end, from which the page would look for
    /// its files in the wrong place.
    pub(crate) fn is_base(&self, path: &str) -> bool {
        self.named.iter().any(|name| !name.base.is_empty() && name.base == path)
    }
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
}

fn is_part(part: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    !matches!(part, "" | "." | "..") && part.bytes().all(is_fit)
}

/// RFC 1035 §2.3.4, as text.
const LONGEST_NAME: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PublicName {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_written_with_and_without_scheme_port_and_path() {
        for (text, shown) in [
            ("Speed.Example.COM.", "speed.example.com"),
            ("speed.example.com:8443", "speed.example.com:8443"),
            ("https://example.com/", "https://example.com"),
            ("HTTPS://Example.com/Speed", "https://example.com/Speed/"),
            ("http://[2001:db8::1]:80/a/b/", "http://[2001:db8::1]:80/a/b/"),
        ] {
            assert_eq!(name(text).to_string(), shown);
        }
        for bad in
            ["", ":80", "a b", "a..b", "*.example.com", "https://", "ftp://example.com", "a:99999", "u@h"]
        {
            assert!(matches!(bad.parse::<PublicName>(), Err(ParseNameError::Host(_))), "{bad}");
        }
        for bad in ["https://a/..", "https://a/b//c", "https://a/b?c", "https://a/{b}"] {
            assert!(matches!(bad.parse::<PublicName>(), Err(ParseNameError::Path(_))), "{bad}");
        }
    }

    #[test]
    fn below_a_proxys_path_the_page_is_found_with_the_path_and_without() {
        let names = Names::new("laptop", vec![name("https://example.com/speed/")], None);
        for (path, want) in [
            ("/speed/app.js", "/app.js"),
            ("/speed/", "/"),
            ("/app.js", "/app.js"),
            ("/speed", "/speed"),
            ("/speedy/app.js", "/speedy/app.js"),
        ] {
            assert_eq!(names.below_base(path), want);
        }
        assert!(names.is_base("/speed") && !names.is_base("/") && !names.is_base("/speed/"));
        let mut uri: Uri = "/speed/data/up?token=7&test=1".parse().unwrap();
        names.rebase(&mut uri);
        assert_eq!(uri.to_string(), "/data/up?token=7&test=1");
    }
}
