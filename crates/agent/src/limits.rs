//! [`ExecutionLimits`]: limits on the length and the cost of a run, and their kinds.
//!
//! The size of the view is limited by a budget instead. `ledger.rs` compares the usage with them.

use std::time::Duration;

use plimsoll_context::{Bytes, Money, SettingFault, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::doom_loop::{DoomLoopTracker, MIN_HISTORY};

/// Default number of turns of a run.
pub const MAX_TURNS: u64 = 50;
/// Number of tokens in [`ExecutionLimits::standard`].
pub const MAX_TOTAL_TOKENS: Tokens = Tokens(1_000_000);
/// Duration in [`ExecutionLimits::standard`].
pub const MAX_DURATION: Duration = Duration::from_secs(600);
/// How many identical batches in a row loop detection allows if only `tool_call_history_size` is set.
pub const IDENTICAL_TOOL_CALLS: u64 = 4;

/// Limits on the length and the cost of a run, of a sub-agent, or of several agents together. `None`
/// sets no limit here.
///
/// A run without a limit on its turns has [`MAX_TURNS`]. Limits of one run replace those of its agent
/// ([`Self::over`]); limits of a sub-agent, a branch or a request can only lower them
/// ([`Self::within`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionLimits {
    /// Model calls in a run. Default 50; at least 1.
    pub max_turns: Option<u64>,
    /// Tokens in a run, as `count_tokens` counts them. Default: no limit.
    pub max_total_tokens: Option<Tokens>,
    /// The tokens that count. Default: all processed tokens.
    pub count_tokens: Option<CountTokens>,
    /// Maximum duration of a run; a model call or a tool that hangs is aborted. Default: no limit. The
    /// clock restarts if the run continues after a crash.
    pub max_duration: Option<Duration>,
    /// Maximum cost of a run, including summaries and sub-agents. Requires a model with known prices.
    /// Default: no limit.
    pub max_cost: Option<Money>,
    /// Executed tool calls in a run. Default: no limit.
    pub max_tool_calls: Option<u64>,
    /// How many times in a row the same batch of tool calls may be requested while its results do not
    /// change. After one less the model is told; this one and the next do not run; then the run ends.
    /// Default: no limit, or [`IDENTICAL_TOOL_CALLS`] if `tool_call_history_size` is set; 1 acts as 2;
    /// 0 is an error.
    pub max_identical_tool_calls: Option<u64>,
    /// Number of batches of tool calls that loop detection remembers; setting it enables loop
    /// detection. Cycles of up to half as many batches are detected. At least 10 and one more than
    /// `max_identical_tool_calls`, which is also the default.
    pub tool_call_history_size: Option<usize>,
    /// Maximum memory of the messages of a run in this process. Default: no limit.
    pub max_memory: Option<Bytes>,
    /// The reaction when a limit is reached. Default: the model is asked to finish.
    pub at_limit: Option<AtLimit>,
}

/// The tokens that count towards `max_total_tokens`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountTokens {
    /// All tokens that each call reads and writes, including cached ones.
    #[default]
    Processed,
    /// The new tokens of each call: the written ones, and those of its input that the call before had
    /// neither read nor written.
    Growth,
}

/// The reaction when a limit is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// The last allowed model call has no tools and is asked for an honest answer.
    #[default]
    Finalize,
    /// All allowed calls may use tools. Then the run stops with a text that explains why.
    Stop,
    /// Like `stop`, but the view is restored to its state before the run. The log keeps everything.
    Rollback,
}

/// A kind of limit, in the order in which limits are checked.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LimitKind {
    /// `max_turns`.
    #[serde(alias = "turns")]
    MaxTurns,
    /// `max_total_tokens`.
    #[serde(alias = "tokens")]
    MaxTokens,
    /// `max_cost`, in billionths of a dollar.
    #[serde(alias = "cost")]
    MaxCost,
    /// `max_duration`, in milliseconds.
    #[serde(alias = "duration")]
    MaxDuration,
    /// `max_tool_calls`.
    #[serde(alias = "tool_calls")]
    ToolLimit,
    /// `max_memory`, in bytes.
    #[serde(alias = "memory")]
    MaxMemory,
}

