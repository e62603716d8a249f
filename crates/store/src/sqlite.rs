//! [`SqliteStore`]: sessions in one SQLite file. The SQL is in `write`, `read` and `files`; the rights to
//! write are in `lease`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

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
use crate::lease::{Leases, Right};
use crate::log::{self, Raw};
use crate::options::Options;
use crate::read;
use crate::schema::{self, StoreFileState};
use crate::session_reader::SessionReader;
use crate::settings;
use crate::write;

/// The log file in the data folder. While it is open, the files `-wal` and `-shm` beside it belong
/// to it.
pub const FILE: &str = "sessions.db";

/// The folder of lock files in the data folder, with one file for each session that is being
/// written.
const LOCKS: &str = "locks";

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
    leases: Leases,
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

    /// Returns at most `limit` sessions, most recently written first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn newest(&self, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let mut newest = self.newest_of(Some(limit)).await?;
        newest.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(newest)
    }

    fn open_now(folder: &Path, path: Arc<Path>, options: &Options) -> Result<Self, StoreError> {
        let is_new = fs::metadata(&path).map_or(true, |file| file.len() == 0);
        let open_writer = || -> Result<_, StoreError> {
            let opened = connection::writer(&path, options, schema::LOG, options.max_bytes)?;
            Ok(OnceCell::from(SharedConnection::new(
                Arc::clone(&path),
                opened,
            )))
        };
        let mut writer = OnceCell::new();
        if is_new {
            make_folder(folder)?;
            writer = open_writer()?;
        }
        let mut reader = connection::reader(&path, options)?;
        let mut unwritable = None;
        match schema::check(&reader, &path, schema::LOG) {
            Ok(StoreFileState::Store) => {}
            Ok(StoreFileState::New | StoreFileState::Older) => writer = open_writer()?,
            Err(error @ (StoreError::Full { .. } | StoreError::Io { .. })) => {
                drop(reader);
                reader = connection::alone(&path, options)?;
                match schema::check(&reader, &path, schema::LOG) {
                    Ok(StoreFileState::Store) => unwritable = Some(error),
                    _ => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
        let reader = SharedConnection::new(Arc::clone(&path), reader);
        Ok(Self {
            writer: Arc::new(writer),
            unwritable,
            reader,
            leases: Leases::new(&folder.join(LOCKS)),
            options: Arc::new(options.clone()),
            path,
        })
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
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
                let opened = connection::writer(&path, &options, schema::LOG, options.max_bytes)?;
                Ok(SharedConnection::new(path, opened))
            })
            .await
        });
        open.await
    }

    async fn newest_of(&self, limit: Option<u32>) -> Result<Vec<SessionInfo>, StoreError> {
        self.reader
            .with(move |connection, _| read::newest(connection, limit))
            .await
    }

    fn right(&self, lease: &Lease) -> Result<Right, StoreError> {
        let session = lease.session();
        self.leases.right(session).ok_or_else(|| {
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
        let (leases, wanted) = (self.leases.clone(), session.clone());
        let held = blocking(&self.path, move || leases.acquire(&wanted)).await?;
        Ok(Lease::new(session.clone(), Box::new(held)))
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
            .with(move |connection, _| delete::session(connection, &right))
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
        self.newest_of(None).await
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
    async fn export<W>(
        &self,
        sessions: &BTreeMap<SessionId, Option<String>>,
        out: W,
    ) -> Result<W, ExportError>
    where
        W: Write + Send + 'static,
    {
        let page =
            |session, after| async move { self.raw_page(&session, after, PAGE_ENTRIES).await };
        export::export(&self.path, &self.list().await?, sessions, out, page).await
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
