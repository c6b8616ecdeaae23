//! The one cryptographic library of this product.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// Returns the library's algorithms, for whatever sets up a connection with TLS. The data channels
/// of browsers use the same library for DTLS, so that only one is compiled.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
