//! HTTP clients that can speak TLS.

use reqwest::{Client, ClientBuilder};

/// Returns a builder of clients. It uses `ring`, unless the program has installed another
/// cryptography provider for rustls.
pub(crate) fn client() -> ClientBuilder {
    // An error means that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
}
