//! TLS 1.3 at the listener: our certificate, and those of probes where an authority for them is
//! named.

use std::path::Path;
use std::sync::Arc;

use netaware_tls::{TrustError, pem};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};
use tokio_rustls::TlsAcceptor;

use crate::config::Tls;
use crate::controller::ApplyError;

/// Ready to shake hands with probes and browsers.
///
/// # Errors
/// A file that cannot be read or is not what it should be.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ApplyError> {
    // Browsers and probes with keys come without a certificate.
    let mut config = server(tls, ClientCertVerifierBuilder::allow_unauthenticated)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// For exporters: where an authority for certificates is named they have to show one, as there is
/// nothing else to know them by.
///
/// # Errors
/// As [`acceptor`].
pub(crate) fn for_exporters(tls: &Tls) -> Result<Arc<ServerConfig>, ApplyError> {
    server(tls, |verifier| verifier).map(Arc::new)
}

fn server(
    tls: &Tls,
    strictness: impl FnOnce(ClientCertVerifierBuilder) -> ClientCertVerifierBuilder,
) -> Result<ServerConfig, ApplyError> {
    let provider = netaware_tls::provider();
    if netaware_private::is_exposed(&tls.key) {
        tracing::warn!("{}", netaware_private::exposure(&tls.key));
    }
    let chain = pem::certificates(&tls.certificate).map_err(|why| unread(&tls.certificate, why))?;
    let key = pem::secret(&tls.key).map_err(|why| unread(&tls.key, why))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|why| wrong(&tls.certificate, &why))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = pem::authorities(path).map_err(|why| unread(path, why))?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = strictness(verifier).build().map_err(|why| wrong(path, &why))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    builder.with_single_cert(chain, key).map_err(|why| wrong(&tls.key, &why))
}

/// Whether a verified certificate is that of the probe: its name is one of the certificate's DNS
/// names.
pub(crate) fn names(certificate: &CertificateDer<'_>, probe: &str) -> bool {
    let (Ok(end), Ok(name)) = (webpki::EndEntityCert::try_from(certificate), ServerName::try_from(probe))
    else {
        return false;
    };
    end.verify_is_valid_for_subject_name(&name).is_ok()
}

fn unread(path: &Path, why: TrustError) -> ApplyError {
    match why {
        TrustError::File { source, .. } => wrong(path, &source),
        TrustError::Content { why, .. } => wrong(path, &why),
        other => wrong(path, &other),
    }
}

fn wrong(path: &Path, why: &dyn std::fmt::Display) -> ApplyError {
    ApplyError::File { what: "the certificate or key", path: path.to_owned(), why: why.to_string() }
}
