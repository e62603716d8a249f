//! Deletes whole sessions and renames sessions. Entries are never changed here.

use plimsoll_core::{SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::checkpoint::overwrite_deleted;
use crate::columns;
use crate::fault::WorkError;
use crate::lease::Right;

/// A file is rewritten if more than one in this many of its pages is free.
const FREE_PAGES: i64 = 4;

/// Deletes a session: its entries, its settings, its checkpoint and its row. Returns `false` if there is none.
pub(crate) fn session(connection: &mut Connection, right: &Right) -> Result<bool, WorkError> {
    let session = right.session();
    overwrite_deleted(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    right.check(&transaction)?;
    let key = transaction
        .query_row(
            "SELECT key FROM sessions WHERE id = ?1",
            [session.as_str()],
            |row| row.get::<_, i64>(0),
        )
        .optional()?;
    let Some(key) = key else {
        return Ok(false);
    };
    let forks = forks(&transaction, key)?;
    if !forks.is_empty() {
        let session = session.clone();
        return Err(StoreError::HasForks { session, forks }.into());
    }
    for sql in [
        "INSERT INTO deletions (session) VALUES (?1)",
        "DELETE FROM settings WHERE session = (SELECT id FROM sessions WHERE key = ?1)",
        "DELETE FROM checkpoints WHERE session = ?1",
        "DELETE FROM entries WHERE session = ?1",
        "DELETE FROM sessions WHERE key = ?1",
        "DELETE FROM deletions WHERE session = ?1",
    ] {
        transaction.execute(sql, [key])?;
    }
    transaction.commit()?;
    Ok(true)
}

fn forks(transaction: &Transaction<'_>, key: i64) -> rusqlite::Result<Vec<SessionId>> {
    let mut statement =
        transaction.prepare_cached("SELECT id FROM sessions WHERE parent = ?1 ORDER BY key")?;
    let rows = statement.query_map([key], |row| columns::name(row, 0))?;
    rows.collect()
}

/// Changes the title of a session. Returns `false` if the session does not exist.
pub(crate) fn rename(
    connection: &Connection,
    session: &SessionId,
    title: &str,
) -> rusqlite::Result<bool> {
    let rows = connection.execute(
        "UPDATE sessions SET title = ?2 WHERE id = ?1",
        params![session.as_str(), title],
    )?;
    Ok(rows > 0)
}

/// Returns free pages to the system if there are many. If another process reads the file at that
/// moment, it stays unchanged.
pub(crate) fn shrink(connection: &Connection) -> rusqlite::Result<()> {
    let count = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if count("freelist_count")?.saturating_mul(FREE_PAGES) <= count("page_count")? {
        return Ok(());
    }
    match connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)") {
        Err(error)
            if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseBusy)
                && error.sqlite_error_code() != Some(rusqlite::ErrorCode::DiskFull) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}
