//! [`Updates`]: sends the events of a run to a client: text and thinking as they stream, tool
//! calls, and how full the window is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use agent_client_protocol::v1::schema::{self, SessionUpdate, ToolCallStatus, UsageUpdate};
use plimsoll::events::ToolPhase;
use plimsoll::machine::Outcome;
use plimsoll::model::{CallId, StopReason};
use plimsoll::pricing::Cost;
use plimsoll::{Delta, Event, Money, Observer, SessionEvent, Tokens};

use super::outbox::Outbox;
use crate::diff::Previews;
use crate::event_printer::{StreamedText, below};
use crate::lock;
use crate::outcome::plan_text;
use crate::terminal::text::{clean, first_clause};

/// Nanodollars in a dollar.
const DOLLAR: f64 = 1e9;
/// The result of a call that was lost with a broken connection.
const VOID: &str = "not run: the connection broke before the call was complete";
/// The result of a call that was never started.
const NOT_RUN: &str = "it did not run";

/// Sends the updates of one session.
pub(super) struct Updates {
    pub(super) outbox: Outbox,
    pub(super) root: PathBuf,
    pub(super) previews: Previews,
    pub(super) state: Mutex<UpdatesState>,
}

#[derive(Default)]
pub(super) struct UpdatesState {
    /// The number of the current message.
    pub(super) message: u64,
    /// The calls that have not ended, and whether a diff is shown of each.
    pub(super) open: HashMap<CallId, bool>,
    text: StreamedText,
    /// The model's last stop reason.
    stop: Option<StopReason>,
}

impl Updates {
    pub(super) fn new(outbox: Outbox, root: &Path) -> Self {
        Self {
            outbox,
            root: root.to_owned(),
            previews: Previews::new(root),
            state: Mutex::default(),
        }
    }

    /// Returns the model's last stop reason.
    pub(super) fn stop(&self) -> Option<StopReason> {
        lock(&self.state).stop
    }

    /// Sends how full the window is, and the cost of the session if it is known and not zero.
    pub(super) fn usage(&self, used: Tokens, window: Option<Tokens>, cost: Option<Cost>) {
        let Some(window) = window else { return };
        let cost = cost.filter(|cost| cost.unpriced == 0 && cost.known > Money(0));
        let cost = cost.map(|cost| schema::Cost::new(cost.known.0 as f64 / DOLLAR, "USD"));
        let usage = UsageUpdate::new(used.0, window.0).cost(cost);
        self.outbox.send(SessionUpdate::UsageUpdate(usage));
    }

    /// Ends all open calls after a run.
    pub(super) fn end_calls(&self) {
        self.next_message(NOT_RUN);
    }

    /// Discards a partial response before a retry.
    fn again(&self, why: &str) {
        self.next_message(VOID);
        if lock(&self.state).text.discard() {
            self.outbox
                .say(&format!("\n\n*[{why}; the answer starts again]*\n\n"));
        }
    }

    /// Ends the run.
    fn end(&self, outcome: &Outcome) {
        self.end_calls();
        let mut state = lock(&self.state);
        state.text.complete();
        if let Some(rest) = state.text.rest(outcome, "\n\n") {
            self.outbox.say(&rest);
        }
    }

    fn delta(&self, delta: &Delta) {
        match delta {
            Delta::Text { text } => {
                self.outbox.say(text);
                lock(&self.state).text.push(text);
            }
            Delta::Thinking { text } => self.outbox.think(text),
            Delta::CallStarted { call, name } => {
                let of = self.describe_past(name, "");
                self.show(call, of, ToolCallStatus::Pending);
            }
            Delta::HostedCall { call, name, text } => {
                let of = self.describe_past(name, text);
                self.show(call, of, ToolCallStatus::InProgress);
            }
            Delta::HostedResult {
                call,
                text,
                is_error,
                ..
            } => self.close(call, *is_error, text),
            _ => {}
        }
    }
}

impl Observer for Updates {
    fn see(&self, SessionEvent { event, .. }: &SessionEvent) {
        match event {
            Event::TurnStart { tokens, window, .. } => {
                self.end_calls();
                self.usage(*tokens, *window, None);
            }
            Event::Delta(delta) => self.delta(delta),
            Event::Retrying { why, .. } => self.again(&first_clause(why)),
            Event::Overflow { .. } => self.again("the request was too long"),
            Event::ToolCall {
                phase,
                call,
                name,
                whole,
                ..
            } => {
                lock(&self.state).text.complete();
                if *phase == ToolPhase::Start {
                    let of = self.describe(&clean(name), whole);
                    self.show(call, of, ToolCallStatus::InProgress);
                } else {
                    let is_error = *phase != ToolPhase::Success;
                    self.close(call, is_error, whole);
                }
            }
            Event::ToolUpdate { call, text, .. } => self.progress(call, text),
            Event::SubAgent {
                call, name, event, ..
            } => {
                if let Some(line) = below(name, &event.event) {
                    self.progress(call, line.trim_start());
                }
            }
            Event::TurnEnd { stop, .. } => {
                let mut state = lock(&self.state);
                state.stop = Some(*stop);
                state.text.complete();
            }
            Event::PlanApplied(applied) if applied.is_compaction => {
                crate::note(&plan_text(applied));
            }
            Event::LimitNear { notice: text }
            | Event::LimitReached { notice: text }
            | Event::Warning { text } => crate::note(text),
            Event::InputRejected { why } => note!("not let in: {why}"),
            Event::AgentEnd { outcome, .. } => self.end(outcome),
            _ => {}
        }
    }
}
