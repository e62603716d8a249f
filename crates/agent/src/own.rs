//! [`Own`]: what a run has used itself, and what of the rest it keeps for itself: only what is left
//! beyond that may be given to agents that its tools start. Not what those use; that comes back with
//! the results of their calls.

use plimsoll_context::{CallId, Money, Tokens};

use crate::run::Run;
use crate::spend::Spend;

/// Tokens kept for the result of an agent, beyond what the last call would take without it.
pub const KEPT_FOR_RESULT: Tokens = Tokens(1_000);

/// What a run has used itself, without what others have used for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Own {
    /// What it has used.
    pub spend: Spend,
    /// The tokens of it that count, as its limits count them.
    pub tokens: Tokens,
    /// Tokens that it keeps for its next call.
    pub keeps_tokens: Tokens,
    /// Money that it keeps for its next call.
    pub keeps_cost: Money,
    /// Turns that it may still take.
    pub keeps_turns: u64,
    /// Tool calls that the model has asked for and that have not begun.
    pub keeps_tool_calls: u64,
    /// Tool calls without a result, these included.
    pub open_calls: u64,
    /// What others have used for it, as far as their calls have returned.
    pub others: Spend,
}

impl Run {
    /// What the run has used itself, and what it keeps.
    #[must_use]
    pub fn own(&self) -> Own {
        let (tally, tracker) = (&self.state.tally, self.tracker());
        let next = self.next_call();
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
        let open = || self.state.batch.iter().flat_map(|batch| batch.open());
        Own {
            spend: spend.without(others),
            tokens: tracker.tokens_used.minus(others.usage.total_tokens()),
            keeps_tokens: next.tokens + KEPT_FOR_RESULT,
            keeps_cost: next.cost + self.full_price(KEPT_FOR_RESULT),
            keeps_turns: tracker.limits.max_turns.saturating_sub(tally.turns),
            keeps_tool_calls: open().filter(|call| !call.began).count() as u64,
            open_calls: open().count() as u64,
            others: tally.spent,
        }
    }

    /// Tool calls that run at once, at most.
    #[must_use]
    pub fn max_parallel_tools(&self) -> usize {
        self.setup.max_parallel_tools.max(1)
    }

    /// Says what a call that is under way has used so far: that counts where the call is cut off.
    /// Told before any input that may cut it.
    pub fn metered(&mut self, call: CallId, spent: Spend) {
        self.metered.insert(call, spent);
    }

    /// What was last said that a call has used.
    pub(crate) fn cut(&mut self, call: &CallId) -> Spend {
        self.metered.remove(call).unwrap_or_default()
    }
}
