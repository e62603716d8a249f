//! Checkpoints in PostgreSQL. Their rows are those of `checkpoint`.

use plimsoll_agent::Checkpoint;
use plimsoll_core::SessionId;
use sqlx::{PgConnection, Row};

use super::log::{LogAncestor, lineage};
use crate::checkpoint::{CheckpointRow, Stored};
use crate::columns::{entry_sum, from_column, to_column};

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
    let row = CheckpointRow::new(own.key, checkpoint, last);
    sqlx::query(
        "INSERT INTO checkpoints (session, entries, state, sum) VALUES ($1, $2, $3, $4)
         ON CONFLICT (session) DO UPDATE
         SET entries = excluded.entries, state = excluded.state, sum = excluded.sum",
    )
    .bind(own.key)
    .bind(row.entries)
    .bind(&*checkpoint.state)
    .bind(row.sum)
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns the newest checkpoint that belongs to the log of a session: its own, or that of a session
/// that it was forked from, if this covers shared entries only. `kin` is the lineage of the session.
pub(super) async fn find(
    connection: &mut PgConnection,
    kin: &[LogAncestor],
) -> sqlx::Result<Option<Checkpoint>> {
    let mut kin = kin;
    while let Some((session, row)) = nearest(connection, kin).await? {
        let depth = kin.iter().position(|own| own.key == session);
        let line = depth.and_then(|depth| kin.get(depth..)).unwrap_or_default();
        let last = sum_of_entry(connection, line, from_column(row.entries)).await?;
        if let Stored::Usable(checkpoint) = row.read(session, last) {
            return Ok(Some(checkpoint));
        }
        kin = line.get(1..).unwrap_or_default();
    }
    Ok(None)
}

/// Returns the first of these sessions that has a checkpoint, and its row. One query for all of
/// them, because each costs a round trip.
async fn nearest(
    connection: &mut PgConnection,
    kin: &[LogAncestor],
) -> sqlx::Result<Option<(i64, CheckpointRow)>> {
    if kin.is_empty() {
        return Ok(None);
    }
    let keys: Vec<i64> = kin.iter().map(|kin| kin.key).collect();
    let most: Vec<i64> = kin.iter().map(|kin| to_column(kin.entries)).collect();
    let row = sqlx::query(
        "SELECT session, entries, state, sum FROM checkpoints
         JOIN unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS kin (key, most, depth)
         ON key = session AND entries <= most ORDER BY depth LIMIT 1",
    )
    .bind(keys)
    .bind(most)
    .fetch_optional(connection)
    .await?;
    let row = row.map(|row| {
        let checkpoint = CheckpointRow {
            entries: row.try_get(1)?,
            state: row.try_get::<String, _>(2)?.into_bytes(),
            sum: row.try_get(3)?,
        };
        Ok((row.try_get(0)?, checkpoint))
    });
    row.transpose()
}

/// Returns the checksum of an entry of the log whose session begins `line`, from its text. Returns
/// `None` if there is no such entry.
async fn sum_of_entry(
    connection: &mut PgConnection,
    line: &[LogAncestor],
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
        Ok(entry_sum(n, row.try_get(0)?, json.as_bytes()))
    });
    sum.transpose()
}
