//! A certificate that is known by its fingerprint, or not judged at all. Names and authorities play
//! no part.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, OtherError, SignatureScheme,
    WantsVerifier,
};
use sha2::{Digest, Sha256};

use crate::{TrustError, provider};

/// SHA-256 of a certificate (its DER form), as people compare it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

/// Of a certificate.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    Fingerprint(Sha256::digest(certificate.as_ref()).into())
}

impl FromStr for Fingerprint {
    type Err = TrustError;

    /// 64 hexadecimal digits, colons allowed.
    fn from_str(text: &str) -> Result<Self, TrustError> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(TrustError::Fingerprint);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = str::from_utf8(pair).map_err(|_| TrustError::Fingerprint)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| TrustError::Fingerprint)?;
        }
        Ok(Self(bytes))
    }
}

impl Fingerprint {
    /// As browsers and openssl show it: pairs of upper-case digits with colons between.
    pub fn in_pairs(&self) -> String {
        self.0.map(|byte| format!("{byte:02X}")).join(":")
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A client that believes this certificate only; `None`: any, because who is there is proved by
/// other means.
///
/// # Errors
/// The library refuses the whole.
pub fn pinned(fingerprint: Option<Fingerprint>) -> Result<ClientConfig, TrustError> {
    Ok(pin(builder()?, fingerprint).with_no_client_auth())
}

pub(crate) fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, TrustError> {
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|why| TrustError::SetUp(why.to_string()))
}

pub(crate) fn pin(
    builder: ConfigBuilder<ClientConfig, WantsVerifier>,
    fingerprint: Option<Fingerprint>,
) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let provider = builder.crypto_provider().clone();
    builder.dangerous().with_custom_certificate_verifier(Arc::new(Pinned { fingerprint, provider }))
}

/// Another certificate than the one that is known; travels inside the library's error.
#[derive(Debug)]
pub(crate) struct Another(pub(crate) Fingerprint);

impl fmt::Display for Another {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the certificate's fingerprint is {}", self.0)
    }
}

impl std::error::Error for Another {}

#[derive(Debug)]
struct Pinned {
    fingerprint: Option<Fingerprint>,
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
        let shown = fingerprint(shown);
        match self.fingerprint {
            Some(wanted) if wanted != shown => {
                Err(CertificateError::Other(OtherError(Arc::new(Another(shown)))).into())
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_tools_print_them() {
        let plain = "00ff".repeat(16);
        let read: Fingerprint = plain.parse().unwrap();
        assert_eq!((read.0[0], read.0[1], read.to_string()), (0, 255, plain.clone()));
        // As openssl prints them.
        let pairs: Vec<String> = plain
            .to_uppercase()
            .as_bytes()
            .chunks(2)
            .map(|pair| String::from_utf8_lossy(pair).into())
            .collect();
        assert_eq!(pairs.join(":").parse::<Fingerprint>().unwrap(), read);
        assert_eq!(pairs.join(":"), read.in_pairs());
        for wrong in ["", "00", &"zz".repeat(32), &"0".repeat(66)] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }
}
