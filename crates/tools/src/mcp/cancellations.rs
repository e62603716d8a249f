//! [`PendingCancellations`]: sends the remaining notifications about cancelled calls to a server.
//!
//! They are sent in the background, within a time limit, and their answers are ignored.

use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::lock;

/// Time for the notification about a cancelled call. The server may still have to report the id of its
/// task.
pub const MCP_FAREWELL: Duration = Duration::from_secs(5);

/// The notifications in progress, one for each cancelled call.
#[derive(Default)]
pub(super) struct PendingCancellations(Mutex<JoinSet<()>>);

impl PendingCancellations {
    /// Sends a notification in the background.
    pub(super) fn send(&self, what: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime the connection does not exist either.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut sending = lock(&self.0);
        while sending.try_join_next().is_some() {}
        let what = async move {
            let _ = timeout(MCP_FAREWELL, what).await;
        };
        sending.spawn_on(what, &runtime);
    }

    /// Waits until all notifications are sent.
    pub(super) async fn are_sent(&self) {
        let mut sending = std::mem::take(&mut *lock(&self.0));
        while sending.join_next().await.is_some() {}
    }
}

impl Drop for PendingCancellations {
    fn drop(&mut self) {
        // Notifications in progress may finish.
        lock(&self.0).detach_all();
    }
}
