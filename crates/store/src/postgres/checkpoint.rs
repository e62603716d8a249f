//! Checkpoints in PostgreSQL, as in `checkpoint`.

use plimsoll_agent::Checkpoint;
use plimsoll_core::SessionId;
use sqlx::{PgConnection, Row};

use super::log::{Kin, lineage};
use crate::checksum;
use crate::read::{from_column, to_column};

/// Stores the checkpoint of a session in place of an earlier one. A checkpoint that does not belong to
/// the log is not stored.
pub(super) async fn put(
    connection: &mut PgConnection,
    session: &SessionId,
    checkpoint: &Checkpoint,
) -> sqlx::Result<()> {
    let kin = lineage(connection, session).await?;
    let Some(own) = kin.first() else {
        return Ok(());
    };
    let Some(last) = sum_of_entry(connection, &kin, checkpoint.entries).await? else {
        return Ok(());
    };
    let entries = to_column(checkpoint.entries);
    let sum = checksum::of_checkpoint([own.key, entries, last], &checkpoint.state);
    sqlx::query(
        "INSERT INTO checkpoints (session, entries, state, sum) VALUES ($1, $2, $3, $4)
         ON CONFLICT (session) DO UPDATE
         SET entries = excluded.entries, state = excluded.state, sum = excluded.sum",
    )
    .bind(own.key)
    .bind(entries)
    .bind(&*checkpoint.state)
    .bind(sum)
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns the newest checkpoint that belongs to the log of a session: its own, or that of a session
/// that it was forked from, if this covers shared entries only. `kin` is the lineage of the session.
pub(super) async fn find(
    connection: &mut PgConnection,
    kin: &[Kin],
) -> sqlx::Result<Option<Checkpoint>> {
    let keys: Vec<i64> = kin.iter().map(|kin| kin.key).collect();
    let covered: Vec<(i64, i64)> =
        sqlx::query_as("SELECT session, entries FROM checkpoints WHERE session = ANY($1)")
            .bind(keys)
            .fetch_all(&mut *connection)
            .await?;
    for (depth, own) in kin.iter().enumerate() {
        let is_usable = |row: &(i64, i64)| row.0 == own.key && from_column(row.1) <= own.entries;
        if !covered.iter().any(is_usable) {
            continue;
        }
        let row = sqlx::query("SELECT entries, state, sum FROM checkpoints WHERE session = $1")
            .bind(own.key)
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = row else {
            continue;
        };
        let (entries, sum): (i64, i64) = (row.try_get(0)?, row.try_get(2)?);
        let state: &str = row.try_get(1)?;
        let line = kin.get(depth..).unwrap_or_default();
        let last = sum_of_entry(connection, line, from_column(entries)).await?;
        if last.is_some_and(|last| checksum::of_checkpoint([own.key, entries, last], state) == sum)
        {
            return Ok(Some(Checkpoint {
                entries: from_column(entries),
                state: state.to_owned(),
            }));
        }
    }
    Ok(None)
}

/// Returns the checksum of an entry of the log whose session begins `line`, from its text. Returns
/// `None` if there is no such entry.
async fn sum_of_entry(
    connection: &mut PgConnection,
    line: &[Kin],
    n: u64,
) -> sqlx::Result<Option<i64>> {
    let Some(owner) = line.iter().find(|kin| kin.shared < n && n <= kin.entries) else {
        return Ok(None);
    };
    let n = to_column(n);
    let row = sqlx::query("SELECT at, json FROM entries WHERE session = $1 AND n = $2")
        .bind(owner.key)
        .bind(n)
        .fetch_optional(connection)
        .await?;
    let sum = row.map(|row| {
        let json: &str = row.try_get(1)?;
        Ok(checksum::of_entry(n, row.try_get(0)?, json.as_bytes()))
    });
    sum.transpose()
}
