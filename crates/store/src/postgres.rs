//! [`PostgresStore`]: sessions in PostgreSQL, for agents on several machines. Logs are read and written
//! here; who may write is decided in `postgres::lease`, and what left the views is in `postgres::archive`.

mod archive;
mod lease;
mod messages;
mod schema;
mod search;
mod write;

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::Entry;
use plimsoll_context::{Bytes, Seq, Tokens};
use plimsoll_core::{
    ArchiveBounds, ArchiveRow, Archived, Fork, ForkFault, Hit, Lease, MAX_FORK_DEPTH, RecallError,
    RecallKey, Recalled, SessionId, SessionInfo, SessionStore, StoreError, WINDOW_REMEMBERED,
};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgRow};
use sqlx::{PgConnection, PgPool, Postgres, Row, Transaction};

use crate::export;
use crate::options::{BUSY_TIMEOUT, PATIENCE};
use crate::read::{ALTERED, PAGE_ENTRIES, Raw, bad_entry, from_column, to_column};
use lease::Leases;
pub use messages::{MAX_RUN_MESSAGE, MAX_RUN_MESSAGES, OpenQuestion, RunMessage, RunMessageKind};
use schema::{fault, migrate};
use write::{add, head, share};

/// Connections of one store, at most, by default.
pub const POSTGRES_CONNECTIONS: u32 = 8;

/// What can be chosen when a store in PostgreSQL is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Connections, at most. Default: [`POSTGRES_CONNECTIONS`].
    pub max_connections: u32,
    /// How long a caller waits for a connection. Default: [`BUSY_TIMEOUT`].
    pub timeout: Duration,
    /// How long a process that holds a session may be silent before another may take the session over: it
    /// was killed, stands still or has lost its network. All processes should have the same. Default:
    /// [`PATIENCE`].
    pub patience: Duration,
    /// How much the archive holds of a session, and how long; not how much of all together, which is for
    /// whoever runs the server to say: here [`ArchiveBounds::bytes`] bounds each session, as
    /// [`ArchiveBounds::session_bytes`] does.
    pub archive: ArchiveBounds,
}

/// Sessions in a database of PostgreSQL 15 or newer. A clone is the same store.
///
/// Any number of processes on any number of machines may open it; each session has one writer at a time.
/// An append is one transaction. The server's `synchronous_commit` decides what it survives.
///
/// It must be used within one Tokio runtime that has its time driver enabled.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pool: PgPool,
    /// The server and the database, without a password.
    place: Arc<str>,
    leases: Leases,
    archive: ArchiveBounds,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            max_connections: POSTGRES_CONNECTIONS,
            timeout: BUSY_TIMEOUT,
            patience: PATIENCE,
            archive: ArchiveBounds::default(),
        }
    }
}

impl PostgresStore {
    /// Opens a store with the default [`PostgresOptions`], making its tables if there are none.
    /// `url` is as in `postgres://user:password@host/database`.
    ///
    /// # Errors
    /// If the URL is wrong, the server cannot be reached, or the tables cannot be made or are of a newer
    /// version.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(url, PostgresOptions::default()).await
    }

    /// Opens a store, making its tables if there are none.
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
            archive: options.archive,
            pool,
            place,
        })
    }

    /// Ends the leases that were dropped and closes the connections. Without it, a session whose lease was
    /// dropped just before the end of the process is free only after [`PostgresOptions::patience`].
    pub async fn close(&self) {
        // What is not released now is released by patience.
        let _ = self.leases.release().await;
        self.pool.close().await;
    }

    async fn page(&self, session: &SessionId, after: u64) -> Result<Vec<Raw>, StoreError> {
        let (fault, path) = (fault(&self.place), Path::new(&*self.place));
        let mut connection = self.pool.acquire().await.map_err(&fault)?;
        // A log only grows, so the lineage stays true while its entries are read.
        let kin = lineage(&mut connection, session).await.map_err(&fault)?;
        let mut page: Vec<Raw> = Vec::new();
        for kin in kin.iter().rev() {
            let before = after.max(kin.shared);
            let room = PAGE_ENTRIES.saturating_sub(page.len());
            let rows = sqlx::query(
                "SELECT n, at, json, sum FROM entries
                 WHERE session = $1 AND n > $2 AND n <= $3 ORDER BY n LIMIT $4",
            )
            .bind(kin.key)
            .bind(to_column(before))
            .bind(to_column(kin.entries))
            .bind(to_column(room as u64))
            .fetch_all(&mut *connection)
            .await
            .map_err(&fault)?;
            let due = kin.entries.saturating_sub(before).min(room as u64);
            let mut rows = rows.iter();
            for n in before.saturating_add(1)..=before.saturating_add(due) {
                let raw = rows.next().map(raw).transpose().map_err(&fault)?;
                let raw = raw
                    .filter(|raw| raw.n == n)
                    .ok_or_else(|| bad_entry(path, session, n, "it is missing"))?;
                if !raw.is_unaltered() {
                    return Err(bad_entry(path, session, n, ALTERED));
                }
                page.push(raw);
            }
        }
        Ok(page)
    }

    /// Begins a transaction in which only this store may write to the session.
    async fn begin(&self, lease: &Lease) -> Result<Transaction<'static, Postgres>, StoreError> {
        let mut transaction = self.pool.begin().await.map_err(fault(&self.place))?;
        self.leases.check(&mut transaction, lease.session()).await?;
        Ok(transaction)
    }
}

