//! One turn, from top to bottom: its limits, the host's decision, the request, and the reply.
//!
//! `start_turn` checks the limits and asks the host, `begin_turn` announces the turn, `prepare` makes the
//! request fit and `call` sends it, and `take_reply` decides how the run continues. `prepare` is repeated
//! after a plan (`planning.rs`) or a summary (`summary.rs`). Tools are handled in `tool_calls.rs`, requests
//! that are refused as too long in `overflow_recovery.rs`.

use std::sync::Arc;

use plimsoll_context::{Message, Reply, StopReason, Tokens, Usage};

use crate::batch::with_unique_ids;
use crate::entry::{Entry, Waiting};
use crate::event::Event;
use crate::failure::Failure;
use crate::forecast::UNCOUNTED;
use crate::hook_input::{HookInput, HookPoint};
use crate::limits::LimitKind;
use crate::notice;
use crate::outcome::EndReason;
use crate::phase::{HostDecision, ModelCallFacts, Phase, PlanFor, TurnAnswer};
use crate::request::{Expects, Request, ToolChoice};
use crate::run::Run;
use crate::setup::TurnTrigger;
use crate::state::is_empty;
use crate::step::Step;

/// The smallest request for which a low token report is reported to the user.
const LEAST_DOUBTED: Tokens = Tokens(4_096);
/// Number of consecutive empty answers that ends a run.
const MAX_EMPTY_REPLIES: u32 = 2;

impl Run {
    /// Begins the next turn, if the limits allow it and the host agrees.
    pub(crate) fn start_turn(&mut self) {
        if self.check_limits() {
            self.decide(HostDecision::Turn);
        }
    }

    /// Checks whether one more call is allowed. If it is the last one, the model is asked to finish.
    fn check_limits(&mut self) -> bool {
        if let Some(reason) = self.tracker().spent(self.now.elapsed) {
            self.finish_at_limit(reason);
            return false;
        }
        if self.state.facts.finalizing.is_some() {
            return true;
        }
        let (ledger, now) = (self.tracker(), self.now.elapsed);
        let can_call = ledger.turns > 0 && !self.setup.tools.is_empty();
        let used_up = ledger.used_up(LimitKind::ToolLimit, now);
        let used_up = used_up.filter(|_| can_call);
        let finalizes = self.may_finalize();
        match (used_up, ledger.is_last(now)) {
            (Some(reason), _) | (None, Some(reason)) if finalizes => self.ask_to_finish(reason),
            (Some(reason), _) => {
                self.finish(reason);
                return false;
            }
            (None, _) => self.tell_near(),
        }
        true
    }

    /// Announces the turn, whose request is made next.
    pub(crate) fn begin_turn(&mut self) {
        let budget = match self.budget() {
            Ok(budget) => budget,
            Err(cannot_fit) => return self.cannot_fit(cannot_fit),
        };
        let trigger = (budget.trigger != Tokens::MAX).then(|| budget.trigger + self.tools.overhead);
        if self.waits(Waiting::Steer) {
            self.current.cause = TurnTrigger::Steer;
        }
        self.notify(Event::TurnStart {
            turn: self.tracker().turns + 1,
            cause: self.current.cause,
            tokens: self.tokens(),
            trigger,
            window: self.line().window,
        });
        self.phase = Phase::PREPARING;
    }

    /// Makes the request of the turn: checks the limits, delivers queued messages, plans, and calls the
    /// model.
    pub(crate) fn prepare(&mut self, is_vetoed: bool) {
        // A summary may have used up a limit.
        if !self.check_limits() {
            return;
        }
        self.deliver(Waiting::Steer);
        match self.keep_under(is_vetoed) {
            Ok(true) => {}
            Ok(false) => return,
            Err(cannot_fit) => return self.cannot_fit(cannot_fit),
        }
        if !self.keep_within_limits(is_vetoed) {
            return;
        }
        if let Some(seq) = self.state.transcript.broken_pin() {
            let message = format!("the pinned message {seq} is not there any more");
            return self.finish(EndReason::Failed {
                failure: Failure::Garbled { message },
            });
        }
        self.call(0, None);
    }

