//! [`Policy`]: an ordered list of stages that is asked for a plan before every request. The plan
//! changes nothing until it is applied. [`Stage`]: one way to make a view smaller.

use std::fmt::Debug;
use std::sync::Arc;

use crate::budget::{Budget, CannotFit};
use crate::draft::Draft;
use crate::plan::{Plan, PlanContext, SummaryRange, Trigger};
use crate::stages::{
    Cap, Evict, Fill, Fit, LEAST_EXTRACT, Prune, PruneWithoutTrigger, SessionPruneConfig,
    Summarize, SummaryConfig,
};
use crate::tokens::Tokens;
use crate::transcript::Transcript;

/// How often a summary is rewritten with a smaller size if the view does not fit with it.
const SMALLER_SUMMARIES: u32 = 6;

/// One way to make a view smaller. Stages run in order until the draft is small enough.
///
/// A stage is pure: it reads the draft, the budget and the reason, and edits the draft. It uses no
/// clock and does no I/O.
///
/// The draft enforces the invariants of a view, so a custom stage cannot produce a view that a
/// provider rejects.
///
/// ```
/// use plimsoll_context::{Budget, Draft, ExchangeKind, Stage, Trigger};
///
/// /// Drops every text-only answer as soon as the view is over its trigger.
/// #[derive(Debug)]
/// struct DropChatter;
///
/// impl Stage for DropChatter {
///     fn name(&self) -> &str {
///         "drop_chatter"
///     }
///     fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
///         if !draft.is_due(budget) {
///             return;
///         }
///         for index in 0..draft.exchanges().len() {
///             let exchange = &draft.exchanges()[index];
///             if exchange.kind == ExchangeKind::Complete && exchange.at.len() == 1 {
///                 draft.drop_exchange(index);
///             }
///         }
///     }
/// }
/// ```
pub trait Stage: Debug + Send + Sync {
    /// Returns the name of the stage, as shown in plans and events.
    fn name(&self) -> &str;

    /// Returns `true` if the stage edits the view before every request, even if no plan is due.
    fn is_eager(&self) -> bool {
        false
    }

    /// Returns `true` if the stage enforces a limit of its own. Such a stage also runs before a
    /// request that follows a compaction.
    fn is_limit(&self) -> bool {
        false
    }

    /// Proposes edits to the draft. It may propose none.
    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, why: Trigger);
}

/// An ordered list of stages.
#[derive(Debug, Clone)]
pub struct Policy {
    stages: Vec<Arc<dyn Stage>>,
    /// Whether a view that exceeds its limit is an error.
    limited: bool,
}

/// The proposal of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The plan that can be applied immediately; `None` if nothing needs to be done.
    pub plan: Option<Plan>,
    /// The messages that a stage would prefer to have summarised by a model first. If the policy is
    /// asked again with this summary in its [`PlanContext`], it proposes a better plan.
    pub wants: Option<SummaryRange>,
}

impl Policy {
    /// Creates a policy from stages, in this order.
    #[must_use]
    pub fn new(stages: Vec<Arc<dyn Stage>>) -> Self {
        Self {
            limited: !stages.is_empty(),
            stages,
        }
    }

