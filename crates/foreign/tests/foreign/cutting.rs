//! Requests cut by policies, as the filter cuts them.

use std::sync::Arc;

use plimsoll_context::{
    ArgumentDigest, Policy, SessionPruneConfig, Stage, SummaryConfig, TokenCounter, Tokens,
    ViewLimits,
};
use plimsoll_foreign::{Body, BodyCut, CutError};
use plimsoll_wire::Target;

/// What a filter does, a configuration's stages among it.
pub(crate) fn policies() -> Vec<Policy> {
    let summary = SummaryConfig::default().without_model();
    let digest = ArgumentDigest { over_chars: 500 };
    let mut digested = Policy::evict(SessionPruneConfig::default())
        .stages()
        .to_vec();
    digested.insert(1, Arc::new(digest) as Arc<dyn Stage>);
    let named = [
        Policy::summarize(summary),
        Policy::evict(SessionPruneConfig::default()),
        Policy::sliding_window(),
    ];
    let named = named.map(|policy| policy.for_filter().filled());
    let configured = Policy::new(digested).for_filter();
    named.into_iter().chain([configured]).collect()
}

/// Cuts a valid request to a budget.
pub(crate) fn cut<'a>(
    text: &'a str,
    target: &Target,
    budget: u64,
    policy: &Policy,
    counter: &Arc<dyn TokenCounter>,
) -> Result<Option<BodyCut<'a>>, CutError> {
    let body = Body::read(text, target).unwrap();
    let view = body.transcript(counter);
    body.cut(&view, policy, &ViewLimits::exactly(Tokens(budget)))
}

/// Returns the weight of a whole request.
pub(crate) fn weighs(text: &str, target: &Target, counter: &Arc<dyn TokenCounter>) -> u64 {
    let body = Body::read(text, target).unwrap();
    let view = body.transcript(counter);
    (view.tokens() + body.overhead(counter.as_ref())).0
}

/// Returns what no policy can remove: instructions and tools.
pub(crate) fn fixed(text: &str, target: &Target, counter: &Arc<dyn TokenCounter>) -> u64 {
    let body = Body::read(text, target).unwrap();
    let view = body.transcript(counter);
    (view.instructions() + body.overhead(counter.as_ref())).0
}
