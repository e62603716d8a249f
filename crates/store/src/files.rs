//! [`Files`]: the contents of files before and after sessions changed them. Each content is stored
//! once.
//!
//! The contents are in a file of their own beside the log, which is opened on first use. It cannot
//! affect the log. The caller decides which content to restore.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_context::Bytes;
use plimsoll_core::{FileEdit, MAX_KEPT_FILE, SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use tokio::sync::OnceCell;

use crate::columns::{from_column, to_column};
use crate::connection::{self, SharedConnection, blocking};
use crate::fault::{self, WorkError};
use crate::options::Options;
use crate::read::LogAncestor;
use crate::schema;
use crate::write::now;

/// The file of kept contents in the data folder.
pub const FILES: &str = "files.db";

/// Maximum size of the kept contents of one session. Beyond it, the oldest are forgotten.
pub const KEPT_IN_SESSION: Bytes = Bytes(256 << 20);

/// Maximum size of the kept contents of all sessions. Beyond it, the oldest are forgotten.
pub const KEPT_IN_ALL: Bytes = Bytes(1 << 30);

/// Maximum number of recorded changes of one session. Beyond it, the oldest records are removed.
pub const MAX_CHANGES: u64 = 10_000;

/// Maximum number of recorded changes of all sessions.
pub const MAX_CHANGES_IN_ALL: u64 = 100_000;

/// Maximum size of the file: the kept contents, and the space of forgotten contents until it is
/// reused.
const MAX_FILE: Bytes = Bytes(2 * KEPT_IN_ALL.0);

/// The columns of [`change`].
const COLUMNS: &str = "entry, call, at, root, path, before, after, forgotten";

/// The BLAKE3 hash of a content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

/// A change of a file by a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    /// The number of the last log entry when the file was changed, from 1.
    pub entry: u64,
    /// The tool call that changed the file; `None` if a person restored it.
    pub call: Option<String>,
    /// The time of the change, in seconds since 1970.
    pub at: u64,
    /// The workspace root.
    pub root: PathBuf,
    /// The path of the file, relative to the root.
    pub path: PathBuf,
    /// The content before the change; `None` if the file did not exist.
    pub before: Option<ContentHash>,
    /// The content after the change; `None` if the file was removed.
    pub after: Option<ContentHash>,
    /// Whether the contents may have been forgotten.
    pub is_forgotten: bool,
}

/// The limits of the kept contents.
#[derive(Debug, Clone, Copy)]
struct KeptLimits {
    session: Bytes,
    all: Bytes,
    changes: u64,
    changes_in_all: u64,
}

/// The kept contents of all sessions of a data folder.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    path: Arc<Path>,
    options: Arc<Options>,
    limits: KeptLimits,
    open: Arc<OnceCell<SharedConnection>>,
}

impl ContentHash {
    /// Returns the hash of a content.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl KeptLimits {
    const DEFAULT: Self = Self {
        session: KEPT_IN_SESSION,
        all: KEPT_IN_ALL,
        changes: MAX_CHANGES,
        changes_in_all: MAX_CHANGES_IN_ALL,
    };
}

impl Files {
    pub(crate) fn new(folder: &Path, options: &Options) -> Self {
        Self {
            path: folder.join(FILES).into(),
            options: Arc::new(options.clone()),
            limits: KeptLimits::DEFAULT,
            open: Arc::default(),
        }
    }

    /// Keeps both contents of a change. `of` is the session that makes the change and `entries` is
    /// the length of its log.
    pub(crate) async fn keep(
        &self,
        session: SessionId,
        of: Option<LogAncestor>,
        edit: FileEdit,
    ) -> Result<(), StoreError> {
        let limits = self.limits;
        let work = self.open().await?.with(move |connection, path| {
            let (root, relative) = (as_text(&edit.root, path)?, as_text(&edit.path, path)?);
            let largest = edit.before.iter().chain(&edit.after).map(Vec::len).max();
            if largest.is_some_and(|size| size as u64 > MAX_KEPT_FILE.0) {
                let why =
                    format!("it has more than the {MAX_KEPT_FILE} bytes that are kept of a file");
                return Err(fault::other(path, why).into());
            }
            let change = NewChange {
                session: &session,
                log: of.as_ref().map(|kin| &*kin.born),
                entry: of.as_ref().map_or(0, |kin| kin.entries),
                root,
                path: relative,
                edit: &edit,
            };
            Ok::<_, WorkError>(keep(connection, &change, &limits, now())?)
        });
        work.await.map_err(as_files)
    }

