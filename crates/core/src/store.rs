//! [`SessionStore`]: the door to where logs and archives are kept, and [`MemoryStore`], which
//! forgets them with the process. A log is only ever appended to.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_context::{Seq, Tokens};
use serde::{Deserialize, Serialize};

use crate::archive::{
    ArchiveBounds, ArchiveRow, Archived, Hit, RecallError, RecallKey, Recalled, Shelf,
};
use crate::window::WINDOW_REMEMBERED;

/// Where the logs of sessions are kept and, beside them, the archive of what has left their views.
/// A store need not have an archive; one that has implements all of its six methods.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Becomes the one writer of a session, until the lease is dropped. The session need not exist.
    ///
    /// # Errors
    /// [`StoreError::Busy`] where it has a writer already, in this process or another.
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError>;

    /// The session's whole log, in order; empty where it has none.
    ///
    /// # Errors
    /// Where it cannot be read.
    async fn load(&self, session: &SessionId) -> Result<Vec<Entry>, StoreError>;

    /// Appends entries: all of them or none. They are durable when it returns.
    ///
    /// # Errors
    /// Where they cannot be written; the log is then as before.
    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError>;

    /// All sessions, the one written last first.
    ///
    /// # Errors
    /// Where they cannot be read.
    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError>;

    /// How long ago a session's log was last written; `None` where it was not, or where the store
    /// does not know. A provider's prompt cache may have gone cold since.
    async fn idle(&self, session: &SessionId) -> Option<Duration> {
        let _ = session;
        None
    }

    /// The window that a provider has told in a refusal, by its [`endpoint`](crate::Provider::endpoint);
    /// `None` where none is remembered, or none for [`WINDOW_REMEMBERED`].
    ///
    /// # Errors
    /// Where it cannot be read.
    async fn learned_window(&self, endpoint: &str) -> Result<Option<Tokens>, StoreError> {
        let _ = endpoint;
        Ok(None)
    }

    /// Remembers a window that a provider has told. A store need not.
    ///
    /// # Errors
    /// Where it cannot be written.
    async fn learn_window(&self, endpoint: &str, window: Tokens) -> Result<(), StoreError> {
        let _ = (endpoint, window);
        Ok(())
    }

    /// Whether what leaves a view can be archived here, asked of the archive itself: it opens it.
    ///
    /// # Errors
    /// Why not. A run goes on without an archive, and then offers no recall.
    async fn archives(&self) -> Result<(), StoreError> {
        Err(StoreError::NoArchive)
    }

    /// Takes what is about to leave a session's view into the archive: all of it or nothing. What
    /// was there by the number of one of them is replaced: it may be of a log that is gone, or have
    /// expired. When it returns, all of them are held and durable; older ones may have expired.
    ///
    /// # Errors
    /// Where the archive cannot be written or cannot hold them. The log is untouched by that.
    async fn archive(&self, lease: &Lease, items: &[Archived]) -> Result<(), StoreError> {
        let _ = (lease, items);
        Err(StoreError::NoArchive)
    }

    /// Says by what number the log's next item will go: what the archive has by that number or a
    /// higher one is of a log that is gone, and is taken away, so that nothing of it is found.
    ///
    /// # Errors
    /// Where the archive cannot be written.
    async fn archive_up_to(&self, lease: &Lease, next: Seq) -> Result<(), StoreError> {
        let _ = (lease, next);
        Ok(())
    }

    /// One archived item of a session, whole.
    ///
    /// # Errors
    /// Where the key names none, one that has expired, or more than one.
    async fn recall(&self, session: &SessionId, key: &RecallKey) -> Result<Recalled, RecallError> {
        let _ = (session, key);
        Err(StoreError::NoArchive.into())
    }

    /// The archived items of a session that have the words of a query, the best first.
    ///
    /// # Errors
    /// Where the query has no words or the archive cannot be read.
    async fn search(
        &self,
        session: &SessionId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, RecallError> {
        let _ = (session, query, limit);
        Err(StoreError::NoArchive.into())
    }

    /// What the archive has or had of a session, in the order of the log.
    ///
    /// # Errors
    /// Where the archive cannot be read.
    async fn archived(&self, session: &SessionId) -> Result<Vec<ArchiveRow>, StoreError> {
        let _ = session;
        Err(StoreError::NoArchive)
    }
}

/// Names a session: 1 to 128 letters, digits, `-`, `_` and `.`, not beginning with `.`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// The right to write to one session.
pub struct Lease {
    session: SessionId,
    // Held only for its drop.
    _guard: Box<dyn Any + Send + Sync>,
}

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// Its name.
    pub id: SessionId,
    /// Seconds since 1970 of its first entry.
    pub created: u64,
    /// Seconds since 1970 of its last entry.
    pub updated: u64,
    /// Entries in its log.
    pub entries: u64,
    /// The first line of its first user message, 120 characters at most.
    pub title: String,
}