    /// Ensures that the request fits into the limits on tokens and money, with enough left for a last
    /// answer. Returns `false` if another step has to come first.
    fn keep_within_limits(&mut self, is_vetoed: bool) -> bool {
        // A plan may have freed memory.
        let memory = self.used_up(LimitKind::MaxMemory);
        if self.state.facts.finalizing.is_none()
            && let Some(reason) = memory.or_else(|| self.has_to_be_last())
        {
            if self.may_finalize() {
                // The notice is part of the view, which is planned again.
                self.ask_to_finish(reason);
            } else {
                self.finish(reason);
            }
            return false;
        }
        if !is_vetoed && let Some(plan) = self.plan_within_limits() {
            self.submit(plan, PlanFor::Request);
            return false;
        }
        true
    }

    /// Sends the view. If `left` is given, it limits the length of the answer: a refusal reported that
    /// this much is available.
    pub(crate) fn call(&mut self, rung: u32, left: Option<Tokens>) {
        // Refused requests count as well.
        if let Some(reason) = self.no_more_calls() {
            return self.finish_at_limit(reason);
        }
        let counted = self.tokens();
        // The requested answer must fit in the window after the request, or providers refuse the
        // request.
        let reported = self.calibration().reported(counted);
        let line = self.line();
        let room = line.window.map(|window| {
            let behind = window.minus(reported);
            let sure = behind.minus(reported.share(UNCOUNTED));
            // The tokens reserved for the answer always stay available.
            sure.max(behind.min(line.reserve())).max(Tokens(1))
        });
        let allowed = self.answer_room();
        let room = [room, left, allowed].into_iter().flatten().min();
        let is_required = self.current.needs_limit || allowed.is_some();
        let max_output = match (self.current.max_output, room) {
            (Some(asked), Some(room)) => Some(asked.min(room)),
            (None, room) if is_required => room,
            (asked, _) => asked,
        };
        let request = self.request(counted, max_output, room);
        self.queue.push_back(Step::Call(Box::new(request)));
        self.phase = Phase::Calling(ModelCallFacts {
            counted,
            max_output,
            rung,
        });
    }

    /// Creates a request of this size from the view.
    fn request(
        &self,
        counted: Tokens,
        max_output: Option<Tokens>,
        room: Option<Tokens>,
    ) -> Request {
        let is_last = self.state.facts.finalizing.is_some();
        let has_tools = !(is_last && self.refuses_tool_choice);
        let heard = self.state.facts.heard;
        let heard = heard.map(|(then, usage)| (then, usage.processed()));
        let grown = heard.filter(|(then, _)| counted > *then);
        Request {
            system: Arc::clone(&self.setup.system),
            tools: if has_tools {
                Arc::clone(&self.tools.specs)
            } else {
                Arc::default()
            },
            hosted_tools: Arc::clone(&self.setup.hosted_tools),
            messages: self.state.transcript.messages().clone(),
            dynamic_context: self.setup.dynamic_context.clone(),
            tool_choice: if is_last && has_tools {
                ToolChoice::None
            } else {
                ToolChoice::Auto
            },
            max_output,
            sampling: self.setup.sampling,
            counted,
            cache: self.cache_plan(),
            expects: Expects {
                window: self.line().window,
                room,
                // Estimated from the last report; new messages count by our counter.
                input: grown.map(|(then, reported)| reported + counted.minus(then)),
                previous: heard.map(|(_, reported)| reported),
            },
        }
    }

    /// Handles the end of a model call.
    pub(crate) fn replied(&mut self, reply: Result<Reply, Failure>) {
        let Phase::Calling(calling) = self.phase else {
            return;
        };
        match reply {
            Ok(reply) => {
                self.book_partial_answers(false);
                self.take_reply(reply, calling.counted);
            }
            Err(failure) => self.failed(failure, calling),
        }
    }

