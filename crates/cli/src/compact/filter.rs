//! The policies of `plimsoll compact` and `plimsoll rescue`.

use plimsoll::context::{SummaryConfig, ViewLimits};
use plimsoll::policy::Policy;
use plimsoll::{ContextStrategy, Tokens};

use crate::error::CliError;

/// Returns the strategy with this name.
pub(crate) fn named(name: &str) -> Result<ContextStrategy, CliError> {
    ContextStrategy::named(name, None).ok_or_else(|| {
        let names = ContextStrategy::NAMES.join(", ");
        CliError::usage(format!(
            "there is no policy `{name}`; choose one of: {names}"
        ))
    })
}

/// Returns the policy of a filter and its limit. Returns `None` if the strategy removes nothing.
pub(crate) fn within(strategy: ContextStrategy, budget: Tokens) -> Option<(Policy, ViewLimits)> {
    if strategy == (ContextStrategy::Unlimited {}) {
        return None;
    }
    // No model is asked, and a summary is as large as the user's messages require.
    let policy = strategy.filter_policy(SummaryConfig::default().without_model());
    Some((policy.for_filter().filled(), ViewLimits::exactly(budget)))
}
