//! What can stop a chore, in words that say what to do.
//! Faults in the sources are not errors of the chore: tidy lists those itself.

use std::path::PathBuf;

/// Why a chore ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The program is not there, or may not be run.
    #[error("could not start `{program}`: {source}")]
    Start {
        program: String,
        source: std::io::Error,
    },
    /// The program ran and said no.
    #[error("`{command}` failed ({status}); its own output above says why")]
    Failed { command: String, status: String },
    /// Some of a row of checks failed.
    #[error("failed: {failed}; see the summary above")]
    Checks { failed: String },
    /// A file or folder could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// What a program or a file said could not be understood.
    #[error("{what}: {why}")]
    Unreadable { what: String, why: String },
    /// The rules of the house are broken.
    #[error("tidy found {0} fault(s), listed above")]
    Untidy(usize),
    /// Figures are not what they have to be.
    #[error(
        "{0} figure(s) missed what is required, marked in the table above; run it again on a quiet machine"
    )]
    Missed(usize),
    /// A program that a check cannot do without.
    #[error("{0}")]
    Missing(String),
}

impl Error {
    /// Names the file that an I/O error belongs to.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}