    /// Creates a policy without stages: nothing is edited before a provider refuses a request, and
    /// a view of any size is sent.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(Vec::new())
    }

    /// Adds a stage after the first stage if that one caps results, or at the beginning.
    #[must_use]
    pub fn with_stage(mut self, stage: Arc<dyn Stage>) -> Self {
        let caps = self
            .stages
            .first()
            .is_some_and(|first| first.name() == "cap");
        self.stages.insert(usize::from(caps), stage);
        self
    }

    /// Adds pruning of old results according to `config`. A policy that is not
    /// [limited](Self::is_limited) has no trigger, so there the stage acts whenever it frees a
    /// quarter of the view.
    #[must_use]
    pub fn with_prune(self, config: SessionPruneConfig) -> Self {
        let prune = Prune(config);
        if self.is_limited() {
            self.with_stage(Arc::new(prune))
        } else {
            self.with_stage(Arc::new(PruneWithoutTrigger(prune)))
        }
    }

    /// Returns `true` if a view that exceeds its limit is an error. A policy that was created
    /// without stages sends views of any size.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.limited
    }

    /// Creates a policy with the stages cap → evict → fit.
    #[must_use]
    pub fn sliding_window() -> Self {
        Self::new(vec![
            Arc::new(Cap::Arrivals),
            Arc::new(Evict::Oldest),
            Arc::new(Fit::Results),
        ])
    }

    /// Creates the default policy, with the stages cap → prune → evict → fit.
    #[must_use]
    pub fn evict(prune: SessionPruneConfig) -> Self {
        Self::new(vec![
            Arc::new(Cap::Arrivals),
            Arc::new(Evict::Hopeless),
            Arc::new(Prune(prune)),
            Arc::new(Evict::Oldest),
            Arc::new(Fit::Results),
        ])
    }

    /// Creates a policy with the stages cap → summarize → evict → fit.
    #[must_use]
    pub fn summarize(summary: SummaryConfig) -> Self {
        Self::new(vec![
            Arc::new(Cap::Arrivals),
            Arc::new(Summarize(summary)),
            Arc::new(Evict::Oldest),
            Arc::new(Fit::Results),
        ])
    }

    /// Creates a policy with the stages cap → fit, both only for unsent results: nothing that was
    /// sent is rewritten.
    #[must_use]
    pub fn arrivals() -> Self {
        Self::new(vec![Arc::new(Cap::Arrivals), Arc::new(Fit::Arrivals)])
    }

    /// Allows the last stage to cut protected texts as well. For filters.
    #[must_use]
    pub fn for_filter(mut self) -> Self {
        self.stages
            .retain(|stage| stage.name() != Fit::Results.name());
        self.stages.push(Arc::new(Fit::Everything));
        self
    }

    /// Adds [`Fill`] as the last stage, for filters that are given a size to fill.
    #[must_use]
    pub fn filled(mut self) -> Self {
        self.stages.push(Arc::new(Fill));
        self
    }

    /// Returns the stages, in order.
    #[must_use]
    pub fn stages(&self) -> &[Arc<dyn Stage>] {
        &self.stages
    }

    /// Creates the policy that is used after an overflow, regardless of the configured policy: cap
    /// all → prune → evict → fit, with a summary of the evicted messages if `summary` is given. It
    /// needs no model.
    #[must_use]
    pub fn recovery(prune: SessionPruneConfig, summary: Option<SummaryConfig>) -> Self {
        let mut stages: Vec<Arc<dyn Stage>> = Vec::new();
        // With a summary, messages that must be removed in any case are summarised as well.
        if summary.is_none() {
            stages.push(Arc::new(Evict::Hopeless));
        }
        stages.push(Arc::new(Cap::All));
        stages.push(Arc::new(Prune(prune)));
        stages.extend(
            summary.map(|summary| Arc::new(Summarize(summary.without_model())) as Arc<dyn Stage>),
        );
        stages.push(Arc::new(Evict::Oldest));
        stages.push(Arc::new(Fit::Results));
        Self::new(stages)
    }

    /// Proposes a plan that brings the view under its budget. Returns `None` if nothing needs to be
    /// done.
    ///
    /// Costs O(new messages) while the view is under its trigger.
    ///
    /// # Errors
    /// [`CannotFit`] if the view would still exceed its limit.
    pub fn plan(
        &self,
        transcript: &Transcript,
        budget: &Budget,
        why: Trigger,
    ) -> Result<Option<Plan>, CannotFit> {
        let proposal = self.propose(transcript, budget, why, &PlanContext::default());
        proposal.map(|proposal| proposal.plan)
    }

    /// Proposes a plan like [`Policy::plan`], with more context than the view.
    ///
    /// # Errors
    /// [`CannotFit`] if the view would still exceed its limit.
    pub fn propose(
        &self,
        transcript: &Transcript,
        budget: &Budget,
        why: Trigger,
        context: &PlanContext,
    ) -> Result<Proposal, CannotFit> {
        let mut draft = self.draft(transcript, budget, why, context);
        if draft.tokens() > budget.limit && self.limited {
            return Err(budget.cannot_fit(draft.tokens()));
        }
        Ok(Proposal {
            wants: draft.take_wants(),
            plan: draft.into_plan(why),
        })
    }

    /// Proposes the best plan, even if the view would still exceed its limit. After an overflow
    /// every reduction is worth trying.
    #[must_use]
    pub fn best_plan(
        &self,
        transcript: &Transcript,
        budget: &Budget,
        why: Trigger,
    ) -> Option<Plan> {
        let context = PlanContext::default();
        self.best_proposal(transcript, budget, why, &context).plan
    }

    /// Proposes the best plan like [`Policy::best_plan`], with more context than the view.
    #[must_use]
    pub fn best_proposal(
        &self,
        transcript: &Transcript,
        budget: &Budget,
        why: Trigger,
        context: &PlanContext,
    ) -> Proposal {
        let mut draft = self.draft(transcript, budget, why, context);
        Proposal {
            wants: draft.take_wants(),
            plan: draft.into_plan(why),
        }
    }

    /// Returns the draft that becomes the plan.
    fn draft<'a>(
        &self,
        transcript: &'a Transcript,
        budget: &Budget,
        why: Trigger,
        context: &'a PlanContext,
    ) -> Draft<'a> {
        let mut draft = Draft::new(transcript, budget.keep_recent).with_context(context);
        self.take_turns(&mut draft, budget, why);
        // A summary is never cut. If the view does not fit with it, a smaller one is written. As a
        // last resort, the messages are removed without a summary.
        for _ in 0..SMALLER_SUMMARIES {
            let Some(summary) = draft.summary().filter(|_| draft.tokens() > budget.limit) else {
                return draft;
            };
            let over = draft.tokens().minus(budget.limit);
            let smaller = summary.minus(over).min(Tokens(summary.0 / 2));
            let limit = if smaller < LEAST_EXTRACT {
                Tokens::ZERO
            } else {
                smaller
            };
            draft = Draft::new(transcript, budget.keep_recent)
                .with_context(context)
                .with_summary_limit(limit);
            self.take_turns(&mut draft, budget, why);
        }
        draft
    }

    fn take_turns(&self, draft: &mut Draft<'_>, budget: &Budget, why: Trigger) {
        for stage in &self.stages {
            let before = draft.tokens();
            stage.propose(draft, budget, why);
            if draft.tokens() < before {
                draft.credit(stage.name());
            }
        }
    }
}
