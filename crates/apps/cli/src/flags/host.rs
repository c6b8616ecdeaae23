//! HOST: a name, an address, or either with a port.

use std::net::IpAddr;
use std::str::FromStr;

use netaware_io::zone;
use netaware_record::IpVersion;

/// What was typed, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// Without brackets and port.
    pub(crate) name: String,
    pub(crate) port: Option<u16>,
}

impl Host {
    /// The only version that a literal address can be measured over.
    pub(crate) fn version(&self) -> Option<IpVersion> {
        if zone::is_v6(&self.name) {
            return Some(IpVersion::V6);
        }
        self.name.parse::<IpAddr>().ok().map(IpVersion::of)
    }
}

impl FromStr for Host {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix('[') {
            return bracketed(text, rest);
        }
        if zone::is_v6(text) {
            return Ok(Self { name: text.to_owned(), port: None });
        }
        if text.contains("://") {
            return Err(format!("'{text}' is a URL: give its host alone, or HOST:PORT"));
        }
        // "lab-b:1:2" or an address with a slip: what follows the first colon is no port.
        if text.matches(':').count() > 1 {
            return Err(format!("'{text}' is neither an IPv6 address nor HOST:PORT"));
        }
        let (name, port) = match text.split_once(':') {
            None => (text, None),
            Some((name, digits)) => (name, Some(port(digits)?)),
        };
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/') {
            return Err(format!("'{text}' is no host: give a name, an address, HOST:PORT or [IPv6]:PORT"));
        }
        Ok(Self { name: name.to_owned(), port })
    }
}

fn bracketed(text: &str, rest: &str) -> Result<Host, String> {
    let (name, tail) = rest.split_once(']').ok_or_else(|| format!("'{text}' lacks the closing bracket"))?;
    if !zone::is_v6(name) {
        return Err(format!("'{name}' in brackets is no IPv6 address"));
    }
    let port = match tail {
        "" => None,
        _ => Some(port(
            tail.strip_prefix(':').ok_or_else(|| format!("'{tail}' after the bracket is no :PORT"))?,
        )?),
    };
    Ok(Host { name: name.to_owned(), port })
}

fn port(digits: &str) -> Result<u16, String> {
    digits
        .parse()
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| format!("'{digits}' is no port from 1 to 65535 (IPv6 with a port: [::1]:14233)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_host_is_taken_apart() {
        let rows = [
            ("lab-b", Some(("lab-b", None))),
            ("lab-b:99", Some(("lab-b", Some(99)))),
            ("192.0.2.1", Some(("192.0.2.1", None))),
            ("192.0.2.1:14233", Some(("192.0.2.1", Some(14233)))),
            ("::1", Some(("::1", None))),
            ("[::1]", Some(("::1", None))),
            ("[2001:db8::7]:80", Some(("2001:db8::7", Some(80)))),
            ("fe80::1%eth0", Some(("fe80::1%eth0", None))),
            ("[fe80::1%eth0]:99", Some(("fe80::1%eth0", Some(99)))),
            ("", None),
            (":99", None),
            ("lab-b:", None),
            ("lab-b:0", None),
            ("lab-b:65536", None),
            ("lab-b:1:2", None),
            ("http://lab-b", None),
            ("[lab-b]:99", None),
            ("[::1", None),
            ("[::1]99", None),
            ("a b", None),
        ];
        for (n, (text, want)) in rows.into_iter().enumerate() {
            let got = text.parse::<Host>().ok();
            assert_eq!(got.as_ref().map(|h| (h.name.as_str(), h.port)), want, "row {n}: {text}");
        }
    }

    #[test]
    fn a_slip_in_an_address_is_not_called_a_wrong_port() {
        let error = |text: &str| text.parse::<Host>().unwrap_err();
        assert_eq!(error("::g"), "'::g' is neither an IPv6 address nor HOST:PORT");
        assert_eq!(error("2001:db8:1"), "'2001:db8:1' is neither an IPv6 address nor HOST:PORT");
        assert_eq!(error("http://lab-b/"), "'http://lab-b/' is a URL: give its host alone, or HOST:PORT");
        assert!(error("lab-b:0").contains("'0' is no port"));
    }

    #[test]
    fn a_literal_address_tells_its_version() {
        let version = |text: &str| text.parse::<Host>().unwrap().version();
        assert_eq!(version("192.0.2.1:5"), Some(IpVersion::V4));
        assert_eq!(version("fe80::1%eth0"), Some(IpVersion::V6));
        assert_eq!(version("lab-b"), None);
    }
}
