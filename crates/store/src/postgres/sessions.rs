//! The list of sessions in PostgreSQL, and operations on sessions: view, export, prune and delete.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::{PAGE_ENTRIES, SessionId, SessionInfo, SessionStore, StoreError};
use sqlx::PgPool;

use super::PostgresStore;
use crate::columns::{self, INFO, InfoRow};
use crate::export::{self, ExportError};
use crate::session_reader::SessionReader;

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
    let row = sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .bind(session.as_str())
        .fetch_optional(pool)
        .await?;
    row.map(info).transpose()
}

/// Returns all sessions, most recently written first.
pub(super) async fn list(pool: &PgPool) -> sqlx::Result<Vec<SessionInfo>> {
    let sql = format!("{INFO} ORDER BY own.newest DESC, own.key DESC");
    let rows = sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .fetch_all(pool)
        .await?;
    rows.into_iter().map(info).collect()
}

fn info(row: InfoRow) -> sqlx::Result<SessionInfo> {
    columns::info(row).map_err(sqlx::Error::Decode)
}
