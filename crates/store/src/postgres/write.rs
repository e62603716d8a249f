//! Writes entries and rows of sessions to PostgreSQL, in a transaction of the caller.

use plimsoll_core::{Fork, SessionId};
use sqlx::PgConnection;

use crate::columns::{entry_sum, to_column};
use crate::write;

/// The state of a session before the next append.
pub(super) struct Head {
    key: i64,
    entries: i64,
    updated: i64,
}

/// Adds the row of a fork. Its title and times are those of its parent.
pub(super) async fn share(
    connection: &mut PgConnection,
    session: &SessionId,
    of: &Fork,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO sessions (id, created, updated, title, entries, newest, parent, shared)
         SELECT $1, created, updated, title, $3, nextval('writes'), key, $3
         FROM sessions WHERE id = $2",
    )
    .bind(session.as_str())
    .bind(of.from.as_str())
    .bind(to_column(of.entries))
    .execute(connection)
    .await?;
    Ok(())
}

/// Finds a session, and locks it for others.
pub(super) async fn head(
    connection: &mut PgConnection,
    session: &SessionId,
) -> sqlx::Result<Option<Head>> {
    let row = sqlx::query_as("SELECT key, entries, updated FROM sessions WHERE id = $1 FOR UPDATE")
        .bind(session.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(row.map(|(key, entries, updated)| Head {
        key,
        entries,
        updated,
    }))
}

/// Adds entries to the end of a session. Creates the session if there is none.
pub(super) async fn add(
    connection: &mut PgConnection,
    session: &SessionId,
    lines: &[(i64, String)],
    title: Option<&str>,
) -> sqlx::Result<()> {
    let head = match head(connection, session).await? {
        Some(head) => head,
        None => {
            let now = lines.first().map_or_else(write::now, |line| line.0);
            let key = sqlx::query_scalar(
                "INSERT INTO sessions (id, created, updated, entries, newest)
                 VALUES ($1, $2, $2, 0, 0) RETURNING key",
            )
            .bind(session.as_str())
            .bind(now)
            .fetch_one(&mut *connection)
            .await?;
            Head {
                key,
                entries: 0,
                updated: now,
            }
        }
    };
    let (mut numbers, mut times, mut texts, mut sums) = (vec![], vec![], vec![], vec![]);
    let (mut last, mut at) = (head.entries, head.updated);
    let mut bytes = 0_u64;
    for (time, json) in lines {
        last = last.saturating_add(1);
        // A clock that differs or was set back does not make the times of a log decrease.
        at = at.max(*time);
        numbers.push(last);
        times.push(at);
        texts.push(json.as_str());
        bytes = bytes.saturating_add(json.len() as u64);
        sums.push(entry_sum(last, at, json.as_bytes()));
    }
    // One statement, because each costs a round trip.
    sqlx::query(
        "WITH grown AS (
           UPDATE sessions SET entries = $6, updated = $7, newest = nextval('writes'),
                  title = coalesce(title, $8), bytes = bytes + $9 WHERE key = $1
         ) INSERT INTO entries (session, n, at, json, sum)
         SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bigint[])",
    )
    .bind(head.key)
    .bind(numbers)
    .bind(times)
    .bind(texts)
    .bind(sums)
    .bind(last)
    .bind(at)
    .bind(title.map(text))
    .bind(to_column(bytes))
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns a text that the database can store: without NUL characters.
pub(super) fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