    /// Returns the changes of a session, oldest first, including the changes that a fork shares.
    pub(crate) async fn changes(
        &self,
        of: Vec<LogAncestor>,
    ) -> Result<Vec<RecordedChange>, StoreError> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let open = self.open().await?;
        let work = open.with(move |connection, _| changes(connection, &of));
        work.await.map_err(as_files)
    }

    /// Removes the changes of a deleted session, and the contents that only they needed.
    pub(crate) async fn remove(
        &self,
        session: &SessionId,
        of: Option<LogAncestor>,
    ) -> Result<(), StoreError> {
        if !self.path.exists() {
            return Ok(());
        }
        let (session, born) = (session.clone(), of.map(|kin| kin.born));
        let open = self.open().await?;
        let work =
            open.with(move |connection, _| remove_all(connection, &session, born.as_deref()));
        work.await.map_err(as_files)
    }

    /// Returns free space to the system.
    pub(crate) async fn shrink(&self) -> Result<(), StoreError> {
        if !self.path.exists() {
            return Ok(());
        }
        let shrunk = self
            .open()
            .await?
            .with(|connection, _| connection::shrink(connection));
        shrunk.await.map_err(as_files)
    }

    /// Returns a content, or `None` if it is no longer kept.
    pub(crate) async fn content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        let work = self.open().await?.with(move |connection, path| {
            let found: Option<Vec<u8>> = connection
                .prepare_cached("SELECT bytes FROM contents WHERE hash = ?1")?
                .query_row([hash.0], |row| row.get(0))
                .optional()?;
            match found.as_deref().map(ContentHash::of) {
                Some(is) if is != hash => Err(WorkError::Store(fault::corrupt(
                    path,
                    "it is damaged inside",
                ))),
                _ => Ok(found),
            }
        });
        work.await.map_err(as_files)
    }

    /// Returns the open file. A failure is not remembered: if the file has been moved away in the
    /// meantime, a new one is created.
    async fn open(&self) -> Result<&SharedConnection, StoreError> {
        let (path, options) = (Arc::clone(&self.path), Arc::clone(&self.options));
        let open = self.open.get_or_try_init(|| async {
            let at = Arc::clone(&path);
            blocking(&path, move || {
                let opened = connection::writer(&at, &options, schema::FILES, MAX_FILE)?;
                Ok(SharedConnection::new(at, opened))
            })
            .await
        });
        open.await.map_err(as_files)
    }
}

/// A change to record.
struct NewChange<'a> {
    session: &'a SessionId,
    log: Option<&'a [u8]>,
    entry: u64,
    root: &'a str,
    path: &'a str,
    edit: &'a FileEdit,
}

fn keep(
    connection: &mut Connection,
    change: &NewChange<'_>,
    limits: &KeptLimits,
    now: i64,
) -> rusqlite::Result<()> {
    // A transaction that is dropped is rolled back.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let before = insert(&transaction, change.edit.before.as_deref())?;
    let after = insert(&transaction, change.edit.after.as_deref())?;
    transaction
        .prepare_cached(
            "INSERT INTO changes (session, log, entry, call, at, root, path, before, after)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            change.session.as_str(),
            change.log,
            to_column(change.entry),
            change.edit.call.as_ref().map(|call| call.0.as_str()),
            now,
            change.root,
            change.path,
            before,
            after,
        ])?;
    forget_beyond(&transaction, change.session, limits)?;
    transaction.commit()
}

/// Stores a content if it is not stored yet. Returns its hash.
fn insert(
    transaction: &Transaction<'_>,
    bytes: Option<&[u8]>,
) -> rusqlite::Result<Option<[u8; 32]>> {
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let ContentHash(hash) = ContentHash::of(bytes);
    transaction
        .prepare_cached(
            "INSERT INTO contents (hash, size, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        )?
        .execute(params![hash, to_column(bytes.len() as u64), bytes])?;
    Ok(Some(hash))
}

/// Forgets the oldest changes until every limit holds. The newest change stays.
fn forget_beyond(
    transaction: &Transaction<'_>,
    session: &SessionId,
    limits: &KeptLimits,
) -> rusqlite::Result<()> {
    let session = session.as_str();
    let number = |sql: &str, of: Option<&str>| -> rusqlite::Result<u64> {
        let mut statement = transaction.prepare_cached(sql)?;
        let number = match of {
            Some(of) => statement.query_row([of], |row| row.get(0))?,
            None => statement.query_row([], |row| row.get(0))?,
        };
        Ok(from_column(number))
    };
    let of_session = "SELECT ifnull(sum(size), 0) FROM contents WHERE hash IN (
           SELECT before FROM changes WHERE session = ?1 AND NOT forgotten
           UNION SELECT after FROM changes WHERE session = ?1 AND NOT forgotten)";
    while number(of_session, Some(session))? > limits.session.0 {
        let oldest =
            "SELECT row FROM changes WHERE session = ?1 AND NOT forgotten ORDER BY row LIMIT 1";
        if !forget(transaction, number(oldest, Some(session))?)? {
            break;
        }
    }
    while number("SELECT ifnull(sum(size), 0) FROM contents", None)? > limits.all.0 {
        let oldest = "SELECT row FROM changes WHERE NOT forgotten ORDER BY row LIMIT 1";
        if !forget(transaction, number(oldest, None)?)? {
            break;
        }
    }
    while number(
        "SELECT count(*) FROM changes WHERE session = ?1",
        Some(session),
    )? > limits.changes
    {
        let oldest = "SELECT row FROM changes WHERE session = ?1 ORDER BY row LIMIT 1";
        remove(transaction, number(oldest, Some(session))?)?;
    }
    while number("SELECT count(*) FROM changes", None)? > limits.changes_in_all {
        remove(transaction, number("SELECT min(row) FROM changes", None)?)?;
    }
    Ok(())
}

