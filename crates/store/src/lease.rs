//! [`Leases`]: the right of one writer per session.
//!
//! The lock file of a session shows quickly whether it is held, and is free as soon as its process
//! has ended. The row of the session in the database decides: it has a number that grows with each
//! writer, and every write checks that number in its own transaction. A process that stands still
//! keeps its lock file, but its beats stop. After [`Options::patience`](crate::Options::patience)
//! another process may take the session over, and the number of the first process becomes invalid.
//! Clocks of different processes are never compared.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::{SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::columns::name_hash;
use crate::connection::SharedConnection;
use crate::fault::{self, WorkError};
use crate::lock::{HeldLock, Lock, Locks};
use crate::options::{Durability, Options};

/// The number of beats within [`Options::patience`]. All of them must be missing before a session
/// is taken over.
pub(crate) const BEATS: u32 = 15;

/// The first pause between two checks of a session that another process holds. Each pause is twice
/// as long as the previous one, up to a quarter of a beat.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// The leases of one store. Clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    locks: Locks,
    patience: Duration,
    pulse: Arc<Heartbeat>,
}

/// The right to write to one session, valid while it is held.
#[derive(Debug, Clone)]
pub(crate) struct Right {
    session: SessionId,
    token: i64,
    /// Keeps the session locked for others.
    _lock: Arc<Lock>,
}

/// The resources that a lease holds until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldLease {
    // Dropped first: the session is free before the pulse stops.
    _held: HeldLock,
    _beating: BeatGuard,
}

/// The row of a session and the beats of its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ObservedLease {
    token: i64,
    holder: i64,
    beats: Option<i64>,
}

/// The beats of one store, sent by a thread that lives as long as the store has leases.
#[derive(Debug)]
struct Heartbeat {
    period: Duration,
    durability: Durability,
    state: Mutex<PulseState>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct PulseState {
    holder: Option<i64>,
    leases: u64,
    is_running: bool,
}

/// Counts as a lease of its pulse until it is dropped.
#[derive(Debug)]
struct BeatGuard(Arc<Heartbeat>);

impl Leases {
    /// Creates leases with lock files in `folder`.
    pub(crate) fn new(folder: &Path, options: &Options) -> Self {
        Self {
            locks: Locks::new(folder),
            patience: options.patience,
            pulse: Arc::new(Heartbeat {
                period: options.patience / BEATS,
                durability: options.durability,
                state: Mutex::default(),
                ended: Condvar::new(),
            }),
        }
    }

    /// Becomes the only writer of a session. Blocks for the time of some file operations; if
    /// another process holds the session, until it is known whether that process is alive.
    pub(crate) fn acquire(
        &self,
        writer: &SharedConnection,
        session: &SessionId,
    ) -> Result<HeldLease, StoreError> {
        self.acquire_within(writer, session, Some(self.patience))
    }

    /// Becomes the only writer of a session that nobody holds, not even a process that stands
    /// still.
    pub(crate) fn acquire_idle(
        &self,
        writer: &SharedConnection,
        session: &SessionId,
    ) -> Result<HeldLease, StoreError> {
        self.acquire_within(writer, session, None)
    }

    fn acquire_within(
        &self,
        writer: &SharedConnection,
        session: &SessionId,
        patience: Option<Duration>,
    ) -> Result<HeldLease, StoreError> {
        let busy = || StoreError::Busy {
            session: session.clone(),
        };
        if self.locks.holds(session) {
            return Err(busy());
        }
        let since = Instant::now();
        let mut first: Option<Option<ObservedLease>> = None;
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(lock) = self.locks.try_lock(session)? {
                // Nobody has taken it over between the two.
                let token = self.take(writer, session, |_| lock.is_in_place())?;
                if let Some(token) = token {
                    return self.hold(writer, session, lock, token);
                }
            }
            let Some(patience) = patience else {
                return Err(busy());
            };
            let now = writer.with_now(|connection| look(connection, session))?;
            match first {
                None => first = Some(now),
                Some(before) if before != now => return Err(busy()),
                Some(_) if since.elapsed() >= patience => {
                    let lock = self.locks.spare(session)?;
                    let token = self.take(writer, session, |seen| *seen == now)?;
                    let token = token.ok_or_else(busy)?;
                    lock.put_in_place();
                    return self.hold(writer, session, lock, token);
                }
                Some(_) => {}
            }
            thread::sleep(pause);
            pause = (pause * 2).min(self.pulse.period / 4);
        }
    }

    /// Returns an error if another process holds the session. The transaction must be one that
    /// writes, so that nobody becomes its holder in the meantime.
    pub(crate) fn refuse_held(
        &self,
        transaction: &Transaction<'_>,
        session: &SessionId,
    ) -> Result<(), WorkError> {
        if look(transaction, session)?.is_some()
            && (self.locks.holds(session) || self.locks.try_lock(session)?.is_none())
        {
            let session = session.clone();
            return Err(StoreError::Busy { session }.into());
        }
        Ok(())
    }

    /// Returns the right to write to a session, if this store has a lease on it.
    pub(crate) fn right(&self, session: &SessionId) -> Option<Right> {
        let (lock, token) = self.locks.of(session)?;
        Some(Right {
            session: session.clone(),
            token,
            _lock: lock,
        })
    }

