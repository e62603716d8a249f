//! Errors that end a measurement, with the remedy.

use std::path::PathBuf;

/// The error that ended a measurement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program did not run.
    #[error("`{0}` failed; its own output above says why")]
    Failed(&'static str),
    /// A file or folder could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The output of a program, or a file, could not be parsed.
    #[error("{what}: {why}")]
    Unreadable { what: String, why: String },
    /// Figures miss their requirements.
    #[error("{0} figure(s) missed what is required, marked in the table above")]
    Missed(usize),
}

impl Error {
    /// Adds the path of the file to an I/O error.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}
