//! [`SessionStore`]: the door to where logs and archives are kept. A log is only ever appended to.
//! No store; [`MemoryStore`](crate::MemoryStore) is one.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_context::{Bytes, Seq, Tokens};
use serde::{Deserialize, Serialize};

use crate::archive::{ArchiveRow, Archived, Hit, RecallError, RecallKey, Recalled};
use crate::file_edit::FileEdit;

/// A session may be the fork of a fork so often: reading its log walks them all, and nobody has a
/// use for more.
pub const MAX_FORK_DEPTH: u64 = 256;

/// Where the logs of sessions are kept and, beside them, the archive of what has left their views.
/// A store need not have an archive; one that has implements all of its six methods.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Becomes the one writer of a session, until the lease is dropped. The session need not exist. A
    /// store that several processes use may take the session of a process that stands still; the writes of
    /// that process are then refused with [`StoreError::LeaseLost`].
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

    /// Begins a session as the fork of another: its log is the other's first entries and then its
    /// own, of which `own` are the first. Nothing is copied, and what the other does from now on is
    /// not seen in the fork. The other may have a writer meanwhile. All of it is done, or nothing.
    ///
    /// # Errors
    /// [`StoreError::CannotFork`] where the other session is unknown or has fewer entries, where
    /// the new one has been written to, or beyond [`MAX_FORK_DEPTH`]; nothing has changed then.
    async fn fork(&self, lease: &Lease, of: &Fork, own: &[Entry]) -> Result<(), StoreError> {
        let _ = (lease, own);
        Err(of.refused(ForkFault::Unable))
    }

    /// Deletes a session for good: its log, its settings, its archive and the kept contents of the files
    /// that it changed. Other sessions keep theirs. Returns `false`, and changes nothing, if there is no
    /// such session. The lease stays valid; the name is free, and the next entry that is appended under it
    /// is the first of a new log.
    ///
    /// # Errors
    /// [`StoreError::HasForks`] if forks share entries of its log: delete them first. Nothing is deleted
    /// then. [`StoreError::Unsupported`] if the store cannot delete, which is the default.
    /// [`StoreError::Archive`] or [`StoreError::Files`] if the log is gone but the rest of it could not be
    /// removed; what stays is found by nobody and expires.
    async fn delete(&self, lease: &Lease) -> Result<bool, StoreError> {
        let _ = lease;
        Err(StoreError::Unsupported {
            operation: "delete",
        })
    }

    /// Gives a session another title, as it is shown by [`Self::list`]. Its name stays, and a title that was
    /// given is not replaced by what a user says later. Forks that exist keep theirs. The session may have
    /// a writer meanwhile. Returns `false`, and changes nothing, if there is no such session.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if the store cannot rename, which is the default. If the title cannot be
    /// written.
    async fn rename(&self, session: &SessionId, title: &str) -> Result<bool, StoreError> {
        let _ = (session, title);
        Err(StoreError::Unsupported {
            operation: "rename",
        })
    }

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
    /// `None` where none is remembered, or none for [`WINDOW_REMEMBERED`](crate::WINDOW_REMEMBERED).
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

    /// One archived item of a session, whole. A fork has what its ancestors have archived of the
    /// items that they share, and nothing else of theirs.
    ///
    /// # Errors
    /// Where the key names none, one that has expired, or more than one.
    async fn recall(&self, session: &SessionId, key: &RecallKey) -> Result<Recalled, RecallError> {
        let _ = (session, key);
        Err(StoreError::NoArchive.into())
    }

    /// The archived items of a session that have the words of a query, the best first; of a fork,
    /// as in [`Self::recall`].
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

    /// What the archive has or had of a session, in the order of the log; of a fork, as in
    /// [`Self::recall`].
    ///
    /// # Errors
    /// Where the archive cannot be read.
    async fn archived(&self, session: &SessionId) -> Result<Vec<ArchiveRow>, StoreError> {
        let _ = session;
        Err(StoreError::NoArchive)
    }

    /// Keeps what a file contains before and after a change, so that the change can be undone. It is
    /// called before the file is changed, and the change is not made if it fails. A store need not
    /// keep files.
    ///
    /// # Errors
    /// If the contents cannot be written.
    async fn keep_file(&self, session: &SessionId, edit: FileEdit) -> Result<(), StoreError> {
        let _ = (session, edit);
        Ok(())
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
    /// The size of its entries as JSON; of a fork, without those that it shares.
    pub bytes: Bytes,
    /// What it was renamed to; else the first line of its first user message, 120 characters at most.
    pub title: String,
    /// What it is a fork of, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
}

