//! [`SessionStore`]: the extension trait for the storage of logs. Logs are append-only.
//!
//! [`MemoryStore`](crate::MemoryStore) is an implementation.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_context::{Bytes, CallId, Part, typed_words};
use serde::{Deserialize, Serialize};

use crate::recall::{self, LogMessages, RecallError, RecalledItem, SearchQuery};

/// Maximum number of forks from a session to its oldest ancestor. Reading a log visits all of them.
pub const MAX_FORK_DEPTH: u64 = 256;

/// Maximum size of a stored file, before or after a change.
pub const MAX_KEPT_FILE: Bytes = Bytes(16 * 1024 * 1024);

/// Maximum number of entries that [`SessionStore::read`] is asked for at once.
pub const PAGE_ENTRIES: usize = 1_024;

/// Maximum number of entries that [`SessionStore::search`] returns. Older ones are left out.
pub const SEARCH_ENTRIES: usize = 1_000;

/// Maximum size of the searched texts that [`SessionStore::search`] returns.
pub const SEARCH_BYTES: Bytes = Bytes(64 << 20);

/// A store for the logs of sessions.
///
/// Four methods are required. The others have defaults: `head`, `search` and `fork` work but read or write
/// more than a store of your own would have to, and the rest is refused as unsupported. Recall needs
/// nothing else, because it reads the log. [`check_store`](crate::testing::check_store) tests an
/// implementation.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::{Arc, Mutex};
///
/// use async_trait::async_trait;
/// use plimsoll_agent::Entry;
/// use plimsoll_context::Bytes;
/// use plimsoll_core::testing::check_store;
/// use plimsoll_core::{Lease, LogEntry, SessionId, SessionInfo, SessionStore, StoreError};
///
/// /// Logs in a map. A session is held as long as its lock is.
/// #[derive(Default)]
/// struct Logs(Mutex<BTreeMap<SessionId, (Arc<()>, Vec<Entry>)>>);
///
/// #[async_trait]
/// impl SessionStore for Logs {
///     async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
///         let mut logs = self.0.lock().unwrap();
///         let (held, _) = logs.entry(session.clone()).or_default();
///         if Arc::strong_count(held) > 1 {
///             return Err(StoreError::Busy { session: session.clone() });
///         }
///         Ok(Lease::new(session.clone(), Box::new(Arc::clone(held))))
///     }
///
///     async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
///         let mut logs = self.0.lock().unwrap();
///         logs.entry(lease.session().clone()).or_default().1.extend_from_slice(entries);
///         Ok(())
///     }
///
///     async fn read(
///         &self,
///         session: &SessionId,
///         after: u64,
///         limit: usize,
///     ) -> Result<Vec<LogEntry>, StoreError> {
///         let logs = self.0.lock().unwrap();
///         let log = logs.get(session).map_or(&[][..], |(_, log)| log);
///         let numbered = (1..).zip(log).skip(after as usize).take(limit);
///         Ok(numbered.map(|(n, entry)| LogEntry { n, at: 0, entry: entry.clone() }).collect())
///     }
///
///     async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
///         let logs = self.0.lock().unwrap();
///         let written = logs.iter().filter(|(_, (_, log))| !log.is_empty());
///         Ok(written.map(|(id, (_, log))| SessionInfo::of(id.clone(), log)).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// check_store(&Logs::default()).await.unwrap();
/// # }
/// ```
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Becomes the only writer of a session, until the lease is dropped. The session need not
    /// exist.
    ///
    /// A store shared by several machines may take the session from a stalled process. Later
    /// writes of that process fail with [`StoreError::LeaseLost`].
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the session has a writer already, in this process or another.
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError>;

    /// Appends all entries or none. They are durable when the method returns.
    ///
    /// An agent finishes this future even if its run or session is dropped meanwhile: it goes on in a task
    /// of its own.
    ///
    /// # Errors
    /// If the entries cannot be written. The log is then unchanged.
    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError>;

    /// Returns the entries after number `after`, in order: at most `limit`, and at least one unless the
    /// log has no more. A session without a log has no entries.
    ///
    /// To read a log of any length with bounded memory, begin with 0 and continue with the number
    /// of the last entry.
    ///
    /// # Errors
    /// If the entries cannot be read.
    async fn read(
        &self,
        session: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LogEntry>, StoreError>;

    /// Returns all sessions, most recently written first.
    ///
    /// # Errors
    /// If the sessions cannot be read.
    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError>;

    /// Returns the list entry of one session, or `None` if the session has no log. The default
    /// searches the list.
    ///
    /// # Errors
    /// If it cannot be read.
    async fn head(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        let sessions = self.list().await?;
        Ok(sessions.into_iter().find(|info| info.id == *session))
    }

    /// Returns the entries of a log with a message that the query may [match](SearchQuery::find), newest
    /// first: at most [`SEARCH_ENTRIES`], with texts of about [`SEARCH_BYTES`]. Older ones are left
    /// out, but never another entry that matches. The default reads the log.
    ///
    /// # Errors
    /// If the log cannot be read.
    async fn search(
        &self,
        session: &SessionId,
        query: &SearchQuery,
    ) -> Result<Vec<LogEntry>, StoreError> {
        recall::scan(self, session, query).await
    }

    /// Creates a session as a fork of another one, either completely or not at all.
    ///
    /// Its log consists of the first entries of the parent, followed by its own, which begin with
    /// `own`. Later changes of the parent are not visible in the fork. The parent may have a writer
    /// meanwhile.
    ///
    /// The default copies the shared entries with one [`Self::append`], so the fork is a session like
    /// any other, without a parent in the list. A store that shares them instead says so in
    /// [`SessionInfo::fork`].
    ///
    /// # Errors
    /// [`StoreError::CannotFork`] if the parent is unknown or has fewer entries, if the new session
    /// has been written to, or beyond [`MAX_FORK_DEPTH`]. Nothing has changed then.
    async fn fork(&self, lease: &Lease, of: &Fork, own: &[Entry]) -> Result<(), StoreError> {
        let session = lease.session().clone();
        if self.head(&session).await?.is_some() {
            return Err(of.refused(ForkFault::Taken { session }));
        }
        let mut log = self.load(&of.from).await?;
        if log.is_empty() {
            return Err(of.refused(ForkFault::Unknown));
        }
        of.check(log.len() as u64, 0)?;
        log.truncate(usize::try_from(of.entries).unwrap_or(usize::MAX));
        log.extend_from_slice(own);
        self.append(lease, &log).await
    }

    /// Changes the title of a session, as shown by [`Self::list`]. Returns `false`, without any
    /// change, if there is no such session.
    ///
    /// The id does not change, and later user messages do not replace the title. Existing forks
    /// keep their titles. The session may have a writer meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if the store cannot rename, which is the default. Also if the
    /// title cannot be written.
    async fn rename(&self, session: &SessionId, title: &str) -> Result<bool, StoreError> {
        let _ = (session, title);
        Err(StoreError::Unsupported {
            operation: "rename",
        })
    }

    /// Deletes a session permanently: its log, its settings and the stored contents of the files that
    /// it changed. Returns `false`, without any change, if there is no such session.
    ///
    /// Other sessions are not affected. The lease stays valid and the name becomes free: the next
    /// entry appended under it is the first of a new log.
    ///
    /// # Errors
    /// [`StoreError::HasForks`] if forks share entries of the log; delete them first. Nothing is
    /// deleted then. [`StoreError::Unsupported`] if the store cannot delete, which is the default.
    async fn delete(&self, lease: &Lease) -> Result<bool, StoreError> {
        let _ = lease;
        Err(StoreError::Unsupported {
            operation: "delete",
        })
    }

    /// Stores the contents of a file before and after a change, so that the change can be undone.
    ///
    /// This is called before the file is changed. If it fails, the file is not changed. The default
    /// stores nothing.
    ///
    /// # Errors
    /// If the contents cannot be written.
    async fn keep_file(&self, session: &SessionId, edit: FileEdit) -> Result<(), StoreError> {
        let _ = (session, edit);
        Ok(())
    }

    /// Returns the complete log of a session in order. Reads it page by page; no store needs another
    /// implementation.
    ///
    /// # Errors
    /// As [`Self::read`].
    async fn load(&self, session: &SessionId) -> Result<Vec<Entry>, StoreError> {
        let (mut log, mut after) = (Vec::new(), 0);
        loop {
            let page = self.read(session, after, PAGE_ENTRIES).await?;
            let Some(last) = page.last() else {
                return Ok(log);
            };
            after = last.n;
            log.extend(page.into_iter().map(|line| line.entry));
        }
    }

    /// Returns one message of a session's log as it was recorded, by its id (`m12`) or the id of its tool
    /// call. Reads the log; no store needs another implementation.
    ///
    /// # Errors
    /// If the key matches no message or more than one, or if the log cannot be read.
    async fn recall(&self, session: &SessionId, key: &str) -> Result<RecalledItem, RecallError> {
        LogMessages::default().recall(self, session, key).await
    }
}

