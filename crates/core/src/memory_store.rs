//! [`MemoryStore`]: sessions in memory. They are lost when the process ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_context::Bytes;

use crate::error::lock;
use crate::store::{
    Fork, ForkFault, Lease, LogEntry, SessionId, SessionInfo, SessionStore, StoreError,
};

/// An in-memory store, for tests and for agents whose sessions need not outlive the process.
///
/// A fork copies the entries of its parent, which share their messages.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<MemoryStoreState>>,
}

#[derive(Debug, Default)]
struct MemoryStoreState {
    logs: BTreeMap<SessionId, Log>,
    /// The number of writes to any log.
    writes: u64,
    leased: BTreeSet<SessionId>,
}

#[derive(Debug, Default)]
struct Log {
    entries: Vec<Entry>,
    /// The parent, if it is a fork, and how many forks it descends from.
    fork: Option<Fork>,
    depth: u64,
    /// Size of the entries as JSON, without those of the parent.
    bytes: Bytes,
    /// The number of its last write in the store.
    written: u64,
    /// The title, if it was renamed.
    title: Option<String>,
}

struct MemoryGuard {
    inner: Arc<Mutex<MemoryStoreState>>,
    session: SessionId,
}

impl Log {
    fn add(&mut self, entries: &[Entry], written: u64) {
        self.entries.extend_from_slice(entries);
        // An entry that cannot be serialized has no size.
        let sizes = entries.iter().flat_map(serde_json::to_vec);
        self.bytes.0 += sizes.map(|json| json.len() as u64).sum::<u64>();
        self.written = written;
    }

    fn info(&self, id: &SessionId) -> SessionInfo {
        let title = self.title.clone();
        SessionInfo {
            id: id.clone(),
            created: 0,
            updated: 0,
            entries: self.entries.len() as u64,
            bytes: self.bytes,
            title: title.unwrap_or_else(|| SessionInfo::title_of(&self.entries)),
            fork: self.fork.clone(),
        }
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        if !lock(&self.inner).leased.insert(session.clone()) {
            return Err(StoreError::Busy {
                session: session.clone(),
            });
        }
        let guard = MemoryGuard {
            inner: Arc::clone(&self.inner),
            session: session.clone(),
        };
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
        log.add(entries, written);
        Ok(())
    }

    async fn fork(&self, lease: &Lease, of: &Fork, own: &[Entry]) -> Result<(), StoreError> {
        let mut inner = lock(&self.inner);
        let session = lease.session().clone();
        if inner.logs.contains_key(&session) {
            return Err(of.refused(ForkFault::Taken { session }));
        }
        let Some(parent) = inner.logs.get(&of.from) else {
            return Err(of.refused(ForkFault::Unknown));
        };
        of.check(parent.entries.len() as u64, parent.depth)?;
        let shared = usize::try_from(of.entries).unwrap_or(usize::MAX);
        let mut log = Log {
            entries: parent.entries.iter().take(shared).cloned().collect(),
            fork: Some(of.clone()),
            depth: parent.depth + 1,
            ..Log::default()
        };
        inner.writes += 1;
        log.add(own, inner.writes);
        inner.logs.insert(session, log);
        Ok(())
    }

    async fn delete(&self, lease: &Lease) -> Result<bool, StoreError> {
        let mut inner = lock(&self.inner);
        let session = lease.session();
        let is_fork = |log: &Log| log.fork.as_ref().is_some_and(|of| of.from == *session);
        let forks = inner.logs.iter().filter(|(_, log)| is_fork(log));
        let forks: Vec<SessionId> = forks.map(|(id, _)| id.clone()).collect();
        if !forks.is_empty() {
            let session = session.clone();
            return Err(StoreError::HasForks { session, forks });
        }
        Ok(inner.logs.remove(session).is_some())
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

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        let mut inner = lock(&self.inner);
        inner.leased.remove(&self.session);
    }
}
