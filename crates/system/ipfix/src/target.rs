//! Where to send: `tcp://host:4739`, `tls://host:4740`, `udp://host:4739?message=1400`.

use std::fmt;
use std::str::FromStr;

use netaware_wire::ipfix::message::{MAX_MESSAGE, MAX_UDP_MESSAGE};
use netaware_wire::ipfix::{PORT, PORT_TLS};

use crate::Over;

/// A collector, as a person writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// How.
    pub over: Over,
    /// Name or address; IPv6 addresses without brackets.
    pub host: String,
    /// Port; 4739, and 4740 for TLS, unless given.
    pub port: u16,
    /// Bytes of the longest message, 512 to 65535. Over UDP 512 unless given (RFC 7011 §10.3.3),
    /// otherwise the longest there is.
    pub message: usize,
}

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not one of three.
    #[error("'{0}' does not begin with tcp://, tls:// or udp://")]
    Over(String),
    /// Nobody to send to.
    #[error("'{0}' names no host")]
    Host(String),
    /// Not 1 to 65535.
    #[error("'{0}' is no port")]
    Port(String),
    /// Not `message=512..65535`.
    #[error("'{0}' is not 'message=' and 512 to 65535 bytes")]
    Option(String),
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| TargetError::Over(text.to_owned()))?;
        let over = match scheme {
            "tcp" => Over::Tcp,
            "tls" => Over::Tls,
            "udp" => Over::Udp,
            _ => return Err(TargetError::Over(text.to_owned())),
        };
        let (place, option) = match rest.split_once('?') {
            Some((place, option)) => (place.trim_end_matches('/'), Some(option)),
            None => (rest.trim_end_matches('/'), None),
        };
        let (host, port) = host_and_port(place)?;
        if host.is_empty() {
            return Err(TargetError::Host(text.to_owned()));
        }
        let usual = if over == Over::Tls { PORT_TLS } else { PORT };
        let port = match port.map(|port| (port, port.parse())) {
            None => usual,
            Some((_, Ok(port))) if port > 0 => port,
            Some((port, _)) => return Err(TargetError::Port(port.to_owned())),
        };
        let longest = if over == Over::Udp { MAX_UDP_MESSAGE } else { MAX_MESSAGE };
        let message = option.map_or(Ok(longest), message_length)?;
        Ok(Self { over, host: host.to_owned(), port, message })
    }
}

fn message_length(option: &str) -> Result<usize, TargetError> {
    let length = option.strip_prefix("message=").and_then(|length| length.parse().ok());
    length
        .filter(|length| (MAX_UDP_MESSAGE..=MAX_MESSAGE).contains(length))
        .ok_or_else(|| TargetError::Option(option.to_owned()))
}

/// `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address.
fn host_and_port(place: &str) -> Result<(&str, Option<&str>), TargetError> {
    if let Some((host, after)) = place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let port = after.strip_prefix(':');
        if port.is_none() && !after.is_empty() {
            return Err(TargetError::Port(after.to_owned()));
        }
        return Ok((host, port));
    }
    Ok(match place.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (place, None),
    })
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { over, host, port, .. } = self;
        if host.contains(':') {
            write!(f, "{over}://[{host}]:{port}")
        } else {
            write!(f, "{over}://{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        let cases = [
            ("tcp://collector", "tcp://collector:4739", 65_535),
            ("tls://collector/", "tls://collector:4740", 65_535),
            ("udp://192.0.2.1:9995", "udp://192.0.2.1:9995", 512),
            ("udp://[2001:db8::1]:9995?message=1400", "udp://[2001:db8::1]:9995", 1400),
            ("udp://2001:db8::1", "udp://[2001:db8::1]:4739", 512),
        ];
        for (text, shown, message) in cases {
            let target: Target = text.parse().unwrap();
            assert_eq!((target.to_string().as_str(), target.message), (shown, message));
        }
    }

    #[test]
    fn what_is_no_target_is_refused_with_its_part() {
        let refused = |text: &str| text.parse::<Target>().unwrap_err();
        assert!(matches!(refused("collector:4739"), TargetError::Over(_)));
        assert!(matches!(refused("sctp://collector"), TargetError::Over(_)));
        assert!(matches!(refused("tcp://:4739"), TargetError::Host(_)));
        assert!(matches!(refused("tcp://a:0"), TargetError::Port(_)));
        assert!(matches!(refused("tcp://a:99999"), TargetError::Port(_)));
        // It was exported to port 4739, and what was typed was thrown away.
        for port in ["4740", "x", " :4740"] {
            assert_eq!(refused(&format!("tcp://[2001:db8::1]{port}")), TargetError::Port(port.into()));
        }
        for option in ["mtu=9000", "message=511", "message=65536", "message=x"] {
            assert_eq!(refused(&format!("udp://a?{option}")), TargetError::Option(option.into()));
        }
    }
}
