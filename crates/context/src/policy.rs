//! [`Policy`]: ordered stages, asked for a plan before every request. It only proposes; a plan
//! changes nothing until it is applied.

use std::sync::Arc;

use crate::budget::{Budget, CannotFit};
use crate::draft::Draft;
use crate::means::{Means, Span};
use crate::plan::{Plan, Trigger};
use crate::stage::Stage;
use crate::stages::{
    Cap, Evict, Fill, Fit, LEAST_EXTRACT, Prune, PruneWithoutTrigger, SessionPruneConfig,
    Summarize, SummaryConfig,
};
use crate::tokens::Tokens;
use crate::transcript::Transcript;

/// How often a summary is written again, smaller, if the view does not fit with it.
const SMALLER_SUMMARIES: u32 = 6;

/// Ordered stages.
#[derive(Debug, Clone)]
pub struct Policy {
    stages: Vec<Arc<dyn Stage>>,
    /// Whether a view that exceeds its limit is an error.
    limited: bool,
}

/// A step on the way to a plan.
pub(crate) enum Step<'d, 'a> {
    /// The stages begin, or begin again with a smaller summary.
    Start,
    /// A stage has had its turn.
    Stage {
        name: &'d str,
        /// The weight of the view before it.
        before: Tokens,
        draft: &'d Draft<'a>,
    },
}

/// What a policy proposes.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// What can be done at once, needing nobody; `None` where nothing is to be done.
    pub plan: Option<Plan>,
    /// What a stage would rather have summarised by a model first. Where that is done, the same
    /// policy asked again with the summary in its [`Means`] proposes a better plan.
    pub wants: Option<Span>,
}

impl Policy {
    /// The given stages, in their order.
    #[must_use]
    pub fn new(stages: Vec<Arc<dyn Stage>>) -> Self {
        Self {
            limited: !stages.is_empty(),
            stages,
        }
    }

