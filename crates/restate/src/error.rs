//! [`RestateError`]: the errors of a Restate server and its client.

/// An error of a Restate server or its client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestateError {
    /// The address is invalid.
    #[error("`{0}` is no address of Restate; give one such as restate://127.0.0.1:8080")]
    Address(String),
    /// The server does not answer.
    #[error("Restate cannot be reached at {place}: {why}; see that restate-server runs there")]
    Unreachable {
        /// The server's address.
        place: String,
        /// The error of the connection.
        why: String,
    },
    /// No worker is registered.
    #[error(
        "Restate at {place} has no worker of plimsoll; start one with `plimsoll worker --store … --register …`"
    )]
    NoWorker {
        /// The server's address.
        place: String,
    },
    /// The server or the worker refused the request.
    #[error("{why}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The reason given in the response.
        why: String,
    },
    /// The response is not one of Restate.
    #[error(
        "{place} does not answer as Restate does: {why}; see that the address is that of its {role}"
    )]
    Strange {
        /// The server's address.
        place: String,
        /// The difference from an expected response.
        why: String,
        /// The API that should be at this address.
        role: &'static str,
    },
    /// The public key for Restate's signatures is invalid.
    #[error(
        "`{key}` is no public key of Restate: {why}; give the one that restate-server logs when it starts, \
         publickeyv1_…"
    )]
    IdentityKey {
        /// The key.
        key: String,
        /// The fault of the key.
        why: String,
    },
    /// The worker cannot listen at its address.
    #[error("the worker cannot listen at {place}: {why}; choose another address with --listen")]
    Listen {
        /// The address.
        place: String,
        /// The error of the system.
        why: String,
    },
}
