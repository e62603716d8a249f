//! Errors that stop a chore, with the remedy. Faults in the sources are not errors here; tidy lists
//! them itself.

use std::path::PathBuf;

/// The error that ended a chore.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The program does not exist, or may not be run.
    #[error("could not start `{program}`: {source}")]
    Start {
        program: String,
        source: std::io::Error,
    },
    /// The program failed.
    #[error("`{command}` failed ({status}); its own output above says why")]
    Failed { command: String, status: String },
    /// Some checks failed.
    #[error("failed: {failed}; see the summary above")]
    Checks { failed: String },
    /// A file or folder could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The output of a program, or a file, could not be parsed.
    #[error("{what}: {why}")]
    Unreadable { what: String, why: String },
    /// The sources violate rules of tidy.
    #[error("tidy found {0} fault(s), listed above")]
    Untidy(usize),
    /// Figures miss their requirements.
    #[error(
        "{0} figure(s) missed what is required, marked in the table above; run it again on a quiet machine"
    )]
    Missed(usize),
    /// A program that a check requires is missing.
    #[error("{0}")]
    Missing(String),
}

impl Error {
    /// Adds the path of the file to an I/O error.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}
