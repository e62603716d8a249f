//! [`SqliteStore`]: sessions in one SQLite file. The SQL is in `write`, `read` and `files`; the rights to
//! write are in `lease`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_core::recall::{self, SearchQuery};
use plimsoll_core::{
    FileEdit, Fork, Lease, LogEntry, PAGE_ENTRIES, SessionId, SessionInfo, SessionStore, StoreError,
};
use rusqlite::Connection;
use tokio::sync::OnceCell;

use crate::connection::{self, SharedConnection, blocking, make_folder};
use crate::delete;
use crate::export::{self, ExportError};
use crate::fault::{self, WorkError};
use crate::files::{self, KEPT_CONTENTS};
use crate::lease::Right;
use crate::log::{self, Raw};
use crate::options::Options;
use crate::read;
use crate::session_reader::SessionReader;
use crate::settings;
use crate::write;

/// The log file in the data folder. While it is open, the files `-wal` and `-shm` beside it belong
/// to it.
pub const FILE: &str = "sessions.db";

/// The folder of lock files in the data folder, with one file for each session that is being
/// written.
const LOCKS: &str = "locks";
/// How often a session that another process writes to is tried again, and the pause before each try. A
/// child that a killed process had just forked holds its lock until it becomes another program.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Sessions in one SQLite file of a data folder. Clones share their state.
///
/// Any number of processes may open it; each session has one writer at a time. An append is one
/// transaction; [`Options::durability`] decides which failures it survives.
///
/// Reading needs no free disk space. Every entry has a checksum, and one that is altered or on a
/// damaged page is reported for the sessions that it belongs to; [`Self::salvage`] saves the others.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    path: Arc<Path>,
    options: Arc<Options>,
    /// Opened at the first write.
    writer: Arc<OnceCell<SharedConnection>>,
    /// The reason why nothing can be written. Existing sessions can be read nevertheless.
    unwritable: Option<StoreError>,
    reader: SharedConnection,
    /// The folder of lock files.
    locks: Arc<Path>,
}

