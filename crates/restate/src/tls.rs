//! HTTP clients that can speak TLS.

use reqwest::{Client, ClientBuilder};

/// Returns a builder of clients. Unless the program has installed a cryptography provider of its own for
/// rustls, it is `ring`.
pub(crate) fn client() -> ClientBuilder {
    // An error says that there is one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
}
