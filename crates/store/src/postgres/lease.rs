//! [`Leases`] in PostgreSQL: a number per session that grows with each writer and is checked in the
//! transaction of every write, and counted beats. Clocks of servers and processes are never
//! compared.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use plimsoll_core::{Lease, SessionId, StoreError};
use sqlx::{PgConnection, PgPool, Row};
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

/// The row of a session and the beats of its holder.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ObservedLease {
    token: i64,
    holder: Option<i64>,
    beats: Option<i64>,
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
        let since = Instant::now();
        let mut first: Option<ObservedLease> = None;
        let mut pause = FIRST_PAUSE;
        loop {
            let mut connection = inner.pool.acquire().await.map_err(inner.fault())?;
            let now = look(&mut connection, session)
                .await
                .map_err(inner.fault())?;
            drop(connection);
            let is_silent = first == Some(now) && since.elapsed() >= inner.patience;
            if now.holder.is_none() || is_silent {
                let token = inner.take(session, now).await.map_err(inner.fault())?;
                return self.hold(session, token.ok_or_else(busy)?).ok_or_else(busy);
            }
            match first {
                None => first = Some(now),
                Some(before) if before != now => return Err(busy()),
                Some(_) => {}
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
    /// be acquired before the transaction ends. Returns `true` if the session is watched.
    pub(super) async fn check(
        &self,
        connection: &mut PgConnection,
        session: &SessionId,
        held: i64,
    ) -> Result<bool, StoreError> {
        let found: Option<(i64, bool)> = sqlx::query_as(
            "SELECT token, EXISTS (
               SELECT 1 FROM watchers WHERE watchers.session = $1 AND until > now())
             FROM leases WHERE session = $1 FOR SHARE",
        )
        .bind(session.as_str())
        .fetch_optional(connection)
        .await
        .map_err(self.0.fault())?;
        match found {
            Some((token, is_watched)) if token == held => Ok(is_watched),
            _ => Err(StoreError::LeaseLost {
                session: session.clone(),
            }),
        }
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

    /// Makes this store the holder of a session if its row has not changed since it was seen.
    async fn take(&self, session: &SessionId, seen: ObservedLease) -> sqlx::Result<Option<i64>> {
        let mut transaction = self.pool.begin().await?;
        sqlx::query("INSERT INTO leases (session, token) VALUES ($1, 0) ON CONFLICT DO NOTHING")
            .bind(session.as_str())
            .execute(&mut *transaction)
            .await?;
        sqlx::query("SELECT 1 FROM leases WHERE session = $1 FOR UPDATE")
            .bind(session.as_str())
            .execute(&mut *transaction)
            .await?;
        if look(&mut transaction, session).await? != seen {
            return Ok(None);
        }
        let had = self.lock().holder;
        let holder: i64 = match had {
            Some(holder) => holder,
            None => {
                // Holders that no longer hold a session.
                sqlx::query(
                    "DELETE FROM holders WHERE NOT EXISTS
                     (SELECT 1 FROM leases WHERE holder = holders.key)",
                )
                .execute(&mut *transaction)
                .await?;
                sqlx::query_scalar("INSERT INTO holders DEFAULT VALUES RETURNING key")
                    .fetch_one(&mut *transaction)
                    .await?
            }
        };
        let token = sqlx::query_scalar(
            "UPDATE leases SET token = token + 1, holder = $2 WHERE session = $1 RETURNING token",
        )
        .bind(session.as_str())
        .bind(holder)
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        self.lock().holder.get_or_insert(holder);
        Ok(Some(token))
    }

    async fn release(&self) -> sqlx::Result<()> {
        let ended = std::mem::take(&mut self.lock().ended);
        for (session, token) in ended {
            sqlx::query("UPDATE leases SET holder = NULL WHERE session = $1 AND token = $2")
                .bind(session.as_str())
                .bind(token)
                .execute(&self.pool)
                .await?;
        }
        Ok(())
    }

    /// Increments the counter. Inserts the row again if another store removed it as unused.
    async fn beat(&self) -> sqlx::Result<()> {
        let Some(holder) = self.lock().holder else {
            return Ok(());
        };
        sqlx::query(
            "INSERT INTO holders (key, beats) OVERRIDING SYSTEM VALUE VALUES ($1, 1)
             ON CONFLICT (key) DO UPDATE SET beats = holders.beats + 1",
        )
        .bind(holder)
        .execute(&self.pool)
        .await
        .map(|_| ())
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

async fn look(connection: &mut PgConnection, session: &SessionId) -> sqlx::Result<ObservedLease> {
    let row = sqlx::query(
        "SELECT token, holder, beats FROM leases LEFT JOIN holders ON holders.key = holder
         WHERE session = $1",
    )
    .bind(session.as_str())
    .fetch_optional(connection)
    .await?;
    Ok(match row {
        None => ObservedLease {
            token: 0,
            holder: None,
            beats: None,
        },
        Some(row) => ObservedLease {
            token: row.try_get("token")?,
            holder: row.try_get("holder")?,
            beats: row.try_get("beats")?,
        },
    })
}
