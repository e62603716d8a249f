//! [`ReplayError`]: the reason why a recording cannot be read.

use std::path::PathBuf;

use plimsoll_wire::WireError;
use thiserror::Error;

/// The reason why a recording cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("{path}: {source}; give a .jsonl or .jsonl.gz file that can be read")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A line is longer than any session may be.
    #[error("{path}, line {line}: longer than {max} bytes; split the session")]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Maximum length in bytes.
        max: u64,
    },
    /// A line is not a session.
    #[error("{path}, line {line}: {source}; each line must be one session with its `messages`")]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The cause.
        source: WireError,
    },
}
