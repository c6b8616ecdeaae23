//! What one end of a connection shows: a certificate and its key, given or made by itself.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

use crate::{Fingerprint, TrustError, fingerprint, pem, provider};

/// See the module.
#[derive(Clone)]
pub struct Identity {
    config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
    fingerprint: Fingerprint,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read, or what stands in it is no certificate or key.
    #[error(transparent)]
    Read(#[from] TrustError),
    /// Certificate and key do not belong together.
    #[error("{}: {why}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// None can be made.
    #[error("no certificate can be made: {0}")]
    Made(String),
}

impl Identity {
    /// Of a certificate (or a chain of them) and its key, both PEM.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let content = |path: &Path, why: String| IdentityError::Content { path: path.to_owned(), why };
        let (chain, secret) = (pem::certificates(certificate)?, pem::secret(key)?);
        let first = chain.first().cloned();
        let first = first.ok_or_else(|| content(certificate, "no certificate in it".into()))?;
        let fingerprint = fingerprint(&first);
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|why| content(key, why.to_string()))?;
        Ok(Self { config: Arc::new(config), certificate: first, fingerprint })
    }

    /// The one kept in this file (certificate and key, for its owner alone), made for these names
    /// (addresses, too) and kept there if there is none: who is started again has to be known
    /// again.
    ///
    /// # Errors
    /// It cannot be made, written or read.
    pub fn kept(path: &Path, names: &[String]) -> Result<Self, IdentityError> {
        if !path.exists() {
            let write = |source| IdentityError::Write { path: path.to_owned(), source };
            let made = make(names).map_err(|why| IdentityError::Made(why.to_string()))?;
            if let Some(folder) = path.parent() {
                netaware_private::make_folder(folder).map_err(write)?;
            }
            let file = netaware_private::options().write(true).create_new(true).open(path);
            match file {
                Ok(mut file) => file.write_all(made.as_bytes()).map_err(write)?,
                // Another one was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(write(error)),
            }
        }
        Self::read(path, path)
    }

    /// SHA-256 of the certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Whether the certificate was made for this name, without a dot at its end.
    pub fn is_for(&self, name: &str) -> bool {
        let Ok(parsed) = ParsedCertificate::try_from(&self.certificate) else { return false };
        ServerName::try_from(name).is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
    }

    /// For connections that are accepted: TLS 1.3, no certificate asked for.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }
}

/// Certificate and key, PEM.
fn make(names: &[String]) -> Result<String, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(names)?.self_signed(&key)?;
    Ok(format!("{}{}", certificate.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    #[cfg(unix)]
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn names() -> Vec<String> {
        ["laptop", "192.0.2.1", "2001:db8::1"].map(str::to_owned).to_vec()
    }

    #[test]
    fn an_identity_is_made_once_and_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/identity.pem");
        let [first, second] = [(); 2].map(|()| Identity::kept(&path, &names()).unwrap().fingerprint());
        assert_eq!(first, second);
        #[cfg(unix)]
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::write(&path, "nonsense").unwrap();
        assert!(Identity::kept(&path, &names()).unwrap_err().to_string().contains("identity.pem"));
    }

    #[test]
    fn a_certificate_is_for_its_own_names_and_for_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity::kept(&folder.path().join("identity.pem"), &names()).unwrap();
        for (name, is_for) in [("laptop", true), ("192.0.2.1", true), ("evil.local", false), ("", false)] {
            assert_eq!(identity.is_for(name), is_for, "{name}");
        }
    }

    #[test]
    fn a_certificate_and_a_key_that_do_not_belong_together_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        for path in [&a, &b] {
            Identity::kept(path, &names()).unwrap();
        }
        assert!(Identity::read(&a, &b).is_err());
        assert!(Identity::read(&a, &a).is_ok());
        assert!(
            Identity::read(&folder.path().join("none"), &a).unwrap_err().to_string().contains("cannot read")
        );
    }
}
