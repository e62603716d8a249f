//! [`OwnUsage`]: a run's own usage, and the share of its limits that it reserves for itself.
//!
//! Sub-agents may only use the rest beyond this reserve. Their usage arrives with the results of their
//! tool calls.

use plimsoll_context::{Money, Tokens};

use crate::forecast::Forecast;
use crate::spend::Spend;

/// Tokens reserved for the result of a sub-agent, in addition to the estimate for the last call.
pub const KEPT_FOR_RESULT: Tokens = Tokens(1_000);

/// The usage of a run without the usage of its sub-agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnUsage {
    /// The usage.
    pub spend: Spend,
    /// The tokens of this usage, as the run's limits count them.
    pub tokens: Tokens,
    /// Tokens reserved for the run's next call.
    pub keeps_tokens: Tokens,
    /// Money reserved for the run's next call.
    pub keeps_cost: Money,
    /// Remaining turns.
    pub keeps_turns: u64,
    /// Requested tool calls that have not been started.
    pub keeps_tool_calls: u64,
    /// Tool calls without a result, including those not started.
    pub open_calls: u64,
    /// The usage of tool calls that have returned, for example of sub-agents.
    pub others: Spend,
}

impl OwnUsage {
    /// Returns the usage so far and the reserve of a run.
    pub(crate) fn of(forecast: &Forecast<'_>) -> Self {
        let (tally, tracker) = (&forecast.state.facts.tally, &forecast.tracker);
        let next = forecast.next_call();
        let spend = Spend {
            usage: tally.usage,
            estimated: tally.estimated,
            cost: tally.cost,
            turns: tally.turns,
            tool_calls: tally.tool_calls,
        };
        let others = Spend {
            turns: 0,
            tool_calls: 0,
            ..tally.spent
        };
        let batch = &forecast.state.batch;
        let open = || batch.iter().flat_map(|batch| batch.open());
        Self {
            spend: spend.without(others),
            tokens: tracker.tokens_used.minus(others.usage.total_tokens()),
            keeps_tokens: next.tokens + KEPT_FOR_RESULT,
            keeps_cost: next.cost + forecast.full_price(KEPT_FOR_RESULT),
            keeps_turns: tracker.limits.max_turns.saturating_sub(tally.turns),
            keeps_tool_calls: open().filter(|call| !call.began).count() as u64,
            open_calls: open().count() as u64,
            others: tally.spent,
        }
    }
}
