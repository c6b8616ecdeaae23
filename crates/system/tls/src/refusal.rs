//! Why a TLS connection did not come about, and what to do.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use crate::pinned::{Another, Fingerprint};

/// In words that say what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No TLS is spoken there.
    #[error("what answers there speaks no TLS; is the port right, and is TLS set up there?")]
    Plain,
    /// Signed by nobody who is known.
    #[error(
        "its certificate is signed by nobody who is known here; give the PEM file of the authority that signed it (or of itself), or its fingerprint"
    )]
    Unknown,
    /// Good, but for another name.
    #[error(
        "its certificate is for {}, not for '{dialled}'; dial it by that name, or know it by its fingerprint",
        names(shown)
    )]
    Name {
        /// The name that was dialled.
        dialled: String,
        /// Names in the certificate, as the library prints them.
        shown: Vec<String>,
    },
    /// Another one than that whose fingerprint is known.
    #[error(
        "it shows another certificate, whose fingerprint is {0}; if it was changed on purpose give that one, otherwise somebody stands between"
    )]
    Another(Fingerprint),
    /// Not valid at this time.
    #[error(
        "its certificate is not valid now (expired, or not valid yet); renew it, or put this host's clock right"
    )]
    Time,
    /// The other end wants to know who asks.
    #[error("it wants a certificate of ours, or does not believe the one that it was shown")]
    Ours,
    /// Anything else, in the library's words.
    #[error("{0}")]
    Other(String),
}

fn names(shown: &[String]) -> String {
    if shown.is_empty() { "no name at all".to_owned() } else { shown.join(", ") }
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        match error {
            Error::InvalidMessage(_) => Self::Plain,
            Error::InvalidCertificate(why) => Self::of_certificate(why),
            Error::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown,
            ) => Self::Ours,
            other => Self::Other(other.to_string()),
        }
    }
}

impl Refusal {
    /// The refusal in an error of a socket with TLS above it; `None`: the network's own error.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).map(Self::from)
    }

    fn of_certificate(why: &CertificateError) -> Self {
        match why {
            // An authority of the same name with another key, as those that tools make again have.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Unknown,
            CertificateError::NotValidForNameContext { expected, presented } => {
                Self::Name { dialled: expected.to_str().into_owned(), shown: presented.clone() }
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::Time,
            CertificateError::Other(other) => match other.0.downcast_ref::<Another>() {
                Some(Another(shown)) => Self::Another(*shown),
                None => Self::Other(why.to_string()),
            },
            other => Self::Other(other.to_string()),
        }
    }
}
