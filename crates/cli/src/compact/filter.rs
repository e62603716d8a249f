//! The policies of `plimsoll compact` and `plimsoll rescue`.

use plimsoll::context::{SummaryConfig, ViewLimits};
use plimsoll::policy::Policy;
use plimsoll::{ContextStrategy, Tokens};

use crate::error::CliError;

/// Returns the strategy with this name. `summarize` is refused, because it asks a model.
pub(crate) fn named(name: &str) -> Result<ContextStrategy, CliError> {
    let is_summarize =
        |strategy: &ContextStrategy| matches!(strategy, ContextStrategy::Summarize { .. });
    let named =
        |name: &str| ContextStrategy::named(name, None).filter(|named| !is_summarize(named));
    named(name).ok_or_else(|| {
        let names = ContextStrategy::NAMES.into_iter();
        let names: Vec<&str> = names.filter(|name| named(name).is_some()).collect();
        CliError::usage(format!(
            "`{name}` is no policy of this command, which asks no model; choose one of: {}",
            names.join(", ")
        ))
    })
}

/// Returns the policy of a filter and its limit.
pub(crate) fn within(strategy: ContextStrategy, budget: Tokens) -> (Policy, ViewLimits) {
    // No model is asked, and a summary is as large as the user's messages require.
    let policy = strategy.filter_policy(SummaryConfig::default().without_model());
    (policy.for_filter().filled(), ViewLimits::exactly(budget))
}
