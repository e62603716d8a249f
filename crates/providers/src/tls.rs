//! HTTP clients that support TLS.

use reqwest::{Client, ClientBuilder};

/// The value of the `User-Agent` header.
const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// Returns a builder of clients. Uses `ring` for cryptography, unless the program has installed
/// another provider for rustls.
pub(crate) fn client() -> ClientBuilder {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().user_agent(USER_AGENT)
}

/// Returns a builder of clients for servers that are reached without a proxy and without
/// certificates, which small containers do not have.
pub(crate) fn plain_client() -> ClientBuilder {
    client().no_proxy().tls_certs_only([])
}
