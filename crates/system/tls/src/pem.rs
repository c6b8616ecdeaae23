//! Certificates and keys in PEM files.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::TrustError;

/// All certificates in a file, one at least.
///
/// # Errors
/// It cannot be read, or there is none in it.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file(path)?).collect();
    let read = read.map_err(|why| content(path, why.to_string()))?;
    if read.is_empty() { Err(content(path, "no certificate in it".to_owned())) } else { Ok(read) }
}

/// The first private key in a file.
///
/// # Errors
/// It cannot be read, or there is none in it.
pub fn secret(path: &Path) -> Result<PrivateKeyDer<'static>, TrustError> {
    PrivateKeyDer::from_pem_slice(&file(path)?).map_err(|why| content(path, why.to_string()))
}

/// Authorities in a file, one at least.
///
/// # Errors
/// It cannot be read, there is none in it, or one cannot be an authority.
pub fn authorities(path: &Path) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|why| content(path, why.to_string()))?;
    }
    Ok(roots)
}

fn file(path: &Path) -> Result<Vec<u8>, TrustError> {
    std::fs::read(path).map_err(|source| TrustError::File { path: path.to_owned(), source })
}

fn content(path: &Path, why: String) -> TrustError {
    TrustError::Content { path: path.to_owned(), why }
}
