//! How a connection is made, and by what the other end is known.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::pem;
use crate::pinned::{builder, pin};

/// How the connection is made.
#[derive(Clone)]
pub enum Trust {
    /// Plain TCP: nothing is encrypted. For networks of one's own.
    Plain,
    /// TLS 1.3.
    Tls(Arc<ClientConfig>),
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Tls(_) => "Tls",
        })
    }
}

/// Why a file cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// What stands in it is of no use.
    #[error("{}: {why}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Not 64 hexadecimal digits.
    #[error("a fingerprint is the SHA-256 of a certificate, 64 hexadecimal digits")]
    Fingerprint,
    /// The library refuses the whole.
    #[error("TLS cannot be set up: {0}")]
    SetUp(String),
}

/// How the other end's certificate is judged.
#[derive(Debug, Clone, Copy)]
pub enum Judge<'a> {
    /// It has to be signed by an authority in this PEM file, and bear the name that was dialled.
    Authority(&'a Path),
    /// It has to be this very one: SHA-256, hexadecimal, colons allowed.
    Fingerprint(&'a str),
    /// It is not judged: the other end is whoever proves, over this very connection (RFC 9266), to
    /// have the key.
    Key,
}

impl Trust {
    /// TLS, with a certificate of our own (PEM files of chain and key) if given.
    ///
    /// # Errors
    /// A file cannot be read, or what is in it cannot be used.
    pub fn tls(judge: Judge<'_>, own: Option<(&Path, &Path)>) -> Result<Self, TrustError> {
        let builder = builder()?;
        let builder = match judge {
            Judge::Authority(path) => builder.with_root_certificates(pem::authorities(path)?),
            Judge::Fingerprint(text) => pin(builder, Some(text.parse()?)),
            Judge::Key => pin(builder, None),
        };
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                builder.with_client_auth_cert(pem::certificates(chain)?, pem::secret(key)?).map_err(set_up)?
            }
        };
        Ok(Self::Tls(Arc::new(config)))
    }

    /// The encryption of one connection; `None` without.
    ///
    /// # Errors
    /// The host's name cannot be one of a certificate.
    pub fn connection(&self, host: &str) -> Result<Option<ClientConnection>, TrustError> {
        let Self::Tls(config) = self else { return Ok(None) };
        let name = ServerName::try_from(host.to_owned()).map_err(set_up)?;
        ClientConnection::new(config.clone(), name).map(Some).map_err(set_up)
    }
}

fn set_up(why: impl std::fmt::Display) -> TrustError {
    TrustError::SetUp(why.to_string())
}
