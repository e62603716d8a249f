//! [`Policy`]: ordered stages, asked for a plan before every request. It only proposes; a plan
//! changes nothing until it is applied.

use std::sync::Arc;

use crate::budget::{Budget, CannotFit};
use crate::draft::Draft;
use crate::plan::{Plan, Trigger};
use crate::stage::Stage;
use crate::stages::{Cap, Evict, Fit, Prune, SessionPruneConfig};
use crate::transcript::Transcript;

/// Ordered stages.
#[derive(Debug, Clone)]
pub struct Policy {
    stages: Vec<Arc<dyn Stage>>,
}

impl Policy {
    /// The given stages, in their order.
    #[must_use]
    pub fn new(stages: Vec<Arc<dyn Stage>>) -> Self {
        Self { stages }
    }

    /// No stage: nothing is edited before a provider refuses.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(Vec::new())
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

    /// The same stages, the last rung being allowed to cut protected texts as well; for filters.
    #[must_use]
    pub fn for_filter(mut self) -> Self {
        self.stages
            .retain(|stage| stage.name() != Fit::Results.name());
        self.stages.push(Arc::new(Fit::Everything));
        self
    }

    /// The stages, in order.
    #[must_use]
    pub fn stages(&self) -> &[Arc<dyn Stage>] {
        &self.stages
    }

    /// What an overflow is answered with, whatever the policy: cap all → prune → evict → fit.
    /// It needs no model.
    #[must_use]
    pub fn recovery(prune: SessionPruneConfig) -> Self {
        Self::new(vec![
            Arc::new(Evict::Hopeless),
            Arc::new(Cap::All),
            Arc::new(Prune(prune)),
            Arc::new(Evict::Oldest),
            Arc::new(Fit::Results),
        ])
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
        let draft = self.draft(transcript, budget, why);
        if draft.tokens() > budget.limit && !self.stages.is_empty() {
            return Err(budget.cannot_fit(draft.tokens()));
        }
        Ok(draft.into_plan(why))
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
        self.draft(transcript, budget, why).into_plan(why)
    }

    fn draft<'a>(&self, transcript: &'a Transcript, budget: &Budget, why: Trigger) -> Draft<'a> {
        let mut draft = Draft::new(transcript, budget.keep_recent);
        for stage in &self.stages {
            let before = draft.tokens();
            stage.propose(&mut draft, budget, why);
            if draft.tokens() < before {
                draft.credit(stage.name());
            }
        }
        draft
    }
}
