//! The list of sessions in PostgreSQL, and operations on sessions: view, export, prune and delete.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, Seq};
use plimsoll_core::{Fork, Retention, SessionId, SessionInfo, SessionStore, StoreError};
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};

use super::log;
use super::{PostgresStore, fault};
use crate::export::{self, ExportError, ExportedEntry};
use crate::read::from_column;
use crate::retention;

/// The columns of [`info`].
const INFO: &str = "SELECT own.id, own.created, own.updated, own.entries, own.bytes, own.title,
           parent.id AS parent, own.shared, own.items
    FROM sessions AS own LEFT JOIN sessions AS parent ON parent.key = own.parent";

impl PostgresStore {
    /// Returns the list entry of one session, or `None` if the session has no log.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn info(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        let fault = fault(&self.place);
        let sql = format!("{INFO} WHERE own.id = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(session.as_str())
            .fetch_optional(&self.pool)
            .await
            .map_err(&fault)?;
        row.as_ref().map(info).transpose().map_err(&fault)
    }

    /// Returns the entries after number `after`, in order: at most
    /// [`PAGE_ENTRIES`](crate::PAGE_ENTRIES), and none at the end of the log.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn page(
        &self,
        session: &SessionId,
        after: u64,
    ) -> Result<Vec<ExportedEntry>, StoreError> {
        let page = log::page(&self.pool, &self.place, session, after).await?;
        export::lines(&page, Path::new(&*self.place), session)
    }

    /// Writes sessions as JSON lines and returns the writer, like
    /// [`SqliteStore::export`](crate::SqliteStore::export).
    ///
    /// # Errors
    /// If a log cannot be read, after everything before it was written; or if `out` returns an
    /// error.
    pub async fn export<W>(
        &self,
        sessions: &BTreeMap<SessionId, Option<String>>,
        out: W,
    ) -> Result<W, ExportError>
    where
        W: Write + Send + 'static,
    {
        let path: Arc<Path> = Path::new(&*self.place).into();
        let page = |session, after| async move {
            log::page(&self.pool, &self.place, &session, after).await
        };
        export::export(&path, &self.list().await?, sessions, out, page).await
    }

    /// Returns the outdated sessions, most recently written first. A session that a retained fork
    /// needs is not among them. Changes nothing.
    ///
    /// # Errors
    /// If the sessions cannot be read.
    pub async fn outdated(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(retention::outdated(&self.list().await?, retention))
    }

    /// Deletes a session, like [`SessionStore::delete`]. Returns `false` if there is no such
    /// session.
    ///
    /// # Errors
    /// [`StoreError::Busy`], at once, if another process writes to it, even if that process stands
    /// still and [`SessionStore::acquire`] would take the session over. Otherwise as
    /// [`SessionStore::delete`].
    pub async fn delete_idle(&self, session: &SessionId) -> Result<bool, StoreError> {
        // Releases the leases that were dropped in this store.
        self.leases.release().await?;
        let is_held: Option<bool> =
            sqlx::query_scalar("SELECT holder IS NOT NULL FROM leases WHERE session = $1")
                .bind(session.as_str())
                .fetch_optional(&self.pool)
                .await
                .map_err(fault(&self.place))?;
        if is_held == Some(true) {
            let session = session.clone();
            return Err(StoreError::Busy { session });
        }
        self.delete(&self.acquire(session).await?).await
    }
}

/// Returns all sessions, most recently written first.
pub(super) async fn list(pool: &PgPool) -> sqlx::Result<Vec<SessionInfo>> {
    let sql = format!("{INFO} ORDER BY own.newest DESC, own.key DESC");
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .fetch_all(pool)
        .await?;
    rows.iter().map(info).collect()
}

fn info(row: &PgRow) -> sqlx::Result<SessionInfo> {
    let id = |column: &str| -> sqlx::Result<Option<SessionId>> {
        let name: Option<String> = row.try_get(column)?;
        let id = name.map(SessionId::new).transpose();
        id.map_err(|error| sqlx::Error::Decode(error.into()))
    };
    let fork = match id("parent")? {
        None => None,
        Some(from) => Some(Fork {
            from,
            entries: from_column(row.try_get("shared")?),
            items: Seq(from_column(row.try_get("items")?)),
        }),
    };
    Ok(SessionInfo {
        id: id("id")?.ok_or(sqlx::Error::RowNotFound)?,
        created: from_column(row.try_get("created")?),
        updated: from_column(row.try_get("updated")?),
        entries: from_column(row.try_get("entries")?),
        bytes: Bytes(from_column(row.try_get("bytes")?)),
        title: row
            .try_get::<Option<String>, _>("title")?
            .unwrap_or_default(),
        fork,
    })
}
