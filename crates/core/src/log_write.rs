//! [`LogWrite`]: a write to a session's log. It belongs to the session, not to the future that began
//! it: if a run is dropped in the middle of a write, the next operation on the session finishes it.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use plimsoll_agent::Entry;

use crate::store::{Lease, SessionStore, StoreError};

/// Entries on their way to the store.
pub(crate) struct LogWrite {
    entries: Arc<Vec<Entry>>,
    // Never locked; it lets threads share a session.
    written: Mutex<BoxFuture<'static, Result<(), StoreError>>>,
}

impl LogWrite {
    /// Prepares a write. It begins with [`Self::finish`].
    pub(crate) fn new(
        store: Arc<dyn SessionStore>,
        lease: Arc<Lease>,
        entries: Vec<Entry>,
    ) -> Self {
        let entries = Arc::new(entries);
        let taken = Arc::clone(&entries);
        let written = async move { store.append(&lease, &taken).await };
        Self {
            entries,
            written: Mutex::new(written.boxed()),
        }
    }

    /// Waits for the end of the write. If this future is dropped, another call continues.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn finish(&mut self) -> Result<(), StoreError> {
        let written = self.written.get_mut();
        written.unwrap_or_else(PoisonError::into_inner).await
    }

    /// Returns the entries.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