/// Returns the time since a log was last written, if the store knows it.
pub(crate) async fn idle(store: &dyn SessionStore, session: &SessionId) -> Option<Duration> {
    store.head(session).await.ok()??.idle()
}

/// Runs work on the texts of a log on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Io {
        path: "the log".to_owned(),
        why: format!("reading it was cut short ({error}); try again"),
    })
}

/// One entry of a log, with its number and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The number of the entry in its session, from 1, without gaps.
    pub n: u64,
    /// The time of writing, in seconds since 1970. It never decreases within a log. 0 if the store does
    /// not know it.
    pub at: u64,
    /// The entry itself.
    pub entry: Entry,
}

/// Id of a session: 1 to 128 letters, digits, `-`, `_` and `.`, not beginning with `.`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// The right to write to one session.
pub struct Lease {
    session: SessionId,
    guard: Box<dyn Any + Send + Sync>,
}

/// The complete contents of a file before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The tool call that makes the change; `None` if a user restores the file.
    pub call: Option<CallId>,
    /// The workspace root, absolute and without links.
    pub root: PathBuf,
    /// The file, relative to the root.
    pub path: PathBuf,
    /// The contents before the change; `None` if the file does not exist.
    pub before: Option<Vec<u8>>,
    /// The contents after the change; `None` if the file is removed.
    pub after: Option<Vec<u8>>,
}

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// Id of the session.
    pub id: SessionId,
    /// When its first entry was written, in seconds since 1970. 0 if the store does not know.
    pub created: u64,
    /// When its last entry was written, in seconds since 1970. 0 if the store does not know.
    pub updated: u64,
    /// Number of entries in its log.
    pub entries: u64,
    /// Size of its entries as JSON, in bytes. For a fork, without the shared entries.
    pub bytes: Bytes,
    /// The title: the one that it was renamed to, or the first line of its first user message, at
    /// most 120 characters.
    pub title: String,
    /// The parent, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
}

