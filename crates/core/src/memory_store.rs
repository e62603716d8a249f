//! [`MemoryStore`]: sessions in memory. They are lost when the process ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use plimsoll_agent::Entry;

use crate::error::lock;
use crate::store::{Lease, LogEntry, SessionId, SessionInfo, SessionStore, StoreError};

/// An in-memory store, for tests and for agents whose sessions need not outlive the process.
///
/// A fork is a copy with a log of its own; only the messages are shared.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<MemoryStoreState>>,
}

#[derive(Debug, Default)]
struct MemoryStoreState {
    logs: BTreeMap<SessionId, Log>,
    /// The number of writes to any log.
    writes: u64,
    /// The lease of each session, dead if the session has no writer.
    leases: BTreeMap<SessionId, Weak<()>>,
}

#[derive(Debug, Default)]
struct Log {
    entries: Vec<Entry>,
    /// The number of its last write in the store.
    written: u64,
    /// The title, if it was renamed.
    title: Option<String>,
}

impl Log {
    fn info(&self, id: &SessionId) -> SessionInfo {
        let mut info = SessionInfo::of(id.clone(), &self.entries);
        info.title = self.title.clone().unwrap_or(info.title);
        info
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        let mut inner = lock(&self.inner);
        let lease = inner.leases.entry(session.clone()).or_default();
        if lease.strong_count() > 0 {
            return Err(StoreError::Busy {
                session: session.clone(),
            });
        }
        let guard = Arc::new(());
        *lease = Arc::downgrade(&guard);
        Ok(Lease::new(session.clone(), Box::new(guard)))
    }

    async fn read(
        &self,
        session: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let inner = lock(&self.inner);
        let entries = inner.logs.get(session).map(|log| log.entries.as_slice());
        let page = entries.unwrap_or_default().iter().zip(1..);
        let page = page.skip(usize::try_from(after).unwrap_or(usize::MAX));
        let line = |(entry, n): (&Entry, u64)| LogEntry {
            n,
            at: 0,
            entry: entry.clone(),
        };
        Ok(page.take(limit).map(line).collect())
    }

    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut inner = lock(&self.inner);
        inner.writes += 1;
        let written = inner.writes;
        let log = inner.logs.entry(lease.session().clone()).or_default();
        log.entries.extend_from_slice(entries);
        log.written = written;
        Ok(())
    }

    async fn delete(&self, lease: &Lease) -> Result<bool, StoreError> {
        Ok(lock(&self.inner).logs.remove(lease.session()).is_some())
    }

    async fn rename(&self, session: &SessionId, title: &str) -> Result<bool, StoreError> {
        let mut inner = lock(&self.inner);
        let log = inner.logs.get_mut(session);
        Ok(log.map(|log| log.title = Some(title.to_owned())).is_some())
    }

    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        let inner = lock(&self.inner);
        let mut logs: Vec<_> = inner.logs.iter().collect();
        logs.sort_by_key(|(_, log)| std::cmp::Reverse(log.written));
        Ok(logs.iter().map(|(id, log)| log.info(id)).collect())
    }

    async fn head(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        let inner = lock(&self.inner);
        Ok(inner.logs.get(session).map(|log| log.info(session)))
    }
}
