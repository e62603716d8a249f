//! [`Relay`]: what happens in a sub-agent, told to those who watch its caller. Bounded, and silent once
//! the call is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_agent::Event;
use plimsoll_context::CallId;
use tokio_util::sync::CancellationToken;

use crate::driver::Parts;
use crate::observer::Observer;

/// Events of one sub-agent that its caller's observers see, at most; its end is always one of them.
/// Its own observers see all.
pub const MAX_RELAYED: usize = 10_000;

pub(super) struct Relay {
    to: Arc<Parts>,
    call: CallId,
    name: String,
    session: String,
    over: CancellationToken,
    told: AtomicUsize,
}

impl Relay {
    pub(super) fn new(
        to: Arc<Parts>,
        call: CallId,
        name: String,
        session: String,
        over: CancellationToken,
    ) -> Self {
        Self {
            to,
            call,
            name,
            session,
            over,
            told: AtomicUsize::new(0),
        }
    }
}

impl Observer for Relay {
    fn see(&self, event: &Event) {
        let told = self.told.fetch_add(1, Ordering::Relaxed);
        let ends = matches!(event, Event::AgentEnd { .. });
        if self.over.is_cancelled() || (told >= MAX_RELAYED && !ends) {
            return;
        }
        self.to.tell(&Event::SubAgent {
            call: self.call.clone(),
            name: self.name.clone(),
            session: self.session.clone(),
            event: Box::new(event.clone()),
        });
    }
}
