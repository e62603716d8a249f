//! [`LogError`]: the reasons why a session log cannot be read or copied. Damage inside a readable
//! log is reported as [`Damage`](crate::Damage).

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The reason why a session log cannot be read or copied.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The content matches no known log format.
    #[error(
        "{path} is no session log that Plimsoll knows; it reads logs of Claude Code, Codex, \
         opencode, pi, Gemini CLI, OpenHands, SWE-agent and mini-SWE-agent, and the output of \
         `codex exec --json`"
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// The log has a known format, but contains no messages for a model.
    #[error("{path} is a log of {agent}, but it contains no message: {why}")]
    Empty {
        /// The file.
        path: PathBuf,
        /// The agent that wrote it.
        agent: &'static str,
        /// A likely cause, and the remedy.
        why: String,
    },
    /// The database of opencode cannot be read.
    #[error("{path}: {why}; close opencode and try again, or use `opencode export ID > FILE`")]
    Database {
        /// The database.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// Plimsoll reads this format but does not write it.
    #[error(
        "Plimsoll reads logs of {agent} but cannot write them; bring the session into Plimsoll \
         with `plimsoll sessions import FILE`"
    )]
    NoCopy {
        /// The agent that wrote the log.
        agent: &'static str,
    },
}

impl LogError {
    /// Returns the conversion of an error while this file is read.
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}
