//! [`FollowedSessions`]: wakes the followers of a session when it has new entries. The database
//! notifies each worker that follows a session; while that fails, followers poll.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::{SessionId, StoreError};
use plimsoll_store::{Changes, PostgresStore, WATCHED};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The first pause between two checks of a newly followed session, because entries written at that
/// moment are not announced. Each pause is twice as long as the previous one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause while the database announces changes.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause while it does not.
const ALONE: Duration = Duration::from_secs(1);
/// The pause between two attempts to listen.
const RETRY: Duration = Duration::from_secs(1);
/// The pause between two checks whether a session is still followed.
const TIDY: Duration = Duration::from_secs(20);

/// The sessions that are followed through this worker.
#[derive(Clone)]
pub(crate) struct FollowedSessions(Arc<FollowedInner>);

struct FollowedInner {
    store: PostgresStore,
    sessions: Mutex<HashMap<SessionId, Session>>,
    /// Whether the database announces changes.
    is_listening: AtomicBool,
}

struct Session {
    changes: watch::Sender<()>,
    /// The time at which the database was last asked to announce changes.
    watched: Option<Instant>,
}

/// Waits for changes of one session.
pub(crate) struct Follower {
    followed: Arc<FollowedInner>,
    changes: watch::Receiver<()>,
    pause: Duration,
}

impl FollowedSessions {
    pub(crate) fn new(store: PostgresStore) -> Self {
        Self(Arc::new(FollowedInner {
            store,
            sessions: Mutex::default(),
            is_listening: AtomicBool::new(false),
        }))
    }

    /// Follows a session.
    ///
    /// # Errors
    /// If the database cannot be written.
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
            pause: if was_watched {
                LONGEST_PAUSE
            } else {
                FIRST_PAUSE
            },
        })
    }

    /// Subscribes to a session. The first subscription starts the listener.
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
    /// Ignores earlier changes, so that only later ones wake this follower.
    pub(crate) fn look(&mut self) {
        self.changes.mark_unchanged();
    }

    /// Waits for a possible change, at most until the given time.
    pub(crate) async fn changed(&mut self, until: Instant) {
        let longest = if self.followed.is_listening.load(Ordering::Relaxed) {
            LONGEST_PAUSE
        } else {
            ALONE
        };
        let left = until.saturating_duration_since(Instant::now());
        let pause = self.pause.min(longest).min(left);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        // The sender exists as long as this receiver.
        let _ = timeout(pause, self.changes.changed()).await;
    }
}

impl FollowedInner {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the followers of a session and of the sessions that it is a sub-agent of: `s` for
    /// `s.3`.
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

    /// Removes the sessions without followers. Returns `false` if none is left.
    fn tidy(&self) -> bool {
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.changes.receiver_count() > 0);
        !sessions.is_empty()
    }
}

/// Listens as long as a session is followed.
async fn listen(followed: Arc<FollowedInner>) {
    while followed.tidy() {
        if let Ok(mut changes) = followed.store.changes().await {
            followed.is_listening.store(true, Ordering::Relaxed);
            // Earlier entries were not announced.
            followed.wake_all();
            let is_over = forward_changes(&followed, &mut changes).await;
            followed.is_listening.store(false, Ordering::Relaxed);
            followed.wake_all();
            if is_over {
                return;
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Forwards announcements. Returns `true` when no session is followed any longer, `false` if the
/// database cannot be reached.
async fn forward_changes(followed: &FollowedInner, changes: &mut Changes) -> bool {
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
