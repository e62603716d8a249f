//! What follows when a model call fails: the ladder for requests that are too long, an end for
//! everything else. Each rung is strictly smaller than what was refused; the last needs no model.

use plimsoll_context::{Budget, Policy, Tokens, Trigger};

use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::outcome::EndReason;
use crate::run::Run;

/// Rungs of the ladder: by then a request is a sixteenth of what was refused first, or as small as
/// it can be.
const MAX_RUNGS: u32 = 4;

impl Run {
    /// A model call has failed for good; the driver has retried what may be retried.
    pub(crate) fn failed(&mut self, failure: Failure, counted: Tokens, rung: u32) {
        let done = match &failure {
            _ if rung >= MAX_RUNGS => false,
            Failure::Overflow { used, window, .. } => {
                let (used, window) = (*used, *window);
                self.learn(used, window, counted);
                self.shrink(counted, rung + 1)
            }
            Failure::OutputTooLarge { limit, .. } => self.lower_output(*limit),
            _ => false,
        };
        if !done {
            return self.finish(EndReason::Failed { failure });
        }
        self.notify(Event::Overflow {
            rung: rung + 1,
            window: self.line().window,
            message: failure.to_string(),
        });
        self.call(rung + 1);
    }

    /// The provider has the last word on the window and on what the request weighed.
    fn learn(&mut self, used: Option<Tokens>, window: Option<Tokens>, counted: Tokens) {
        let known = self.line().window;
        let Some(window) = window.or(known) else {
            return;
        };
        let news = known != Some(window) || used.is_some();
        if news && window > Tokens::ZERO {
            self.record(Entry::Learned {
                window,
                used: used.map(|used| (counted, used)),
            });
        }
    }

    /// Makes the view strictly lighter; false where it cannot be.
    fn shrink(&mut self, counted: Tokens, rung: u32) -> bool {
        let now = self.state.transcript.tokens();
        let by_line = self.line().budget(self.overhead, self.state.calibration);
        let by_halves = Tokens(counted.0 >> rung).minus(self.overhead);
        let goal = match by_line {
            Ok(budget) if budget.target != Tokens::MAX && rung == 1 => budget.target,
            Ok(budget) => budget.target.min(by_halves),
            Err(cannot_fit) => {
                self.warn(cannot_fit.to_string());
                return false;
            }
        };
        let goal = goal.min(now.minus(Tokens(1)));
        let budget = Budget {
            limit: goal,
            trigger: goal,
            target: goal,
            max_result: Tokens(goal.0 / 4),
            keep_recent: self.setup.line.keep_recent,
            overhead: self.overhead,
        };
        let policy = Policy::recovery(self.setup.prune);
        let plan = policy.best_plan(&self.state.transcript, &budget, Trigger::Overflow);
        plan.is_some_and(|plan| self.apply(plan))
    }

    fn lower_output(&mut self, limit: Option<Tokens>) -> bool {
        let now = self.max_output.unwrap_or(plimsoll_context::OUTPUT_RESERVE);
        let lower = limit.unwrap_or(Tokens(now.0 / 2)).min(now);
        if lower == Tokens::ZERO || self.max_output == Some(lower) {
            return false;
        }
        self.max_output = Some(lower);
        true
    }
}
