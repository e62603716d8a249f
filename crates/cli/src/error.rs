//! [`CliError`]: the error that ends the command, and its exit code. The help documents the codes.

use std::error::Error;
use std::fmt;

use plimsoll::config::ConfigError;
use plimsoll::providers::ProviderError;
use plimsoll::providers::local::LocalError;
use plimsoll::session::BadSessionId;
use plimsoll::store::StoreError;

/// Success.
pub(crate) const DONE: u8 = 0;
/// The command failed.
pub(crate) const FAILED: u8 = 1;
/// Wrong usage.
pub(crate) const USAGE: u8 = 2;
/// A limit was reached; there is a partial answer.
pub(crate) const LIMIT: u8 = 3;
/// The request cannot be made to fit.
pub(crate) const CANNOT_FIT: u8 = 4;
/// The model could not be called.
pub(crate) const MODEL: u8 = 5;
/// The reader of the output closed it. Shells report the same code for a death by SIGPIPE.
pub(crate) const READER_GONE: u8 = 141;
/// The user interrupted the command.
pub(crate) const INTERRUPTED: u8 = 130;

/// The error of a build without workers.
#[cfg(not(feature = "restate"))]
pub(crate) const NO_WORKERS: &str = "this program was built without workers; build it with the \
     feature `restate`: cargo install --path crates/cli --features restate";

/// The error that ends the command: one sentence that names the remedy.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) code: u8,
    pub(crate) text: String,
}

impl CliError {
    fn new(code: u8, text: impl fmt::Display) -> Self {
        let text = text.to_string();
        Self { code, text }
    }

    pub(crate) fn failed(text: impl fmt::Display) -> Self {
        Self::new(FAILED, text)
    }

    pub(crate) fn usage(text: impl fmt::Display) -> Self {
        Self::new(USAGE, text)
    }

    pub(crate) fn cannot_fit(text: impl fmt::Display) -> Self {
        Self::new(CANNOT_FIT, text)
    }

    pub(crate) fn model(text: impl fmt::Display) -> Self {
        Self::new(MODEL, text)
    }
}

/// An error of the library, or of the system, ends the command with its own text.
impl<E: Error + 'static> From<E> for CliError {
    fn from(error: E) -> Self {
        Self::new(code_of(&error), error)
    }
}

fn code_of(error: &(dyn Error + 'static)) -> u8 {
    if let Some(error) = error.downcast_ref::<plimsoll::Error>() {
        return match error {
            plimsoll::Error::EmptyTask | plimsoll::Error::Build(_) | plimsoll::Error::Undo(_) => {
                USAGE
            }
            plimsoll::Error::Store(error) => code_of(error),
            _ => FAILED,
        };
    }
    if let Some(error) = error.downcast_ref::<LocalError>() {
        return match error {
            LocalError::UnknownModel { .. } => USAGE,
            LocalError::DiskFull { .. } | LocalError::File { .. } => FAILED,
            _ => MODEL,
        };
    }
    let is_refused_fork = |error| matches!(error, &StoreError::CannotFork { .. });
    let is_usage = error.is::<BadSessionId>()
        || error.is::<ConfigError>()
        || error.is::<ProviderError>()
        || error.downcast_ref().is_some_and(is_refused_fork);
    if is_usage { USAGE } else { FAILED }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
