//! [`MockError`]: why a mock server cannot be had. Not what it answers; that is an API's own.

use std::io;

/// Why a mock server cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MockError {
    /// There is no such dialect.
    #[error("there is no dialect `{0}`; there is: {known}", known = plimsoll_wire::openai_chat::Dialect::NAMES.join(", "))]
    Dialect(String),
    /// A line of the script cannot be read.
    #[error("line {line} of the script cannot be read: {why}")]
    Script {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The script is too long.
    #[error("the script has more than {0} turns; shorten it, or let its last turn repeat")]
    TooLong(usize),
    /// The address cannot be listened at.
    #[error("the server cannot listen at {address}: {why}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        why: io::Error,
    },
}
