//! [`Outages`]: reports that the database of a worker fails. Restate retries the failed steps.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_core::{Error, StoreError};
use tokio::time::Instant;

/// The shortest time between two reports.
const PAUSE: Duration = Duration::from_secs(30);

/// Receives the errors of a failing database.
pub type OnDatabase = Box<dyn Fn(&StoreError) + Send + Sync>;

/// Reports an error of the database at once, and while it lasts at intervals.
#[derive(Default)]
pub(crate) struct Outages {
    tell: Option<OnDatabase>,
    reported: Mutex<Option<Instant>>,
}

impl Outages {
    pub(crate) fn new(tell: Option<OnDatabase>) -> Self {
        Self {
            tell,
            reported: Mutex::default(),
        }
    }

    /// Records the error of a step, if the database caused it.
    pub(crate) fn step_failed(&self, error: &Error) {
        if let Error::Store(error) = error {
            self.failed(error);
        }
    }

    /// Records an error. A session held by another worker is not an error of the database.
    pub(crate) fn failed(&self, error: &StoreError) {
        let is_of_database = matches!(error, StoreError::Io { .. } | StoreError::Full { .. });
        let Some(tell) = self.tell.as_ref().filter(|_| is_of_database) else {
            return;
        };
        let is_due = {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = reported.is_none_or(|last| last.elapsed() >= PAUSE);
            if is_due {
                *reported = Some(Instant::now());
            }
            is_due
        };
        if is_due {
            tell(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn outages() -> (Outages, Arc<AtomicU32>) {
        let told = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&told);
        let tell: OnDatabase = Box::new(move |_| _ = count.fetch_add(1, Ordering::SeqCst));
        (Outages::new(Some(tell)), told)
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_reported_at_once_and_every_half_minute() {
        let (outages, told) = outages();
        let path = "db".to_owned();
        let error = Error::Store(StoreError::Full { path });
        for _ in 0..45 {
            outages.step_failed(&error);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(told.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_session_that_another_worker_has_is_no_outage() {
        let (outages, told) = outages();
        let session = plimsoll_core::SessionId::new("s").unwrap();
        outages.step_failed(&Error::Store(StoreError::LeaseLost { session }));
        outages.step_failed(&Error::Stale);
        assert_eq!(told.load(Ordering::SeqCst), 0);
    }
}
