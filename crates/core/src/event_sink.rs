//! [`EventSink`]: takes the events of a run whose host reads them as a stream.

use std::sync::{Arc, Mutex, PoisonError};
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_agent::{Event, SessionEvent};
use tokio::sync::mpsc::{self, OwnedPermit, Receiver, Sender};

use crate::observer::Observer;

/// Maximum number of events that wait for the reader of a [`RunStream`](crate::RunStream). While they
/// wait, further ones are dropped, except for the end of the run.
pub const MAX_WAITING_EVENTS: usize = 8_192;

/// The sending end of a queue of events.
pub(crate) struct EventSink {
    events: Sender<Event>,
    /// The place for the end of the run.
    end: Mutex<Option<OwnedPermit<Event>>>,
    dropped: Arc<AtomicU64>,
}

impl EventSink {
    /// Creates a queue. Counts the events that are dropped in `dropped`.
    pub(crate) fn new(dropped: &Arc<AtomicU64>) -> (Self, Receiver<Event>) {
        let (events, receiver) = mpsc::channel(MAX_WAITING_EVENTS + 1);
        let sink = Self {
            end: Mutex::new(events.clone().try_reserve_owned().ok()),
            events,
            dropped: Arc::clone(dropped),
        };
        (sink, receiver)
    }
}

impl Observer for EventSink {
    fn see(&self, seen: &SessionEvent) {
        let event = seen.event.clone();
        let is_end = matches!(event, Event::AgentEnd { .. });
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(end) = end.take_if(|_| is_end) {
            end.send(event);
        } else if self.events.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