/// The rule for which sessions of a store to keep. Keeps all by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Maximum time since the last write.
    pub max_age: Option<Duration>,
    /// Maximum total size of the logs; the newest sessions are kept. A fork counts only its own
    /// entries, not the shared ones.
    pub max_bytes: Option<Bytes>,
}

/// The parent of a fork and the extent of the shared beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The parent session.
    pub from: SessionId,
    /// Number of entries that both logs begin with.
    pub entries: u64,
}

/// The reason why a store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The session has another writer.
    #[error(
        "session {session} is being written by another process; wait for it, or choose another session"
    )]
    Busy {
        /// The session.
        session: SessionId,
    },
    /// Another writer has taken over the session.
    #[error(
        "session {session} was taken over by another process while this one was paused: nothing \
         of this step was written; open the session again to continue"
    )]
    LeaseLost {
        /// The session.
        session: SessionId,
    },
    /// A part of the file cannot be read.
    #[error(
        "{path} is damaged inside; save its readable sessions with `plimsoll sessions salvage --to FOLDER`"
    )]
    Damaged {
        /// The file.
        path: String,
    },
    /// The file is not a store, or none of it can be read.
    #[error(
        "{path} cannot be read as a session store: {why}; move it away, and a new one is \
             created"
    )]
    Corrupt {
        /// The file.
        path: String,
        /// The cause.
        why: String,
    },
    /// One entry of a session cannot be read.
    #[error(
        "entry {entry} of session {session} in {path} cannot be read: {why}; other sessions still \
         open, so start a new one to continue"
    )]
    BadEntry {
        /// The file.
        path: String,
        /// The session.
        session: SessionId,
        /// Number of the entry in its session, from 1.
        entry: u64,
        /// The cause.
        why: String,
    },
    /// The session cannot be forked in this way.
    #[error("session {session} cannot be forked: {why}")]
    CannotFork {
        /// The parent session.
        session: SessionId,
        /// The reason.
        why: ForkFault,
    },
    /// The session cannot be deleted because forks share its log.
    #[error(
        "session {session} cannot be deleted: its fork {} shares its log; delete the fork first",
        forks.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", ")
    )]
    HasForks {
        /// The session.
        session: SessionId,
        /// Its forks.
        forks: Vec<SessionId>,
    },
    /// No space is left.
    #[error("no space is left at {path}, so nothing was written; free some space, then try again")]
    Full {
        /// The file.
        path: String,
    },
    /// The store does not support an operation.
    #[error("this store cannot {operation} sessions; choose another store")]
    Unsupported {
        /// The operation, as a verb.
        operation: &'static str,
    },
    /// Another error of the operating system.
    #[error("{path}: {why}")]
    Io {
        /// The file.
        path: String,
        /// The error message and a remedy.
        why: String,
    },
}

