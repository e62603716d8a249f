//! [`Followed`]: wakes those who follow a session when something is new in it. The database says so to each
//! worker that follows one; while that does not work, followers look for themselves.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::{SessionId, StoreError};
use plimsoll_store::{Changes, PostgresStore, WATCHED};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The first pause between two looks at a session that has just begun to be followed: what was written at
/// that moment is not announced. Each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause while the database announces what is new.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause while it does not.
const ALONE: Duration = Duration::from_secs(1);
/// Between two tries to listen.
const RETRY: Duration = Duration::from_secs(1);
/// Between two looks whether a session is still followed.
const TIDY: Duration = Duration::from_secs(20);

/// The sessions that are followed by way of this worker.
#[derive(Clone)]
pub(crate) struct Followed(Arc<Inner>);

struct Inner {
    store: PostgresStore,
    sessions: Mutex<HashMap<SessionId, Session>>,
    /// The database announces what is new.
    is_listening: AtomicBool,
}

struct Session {
    changes: watch::Sender<()>,
    /// When the database was told that somebody follows it.
    watched: Option<Instant>,
}

/// Waits for what is new in one session.
pub(crate) struct Follower {
    followed: Arc<Inner>,
    changes: watch::Receiver<()>,
    pause: Duration,
}

impl Followed {
    pub(crate) fn new(store: PostgresStore) -> Self {
        Self(Arc::new(Inner {
            store,
            sessions: Mutex::default(),
            is_listening: AtomicBool::new(false),
        }))
    }

    /// Follows a session.
    ///
    /// # Errors
    /// If the database cannot be told.
    pub(crate) async fn follow(&self, id: &SessionId) -> Result<Follower, StoreError> {
        let (changes, watched) = self.subscribe(id);
        if watched.is_none_or(|at| at.elapsed() >= WATCHED / 3) {
            self.0.store.watch(id).await?;
            if let Some(session) = self.0.lock().get_mut(id) {
                session.watched = Some(Instant::now());
            }
        }
        let was_watched = watched.is_some_and(|at| at.elapsed() < WATCHED);
        Ok(Follower {
            followed: Arc::clone(&self.0),
            changes,
            pause: match was_watched {
                true => LONGEST_PAUSE,
                false => FIRST_PAUSE,
            },
        })
    }

    /// The first who follows a session starts what listens.
    fn subscribe(&self, id: &SessionId) -> (watch::Receiver<()>, Option<Instant>) {
        let mut sessions = self.0.lock();
        if sessions.is_empty() {
            tokio::spawn(listen(Arc::clone(&self.0)));
        }
        let session = sessions.entry(id.clone()).or_insert_with(|| Session {
            changes: watch::Sender::new(()),
            watched: None,
        });
        (session.changes.subscribe(), session.watched)
    }
}

impl Follower {
    /// What changes from now on is waited for.
    pub(crate) fn look(&mut self) {
        self.changes.mark_unchanged();
    }

    /// Waits until something may be new, or until a time.
    pub(crate) async fn changed(&mut self, until: Instant) {
        let longest = match self.followed.is_listening.load(Ordering::Relaxed) {
            true => LONGEST_PAUSE,
            false => ALONE,
        };
        let left = until.saturating_duration_since(Instant::now());
        let pause = self.pause.min(longest).min(left);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        // The sender is there as long as this receiver is.
        let _ = timeout(pause, self.changes.changed()).await;
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who follow a session, or one of which it is a sub-agent: `s` of `s.3`.
    fn wake(&self, name: &str) {
        let sessions = self.lock();
        let mut name = Some(name);
        while let Some(session) = name {
            if let Some(session) = SessionId::new(session)
                .ok()
                .and_then(|id| sessions.get(&id))
            {
                session.changes.send_replace(());
            }
            name = session.rsplit_once('.').map(|(parent, _)| parent);
        }
    }

    fn wake_all(&self) {
        for session in self.lock().values() {
            session.changes.send_replace(());
        }
    }

    /// Forgets the sessions that nobody follows any longer. Returns `false` if none is left.
    fn tidy(&self) -> bool {
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.changes.receiver_count() > 0);
        !sessions.is_empty()
    }
}

/// Listens as long as a session is followed.
async fn listen(followed: Arc<Inner>) {
    while followed.tidy() {
        if let Ok(mut changes) = followed.store.changes().await {
            followed.is_listening.store(true, Ordering::Relaxed);
            // What was written before was not announced.
            followed.wake_all();
            let is_over = hear(&followed, &mut changes).await;
            followed.is_listening.store(false, Ordering::Relaxed);
            followed.wake_all();
            if is_over {
                return;
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Passes on what is announced. Returns `true` if nobody follows a session any longer, `false` if the database
/// is away.
async fn hear(followed: &Inner, changes: &mut Changes) -> bool {
    let mut tidied = Instant::now();
    loop {
        match timeout(TIDY, changes.next()).await {
            Ok(Ok(Some(session))) => followed.wake(&session),
            // Some may have been lost with the connection.
            Ok(Ok(None)) => followed.wake_all(),
            Ok(Err(_)) => return false,
            Err(_) => {}
        }
        if tidied.elapsed() >= TIDY {
            tidied = Instant::now();
            if !followed.tidy() {
                return true;
            }
        }
    }
}
