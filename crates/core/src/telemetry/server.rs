//! [`ServerAddress`]: the address of a model's server for spans and metrics. Contains neither a
//! path nor a key, since a URL may include secrets.

/// The address of a model's server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// Host name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}
