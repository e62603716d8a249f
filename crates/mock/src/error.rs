//! [`MockError`]: the errors in starting a mock server. Errors in its answers are part of the
//! simulated API.

use std::io;

/// An error in creating or starting a mock server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MockError {
    /// An unknown dialect.
    #[error("there is no dialect `{0}`; there is: {known}", known = plimsoll_wire::openai_chat::Dialect::names().collect::<Vec<_>>().join(", "))]
    Dialect(String),
    /// A line of the script cannot be read.
    #[error("line {line} of the script cannot be read: {why}")]
    Script {
        /// The line number, from 1.
        line: usize,
        /// The error in the line.
        why: String,
    },
    /// The server cannot listen at the address.
    #[error("the server cannot listen at {address}: {why}")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        why: io::Error,
    },
}
