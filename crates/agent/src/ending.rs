//! The end of a run: closes open calls, drops queued messages and reports the outcome.
//!
//! The reason is decided elsewhere.

use plimsoll_context::{CannotFit, StopReason, Tokens, Trigger};

use crate::current::TurnAnswer;
use crate::entry::Entry;
use crate::event::Event;
use crate::limits::AtLimit;
use crate::moment::{HookPoint, Moment};
use crate::outcome::{EndReason, Outcome};
use crate::phase::Phase;
use crate::run::Run;
use crate::step::Step;

impl Run {
    /// Ends the run. Open calls receive a result, so that providers still accept the view.
    pub(crate) fn finish(&mut self, reason: EndReason) {
        self.book_unanswered();
        self.close_calls(match reason {
            EndReason::Interrupted => "not run: the run was interrupted",
            _ => "not run: the run ended",
        });
        if self.phase.is_in_turn() {
            // The model call of this turn has no answer.
            self.current.turn_end = Some(TurnAnswer {
                turn: self.state.facts.tally.turns.saturating_add(1),
                stop: StopReason::Other,
                usage: None,
            });
        }
        self.end_turn();
        let reason = self.up_to_date(reason);
        let undelivered = self.give_up_waiting();
        self.drop_digest();
        self.say_pins();
        let text = self.closing_text(&reason);
        let rolls_back = self.setup.limits.at_limit == AtLimit::Rollback && reason.is_limit();
        let run = self.state.facts.runs;
        let rolled_back = rolls_back && self.record(Entry::RolledBack { run });
        if rolled_back {
            self.declare();
        }
        let tally = &self.state.facts.tally;
        let outcome = Outcome {
            text,
            reason,
            turns: tally.turns,
            tool_calls: tally.tool_calls,
            plans: tally.plans,
            freed: tally.freed,
            usage: tally.usage,
            summary_usage: tally.summary_usage,
            estimated: tally.estimated,
            cache: self.state.facts.cache.tally(),
            cost: tally.cost,
            undelivered,
            rolled_back,
        };
        self.record(Entry::Ended {
            outcome: outcome.clone(),
        });
        self.notify(Event::AgentEnd {
            outcome: outcome.clone(),
            peak_memory: self.state.peak_memory(),
        });
        let ended = || Box::new(outcome.clone());
        if self.current.opened {
            self.after(HookPoint::AfterLoop, || Moment::AfterLoop {
                outcome: ended(),
            });
        }
        self.after(HookPoint::AfterTask, || Moment::AfterTask {
            outcome: ended(),
        });
        self.queue.push_back(Step::Finish(outcome));
        self.phase = Phase::Idle;
    }

    /// Updates the usage in the reason, which includes the last call now.
    fn up_to_date(&self, reason: EndReason) -> EndReason {
        let tracker = self.tracker();
        match reason {
            EndReason::MaxTokens { limit, .. } => EndReason::MaxTokens {
                limit,
                used: tracker.tokens_used,
            },
            EndReason::MaxCost { limit, .. } => EndReason::MaxCost {
                limit,
                used: tracker.cost_accumulated.known,
            },
            other => other,
        }
    }

    /// Informs the host if it has a hook at this point.
    pub(crate) fn after(&mut self, point: HookPoint, moment: impl FnOnce() -> Moment) {
        if self.setup.hooks.contains(&point) {
            self.queue.push_back(Step::After(moment()));
        }
    }

    /// Ends a turn: the model call is answered, and all tool calls have results.
    pub(crate) fn end_turn(&mut self) {
        let Some(TurnAnswer { turn, stop, usage }) = self.current.turn_end.take() else {
            return;
        };
        let tally = &self.state.facts.tally;
        let (total, cost) = (tally.usage, tally.cost.whole());
        let estimated = tally.estimated;
        self.notify(Event::TurnEnd {
            turn,
            stop,
            usage,
            total,
            estimated,
            cost,
            memory: self.state.memory(),
        });
        self.after(HookPoint::AfterTurn, || Moment::AfterTurn { turn, usage });
    }

    /// Ends the run because the view does not fit. `cannot_fit` is in our tokens.
    pub(crate) fn cannot_fit(&mut self, cannot_fit: CannotFit) {
        let least = self.least().max(cannot_fit.minimum);
        let cannot_fit = self.reported(CannotFit {
            minimum: least,
            ..cannot_fit
        });
        self.finish(EndReason::CannotFit { cannot_fit });
    }

    /// Returns the smallest size of the request that the policy can reach, in our tokens.
    fn least(&self) -> Tokens {
        let view = &self.state.transcript;
        let nothing = self.budget_at(Tokens::ZERO);
        let policy = &self.setup.policy;
        match policy.propose(view, &nothing, Trigger::Request, &self.plan_context()) {
            Ok(_) => self.tokens(),
            Err(cannot_fit) => cannot_fit.minimum,
        }
    }

    /// Converts the sizes to the provider's tokens, in which windows and limits are configured.
    pub(crate) fn reported(&self, cannot_fit: CannotFit) -> CannotFit {
        let CannotFit { limit, .. } = cannot_fit.reported(self.calibration());
        CannotFit {
            limit,
            ..cannot_fit.reported(self.state.facts.calibration)
        }
    }
}
