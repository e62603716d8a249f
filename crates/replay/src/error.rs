//! [`ReplayError`]: why a recording cannot be read. Not why a policy could not fit a view; that is
//! counted in a bill.

use std::path::PathBuf;

use plimsoll_wire::WireError;
use thiserror::Error;

/// Why a recording cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("{path}: {source}; give a .jsonl or .jsonl.gz file that can be read")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is longer than any session may be.
    #[error("{path}, line {line}: longer than {max} bytes; split the session")]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The bound.
        max: u64,
    },
    /// A line is no session.
    #[error("{path}, line {line}: {source}; each line must be one session with its `messages`")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        source: WireError,
    },
}
