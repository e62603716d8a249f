//! [`Relay`]: passes the events of a sub-agent to the observers of its caller, up to a limit and
//! until the call ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_agent::{Event, SessionEvent};
use plimsoll_context::CallId;
use tokio_util::sync::CancellationToken;

use crate::observer::{Observer, Observers};

/// Maximum number of events that the caller's observers get from one sub-agent. Its end is always
/// among them. Its own observers get all events.
pub const MAX_RELAYED: usize = 10_000;

pub(super) struct Relay {
    to: Observers,
    call: CallId,
    name: String,
    over: CancellationToken,
    told: AtomicUsize,
}

impl Relay {
    pub(super) fn new(to: Observers, call: CallId, name: String, over: CancellationToken) -> Self {
        Self {
            to,
            call,
            name,
            over,
            told: AtomicUsize::new(0),
        }
    }
}

impl Observer for Relay {
    fn see(&self, seen: &SessionEvent) {
        let told = self.told.fetch_add(1, Ordering::Relaxed);
        let ends = matches!(seen.event, Event::AgentEnd { .. });
        if self.over.is_cancelled() || (told >= MAX_RELAYED && !ends) {
            return;
        }
        self.to.tell(Event::SubAgent {
            call: self.call.clone(),
            name: self.name.clone(),
            event: Box::new(seen.clone()),
        });
    }
}
