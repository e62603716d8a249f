//! [`Journal`]: the extension trait for systems that execute the steps of a run durably on any
//! worker.
//!
//! The log remains the source of truth. A journal only records the position in the log after each
//! step.

mod chain;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::store::SessionId;

pub(crate) use chain::LogChain;

/// The version of the journal format. Workers reject newer versions.
pub const JOURNAL_FORMAT: u32 = 1;

/// A journal of the steps of a run.
///
/// An implementation passes each step to a system that executes it once or, if the worker dies
/// meanwhile, again on another worker. When the same run is repeated, the system returns the
/// recorded result without executing the step again. The log, not the journal, tells whether a step
/// was partly executed.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Returns the beginning of the run: the recorded one, or else `start`.
    ///
    /// # Errors
    /// If the journal cannot be read or written.
    async fn begin(&self, start: RunStart) -> Result<RunStart, Error>;

    /// Returns the result of a step. If the journal contains the step, `work` is dropped without
    /// being polled. Otherwise, `work` is executed. Steps are numbered from 1 without gaps.
    ///
    /// # Errors
    /// If `work` fails, or the journal cannot be read or written.
    async fn step(
        &self,
        number: u64,
        work: BoxFuture<'_, Result<StepEnd, Error>>,
    ) -> Result<StepEnd, Error>;
}

/// A journal that records nothing, for runs that stay in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalJournal;

/// A position in a session's log and a digest of the entries before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    /// Number of entries before the position.
    pub entries: u64,
    /// The first 16 bytes, as hexadecimal digits, of BLAKE3 over the digest of the previous
    /// position and the JSON of the last entry. Empty for an empty log.
    pub digest: String,
}

/// The beginning of a journaled run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    /// The journal format; see [`JOURNAL_FORMAT`].
    pub format: u32,
    /// Start time in milliseconds since 1970, by the clock of the worker that began the run.
    pub at_ms: u64,
    /// The log before the run.
    pub head: LogHead,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnd {
    /// The log after the step.
    pub head: LogHead,
    /// Whether the run has ended.
    pub is_last: bool,
}

/// The reason why a journal is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalFault {
    /// The run was begun by a newer version.
    #[error(
        "the journal of session {session} has format {found}, and this worker reads up to {JOURNAL_FORMAT}; update it, and stop workers of this version"
    )]
    Newer {
        /// The session.
        session: SessionId,
        /// The format of the journal.
        found: u32,
    },
    /// The journal belongs to another log.
    #[error(
        "the journal of session {session} names entry {entry}, which the log does not contain: \
         {why}; nothing was run. Give the worker the database that the run started with, or \
         cancel the run and begin another"
    )]
    Mismatch {
        /// The session.
        session: SessionId,
        /// Number of the entry, from 1.
        entry: u64,
        /// The difference between log and journal.
        why: String,
    },
    /// The journaling system has rejected or cancelled a step.
    #[error("the run of session {session} was ended from outside: {why}")]
    Ended {
        /// The session.
        session: SessionId,
        /// The message from the system.
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