/// Why a store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another writer has the session.
    #[error(
        "session {session} is being written by another process; wait for it, or choose another session"
    )]
    Busy {
        /// The session.
        session: SessionId,
    },
    /// The file is damaged or no store at all.
    #[error("{path} cannot be read as a session store: {why}; move it away to begin a new one")]
    Corrupt {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// One entry of one session cannot be read.
    #[error(
        "entry {entry} of session {session} in {path} cannot be read: {why}; other sessions still open, so begin a new one to carry on"
    )]
    BadEntry {
        /// The file.
        path: String,
        /// The session.
        session: SessionId,
        /// The entry's number in its session, from 1.
        entry: u64,
        /// What is wrong with it.
        why: String,
    },
    /// There is no room left to write.
    #[error(
        "no space is left at {path}: nothing of this step was written, and the session still opens; free some space and carry on"
    )]
    Full {
        /// The file.
        path: String,
    },
    /// It is a store without an archive.
    #[error("this store keeps no archive; the log has what left the view")]
    NoArchive,
    /// The archive fails; logs are kept all the same.
    #[error(
        "the archive {place} cannot be used: {why}; runs go on without recall, and the log keeps what leaves the view"
    )]
    Archive {
        /// Where it is.
        place: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// Anything else that the system refuses.
    #[error("{path}: {why}")]
    Io {
        /// The file.
        path: String,
        /// What the system says, and what to do.
        why: String,
    },
}

/// Why a text is no session's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name a session: use 1 to 128 letters, digits, `-`, `_` or `.`, not beginning with `.`"
)]
pub struct BadSessionId(
    /// The text.
    pub String,
);

/// Keeps logs in memory; for tests and for agents that need no tomorrow.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    logs: BTreeMap<SessionId, Vec<Entry>>,
    leased: BTreeSet<SessionId>,
    shelf: Shelf,
    /// Windows, and when they were told.
    windows: BTreeMap<String, (Tokens, u64)>,
}

struct MemoryGuard {
    inner: Arc<Mutex<Inner>>,
    session: SessionId,
}

impl SessionId {
    /// Checks a name.
    ///
    /// # Errors
    /// Where it is empty, too long or has other characters.
    pub fn new(name: impl Into<String>) -> Result<Self, BadSessionId> {
        let name = name.into();
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 128 || name.starts_with('.') || !name.chars().all(good) {
            return Err(BadSessionId(name));
        }
        Ok(Self(name))
    }

    /// A name made of a time in milliseconds and a random number; always a good one.
    pub(crate) fn timed(millis: u128, random: u64) -> Self {
        Self(format!("{millis:x}-{random:04x}"))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SessionId {
    type Error = BadSessionId;
    fn try_from(name: String) -> Result<Self, BadSessionId> {
        Self::new(name)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Lease {
    /// A lease that ends when `guard` is dropped; for stores.
    #[must_use]
    pub fn new(session: SessionId, guard: Box<dyn Any + Send + Sync>) -> Self {
        Self {
            session,
            _guard: guard,
        }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl SessionInfo {
    /// The title of a log: the first line of its first user message, 120 characters at most.
    #[must_use]
    pub fn title_of(log: &[Entry]) -> String {
        let first = log.iter().find_map(|entry| match entry {
            Entry::Said { message } if message.is_user() => Some(message.text()),
            _ => None,
        });
        first
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(120)
            .collect()
    }
}

impl MemoryStore {
    /// A store whose archive has other bounds.
    #[must_use]
    pub fn with_archive(bounds: ArchiveBounds) -> Self {
        let store = Self::default();
        store.lock().shelf = Shelf::new(bounds);
        store
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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

    async fn load(&self, session: &SessionId) -> Result<Vec<Entry>, StoreError> {
        Ok(self.lock().logs.get(session).cloned().unwrap_or_default())
    }

    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        self.lock()
            .logs
            .entry(lease.session().clone())
            .or_default()
            .extend_from_slice(entries);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        let inner = self.lock();
        let info = |(id, log): (&SessionId, &Vec<Entry>)| SessionInfo {
            id: id.clone(),
            created: 0,
            updated: 0,
            entries: log.len() as u64,
            title: SessionInfo::title_of(log),
        };
        Ok(inner.logs.iter().map(info).collect())
    }

    async fn learned_window(&self, endpoint: &str) -> Result<Option<Tokens>, StoreError> {
        let oldest = now().saturating_sub(WINDOW_REMEMBERED.as_secs());
        let inner = self.lock();
        let learned = inner.windows.get(endpoint).filter(|(_, at)| *at >= oldest);
        Ok(learned.map(|(window, _)| *window))
    }

    async fn learn_window(&self, endpoint: &str, window: Tokens) -> Result<(), StoreError> {
        self.lock()
            .windows
            .insert(endpoint.to_owned(), (window, now()));
        Ok(())
    }

    async fn archives(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn archive(&self, lease: &Lease, items: &[Archived]) -> Result<(), StoreError> {
        self.lock().shelf.archive(lease.session(), items, now())
    }

    async fn archive_up_to(&self, lease: &Lease, next: Seq) -> Result<(), StoreError> {
        self.lock().shelf.keep_up_to(lease.session(), next);
        Ok(())
    }

    async fn recall(&self, session: &SessionId, key: &RecallKey) -> Result<Recalled, RecallError> {
        self.lock().shelf.recall(session, key, now())
    }

    async fn search(
        &self,
        session: &SessionId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, RecallError> {
        self.lock().shelf.search(session, query, limit, now())
    }

    async fn archived(&self, session: &SessionId) -> Result<Vec<ArchiveRow>, StoreError> {
        Ok(self.lock().shelf.rows(session, now()))
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.leased.remove(&self.session);
    }
}

/// Seconds since 1970; 0 where the clock stands before that.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