impl LimitKind {
    /// Returns the limited quantity, such as "tool calls".
    #[must_use]
    pub fn noun(self) -> &'static str {
        let word: &str = self.into();
        word.strip_prefix("max_").unwrap_or("tool calls")
    }

    /// Returns an amount with its unit. Turns, tokens and tool calls are mere numbers.
    pub(crate) fn amount(self, amount: u64) -> String {
        match self {
            Self::MaxCost => Money(amount).to_string(),
            Self::MaxDuration => {
                let seconds = format!("{:.1}", Duration::from_millis(amount).as_secs_f64());
                format!("{} s", seconds.strip_suffix(".0").unwrap_or(&seconds))
            }
            Self::MaxMemory => format!("{amount} bytes"),
            Self::MaxTurns | Self::MaxTokens | Self::ToolLimit => amount.to_string(),
        }
    }
}

impl ExecutionLimits {
    /// Returns limits that only restrict the number of turns.
    #[must_use]
    pub fn turns(max_turns: u64) -> Self {
        Self {
            max_turns: Some(max_turns),
            ..Self::default()
        }
    }

    /// Returns limits for unattended runs: 50 turns, 1,000,000 tokens and 600 s.
    #[must_use]
    pub fn standard() -> Self {
        Self {
            max_total_tokens: Some(MAX_TOTAL_TOKENS),
            max_duration: Some(MAX_DURATION),
            ..Self::turns(MAX_TURNS)
        }
    }

