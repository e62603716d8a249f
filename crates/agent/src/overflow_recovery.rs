//! Handles failed model calls: a ladder of retries for requests that are too long, and the end of the
//! run for all other failures.
//!
//! Each step of the ladder sends a strictly smaller request. The last step needs no model. The usage of
//! calls that have no reply is counted: providers report it while the answer arrives, and charge for it.

use std::sync::Arc;

use plimsoll_context::{Budget, Message, OUTPUT_RESERVE, Part, Plan, Tokens, Trigger, Usage};

use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::hook_input::{HookInput, HookPoint};
use crate::notice;
use crate::outcome::EndReason;
use crate::phase::{ModelCallFacts, Phase, PlanFor};
use crate::run::Run;
use crate::step::Step;

/// Number of steps of the ladder. After the last one a request has an eighth of its first size at most, or
/// its minimum size.
const MAX_RUNGS: u32 = 4;
/// Exchanges that are kept after an overflow if they fit: about the four newest messages.
const KEPT: usize = 2;
/// The smallest plausible window. A smaller number is a misread error text, and would end the session.
const LEAST_WINDOW: Tokens = Tokens(256);
/// The smallest useful length of an answer. If less is left after the request, the request itself is
/// too long.
const LEAST_ROOM: Tokens = Tokens(256);

impl Run {
    /// Handles a model call that has failed for good. The driver has already retried it if possible.
    pub(crate) fn failed(&mut self, failure: Failure, call: ModelCallFacts) {
        // The run ends after a failure that was retried in vain. Other failures lead to another request.
        self.book_partial_answers(failure.is_retryable());
        self.after(HookPoint::OnError, |_| HookInput::OnError {
            error: failure.to_string(),
        });
        let rung = call.rung + 1;
        if rung > MAX_RUNGS {
            return self.finish(EndReason::Failed { failure });
        }
        let half = Tokens(call.counted.0 / 2);
        let overflow = match failure {
            Failure::Overflow { used, window, .. } | Failure::Cut { used, window, .. } => {
                Some((used, window))
            }
            Failure::SoftWindow { used, limit, .. } => Some((used, Some(limit))),
            _ => None,
        };
        if let Some((used, window)) = overflow {
            // A window that does not come from the provider itself may be wrong.
            let inferred = window.is_none() || !matches!(failure, Failure::Overflow { .. });
            self.learn(used, window, call.counted, inferred);
            self.notify_overflow(&failure, rung);
            // An answer that was cut short would be cut even shorter.
            let was_cut = matches!(failure, Failure::Cut { .. });
            if !was_cut && let Some(room) = self.answer_is_too_long(used, window, call) {
                // Without a limit for the answer, the server assumes a length that does not fit, and
                // would do so again.
                self.current.needs_limit = true;
                return self.call(rung, Some(room));
            }
            // At first, a target that follows from reported sizes is enough.
            let is_told = rung == 1 && (used.is_some() || window.is_some());
            let most = if is_told { call.counted } else { half };
            return self.shrink(failure, rung, call.counted, most);
        }
        match failure {
            // A limit in bytes does not reveal the window.
            Failure::BodyTooLarge { .. } => {
                self.notify_overflow(&failure, rung);
                self.shrink(failure, rung, call.counted, half);
            }
            Failure::Refused { .. }
                if self.state.facts.finalizing.is_some()
                    && !self.tools.specs.is_empty()
                    && !self.refuses_tool_choice =>
            {
                self.refuses_tool_choice = true;
                self.warn(format!(
                    "the final answer is requested again without tools: {failure}"
                ));
                self.call(rung, None);
            }
            Failure::OutputTooLarge { limit, .. } if self.lower_output(limit, call.max_output) => {
                self.notify_overflow(&failure, rung);
                self.call(rung, None);
            }
            failure => self.finish(EndReason::Failed { failure }),
        }
    }

    /// Returns the tokens left for the answer if the requested length of the answer was too large, and not
    /// the request. If the provider reports only the window, our own count decides.
    fn answer_is_too_long(
        &self,
        used: Option<Tokens>,
        window: Option<Tokens>,
        call: ModelCallFacts,
    ) -> Option<Tokens> {
        let ours = || {
            call.max_output
                .map(|_| self.calibration().reported(call.counted))
        };
        let room = window?.minus(used.or_else(ours)?);
        let is_shorter = call.max_output.is_none_or(|limit| limit > room);
        (room >= LEAST_ROOM && is_shorter).then_some(room)
    }

    fn notify_overflow(&mut self, failure: &Failure, rung: u32) {
        self.notify(Event::Overflow {
            rung,
            window: self.line().window,
            message: failure.to_string(),
        });
    }

