//! [`explain`]: reports the effect of each stage of a policy on a view.
//!
//! For diagnosis only: it makes no plan and changes nothing.

use serde::Serialize;

use crate::budget::Budget;
use crate::plan::{PlanContext, Trigger};
use crate::policy::{PlanStep, Policy};
use crate::tokens::Tokens;
use crate::transcript::Transcript;

/// The effect of one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageStep {
    /// The name of the stage.
    pub stage: String,
    /// The size of the view before the stage.
    pub before: Tokens,
    /// The size of the view after the stage.
    pub after: Tokens,
}

/// Returns the effect of each stage, in order, if the policy is asked for a plan for this view.
#[must_use]
pub fn explain(
    policy: &Policy,
    transcript: &Transcript,
    budget: &Budget,
    why: Trigger,
    context: &PlanContext,
) -> Vec<StageStep> {
    let mut steps = Vec::with_capacity(policy.stages().len());
    let _ = policy.drafts(transcript, budget, why, context, &mut |step| match step {
        PlanStep::Start => steps.clear(),
        PlanStep::Stage {
            name,
            before,
            draft,
        } => steps.push(StageStep {
            stage: name.to_owned(),
            before,
            after: draft.tokens(),
        }),
    });
    steps
}