    fn take_reply(&mut self, reply: Reply, counted: Tokens) {
        let Reply {
            parts, stop, usage, ..
        } = reply;
        let miss = usage.and_then(|usage| self.cache_miss(&usage));
        if let Some(usage) = usage {
            self.doubt(counted, usage.processed());
        }
        let parts = with_unique_ids(parts);
        let message = Arc::new(Message::Assistant { parts });
        let estimated = match usage {
            Some(_) => Usage::default(),
            None => Usage {
                input: counted,
                output: self.setup.counter.message(&message),
                ..Usage::default()
            },
        };
        let cost = self
            .setup
            .cost(usage.unwrap_or(estimated), self.setup.sheet);
        let is_empty = is_empty(&message);
        self.record(Entry::Reply {
            message,
            stop,
            usage,
            estimated,
            counted,
            cost,
        });
        self.phase = Phase::TurnDue;
        self.current.cut_off = Some(stop).filter(|stop| {
            use StopReason::{ContentFilter, Length, Window};
            matches!(stop, Length | Window | ContentFilter)
        });
        self.current.turn_end = Some(TurnAnswer {
            turn: self.tracker().turns,
            stop,
            usage,
        });
        miss.into_iter().for_each(|miss| self.notify(miss));
        if stop == StopReason::ContentFilter
            && self.state.batch.is_none()
            && self.state.facts.finalizing.is_none()
        {
            // The filtered text is no answer, and a repeated request would be filtered again.
            let failure = Failure::ContentFilter;
            self.after(HookPoint::OnError, |_| HookInput::OnError {
                error: failure.to_string(),
            });
            return self.finish(EndReason::Failed { failure });
        }
        if is_empty && self.state.facts.finalizing.is_none() {
            return self.nothing_said();
        }
        self.current.empty_replies = 0;
        if self.state.batch.is_some() {
            self.decode_batch();
            return;
        }
        self.end_turn();
        if let Some(reason) = self.state.facts.finalizing.clone() {
            self.finish(reason);
        } else if stop == StopReason::Paused || self.waits(Waiting::Steer) {
            // A paused answer continues from its current end.
            self.phase = Phase::TurnDue;
        } else {
            self.decide(HostDecision::FollowUp);
        }
    }

    fn nothing_said(&mut self) {
        self.current.empty_replies += 1;
        self.end_turn();
        if self.current.empty_replies >= MAX_EMPTY_REPLIES {
            let message = format!("it was empty {MAX_EMPTY_REPLIES} times in a row");
            return self.finish(EndReason::Failed {
                failure: Failure::Garbled { message },
            });
        }
        self.notice(notice::EMPTY_REPLY.to_owned());
        self.phase = Phase::TurnDue;
    }

    /// Warns once about a token report of less than half of our count.
    fn doubt(&mut self, counted: Tokens, reported: Tokens) {
        // In a small request the estimated size of tools and frames may explain the difference.
        if counted < LEAST_DOUBTED
            || reported == Tokens::ZERO
            || reported.times(2) >= counted
            || std::mem::replace(&mut self.is_doubted, true)
        {
            return;
        }
        self.warn(format!(
            "the provider reports only {reported} tokens for a request that is counted as {counted}; \
             either it counts in another way, or it dropped a part of the request because its \
             window is smaller than assumed"
        ));
    }

    /// Ends the run at a limit. If the model was already asked to finish, that limit counts.
    pub(crate) fn finish_at_limit(&mut self, reason: EndReason) {
        let reason = self.state.facts.finalizing.clone().unwrap_or(reason);
        self.finish(reason);
    }

    /// Tells the model which limits are near, once for each.
    fn tell_near(&mut self) {
        let ledger = self.tracker();
        let near = ledger.near(self.now.elapsed);
        if near.is_empty() {
            return;
        }
        let reasons = near
            .iter()
            .map(|kind| ledger.reason(*kind, self.now.elapsed));
        let texts = reasons.map(|reason| notice::used(&reason));
        let texts: Vec<String> = texts.collect();
        for limit in near {
            self.record(Entry::Warned { limit });
        }
        let text = format!("[{}. Use what is left well.]", texts.join("; "));
        self.notice(text.clone());
        self.notify(Event::LimitNear { notice: text });
    }

    pub(crate) fn ask_to_finish(&mut self, reason: EndReason) {
        let text = notice::finalize(&reason);
        let message = Message::Notice { text: text.clone() };
        let last = self.state.transcript.items().last();
        // After a crash right behind the notice, the notice is not repeated.
        if last.is_none_or(|item| *item.message != message) {
            self.notice(text.clone());
        }
        self.notify(Event::LimitReached { notice: text });
        self.record(Entry::Finalizing { reason });
    }
}
