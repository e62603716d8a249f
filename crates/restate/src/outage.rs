//! [`Outages`]: reports that the database of a worker fails, and that it works again. Restate
//! retries the failed steps.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::{Error, StoreError};
use tokio::time::Instant;

/// The shortest time between two reports that the database fails.
const PAUSE: Duration = Duration::from_secs(30);

/// A change in the state of a worker's database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseNews {
    /// The database fails. Reported at the beginning of an outage, and every 30 seconds while it
    /// lasts.
    Fails(StoreError),
    /// The database works again after an outage of this length.
    Works(Duration),
}

/// The kind of a database access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    Write,
}

type Tell = Box<dyn Fn(DatabaseNews) + Send + Sync>;

/// Reports the beginning and the end of each outage, and its continuation at intervals.
#[derive(Default)]
pub(crate) struct Outages {
    tell: Option<Tell>,
    state: Mutex<OutageState>,
}

#[derive(Default)]
struct OutageState {
    outage: Option<Outage>,
    /// The time of the newest report that the database fails.
    reported: Option<Instant>,
}

struct Outage {
    since: Instant,
    /// The kind of access that failed. Reads from a full disk succeed, which does not end the
    /// outage.
    access: Access,
    is_reported: bool,
}

impl Outages {
    pub(crate) fn new(tell: impl Fn(DatabaseNews) + Send + Sync + 'static) -> Self {
        Self {
            tell: Some(Box::new(tell)),
            ..Self::default()
        }
    }

    /// Records the error of a step, if the database caused it.
    pub(crate) fn step_failed(&self, error: &Error) {
        if let Error::Store(error) = error {
            self.failed(Access::Write, error);
        }
    }

    /// Records an error. A session held by another worker is not an error of the database.
    pub(crate) fn failed(&self, access: Access, error: &StoreError) {
        if !matches!(error, StoreError::Io { .. } | StoreError::Full { .. }) {
            return;
        }
        let now = Instant::now();
        let is_due = {
            let mut state = self.lock();
            let is_due = state.reported.is_none_or(|last| now - last >= PAUSE);
            let outage = state.outage.get_or_insert(Outage {
                since: now,
                access,
                is_reported: false,
            });
            outage.access = outage.access.max(access);
            outage.is_reported |= is_due;
            if is_due {
                state.reported = Some(now);
            }
            is_due
        };
        if let (true, Some(tell)) = (is_due, &self.tell) {
            tell(DatabaseNews::Fails(error.clone()));
        }
    }

    /// Records a successful access.
    pub(crate) fn worked(&self, access: Access) {
        let ended = self
            .lock()
            .outage
            .take_if(|outage| access >= outage.access)
            .filter(|outage| outage.is_reported);
        if let (Some(outage), Some(tell)) = (ended, &self.tell) {
            tell(DatabaseNews::Works(outage.since.elapsed()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Creates outages that record their reports as words.
    fn outages() -> (Outages, Arc<Mutex<Vec<String>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let outages = Outages::new(move |news| {
            let word = match news {
                DatabaseNews::Fails(_) => "fails".to_owned(),
                DatabaseNews::Works(after) => format!("works after {} s", after.as_secs()),
            };
            kept.lock().unwrap().push(word);
        });
        (outages, told)
    }

    fn away() -> StoreError {
        StoreError::Io {
            path: "db".to_owned(),
            why: "it is away".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_reported_now_and_then_and_once_it_is_over() {
        let (outages, told) = outages();
        outages.worked(Access::Read);
        for _ in 0..45 {
            outages.failed(Access::Read, &away());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        for _ in 0..3 {
            outages.worked(Access::Read);
        }
        let told = told.lock().unwrap().clone();
        assert_eq!(told, ["fails", "fails", "works after 45 s"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_that_comes_and_goes_does_not_flood_the_log() {
        let (outages, told) = outages();
        for _ in 0..100 {
            outages.failed(Access::Read, &away());
            outages.worked(Access::Read);
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert_eq!(*told.lock().unwrap(), ["fails", "works after 0 s"]);
    }

    #[tokio::test(start_paused = true)]
    async fn that_a_full_disk_can_be_read_does_not_end_the_outage() {
        let (outages, told) = outages();
        let path = "db".to_owned();
        outages.step_failed(&Error::Store(StoreError::Full { path }));
        outages.worked(Access::Read);
        assert_eq!(*told.lock().unwrap(), ["fails"]);
        outages.worked(Access::Write);
        assert_eq!(*told.lock().unwrap(), ["fails", "works after 0 s"]);
    }

    #[test]
    fn a_session_that_another_worker_has_is_no_outage() {
        let (outages, told) = outages();
        let session = plimsoll_core::SessionId::new("s").unwrap();
        outages.step_failed(&Error::Store(StoreError::LeaseLost { session }));
        outages.step_failed(&Error::Stale);
        assert!(told.lock().unwrap().is_empty());
    }
}