/// A session whose log, or the beginning of it, belongs to another's log.
struct Kin {
    key: i64,
    shared: u64,
    entries: u64,
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.leases.acquire(session).await
    }

    async fn load(&self, session: &SessionId) -> Result<Vec<Entry>, StoreError> {
        let path: Arc<Path> = Path::new(&*self.place).into();
        export::load(&path, session, |after| self.page(session, after)).await
    }

    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        let fault = fault(&self.place);
        let lines = crate::write::to_lines(entries, Path::new(&*self.place), crate::write::now())?;
        let mut transaction = self.begin(lease).await?;
        if entries.is_empty() {
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
        // It is not deleted before the fork is there.
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
        share(&mut transaction, session, of, &kin, now)
            .await
            .map_err(&fault)?;
        let title = crate::write::title_of(own);
        let added = add(&mut transaction, session, &lines, title.as_deref()).await;
        added.map_err(&fault)?;
        transaction.commit().await.map_err(&fault)
    }

    async fn delete(&self, lease: &Lease) -> Result<bool, StoreError> {
        let fault = fault(&self.place);
        let mut transaction = self.begin(lease).await?;
        let found: Option<i64> =
            sqlx::query_scalar("SELECT key FROM sessions WHERE id = $1 FOR UPDATE")
                .bind(lease.session().as_str())
                .fetch_optional(&mut *transaction)
                .await
                .map_err(&fault)?;
        let Some(key) = found else {
            return Ok(false);
        };
        let forks: Vec<String> =
            sqlx::query_scalar("SELECT id FROM sessions WHERE parent = $1 ORDER BY key")
                .bind(key)
                .fetch_all(&mut *transaction)
                .await
                .map_err(&fault)?;
        if !forks.is_empty() {
            let forks = forks.into_iter().filter_map(|id| SessionId::new(id).ok());
            return Err(StoreError::HasForks {
                session: lease.session().clone(),
                forks: forks.collect(),
            });
        }
        for sql in [
            "DELETE FROM shelves WHERE session = (SELECT id FROM sessions WHERE key = $1)",
            "DELETE FROM messages WHERE session = (SELECT id FROM sessions WHERE key = $1)",
            "DELETE FROM questions WHERE session = (SELECT id FROM sessions WHERE key = $1)",
            "DELETE FROM entries WHERE session = $1",
            "DELETE FROM sessions WHERE key = $1",
        ] {
            let deleted = sqlx::query(sql).bind(key).execute(&mut *transaction).await;
            deleted.map_err(&fault)?;
        }
        transaction.commit().await.map_err(&fault)?;
        Ok(true)
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
        let rows = sqlx::query(
            "SELECT own.id, own.created, own.updated, own.entries, own.bytes, own.title,
                    parent.id AS parent, own.shared, own.items
             FROM sessions AS own LEFT JOIN sessions AS parent ON parent.key = own.parent
             ORDER BY own.newest DESC, own.key DESC",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(fault(&self.place))?;
        let sessions = rows.iter().map(info);
        sessions
            .collect::<sqlx::Result<_>>()
            .map_err(fault(&self.place))
    }

    async fn idle(&self, session: &SessionId) -> Option<Duration> {
        let updated: Option<i64> = sqlx::query_scalar("SELECT updated FROM sessions WHERE id = $1")
            .bind(session.as_str())
            .fetch_optional(&self.pool)
            .await
            .ok()?;
        let since = crate::write::now().saturating_sub(updated?);
        Some(Duration::from_secs(from_column(since)))
    }

    async fn learned_window(&self, endpoint: &str) -> Result<Option<Tokens>, StoreError> {
        let oldest = crate::write::now().saturating_sub(to_column(WINDOW_REMEMBERED.as_secs()));
        let found: Option<i64> =
            sqlx::query_scalar("SELECT tokens FROM windows WHERE endpoint = $1 AND at >= $2")
                .bind(endpoint)
                .bind(oldest)
                .fetch_optional(&self.pool)
                .await
                .map_err(fault(&self.place))?;
        Ok(found.map(|tokens| Tokens(from_column(tokens))))
    }

    async fn learn_window(&self, endpoint: &str, window: Tokens) -> Result<(), StoreError> {
        if !crate::windows::is_kept(endpoint, window) {
            return Ok(());
        }
        let now = crate::write::now();
        let fault = fault(&self.place);
        let mut transaction = self.pool.begin().await.map_err(&fault)?;
        let oldest = now.saturating_sub(to_column(WINDOW_REMEMBERED.as_secs()));
        sqlx::query(
            "INSERT INTO windows (endpoint, tokens, at) VALUES ($1, $2, $3)
             ON CONFLICT (endpoint) DO UPDATE SET tokens = excluded.tokens, at = excluded.at",
        )
        .bind(endpoint)
        .bind(to_column(window.0))
        .bind(now)
        .execute(&mut *transaction)
        .await
        .map_err(&fault)?;
        sqlx::query(
            "DELETE FROM windows WHERE at < $1 OR endpoint IN
             (SELECT endpoint FROM windows ORDER BY at DESC, endpoint OFFSET $2)",
        )
        .bind(oldest)
        .bind(to_column(crate::MAX_WINDOWS))
        .execute(&mut *transaction)
        .await
        .map_err(&fault)?;
        transaction.commit().await.map_err(&fault)
    }
    async fn archives(&self) -> Result<(), StoreError> {
        let probe = sqlx::query("SELECT 1 FROM shelves LIMIT 1");
        let probed = probe.execute(&self.pool).await;
        probed.map(|_| ()).map_err(fault(&self.place))
    }

    async fn archive(&self, lease: &Lease, items: &[Archived]) -> Result<(), StoreError> {
        let mut transaction = self.begin(lease).await?;
        if items.is_empty() {
            return Ok(());
        }
        let (place, bounds) = (&self.place, &self.archive);
        archive::write::archive(&mut transaction, place, bounds, lease.session(), items).await?;
        transaction.commit().await.map_err(fault(&self.place))
    }

    async fn archive_up_to(&self, lease: &Lease, next: Seq) -> Result<(), StoreError> {
        let fault = fault(&self.place);
        let mut transaction = self.begin(lease).await?;
        let kept = archive::write::keep_up_to(&mut transaction, lease.session(), next).await;
        kept.map_err(&fault)?;
        transaction.commit().await.map_err(&fault)
    }

    async fn recall(&self, session: &SessionId, key: &RecallKey) -> Result<Recalled, RecallError> {
        let mut connection = self.pool.acquire().await.map_err(fault(&self.place))?;
        archive::recall(&mut connection, &self.place, &self.archive, session, key).await
    }

    async fn search(
        &self,
        session: &SessionId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, RecallError> {
        search::search(&self.pool, &self.place, self.archive, session, query, limit).await
    }

    async fn archived(&self, session: &SessionId) -> Result<Vec<ArchiveRow>, StoreError> {
        let fault = fault(&self.place);
        let mut connection = self.pool.acquire().await.map_err(&fault)?;
        let rows = archive::rows(&mut connection, &self.archive, session).await;
        rows.map_err(&fault)
    }
}

/// The session and those that it is a fork of, itself first; none if nothing was written to it.
async fn lineage(connection: &mut PgConnection, session: &SessionId) -> sqlx::Result<Vec<Kin>> {
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
        Ok(Kin {
            key: row.try_get("key")?,
            shared: from_column(row.try_get("shared")?),
            entries: from_column(row.try_get("entries")?),
        })
    });
    kin.collect()
}

fn raw(row: &PgRow) -> sqlx::Result<Raw> {
    Ok(Raw {
        n: from_column(row.try_get("n")?),
        at: from_column(row.try_get("at")?),
        json: row.try_get::<String, _>("json")?.into_bytes(),
        sum: Some(row.try_get("sum")?),
    })
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