    /// Learns the window and the size of the request from the provider. If the provider reports no
    /// window, it must be smaller than the refused request.
    fn learn(
        &mut self,
        used: Option<Tokens>,
        told: Option<Tokens>,
        counted: Tokens,
        inferred: bool,
    ) {
        let known = self.line().window;
        let refused = used.unwrap_or_else(|| self.state.facts.calibration.reported(counted));
        let window = told.unwrap_or_else(|| known.map_or(refused, |known| known.min(refused)));
        let news = known != Some(window) || used.is_some();
        if news && window >= LEAST_WINDOW {
            self.record(Entry::WindowLearned {
                window,
                used: used.map(|used| (counted, used)),
                inferred,
                assumed: self.setup.line.window,
            });
        }
    }

    /// Makes the view strictly smaller and sends it again. The goal is its target and a request of at
    /// most `most` tokens. If the view cannot be made smaller, the run ends with the provider's error.
    fn shrink(&mut self, failure: Failure, rung: u32, counted: Tokens, most: Tokens) {
        match self.smaller(most.min(counted.minus(Tokens(1)))) {
            Some(plan) => self.submit(plan, PlanFor::Retry { failure, rung }),
            None => self.finish(EndReason::Failed { failure }),
        }
    }

    fn smaller(&mut self, most: Tokens) -> Option<Plan> {
        let target = match self.budget() {
            Ok(budget) => budget.target,
            Err(cannot_fit) => {
                self.warn(self.reported(cannot_fit).to_string());
                return None;
            }
        };
        let goal = target.min(most.minus(self.tools.overhead));
        let budget = self.budget_at(goal);
        let context = self.plan_context();
        let (view, why) = (&self.state.transcript, Trigger::Overflow);
        let keeping = |keep_recent| {
            let budget = Budget {
                keep_recent,
                ..budget
            };
            let recovery = &self.setup.recovery;
            recovery.best_proposal(view, &budget, why, &context).plan
        };
        // Keeps the newest exchanges as well if that is enough.
        let kind = keeping(budget.keep_recent.max(KEPT));
        let enough = kind.filter(|plan| plan.after() <= goal);
        enough
            .or_else(|| keeping(budget.keep_recent))
            .or_else(|| self.give_up_the_past(why, goal))
    }

    fn lower_output(&mut self, limit: Option<Tokens>, max_output: Option<Tokens>) -> bool {
        let now = max_output.unwrap_or(OUTPUT_RESERVE);
        let lower = limit.unwrap_or(Tokens(now.0 / 2)).min(now);
        if lower == Tokens::ZERO || max_output == Some(lower) {
            return false;
        }
        self.current.max_output = Some(lower);
        true
    }

    /// Handles a failed attempt before the next one is made. Ends the run if the failed attempt used up
    /// a limit.
    pub(crate) fn retried(&mut self) {
        let is_charged = self.book_partial_answers(false);
        if !is_charged || !matches!(self.phase, Phase::Calling(_)) {
            return;
        }
        if let Some(reason) = self.no_more_calls() {
            self.queue.push_back(Step::Abort);
            return self.finish_at_limit(reason);
        }
        let allowed = self.answer_room();
        if let (Phase::Calling(calling), Some(allowed)) = (&mut self.phase, allowed) {
            let asked = calling.max_output.unwrap_or(Tokens::MAX);
            calling.max_output = Some(asked.min(allowed));
        }
    }

    /// Returns the maximum length of the answer of the call under way. It falls if a failed attempt has
    /// used a part of a limit.
    #[must_use]
    pub fn max_output(&self) -> Option<Tokens> {
        match &self.phase {
            Phase::Calling(calling) => calling.max_output,
            _ => None,
        }
    }

    /// Records the attempts of the run's call without a reply. The text of the newest one enters the view
    /// if `keeps_text` is set. Returns `true` if there were any.
    pub(crate) fn book_partial_answers(&mut self, keeps_text: bool) -> bool {
        let answers = std::mem::take(&mut self.now.partial_answers);
        if !self.is_running() || answers.is_empty() {
            return false;
        }
        let counted = match &mut self.phase {
            Phase::Calling(calling) => calling.counted,
            Phase::Summarizing(digest, _) => {
                answers.iter().for_each(|answer| digest.lost(answer));
                return false;
            }
            _ => self.tokens(),
        };
        let newest = answers.len() - 1;
        for (index, answer) in answers.iter().enumerate() {
            let (usage, estimated) = answer.usage(counted, self.setup.counter.as_ref());
            let is_kept = keeps_text && index == newest;
            let text = if is_kept { answer.text.trim_end() } else { "" };
            self.record_partial_reply(text, usage, estimated);
        }
        true
    }

    fn record_partial_reply(&mut self, text: &str, usage: Usage, estimated: Usage) {
        let charged = usage.combine(estimated);
        let cost = self.setup.cost(charged, self.setup.sheet);
        let parts = Some(text).filter(|text| !text.is_empty()).map(Part::text);
        let parts: Vec<Part> = parts.into_iter().collect();
        let has_text = !parts.is_empty();
        self.record(Entry::PartialReply {
            message: Arc::new(Message::Assistant { parts }),
            usage,
            estimated,
            cost,
        });
        if has_text {
            self.notice(notice::CUT_OFF.to_owned());
        }
    }
}
