//! A compaction that the user asks for between two runs.
//!
//! The policy plans down to its target at once, regardless of the trigger. The plan is recorded,
//! archived and reported like any other.

use std::sync::Arc;

use plimsoll_context::{Budget, SummaryTiming, Trigger};

use crate::applied_plan::AppliedPlan;
use crate::current::Attempt;
use crate::leave::Next;
use crate::now::Now;
use crate::phase::{Phase, PlanFor};
use crate::run::Run;
use crate::step::Step;

/// Maximum size of the focus of a summary, in bytes. The focus is part of every request to the summary
/// model.
pub const MAX_FOCUS: usize = 2_000;

/// The reason why nothing can be compacted now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// A run is in progress.
    #[error("a run is under way and keeps its view small itself; interrupt it first")]
    Running,
    /// The focus is too long.
    #[error("the focus has {bytes} bytes; say it in {MAX_FOCUS}")]
    Focus {
        /// The length of the focus in bytes.
        bytes: usize,
    },
}

/// A requested compaction in progress.
#[derive(Debug, Default)]
pub(crate) struct RequestedCompaction {
    /// The focus: information that the summary must keep above all.
    focus: Option<Arc<str>>,
}

impl RequestedCompaction {
    /// Returns the system prompt of the summary model.
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
    /// Starts a compaction down to the target. The steps are returned by [`Run::poll`], up to the first
    /// [`Step::Wait`] while no run is in progress.
    ///
    /// If the view is already below its target, or no message may be removed, that step follows at once
    /// and no model is called. `focus` tells the summary model what to keep above all.
    ///
    /// # Errors
    /// If a run is in progress, or if the focus is longer than [`MAX_FOCUS`].
    pub fn compact(&mut self, now: Now, focus: Option<&str>) -> Result<(), CompactError> {
        if self.is_running() {
            return Err(CompactError::Running);
        }
        let focus = focus.map(str::trim).filter(|focus| !focus.is_empty());
        if let Some(bytes) = focus.map(str::len).filter(|bytes| *bytes > MAX_FOCUS) {
            return Err(CompactError::Focus { bytes });
        }
        self.current.recall = self.setup.recall;
        self.current.archive_failed = false;
        self.now = self.now.followed_by(now, false);
        self.attempt = Attempt::default();
        self.summaries.begin();
        // A summary from the last run does not take the focus into account.
        if focus.is_some() {
            self.summaries.ready = None;
        }
        self.compaction = None;
        self.phase = Phase::Compacting(RequestedCompaction {
            focus: focus.map(Arc::from),
        });
        Ok(())
    }

    /// Makes the plan, or requests the summary that it needs.
    pub(crate) fn plan_compaction(&mut self) {
        let Phase::Compacting(compacting) = std::mem::replace(&mut self.phase, Phase::TurnDue)
        else {
            return;
        };
        let line = match self.budget_planned() {
            Ok(line) => line,
            Err(cannot_fit) => {
                self.warn(self.reported(cannot_fit).to_string());
                return self.end_compaction();
            }
        };
        let budget = Budget {
            trigger: line.target,
            ..line
        };
        let view = &self.state.transcript;
        if view.tokens() <= budget.target {
            return self.end_compaction();
        }
        let (why, context) = (Trigger::Asked, self.plan_context());
        let proposal = self
            .setup
            .policy
            .best_proposal(view, &budget, why, &context);
        // A summary for later use does not help with this compaction.
        if let Some(span) = proposal
            .wants
            .filter(|span| span.when == SummaryTiming::Now)
        {
            self.open();
            if self.wants_summary(span, Some(&compacting)) {
                self.phase = Phase::Summarizing(PlanFor::Compaction(compacting));
                return;
            }
        }
        let Some(mut plan) = proposal.plan else {
            return self.end_compaction();
        };
        plan.price = Some(self.price_of_plan(&plan, &line));
        self.open();
        self.leave(plan, Next::Compaction(compacting));
    }

    /// Returns the last requested compaction if it was applied. Later calls return `None`.
    pub fn take_compaction(&mut self) -> Option<AppliedPlan> {
        self.compaction.take()
    }

    /// Aborts the compaction in progress.
    pub(crate) fn stop_compaction(&mut self) {
        self.queue.push_back(Step::Abort);
        self.drop_digest();
        self.end_compaction();
    }

    /// Returns to the idle state.
    pub(crate) fn end_compaction(&mut self) {
        self.give_up_waiting();
        self.phase = Phase::Idle;
    }
}
