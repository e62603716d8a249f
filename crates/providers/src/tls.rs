//! HTTP clients that support TLS.

use reqwest::{Client, ClientBuilder};

/// Returns a builder of clients. Uses `ring` for cryptography, unless the program has installed
/// another provider for rustls.
pub(crate) fn client() -> ClientBuilder {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
}
