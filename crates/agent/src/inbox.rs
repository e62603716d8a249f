//! Messages that wait for a run: steers, for its next model call, and follow-ups, for when it has its
//! answer. Each is in the log from the moment it arrives and comes to exactly one end: delivered, or
//! not. Not where they come from; that is the host's.

use std::sync::Arc;

use plimsoll_context::{Message, Part};
use serde::{Deserialize, Serialize};

use crate::entry::{Entry, Waiting};
use crate::event::{Event, MessagePhase, TurnTrigger};
use crate::run::Run;

/// Messages that wait for a run, at most; a further one is refused with a warning.
pub const MAX_WAITING: usize = 64;

/// How messages that wait are delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    /// All that wait, together.
    #[default]
    All,
    /// The oldest; the others wait for the next time.
    OneAtATime,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Queued {
    pub(crate) id: u64,
    pub(crate) kind: Waiting,
    pub(crate) parts: Vec<Part>,
}

impl Run {
    /// Whether one more message may wait.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.state.waiting.len() < MAX_WAITING
    }

    /// A message arrives while a run is under way.
    pub(crate) fn enqueue(&mut self, kind: Waiting, parts: Vec<Part>, key: Option<String>) {
        if !self.has_room() {
            return self.warn(format!(
                "{MAX_WAITING} messages wait already; this one was not taken"
            ));
        }
        self.accept(key);
        let Some(parts) = self.filtered(parts) else {
            return;
        };
        let id = self.state.queued + 1;
        self.record(Entry::Queued {
            id,
            kind,
            parts: parts.clone(),
        });
        self.tell_message(id, kind, MessagePhase::Queued, parts);
    }

    /// What is said once the filters have seen it; `None` where one rejects it.
    pub(crate) fn filtered(&mut self, parts: Vec<Part>) -> Option<Vec<Part>> {
        match self.setup.input_filters.apply(parts) {
            Ok(parts) => Some(parts),
            Err(why) => {
                self.notify(Event::InputRejected { why: why.clone() });
                self.rejected = Some(why);
                None
            }
        }
    }

    /// Whether a message of this kind waits.
    pub(crate) fn waits(&self, kind: Waiting) -> bool {
        self.state.waiting.iter().any(|queued| queued.kind == kind)
    }

    /// Says what waits, as the host wants it delivered. False where nothing did.
    pub(crate) fn deliver(&mut self, kind: Waiting) -> bool {
        let mode = match kind {
            Waiting::Steer => self.setup.steering,
            Waiting::FollowUp => self.setup.follow_ups,
        };
        let most = match mode {
            QueueMode::All => MAX_WAITING,
            QueueMode::OneAtATime => 1,
        };
        let waiting = self.state.waiting.iter();
        let now: Vec<Queued> = waiting
            .filter(|queued| queued.kind == kind)
            .take(most)
            .cloned()
            .collect();
        for Queued { id, parts, .. } in &now {
            self.record(Entry::Said {
                message: Arc::new(Message::User {
                    parts: parts.clone(),
                }),
                queued: Some(*id),
            });
            self.tell_message(*id, kind, MessagePhase::Delivered, parts.clone());
        }
        if !now.is_empty() {
            self.cause = match kind {
                Waiting::Steer => TurnTrigger::Steer,
                Waiting::FollowUp => TurnTrigger::FollowUp,
            };
        }
        !now.is_empty()
    }

    /// The run ends without what still waits.
    pub(crate) fn give_up_waiting(&mut self) -> Vec<Vec<Part>> {
        let left: Vec<Queued> = self.state.waiting.iter().cloned().collect();
        if left.is_empty() {
            return Vec::new();
        }
        self.record(Entry::Undelivered {
            ids: left.iter().map(|queued| queued.id).collect(),
        });
        for Queued { id, kind, parts } in &left {
            self.tell_message(*id, *kind, MessagePhase::Undelivered, parts.clone());
        }
        left.into_iter().map(|queued| queued.parts).collect()
    }

    fn tell_message(&mut self, id: u64, kind: Waiting, phase: MessagePhase, parts: Vec<Part>) {
        self.notify(Event::Message {
            id,
            kind,
            phase,
            parts,
        });
    }
}
