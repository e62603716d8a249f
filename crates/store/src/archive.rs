//! [`Archive`]: the file beside the log that has what left the views, whole and searchable.
//!
//! It is opened when it is first needed, and nothing of it, damaged or full or locked, can hurt
//! the log. Not the SQL, which is in `archive::write` and `archive::read`.

mod read;
mod write;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, Seq};
use plimsoll_core::archive::{ArchiveRow, Archived, Hit, RecallError, RecallKey, Recalled};
use plimsoll_core::{ArchiveBounds, SessionId, StoreError};
use rusqlite::Connection;
use tokio::sync::OnceCell;

use crate::connection::{self, Shared, blocking};
use crate::delete;
use crate::fault;
use crate::lease::Right;
use crate::lineage::Kin;
use crate::options::{ARCHIVE_CHECKED, ARCHIVE_FILE, ARCHIVE_FILE_MIN, Options};
use crate::schema;

/// The archive's file in the data folder.
pub const ARCHIVE: &str = "archive.db";

/// Whose items may be seen.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    session: SessionId,
    /// What tells its log from any other of its name; `None` where it has none yet.
    born: Option<Vec<u8>>,
    /// Only items below this number.
    below: Option<Seq>,
}

/// Where to look for what a session has archived.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Its own items.
    pub(crate) own: Place,
    /// Those of the sessions that it is a fork of, the nearest first, as far as it shares them.
    pub(crate) shared: Vec<Place>,
}

/// The archive of all sessions of a data folder.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    path: Arc<Path>,
    options: Arc<Options>,
    open: Arc<OnceCell<Open>>,
}

#[derive(Debug)]
struct Open {
    writer: Shared,
    reader: Shared,
}

impl Places {
    /// Of a session and its kin, itself first; none where it has no log yet.
    pub(crate) fn new(session: SessionId, kin: Vec<Kin>) -> Self {
        let mut kin = kin.into_iter().map(|kin| Place {
            session: kin.id,
            born: kin.born,
            below: kin.below,
        });
        let own = kin.next().unwrap_or(Place {
            session,
            born: None,
            below: None,
        });
        Self {
            own,
            shared: kin.collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.own).chain(&self.shared)
    }
}

impl Archive {
    pub(crate) fn new(folder: &Path, options: &Options) -> Self {
        Self {
            path: folder.join(ARCHIVE).into(),
            options: Arc::new(options.clone()),
            open: Arc::default(),
        }
    }

    /// Opens it, where that has not been done, and looks whether it is whole.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        self.open().await.map(|_| ())
    }

    /// Takes items in; the right to write to the session is kept until that is done.
    pub(crate) async fn archive(
        &self,
        right: Right,
        of: Place,
        items: &[Archived],
    ) -> Result<(), StoreError> {
        let (items, bounds) = (items.to_vec(), self.options.archive);
        let work = self.open().await?.writer.with(move |connection, path| {
            let now = crate::write::now();
            let written = write::archive(connection, path, &bounds, &of, &items, now);
            drop(right);
            written
        });
        work.await.map_err(as_archive)
    }

    pub(crate) async fn keep_up_to(&self, right: Right, next: Seq) -> Result<(), StoreError> {
        let work = self.open().await?.writer.with(move |connection, path| {
            let kept = write::keep_up_to(connection, path, right.session(), next);
            drop(right);
            kept
        });
        work.await.map_err(as_archive)
    }

    /// Takes away all that is of a session.
    pub(crate) async fn remove(&self, right: Right) -> Result<(), StoreError> {
        if !self.path.exists() {
            return Ok(());
        }
        // What is removed is overwritten, and does not stay readable in free pages.
        let overwrite = self.open().await?.writer.with(|connection, path| {
            let set = connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()));
            set.map_err(fault::sqlite(path))
        });
        overwrite.await.map_err(as_archive)?;
        self.keep_up_to(right, Seq(0)).await
    }

    /// Gives free space back to the system.
    pub(crate) async fn shrink(&self) -> Result<(), StoreError> {
        if !self.path.exists() {
            return Ok(());
        }
        let shrunk = self
            .open()
            .await?
            .writer
            .with(|c, path| delete::shrink(c, path));
        shrunk.await.map_err(as_archive)
    }

    pub(crate) async fn recall(
        &self,
        of: Places,
        key: &RecallKey,
    ) -> Result<Recalled, RecallError> {
        let key = key.clone();
        self.read(move |connection, path, bounds, now| {
            read::recall(connection, path, bounds, &of, &key, now)
        })
        .await
    }

    pub(crate) async fn search(
        &self,
        of: Places,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, RecallError> {
        let query = query.to_owned();
        self.read(move |connection, path, bounds, now| {
            read::search(connection, path, bounds, &of, &query, limit, now)
        })
        .await
    }

    pub(crate) async fn rows(&self, of: Places) -> Result<Vec<ArchiveRow>, StoreError> {
        let rows = self.read(move |connection, path, bounds, now| {
            Ok(read::rows(connection, path, bounds, &of, now)?)
        });
        rows.await.map_err(|error| match error {
            RecallError::Store(error) => error,
            other => fault::other(&self.path, other.to_string()),
        })
    }

    async fn read<T, F>(&self, work: F) -> Result<T, RecallError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection, &Path, &ArchiveBounds, u64) -> Result<T, RecallError>
            + Send
            + 'static,
    {
        let bounds = self.options.archive;
        let reader = &self.open().await?.reader;
        // A refusal is an answer of the work, a fault of the file is a failure of it.
        let done = reader.with(move |connection, path| {
            let now = u64::try_from(crate::write::now()).unwrap_or(0);
            match work(connection, path, &bounds, now) {
                Err(RecallError::Store(error)) => Err(error),
                answer => Ok(answer),
            }
        });
        done.await.map_err(as_archive)?
    }

    /// Not kept where it fails: a file that was moved away meanwhile is begun anew.
    async fn open(&self) -> Result<&Open, StoreError> {
        let (path, options) = (Arc::clone(&self.path), Arc::clone(&self.options));
        let open = self.open.get_or_try_init(|| async {
            let at = Arc::clone(&path);
            blocking(&path, move || open_now(at, &options)).await
        });
        open.await.map_err(as_archive)
    }
}

fn open_now(path: Arc<Path>, options: &Options) -> Result<Open, StoreError> {
    let most = Bytes(options.archive.bytes.0.saturating_mul(ARCHIVE_FILE)).max(ARCHIVE_FILE_MIN);
    let writer = connection::writer(&path, options, schema::ARCHIVE, most)?;
    let size = fs::metadata(&path).map_or(0, |file| file.len());
    read::check(&writer, &path, Bytes(size) <= ARCHIVE_CHECKED)?;
    let reader = connection::reader(&path, options)?;
    Ok(Open {
        writer: Shared::new(Arc::clone(&path), writer),
        reader: Shared::new(path, reader),
    })
}

/// Says of a fault that it is the archive's, and that the log does not depend on it.
fn as_archive(error: StoreError) -> StoreError {
    match error {
        StoreError::Corrupt { path, why } => StoreError::Archive {
            place: path,
            why: format!("{why}; move it away to begin a new one"),
        },
        StoreError::Full { path } => StoreError::Archive {
            place: path,
            why: "no space is left for it; free some".to_owned(),
        },
        StoreError::Io { path, why } => StoreError::Archive { place: path, why },
        other => other,
    }
}
