//! The policies of `plimsoll compact` and `plimsoll rescue`.

use clap::builder::PossibleValue;
use plimsoll::context::{SummaryConfig, ViewLimits};
use plimsoll::policy::Policy;
use plimsoll::{ContextStrategy, Tokens};

use crate::error::CliError;

/// Returns the names of the policies that ask no model and make a chat smaller.
pub(crate) fn names() -> Vec<PossibleValue> {
    vec![
        PossibleValue::new("extract"),
        PossibleValue::new("evict"),
        PossibleValue::new("sliding_window").alias("sliding-window"),
    ]
}

/// Returns the strategy with this name, which the arguments have checked.
pub(crate) fn named(name: &str) -> Result<ContextStrategy, CliError> {
    let named = ContextStrategy::named(name, None);
    named.ok_or_else(|| CliError::usage(format!("there is no policy `{name}`")))
}

/// Returns the policy of a filter and its limit.
pub(crate) fn within(strategy: ContextStrategy, budget: Tokens) -> (Policy, ViewLimits) {
    // No model is asked, and a summary is as large as the user's messages require.
    let policy = strategy.filter_policy(SummaryConfig::default().without_model());
    (policy.for_filter().filled(), ViewLimits::exactly(budget))
}
