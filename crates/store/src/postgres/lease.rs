//! [`Leases`] in PostgreSQL: a number per session that grows with each writer and is checked in the
//! transaction of every write, and a time until which each process is taken to live. Only the clock of
//! the server is read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plimsoll_core::{Lease, SessionId, StoreError};
use sqlx::{PgConnection, PgPool};
use tokio::sync::Notify;

use super::fault;

/// The number of beats within [`PostgresOptions::patience`](super::PostgresOptions::patience). All of
/// them must be missing before a session is taken over.
const BEATS: u32 = 15;

/// The first pause between two checks of a session that another process holds. Each pause is twice
/// as long as the previous one, up to a quarter of a beat.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The leases of one store. Clones share their state.
#[derive(Clone)]
pub(super) struct Leases(Arc<LeasesInner>);

struct LeasesInner {
    pool: PgPool,
    place: Arc<str>,
    patience: Duration,
    state: Mutex<LeaseState>,
    /// Notified when a lease is dropped.
    dropped: Arc<Notify>,
}

#[derive(Default)]
struct LeaseState {
    holder: Option<i64>,
    /// The lease number of each held session.
    held: BTreeMap<SessionId, i64>,
    /// Leases that were dropped and are still in the database.
    ended: Vec<(SessionId, i64)>,
    is_beating: bool,
}

/// The resources that a lease holds until it is dropped.
struct PostgresLease {
    inner: Arc<LeasesInner>,
    session: SessionId,
    token: i64,
}

impl Leases {
    pub(super) fn new(pool: PgPool, place: Arc<str>, patience: Duration) -> Self {
        Self(Arc::new(LeasesInner {
            pool,
            place,
            patience,
            state: Mutex::default(),
            dropped: Arc::default(),
        }))
    }

    /// Becomes the only writer of a session. If another process holds it, waits until that process
    /// is known to be silent.
    pub(super) async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        let inner = &self.0;
        let busy = || StoreError::Busy {
            session: session.clone(),
        };
        if inner.lock().held.contains_key(session) {
            return Err(busy());
        }
        self.release().await?;
        let mut first = None;
        let mut pause = FIRST_PAUSE;
        loop {
            let holder = inner.beat().await.map_err(inner.fault())?;
            let taken = inner.take(session, holder).await.map_err(inner.fault())?;
            if let Some(token) = taken {
                return self.hold(session, token).ok_or_else(busy);
            }
            // A holder that beats meanwhile is alive.
            let now = inner.look(session).await.map_err(inner.fault())?;
            if *first.get_or_insert_with(|| now.clone()) != now {
                return Err(busy());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(inner.patience / BEATS / 4);
        }
    }

    /// Returns the number of the lease that this store has on a session.
    pub(super) fn token(&self, session: &SessionId) -> Result<i64, StoreError> {
        let held = self.0.lock().held.get(session).copied();
        held.ok_or_else(|| StoreError::Io {
            path: self.0.place.to_string(),
            why: format!("the lease on session {session} is another store's; acquire it here"),
        })
    }

    /// Returns an error if another lease than that with this number is the newest one. No newer one can
    /// be acquired before the transaction ends.
    pub(super) async fn check(
        &self,
        connection: &mut PgConnection,
        session: &SessionId,
        held: i64,
    ) -> Result<(), StoreError> {
        let found: Option<i64> =
            sqlx::query_scalar("SELECT token FROM leases WHERE session = $1 FOR SHARE")
                .bind(session.as_str())
                .fetch_optional(connection)
                .await
                .map_err(self.0.fault())?;
        if found == Some(held) {
            return Ok(());
        }
        let session = session.clone();
        Err(StoreError::LeaseLost { session })
    }

    /// Releases the sessions whose leases were dropped.
    pub(super) async fn release(&self) -> Result<(), StoreError> {
        self.0.release().await.map_err(self.0.fault())
    }

