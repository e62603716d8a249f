//! [`LogWrite`]: entries on their way to the log. If the run or the session that waits for a write is
//! dropped, the write goes on in a task of its own.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use plimsoll_agent::Entry;
use tokio::runtime::Handle;

use crate::store::{Lease, SessionStore, StoreError};

/// A write that several tasks can wait for. Each of them carries it on, so it does not depend on the
/// runtime of the others.
type SharedWrite = Shared<BoxFuture<'static, Result<(), StoreError>>>;

/// Entries on their way to the store.
pub(crate) struct LogWrite {
    pub(crate) entries: Arc<Vec<Entry>>,
    write: SharedWrite,
}

/// Waits for a write. If it is dropped before the end, the write goes on in a task.
struct WriteWait(SharedWrite);

impl LogWrite {
    /// Prepares a write of the entries that the machine has recorded. It begins with
    /// [`Self::finish`], and keeps the lease until its end, so that nobody reads the log before that
    /// and misses these entries.
    pub(crate) fn new(
        store: Arc<dyn SessionStore>,
        lease: Arc<Lease>,
        entries: Vec<Entry>,
    ) -> Self {
        let entries = Arc::new(entries);
        let taken = Arc::clone(&entries);
        let write = async move { store.append(&lease, &taken).await };
        Self {
            entries,
            write: write.boxed().shared(),
        }
    }

    /// Waits for the end of the write. If this future is dropped, another call waits again.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn finish(&self) -> Result<(), StoreError> {
        let waiting = WriteWait(self.write.clone());
        waiting.0.clone().await
    }
}

impl Drop for WriteWait {
    fn drop(&mut self) {
        if self.0.peek().is_some() || std::thread::panicking() {
            return;
        }
        // Without a runtime, the write waits for the next operation on the session.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.0.clone());
        }
    }
}
