//! [`LogWrite`]: a write to a session's log. If the run or the session that waits for it is dropped, it
//! goes on in a task of its own.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use plimsoll_agent::Entry;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::store::{Lease, SessionStore, StoreError};

type Written = Result<(), StoreError>;

/// Entries on their way to the store.
pub(crate) struct LogWrite {
    entries: Arc<Vec<Entry>>,
    // Never locked; it lets threads share a session.
    write: Mutex<Option<BoxFuture<'static, Written>>>,
    /// The task that continues the write.
    task: Option<JoinHandle<Written>>,
}

/// Waits for a write. If it is dropped before the end, the write goes on in a task.
struct WriteWait<'a>(&'a mut LogWrite);

impl LogWrite {
    /// Prepares a write. It begins with [`Self::finish`], and keeps the lease until its end, so that
    /// nobody reads the log before that and misses these entries.
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
            write: Mutex::new(Some(write.boxed())),
            task: None,
        }
    }

    /// Waits for the end of the write. If this future is dropped, another call waits again.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn finish(&mut self) -> Result<(), StoreError> {
        if let Some(task) = &mut self.task {
            return task.await.unwrap_or_else(|error| {
                Err(StoreError::Io {
                    path: "the log".to_owned(),
                    why: format!("a write was cut short: {error}"),
                })
            });
        }
        let waiting = WriteWait(self);
        poll_fn(|cx| waiting.0.poll(cx)).await
    }

    /// Returns the entries.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn write(&mut self) -> &mut Option<BoxFuture<'static, Written>> {
        let write = self.write.get_mut();
        write.unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Written> {
        let write = self.write();
        let written = match write {
            Some(write) => write.poll_unpin(cx),
            None => Poll::Ready(Ok(())),
        };
        if written.is_ready() {
            *write = None;
        }
        written
    }
}

impl Drop for WriteWait<'_> {
    fn drop(&mut self) {
        // Without a runtime, the write waits for the next operation on the session.
        if let Ok(runtime) = Handle::try_current()
            && let Some(write) = self.0.write().take()
        {
            self.0.task = Some(runtime.spawn(write));
        }
    }
}