    /// Returns `None` if another call of this store was quicker.
    fn hold(&self, session: &SessionId, token: i64) -> Option<Lease> {
        let mut state = self.0.lock();
        if state.held.contains_key(session) {
            return None;
        }
        state.held.insert(session.clone(), token);
        if !std::mem::replace(&mut state.is_beating, true) {
            tokio::spawn(beat(Arc::downgrade(&self.0)));
        }
        let held = PostgresLease {
            inner: Arc::clone(&self.0),
            session: session.clone(),
            token,
        };
        Some(Lease::new(session.clone(), Box::new(held)))
    }
}

impl LeasesInner {
    fn lock(&self) -> MutexGuard<'_, LeaseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self) -> impl Fn(sqlx::Error) -> StoreError + '_ {
        fault(&self.place)
    }

    /// Makes this process the holder of a session, unless another one holds it and lives.
    async fn take(&self, session: &SessionId, holder: i64) -> sqlx::Result<Option<i64>> {
        sqlx::query_scalar(
            "INSERT INTO leases (session, token, holder) VALUES ($1, 1, $2)
             ON CONFLICT (session) DO UPDATE SET token = leases.token + 1, holder = excluded.holder
             WHERE NOT EXISTS (
               SELECT 1 FROM holders WHERE key = leases.holder AND until > now())
             RETURNING token",
        )
        .bind(session.as_str())
        .bind(holder)
        .fetch_optional(&self.pool)
        .await
    }

    /// Returns what shows whether the holder of a session lives: it changes with each beat.
    async fn look(&self, session: &SessionId) -> sqlx::Result<Option<(i64, Option<String>)>> {
        sqlx::query_as(
            "SELECT token, until::text FROM leases LEFT JOIN holders ON holders.key = holder
             WHERE session = $1",
        )
        .bind(session.as_str())
        .fetch_optional(&self.pool)
        .await
    }

    async fn release(&self) -> sqlx::Result<()> {
        loop {
            let ended = self.lock().ended.last().cloned();
            let Some((session, token)) = ended else {
                return Ok(());
            };
            sqlx::query("UPDATE leases SET holder = NULL WHERE session = $1 AND token = $2")
                .bind(session.as_str())
                .bind(token)
                .execute(&self.pool)
                .await?;
            // While the database is away, it stays in the list.
            let released = (session, token);
            self.lock().ended.retain(|ended| *ended != released);
        }
    }

    /// States that this process lives. Returns its key.
    async fn beat(&self) -> sqlx::Result<i64> {
        let patience = self.patience.as_secs_f64();
        let known = self.lock().holder;
        if let Some(holder) = known {
            // Another store may have removed the row.
            sqlx::query(
                "INSERT INTO holders (key, until) OVERRIDING SYSTEM VALUE
                 VALUES ($1, now() + make_interval(secs => $2))
                 ON CONFLICT (key) DO UPDATE SET until = excluded.until",
            )
            .bind(holder)
            .bind(patience)
            .execute(&self.pool)
            .await?;
            return Ok(holder);
        }
        let holder = sqlx::query_scalar(
            "WITH gone AS (DELETE FROM holders WHERE until < now())
             INSERT INTO holders (until) VALUES (now() + make_interval(secs => $1)) RETURNING key",
        )
        .bind(patience)
        .fetch_one(&self.pool)
        .await?;
        Ok(*self.lock().holder.get_or_insert(holder))
    }
}

/// Beats as long as the store has leases. A failed beat is late, and another process may take over.
/// No write depends on it.
async fn beat(leases: Weak<LeasesInner>) {
    while let Some(inner) = leases.upgrade() {
        let _ = inner.release().await;
        let _ = inner.beat().await;
        let (dropped, period) = (Arc::clone(&inner.dropped), inner.patience / BEATS);
        {
            let mut state = inner.lock();
            if state.held.is_empty() && state.ended.is_empty() {
                state.is_beating = false;
                return;
            }
        }
        drop(inner);
        let _ = tokio::time::timeout(period, dropped.notified()).await;
    }
}

impl Drop for PostgresLease {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        state.held.remove(&self.session);
        state.ended.push((self.session.clone(), self.token));
        self.inner.dropped.notify_one();
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").finish_non_exhaustive()
    }
}
