//! [`Remote`]: reaches into a run from another task, and the inbox that its messages wait in until
//! the driver takes them. Not the queue of a run; that is the machine's, and in the log.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::Waiting;
use plimsoll_context::Part;
use tokio::sync::Notify;

use crate::error::Error;

/// Messages that wait for the driver, at most; a sender waits beyond that.
pub const INBOX: usize = 64;

/// What a person says: text, or parts of any kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Said(
    /// Its parts.
    pub Vec<Part>,
);

/// Reaches into a run from another task. What it takes has exactly one end: the model reads it in this
/// run, or it is undelivered, which an event or [`AgentOutput::undelivered`](crate::AgentOutput) says.
#[derive(Debug, Clone)]
pub struct Remote(Arc<Shared>);

/// What a [`Remote`] says.
#[derive(Debug)]
pub(crate) enum Command {
    Say(Spoken),
    Interrupt,
}

/// A message for a run that is under way.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) kind: Waiting,
    pub(crate) parts: Vec<Part>,
    /// By what it is known if it is sent again.
    pub(crate) key: Option<String>,
}

/// The other end of each [`Remote`] of a session.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Arc<Shared>);

/// Closes the inbox when dropped.
pub(crate) struct Opened(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Bytes that the run under way holds.
    memory: AtomicUsize,
    inbox: Mutex<State>,
    arrived: Notify,
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a run is under way that takes messages.
    open: bool,
    interrupted: bool,
    said: VecDeque<Spoken>,
    /// The keys of messages that were taken, by this process or according to the log.
    keys: HashSet<String>,
}

/// What became of a message.
enum Put {
    Taken,
    Closed,
    Full(Spoken),
}

impl Remote {
    /// Says something to the run that is under way: it is read before the next model call, and tool
    /// calls that have not begun are left out. False where no run is under way or where it says
    /// nothing, and then nothing has happened; otherwise it has been taken.
    pub async fn steer(&self, said: impl Into<Said>) -> bool {
        self.say(Waiting::Steer, said.into(), None).await
    }

    /// Says something for when the run that is under way has its answer: the run goes on with it.
    /// False where no run is under way or where it says nothing, and then nothing has happened;
    /// otherwise it has been taken.
    pub async fn follow_up(&self, said: impl Into<Said>) -> bool {
        self.say(Waiting::FollowUp, said.into(), None).await
    }

    /// Says something as [`Self::steer`] or [`Self::follow_up`] does, but not a second time: a message
    /// with a key that was taken before counts as taken, and is not said again. If a run goes on after a
    /// crash as [`Session::run_journaled`](crate::Session::run_journaled), that holds for the keys that the
    /// log has, too.
    pub async fn say_once(&self, kind: Waiting, key: String, said: impl Into<Said>) -> bool {
        self.say(kind, said.into(), Some(key)).await
    }

    /// Ends the run that is under way, leaving a session that can be carried on. It goes before
    /// everything else that waits. False where no run is under way.
    pub async fn interrupt(&self) -> bool {
        let mut state = self.0.lock();
        if state.open {
            state.interrupted = true;
            self.0.arrived.notify_one();
        }
        state.open
    }

    /// Bytes that the run under way holds: its messages as they stand in the view, and its steps; 0
    /// between runs. O(1). See `docs/memory.md`.
    #[must_use]
    pub fn current_query_memory_usage(&self) -> usize {
        self.0.memory.load(Ordering::Relaxed)
    }

    /// Passes on what was said, if there is room for it; the same in one step.
    pub(crate) fn pass(&self, kind: Waiting, parts: Vec<Part>) -> bool {
        let key = None;
        matches!(self.0.put(Spoken { kind, parts, key }), Put::Taken)
    }

    async fn say(&self, kind: Waiting, said: Said, key: Option<String>) -> bool {
        let Ok(parts) = said.checked() else {
            return false;
        };
        let mut spoken = Spoken { kind, parts, key };
        loop {
            // Listening begins before the look, so that no room is missed.
            let mut room = std::pin::pin!(self.0.room.notified());
            room.as_mut().enable();
            match self.0.put(spoken) {
                Put::Taken => return true,
                Put::Closed => return false,
                Put::Full(back) => spoken = back,
            }
            room.await;
        }
    }
}

impl Inbox {
    /// Another end.
    pub(crate) fn remote(&self) -> Remote {
        Remote(Arc::clone(&self.0))
    }

    /// Notes what the run under way holds.
    pub(crate) fn holds(&self, bytes: usize) {
        self.0.memory.store(bytes, Ordering::Relaxed);
    }

    /// Notes the keys of messages that the log has.
    pub(crate) fn knows(&self, keys: impl IntoIterator<Item = String>) {
        self.0.lock().keys.extend(keys);
    }

    /// A run begins to take messages.
    pub(crate) fn open(&self) -> Opened {
        let mut state = self.0.lock();
        state.open = true;
        state.interrupted = false;
        Opened(Arc::clone(&self.0))
    }

    /// The next command; an interrupt goes before all others.
    pub(crate) async fn next(&self) -> Command {
        loop {
            if let Some(command) = self.0.take() {
                return command;
            }
            self.0.arrived.notified().await;
        }
    }

    /// The next interrupt; everything else waits.
    pub(crate) async fn interrupt(&self) -> Command {
        loop {
            if std::mem::take(&mut self.0.lock().interrupted) {
                return Command::Interrupt;
            }
            self.0.arrived.notified().await;
        }
    }

    /// A run takes no more messages. What it has not taken comes back.
    pub(crate) fn close(&self) -> Vec<Spoken> {
        self.0.close();
        self.0.lock().said.drain(..).collect()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, spoken: Spoken) -> Put {
        let mut state = self.lock();
        if !state.open {
            return Put::Closed;
        }
        let is_known = |key: &String| state.keys.contains(key);
        if spoken.key.as_ref().is_some_and(is_known) {
            return Put::Taken;
        }
        if state.said.len() >= INBOX {
            return Put::Full(spoken);
        }
        state.keys.extend(spoken.key.clone());
        state.said.push_back(spoken);
        self.arrived.notify_one();
        Put::Taken
    }

    fn take(&self) -> Option<Command> {
        let mut state = self.lock();
        if std::mem::take(&mut state.interrupted) {
            return Some(Command::Interrupt);
        }
        let spoken = state.said.pop_front()?;
        self.room.notify_waiters();
        Some(Command::Say(spoken))
    }

    fn close(&self) {
        self.lock().open = false;
        self.room.notify_waiters();
    }
}

impl Said {
    /// Its parts, if it says anything.
    pub(crate) fn checked(self) -> Result<Vec<Part>, Error> {
        let says = |part: &Part| part.as_text().is_none_or(|text| !text.trim().is_empty());
        match self.0.iter().any(says) {
            true => Ok(self.0),
            false => Err(Error::EmptyTask),
        }
    }
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self(vec![Part::text(text)])
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self(vec![Part::text(text)])
    }
}

impl From<Vec<Part>> for Said {
    fn from(parts: Vec<Part>) -> Self {
        Self(parts)
    }
}
