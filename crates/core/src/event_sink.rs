//! [`EventSink`]: takes the events of a run whose host reads them as a stream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::{Event, SessionEvent};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::observer::Observer;

/// Maximum number of events that wait for the reader of a [`RunStream`](crate::RunStream). While they
/// wait, further ones are dropped, except for the end of the run.
pub const MAX_WAITING_EVENTS: usize = 8_192;

/// The sending end of a queue of events.
pub(crate) struct EventSink {
    events: Sender<Event>,
    beside: Arc<BesideQueue>,
}

/// What a reader learns beside the queue.
#[derive(Debug, Default)]
pub(crate) struct BesideQueue {
    /// The end of the run. It is kept apart, so that it is never dropped and comes last.
    end: Mutex<Option<Event>>,
    /// Number of dropped events.
    pub(crate) dropped: AtomicU64,
}

impl EventSink {
    pub(crate) fn new() -> (Self, Receiver<Event>, Arc<BesideQueue>) {
        let (events, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
        let beside = Arc::<BesideQueue>::default();
        let sink = Self {
            events,
            beside: Arc::clone(&beside),
        };
        (sink, receiver, beside)
    }
}

impl BesideQueue {
    pub(crate) fn end(&self) -> MutexGuard<'_, Option<Event>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for EventSink {
    fn see(&self, seen: &SessionEvent) {
        let event = seen.event.clone();
        if matches!(event, Event::AgentEnd { .. }) {
            *self.beside.end() = Some(event);
        } else if self.events.try_send(event).is_err() {
            self.beside.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
