//! Continues a session without a new message, also after a crash: calls that may have run get a result that
//! says so.

use std::sync::Arc;

use plimsoll_context::{Message, Seq, ToolCall};

use crate::decode::{NotRun, tool_of};
use crate::notice;
use crate::outcome::EndReason;
use crate::phase::{HostDecision, Phase, RunOpening};
use crate::run::Run;
use crate::setup::TurnTrigger;

impl Run {
    /// Asks the host to continue the session: the run that a crash cut off, or else a new one.
    pub(crate) fn carry_on(&mut self) {
        if self.is_running() {
            return;
        }
        let crashed = self.state.running;
        self.begin(if crashed {
            self.state.facts.runs
        } else {
            self.state.facts.runs.saturating_add(1)
        });
        self.current.cause = TurnTrigger::Continue;
        self.decide(HostDecision::Loop(RunOpening::Continuation { crashed }));
    }

    /// Continues after the host has agreed.
    pub(crate) fn go_on(&mut self, crashed: bool) {
        self.current.asked_at = Seq::default();
        let items = self.state.transcript.items();
        let answered = items
            .last()
            .is_some_and(|item| matches!(*item.message, Message::Assistant { .. }));
        // A paused answer continues from its current end.
        let answered = answered && !self.state.facts.paused;
        if self.state.batch.is_some() {
            self.settle_unknown_calls();
            return self.decode_batch();
        }
        if !items.iter().any(|item| item.message.is_user()) {
            self.finish(EndReason::NothingToDo);
        } else if answered && crashed {
            let asked = self.state.facts.finalizing.clone();
            self.finish(asked.unwrap_or(EndReason::Answered));
        } else {
            // Providers reject a request that ends with an answer.
            if answered {
                self.notice(notice::GO_ON.to_owned());
            }
            self.say_pins();
            self.phase = Phase::TurnDue;
        }
    }

    /// After a crash: gives an explanatory result to each call that may have run and is not idempotent.
    fn settle_unknown_calls(&mut self) {
        let Some(batch) = &self.state.batch else {
            return;
        };
        let began: Vec<Arc<ToolCall>> = batch
            .open()
            .filter(|call| call.began)
            .map(|call| Arc::clone(&call.call))
            .collect();
        for call in began {
            let tool = tool_of(&self.setup, &self.state.facts.names, &call);
            if !tool.is_some_and(|tool| tool.idempotent) {
                self.settle(&call, NotRun::refused(notice::UNKNOWN));
            }
        }
    }
}
