//! [`ExecutionLimits`]: limits on the length and the cost of a run.
//!
//! The size of the view is limited by a budget instead. `tracker.rs` measures the usage.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_context::{Bytes, Money, Tokens, nearest};
use serde::{Deserialize, Serialize};

use crate::doom_loop::DoomLoopTracker;

/// Default number of turns of a run.
pub const MAX_TURNS: u64 = 50;
/// Default number of tokens of a run that has these limits.
pub const MAX_TOTAL_TOKENS: Tokens = Tokens(1_000_000);
/// Default duration of a run that has these limits.
pub const MAX_DURATION: Duration = Duration::from_secs(600);
/// Default number of batches that loop detection remembers.
pub const TOOL_CALL_HISTORY: usize = 10;
/// How many identical batches in a row loop detection allows if only `tool_call_history_size` is set.
pub const IDENTICAL_TOOL_CALLS: u64 = 4;

/// Limits on the length and the cost of a run.
///
/// An agent without a configuration has 50 turns and no other limit ([`ExecutionLimits::turns`]). An
/// agent with a configuration has the defaults below for all fields that are not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionLimits {
    /// Model calls in a run. Default 50; at least 1.
    pub max_turns: u64,
    /// Tokens in a run, as `count_tokens` counts them. Default 1,000,000.
    pub max_total_tokens: Option<Tokens>,
    /// The tokens that count. Default: all processed tokens.
    pub count_tokens: CountTokens,
    /// Maximum duration of a run; a model call or a tool that hangs is aborted. Default 600 s. The
    /// clock restarts if the run continues after a crash.
    pub max_duration: Option<Duration>,
    /// Maximum cost of a run, including summaries and sub-agents. Requires a model with known prices.
    /// Default: no limit.
    pub max_cost: Option<Money>,
    /// Executed tool calls in a run. Default: no limit.
    pub max_tool_calls: Option<u64>,
    /// Executed calls of one tool in a run, by tool name. Default: no limit. A name that the agent
    /// does not have is allowed here, since the limits also apply to sub-agents and branches with
    /// other tools; the builder's own `max_calls_per_tool` refuses it.
    pub max_calls_per_tool: BTreeMap<String, u64>,
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
    /// The reaction when a limit is reached.
    pub at_limit: AtLimit,
}

/// The tokens that count towards `max_total_tokens`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl Default for ExecutionLimits {
    fn default() -> Self {
        Self {
            max_turns: MAX_TURNS,
            max_total_tokens: Some(MAX_TOTAL_TOKENS),
            count_tokens: CountTokens::default(),
            max_duration: Some(MAX_DURATION),
            max_cost: None,
            max_tool_calls: None,
            max_calls_per_tool: BTreeMap::new(),
            max_identical_tool_calls: None,
            tool_call_history_size: None,
            max_memory: None,
            at_limit: AtLimit::Finalize,
        }
    }
}

impl ExecutionLimits {
    /// Returns limits that only restrict the number of turns.
    #[must_use]
    pub fn turns(max_turns: u64) -> Self {
        Self {
            max_turns,
            max_total_tokens: None,
            max_duration: None,
            ..Self::default()
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
            least.saturating_add(1).max(TOOL_CALL_HISTORY)
        })
    }

    /// Returns the error of a name in `max_calls_per_tool` that is not among the known tools.
    #[must_use]
    pub fn no_such_tool(name: &str, known: &[&str]) -> String {
        let near = nearest(name, known.iter().copied());
        let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        format!("max_calls_per_tool names `{name}`, and there is no such tool{near}")
    }

    /// Returns all errors in the limits, one sentence each.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |bad: bool, text: &str| {
            if bad {
                faults.push(text.to_owned());
            }
        };
        fault(self.max_turns == 0, "max_turns is 0; allow at least 1 turn");
        fault(
            self.max_total_tokens == Some(Tokens::ZERO),
            "max_total_tokens is 0; allow at least 1, or no limit",
        );
        fault(
            self.max_duration == Some(Duration::ZERO),
            "max_duration is 0; allow some time, or no limit",
        );
        fault(
            self.max_cost == Some(Money(0)),
            "max_cost is 0; allow some money, or no limit",
        );
        fault(
            self.max_memory == Some(Bytes(0)),
            "max_memory is 0; allow some bytes, or no limit",
        );
        fault(
            self.max_identical_tool_calls == Some(0),
            "max_identical_tool_calls is 0; allow at least 1, or leave it unset for no limit",
        );
        faults.extend(DoomLoopTracker::fault(
            self.max_identical_tool_calls,
            self.loop_history(),
        ));
        faults
    }
}

/// Limits that override other limits one by one: `None` keeps a limit, and `Some(None)` removes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitOverrides {
    /// See [`ExecutionLimits::max_turns`].
    pub max_turns: Option<u64>,
    /// See [`ExecutionLimits::max_total_tokens`].
    pub max_total_tokens: Option<Option<Tokens>>,
    /// See [`ExecutionLimits::count_tokens`].
    pub count_tokens: Option<CountTokens>,
    /// See [`ExecutionLimits::max_duration`].
    pub max_duration: Option<Option<Duration>>,
    /// See [`ExecutionLimits::max_cost`].
    pub max_cost: Option<Option<Money>>,
    /// See [`ExecutionLimits::max_tool_calls`].
    pub max_tool_calls: Option<Option<u64>>,
    /// See [`ExecutionLimits::max_calls_per_tool`]; tools that are not listed keep their limit.
    pub max_calls_per_tool: BTreeMap<String, u64>,
    /// See [`ExecutionLimits::max_identical_tool_calls`].
    pub max_identical_tool_calls: Option<Option<u64>>,
    /// See [`ExecutionLimits::tool_call_history_size`].
    pub tool_call_history_size: Option<Option<usize>>,
    /// See [`ExecutionLimits::max_memory`].
    pub max_memory: Option<Option<Bytes>>,
    /// See [`ExecutionLimits::at_limit`].
    pub at_limit: Option<AtLimit>,
}

impl LimitOverrides {
    /// Returns `limits` with every limit replaced that is set here.
    #[must_use]
    pub fn over(&self, limits: &ExecutionLimits) -> ExecutionLimits {
        let mut per_tool = limits.max_calls_per_tool.clone();
        let own = self.max_calls_per_tool.iter();
        per_tool.extend(own.map(|(tool, calls)| (tool.clone(), *calls)));
        ExecutionLimits {
            max_turns: self.max_turns.unwrap_or(limits.max_turns),
            max_total_tokens: self.max_total_tokens.unwrap_or(limits.max_total_tokens),
            count_tokens: self.count_tokens.unwrap_or(limits.count_tokens),
            max_duration: self.max_duration.unwrap_or(limits.max_duration),
            max_cost: self.max_cost.unwrap_or(limits.max_cost),
            max_tool_calls: self.max_tool_calls.unwrap_or(limits.max_tool_calls),
            max_calls_per_tool: per_tool,
            max_identical_tool_calls: self
                .max_identical_tool_calls
                .unwrap_or(limits.max_identical_tool_calls),
            tool_call_history_size: self
                .tool_call_history_size
                .unwrap_or(limits.tool_call_history_size),
            max_memory: self.max_memory.unwrap_or(limits.max_memory),
            at_limit: self.at_limit.unwrap_or(limits.at_limit),
        }
    }
}
