//! [`Server`]: a child that runs beside us until it is stopped, such as a local model's server.
//! It is not restarted: whoever needs it asks whether it still runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinHandle;

use super::capture::{Capture, Captured};
use super::group::{Group, Signal};
use super::{DRAIN, Ended, GRACE, Reader};

/// A running server. Dropping it kills it and all that it has started.
#[derive(Debug)]
pub struct Server {
    group: Group,
    log: Arc<Mutex<Capture>>,
    reading: Reading,
}

impl Server {
    pub(super) fn new(group: Group, mut reader: Reader, log: Capture) -> Self {
        let log = Arc::new(Mutex::new(log));
        let shared = Arc::clone(&log);
        let task = tokio::spawn(async move {
            reader.read(|bytes| lock(&shared).push(bytes)).await;
        });
        Self {
            group,
            log,
            reading: Reading(task),
        }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !self.group.has_exited()
    }

    /// Returns once it has ended; its last words are then in the log.
    pub async fn exited(&mut self) {
        self.group.exited().await;
        if !self.reading.0.is_finished() {
            // The pipe may be held by one that it left behind: that is not awaited for ever.
            let _ = tokio::time::timeout(DRAIN, &mut self.reading.0).await;
        }
    }

    /// The newest of what it printed.
    #[must_use]
    pub fn log(&self) -> Captured {
        lock(&self.log).so_far()
    }

    /// Asks it to end, and kills it where it does not within [`GRACE`].
    pub async fn stop(self) -> Option<Ended> {
        self.group.signal(Signal::TERM);
        let _ = tokio::time::timeout(GRACE, self.group.exited()).await;
        self.group.end().await.ok().map(Ended::of)
    }
}

/// The task that reads what a server prints; it ends with the server's handle.
#[derive(Debug)]
struct Reading(JoinHandle<()>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Nothing that panics is done under the lock, so that the log is whole whatever happened.
fn lock(log: &Mutex<Capture>) -> MutexGuard<'_, Capture> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
