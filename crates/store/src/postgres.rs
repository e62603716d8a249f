//! [`PostgresStore`]: sessions in PostgreSQL, for agents on several machines. Reads and writes
//! logs. Leases are in `postgres::lease`.

mod lease;
mod log;
mod messages;
mod schema;
mod sessions;
mod write;

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_core::{
    Fork, ForkFault, Lease, LogEntry, SessionId, SessionInfo, SessionStore, StoreError,
};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, Postgres, Transaction};

use crate::options::BUSY_TIMEOUT;
use lease::Leases;
use log::lineage;
pub use messages::{
    MAX_RUN_MESSAGE, MAX_RUN_MESSAGES, OpenQuestion, Progress, RunMessage, RunMessageKind,
};
use schema::{fault, migrate};
use write::{add, head, share};

/// Default for the maximum number of connections of one store.
pub const POSTGRES_CONNECTIONS: u32 = 8;
/// Recommended upper bound of [`PostgresOptions::max_connections`], because a server has a process
/// for each connection.
pub const MAX_POSTGRES_CONNECTIONS: u32 = 500;

/// How long a process may be silent before another process may take over its sessions.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// The options for opening a store in PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Maximum number of connections. Default: [`POSTGRES_CONNECTIONS`].
    pub max_connections: u32,
    /// How long a caller waits for a connection. Default: [`BUSY_TIMEOUT`].
    pub timeout: Duration,
    /// How long a process that holds a session may be silent (killed, stopped or without network)
    /// before another process may take the session over. All processes should use the same value.
    /// Default: [`PATIENCE`].
    pub patience: Duration,
}

/// Sessions in a database of PostgreSQL 15 or newer. Clones share their state.
///
/// Any number of processes on any number of machines may open it; each session has one writer at a
/// time. An append is one transaction. The server's `synchronous_commit` decides which failures it
/// survives.
///
/// It must be used within one Tokio runtime that has its time driver enabled.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pool: PgPool,
    /// The server and the database, without a password.
    place: Arc<str>,
    leases: Leases,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            max_connections: POSTGRES_CONNECTIONS,
            timeout: BUSY_TIMEOUT,
            patience: PATIENCE,
        }
    }
}