/// The reason why a session cannot be forked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForkFault {
    /// The parent session has no entries.
    #[error("there is no such session")]
    Unknown,
    /// The parent's log is shorter than the part to share.
    #[error("its log has {entries} entries, so there is no entry {wanted} to fork it at")]
    Beyond {
        /// Number of entries to share.
        wanted: u64,
        /// Number of existing entries.
        entries: u64,
    },
    /// The new session already exists.
    #[error("session {session} exists already; choose another name for the fork")]
    Taken {
        /// The session.
        session: SessionId,
    },
    /// There would be too many forks up to the oldest ancestor.
    #[error(
        "it is a fork of a fork, {MAX_FORK_DEPTH} levels deep; continue it, or start a new session"
    )]
    TooDeep,
}

/// The error if a text is not a valid session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name a session: use 1 to 128 letters, digits, `-`, `_` or `.`, not beginning with `.`"
)]
pub struct BadSessionId(
    /// The text.
    pub String,
);

impl SessionId {
    /// Validates an id.
    ///
    /// # Errors
    /// If the id is empty, too long or contains other characters.
    pub fn new(name: impl Into<String>) -> Result<Self, BadSessionId> {
        let name = name.into();
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 128 || name.starts_with('.') || !name.chars().all(good) {
            return Err(BadSessionId(name));
        }
        Ok(Self(name))
    }

    /// Returns the id as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Creates a new session id from the current time in milliseconds and a few random digits.
#[must_use]
pub fn new_session_id() -> SessionId {
    use std::hash::BuildHasher;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let random = std::collections::hash_map::RandomState::new().hash_one(now) % 0x1_0000;
    SessionId(format!("{:x}-{random:04x}", now.as_millis()))
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
    /// Creates a lease that ends when `guard` is dropped, for stores.
    #[must_use]
    pub fn new(session: SessionId, guard: Box<dyn Any + Send + Sync>) -> Self {
        Self { session, guard }
    }

    /// Returns the guard of this lease if it has this type, for stores.
    #[must_use]
    pub fn guard<T: 'static>(&self) -> Option<&T> {
        self.guard.downcast_ref()
    }

    /// Returns the session.
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

impl Fork {
    /// Returns the error for a refused fork.
    #[must_use]
    pub fn refused(&self, why: ForkFault) -> StoreError {
        StoreError::CannotFork {
            session: self.from.clone(),
            why,
        }
    }

    /// Checks whether a parent with this many entries and this fork depth can be forked, for
    /// stores.
    ///
    /// # Errors
    /// If it cannot be forked.
    pub fn check(&self, entries: u64, depth: u64) -> Result<(), StoreError> {
        if self.entries > entries {
            let wanted = self.entries;
            return Err(self.refused(ForkFault::Beyond { wanted, entries }));
        }
        if depth >= MAX_FORK_DEPTH {
            Err(self.refused(ForkFault::TooDeep))
        } else {
            Ok(())
        }
    }
}

impl SessionInfo {
    /// Returns the list entry of a session with this log, for stores that know no times.
    #[must_use]
    pub fn of(id: SessionId, log: &[Entry]) -> Self {
        // An entry that cannot be serialized has no size.
        let sizes = log.iter().flat_map(serde_json::to_vec);
        Self {
            id,
            created: 0,
            updated: 0,
            entries: log.len() as u64,
            bytes: Bytes(sizes.map(|json| json.len() as u64).sum()),
            title: Self::title_of(log),
            fork: None,
        }
    }

    /// Returns the time since the log was last written, after which the provider's prompt cache may
    /// have expired. `None` if the store does not know.
    #[must_use]
    pub fn idle(&self) -> Option<Duration> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let since = now.as_secs().saturating_sub(self.updated);
        (self.updated > 0).then(|| Duration::from_secs(since))
    }

    /// Returns the default title of a log: the first line that a person typed, besides commands of a
    /// host such as `/model`, or else of the first user message, at most 120 characters.
    #[must_use]
    pub fn title_of(log: &[Entry]) -> String {
        let mut messages = log.iter().filter_map(|entry| match entry {
            Entry::Message { message, .. } if message.is_user() => Some(message),
            _ => None,
        });
        let typed = messages.clone().find_map(|message| {
            let texts = message.parts().iter().filter_map(Part::as_text);
            let mut typed = texts.filter_map(|text| Some(typed_words(text)?.trim().to_owned()));
            typed.find(|words| !words.starts_with('/') || words.contains(char::is_whitespace))
        });
        let first = typed
            .or_else(|| Some(messages.next()?.text()))
            .unwrap_or_default();
        let line = first.lines().next().unwrap_or_default();
        line.chars().take(120).collect()
    }
}
