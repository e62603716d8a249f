//! [`Error`]: what keeps a run from being had at all. A run that is had and fails has an outcome.

use plimsoll_agent::{CompactError, FoldError, PinError, UndoError};

use crate::store::StoreError;

/// Why a run could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The task says nothing.
    #[error("the task is empty; say what the agent is to do")]
    EmptyTask,
    /// The agent's settings are faulty: all faults at once.
    #[error("{}", list(.0))]
    Build(Vec<String>),
    /// The log could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something cannot be pinned.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// There is no run to undo.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// Nothing can be planned now.
    #[error(transparent)]
    Compact(#[from] CompactError),
    /// The log does not fold.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// An earlier write failed, so what is in memory is ahead of the log.
    #[error(
        "an earlier write to this session failed; open it again to carry on from what was written"
    )]
    Stale,
}

fn list(faults: &[String]) -> String {
    match faults {
        [one] => one.clone(),
        many => format!(
            "{} settings are faulty:\n- {}",
            many.len(),
            many.join("\n- ")
        ),
    }
}
