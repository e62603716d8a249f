//! [`LogWrite`]: entries on their way to the log. A write that takes time has a task of its own and goes
//! on if the run or the session that waits for it is dropped.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{Either, Ready, ready};
use plimsoll_agent::Entry;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument;

use crate::store::{Lease, SessionStore, StoreError};

/// The result of a write, or the task that will have it.
type Write = Either<Ready<Result<Written, JoinError>>, JoinHandle<Written>>;
type Written = Result<(), StoreError>;

/// Entries on their way to the store.
pub(crate) struct LogWrite {
    pub(crate) entries: Arc<Vec<Entry>>,
    write: Write,
}

impl LogWrite {
    /// Begins a write of the entries that the machine has recorded. It keeps the lease until its end,
    /// so that nobody reads the log before that and misses these entries.
    pub(crate) fn new(
        store: Arc<dyn SessionStore>,
        lease: Arc<Lease>,
        entries: Vec<Entry>,
    ) -> Self {
        let entries = Arc::new(entries);
        let taken = Arc::clone(&entries);
        let write = async move { store.append(&lease, &taken).await };
        let mut write = write.in_current_span().boxed();
        let write = match (&mut write).now_or_never() {
            Some(written) => Either::Left(ready(Ok(written))),
            None => Either::Right(tokio::spawn(write)),
        };
        Self { entries, write }
    }

    /// Waits for the end of the write. If this future is dropped, another call waits again.
    ///
    /// # Errors
    /// If the store fails, or its runtime ended before the write.
    pub(crate) async fn finish(&mut self) -> Written {
        let written = (&mut self.write).await;
        written.unwrap_or_else(|error| {
            Err(StoreError::Io {
                path: "the log".to_owned(),
                why: format!("writing it was cut short ({error})"),
            })
        })
    }
}