    /// Returns the limit of a kind, in the unit of [`LimitKind`]. `None` if it is not set.
    #[must_use]
    pub fn of(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::MaxTurns => self.max_turns,
            LimitKind::MaxTokens => self.max_total_tokens.map(|tokens| tokens.0),
            LimitKind::MaxCost => self.max_cost.map(|money| money.0),
            LimitKind::MaxDuration => self.max_duration.map(millis),
            LimitKind::ToolLimit => self.max_tool_calls,
            LimitKind::MaxMemory => self.max_memory.map(|bytes| bytes.0),
        }
    }

    /// Returns the number of model calls: [`MAX_TURNS`] if it is not set.
    #[must_use]
    pub fn max_turns(&self) -> u64 {
        self.max_turns.unwrap_or(MAX_TURNS)
    }

    /// Returns which tokens count.
    #[must_use]
    pub fn count_tokens(&self) -> CountTokens {
        self.count_tokens.unwrap_or_default()
    }

    /// Returns the reaction when a limit is reached.
    #[must_use]
    pub fn at_limit(&self) -> AtLimit {
        self.at_limit.unwrap_or_default()
    }

    /// Returns the limits of a run, in which every default is filled in.
    #[must_use]
    pub fn filled(&self) -> Self {
        Self {
            max_turns: Some(self.max_turns()),
            count_tokens: Some(self.count_tokens()),
            at_limit: Some(self.at_limit()),
            ..*self
        }
    }

    /// Returns `other` with every limit replaced that is set here. Tools that are not listed keep
    /// their limit.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        Self {
            max_turns: self.max_turns.or(other.max_turns),
            max_total_tokens: self.max_total_tokens.or(other.max_total_tokens),
            count_tokens: self.count_tokens.or(other.count_tokens),
            max_duration: self.max_duration.or(other.max_duration),
            max_cost: self.max_cost.or(other.max_cost),
            max_tool_calls: self.max_tool_calls.or(other.max_tool_calls),
            max_identical_tool_calls: self
                .max_identical_tool_calls
                .or(other.max_identical_tool_calls),
            tool_call_history_size: self.tool_call_history_size.or(other.tool_call_history_size),
            max_memory: self.max_memory.or(other.max_memory),
            at_limit: self.at_limit.or(other.at_limit),
        }
    }

    /// Returns the tighter limit of both in each kind. This one decides on the reaction at a limit, if
    /// it sets one.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let count_tokens = match (self.max_total_tokens, other.max_total_tokens) {
            (_, None) => self.count_tokens,
            (None, _) => other.count_tokens,
            _ if self.count_tokens == other.count_tokens => self.count_tokens,
            // Counting all tokens is the stricter rule.
            _ => Some(CountTokens::Processed),
        };
        Self {
            max_turns: least(self.max_turns, other.max_turns),
            max_total_tokens: least(self.max_total_tokens, other.max_total_tokens),
            count_tokens,
            max_duration: least(self.max_duration, other.max_duration),
            max_cost: least(self.max_cost, other.max_cost),
            max_tool_calls: least(self.max_tool_calls, other.max_tool_calls),
            max_identical_tool_calls: least(
                self.identical_tool_calls(),
                other.identical_tool_calls(),
            ),
            // As long as both remember; neither shortens the default of the other.
            tool_call_history_size: self
                .tool_call_history_size
                .or(other.tool_call_history_size)
                .map(|_| self.loop_history().max(other.loop_history())),
            max_memory: least(self.max_memory, other.max_memory),
            at_limit: self.at_limit.or(other.at_limit),
        }
    }

    /// Returns how many identical batches in a row are allowed; `None` if loop detection is off.
    #[must_use]
    pub fn identical_tool_calls(&self) -> Option<u64> {
        let default = self.tool_call_history_size.map(|_| IDENTICAL_TOOL_CALLS);
        self.max_identical_tool_calls.or(default)
    }

    /// Returns how many batches loop detection remembers.
    #[must_use]
    pub fn loop_history(&self) -> usize {
        self.tool_call_history_size.unwrap_or_else(|| {
            let repeated = self.max_identical_tool_calls.unwrap_or_default();
            let least = usize::try_from(repeated).unwrap_or(usize::MAX);
            least.saturating_add(1).max(MIN_HISTORY)
        })
    }

    /// Returns all errors in the limits, one sentence each.
    #[must_use]
    pub fn faults(&self) -> Vec<SettingFault> {
        let (no_tokens, no_memory) = (Some(Tokens::ZERO), Some(Bytes(0)));
        let is_looping = self.max_identical_tool_calls == Some(0);
        let zeros = SettingFault::zeros([
            (&["max_turns"], self.max_turns == Some(0)),
            (&["max_total_tokens"], self.max_total_tokens == no_tokens),
            (&["max_duration"], self.max_duration == Some(Duration::ZERO)),
            (&["max_cost"], self.max_cost == Some(Money(0))),
            (&["max_memory"], self.max_memory == no_memory),
            (&["max_identical_tool_calls"], is_looping),
        ]);
        let mut faults: Vec<SettingFault> = zeros.collect();
        let looping = DoomLoopTracker::fault(self.max_identical_tool_calls, self.loop_history());
        let settings = &["max_identical_tool_calls", "tool_call_history_size"];
        faults.extend(looping.map(|text| SettingFault::new(settings, text)));
        faults
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the smaller limit. `None` is no limit.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_of_both_holds() {
        let own = ExecutionLimits {
            max_tool_calls: Some(3),
            count_tokens: Some(CountTokens::Growth),
            max_total_tokens: Some(Tokens(5)),
            at_limit: Some(AtLimit::Stop),
            ..ExecutionLimits::turns(10)
        };
        let given = ExecutionLimits::turns(20);
        let both = given.within(&own);
        assert_eq!((both.max_turns, both.max_tool_calls), (Some(10), Some(3)));
        assert_eq!(both.count_tokens, Some(CountTokens::Growth));
        assert_eq!(both.at_limit, Some(AtLimit::Stop));
        let counted = ExecutionLimits::standard().within(&own);
        assert_eq!(counted.max_total_tokens, Some(Tokens(5)));
        assert_eq!(counted.count_tokens, Some(CountTokens::Processed));
        assert_eq!(counted.max_duration, Some(MAX_DURATION));
    }

    #[test]
    fn loop_detection_is_never_loosened() {
        let limits = |identical, history| ExecutionLimits {
            max_identical_tool_calls: identical,
            tool_call_history_size: history,
            ..ExecutionLimits::default()
        };
        for (one, other, identical, history) in [
            // The default of a history alone.
            (
                limits(None, Some(12)),
                limits(Some(9), None),
                Some(4),
                Some(12),
            ),
            (
                limits(Some(20), None),
                limits(None, Some(10)),
                Some(4),
                Some(21),
            ),
            (limits(Some(3), None), limits(None, None), Some(3), None),
            (limits(None, None), limits(None, None), None, None),
        ] {
            for both in [one.within(&other), other.within(&one)] {
                assert_eq!(both, limits(identical, history));
            }
        }
    }
}
