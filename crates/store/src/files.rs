//! The contents of files before and after sessions changed them. Each content is stored once, by its
//! hash, beside the logs.

use std::path::PathBuf;

use blake3::Hash as ContentHash;
use plimsoll_context::Bytes;
use plimsoll_core::{FileEdit, MAX_KEPT_FILE, SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::columns::{from_column, to_column};
use crate::fault::{self, WorkError};
use crate::read::lineage;
use crate::sqlite::SqliteStore;
use crate::write::now;

/// Maximum size of the kept contents of all sessions. Beyond it, the oldest are deleted. The records
/// of the changes stay.
pub const KEPT_CONTENTS: Bytes = Bytes(1 << 30);

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
}

impl SqliteStore {
    /// Returns the changes of files by a session, oldest first, including the changes that a fork
    /// shares.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn changed_files(
        &self,
        session: &SessionId,
    ) -> Result<Vec<RecordedChange>, StoreError> {
        let session = session.clone();
        self.reader()
            .with(move |connection, _| changes(connection, &session))
            .await
    }

    /// Returns a content of a file, or `None` if it is no longer kept.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn kept_content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        let read = move |connection: &mut Connection| {
            connection
                .prepare_cached("SELECT bytes FROM contents WHERE hash = ?1")?
                .query_row([hash.as_bytes()], |row| row.get::<_, Vec<u8>>(0))
                .optional()
        };
        let content = self
            .reader()
            .with(move |connection, _| read(connection))
            .await?;
        match content.as_deref().map(blake3::hash) {
            Some(is) if is != hash => {
                let why = format!("the kept content {hash} of a file was altered");
                Err(fault::other(self.path(), why))
            }
            _ => Ok(content),
        }
    }
}

/// Keeps both contents of a change by a session.
pub(crate) fn keep(
    connection: &mut Connection,
    session: &SessionId,
    edit: &FileEdit,
    most: Bytes,
) -> Result<(), WorkError> {
    let (root, path) = (edit.root.to_str(), edit.path.to_str());
    let (Some(root), Some(path)) = (root, path) else {
        return Err(refused(edit, "its path is not UTF-8; rename it"));
    };
    let largest = edit.before.iter().chain(&edit.after).map(Vec::len).max();
    if largest.is_some_and(|size| size as u64 > MAX_KEPT_FILE.0) {
        let why = format!("it has more than the {MAX_KEPT_FILE} bytes that are kept of a file");
        return Err(refused(edit, why));
    }
    // A transaction that is dropped is rolled back.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let before = insert(&transaction, edit.before.as_deref())?;
    let after = insert(&transaction, edit.after.as_deref())?;
    let call = edit.call.as_ref().map(|call| call.0.as_str());
    let rows = transaction
        .prepare_cached(
            "INSERT INTO changes (session, entry, call, at, root, path, before, after)
             SELECT key, entries, ?2, ?3, ?4, ?5, ?6, ?7 FROM sessions WHERE id = ?1",
        )?
        .execute(params![
            session.as_str(),
            call,
            now(),
            root,
            path,
            before,
            after
        ])?;
    if rows == 0 {
        return Err(refused(edit, format!("session {session} has no log")));
    }
    delete_beyond(&transaction, most)?;
    Ok(transaction.commit()?)
}

fn refused(edit: &FileEdit, why: impl Into<String>) -> WorkError {
    fault::other(&edit.path, why).into()
}

/// Stores a content as the newest one. Returns its hash.
fn insert(
    transaction: &Transaction<'_>,
    bytes: Option<&[u8]>,
) -> rusqlite::Result<Option<[u8; 32]>> {
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let hash = *blake3::hash(bytes).as_bytes();
    let size = to_column(bytes.len() as u64);
    transaction
        .prepare_cached("REPLACE INTO contents (hash, size, bytes) VALUES (?1, ?2, ?3)")?
        .execute(params![hash, size, bytes])?;
    Ok(Some(hash))
}

/// Deletes the oldest contents until the rest has at most this size. The two newest, which belong to
/// one change, stay.
fn delete_beyond(transaction: &Transaction<'_>, most: Bytes) -> rusqlite::Result<()> {
    let size = || {
        transaction
            .prepare_cached("SELECT ifnull(sum(size), 0) FROM contents")?
            .query_row([], |row| row.get(0))
            .map(from_column)
    };
    let mut oldest = transaction.prepare_cached(
        "DELETE FROM contents WHERE key = (SELECT min(key) FROM contents)
           AND key < (SELECT max(key) - 1 FROM contents)",
    )?;
    while size()? > most.0 && oldest.execute([])? > 0 {}
    Ok(())
}

/// Deletes the changes of a session, and the contents that no other session needs.
pub(crate) fn delete(transaction: &Transaction<'_>, key: i64) -> rusqlite::Result<()> {
    if transaction.execute("DELETE FROM changes WHERE session = ?1", [key])? > 0 {
        transaction.execute(
            "DELETE FROM contents WHERE NOT EXISTS (SELECT 1 FROM changes WHERE before = hash)
               AND NOT EXISTS (SELECT 1 FROM changes WHERE after = hash)",
            [],
        )?;
    }
    Ok(())
}

fn changes(
    connection: &mut Connection,
    session: &SessionId,
) -> rusqlite::Result<Vec<RecordedChange>> {
    let moment = connection.transaction()?;
    let mut statement = moment.prepare_cached(
        "SELECT entry, call, at, root, path, before, after FROM changes
         WHERE session = ?1 AND entry <= ?2 ORDER BY row",
    )?;
    let mut all = Vec::new();
    // The oldest ancestor has the first changes.
    for kin in lineage(&moment, session)?.iter().rev() {
        let rows = statement.query_map(params![kin.key, to_column(kin.entries)], change)?;
        for row in rows {
            all.push(row?);
        }
    }
    Ok(all)
}

fn change(row: &Row<'_>) -> rusqlite::Result<RecordedChange> {
    let hash = |at: usize| -> rusqlite::Result<Option<ContentHash>> {
        Ok(row.get::<_, Option<[u8; 32]>>(at)?.map(ContentHash::from))
    };
    Ok(RecordedChange {
        entry: from_column(row.get(0)?),
        call: row.get(1)?,
        at: from_column(row.get(2)?),
        root: row.get::<_, String>(3)?.into(),
        path: row.get::<_, String>(4)?.into(),
        before: hash(5)?,
        after: hash(6)?,
    })
}

#[cfg(test)]
mod tests;
