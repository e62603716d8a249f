//! Who follows a session from elsewhere hears of it when something is new. Only what is appended to sessions
//! that are watched is announced: the server lets one transaction after another announce something.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::{SessionId, StoreError};
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::{PgExecutor, Row};

use super::messages::MAX_QUESTIONS;
use super::{PostgresStore, fault};
use crate::read::{from_column, to_column};

/// How long a session is watched after somebody has asked for it.
pub const WATCHED: Duration = Duration::from_secs(60);

/// The channel of PostgreSQL on which news of sessions are announced.
const CHANNEL: &str = "plimsoll";

/// How far a session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The entries of its log.
    pub entries: u64,
    /// Calls of it, and of agents that it has called, that wait for somebody's yes or no. At most 100 are
    /// counted.
    pub questions: usize,
}

/// News of sessions that are watched, and questions of all. It has a connection of its own.
#[derive(Debug)]
pub struct Changes {
    listener: PgListener,
    place: Arc<str>,
}

impl PostgresStore {
    /// Has what is appended to a session announced, for [`WATCHED`]. What another process appends at this
    /// moment may not be.
    ///
    /// # Errors
    /// If the database cannot be told.
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

    /// Listens to what is announced from now on.
    ///
    /// # Errors
    /// If there is no connection for it.
    pub async fn changes(&self) -> Result<Changes, StoreError> {
        let fault = fault(&self.place);
        // One that waits for news is none of those that work.
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

    /// Returns how far a session has come, which is a small question.
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
    /// Waits until something is new in a session, and returns its name. `None` if the connection was lost and
    /// is there again: something may have been missed. Nothing is lost if this is not waited for to its end.
    ///
    /// # Errors
    /// If the database is away.
    pub async fn next(&mut self) -> Result<Option<String>, StoreError> {
        let heard = self.listener.try_recv().await.map_err(fault(&self.place))?;
        Ok(heard.map(|news| news.payload().to_owned()))
    }
}

/// Says that something is new in a session, once the transaction is committed.
pub(super) async fn announce(connection: impl PgExecutor<'_>, session: &str) -> sqlx::Result<()> {
    sqlx::query("SELECT pg_notify($1, $2)")
        .bind(CHANNEL)
        .bind(session)
        .execute(connection)
        .await
        .map(|_| ())
}
