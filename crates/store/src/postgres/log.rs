//! Reads logs in PostgreSQL, page by page.

use std::path::Path;

use plimsoll_core::{LogEntry, MAX_FORK_DEPTH, SessionId, StoreError};
use sqlx::PgConnection;

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
            let mut rows = rows.into_iter();
            for number in range.before.saturating_add(1)..=range.last {
                let bad = |why| bad_entry(Path::new(&*self.place), session, number, why);
                page.push(checked(rows.next(), number).map_err(bad)?);
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
    let rows: Vec<(i64, i64, i64)> = sqlx::query_as(
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
    let kin = rows.into_iter().map(|(key, shared, entries)| LogAncestor {
        key,
        shared: from_column(shared),
        entries: from_column(entries),
    });
    Ok(kin.collect())
}

/// Returns the entries of a range with their checksums.
async fn fetch(connection: &mut PgConnection, range: Range) -> sqlx::Result<Vec<(Raw, i64)>> {
    let rows: Vec<(i64, i64, String, i64)> = sqlx::query_as(
        "SELECT n, at, json, sum FROM entries WHERE session = $1 AND n > $2 AND n <= $3 ORDER BY n",
    )
    .bind(range.key)
    .bind(to_column(range.before))
    .bind(to_column(range.last))
    .fetch_all(connection)
    .await?;
    let entries = rows.into_iter().map(|(n, at, json, sum)| {
        let raw = Raw {
            n: from_column(n),
            at: from_column(at),
            json: json.into_bytes(),
        };
        (raw, sum)
    });
    Ok(entries.collect())
}
