//! Checkpoints: one for each session, beside its log. A checkpoint is used only if its checksum matches
//! its text, its session and the last entry that it covers.

use plimsoll_agent::Checkpoint;
use plimsoll_core::{SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::columns::{checkpoint_sum, entry_sum, from_column, to_column};
use crate::connection::overwrite_deleted;
use crate::fault::WorkError;
use crate::lease::Right;
use crate::read::{LogAncestor, lineage};
use crate::sqlite::SqliteStore;

impl SqliteStore {
    /// Deletes the checkpoints of all sessions and returns their number. The next run of a session
    /// reads its whole log.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub async fn drop_checkpoints(&self) -> Result<usize, StoreError> {
        self.writer()
            .await?
            .with(|connection, _| drop_all(connection))
            .await
    }

    /// Returns the stored checkpoint of a session itself. One that cannot be read is the same as none.
    pub(crate) async fn own_checkpoint(&self, session: &SessionId) -> Stored {
        let session = session.clone();
        let found = self.read(move |connection, _| of(connection, &session), |_| Ok(None));
        found.await.unwrap_or(Stored::Nothing)
    }
}

/// Stores the checkpoint of a session in place of an earlier one. A checkpoint that does not belong
/// to the log is not stored.
pub(crate) fn save(
    connection: &mut Connection,
    right: &Right,
    checkpoint: &Checkpoint,
) -> Result<(), WorkError> {
    overwrite_deleted(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    right.check(&transaction)?;
    put(&transaction, right.session(), checkpoint)?;
    Ok(transaction.commit()?)
}

/// Returns the newest checkpoint that belongs to the log of a session: its own, or that of a session
/// that it was forked from, if this covers shared entries only.
pub(crate) fn find(
    connection: &mut Connection,
    session: &SessionId,
) -> rusqlite::Result<Option<Checkpoint>> {
    // One transaction, so that the checkpoint and the entries are consistent.
    let transaction = connection.transaction()?;
    let kin = lineage(&transaction, session)?;
    for (depth, own) in kin.iter().enumerate() {
        let line = kin.get(depth..).unwrap_or_default();
        if let Stored::Usable(checkpoint) = stored(&transaction, own, line)? {
            return Ok(Some(checkpoint));
        }
    }
    Ok(None)
}

/// Returns the stored checkpoint of a session itself.
fn of(connection: &mut Connection, session: &SessionId) -> rusqlite::Result<Stored> {
    let transaction = connection.transaction()?;
    let kin = lineage(&transaction, session)?;
    match kin.first() {
        Some(own) => stored(&transaction, own, &kin),
        None => Ok(Stored::Nothing),
    }
}

/// Deletes all checkpoints. Returns their number.
fn drop_all(connection: &Connection) -> rusqlite::Result<usize> {
    overwrite_deleted(connection)?;
    connection.execute("DELETE FROM checkpoints", [])
}

/// A stored checkpoint.
pub(crate) enum Stored {
    /// There is none, or it covers entries that are not part of the log.
    Nothing,
    /// It belongs to the log.
    Usable(Checkpoint),
    /// Its text or its last entry was altered.
    Altered,
}

/// A row of the table `checkpoints`, which SQLite and PostgreSQL have alike.
pub(crate) struct CheckpointRow {
    pub(crate) entries: i64,
    /// As bytes, because an invalid text is an altered one.
    pub(crate) state: Vec<u8>,
    pub(crate) sum: i64,
}

impl CheckpointRow {
    /// Creates the row of a session's checkpoint. `last` is the checksum of the last entry that it
    /// covers.
    pub(crate) fn new(session: i64, checkpoint: &Checkpoint, last: i64) -> Self {
        let entries = to_column(checkpoint.entries);
        Self {
            entries,
            state: checkpoint.state.clone().into_bytes(),
            sum: checkpoint_sum([session, entries, last], checkpoint.state.as_bytes()),
        }
    }

    /// Reads the row of a session's checkpoint. `last` is the checksum of the last entry that it
    /// covers, if there is one.
    pub(crate) fn read(self, session: i64, last: Option<i64>) -> Stored {
        let is_same = |last| {
            let numbers = [session, self.entries, last];
            checkpoint_sum(numbers, &self.state) == self.sum
        };
        match (last.is_some_and(is_same), String::from_utf8(self.state)) {
            (true, Ok(state)) => Stored::Usable(Checkpoint {
                entries: from_column(self.entries),
                state,
            }),
            _ => Stored::Altered,
        }
    }
}

fn put(
    transaction: &Transaction<'_>,
    session: &SessionId,
    checkpoint: &Checkpoint,
) -> rusqlite::Result<()> {
    let kin = lineage(transaction, session)?;
    let Some(own) = kin.first() else {
        return Ok(());
    };
    let Some(last) = sum_of_entry(transaction, &kin, checkpoint.entries)? else {
        return Ok(());
    };
    let row = CheckpointRow::new(own.key, checkpoint, last);
    transaction
        .prepare_cached(
            "INSERT INTO checkpoints (session, entries, state, sum) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (session) DO UPDATE
             SET entries = excluded.entries, state = excluded.state, sum = excluded.sum",
        )?
        .execute(params![own.key, row.entries, checkpoint.state, row.sum])?;
    Ok(())
}

/// Returns the checkpoint of `own`, which begins `line`.
fn stored(
    transaction: &Transaction<'_>,
    own: &LogAncestor,
    line: &[LogAncestor],
) -> rusqlite::Result<Stored> {
    let row = transaction
        .prepare_cached(
            "SELECT entries, state, sum FROM checkpoints WHERE session = ?1 AND entries <= ?2",
        )?
        .query_row([own.key, to_column(own.entries)], |row| {
            Ok(CheckpointRow {
                entries: row.get(0)?,
                state: row.get_ref(1)?.as_bytes()?.to_vec(),
                sum: row.get(2)?,
            })
        })
        .optional()?;
    let Some(row) = row else {
        return Ok(Stored::Nothing);
    };
    let last = sum_of_entry(transaction, line, from_column(row.entries))?;
    Ok(row.read(own.key, last))
}

/// Returns the checksum of an entry of the log whose session begins `line`, from its text. Returns
/// `None` if there is no such entry.
fn sum_of_entry(
    transaction: &Transaction<'_>,
    line: &[LogAncestor],
    n: u64,
) -> rusqlite::Result<Option<i64>> {
    let Some(owner) = line.iter().find(|kin| kin.shared < n && n <= kin.entries) else {
        return Ok(None);
    };
    let n = to_column(n);
    transaction
        .prepare_cached("SELECT at, json FROM entries WHERE session = ?1 AND n = ?2")?
        .query_row(params![owner.key, n], |row| {
            let json = row.get_ref(1)?.as_bytes()?;
            Ok(entry_sum(n, row.get(0)?, json))
        })
        .optional()
}
