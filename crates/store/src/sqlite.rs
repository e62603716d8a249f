//! [`SqliteStore`]: sessions in one SQLite file, their archive in another. Not the SQL, which is in `write` and `read`, nor
//! the rights to write, which are in `lock`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_context::{Seq, Tokens};
use plimsoll_core::archive::{ArchiveRow, Archived, Hit, RecallError, RecallKey, Recalled};
use plimsoll_core::{FileEdit, Fork, Lease, SessionId, SessionInfo, SessionStore, StoreError};
use rusqlite::Connection;
use tokio::sync::OnceCell;

use crate::archive::{Archive, Places};
use crate::connection::{self, Shared, blocking};
use crate::damaged::Damaged;
use crate::delete;
use crate::export::{self, Line};
use crate::fault;
use crate::files::{ContentHash, Files, RecordedChange};
use crate::lease::{Leases, Right};
use crate::lineage::{Kin, lineage};
use crate::options::Options;
use crate::read::{self, Raw};
use crate::schema::{self, Found};
use crate::settings;
use crate::windows::{self, LearnedWindow};
use crate::write;

/// The file in the data folder. While it is open, `-wal` and `-shm` stand beside it and belong to
/// it.
pub const FILE: &str = "sessions.db";

/// The folder of lock files in the data folder: one for each session that is being written.
const LOCKS: &str = "locks";

/// Sessions in one SQLite file of a data folder. A clone is the same store.
///
/// Any number of processes may open it; each session has one writer at a time. An append is one
/// transaction, and what it survives is [`Options::durability`].
///
/// Reading needs no room on the disk, and a damaged file is read as far as its pages are whole: what
/// cannot be read is told of the one session that it belongs to.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    path: Arc<Path>,
    options: Arc<Options>,
    /// Opened when something is first written.
    writer: Arc<OnceCell<Shared>>,
    /// Why nothing can be written; what there is can be read all the same.
    unwritable: Option<StoreError>,
    reader: Shared,
    /// Whether SQL cannot read the file because its format is older and must stay as it is.
    is_older: bool,
    /// After the connections, so that it is dropped after them.
    damaged: Damaged,
    leases: Leases,
    archive: Archive,
    files: Files,
}