/// Which sessions of a store are kept. By default all are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// A session is kept if it was last written no longer ago than this.
    pub max_age: Option<Duration>,
    /// The newest sessions are kept as long as their logs together are no larger than this. The entries
    /// of a fork are its own, without those that it shares.
    pub max_bytes: Option<Bytes>,
}

/// What a session is a fork of, and how much the two share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The other session.
    pub from: SessionId,
    /// The entries that both logs begin with.
    pub entries: u64,
    /// The number that the next item gets after those: the items below it are shared, and what the
    /// other's archive has of them may be recalled in the fork.
    pub items: Seq,
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
    /// Another writer has taken the session over.
    #[error(
        "session {session} was taken over by another process while this one stood still: nothing of this step was written; open the session again to carry on"
    )]
    LeaseLost {
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
    /// A session cannot be forked like that.
    #[error("session {session} cannot be forked: {why}")]
    CannotFork {
        /// The session.
        session: SessionId,
        /// Why not.
        why: ForkFault,
    },
    /// A session cannot be deleted because forks share its log.
    #[error(
        "session {session} cannot be deleted: {} begins with its log; delete that first",
        forks.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", ")
    )]
    HasForks {
        /// The session.
        session: SessionId,
        /// Its forks.
        forks: Vec<SessionId>,
    },
    /// There is no room left to write.
    #[error(
        "no space is left at {path}: nothing of this step was written, and the session still opens; free some space and carry on"
    )]
    Full {
        /// The file.
        path: String,
    },
    /// The store lacks an operation.
    #[error("this store cannot {operation} sessions; choose another store")]
    Unsupported {
        /// The operation, as a verb.
        operation: &'static str,
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
    /// Files cannot be kept before they are changed.
    #[error("what files contain cannot be kept in {place}: {why}")]
    Files {
        /// Where.
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

/// Why a session cannot be forked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForkFault {
    /// Nothing was ever written to it.
    #[error("there is no such session")]
    Unknown,
    /// Its log is shorter than what is to be shared.
    #[error("its log has {entries} entries, so there is no entry {asked} to fork it at")]
    Beyond {
        /// Entries that were to be shared.
        asked: u64,
        /// Entries that there are.
        entries: u64,
    },
    /// The new session is there already.
    #[error("session {session} exists already; choose another name for the fork")]
    Taken {
        /// The name.
        session: SessionId,
    },
    /// It is the fork of a fork too often.
    #[error(
        "it is the fork of a fork, {MAX_FORK_DEPTH} times over; carry it on, or begin a new session"
    )]
    TooDeep,
    /// The store cannot fork at all.
    #[error("this store keeps no forks; choose another store")]
    Unable,
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

impl Fork {
    /// The refusal to make it.
    #[must_use]
    pub fn refused(&self, why: ForkFault) -> StoreError {
        StoreError::CannotFork {
            session: self.from.clone(),
            why,
        }
    }

    /// Whether it can be made of a session that has so many entries and is itself the fork of a
    /// fork so often; for stores.
    ///
    /// # Errors
    /// Where it cannot.
    pub fn check(&self, entries: u64, depth: u64) -> Result<(), StoreError> {
        if self.entries > entries {
            let asked = self.entries;
            return Err(self.refused(ForkFault::Beyond { asked, entries }));
        }
        match depth >= MAX_FORK_DEPTH {
            true => Err(self.refused(ForkFault::TooDeep)),
            false => Ok(()),
        }
    }
}

impl SessionInfo {
    /// The title of a log: the first line of its first user message, 120 characters at most.
    #[must_use]
    pub fn title_of(log: &[Entry]) -> String {
        let first = log.iter().find_map(|entry| match entry {
            Entry::Said { message, .. } if message.is_user() => Some(message.text()),
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
