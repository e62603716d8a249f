//! [`MemoryStore`]: sessions in memory. They are lost when the process ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_context::Bytes;

use crate::store::{
    Fork, ForkFault, Lease, LogEntry, SessionId, SessionInfo, SessionStore, StoreError,
};

/// An in-memory store, for tests and for agents whose sessions need not outlive the process.
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
    /// The parent and the shared beginning, if it is a fork.
    fork: Option<Fork>,
    /// Its own entries, after the shared ones.
    own: Vec<Entry>,
    /// Size of its own entries as JSON.
    bytes: Bytes,
    /// The number of its last write in the store.
    written: u64,
    /// The title, if it was renamed.
    title: Option<String>,
}

/// A session in a chain of forks, and the part of it that is visible.
struct LogAncestor<'a> {
    log: &'a Log,
    /// Number of its visible entries.
    entries: u64,
}

struct MemoryGuard {
    inner: Arc<Mutex<MemoryStoreState>>,
    session: SessionId,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, MemoryStoreState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn shared(&self) -> u64 {
        self.fork.as_ref().map_or(0, |fork| fork.entries)
    }

    fn add(&mut self, entries: &[Entry]) {
        self.own.extend_from_slice(entries);
        // An entry that cannot be serialized has no size.
        let sizes = entries.iter().flat_map(serde_json::to_vec);
        self.bytes.0 += sizes.map(|json| json.len() as u64).sum::<u64>();
    }

    fn len(&self) -> u64 {
        self.shared() + self.own.len() as u64
    }
}

impl MemoryStoreState {
    /// Returns the session, followed by the sessions it was forked from. Empty if it has no log.
    fn kin<'a>(&'a self, session: &SessionId) -> Vec<LogAncestor<'a>> {
        let mut kin: Vec<LogAncestor> = Vec::new();
        let mut next = self.logs.get(session).map(|log| LogAncestor {
            log,
            entries: log.len(),
        });
        while let Some(found) = next {
            next = found.log.fork.as_ref().and_then(|fork| {
                Some(LogAncestor {
                    log: self.logs.get(&fork.from)?,
                    entries: found.entries.min(fork.entries),
                })
            });
            kin.push(found);
        }
        kin
    }

    /// Returns at most `limit` entries after number `after`.
    fn read(&self, session: &SessionId, after: u64, limit: usize) -> Vec<LogEntry> {
        let as_index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let mut page = Vec::new();
        for kin in self.kin(session).iter().rev() {
            let first = after.max(kin.log.shared());
            let skip = as_index(first - kin.log.shared());
            let own = as_index(kin.entries.saturating_sub(first)).min(limit - page.len());
            let entries = kin.log.own.iter().skip(skip).take(own);
            page.extend((first + 1..).zip(entries).map(|(n, entry)| LogEntry {
                n,
                at: 0,
                entry: entry.clone(),
            }));
        }
        page
    }

    fn info(&self, id: &SessionId) -> Option<SessionInfo> {
        let log = self.logs.get(id)?;
        let title = log.title.clone().unwrap_or_else(|| {
            let lines = self.read(id, 0, usize::MAX);
            let log: Vec<Entry> = lines.into_iter().map(|line| line.entry).collect();
            SessionInfo::title_of(&log)
        });
        Some(SessionInfo {
            id: id.clone(),
            created: 0,
            updated: 0,
            entries: log.len(),
            bytes: log.bytes,
            title,
            fork: log.fork.clone(),
        })
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        if !self.lock().leased.insert(session.clone()) {
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
        Ok(self.lock().read(session, after, limit))
    }

    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut inner = self.lock();
        inner.writes += 1;
        let written = inner.writes;
        let log = inner.logs.entry(lease.session().clone()).or_default();
        log.add(entries);
        log.written = written;
        Ok(())
    }

    async fn fork(&self, lease: &Lease, of: &Fork, own: &[Entry]) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let session = lease.session().clone();
        if inner.logs.contains_key(&session) {
            return Err(of.refused(ForkFault::Taken { session }));
        }
        let kin = inner.kin(&of.from);
        let Some(other) = kin.first() else {
            return Err(of.refused(ForkFault::Unknown));
        };
        of.check(other.entries, kin.len() as u64 - 1)?;
        inner.writes += 1;
        let mut log = Log {
            fork: Some(of.clone()),
            written: inner.writes,
            ..Log::default()
        };
        log.add(own);
        inner.logs.insert(session, log);
        Ok(())
    }

    async fn delete(&self, lease: &Lease) -> Result<bool, StoreError> {
        let mut inner = self.lock();
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
        let mut inner = self.lock();
        let log = inner.logs.get_mut(session);
        Ok(log.map(|log| log.title = Some(title.to_owned())).is_some())
    }

    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        let inner = self.lock();
        let mut logs: Vec<_> = inner.logs.iter().collect();
        logs.sort_by_key(|(_, log)| std::cmp::Reverse(log.written));
        Ok(logs.iter().filter_map(|(id, _)| inner.info(id)).collect())
    }

    async fn head(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        Ok(self.lock().info(session))
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.leased.remove(&self.session);
    }
}
