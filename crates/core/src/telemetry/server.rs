//! [`ServerAddress`]: where a model answers, as far as spans and metrics say it. Neither a path nor a
//! key: an address may hold both.

/// Where a model answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}
