//! Whom a probe believes to be its collector.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256};

/// How the connection is made.
#[derive(Clone)]
pub enum Trust {
    /// Plain TCP: both ends prove that they have the key, and nothing is encrypted. For networks of one's own.
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

/// How a collector's certificate is judged.
#[derive(Debug, Clone, Copy)]
pub enum Judge<'a> {
    /// It has to be signed by an authority in this PEM file, and bear the name that was dialled.
    Authority(&'a Path),
    /// It has to be this very one: SHA-256, hexadecimal, colons allowed.
    Fingerprint(&'a str),
    /// It is not judged: the collector is whoever proves, over this very connection (RFC 9266), to have the key.
    Key,
}

impl Trust {
    /// TLS, with a certificate of our own (PEM files of chain and key) if given.
    ///
    /// # Errors
    /// A file cannot be read, or what is in it cannot be used.
    pub fn tls(judge: Judge<'_>, own: Option<(&Path, &Path)>) -> Result<Self, TrustError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(set_up)?;
        let builder = match judge {
            Judge::Authority(path) => builder.with_root_certificates(authorities(path)?),
            Judge::Fingerprint(text) => pinned(builder, Some(fingerprint(text)?), provider),
            Judge::Key => pinned(builder, None, provider),
        };
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                builder.with_client_auth_cert(certificates(chain)?, secret(key)?).map_err(set_up)?
            }
        };
        Ok(Self::Tls(Arc::new(config)))
    }

    /// The encryption of one connection; `None` without.
    pub(super) fn connection(&self, host: &str) -> Result<Option<ClientConnection>, TrustError> {
        let Self::Tls(config) = self else { return Ok(None) };
        let name = ServerName::try_from(host.to_owned()).map_err(|why| TrustError::SetUp(why.to_string()))?;
        ClientConnection::new(config.clone(), name).map(Some).map_err(set_up)
    }
}

fn set_up(why: impl std::fmt::Display) -> TrustError {
    TrustError::SetUp(why.to_string())
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;
type Verified = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn pinned(builder: Builder, fingerprint: Option<[u8; 32]>, provider: Arc<CryptoProvider>) -> Verified {
    let verifier = Arc::new(Pinned { fingerprint, provider });
    builder.dangerous().with_custom_certificate_verifier(verifier)
}

fn fingerprint(text: &str) -> Result<[u8; 32], TrustError> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(TrustError::Fingerprint);
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = str::from_utf8(pair).map_err(|_| TrustError::Fingerprint)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| TrustError::Fingerprint)?;
    }
    Ok(bytes)
}

fn authorities(path: &Path) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|why| content(path, why.to_string()))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file(path)?).collect();
    let read = read.map_err(|why| content(path, why.to_string()))?;
    if read.is_empty() { Err(content(path, "no certificate in it".to_owned())) } else { Ok(read) }
}

fn secret(path: &Path) -> Result<PrivateKeyDer<'static>, TrustError> {
    PrivateKeyDer::from_pem_slice(&file(path)?).map_err(|why| content(path, why.to_string()))
}

fn file(path: &Path) -> Result<Vec<u8>, TrustError> {
    std::fs::read(path).map_err(|source| TrustError::File { path: path.to_owned(), source })
}

fn content(path: &Path, why: String) -> TrustError {
    TrustError::Content { path: path.to_owned(), why }
}

#[derive(Debug)]
struct Pinned {
    fingerprint: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown: [u8; 32] = Sha256::digest(shown.as_ref()).into();
        match self.fingerprint {
            Some(wanted) if wanted != shown => Err(CertificateError::ApplicationVerificationFailure.into()),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, shown, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
