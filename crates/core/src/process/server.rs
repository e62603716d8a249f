//! [`ServerProcess`]: a child that runs in the background until it is stopped, such as the server
//! of a local model. It is not restarted automatically.

use super::capture::CapturedOutput;
use super::group::{Group, Signal};
use super::{CapturedPipe, DRAIN, GRACE, ProcessEnd};

/// A running server. Dropping it kills its whole group.
#[derive(Debug)]
pub struct ServerProcess {
    pub(super) group: Group,
    pub(super) log: CapturedPipe,
}

impl ServerProcess {
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
        let _ = tokio::time::timeout(DRAIN, self.log.ended()).await;
    }

    /// Returns the newest output.
    #[must_use]
    pub fn log(&self) -> CapturedOutput {
        self.log.so_far()
    }

    /// Asks the server to end, and kills it after [`GRACE`].
    pub async fn stop(self) -> Option<ProcessEnd> {
        self.group.signal(Signal::TERM);
        let _ = tokio::time::timeout(GRACE, self.group.exited()).await;
        self.group.end().await.ok().map(ProcessEnd::of)
    }
}
