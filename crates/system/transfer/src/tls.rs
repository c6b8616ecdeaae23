//! TLS 1.3 below a transfer. A receiver shows a certificate, made by itself or given; a sender
//! knows it by its fingerprint, the SHA-256 of the certificate. Names and authorities play no part:
//! the sender was told what the receiver printed.

use std::path::Path;
use std::sync::Arc;

use netaware_tls::Fingerprint;
pub use netaware_tls::IdentityError;
use netaware_wire::transfer::Digest;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};

use crate::error::Broken;

/// What a receiver shows.
#[derive(Debug, Clone)]
pub struct Identity(netaware_tls::Identity);

impl Identity {
    /// Of a certificate (or a chain of them) and its key, both PEM.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        netaware_tls::Identity::read(certificate, key).map(Self)
    }

    /// The one kept in this file, made and kept there if there is none.
    ///
    /// # Errors
    /// It cannot be made, written or read.
    pub fn kept(path: &Path) -> Result<Self, IdentityError> {
        netaware_tls::Identity::kept(path, &[NOBODY.to_owned()]).map(Self)
    }

    /// SHA-256 of the certificate.
    pub fn fingerprint(&self) -> Digest {
        Digest(self.0.fingerprint().0)
    }

    pub(crate) fn connection(&self) -> Result<Connection, Broken> {
        let made = ServerConnection::new(self.0.config());
        made.map(Connection::Server).map_err(|why| Broken::Tls(why.to_string()))
    }
}

/// A sender's end. Without a fingerprint the receiver is whoever has the key that both share.
pub(crate) fn client(fingerprint: Option<Digest>) -> Result<Connection, Broken> {
    let config = netaware_tls::pinned(fingerprint.map(|digest| Fingerprint(digest.0)));
    let config = config.map_err(|why| Broken::Tls(why.to_string()))?;
    let name = ServerName::try_from(NOBODY).map_err(|why| Broken::Tls(why.to_string()))?;
    let made = ClientConnection::new(Arc::new(config), name);
    made.map(Connection::Client).map_err(|why| Broken::Tls(why.to_string()))
}

/// Names are not looked at; this one belongs to nobody (RFC 6761 §6.4).
const NOBODY: &str = "netaware.invalid";