    /// No stage: nothing is edited before a provider refuses, and nothing is too large to be sent.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(Vec::new())
    }

    /// Returns the policy with one more stage, behind a first stage that caps results, or at the
    /// beginning if there is none.
    #[must_use]
    pub fn with_stage(mut self, stage: Arc<dyn Stage>) -> Self {
        let caps = self
            .stages
            .first()
            .is_some_and(|first| first.name() == "cap");
        self.stages.insert(usize::from(caps), stage);
        self
    }

    /// Returns the policy with old results pruned as `config` says. Under a policy that is not
    /// [limited](Self::is_limited) no plan is ever due, so it acts whenever it frees a quarter of the
    /// view.
    #[must_use]
    pub fn with_prune(self, config: SessionPruneConfig) -> Self {
        let prune = Prune(config);
        if self.is_limited() {
            self.with_stage(Arc::new(prune))
        } else {
            self.with_stage(Arc::new(PruneWithoutTrigger(prune)))
        }
    }

    /// Returns the policy with `replace` applied to each stage.
    #[must_use]
    pub fn map_stages(mut self, replace: impl Fn(Arc<dyn Stage>) -> Arc<dyn Stage>) -> Self {
        self.stages = self.stages.into_iter().map(replace).collect();
        self
    }

    /// Returns `true` if a view that exceeds its limit is an error. A policy without any stage, or
    /// one that was made of such a policy, sends whatever there is.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.limited
    }

    /// cap → evict → fit.
    #[must_use]
    pub fn sliding_window() -> Self {
        Self::new(vec![
            Arc::new(Cap::Arrivals),
            Arc::new(Evict::Oldest),
            Arc::new(Fit::Results),
        ])
    }

    /// cap → prune → evict → fit: the default.
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

    /// cap → summarize → evict → fit.
    #[must_use]
    pub fn summarize(summary: SummaryConfig) -> Self {
        Self::new(vec![
            Arc::new(Cap::Arrivals),
            Arc::new(Summarize(summary)),
            Arc::new(Evict::Oldest),
            Arc::new(Fit::Results),
        ])
    }

    /// cap → fit, both only for results that no request has carried yet: nothing that was sent is
    /// rewritten.
    #[must_use]
    pub fn arrivals() -> Self {
        Self::new(vec![Arc::new(Cap::Arrivals), Arc::new(Fit::Arrivals)])
    }

    /// The same stages, the last rung being allowed to cut protected texts as well; for filters.
    #[must_use]
    pub fn for_filter(mut self) -> Self {
        self.stages
            .retain(|stage| stage.name() != Fit::Results.name());
        self.stages.push(Arc::new(Fit::Everything));
        self
    }

    /// Returns the policy with [`Fill`] as its last stage, for filters that are given a size to fill.
    #[must_use]
    pub fn filled(mut self) -> Self {
        self.stages.push(Arc::new(Fill));
        self
    }

    /// The stages, in order.
    #[must_use]
    pub fn stages(&self) -> &[Arc<dyn Stage>] {
        &self.stages
    }

    /// What an overflow is answered with, whatever the policy: cap all → prune → evict → fit, with
    /// a summary of what is to be evicted where one is asked for. It needs no model.
    #[must_use]
    pub fn recovery(prune: SessionPruneConfig, summary: Option<SummaryConfig>) -> Self {
        let mut stages: Vec<Arc<dyn Stage>> = Vec::new();
        // Where there is a summary, what leaves anyway is summed up as well.
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

    /// Proposes a plan that brings the view under its budget; `None` where nothing is to be done.
    ///
    /// Costs O(what is new) while the view is under its trigger.
    ///
    /// # Errors
    /// [`CannotFit`] where the view would still exceed its limit.
    pub fn plan(
        &self,
        transcript: &Transcript,
        budget: &Budget,
        why: Trigger,
    ) -> Result<Option<Plan>, CannotFit> {
        let proposal = self.propose(transcript, budget, why, &Means::default());
        proposal.map(|proposal| proposal.plan)
    }

    /// The same with what the policy may count on besides the view.
    ///
    /// # Errors
    /// [`CannotFit`] where the view would still exceed its limit.
    pub fn propose(
        &self,
        transcript: &Transcript,
        budget: &Budget,
        why: Trigger,
        means: &Means,
    ) -> Result<Proposal, CannotFit> {
        let mut draft = self.draft(transcript, budget, why, means);
        if draft.tokens() > budget.limit && self.limited {
            return Err(budget.cannot_fit(draft.tokens()));
        }
        Ok(Proposal {
            wants: draft.take_wants(),
            plan: draft.into_plan(why),
        })
    }

    /// The same, but a plan that does not reach the limit is still a plan: after an overflow every
    /// step down is worth trying.
    #[must_use]
    pub fn best_plan(
        &self,
        transcript: &Transcript,
        budget: &Budget,
        why: Trigger,
    ) -> Option<Plan> {
        let means = Means::default();
        self.best_proposal(transcript, budget, why, &means).plan
    }

    /// The same with what the policy may count on besides the view.
    #[must_use]
    pub fn best_proposal(
        &self,
        transcript: &Transcript,
        budget: &Budget,
        why: Trigger,
        means: &Means,
    ) -> Proposal {
        let mut draft = self.draft(transcript, budget, why, means);
        Proposal {
            wants: draft.take_wants(),
            plan: draft.into_plan(why),
        }
    }

    fn draft<'a>(
        &self,
        transcript: &'a Transcript,
        budget: &Budget,
        why: Trigger,
        means: &'a Means,
    ) -> Draft<'a> {
        self.drafts(transcript, budget, why, means, &mut |_| {})
    }

    /// Returns the draft that becomes the plan. `watch` sees each step on the way.
    pub(crate) fn drafts<'a>(
        &self,
        transcript: &'a Transcript,
        budget: &Budget,
        why: Trigger,
        means: &'a Means,
        watch: &mut dyn FnMut(Step<'_, 'a>),
    ) -> Draft<'a> {
        let mut draft = Draft::new(transcript, budget.keep_recent).with_means(means);
        self.take_turns(&mut draft, budget, why, watch);
        // A summary is never cut. If the view does not fit with it, a smaller one is written; in the
        // end, what it stands for leaves without one.
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
                .with_means(means)
                .with_summary_limit(limit);
            self.take_turns(&mut draft, budget, why, watch);
        }
        draft
    }

    fn take_turns<'a>(
        &self,
        draft: &mut Draft<'a>,
        budget: &Budget,
        why: Trigger,
        watch: &mut dyn FnMut(Step<'_, 'a>),
    ) {
        watch(Step::Start);
        for stage in &self.stages {
            let before = draft.tokens();
            stage.propose(draft, budget, why);
            if draft.tokens() < before {
                draft.credit(stage.name());
            }
            watch(Step::Stage {
                name: stage.name(),
                before,
                draft,
            });
        }
    }
}
