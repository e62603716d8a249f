//! [`explain`]: what each stage of a policy does to a view, step by step. For people who ask why;
//! it makes no plan and changes nothing.

use serde::Serialize;

use crate::budget::Budget;
use crate::draft::Draft;
use crate::means::Means;
use crate::message::Message;
use crate::plan::Trigger;
use crate::policy::{Policy, Step};
use crate::tokens::Tokens;
use crate::transcript::Transcript;

/// What one stage has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageStep {
    /// The stage.
    pub stage: String,
    /// The view's weight before it.
    pub before: Tokens,
    /// The view's weight after it.
    pub after: Tokens,
    /// What each message of the view is after it, in view order.
    pub marks: Vec<Mark>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// It is as it was.
    Kept,
    /// It is shorter.
    Shortened,
    /// A new summary stands in its place.
    Summary,
    /// It has left.
    Gone,
}

/// What each stage does, in order, when the policy is asked for a plan for this view.
#[must_use]
pub fn explain(
    policy: &Policy,
    transcript: &Transcript,
    budget: &Budget,
    why: Trigger,
    means: &Means,
) -> Vec<StageStep> {
    let mut steps = Vec::with_capacity(policy.stages().len());
    let _ = policy.drafts(transcript, budget, why, means, &mut |step| match step {
        Step::Start => steps.clear(),
        Step::Stage {
            name,
            before,
            draft,
        } => steps.push(StageStep {
            stage: name.to_owned(),
            before,
            after: draft.tokens(),
            marks: marks(draft),
        }),
    });
    steps
}

fn marks(draft: &Draft<'_>) -> Vec<Mark> {
    let items = draft.items().iter().enumerate();
    items
        .map(|(at, item)| match draft.current(at) {
            None => Mark::Gone,
            Some((now, _)) if std::ptr::eq(now, item.message.as_ref()) => Mark::Kept,
            Some((Message::Summary { .. }, _)) => Mark::Summary,
            Some(_) => Mark::Shortened,
        })
        .collect()
}
