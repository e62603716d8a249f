//! HTTP clients that support TLS.

use std::sync::Arc;

use reqwest::{Client, ClientBuilder};
use rustls::client::WantsClientCert;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::BuilderVerifierExt;

/// The value of the `User-Agent` header.
const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// Returns a builder of clients that trust the certificates of this machine.
///
/// It uses `ring` for cryptography and installs nothing for the process.
///
/// # Errors
/// If this machine has no certificates.
pub fn client() -> Result<ClientBuilder, rustls::Error> {
    Ok(with_tls(tls()?.with_platform_verifier()?))
}

/// Returns a builder of clients for servers that are reached without a proxy and without
/// certificates, which small containers do not have.
///
/// # Errors
/// If TLS cannot be set up.
pub fn plain_client() -> Result<ClientBuilder, rustls::Error> {
    let trusts_nobody = tls()?.with_root_certificates(RootCertStore::empty());
    Ok(with_tls(trusts_nobody).no_proxy())
}

fn tls() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions()
}

fn with_tls(config: ConfigBuilder<ClientConfig, WantsClientCert>) -> ClientBuilder {
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Client::builder()
        .user_agent(USER_AGENT)
        .tls_backend_preconfigured(config)
}

#[cfg(test)]
mod tests {
    use rustls::crypto::CryptoProvider;

    /// A program that installs its own provider afterwards would panic.
    #[test]
    fn nothing_is_installed_for_the_process() {
        super::plain_client().unwrap().build().unwrap();
        if let Ok(client) = super::client() {
            client.build().unwrap();
        }
        assert!(CryptoProvider::get_default().is_none());
    }
}