    /// Makes this store the holder of a session if `may` accepts its row. Returns the new number.
    fn take(
        &self,
        writer: &SharedConnection,
        session: &SessionId,
        may: impl FnOnce(&Option<ObservedLease>) -> bool,
    ) -> Result<Option<i64>, StoreError> {
        writer.with_now(|connection| {
            let mut state = self.pulse.lock();
            let taken = take(connection, session, state.holder, may)?;
            Ok(taken.map(|(token, holder)| {
                state.holder = Some(holder);
                token
            }))
        })
    }

    fn hold(
        &self,
        writer: &SharedConnection,
        session: &SessionId,
        lock: Lock,
        token: i64,
    ) -> Result<HeldLease, StoreError> {
        let beating = Heartbeat::begin(&self.pulse, writer)?;
        Ok(HeldLease {
            _held: self.locks.hold(session, lock, token),
            _beating: beating,
        })
    }
}

impl Right {
    /// Returns the session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns an error if another process has become the writer since. The transaction must be one
    /// that writes, so that the writer cannot change in the meantime.
    pub(crate) fn check(&self, transaction: &Transaction<'_>) -> Result<(), WorkError> {
        let token: Option<i64> = transaction
            .prepare_cached("SELECT token FROM leases WHERE session = ?1")?
            .query_row([key(&self.session)], |row| row.get(0))
            .optional()?;
        if token == Some(self.token) {
            return Ok(());
        }
        let session = self.session.clone();
        Err(StoreError::LeaseLost { session }.into())
    }
}

impl Heartbeat {
    fn lock(&self) -> MutexGuard<'_, PulseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts another lease, and keeps the beats going while there are any.
    fn begin(pulse: &Arc<Self>, writer: &SharedConnection) -> Result<BeatGuard, StoreError> {
        let mut state = pulse.lock();
        if !state.is_running {
            let (own, connection) = (Arc::clone(pulse), writer.downgrade());
            thread::Builder::new()
                .name("plimsoll-lease".to_owned())
                .spawn(move || own.run(&connection))
                .map_err(fault::io(writer.path()))?;
            state.is_running = true;
        }
        state.leases += 1;
        drop(state);
        Ok(BeatGuard(Arc::clone(pulse)))
    }

    fn run(&self, connection: &Weak<tokio::sync::Mutex<Connection>>) {
        loop {
            // Woken early only by the end of the last lease. A lease that began since then waits a
            // full beat.
            let waited = self
                .ended
                .wait_timeout_while(self.lock(), self.period, |state| state.leases > 0);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            // Held only for a beat, so that this thread does not keep the file open.
            let connection = Some(connection)
                .filter(|_| state.leases > 0)
                .and_then(Weak::upgrade);
            let (Some(connection), holder) = (connection, state.holder) else {
                state.is_running = false;
                return;
            };
            drop(state);
            // A failed beat is late, and another process may take over. No write depends on it.
            let _ = self.beat(&connection.blocking_lock(), holder);
        }
    }

    /// Increments the counter. It need not survive a power loss, so it does not wait for the disk.
    fn beat(&self, connection: &Connection, holder: Option<i64>) -> rusqlite::Result<()> {
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let beat = connection
            .prepare_cached("UPDATE holders SET beats = beats + 1 WHERE key = ?1")
            .and_then(|mut beat| beat.execute([holder]));
        if self.durability == Durability::Full {
            connection.pragma_update(None, "synchronous", "FULL")?;
        }
        beat.map(|_| ())
    }
}

impl Drop for BeatGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.leases = state.leases.saturating_sub(1);
        if state.leases == 0 {
            self.0.ended.notify_all();
        }
    }
}

fn look(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<ObservedLease>> {
    connection
        .prepare_cached(
            "SELECT token, holder, beats FROM leases LEFT JOIN holders ON holders.key = holder
             WHERE session = ?1",
        )?
        .query_row([key(session)], |row| {
            Ok(ObservedLease {
                token: row.get(0)?,
                holder: row.get(1)?,
                beats: row.get(2)?,
            })
        })
        .optional()
}

/// Gives a session to a holder, which is created if necessary. Returns the session's new number and
/// the holder.
fn take(
    connection: &mut Connection,
    session: &SessionId,
    holder: Option<i64>,
    may: impl FnOnce(&Option<ObservedLease>) -> bool,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !may(&look(&transaction, session)?) {
        return Ok(None);
    }
    // Holders that no longer hold a session.
    transaction.execute(
        "DELETE FROM holders WHERE NOT EXISTS (SELECT 1 FROM leases WHERE holder = holders.key)",
        [],
    )?;
    transaction.execute(
        "INSERT INTO holders (key, beats) VALUES (?1, 0) ON CONFLICT DO NOTHING",
        [holder],
    )?;
    let holder = holder.unwrap_or_else(|| transaction.last_insert_rowid());
    let token = transaction.query_row(
        "INSERT INTO leases (session, token, holder) VALUES (?1, 1, ?2)
         ON CONFLICT DO UPDATE SET token = token + 1, holder = excluded.holder RETURNING token",
        params![key(session), holder],
        |row| row.get(0),
    )?;
    transaction.commit()?;
    Ok(Some((token, holder)))
}

/// Returns the key of a session in the table of leases.
fn key(session: &SessionId) -> [u8; 16] {
    name_hash(session.as_str())
}
