//! Who may ask over HTTP, and who may change.
//!
//! A token decides. Changes, and the configuration itself, need the admin token from every
//! host, this one included: other users of this host are no owners of the collector. Where the file
//! names no admin token the collector makes one.
//!
//! Without tokens in the file this host may look, and only when the request names this host, so
//! that a page of somebody else cannot reach it through the browser of a person who sits here (DNS
//! rebinding). Changes have to come with a type that no form can send.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::config::Access;
use crate::controller::{ApplyError, own_token, secret};

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum May {
    Nothing,
    Look,
    Change,
}

/// See the module.
pub(crate) struct Gate {
    admin: Vec<u8>,
    reader: Option<Vec<u8>>,
    /// Whether this host may look without a token.
    is_open_here: bool,
}

impl Gate {
    /// # Errors
    /// A token's file cannot be read, or none can be made in the state folder.
    pub(crate) fn new(access: &Access, state: &Path) -> Result<Self, ApplyError> {
        let read =
            |path: &Option<PathBuf>| path.as_ref().map(|path| secret(path, "the token file")).transpose();
        let (named, reader) = (read(&access.admin_token_file)?, read(&access.read_token_file)?);
        let is_open_here = named.is_none() && reader.is_none();
        Ok(Self { admin: named.map_or_else(|| own_token(state), Ok)?, reader, is_open_here })
    }

    /// `authorization` and `host` as the request has them.
    pub(crate) fn may(
        &self,
        peer: Option<SocketAddr>,
        authorization: Option<&str>,
        host: Option<&str>,
    ) -> May {
        let token = authorization.and_then(|text| text.strip_prefix("Bearer ")).map(str::trim);
        let is = |known: &[u8]| {
            token.is_some_and(|given| subtle::ConstantTimeEq::ct_eq(known, given.as_bytes()).into())
        };
        let local =
            peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback()) && host.is_some_and(names_us);
        if is(&self.admin) {
            May::Change
        } else if self.reader.as_deref().is_some_and(is) || (self.is_open_here && local) {
            May::Look
        } else {
            May::Nothing
        }
    }

    /// What to do about a refusal of somebody who may do this.
    pub(crate) fn advice(&self, may: May) -> &'static str {
        match may {
            May::Nothing if self.is_open_here => {
                "without a token the collector answers its own host only; set access.admin_token_file in collect.toml"
            }
            May::Nothing => "a token is needed, as in 'Authorization: Bearer TOKEN'",
            May::Look | May::Change => {
                "the admin token is needed, as in 'Authorization: Bearer TOKEN': it is in the file of access.admin_token_file, \
                 or in admin-token of the collector's state folder"
            }
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

    fn gate(admin: &str, reader: Option<&str>, is_open_here: bool) -> Gate {
        Gate {
            admin: admin.as_bytes().to_vec(),
            reader: reader.map(|text| text.as_bytes().to_vec()),
            is_open_here,
        }
    }

    #[test]
    fn a_neighbour_without_the_token_looks_at_most_and_changes_nothing() {
        let here: Option<SocketAddr> = "127.0.0.1:5".parse().ok();
        let there: Option<SocketAddr> = "192.0.2.1:5".parse().ok();
        let mapped: Option<SocketAddr> = "[::ffff:127.0.0.1]:5".parse().ok();
        let (none, both) = (gate("made", None, true), gate("a", Some("r"), false));
        let rows = [
            (1, &none, here, None, Some("localhost:14234"), May::Look),
            (2, &none, mapped, None, Some("127.0.0.1"), May::Look),
            (3, &none, here, None, Some("evil.example"), May::Nothing),
            (4, &none, here, None, None, May::Nothing),
            (5, &none, there, None, Some("localhost"), May::Nothing),
            (6, &both, here, None, Some("localhost"), May::Nothing),
            (7, &both, there, Some("Bearer a"), None, May::Change),
            (8, &both, there, Some("Bearer r"), None, May::Look),
            (9, &both, there, Some("Bearer x"), None, May::Nothing),
            (10, &both, there, Some("Basic a"), None, May::Nothing),
            (11, &gate("made", Some("r"), false), there, Some("Bearer r"), None, May::Look),
            (12, &none, here, None, Some("[::1]:14234"), May::Look),
            (13, &none, here, Some("Bearer made"), Some("localhost"), May::Change),
            (14, &none, there, Some("Bearer made"), None, May::Change),
            (15, &none, here, Some("Bearer "), Some("localhost"), May::Look),
            (16, &gate("made", Some("r"), false), here, None, Some("localhost"), May::Nothing),
        ];
        for (row, gate, peer, authorization, host, want) in rows {
            assert_eq!(gate.may(peer, authorization, host), want, "row {row}");
        }
    }

    #[test]
    fn where_no_token_is_named_one_is_made_and_this_host_may_look() {
        let state = tempfile::tempdir().unwrap();
        let gate = Gate::new(&Access::default(), state.path()).unwrap();
        let made = std::fs::read_to_string(state.path().join("admin-token")).unwrap();
        assert!(gate.is_open_here && gate.admin == made.as_bytes());
        let named = state.path().join("token");
        std::fs::write(&named, "sesame\n").unwrap();
        let access = Access { read_token_file: Some(named.clone()), ..Access::default() };
        let gate = Gate::new(&access, state.path()).unwrap();
        assert!(!gate.is_open_here && gate.admin == made.as_bytes());
        let access = Access { admin_token_file: Some(named), ..Access::default() };
        let other = tempfile::tempdir().unwrap();
        assert_eq!(Gate::new(&access, other.path()).unwrap().admin, b"sesame");
        assert!(!other.path().join("admin-token").exists(), "none is made where one is named");
    }
}
