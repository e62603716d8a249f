//! [`RestateError`]: why a server of Restate did not do what it was asked for.

/// Why a server of Restate did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestateError {
    /// An address is none.
    #[error("`{0}` is no address of Restate; give one such as restate://127.0.0.1:8080")]
    Address(String),
    /// The server does not answer.
    #[error("Restate cannot be reached at {place}: {why}; see that restate-server runs there")]
    Unreachable {
        /// Its address.
        place: String,
        /// What the connection says.
        why: String,
    },
    /// No worker has been registered.
    #[error(
        "Restate at {place} has no worker of plimsoll; start one with `plimsoll worker --store … --register …`"
    )]
    NoWorker {
        /// Its address.
        place: String,
    },
    /// It refuses, in the worker's words or its own.
    #[error("{why}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// What it says.
        why: String,
    },
    /// It answers something else than the question.
    #[error(
        "{place} does not answer as Restate does: {why}; see that the address is that of its {role}"
    )]
    Strange {
        /// Its address.
        place: String,
        /// What is strange.
        why: String,
        /// What the address should be of.
        role: &'static str,
    },
    /// A key that Restate's signatures should be checked with.
    #[error(
        "`{key}` is no public key of Restate: {why}; give the one that restate-server logs when it starts, \
         publickeyv1_…"
    )]
    IdentityKey {
        /// The key.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// The listener of a worker.
    #[error("the worker cannot listen at {place}: {why}; choose another address with --listen")]
    Listen {
        /// The address.
        place: String,
        /// What the system says.
        why: String,
    },
}
