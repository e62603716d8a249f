//! Reads logs in PostgreSQL, page by page.

use std::path::Path;

use plimsoll_core::{LogEntry, MAX_FORK_DEPTH, SessionId, StoreError};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::{PostgresStore, fault};
use crate::columns::{from_column, to_column};
use crate::log::{LogAncestor, Range, Raw, bad_entry, checked, ranges};

impl PostgresStore {
    /// Returns the entries after `after`, at most `limit`. Empty at the end of the log.
    pub(super) async fn raw_page(
        &self,
        session: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Raw>, StoreError> {
        let fault = fault(&self.place);
        let mut connection = self.pool.acquire().await.map_err(&fault)?;
        // A log only grows, so the lineage stays valid while its entries are read.
        let kin = lineage(&mut connection, session).await.map_err(&fault)?;
        let mut page = Vec::new();
        for range in ranges(&kin, after, limit) {
            let rows = fetch(&mut connection, range).await.map_err(&fault)?;
            let mut rows = rows.iter();
            for number in range.before.saturating_add(1)..=range.last {
                let read = rows.next().map(raw).transpose().map_err(&fault)?;
                let bad = |why| bad_entry(Path::new(&*self.place), session, number, why);
                page.push(checked(read, number).map_err(bad)?);
            }
        }
        Ok(page)
    }

    /// Parses entries.
    pub(super) async fn parse(
        &self,
        page: Vec<Raw>,
        session: &SessionId,
    ) -> Result<Vec<LogEntry>, StoreError> {
        crate::log::parse(page, Path::new(&*self.place), session).await
    }
}

/// Returns the session and its ancestors, beginning with the session. Empty if the session has no
/// log.
pub(super) async fn lineage(
    connection: &mut PgConnection,
    session: &SessionId,
) -> sqlx::Result<Vec<LogAncestor>> {
    let rows = sqlx::query(
        "WITH RECURSIVE kin (depth, key, shared, entries, parent) AS (
           SELECT 0::bigint, key, shared, entries, parent FROM sessions WHERE id = $1
           UNION ALL
           SELECT depth + 1, own.key, own.shared, least(kin.entries, kin.shared), own.parent
           FROM kin JOIN sessions AS own ON own.key = kin.parent WHERE depth < $2
         ) SELECT key, shared, entries FROM kin ORDER BY depth",
    )
    .bind(session.as_str())
    .bind(to_column(MAX_FORK_DEPTH))
    .fetch_all(connection)
    .await?;
    let kin = rows.iter().map(|row| {
        Ok(LogAncestor {
            key: row.try_get("key")?,
            shared: from_column(row.try_get("shared")?),
            entries: from_column(row.try_get("entries")?),
        })
    });
    kin.collect()
}

async fn fetch(connection: &mut PgConnection, range: Range) -> sqlx::Result<Vec<PgRow>> {
    sqlx::query(
        "SELECT n, at, json, sum FROM entries WHERE session = $1 AND n > $2 AND n <= $3 ORDER BY n",
    )
    .bind(range.key)
    .bind(to_column(range.before))
    .bind(to_column(range.last))
    .fetch_all(connection)
    .await
}

/// Reads an entry and its checksum. By position, because looking up names costs more than reading them.
fn raw(row: &PgRow) -> sqlx::Result<(Raw, i64)> {
    let raw = Raw {
        n: from_column(row.try_get(0)?),
        at: from_column(row.try_get(1)?),
        json: row.try_get::<&str, _>(2)?.as_bytes().to_vec(),
    };
    Ok((raw, row.try_get(3)?))
}
