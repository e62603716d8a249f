//! [`Journal`]: the door to a system that runs the steps of a run durably, on whichever worker lives. The
//! log stays the only truth: a journal has no more than the places in it that each step has reached.

mod chain;
mod run;
mod standing;

use std::fmt;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::store::SessionId;

pub(crate) use chain::LogChain;
pub use run::{JournaledRun, refuse_journaled};

/// The version of what journals contain. A worker refuses a newer one.
pub const JOURNAL_FORMAT: u32 = 1;

/// Where the steps of a run are journaled.
///
/// An implementation hands each step to a system that does it once or, if the worker dies meanwhile, again
/// on another worker, and that gives the result back to every later try of the same run without doing the
/// step again. Whether a step has been done in part is for the log to say, not for the journal.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Returns how the run began: `start` if it begins now, else what was journaled then.
    ///
    /// # Errors
    /// If the journal cannot be read or written.
    async fn begin(&self, start: RunStart) -> Result<RunStart, Error>;

    /// Returns what a step has reached: from the journal if the step is in it, and then `work` is dropped
    /// unpolled, else by doing `work`. Steps are numbered from 1, without a gap.
    ///
    /// # Errors
    /// Those of `work`, and if the journal cannot be read or written.
    async fn step(
        &self,
        number: u64,
        work: BoxFuture<'_, Result<StepEnd, Error>>,
    ) -> Result<StepEnd, Error>;
}

/// A journal that remembers nothing, for runs that stay in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalJournal;

/// A place in a session's log: how many entries precede it, and what they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    /// The entries before it.
    pub entries: u64,
    /// The first 16 bytes, in hexadecimal digits, of BLAKE3 over the digest of one entry less and the
    /// JSON of the last entry. Empty for an empty log.
    pub digest: String,
}

/// How a journaled run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    /// See [`JOURNAL_FORMAT`].
    pub format: u32,
    /// Milliseconds since 1970, by the clock of the worker that began it.
    pub at_ms: u64,
    /// The log before it.
    pub head: LogHead,
}

/// What a step has reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnd {
    /// The log after it.
    pub head: LogHead,
    /// Whether the run has ended.
    pub is_last: bool,
}

/// Why a journal cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalFault {
    /// A newer version began the run.
    #[error(
        "the journal of session {session} has format {found}, and this worker reads up to {JOURNAL_FORMAT}; update it, and stop workers of this version"
    )]
    Newer {
        /// The session.
        session: SessionId,
        /// Its format.
        found: u32,
    },
    /// The log is not the one that the journal was written for.
    #[error(
        "the journal of session {session} names entry {entry}, which the log does not have: {why}; nothing was run. Give the worker the database that the run began with, or cancel the run and begin another"
    )]
    Mismatch {
        /// The session.
        session: SessionId,
        /// The entry's number, from 1.
        entry: u64,
        /// How the two differ.
        why: String,
    },
    /// The system that journals has refused or cancelled a step.
    #[error("the run of session {session} was ended from outside: {why}")]
    Ended {
        /// The session.
        session: SessionId,
        /// What it says.
        why: String,
    },
}

#[async_trait]
impl Journal for LocalJournal {
    async fn begin(&self, start: RunStart) -> Result<RunStart, Error> {
        Ok(start)
    }

    async fn step(
        &self,
        _number: u64,
        work: BoxFuture<'_, Result<StepEnd, Error>>,
    ) -> Result<StepEnd, Error> {
        work.await
    }
}

impl fmt::Display for LogHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.entries, self.digest)
    }
}
