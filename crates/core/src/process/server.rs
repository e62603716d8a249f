//! [`ServerProcess`]: a child that runs in the background until it is stopped, such as the server
//! of a local model. It is not restarted automatically.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::task::AbortOnDropHandle;

use super::capture::{Capture, CapturedOutput};
use super::group::{Group, Signal};
use super::{DRAIN, GRACE, PipeReader, ProcessEnd};

/// A running server. Dropping it kills its whole group.
#[derive(Debug)]
pub struct ServerProcess {
    group: Group,
    log: Arc<Mutex<Capture>>,
    /// Reads the output. It ends with the handle.
    reading: AbortOnDropHandle<()>,
}

impl ServerProcess {
    pub(super) fn new(group: Group, mut reader: PipeReader, log: Capture) -> Self {
        let log = Arc::new(Mutex::new(log));
        let shared = Arc::clone(&log);
        let task = tokio::spawn(async move {
            reader.read(|bytes| lock(&shared).push(bytes)).await;
        });
        Self {
            group,
            log,
            reading: AbortOnDropHandle::new(task),
        }
    }

    /// Returns the process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Returns `true` if the server is still running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !self.group.has_exited()
    }

    /// Waits until the server has ended. The log then contains its last output.
    pub async fn exited(&mut self) {
        self.group.exited().await;
        if !self.reading.is_finished() {
            // A background process may hold the pipe, so this wait is limited.
            let _ = tokio::time::timeout(DRAIN, &mut self.reading).await;
        }
    }

    /// Returns the newest output.
    #[must_use]
    pub fn log(&self) -> CapturedOutput {
        lock(&self.log).so_far()
    }

    /// Asks the server to end, and kills it after [`GRACE`].
    pub async fn stop(self) -> Option<ProcessEnd> {
        self.group.signal(Signal::TERM);
        let _ = tokio::time::timeout(GRACE, self.group.exited()).await;
        self.group.end().await.ok().map(ProcessEnd::of)
    }
}

/// Locks the log. No code panics while holding the lock, so the log is always consistent.
fn lock(log: &Mutex<Capture>) -> MutexGuard<'_, Capture> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
