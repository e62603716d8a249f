//! Messages that are queued for a run: steers for its next model call, and follow-ups for the time
//! after its answer.
//!
//! Each message is logged when it arrives, and is later either delivered or dropped.

use std::sync::Arc;

use plimsoll_context::{Message, Part};
use serde::{Deserialize, Serialize};

use crate::entry::{Entry, Waiting};
use crate::event::{Event, MessagePhase, TurnTrigger};
use crate::run::Run;
use crate::step::UserInput;

/// Maximum number of queued messages. Further ones are rejected with a warning.
pub const MAX_WAITING: usize = 64;

/// The way in which queued messages are delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    /// All messages together.
    #[default]
    All,
    /// Only the oldest message; the others wait for the next time.
    OneAtATime,
}

/// A queued message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueuedMessage {
    pub(crate) id: u64,
    pub(crate) kind: Waiting,
    pub(crate) parts: Vec<Part>,
}

impl Run {
    /// Returns `true` if one more message can be queued.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.state.waiting.len() < MAX_WAITING
    }

    /// Queues a message that arrives during a run.
    pub(crate) fn enqueue(&mut self, kind: Waiting, message: UserInput) {
        let UserInput { parts, key } = message;
        if !self.has_room() {
            return self.warn(format!(
                "{MAX_WAITING} messages wait already; this one was not taken"
            ));
        }
        self.accept(key);
        let Some(parts) = self.filtered(parts) else {
            return;
        };
        let id = self.state.facts.queued + 1;
        self.record(Entry::Queued {
            id,
            kind,
            parts: parts.clone(),
        });
        self.tell_message(id, kind, MessagePhase::Queued, parts);
    }

    /// Applies the input filters. Returns `None` if one rejects the message.
    pub(crate) fn filtered(&mut self, parts: Vec<Part>) -> Option<Vec<Part>> {
        match self.setup.input_filters.apply(parts) {
            Ok(parts) => Some(parts),
            Err(why) => {
                self.notify(Event::InputRejected { why: why.clone() });
                self.current.rejected = Some(why);
                None
            }
        }
    }

    /// Checks whether a message of this kind is queued.
    pub(crate) fn waits(&self, kind: Waiting) -> bool {
        self.state.waiting.iter().any(|queued| queued.kind == kind)
    }

    /// Delivers queued messages in the configured way. Returns `false` if there were none.
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
        let now: Vec<QueuedMessage> = waiting
            .filter(|queued| queued.kind == kind)
            .take(most)
            .cloned()
            .collect();
        for QueuedMessage { id, parts, .. } in &now {
            self.record(Entry::Said {
                message: Arc::new(Message::User {
                    parts: parts.clone(),
                }),
                queued: Some(*id),
            });
            self.tell_message(*id, kind, MessagePhase::Delivered, parts.clone());
        }
        if !now.is_empty() {
            self.current.cause = match kind {
                Waiting::Steer => TurnTrigger::Steer,
                Waiting::FollowUp => TurnTrigger::FollowUp,
            };
        }
        !now.is_empty()
    }

    /// Drops the queued messages at the end of the run.
    pub(crate) fn give_up_waiting(&mut self) -> Vec<Vec<Part>> {
        let left: Vec<QueuedMessage> = self.state.waiting.iter().cloned().collect();
        if left.is_empty() {
            return Vec::new();
        }
        self.record(Entry::Undelivered {
            ids: left.iter().map(|queued| queued.id).collect(),
        });
        for QueuedMessage { id, kind, parts } in &left {
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
