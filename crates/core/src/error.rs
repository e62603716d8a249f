//! [`Error`]: why a call of the library returned no answer. A run that ends because of a limit, a
//! user or a hook is not an error; see its output.

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::{CompactError, EndReason, FoldError, PinError, UndoError};
use plimsoll_context::SettingFault;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::journal::JournalFault;
use crate::output::AgentOutput;
use crate::store::StoreError;

/// The reason why a run could not begin or its model could not be called.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The task is empty.
    #[error("the task is empty; describe what the agent should do")]
    EmptyTask,
    /// The agent's settings are invalid; contains all faults.
    #[error("{}", list(.0))]
    Build(Vec<SettingFault>),
    /// The log could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The message cannot be pinned.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// There is no run to undo.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// No compaction is possible now.
    #[error(transparent)]
    Compact(#[from] CompactError),
    /// The log is invalid.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The journal of a run is unusable.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// An earlier write failed, so the session in memory is ahead of its log.
    #[error(
        "an earlier write to this session failed; open it again to continue from the last written \
         entry"
    )]
    Stale,
    /// The model could not be called: it was unreachable, rejected the request, or the request does
    /// not fit its window ([`EndReason::Failed`] and [`EndReason::CannotFit`]). There is no answer.
    /// The output contains the reason, the usage so far, and the session, which can be continued.
    #[error("{}", cause(.0))]
    Failed(Box<AgentOutput>),
}

impl Error {
    /// Returns `true` if the same call may succeed later or on another worker: another process has
    /// the session, the store is unreachable or full, or a newer version began the run.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        use StoreError::{Busy, Full, Io, LeaseLost};
        matches!(
            self,
            Self::Stale
                | Self::Journal(JournalFault::Newer { .. })
                | Self::Store(Busy { .. } | LeaseLost { .. } | Full { .. } | Io { .. })
        )
    }

    /// Returns the output of a run whose model could not be called, or else the error.
    ///
    /// `session.run(task).await.or_else(Error::into_output)` treats such a run like any other
    /// without an answer; [`Outcome::reason`](plimsoll_agent::Outcome::reason) contains the cause.
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

/// Locks a mutex, even if a holder has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the message of a panic in the host's code.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

/// Awaits work of the host. The error is the message of a panic.
pub(crate) async fn contained<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.map_err(|panic| panic_message(&*panic))
}

/// Awaits work of the host in its own task, so that neither a panic nor a thread that it blocks stops
/// the caller. Returns `None` after the timeout. The error is the message of a panic.
pub(crate) async fn in_own_task<T: Send + 'static>(
    timeout: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<Result<T, String>> {
    let mut task = JoinSet::new();
    task.spawn(work.in_current_span());
    Some(
        match tokio::time::timeout(timeout, task.join_next()).await.ok()? {
            Some(Ok(done)) => Ok(done),
            Some(Err(error)) if error.is_panic() => Err(panic_message(&*error.into_panic())),
            _ => Err("it was stopped".to_owned()),
        },
    )
}

fn cause(output: &AgentOutput) -> String {
    match &output.reason {
        EndReason::Failed { failure } => failure.to_string(),
        EndReason::CannotFit { cannot_fit } => cannot_fit.to_string(),
        other => other.word().to_owned(),
    }
}

fn list(faults: &[SettingFault]) -> String {
    let texts: Vec<String> = faults.iter().map(SettingFault::to_string).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!(
            "{} settings are faulty:\n- {}",
            many.len(),
            many.join("\n- ")
        ),
    }
}