/// Removes the contents of a change that no other change needs. Returns `false` for the newest
/// change, which stays.
fn forget(transaction: &Transaction<'_>, row: u64) -> rusqlite::Result<bool> {
    let row = to_column(row);
    let newest: i64 =
        transaction.query_row("SELECT max(row) FROM changes", [], |row| row.get(0))?;
    if row == newest {
        return Ok(false);
    }
    transaction
        .prepare_cached("UPDATE changes SET forgotten = 1 WHERE row = ?1")?
        .execute([row])?;
    transaction
        .prepare_cached(
            "DELETE FROM contents
             WHERE hash IN (SELECT before FROM changes WHERE row = ?1
                            UNION SELECT after FROM changes WHERE row = ?1)
               AND NOT EXISTS (SELECT 1 FROM changes WHERE before = hash AND NOT forgotten AND before IS NOT NULL)
               AND NOT EXISTS (SELECT 1 FROM changes WHERE after = hash AND NOT forgotten AND after IS NOT NULL)",
        )?
        .execute([row])?;
    Ok(true)
}

fn remove_all(
    connection: &mut Connection,
    session: &SessionId,
    born: Option<&[u8]>,
) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "DELETE FROM changes WHERE session = ?1 AND log IS ?2",
        params![session.as_str(), born],
    )?;
    transaction.execute(
        "DELETE FROM contents
         WHERE NOT EXISTS (SELECT 1 FROM changes WHERE before = hash AND NOT forgotten AND before IS NOT NULL)
           AND NOT EXISTS (SELECT 1 FROM changes WHERE after = hash AND NOT forgotten AND after IS NOT NULL)",
        [],
    )?;
    transaction.commit()
}

fn remove(transaction: &Transaction<'_>, row: u64) -> rusqlite::Result<()> {
    forget(transaction, row)?;
    transaction
        .prepare_cached("DELETE FROM changes WHERE row = ?1")?
        .execute([to_column(row)])?;
    Ok(())
}

fn changes(
    connection: &mut Connection,
    of: &[LogAncestor],
) -> rusqlite::Result<Vec<RecordedChange>> {
    let moment = connection.transaction()?;
    let mut statement = moment.prepare_cached(&format!(
        "SELECT row, {COLUMNS} FROM changes
         WHERE session = ?1 AND (log IS NULL OR log = ?2) AND entry <= ?3"
    ))?;
    let mut all: Vec<(i64, RecordedChange)> = Vec::new();
    for kin in of {
        // For the session itself, all of its changes are returned.
        let last = kin.below.map_or(i64::MAX, |_| to_column(kin.entries));
        let rows = statement.query_map(params![kin.id.as_str(), kin.born, last], |row| {
            Ok((row.get(0)?, change(row)?))
        })?;
        for row in rows {
            all.push(row?);
        }
    }
    all.sort_by_key(|(row, _)| *row);
    Ok(all.into_iter().map(|(_, change)| change).collect())
}

fn change(row: &Row<'_>) -> rusqlite::Result<RecordedChange> {
    let hash = |at: &str| -> rusqlite::Result<Option<ContentHash>> {
        Ok(row.get::<_, Option<[u8; 32]>>(at)?.map(ContentHash))
    };
    Ok(RecordedChange {
        entry: from_column(row.get("entry")?),
        call: row.get("call")?,
        at: from_column(row.get("at")?),
        root: row.get::<_, String>("root")?.into(),
        path: row.get::<_, String>("path")?.into(),
        before: hash("before")?,
        after: hash("after")?,
        is_forgotten: row.get("forgotten")?,
    })
}

fn as_text<'a>(path: &'a Path, place: &Path) -> Result<&'a str, StoreError> {
    path.to_str()
        .ok_or_else(|| fault::other(place, "the file's path is not UTF-8; rename it"))
}

/// Turns an error into one that names the file of kept contents.
fn as_files(error: StoreError) -> StoreError {
    match error {
        StoreError::Corrupt { path, why } => StoreError::Files {
            place: path,
            why: format!("{why}; move it away, and a new one is created"),
        },
        StoreError::Full { path } => StoreError::Files {
            place: path,
            why: "no space is left for it; free some".to_owned(),
        },
        StoreError::Io { path, why } => StoreError::Files { place: path, why },
        other => other,
    }
}

#[cfg(test)]
mod tests;