impl PostgresStore {
    /// Opens a store with the default [`PostgresOptions`]. Creates its tables if there are none.
    /// `url` has the form `postgres://user:password@host/database`.
    ///
    /// # Errors
    /// If the URL is invalid, the server cannot be reached, or the tables cannot be created or are
    /// of a newer version.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(url, PostgresOptions::default()).await
    }

    /// Opens a store. Creates its tables if there are none.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_with(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let connect = PgConnectOptions::from_str(url).map_err(|error| StoreError::Io {
            path: "PostgreSQL".to_owned(),
            why: format!("the URL cannot be read: {error}"),
        })?;
        let host = match connect.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", connect.get_host(), connect.get_port()),
        };
        let database = connect.get_database().unwrap_or(connect.get_username());
        let place: Arc<str> = format!("{host}/{database}").into();
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(options.timeout)
            .connect_with(connect)
            .await
            .map_err(fault(&place))?;
        migrate(&pool, &place).await?;
        Ok(Self {
            leases: Leases::new(pool.clone(), Arc::clone(&place), options.patience),
            pool,
            place,
        })
    }

    /// Ends the dropped leases and closes the connections. Without this call, a session whose lease
    /// was dropped just before the end of the process is free only after
    /// [`PostgresOptions::patience`].
    pub async fn close(&self) {
        // Sessions that are not released now become free after the patience.
        let _ = self.leases.release().await;
        self.pool.close().await;
    }

    /// Begins a transaction in which only this store may write to the session.
    async fn begin(&self, lease: &Lease) -> Result<Transaction<'static, Postgres>, StoreError> {
        let held = self.leases.token(lease.session())?;
        let mut transaction = self.pool.begin().await.map_err(fault(&self.place))?;
        let checked = self.leases.check(&mut transaction, lease.session(), held);
        checked.await?;
        Ok(transaction)
    }

    /// Deletes sessions: all of them or none. Returns `false` if there is none of them.
    async fn delete_leased(&self, leases: &[Lease]) -> Result<bool, StoreError> {
        let fault = fault(&self.place);
        let mut transaction = self.pool.begin().await.map_err(&fault)?;
        let mut found = BTreeMap::new();
        for lease in leases {
            let held = self.leases.token(lease.session())?;
            let checked = self.leases.check(&mut transaction, lease.session(), held);
            checked.await?;
            let key: Option<i64> =
                sqlx::query_scalar("SELECT key FROM sessions WHERE id = $1 FOR UPDATE")
                    .bind(lease.session().as_str())
                    .fetch_optional(&mut *transaction)
                    .await
                    .map_err(&fault)?;
            found.extend(key.map(|key| (key, lease.session())));
        }
        let is_any = !found.is_empty();
        // A fork is newer than its parent.
        for (key, session) in found.into_iter().rev() {
            let forks: Vec<String> =
                sqlx::query_scalar("SELECT id FROM sessions WHERE parent = $1 ORDER BY key")
                    .bind(key)
                    .fetch_all(&mut *transaction)
                    .await
                    .map_err(&fault)?;
            if !forks.is_empty() {
                let forks = forks.into_iter().filter_map(|id| SessionId::new(id).ok());
                return Err(StoreError::HasForks {
                    session: session.clone(),
                    forks: forks.collect(),
                });
            }
            for sql in [
                "DELETE FROM messages WHERE session = (SELECT id FROM sessions WHERE key = $1)",
                "DELETE FROM questions WHERE session = (SELECT id FROM sessions WHERE key = $1)",
                "DELETE FROM entries WHERE session = $1",
                "DELETE FROM sessions WHERE key = $1",
            ] {
                let deleted = sqlx::query(sql).bind(key).execute(&mut *transaction).await;
                deleted.map_err(&fault)?;
            }
        }
        transaction.commit().await.map_err(&fault)?;
        Ok(is_any)
    }
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.leases.acquire(session).await
    }

    async fn read(
        &self,
        session: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let page = self.raw_page(session, after, limit).await?;
        self.parse(page, session).await
    }

    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        let fault = fault(&self.place);
        let now = crate::write::now();
        let lines = crate::write::to_lines(entries, Path::new(&*self.place), now)?;
        let mut transaction = self.begin(lease).await?;
        if lines.is_empty() {
            return Ok(());
        }
        let title = crate::write::title_of(entries);
        let added = add(&mut transaction, lease.session(), &lines, title.as_deref()).await;
        added.map_err(&fault)?;
        transaction.commit().await.map_err(&fault)
    }

    async fn fork(&self, lease: &Lease, of: &Fork, own: &[Entry]) -> Result<(), StoreError> {
        let fault = fault(&self.place);
        let now = crate::write::now();
        let lines = crate::write::to_lines(own, Path::new(&*self.place), now)?;
        let mut transaction = self.begin(lease).await?;
        let session = lease.session();
        if head(&mut transaction, session)
            .await
            .map_err(&fault)?
            .is_some()
        {
            let session = session.clone();
            return Err(of.refused(ForkFault::Taken { session }));
        }
        // Prevents the deletion of the parent before the fork exists.
        sqlx::query("SELECT key FROM sessions WHERE id = $1 FOR KEY SHARE")
            .bind(of.from.as_str())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(&fault)?;
        let kin = lineage(&mut transaction, &of.from).await.map_err(&fault)?;
        let Some(parent) = kin.first() else {
            return Err(of.refused(ForkFault::Unknown));
        };
        of.check(parent.entries, kin.len() as u64 - 1)?;
        share(&mut transaction, session, of).await.map_err(&fault)?;
        let title = crate::write::title_of(own);
        let added = add(&mut transaction, session, &lines, title.as_deref()).await;
        added.map_err(&fault)?;
        transaction.commit().await.map_err(&fault)
    }

    async fn delete(&self, lease: &Lease) -> Result<bool, StoreError> {
        self.delete_leased(std::slice::from_ref(lease)).await
    }

    async fn rename(&self, session: &SessionId, title: &str) -> Result<bool, StoreError> {
        let renamed = sqlx::query("UPDATE sessions SET title = $2 WHERE id = $1")
            .bind(session.as_str())
            .bind(write::text(title))
            .execute(&self.pool)
            .await
            .map_err(fault(&self.place))?;
        Ok(renamed.rows_affected() > 0)
    }

    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        sessions::list(&self.pool).await.map_err(fault(&self.place))
    }

    async fn head(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        sessions::head(&self.pool, session)
            .await
            .map_err(fault(&self.place))
    }
}
