//! [`Stop`]: why the command ends, and its exit code. The codes are documented in the help.

use std::fmt;

/// What the command was asked for is done.
pub(crate) const DONE: u8 = 0;
/// It failed.
pub(crate) const FAILED: u8 = 1;
/// It was called wrongly.
pub(crate) const USAGE: u8 = 2;
/// A limit was reached; there is a partial answer.
pub(crate) const LIMIT: u8 = 3;
/// The request cannot be made to fit.
pub(crate) const CANNOT_FIT: u8 = 4;
/// The model could not be called.
pub(crate) const MODEL: u8 = 5;
/// It was mended as far as that goes, and would still be refused.
pub(crate) const FAULTS_LEFT: u8 = 6;
/// Whoever read its output has gone away; a shell shows the same for a death by SIGPIPE.
pub(crate) const READER_GONE: u8 = 141;
/// Somebody interrupted it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why the command ends before it is done: one sentence that names the cure.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) code: u8,
    pub(crate) text: String,
}

impl Stop {
    pub(crate) fn failed(text: impl fmt::Display) -> Self {
        Self {
            code: FAILED,
            text: text.to_string(),
        }
    }

    pub(crate) fn usage(text: impl fmt::Display) -> Self {
        Self {
            code: USAGE,
            text: text.to_string(),
        }
    }

    pub(crate) fn cannot_fit(text: impl fmt::Display) -> Self {
        Self {
            code: CANNOT_FIT,
            text: text.to_string(),
        }
    }

    pub(crate) fn model(text: impl fmt::Display) -> Self {
        Self {
            code: MODEL,
            text: text.to_string(),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
