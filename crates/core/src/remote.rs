//! [`Remote`]: controls a run from another task. The inbox holds its messages until the driver
//! takes them.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use plimsoll_agent::{Input, UserMessage, Waiting};
use plimsoll_context::Part;
use smart_default::SmartDefault;
use tokio::sync::{Notify, Semaphore};

use crate::error::{Error, lock};

/// Capacity of the inbox. Beyond it, senders wait.
pub const INBOX: usize = 64;

/// Controls a run from another task.
///
/// Every accepted message is either read by the model in this run or reported as undelivered, by an
/// event or in [`AgentOutput::undelivered`](crate::AgentOutput). A message whose
/// [key](UserMessage::with_key) was accepted before counts as accepted and is not sent again. If a run
/// continues after a crash with [`Session::run_journaled`](crate::Session::run_journaled), the keys in
/// the log count as well.
#[derive(Debug, Clone)]
pub struct Remote(Arc<SharedInbox>);

/// Closes the inbox of a session when dropped.
pub(crate) struct OpenInboxGuard(Remote);

#[derive(Debug, SmartDefault)]
struct SharedInbox {
    /// Memory held by the current run, in bytes.
    memory: AtomicUsize,
    inbox: Mutex<InboxState>,
    arrived: Notify,
    /// A permit for each further message.
    #[default(Semaphore::new(INBOX))]
    room: Semaphore,
}

#[derive(Debug, Default)]
struct InboxState {
    /// Whether a run accepts messages.
    open: bool,
    interrupted: bool,
    messages: VecDeque<Input>,
    /// The keys of messages that this process or, according to the log, an earlier one has
    /// accepted.
    keys: HashSet<String>,
}

impl Remote {
    /// Sends a message to the current run. The model reads it before its next call, and tool calls
    /// that have not begun are skipped.
    ///
    /// Returns `false`, without any effect, if no run is in progress or the message is empty.
    /// Otherwise the message has been accepted.
    pub async fn steer(&self, message: impl Into<UserMessage>) -> bool {
        self.say(Waiting::Steer, message.into()).await
    }

    /// Sends a message that the current run continues with after its answer.
    ///
    /// Returns `false`, without any effect, if no run is in progress or the message is empty.
    /// Otherwise the message has been accepted.
    pub async fn follow_up(&self, message: impl Into<UserMessage>) -> bool {
        self.say(Waiting::FollowUp, message.into()).await
    }

    /// Ends the current run and leaves a session that can be continued. Takes precedence over all
    /// waiting messages. Returns `false` if no run is in progress.
    pub async fn interrupt(&self) -> bool {
        let mut state = lock(&self.0.inbox);
        if state.open {
            state.interrupted = true;
            self.0.arrived.notify_one();
        }
        state.open
    }

    /// Returns the memory held by the current run, in bytes: the messages of the view and the
    /// steps. 0 between runs. O(1). See `docs/memory.md`.
    #[must_use]
    pub fn current_query_memory_usage(&self) -> usize {
        self.0.memory.load(Ordering::Relaxed)
    }

    async fn say(&self, kind: Waiting, message: UserMessage) -> bool {
        let Ok(message) = checked(message) else {
            return false;
        };
        // Nobody waits for the next run: a closed inbox has room.
        let Ok(room) = self.0.room.acquire().await else {
            return false;
        };
        let mut state = lock(&self.0.inbox);
        let key = message.key.as_ref();
        let is_known = key.is_some_and(|key| state.keys.contains(key));
        if state.open && !is_known {
            room.forget();
            state.keys.extend(message.key.clone());
            state.messages.push_back(match kind {
                Waiting::Steer => Input::User(message),
                Waiting::FollowUp => Input::FollowUp(message),
            });
            self.0.arrived.notify_one();
        }
        state.open
    }

    /// Creates the remote of a new session.
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Sets the memory held by the current run.
    pub(crate) fn holds(&self, bytes: usize) {
        self.0.memory.store(bytes, Ordering::Relaxed);
    }

    /// Adds the keys of messages in the log.
    pub(crate) fn knows(&self, keys: impl IntoIterator<Item = String>) {
        lock(&self.0.inbox).keys.extend(keys);
    }

    /// Opens the inbox for a new run.
    pub(crate) fn open(&self) -> OpenInboxGuard {
        let mut state = lock(&self.0.inbox);
        state.open = true;
        state.interrupted = false;
        OpenInboxGuard(self.clone())
    }

    /// Returns the next command. Interrupts come first. Messages keep waiting unless there is room for
    /// them.
    pub(crate) async fn next(&self, has_room: bool) -> Input {
        loop {
            if let Some(command) = self.take(has_room) {
                return command;
            }
            self.0.arrived.notified().await;
        }
    }

    fn take(&self, has_room: bool) -> Option<Input> {
        let mut state = lock(&self.0.inbox);
        if std::mem::take(&mut state.interrupted) {
            return Some(Input::Interrupt);
        }
        if !has_room {
            return None;
        }
        let queued = state.messages.pop_front()?;
        self.0.room.add_permits(1);
        Some(queued)
    }

    /// Closes the inbox. Returns the messages that the run has not taken.
    pub(crate) fn close(&self) -> Vec<Input> {
        self.shut().messages.drain(..).collect()
    }

    fn shut(&self) -> MutexGuard<'_, InboxState> {
        let mut state = lock(&self.0.inbox);
        state.interrupted = false;
        if std::mem::take(&mut state.open) {
            // Waiting senders learn that it is closed.
            self.0.room.add_permits(state.messages.len());
        }
        state
    }
}

impl Drop for OpenInboxGuard {
    fn drop(&mut self) {
        drop(self.0.shut());
    }
}

/// Returns a message, or an error if it is empty.
pub(crate) fn checked(message: impl Into<UserMessage>) -> Result<UserMessage, Error> {
    let message = message.into();
    let says = |part: &Part| part.as_text().is_none_or(|text| !text.trim().is_empty());
    if message.parts.iter().any(says) {
        Ok(message)
    } else {
        Err(Error::EmptyTask)
    }
}

/// Returns the message of an input, or `None` for an interrupt.
pub(crate) fn message_of(input: Input) -> Option<Vec<Part>> {
    match input {
        Input::User(message) | Input::FollowUp(message) => Some(message.parts),
        _ => None,
    }
}
