//! The list of sessions in PostgreSQL, and operations on sessions: view, export, prune and delete.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_context::Bytes;
use plimsoll_core::{Fork, PAGE_ENTRIES, SessionId, SessionInfo, SessionStore, StoreError};
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};

use super::PostgresStore;
use crate::columns::from_column;
use crate::export::{self, ExportError};
use crate::session_reader::SessionReader;

/// The columns of [`info`].
const INFO: &str = "SELECT own.id, own.created, own.updated, own.entries, own.bytes, own.title,
           parent.id AS parent, own.shared
    FROM sessions AS own LEFT JOIN sessions AS parent ON parent.key = own.parent";

#[async_trait]
impl SessionReader for PostgresStore {
    async fn export<W>(&self, sessions: &BTreeSet<SessionId>, out: W) -> Result<W, ExportError>
    where
        W: Write + Send + 'static,
    {
        let path: Arc<Path> = Path::new(&*self.place).into();
        let page =
            |session, after| async move { self.raw_page(&session, after, PAGE_ENTRIES).await };
        export::export(&path, &self.list().await?, sessions, out, page).await
    }

    async fn delete_all(&self, sessions: &BTreeSet<SessionId>) -> Result<bool, StoreError> {
        let mut leases = Vec::new();
        for session in sessions {
            leases.push(self.acquire(session).await?);
        }
        self.delete_leased(&leases).await
    }
}

/// Returns the list entry of one session.
pub(super) async fn head(pool: &PgPool, session: &SessionId) -> sqlx::Result<Option<SessionInfo>> {
    let sql = format!("{INFO} WHERE own.id = $1");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(session.as_str())
        .fetch_optional(pool)
        .await?;
    row.as_ref().map(info).transpose()
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
