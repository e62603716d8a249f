//! [`Error`]: why a call of the library gave no answer. A run that a limit, a person or a hook ended is
//! no error: its output says so.

use plimsoll_agent::{CompactError, EndReason, FoldError, PinError, UndoError};

use crate::journal::JournalFault;
use crate::session::AgentOutput;
use crate::store::StoreError;

/// Why a run could not begin, or why its model could not be called.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
    /// The journal of a run cannot be followed.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// An earlier write failed, so what is in memory is ahead of the log.
    #[error(
        "an earlier write to this session failed; open it again to carry on from what was written"
    )]
    Stale,
    /// The model could not be called: it was not reached, refused the request, or the request does not
    /// fit its window ([`EndReason::Failed`] and [`EndReason::CannotFit`]). There is no answer. The
    /// output has the reason, what the run used so far, and the session, which can be continued.
    #[error("{}", cause(.0))]
    Failed(Box<AgentOutput>),
}

impl Error {
    /// Returns `true` if the same call may succeed later, or on another worker: another process has the
    /// session, the store cannot be reached or is full, or a newer version began the run.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        use StoreError::{Archive, Busy, Full, Io, LeaseLost};
        matches!(
            self,
            Self::Stale
                | Self::Journal(JournalFault::Newer { .. })
                | Self::Store(
                    Busy { .. } | LeaseLost { .. } | Full { .. } | Io { .. } | Archive { .. }
                )
        )
    }

    /// Returns the output of a run whose model could not be called, or else the error.
    ///
    /// `session.run(task).await.or_else(Error::into_output)` treats such a run like any other that ended
    /// without an answer; [`AgentOutput::reason`] says why.
    ///
    /// # Errors
    /// If the error is not [`Error::Failed`].
    pub fn into_output(self) -> Result<AgentOutput, Self> {
        match self {
            Self::Failed(output) => Ok(*output),
            other => Err(other),
        }
    }
}

fn cause(output: &AgentOutput) -> String {
    match &output.reason {
        EndReason::Failed { failure } => failure.to_string(),
        EndReason::CannotFit { cannot_fit } => cannot_fit.to_string(),
        other => other.word().to_owned(),
    }
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
