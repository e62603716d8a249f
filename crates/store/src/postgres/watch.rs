//! Notifications about new entries of a session from other machines. Only entries of watched
//! sessions are announced, because the server serializes the transactions that announce something.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::{SessionId, StoreError};
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::{PgExecutor, Row};

use super::messages::MAX_QUESTIONS;
use super::{PostgresStore, fault};
use crate::columns::{from_column, to_column};

/// How long a session is watched after it was requested.
pub const WATCHED: Duration = Duration::from_secs(60);

/// The PostgreSQL channel for news of sessions.
const CHANNEL: &str = "plimsoll";

/// The progress of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The number of entries in its log.
    pub entries: u64,
    /// The number of its calls, and of calls of agents that it has called, that wait for approval.
    /// At most 100 are counted.
    pub questions: usize,
}

/// A stream of changes of watched sessions, and of questions of all sessions. It has a connection
/// of its own.
#[derive(Debug)]
pub struct Changes {
    listener: PgListener,
    place: Arc<str>,
}

impl PostgresStore {
    /// Requests announcements for entries that are appended to a session, for [`WATCHED`]. Entries
    /// that another process appends at the same moment may not be announced.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub async fn watch(&self, session: &SessionId) -> Result<(), StoreError> {
        sqlx::query(
            "WITH gone AS (
               DELETE FROM watchers WHERE session IN (
                 SELECT session FROM watchers WHERE until < now() AND session <> $1
                 FOR UPDATE SKIP LOCKED)
             ) INSERT INTO watchers (session, until) VALUES ($1, now() + make_interval(secs => $2))
             ON CONFLICT (session) DO UPDATE SET until = excluded.until",
        )
        .bind(session.as_str())
        .bind(WATCHED.as_secs_f64())
        .execute(&self.pool)
        .await
        .map(|_| ())
        .map_err(fault(&self.place))
    }

    /// Subscribes to announcements from now on.
    ///
    /// # Errors
    /// If no connection can be opened.
    pub async fn changes(&self) -> Result<Changes, StoreError> {
        let fault = fault(&self.place);
        // A separate connection, so that waiting for news does not occupy one of the pool.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.pool.options().get_acquire_timeout())
            .connect_lazy_with((*self.pool.connect_options()).clone());
        let mut listener = PgListener::connect_with(&pool).await.map_err(&fault)?;
        listener.listen(CHANNEL).await.map_err(&fault)?;
        Ok(Changes {
            listener,
            place: Arc::clone(&self.place),
        })
    }

    /// Returns the progress of a session. This is a cheap query.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn progress(&self, session: &SessionId) -> Result<Progress, StoreError> {
        let fault = fault(&self.place);
        let row = sqlx::query(
            "SELECT (SELECT entries FROM sessions WHERE id = $1) AS entries,
                    (SELECT count(*) FROM (
                       SELECT 1 FROM questions
                       WHERE answer IS NULL AND (session = $1 OR starts_with(session, $1 || '.'))
                       LIMIT $2) AS asked) AS questions",
        )
        .bind(session.as_str())
        .bind(to_column(MAX_QUESTIONS))
        .fetch_one(&self.pool)
        .await
        .map_err(&fault)?;
        let entries: Option<i64> = row.try_get("entries").map_err(&fault)?;
        let questions = from_column(row.try_get("questions").map_err(&fault)?);
        Ok(Progress {
            entries: entries.map_or(0, from_column),
            questions: usize::try_from(questions).unwrap_or(usize::MAX),
        })
    }
}

impl Changes {
    /// Waits for news of a session, and returns its name. `None` if the connection was lost and
    /// restored, so that something may have been missed. Cancelling the wait loses nothing.
    ///
    /// # Errors
    /// If the database cannot be reached.
    pub async fn next(&mut self) -> Result<Option<String>, StoreError> {
        let heard = self.listener.try_recv().await.map_err(fault(&self.place))?;
        Ok(heard.map(|news| news.payload().to_owned()))
    }
}

/// Announces news of a session when the transaction is committed.
pub(super) async fn announce(connection: impl PgExecutor<'_>, session: &str) -> sqlx::Result<()> {
    sqlx::query("SELECT pg_notify($1, $2)")
        .bind(CHANNEL)
        .bind(session)
        .execute(connection)
        .await
        .map(|_| ())
}
