//! Who may ask over HTTP, and who may change.
//!
//! With tokens: whoever shows one. Without: this host only, and only when the request names this
//! host, so that a page of somebody else cannot reach it through the browser of a person who sits
//! here (DNS rebinding). Changes have to come with a type that no form can send.

use std::net::SocketAddr;

use crate::config::Access;
use crate::controller::{ApplyError, secret};

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum May {
    Nothing,
    Look,
    Change,
}

/// See the module.
pub(crate) struct Gate {
    admin: Option<Vec<u8>>,
    reader: Option<Vec<u8>>,
}

impl Gate {
    /// # Errors
    /// A token's file cannot be read.
    pub(crate) fn new(access: &Access) -> Result<Self, ApplyError> {
        let read = |path: &Option<std::path::PathBuf>| {
            path.as_ref().map(|path| secret(path, "the token file")).transpose()
        };
        Ok(Self { admin: read(&access.admin_token_file)?, reader: read(&access.read_token_file)? })
    }

    /// `authorization` and `host` as the request has them.
    pub(crate) fn may(
        &self,
        peer: Option<SocketAddr>,
        authorization: Option<&str>,
        host: Option<&str>,
    ) -> May {
        let token = authorization.and_then(|text| text.strip_prefix("Bearer ")).map(str::trim);
        let is = |known: &Option<Vec<u8>>| {
            known
                .as_deref()
                .zip(token)
                .is_some_and(|(known, given)| subtle::ConstantTimeEq::ct_eq(known, given.as_bytes()).into())
        };
        let local =
            peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback()) && host.is_some_and(names_us);
        if is(&self.admin) || (self.admin.is_none() && local) {
            May::Change
        } else if is(&self.reader) || (self.admin.is_none() && self.reader.is_none() && local) {
            May::Look
        } else {
            May::Nothing
        }
    }

    /// What to do about a refusal.
    pub(crate) fn advice(&self) -> &'static str {
        if self.admin.is_none() && self.reader.is_none() {
            "without a token the collector answers its own host only; set access.admin_token_file in collect.toml"
        } else {
            "a token is needed, as in 'Authorization: Bearer TOKEN'"
        }
    }
}

fn names_us(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    matches!(name, "localhost" | "::1") || name.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(admin: Option<&str>, reader: Option<&str>) -> Gate {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        Gate { admin: bytes(admin), reader: bytes(reader) }
    }

    #[test]
    fn tokens_open_and_without_any_only_this_host_is_answered() {
        let here: Option<SocketAddr> = "127.0.0.1:5".parse().ok();
        let there: Option<SocketAddr> = "192.0.2.1:5".parse().ok();
        let mapped: Option<SocketAddr> = "[::ffff:127.0.0.1]:5".parse().ok();
        let (none, both) = (gate(None, None), gate(Some("a"), Some("r")));
        let rows = [
            (1, &none, here, None, Some("localhost:14234"), May::Change),
            (2, &none, mapped, None, Some("127.0.0.1"), May::Change),
            (3, &none, here, None, Some("evil.example"), May::Nothing),
            (4, &none, here, None, None, May::Nothing),
            (5, &none, there, None, Some("localhost"), May::Nothing),
            (6, &both, here, None, Some("localhost"), May::Nothing),
            (7, &both, there, Some("Bearer a"), None, May::Change),
            (8, &both, there, Some("Bearer r"), None, May::Look),
            (9, &both, there, Some("Bearer x"), None, May::Nothing),
            (10, &both, there, Some("Basic a"), None, May::Nothing),
            (11, &gate(None, Some("r")), there, Some("Bearer r"), None, May::Look),
            (12, &none, here, None, Some("[::1]:14234"), May::Change),
        ];
        for (row, gate, peer, authorization, host, want) in rows {
            assert_eq!(gate.may(peer, authorization, host), want, "row {row}");
        }
    }
}
