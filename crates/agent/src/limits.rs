//! [`ExecutionLimits`]: how long a run may be. Not the size of the view; that is a budget. Not what a
//! run has used; that is `tracker.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_context::{Bytes, Money, Tokens};
use serde::{Deserialize, Serialize};

use crate::doom_loop::DoomLoopTracker;

/// Turns of a run where nothing else is said.
pub const MAX_TURNS: u64 = 50;
/// Tokens of a run by these limits where nothing else is said.
pub const MAX_TOTAL_TOKENS: Tokens = Tokens(1_000_000);
/// How long a run may take by these limits where nothing else is said.
pub const MAX_DURATION: Duration = Duration::from_secs(600);
/// Batches that loop detection remembers where nothing else is said.
pub const TOOL_CALL_HISTORY: usize = 10;

/// How long a run may be.
///
/// An agent to which nothing is said has 50 turns and no other limit ([`ExecutionLimits::turns`]); one
/// that is given these has the defaults below for what is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionLimits {
    /// Model calls in a run. Default 50; at least 1.
    #[serde(alias = "max_steps", alias = "max_iterations")]
    pub max_turns: u64,
    /// Tokens in a run, as `count_tokens` counts them. Default 1,000,000.
    pub max_total_tokens: Option<Tokens>,
    /// Which tokens count. Default: all that are processed.
    pub count_tokens: CountTokens,
    /// How long a run may take; a model call or a tool that hangs is cut off. Default 600 s. A run
    /// that goes on after a crash starts its clock anew.
    pub max_duration: Option<Duration>,
    /// What a run may cost, its summaries and sub-agents included. Default: no limit. It needs a
    /// model whose price is known.
    pub max_cost: Option<Money>,
    /// Tool calls that run in a run. Default: no limit.
    pub max_tool_calls: Option<u64>,
    /// Calls of one tool that run in a run, by its name. Default: no limit.
    pub max_calls_per_tool: BTreeMap<String, u64>,
    /// How often in a row the same batch of tool calls may be asked for while its results do not
    /// change. After one less the model is told so; this one and the next do not run; then the run
    /// ends. Default: no limit; 1 acts as 2; 0 is refused.
    pub max_identical_tool_calls: Option<u64>,
    /// Batches of tool calls that loop detection remembers, where it is on. Default 10; at least that
    /// and one more than `max_identical_tool_calls`.
    pub tool_call_history_size: usize,
    /// What the messages of a run may take of this process's memory. Default: no limit.
    pub max_memory: Option<Bytes>,
    /// What happens when one is reached.
    pub at_limit: AtLimit,
}

/// Which tokens count towards `max_total_tokens`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountTokens {
    /// Everything that is read and written, in each call anew, whether it came from a cache or not.
    #[default]
    Processed,
    /// What is new in each call: what it writes, and what it reads that the call before had neither
    /// read nor written.
    Growth,
}

/// What happens when a limit is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// The last allowed model call is asked for an honest answer, without tools.
    #[default]
    Finalize,
    /// All allowed calls may use tools; then the run stops with a text that says so.
    Stop,
    /// The same, and the view is put back to what it was before the run; the log keeps both.
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
            tool_call_history_size: TOOL_CALL_HISTORY,
            max_memory: None,
            at_limit: AtLimit::Finalize,
        }
    }
}

impl ExecutionLimits {
    /// No limit but the number of turns.
    #[must_use]
    pub fn turns(max_turns: u64) -> Self {
        Self {
            max_turns,
            max_total_tokens: None,
            max_duration: None,
            ..Self::default()
        }
    }

    /// Everything that is wrong with them, one sentence each.
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
        let history = self.tool_call_history_size;
        faults.extend(DoomLoopTracker::fault(
            self.max_identical_tool_calls,
            history,
        ));
        faults
    }
}
