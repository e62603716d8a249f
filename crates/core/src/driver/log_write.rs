//! Writes the recorded entries of a session to its log. If the run or the session that waits for a
//! write is dropped, the write goes on in a task of its own.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use plimsoll_agent::Entry;
use tokio::runtime::Handle;

use crate::error::Error;
use crate::session::Session;
use crate::store::StoreError;

/// A write that several tasks can wait for. Each of them carries it on, so it does not depend on the
/// runtime of the others.
type SharedWrite = Shared<BoxFuture<'static, Result<(), StoreError>>>;

/// Entries on their way to the store.
pub(crate) struct LogWrite {
    entries: Arc<Vec<Entry>>,
    write: SharedWrite,
}

/// Waits for a write. If it is dropped before the end, the write goes on in a task.
struct WriteWait(SharedWrite);

/// Writes the recorded entries to the store.
pub(super) async fn flush(session: &mut Session) -> Result<(), Error> {
    finish_write(session).await?;
    if session.pending.is_empty() {
        return Ok(());
    }
    session.writing = Some(LogWrite::new(session));
    finish_write(session).await
}

/// Finishes a write to the log, if one was begun.
pub(super) async fn finish_write(session: &mut Session) -> Result<(), Error> {
    let Some(writing) = &session.writing else {
        return Ok(());
    };
    let result = writing.finish().await;
    // After a failed write, the session is ahead of its log, whatever is written later.
    session.stale |= result.is_err();
    let Some(written) = session.writing.take() else {
        return Ok(());
    };
    result?;
    let entries = &*written.entries;
    session.entries += entries.len() as u64;
    session.reached |= entries.iter().any(is_point);
    if let Some(chain) = &mut session.chain {
        chain.extend(entries);
    }
    if let Some(log) = &mut session.log {
        log.extend_from_slice(entries);
    }
    Ok(())
}

/// Checks whether another process that continues from here would have less work to do than before.
pub(super) fn is_point(entry: &Entry) -> bool {
    match entry {
        Entry::Reply { .. } | Entry::ToolResult { .. } | Entry::Summarized { .. } => true,
        // The notice that it was cut off follows a text.
        Entry::PartialReply { message, .. } => message.parts().is_empty(),
        _ => false,
    }
}

impl LogWrite {
    /// Prepares a write of the entries that the machine has recorded. It begins with
    /// [`Self::finish`], and keeps the lease until its end, so that nobody reads the log before that
    /// and misses these entries.
    fn new(session: &mut Session) -> Self {
        let store = Arc::clone(&session.parts.store);
        let lease = Arc::clone(&session.lease);
        let entries = Arc::new(std::mem::take(&mut session.pending));
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