impl SqliteStore {
    /// Opens the store of a data folder with the default [`Options`]. Creates both if they are
    /// missing.
    ///
    /// # Errors
    /// If the folder cannot be created or written, or if the file belongs to another program, has a
    /// newer version or is damaged at its beginning.
    pub async fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(folder, Options::default()).await
    }

    /// Opens the store of a data folder. Creates both if they are missing.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(folder: impl AsRef<Path>, options: Options) -> Result<Self, StoreError> {
        let folder = folder.as_ref().to_path_buf();
        let path: Arc<Path> = folder.join(FILE).into();
        let at = Arc::clone(&path);
        blocking(&path, move || Self::open_now(&folder, at, &options)).await
    }

    /// Returns the path of the log file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_now(folder: &Path, path: Arc<Path>, options: &Options) -> Result<Self, StoreError> {
        if fs::symlink_metadata(&path).is_err() {
            make_folder(folder)?;
            connection::create(&path)?;
        }
        let (reader, unwritable) = connection::reader(&path, options)?;
        let reader = SharedConnection::new(Arc::clone(&path), reader);
        Ok(Self {
            writer: Arc::default(),
            unwritable,
            reader,
            locks: folder.join(LOCKS).into(),
            options: Arc::new(options.clone()),
            path,
        })
    }

    pub(crate) fn locks(&self) -> &Arc<Path> {
        &self.locks
    }

    pub(crate) fn reader(&self) -> &SharedConnection {
        &self.reader
    }

    pub(crate) async fn writer(&self) -> Result<&SharedConnection, StoreError> {
        if let Some(why) = &self.unwritable {
            return Err(why.clone());
        }
        let open = self.writer.get_or_try_init(|| async {
            let (path, options) = (Arc::clone(&self.path), Arc::clone(&self.options));
            blocking(&self.path, move || {
                let opened = connection::writer(&path, &options)?;
                Ok(SharedConnection::new(path, opened))
            })
            .await
        });
        open.await
    }

    fn right(&self, lease: &Lease) -> Result<Right, StoreError> {
        let right = lease
            .guard()
            .filter(|right: &&Right| right.is_of(&self.locks));
        right.cloned().ok_or_else(|| {
            let session = lease.session();
            fault::other(
                &self.path,
                format!("the lease on session {session} is another store's; acquire it here"),
            )
        })
    }

    /// Writes to the session of a lease.
    async fn write<T, F>(&self, lease: &Lease, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection, &Path, &Right) -> Result<T, WorkError> + Send + 'static,
    {
        let right = self.right(lease)?;
        self.writer()
            .await?
            .with(move |connection, path| {
                let written = work(connection, path, &right);
                // Only after the write, even if the caller and the lease are gone by now.
                drop(right);
                written
            })
            .await
    }

    async fn raw_page(
        &self,
        session: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Raw>, StoreError> {
        let session = session.clone();
        self.reader
            .with(move |connection, path| read::page(connection, path, &session, after, limit))
            .await
    }
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        // A read-only store is reported before anything else is done.
        self.writer().await?;
        let acquire = || {
            let (locks, wanted) = (Arc::clone(&self.locks), session.clone());
            blocking(&self.path, move || Right::acquire(&locks, &wanted))
        };
        let mut right = acquire().await;
        for _ in 0..BUSY_TRIES {
            if !matches!(right, Err(StoreError::Busy { .. })) {
                break;
            }
            tokio::time::sleep(BUSY_PAUSE).await;
            right = acquire().await;
        }
        Ok(Lease::new(session.clone(), Box::new(right?)))
    }

    async fn read(
        &self,
        session: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let page = self.raw_page(session, after, limit).await?;
        log::parse(page, &self.path, session).await
    }

    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return self.right(lease).map(|_| ());
        }
        let entries = entries.to_vec();
        self.write(lease, move |connection, path, right| {
            write::append(connection, path, right, &entries)
        })
        .await
    }

    async fn fork(&self, lease: &Lease, of: &Fork, own: &[Entry]) -> Result<(), StoreError> {
        let (of, own) = (of.clone(), own.to_vec());
        self.write(lease, move |connection, path, right| {
            write::fork(connection, path, right, &of, &own)
        })
        .await
    }

    async fn delete(&self, lease: &Lease) -> Result<bool, StoreError> {
        let right = self.right(lease)?;
        self.writer()
            .await?
            .with(move |connection, _| delete::sessions(connection, &[right]))
            .await
    }

    async fn rename(&self, session: &SessionId, title: &str) -> Result<bool, StoreError> {
        let (session, title) = (session.clone(), title.to_owned());
        self.writer()
            .await?
            .with(move |connection, _| write::rename(connection, &session, &title))
            .await
    }

    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        self.reader
            .with(|connection, _| read::list(connection))
            .await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        let session = session.clone();
        self.reader
            .with(move |connection, _| read::info(connection, &session))
            .await
    }

    async fn search(
        &self,
        session: &SessionId,
        query: &SearchQuery,
    ) -> Result<Vec<LogEntry>, StoreError> {
        match self.search_index(session, query).await {
            Ok(found) => Ok(found),
            // A disk that is full or an index that is damaged only makes the search slower.
            Err(_) => recall::scan(self, session, query).await,
        }
    }

    async fn keep_file(&self, session: &SessionId, edit: FileEdit) -> Result<(), StoreError> {
        let session = session.clone();
        self.writer()
            .await?
            .with(move |connection, _| files::keep(connection, &session, &edit, KEPT_CONTENTS))
            .await
    }
}

#[async_trait]
impl SessionReader for SqliteStore {
    async fn export<W>(&self, sessions: &BTreeSet<SessionId>, out: W) -> Result<W, ExportError>
    where
        W: Write + Send + 'static,
    {
        let page =
            |session, after| async move { self.raw_page(&session, after, PAGE_ENTRIES).await };
        export::export(&self.path, &self.list().await?, sessions, out, page).await
    }

    async fn delete_all(&self, sessions: &BTreeSet<SessionId>) -> Result<bool, StoreError> {
        let (locks, sessions) = (Arc::clone(&self.locks), sessions.clone());
        self.writer()
            .await?
            .with(move |connection, _| {
                let rights = sessions
                    .iter()
                    .map(|session| Right::acquire(&locks, session));
                delete::sessions(connection, &rights.collect::<Result<Vec<_>, _>>()?)
            })
            .await
    }

    async fn all_settings(&self) -> Result<BTreeMap<SessionId, String>, StoreError> {
        self.reader
            .with(|connection, _| settings::all(connection))
            .await
    }

    async fn shrink(&self) -> Result<(), StoreError> {
        self.writer()
            .await?
            .with(|connection, _| connection::shrink(connection))
            .await
    }
}
