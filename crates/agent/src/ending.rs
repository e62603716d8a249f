//! How a run ends: its calls closed, what waited given up, the outcome said. Not why; that is decided
//! where it happens.

use plimsoll_context::{CannotFit, StopReason, Tokens, Trigger};

use crate::entry::Entry;
use crate::event::Event;
use crate::limits::AtLimit;
use crate::moment::{HookPoint, Moment};
use crate::outcome::{EndReason, Outcome};
use crate::run::{Answered, Phase, Run};
use crate::step::Step;

impl Run {
    /// Ends the run. Calls without a result get one, so that the view stays one that a provider
    /// accepts.
    pub(crate) fn finish(&mut self, reason: EndReason) {
        self.book_unanswered();
        self.close_calls(match reason {
            EndReason::Interrupted => "not run: the run was interrupted",
            _ => "not run: the run ended",
        });
        if std::mem::take(&mut self.in_turn) {
            // Its call was not answered.
            self.turn_end = Some(Answered {
                turn: self.state.tally.turns.saturating_add(1),
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
        let run = self.state.runs;
        let rolled_back = rolls_back && self.record(Entry::RolledBack { run });
        if rolled_back {
            self.set_tools();
        }
        let tally = &self.state.tally;
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
            cache: self.state.cache.tally(),
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
        if self.opened {
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

    /// The same with what was used by now: the last call has used some of it.
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

    /// Tells the host's hook, where it has one there.
    pub(crate) fn after(&mut self, point: HookPoint, moment: impl FnOnce() -> Moment) {
        if self.setup.hooks.contains(&point) {
            self.queue.push_back(Step::After(moment()));
        }
    }

    /// A turn has ended: its call is answered, and its tool calls have their results.
    pub(crate) fn end_turn(&mut self) {
        let Some(Answered { turn, stop, usage }) = self.turn_end.take() else {
            return;
        };
        let tally = &self.state.tally;
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

    /// Ends the run; `cannot_fit` is in our tokens.
    pub(crate) fn cannot_fit(&mut self, cannot_fit: CannotFit) {
        let least = self.least().max(cannot_fit.minimum);
        let cannot_fit = self.reported(CannotFit {
            minimum: least,
            ..cannot_fit
        });
        self.finish(EndReason::CannotFit { cannot_fit });
    }

    /// Returns what the policy cannot make the request smaller than, in our tokens.
    fn least(&self) -> Tokens {
        let view = &self.state.transcript;
        let nothing = self.budget_at(Tokens::ZERO);
        let policy = &self.setup.policy;
        match policy.propose(view, &nothing, Trigger::Request, &self.means()) {
            Ok(_) => self.tokens(),
            Err(cannot_fit) => cannot_fit.minimum,
        }
    }

    /// Returns the same in the provider's tokens, which windows and limits are configured in.
    pub(crate) fn reported(&self, cannot_fit: CannotFit) -> CannotFit {
        let CannotFit { limit, .. } = cannot_fit.reported(self.calibration());
        CannotFit {
            limit,
            ..cannot_fit.reported(self.state.calibration)
        }
    }
}
