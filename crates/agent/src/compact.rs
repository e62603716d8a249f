//! A plan that somebody asks for, between two runs: the policy plans down to its target at once,
//! whatever the trigger. It is recorded, kept and told like any other plan.

use std::sync::Arc;

use plimsoll_context::{Budget, Plan, Tokens, Trigger, When};

use crate::leave::Next;
use crate::run::{Phase, Run};
use crate::step::Step;

/// What a summary is to keep above all has at most this many bytes: it goes into every request of
/// the summariser.
pub const MAX_FOCUS: usize = 2_000;

/// Why nothing can be planned now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// A run is under way.
    #[error("a run is under way and keeps its view small itself; interrupt it first")]
    Running,
    /// What the summary is to keep is too much to say.
    #[error("the focus has {bytes} bytes; say it in {MAX_FOCUS}")]
    Focus {
        /// How long it is.
        bytes: usize,
    },
}

/// A plan that was applied because somebody had asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// The plan.
    pub plan: Plan,
    /// How many messages the view had.
    pub messages_before: usize,
    /// How many it has.
    pub messages_after: usize,
    /// What would have been sent before it.
    pub tokens_before: Tokens,
    /// What would be sent after it.
    pub tokens_after: Tokens,
}

/// A plan that somebody has asked for, in the making.
#[derive(Debug, Default)]
pub(crate) struct Compacting {
    /// What a summary is to keep above all.
    focus: Option<Arc<str>>,
    /// The plan, with how many messages there were and what they weighed.
    made: Option<(Plan, usize, Tokens)>,
}

impl Compacting {
    /// What the model is told that writes the summary.
    pub(crate) fn prompt(&self, prompt: &str) -> Arc<str> {
        match &self.focus {
            Some(focus) => format!(
                "{}\n\nThe user has asked for this summary and wants it to keep above all: {focus}",
                prompt.trim_end()
            )
            .into(),
            None => prompt.into(),
        }
    }
}

impl Run {
    /// Plans down to the target now; what it leads to comes from [`Run::poll`], up to the first
    /// [`Step::Wait`] with no run under way. Where the view is under its target, or nothing in it may
    /// leave, that comes at once, and no model is called. `focus` is what a model that writes a
    /// summary is told to keep above all.
    ///
    /// # Errors
    /// While a run is under way, and where the focus is longer than [`MAX_FOCUS`].
    pub fn compact(&mut self, focus: Option<&str>) -> Result<(), CompactError> {
        if self.is_running() {
            return Err(CompactError::Running);
        }
        let focus = focus.map(str::trim).filter(|focus| !focus.is_empty());
        if let Some(bytes) = focus.map(str::len).filter(|bytes| *bytes > MAX_FOCUS) {
            return Err(CompactError::Focus { bytes });
        }
        self.recall = self.setup.recall;
        self.archive_failed = false;
        self.summary_failed = false;
        self.summary_failures = 0;
        self.vetoed = false;
        // What was written beside the last run knows nothing of what is wanted now.
        if focus.is_some() {
            self.ready = None;
        }
        self.compacting = Some(Compacting {
            focus: focus.map(Arc::from),
            ..Compacting::default()
        });
        self.compaction = None;
        self.phase = Phase::Ready;
        Ok(())
    }

    /// Makes the plan, or asks for the summary that it waits for.
    pub(crate) fn plan_asked(&mut self) {
        let line = match self.budget_planned() {
            Ok(line) => line,
            Err(cannot_fit) => {
                self.warn(self.reported(cannot_fit).to_string());
                return self.end_compacting();
            }
        };
        let budget = Budget {
            trigger: line.target,
            ..line
        };
        let view = &self.state.transcript;
        if view.tokens() <= budget.target {
            return self.end_compacting();
        }
        let (why, means) = (Trigger::Asked, self.means());
        let proposal = self.setup.policy.best_proposal(view, &budget, why, &means);
        // One that would be wanted later is not what was asked for.
        if let Some(span) = proposal.wants.filter(|span| span.when == When::Now) {
            self.open();
            if self.wants_summary(span) {
                return;
            }
        }
        let Some(mut plan) = proposal.plan else {
            return self.end_compacting();
        };
        plan.price = Some(self.price_of_plan(&plan, &line));
        let messages = self.state.transcript.items().len();
        let made = (plan.clone(), messages, self.tokens());
        if let Some(compacting) = &mut self.compacting {
            compacting.made = Some(made);
        }
        self.open();
        self.leave(plan, Next::Nothing);
    }

    /// The plan that was asked for last, where one was applied; it is told once.
    pub fn take_compaction(&mut self) -> Option<Compaction> {
        self.compaction.take()
    }

    /// The plan that was asked for is applied.
    pub(crate) fn compacted(&mut self) {
        let made = self.compacting.as_mut().and_then(|asked| asked.made.take());
        self.compaction = made.map(|(plan, messages_before, tokens_before)| Compaction {
            plan,
            messages_before,
            messages_after: self.state.transcript.items().len(),
            tokens_before,
            tokens_after: self.tokens(),
        });
        self.end_compacting();
    }

    /// Gives up the plan that is in the making.
    pub(crate) fn stop_compacting(&mut self) {
        self.queue.push_back(Step::Abort);
        self.drop_digest();
        self.end_compacting();
    }

    /// Nothing is under way any more.
    pub(crate) fn end_compacting(&mut self) {
        self.compacting = None;
        self.give_up_waiting();
        self.phase = Phase::Idle;
    }
}
