//! The start of a run and its messages: the host's decision, the input filters, the first message, and
//! the messages that are queued while it runs.
//!
//! Turns are handled in `turn.rs`.

use std::sync::Arc;

use plimsoll_context::{Message, Part};

use crate::entry::{Entry, Waiting};
use crate::event::{EVENT_VERSION, Event, MessagePhase};
use crate::hook_input::{Decision, HookInput, HookPoint};
use crate::outcome::EndReason;
use crate::phase::{CurrentRun, HostDecision, Phase, RunOpening};
use crate::run::Run;
use crate::run_id::run_id;
use crate::setup::{RunConfigSnapshot, TurnTrigger};
use crate::state::QueuedMessage;
use crate::step::{Step, UserMessage};

/// Maximum number of queued messages. Further ones are rejected with a warning.
pub const MAX_WAITING: usize = 64;

impl Run {
    pub(crate) fn start(&mut self, message: UserMessage) {
        self.close_calls("not run: the session was carried on with a new message");
        self.begin(self.state.facts.runs.saturating_add(1));
        let opening = RunOpening::Message(message);
        if self.state.facts.tasked {
            self.decide(HostDecision::Loop(opening))
        } else {
            self.decide(HostDecision::Task(opening))
        }
    }

    /// Asks the host if it has a hook at this point; otherwise continues.
    pub(crate) fn decide(&mut self, what: HostDecision) {
        if !self.setup.hooks.contains(&what.point()) {
            return self.go(what);
        }
        self.queue.push_back(Step::Before(match &what {
            HostDecision::Task(_) => HookInput::BeforeTask,
            HostDecision::Loop(_) => HookInput::BeforeLoop {
                messages: self.view_messages(),
                run: self.state.facts.runs,
            },
            HostDecision::Turn => HookInput::BeforeTurn {
                messages: self.view_messages(),
                turn: self.tracker().turns + 1,
            },
            HostDecision::FollowUp => HookInput::FollowUp,
            HostDecision::Plan(_) => HookInput::BeforeCompactionStart {
                tokens: self.tokens(),
                messages: self.state.transcript.items().len(),
            },
        }));
        self.phase = Phase::Deciding(what);
    }

    /// Handles the host's decision.
    pub(crate) fn decided(&mut self, decision: Decision) {
        let what = match std::mem::replace(&mut self.phase, Phase::TurnDue) {
            Phase::Deciding(what) => what,
            other => {
                self.phase = other;
                return;
            }
        };
        let Decision::No { why } = decision else {
            return self.go(what);
        };
        let by = match what {
            HostDecision::Plan(pending) => return self.plan_refused(&why, pending.1),
            // Whether there is more to do is asked together with a check of the answer.
            HostDecision::FollowUp => HookPoint::CheckAnswer,
            what => what.point(),
        };
        let by = by.name().to_owned();
        self.finish(EndReason::Refused { by, why });
    }

    fn go(&mut self, what: HostDecision) {
        match what {
            HostDecision::Task(opening) => self.decide(HostDecision::Loop(opening)),
            HostDecision::Loop(opening) => {
                self.current.opened = true;
                self.notify(Event::AgentStart {
                    version: EVENT_VERSION,
                    run_id: Some(run_id(
                        &self.setup.session,
                        &self.setup.config_id,
                        self.state.facts.runs,
                    )),
                    model: self.setup.model.clone(),
                    config_snapshot: Some(Box::new(RunConfigSnapshot::of(&self.setup))),
                });
                match opening {
                    RunOpening::Message(message) => self.say(message),
                    RunOpening::Continuation { crashed } => self.go_on(crashed),
                }
            }
            HostDecision::Turn => self.begin_turn(),
            HostDecision::FollowUp if self.waits(Waiting::Steer) => self.phase = Phase::TurnDue,
            HostDecision::FollowUp if self.deliver(Waiting::FollowUp) => {
                self.phase = Phase::TurnDue
            }
            HostDecision::FollowUp => self.finish(EndReason::Answered),
            HostDecision::Plan(pending) => {
                let (plan, next) = *pending;
                self.apply_and_go_on(plan, next);
            }
        }
    }

    fn say(&mut self, message: UserMessage) {
        let UserMessage { parts, key } = message;
        let parts = match self.filtered(parts) {
            Ok(parts) => parts,
            Err(why) => {
                self.accept(key);
                let by = "input_filter".to_owned();
                return self.finish(EndReason::Refused { by, why });
            }
        };
        self.say_pins();
        // Messages that a crash has left in the queue are older than this one.
        self.deliver(Waiting::Steer);
        self.current.cause = self.setup.first_turn_trigger;
        self.current.asked_at = self.state.transcript.next_seq();
        self.accept(key);
        self.record(Entry::Message {
            message: Arc::new(Message::User { parts }),
            queued: None,
        });
        self.phase = Phase::TurnDue;
    }

    pub(crate) fn begin(&mut self, run: u64) {
        self.current = CurrentRun::new(&self.setup, self.state.transcript.next_seq());
        self.record(Entry::RunStarted {
            run,
            model: self.setup.model.clone(),
            system: Arc::clone(&self.setup.system),
            tools: self.setup.tool_names(),
            config: Some(Box::new(RunConfigSnapshot::of(&self.setup))),
        });
    }

    /// Returns `true` if one more message can be queued.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.state.waiting.len() < MAX_WAITING
    }

    /// Queues a message that arrives during a run.
    pub(crate) fn enqueue(&mut self, kind: Waiting, message: UserMessage) {
        let UserMessage { parts, key } = message;
        if !self.has_room() {
            return self.warn(format!(
                "{MAX_WAITING} messages wait already; this one was not taken"
            ));
        }
        self.accept(key);
        let Ok(parts) = self.filtered(parts) else {
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

    /// Applies the input filters. Returns the reason if one rejects the message.
    fn filtered(&mut self, parts: Vec<Part>) -> Result<Vec<Part>, String> {
        let filtered = self.setup.input_filters.apply(parts);
        filtered.inspect_err(|why| self.notify(Event::InputRejected { why: why.clone() }))
    }

    /// Checks whether a message of this kind is queued.
    pub(crate) fn waits(&self, kind: Waiting) -> bool {
        self.state.waiting.iter().any(|queued| queued.kind == kind)
    }

    /// Delivers all queued messages of a kind. Returns `false` if there were none.
    pub(crate) fn deliver(&mut self, kind: Waiting) -> bool {
        let waiting = self.state.waiting.iter();
        let now: Vec<QueuedMessage> = waiting
            .filter(|queued| queued.kind == kind)
            .cloned()
            .collect();
        for QueuedMessage { id, parts, .. } in &now {
            self.record(Entry::Message {
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

    /// Records that a request was accepted, if it has a key.
    pub(crate) fn accept(&mut self, key: Option<String>) {
        if let Some(key) = key {
            self.record(Entry::Accepted { key });
        }
    }
}
