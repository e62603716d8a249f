//! [`Mailbox`]: brings what is said to a run from outside to the run, once. What was brought is in the
//! session's log, and not said again by the worker that comes next.

use std::time::Duration;

use plimsoll_agent::Waiting;
use plimsoll_core::{Remote, SessionId};
use plimsoll_store::{PostgresStore, RunMessageKind};
use tokio::task::JoinHandle;

/// Between two looks for messages.
const PAUSE: Duration = Duration::from_millis(250);

/// Looks for messages until it is dropped.
pub(crate) struct Mailbox(JoinHandle<()>);

impl Mailbox {
    /// Looks for messages for the run of a request.
    pub(crate) fn open(
        store: PostgresStore,
        session: SessionId,
        run: String,
        remote: Remote,
    ) -> Self {
        Self(tokio::spawn(deliver(store, session, run, remote)))
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the key by which a session's log knows a message for the run of a request.
#[must_use]
pub fn message_key(run: &str, id: &str) -> String {
    format!("{run}/{id}")
}

async fn deliver(store: PostgresStore, session: SessionId, run: String, remote: Remote) {
    let mut after = 0;
    loop {
        // What cannot be read now is read later.
        let messages = store.messages(&session, &run, after).await;
        for (row, message) in messages.unwrap_or_default() {
            let key = message_key(&run, &message.id);
            let taken = match message.kind {
                RunMessageKind::Interrupt => remote.interrupt().await,
                RunMessageKind::Steer => remote.say_once(Waiting::Steer, key, message.text).await,
                RunMessageKind::FollowUp => {
                    remote.say_once(Waiting::FollowUp, key, message.text).await
                }
            };
            // The run has not begun here yet.
            if !taken {
                break;
            }
            after = row;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
