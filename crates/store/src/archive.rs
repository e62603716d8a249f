//! [`Archive`]: the evicted messages of all sessions, complete and searchable, in a file beside the
//! log.
//!
//! The file is opened on first use. A damaged, full or locked archive cannot affect the log. Items
//! are added and expired in `archive::write`, and recalled and searched in `archive::read`.

mod read;
mod write;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, Message, Seq};
use plimsoll_core::archive::ArchivedItem;
use plimsoll_core::{ArchiveBounds, RecallId, SessionId, StoreError};
use tokio::sync::OnceCell;

use crate::columns::{ALTERED, item_sum, to_column};
use crate::connection::{self, SharedConnection, blocking};
use crate::options::{ARCHIVE_CHECKED, ARCHIVE_FILE, ARCHIVE_FILE_MIN, Options};
use crate::read::LogAncestor;
use crate::schema;

/// The archive's file in the data folder.
pub const ARCHIVE: &str = "archive.db";

/// The visible items of one session.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveScope {
    session: SessionId,
    /// Distinguishes its log from other logs of the same name. `None` if it has no log yet.
    born: Option<Vec<u8>>,
    /// Only items below this number.
    below: Option<Seq>,
}

/// The places to search for the archived items of a session.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveScopes {
    /// The items of the session itself.
    pub(crate) own: ArchiveScope,
    /// The shared items of the sessions that it was forked from, nearest first.
    pub(crate) shared: Vec<ArchiveScope>,
}

/// A message as both databases store it.
pub(crate) struct Body {
    pub(crate) json: String,
    pub(crate) sum: i64,
}

/// The archive of all sessions of a data folder.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    path: Arc<Path>,
    options: Arc<Options>,
    open: Arc<OnceCell<ArchiveConnections>>,
}

#[derive(Debug)]
struct ArchiveConnections {
    writer: SharedConnection,
    reader: SharedConnection,
}

impl ArchiveScopes {
    /// Creates the places of a session from its lineage, which begins with the session itself. The
    /// lineage is empty if the session has no log yet.
    pub(crate) fn new(session: SessionId, kin: Vec<LogAncestor>) -> Self {
        let mut kin = kin.into_iter().map(|kin| ArchiveScope {
            session: kin.id,
            born: Some(kin.born),
            below: kin.below,
        });
        let own = kin.next().unwrap_or(ArchiveScope {
            session,
            born: None,
            below: None,
        });
        Self {
            own,
            shared: kin.collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &ArchiveScope> {
        std::iter::once(&self.own).chain(&self.shared)
    }
}

impl Body {
    /// Returns the message of an item, or the reason why it cannot be read.
    pub(crate) fn message(&self, id: RecallId) -> Result<Message, String> {
        if item_sum(to_column(id.0.0), self.json.as_bytes()) != self.sum {
            return Err(format!("item {id} in it: {ALTERED}"));
        }
        serde_json::from_str(&self.json)
            .map_err(|error| format!("{id} in it is no message: {error}"))
    }
}

/// Returns the items to be added, once each and in order, with their bodies. The last one is an error
/// if the items exceed a bound.
pub(crate) fn bodies<'i>(
    items: &'i [ArchivedItem],
    bounds: &ArchiveBounds,
    place: &str,
) -> impl Iterator<Item = Result<(&'i ArchivedItem, Body), StoreError>> {
    let items: BTreeMap<Seq, &ArchivedItem> = items.iter().map(|item| (item.seq, item)).collect();
    let (mut bytes, mut fresh) = (0, 0);
    items.into_values().map(move |item| {
        let json = serde_json::to_string(&item.message).map_err(|error| StoreError::Archive {
            place: place.to_owned(),
            why: format!("an item cannot be written: {error}"),
        })?;
        bytes += json.len() as u64;
        fresh += 1;
        bounds.admit(bytes, fresh, place)?;
        let sum = item_sum(to_column(item.seq.0), json.as_bytes());
        Ok((item, Body { json, sum }))
    })
}

impl Archive {
    pub(crate) fn new(folder: &Path, options: &Options) -> Self {
        Self {
            path: folder.join(ARCHIVE).into(),
            options: Arc::new(options.clone()),
            open: Arc::default(),
        }
    }

    /// Opens the archive if it is not open yet, and checks whether it is damaged.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        self.open().await.map(|_| ())
    }

    /// Gives free space back to the system.
    pub(crate) async fn shrink(&self) -> Result<(), StoreError> {
        if !self.path.exists() {
            return Ok(());
        }
        let writer = &self.open().await?.writer;
        let shrunk = writer.with(|connection, _| connection::shrink(connection));
        shrunk.await.map_err(as_archive)
    }

    /// Returns the open archive. A failure is not remembered: if the file has been moved away in
    /// the meantime, a new one is created.
    async fn open(&self) -> Result<&ArchiveConnections, StoreError> {
        let (path, options) = (Arc::clone(&self.path), Arc::clone(&self.options));
        let open = self.open.get_or_try_init(|| async {
            let at = Arc::clone(&path);
            blocking(&path, move || open_now(at, &options)).await
        });
        open.await.map_err(as_archive)
    }
}

fn open_now(path: Arc<Path>, options: &Options) -> Result<ArchiveConnections, StoreError> {
    let most = Bytes(options.archive.bytes.0.saturating_mul(ARCHIVE_FILE)).max(ARCHIVE_FILE_MIN);
    let writer = connection::writer(&path, options, schema::ARCHIVE, most)?;
    let size = fs::metadata(&path).map_or(0, |file| file.len());
    read::check(&writer, &path, Bytes(size) <= ARCHIVE_CHECKED)?;
    let reader = connection::reader(&path, options)?;
    Ok(ArchiveConnections {
        writer: SharedConnection::new(Arc::clone(&path), writer),
        reader: SharedConnection::new(path, reader),
    })
}

/// Turns an error into one that names the archive, because the log does not depend on it.
fn as_archive(error: StoreError) -> StoreError {
    match error {
        StoreError::Corrupt { path, why } => StoreError::Archive {
            place: path,
            why: format!("{why}; move it away, and a new one is created"),
        },
        StoreError::Full { path } => StoreError::Archive {
            place: path,
            why: "no space is left for it; free some".to_owned(),
        },
        StoreError::Io { path, why } => StoreError::Archive { place: path, why },
        other => other,
    }
}
