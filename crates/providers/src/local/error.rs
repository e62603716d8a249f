//! [`LocalError`]: the reasons why a local model cannot be downloaded or run, each with advice.

use std::io;
use std::path::{Path, PathBuf};

/// The reasons why a local model cannot be downloaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// No model has this name.
    #[error("there is no local model `{given}`; there is: {known}")]
    UnknownModel {
        /// The given name.
        given: String,
        /// The known names.
        known: String,
    },
    /// The disk is full.
    #[error("the disk is full at {}; free some space and run it again: the download is \
             resumed", .path.display())]
    DiskFull {
        /// The path that was written.
        path: PathBuf,
    },
    /// A file in the cache cannot be used.
    #[error("{} cannot be used: {source}; see that it can be written, or set PLIMSOLL_HOME to another directory", .path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The registry does not provide the package.
    #[error(
        "the package registry does not give {package}: {reason}; check the network, then run it \
         again: the download is resumed"
    )]
    Registry {
        /// The package.
        package: String,
        /// The reason.
        reason: String,
    },
    /// The checksum of a download is wrong.
    #[error(
        "the downloaded {what} is not the expected file (its sha256 differs), so it was deleted; \
         try again"
    )]
    WrongSum {
        /// The download.
        what: String,
    },
    /// No server runs on this machine.
    #[error(
        "no llama.cpp server runs here{reasons}; {cure}, or name a hosted model with --model PROVIDER/NAME"
    )]
    NoServer {
        /// The attempted servers and their errors. Empty if none could be attempted.
        reasons: String,
        /// The program to install.
        cure: &'static str,
    },
    /// The server did not answer in time.
    #[error(
        "the local model did not answer within {seconds} s; the machine may be too busy or too small, try again or take a smaller one, which `plimsoll model list` shows"
    )]
    Slow {
        /// The time waited.
        seconds: u64,
    },
}

impl LocalError {
    /// An error while writing, reading or creating a file.
    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::File { path, source },
        }
    }
}
