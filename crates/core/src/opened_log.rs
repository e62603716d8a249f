//! [`OpenedLog`]: the state of a stored session, from its newest checkpoint and the entries after it, or
//! from its whole log.

use plimsoll_agent::{Checkpoint, Entry, FoldError, Setup, State};

use crate::error::Error;
use crate::session::Session;
use crate::store::{ResumePoint, SessionId, SessionStore};

/// Number of new entries after which the end of a run stores a checkpoint.
///
/// Opening a session reads at most this many entries more than the session's longest run has. Reading
/// and folding them takes a few milliseconds, as long as storing a checkpoint.
pub const CHECKPOINT_EVERY: u64 = 500;

/// The state of a stored session.
pub(crate) struct OpenedLog {
    pub(crate) state: State,
    pub(crate) length: LogLength,
    /// The whole log, if it had to be read.
    pub(crate) log: Option<Vec<Entry>>,
}

/// The length of a session's log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogLength {
    /// Number of stored entries.
    pub(crate) entries: u64,
    /// Number of entries that the newest checkpoint covers.
    covered: u64,
}

impl OpenedLog {
    /// Reads the state of a session for runs with this setup: after its first `at` entries, or after
    /// all.
    pub(crate) async fn read(
        store: &dyn SessionStore,
        session: &SessionId,
        at: Option<u64>,
        setup: &Setup,
    ) -> Result<Self, Error> {
        let ResumePoint {
            checkpoint,
            entries,
        } = store.resume(session).await?;
        let Some(checkpoint) = checkpoint else {
            return Ok(Self::of(entries, at, setup)?);
        };
        if let Some(rest) = at.unwrap_or(u64::MAX).checked_sub(checkpoint.entries)
            && let Some(opened) = Self::after(&checkpoint, first(&entries, Some(rest)), setup)
        {
            return Ok(opened);
        }
        let log = store.load(session).await?;
        Ok(Self::of(log, at, setup)?)
    }

    /// Folds the first entries of a log, or all.
    fn of(log: Vec<Entry>, at: Option<u64>, setup: &Setup) -> Result<Self, FoldError> {
        let folded = first(&log, at);
        let mut state = State::for_setup(setup);
        folded.iter().try_for_each(|entry| state.absorb(entry))?;
        let length = LogLength {
            entries: folded.len() as u64,
            covered: 0,
        };
        Ok(Self {
            state,
            length,
            log: Some(log),
        })
    }

    /// Returns `None` if the checkpoint cannot be used, or if the entries do not continue it.
    fn after(checkpoint: &Checkpoint, rest: &[Entry], setup: &Setup) -> Option<Self> {
        let mut state = State::restore(checkpoint, setup)?;
        let mut rest_of_log = rest.iter();
        rest_of_log.try_for_each(|entry| state.absorb(entry)).ok()?;
        let length = LogLength {
            entries: checkpoint.entries.saturating_add(rest.len() as u64),
            covered: checkpoint.entries,
        };
        Some(Self {
            state,
            length,
            log: None,
        })
    }
}

/// Returns the first entries of a log, or all.
fn first(log: &[Entry], at: Option<u64>) -> &[Entry] {
    let at = at.and_then(|at| usize::try_from(at).ok());
    at.and_then(|at| log.get(..at)).unwrap_or(log)
}

/// Stores a checkpoint of a session between two runs, if the log has grown enough since the last one.
///
/// A failure costs nothing but time when the session is opened, so it is not reported.
pub(crate) async fn store_checkpoint(session: &mut Session) {
    let LogLength { entries, covered } = session.length;
    let is_written = !session.stale && session.writing.is_none() && session.pending.is_empty();
    // A journaled run that failed continues from its log.
    let is_between_runs = is_written && !session.run.is_running();
    if !is_between_runs || entries.saturating_sub(covered) < CHECKPOINT_EVERY {
        return;
    }
    // If it cannot be stored, the next attempt is made after as many entries again.
    session.length.covered = entries;
    if let Some(checkpoint) = session.run.state().checkpoint(entries) {
        let store = &session.parts.store;
        let _ = store.save_checkpoint(&session.lease, &checkpoint).await;
    }
}