impl SqliteStore {
    /// Opens the store of a data folder with the default [`Options`], making both where they are
    /// missing.
    ///
    /// # Errors
    /// Where the folder cannot be made or written, or the file is another program's, a newer
    /// version's or so damaged that nothing can be found in it.
    pub async fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(folder, Options::default()).await
    }

    /// Opens the store of a data folder, making both where they are missing.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(folder: impl AsRef<Path>, options: Options) -> Result<Self, StoreError> {
        let folder = folder.as_ref().to_path_buf();
        let path: Arc<Path> = folder.join(FILE).into();
        let at = Arc::clone(&path);
        blocking(&path, move || Self::open_now(&folder, at, &options)).await
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The sessions written last, newest first, `limit` at most.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn newest(&self, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let mut newest = self.newest_of(Some(limit)).await?;
        newest.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(newest)
    }

    /// Whether the file is damaged, as far as it has been read by now.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damaged.was_read()
    }

    /// One session as a list shows it; `None` where nothing was ever written to it.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn info(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        let (wanted, session) = (session.clone(), session.clone());
        self.read(
            move |connection, path| read::info(connection, path, &wanted),
            move |damaged| {
                let sessions = damaged.sessions()?.unwrap_or_default();
                let found = sessions.into_iter().find(|info| info.id == session);
                Ok(found.map(Some))
            },
        )
        .await
    }

    /// The windows that providers have told in refusals, the one told last first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn windows(&self) -> Result<Vec<LearnedWindow>, StoreError> {
        self.read(
            |connection, path| windows::all(connection, path, write::now()),
            |_| Ok(None),
        )
        .await
    }

    /// Stores the settings that a session is run with, in place of earlier ones. They are the
    /// program's own text and not part of the log. A text longer than [`MAX_SETTINGS`](crate::MAX_SETTINGS) characters is not
    /// stored, and earlier settings are forgotten.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub async fn save_settings(&self, session: &SessionId, text: &str) -> Result<(), StoreError> {
        let (session, text) = (session.clone(), text.to_owned());
        self.writer()
            .await?
            .with(move |connection, path| {
                settings::save(connection, path, &session, &text, write::now())
            })
            .await
    }

    /// Returns the settings that a session was last run with; those of the session that it is a fork
    /// of if it has none of its own. `None` if there are none.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn settings(&self, session: &SessionId) -> Result<Option<String>, StoreError> {
        let session = session.clone();
        self.read(
            move |connection, path| settings::find(connection, path, &session),
            |_| Ok(None),
        )
        .await
    }

    /// Returns the settings of all sessions that have some of their own, not those of the sessions that
    /// they are forks of.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn all_settings(&self) -> Result<BTreeMap<SessionId, String>, StoreError> {
        self.read(
            |connection, path| settings::all(connection, path),
            |_| Ok(None),
        )
        .await
    }

    /// The entries after number `after`, in order: [`crate::PAGE_ENTRIES`] and about
    /// [`crate::PAGE_BYTES`] at most, none at the end of the log. Begin with 0 and go on with the
    /// number of the last, to see a log of any length without holding all of it.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn page(&self, session: &SessionId, after: u64) -> Result<Vec<Line>, StoreError> {
        let page = self.raw_page(session, after).await?;
        export::lines(&page, &self.path, session)
    }

    /// Gives the space of deleted sessions, archived items and kept files back to the system: for each of the
    /// three files if it is more than a quarter of it and nobody else reads it. This writes the file anew,
    /// which takes as much space meanwhile.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub async fn shrink(&self) -> Result<(), StoreError> {
        self.writer()
            .await?
            .with(|connection, path| delete::shrink(connection, path))
            .await?;
        self.archive.shrink().await?;
        self.files.shrink().await
    }

    /// Returns the changes of files by a session, the oldest first; of a fork, also those that it
    /// shares. At most [`MAX_CHANGES`](crate::MAX_CHANGES) of a session are recorded.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn changed_files(
        &self,
        session: &SessionId,
    ) -> Result<Vec<RecordedChange>, StoreError> {
        self.files.changes(self.lineage(session).await?).await
    }

    /// Returns what a file contained, or `None` if that is not kept any longer.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn kept_content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        self.files.content(hash).await
    }

    fn open_now(folder: &Path, path: Arc<Path>, options: &Options) -> Result<Self, StoreError> {
        let is_new = fs::metadata(&path).map_or(true, |file| file.len() == 0);
        let open_writer = || -> Result<_, StoreError> {
            let opened = connection::writer(&path, options, schema::LOG, options.max_bytes)?;
            Ok(OnceCell::from(Shared::new(Arc::clone(&path), opened)))
        };
        let mut writer = OnceCell::new();
        if is_new {
            make_folder(folder)?;
            writer = open_writer()?;
        }
        let damaged = Damaged::new(&path);
        let mut reader = connection::reader(&path, options)?;
        let (mut unwritable, mut is_older) = (None, false);
        match schema::check(&reader, &path, schema::LOG) {
            Ok(Found::Store) => {}
            Ok(Found::New) => writer = open_writer()?,
            Ok(Found::Older) => match open_writer() {
                Ok(opened) => writer = opened,
                // It stays as it is, and something of it can be read.
                Err(error @ StoreError::Corrupt { .. }) if damaged.sessions()?.is_some() => {
                    unwritable = Some(error);
                    is_older = true;
                }
                Err(error) => return Err(error),
            },
            // Something of it can be read.
            Err(StoreError::Corrupt { .. }) if damaged.sessions()?.is_some() => {}
            Err(error @ (StoreError::Full { .. } | StoreError::Io { .. })) => {
                drop(reader);
                reader = connection::alone(&path, options)?;
                match schema::check(&reader, &path, schema::LOG) {
                    Ok(Found::Store) => unwritable = Some(error),
                    _ => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
        let reader = Shared::new(Arc::clone(&path), reader);
        Ok(Self {
            writer: Arc::new(writer),
            unwritable,
            is_older,
            damaged,
            ..Self::of_reader(folder, path, reader, options)
        })
    }

    /// Opens the store of a folder so that nothing is made or changed in it. Only its log may be read.
    pub(crate) async fn open_to_read(folder: &Path) -> Result<Self, StoreError> {
        let (folder, options) = (folder.to_path_buf(), Options::default());
        let path: Arc<Path> = folder.join(FILE).into();
        let at = Arc::clone(&path);
        let open = move || {
            if !at.exists() {
                return Err(fault::other(&at, "there is no store"));
            }
            let mut reader = connection::observer(&at, &options)?;
            let mut found = schema::check(&reader, &at, schema::LOG);
            if let Err(StoreError::Full { .. } | StoreError::Io { .. }) = found {
                drop(reader);
                reader = connection::alone(&at, &options)?;
                found = schema::check(&reader, &at, schema::LOG);
            }
            let reader = Shared::new(Arc::clone(&at), reader);
            let mut store = Self::of_reader(&folder, Arc::clone(&at), reader, &options);
            store.unwritable = Some(fault::other(&at, "it was opened to be read only"));
            match found {
                Ok(Found::Store) => {}
                Ok(Found::New) => return Err(fault::other(&at, "there is no store")),
                Ok(Found::Older) => store.is_older = true,
                Err(StoreError::Corrupt { .. }) if store.damaged.sessions()?.is_some() => {}
                Err(error) => return Err(error),
            }
            Ok(store)
        };
        blocking(&path, open).await
    }

    fn of_reader(folder: &Path, path: Arc<Path>, reader: Shared, options: &Options) -> Self {
        Self {
            writer: Arc::default(),
            unwritable: None,
            reader,
            is_older: false,
            damaged: Damaged::new(&path),
            leases: Leases::new(&folder.join(LOCKS), options),
            archive: Archive::new(folder, options),
            files: Files::new(folder, options),
            options: Arc::new(options.clone()),
            path,
        }
    }

    pub(crate) fn shared_path(&self) -> &Arc<Path> {
        &self.path
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    pub(crate) fn damaged(&self) -> &Damaged {
        &self.damaged
    }

    /// Whether the file is of an older format and is left so.
    pub(crate) fn is_older(&self) -> bool {
        self.is_older
    }

    pub(crate) async fn writer(&self) -> Result<&Shared, StoreError> {
        if let Some(why) = &self.unwritable {
            return Err(why.clone());
        }
        let open = self.writer.get_or_try_init(|| async {
            let (path, options) = (Arc::clone(&self.path), Arc::clone(&self.options));
            blocking(&self.path, move || {
                let opened = connection::writer(&path, &options, schema::LOG, options.max_bytes)?;
                Ok(Shared::new(path, opened))
            })
            .await
        });
        open.await
    }

    /// Reads with `work`. If the file is damaged, `scan` reads what it can, or finds nothing.
    async fn read<T, F, S>(&self, work: F, scan: S) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection, &Path) -> Result<T, StoreError> + Send + 'static,
        S: FnOnce(&Damaged) -> Result<Option<T>, StoreError> + Send + 'static,
    {
        let read = match self.is_older {
            true => Err(fault::corrupt(&self.path, "it is of an older format")),
            false => self.reader.with(work).await,
        };
        let error = match read {
            Err(error @ (StoreError::Corrupt { .. } | StoreError::BadEntry { .. })) => error,
            read => return read,
        };
        let damaged = self.damaged.clone();
        blocking(&self.path, move || match (scan(&damaged), error) {
            (Ok(Some(read)), _) => Ok(read),
            (Err(found), StoreError::Corrupt { .. }) => Err(found),
            (_, error) => Err(error),
        })
        .await
    }

    async fn newest_of(&self, limit: Option<u32>) -> Result<Vec<SessionInfo>, StoreError> {
        self.read(
            move |connection, path| read::newest(connection, path, limit),
            Damaged::sessions,
        )
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

    /// The right to write to what belongs to a session but is not in this file.
    async fn checked_right(&self, lease: &Lease) -> Result<Right, StoreError> {
        let right = self.right(lease)?;
        let checked = self.writer().await?.with(move |connection, path| {
            let moment = connection.transaction().map_err(fault::sqlite(path))?;
            right.check(&moment, path).map(|()| right)
        });
        checked.await
    }

    /// Where the archive may look for what a session has archived: at its own items, the first, and
    /// at those that it shares with what it is a fork of.
    async fn places(&self, session: &SessionId) -> Result<Places, StoreError> {
        let kin = self.lineage(session).await?;
        Ok(Places::new(session.clone(), kin))
    }

    /// The session and those that it is a fork of, itself first; none if nothing was written to it.
    pub(crate) async fn lineage(&self, session: &SessionId) -> Result<Vec<Kin>, StoreError> {
        let session = session.clone();
        self.read(
            move |connection, path| lineage(connection, &session).map_err(fault::sqlite(path)),
            |_| Ok(None),
        )
        .await
    }

    /// The number of the first entry after `after` that has a row in the file, whole or not.
    pub(crate) async fn next_entry(&self, session: &SessionId, after: u64) -> Option<u64> {
        let (damaged, session) = (self.damaged.clone(), session.clone());
        let found = blocking(&self.path, move || damaged.next_entry(&session, after)).await;
        found.ok().flatten()
    }

    pub(crate) async fn raw_page(
        &self,
        session: &SessionId,
        after: u64,
    ) -> Result<Vec<Raw>, StoreError> {
        let (wanted, session) = (session.clone(), session.clone());
        self.read(
            move |connection, path| read::page(connection, path, &wanted, after),
            move |damaged| damaged.page(&session, after),
        )
        .await
    }
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        // What cannot be written to is told before anything is done.
        let writer = self.writer().await?.clone();
        let (leases, wanted) = (self.leases.clone(), session.clone());
        let held = blocking(&self.path, move || leases.acquire(&writer, &wanted)).await?;
        Ok(Lease::new(session.clone(), Box::new(held)))
    }

    async fn load(&self, session: &SessionId) -> Result<Vec<Entry>, StoreError> {
        export::load(&self.path, session, |after| self.raw_page(session, after)).await
    }

    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        let right = self.right(lease)?;
        if entries.is_empty() {
            return Ok(());
        }
        let entries = entries.to_vec();
        self.writer()
            .await?
            .with(move |connection, path| {
                let written = write::append(connection, path, &right, &entries);
                // Not before it is written, even where the caller and the lease are gone by now.
                drop(right);
                written
            })
            .await
    }

    async fn fork(&self, lease: &Lease, of: &Fork, own: &[Entry]) -> Result<(), StoreError> {
        let right = self.right(lease)?;
        let (of, own) = (of.clone(), own.to_vec());
        self.writer()
            .await?
            .with(move |connection, path| {
                let forked = write::fork(connection, path, &right, &of, &own);
                drop(right);
                forked
            })
            .await
    }

    async fn delete(&self, lease: &Lease) -> Result<bool, StoreError> {
        let right = self.right(lease)?;
        let kin = self.lineage(lease.session()).await?.into_iter().next();
        let held = right.clone();
        let was_there = self
            .writer()
            .await?
            .with(move |connection, path| delete::session(connection, path, &held))
            .await?;
        if was_there {
            self.archive.remove(right).await?;
            self.files.remove(lease.session(), kin).await?;
        }
        Ok(was_there)
    }

    async fn rename(&self, session: &SessionId, title: &str) -> Result<bool, StoreError> {
        let (session, title) = (session.clone(), title.to_owned());
        self.writer()
            .await?
            .with(move |connection, path| delete::rename(connection, path, &session, &title))
            .await
    }

    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        self.newest_of(None).await
    }

    async fn idle(&self, session: &SessionId) -> Option<Duration> {
        let info = self.info(session).await.ok()??;
        let now = read::from_column(write::now());
        Some(Duration::from_secs(now.saturating_sub(info.updated)))
    }

    async fn learned_window(&self, endpoint: &str) -> Result<Option<Tokens>, StoreError> {
        let endpoint = endpoint.to_owned();
        self.read(
            move |connection, path| windows::learned(connection, path, &endpoint, write::now()),
            |_| Ok(None),
        )
        .await
    }

    async fn learn_window(&self, endpoint: &str, window: Tokens) -> Result<(), StoreError> {
        let endpoint = endpoint.to_owned();
        self.writer()
            .await?
            .with(move |connection, path| {
                windows::learn(connection, path, &endpoint, window, write::now())
            })
            .await
    }

    async fn archives(&self) -> Result<(), StoreError> {
        self.archive.check().await
    }

    async fn archive(&self, lease: &Lease, items: &[Archived]) -> Result<(), StoreError> {
        if items.is_empty() {
            return self.right(lease).map(|_| ());
        }
        let right = self.checked_right(lease).await?;
        let log = self.places(lease.session()).await?.own;
        self.archive.archive(right, log, items).await
    }

    async fn archive_up_to(&self, lease: &Lease, next: Seq) -> Result<(), StoreError> {
        let right = self.checked_right(lease).await?;
        self.archive.keep_up_to(right, next).await
    }

    async fn recall(&self, session: &SessionId, key: &RecallKey) -> Result<Recalled, RecallError> {
        self.archive.recall(self.places(session).await?, key).await
    }

    async fn search(
        &self,
        session: &SessionId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, RecallError> {
        let places = self.places(session).await?;
        self.archive.search(places, query, limit).await
    }

    async fn archived(&self, session: &SessionId) -> Result<Vec<ArchiveRow>, StoreError> {
        self.archive.rows(self.places(session).await?).await
    }

    async fn keep_file(&self, session: &SessionId, edit: FileEdit) -> Result<(), StoreError> {
        let of = self.lineage(session).await?.into_iter().next();
        self.files.keep(session.clone(), of, edit).await
    }
}

/// Makes a folder that only its owner may look into, as with the file itself.
pub(crate) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder).map_err(fault::io(folder))
}
