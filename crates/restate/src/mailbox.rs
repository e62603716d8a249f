//! [`Mailbox`]: delivers messages from outside to a run, each once. Delivered messages are in the
//! session's log, so the next worker does not deliver them again.
//!
//! One database query serves all runs of a worker: it checks whether there are new messages at all.
//! A run that waits minutes for its model costs almost nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_agent::UserMessage;
use plimsoll_core::{Remote, SessionId};
use plimsoll_store::{PostgresStore, RunMessageKind};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::outage::Outages;

/// The pause between two checks for new messages.
const PAUSE: Duration = Duration::from_millis(250);
/// The time after which a run queries its own messages even without a sign of new ones. A message
/// may have been written late.
const SURELY: Duration = Duration::from_secs(10);

/// Watches for new messages while a run needs them.
pub(crate) struct Arrivals {
    store: PostgresStore,
    outages: Arc<Outages>,
    newest: Mutex<Option<watch::Receiver<i64>>>,
}

/// Delivers messages until it is dropped.
pub(crate) struct Mailbox(JoinHandle<()>);

impl Arrivals {
    pub(crate) fn new(store: PostgresStore, outages: Arc<Outages>) -> Self {
        Self {
            store,
            outages,
            newest: Mutex::new(None),
        }
    }

    /// Returns a receiver that changes when a message arrives.
    fn watch(&self) -> watch::Receiver<i64> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(newest) = &*newest
            && newest.has_changed().is_ok()
        {
            return newest.clone();
        }
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(look(self.store.clone(), Arc::clone(&self.outages), sender));
        *newest = Some(receiver.clone());
        receiver
    }
}

impl Mailbox {
    /// Starts delivering messages to the run of a request.
    pub(crate) fn open(
        arrivals: &Arrivals,
        session: SessionId,
        run: String,
        remote: Remote,
    ) -> Self {
        let (store, newest) = (arrivals.store.clone(), arrivals.watch());
        Self(tokio::spawn(deliver(store, newest, session, run, remote)))
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the key of a message in the session's log.
#[must_use]
pub fn message_key(run: &str, id: &str) -> String {
    format!("{run}/{id}")
}

/// Polls until only the receiver of [`Arrivals`] is left.
async fn look(store: PostgresStore, outages: Arc<Outages>, newest: watch::Sender<i64>) {
    while newest.receiver_count() > 1 {
        match store.newest_message().await {
            Ok(now) => {
                newest.send_if_modified(|before| {
                    let is_new = now > *before;
                    *before = now.max(*before);
                    is_new
                });
            }
            // Retried in the next iteration.
            Err(error) => outages.failed(&error),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn deliver(
    store: PostgresStore,
    mut newest: watch::Receiver<i64>,
    session: SessionId,
    run: String,
    remote: Remote,
) {
    let mut after = 0;
    loop {
        // Messages that arrive during this query count as new.
        newest.mark_unchanged();
        let Ok(messages) = store.messages(&session, &run, after).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let is_empty = messages.is_empty();
        for (row, message) in messages {
            let key = message_key(&run, &message.id);
            let text = UserMessage::from(message.text).with_key(key);
            let taken = match message.kind {
                RunMessageKind::Interrupt => remote.interrupt().await,
                RunMessageKind::Steer => remote.steer(text).await,
                RunMessageKind::FollowUp => remote.follow_up(text).await,
            };
            // The run has not started on this worker yet.
            if !taken {
                tokio::time::sleep(PAUSE).await;
                break;
            }
            after = row;
        }
        // If the shared watcher has ended, the run queries by itself.
        if is_empty && matches!(timeout(SURELY, newest.changed()).await, Ok(Err(_))) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}
