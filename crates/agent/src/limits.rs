//! [`ExecutionLimits`]: how long a run may be. Not the size of the view; that is a budget.

use serde::{Deserialize, Serialize};

/// Turns of a run where nothing else is said.
pub const MAX_TURNS: u64 = 50;

/// How long a run may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionLimits {
    /// Model calls in a run. Default 50; at least 1.
    #[serde(alias = "max_steps", alias = "max_iterations")]
    pub max_turns: u64,
    /// Tool calls that run in a run. Default: no limit.
    pub max_tool_calls: Option<u64>,
    /// How often in a row the same batch of tool calls may be asked for while its results do not
    /// change. After one less the model is told so; this one and the next do not run; then the run
    /// ends. Default: no limit; 1 acts as 2; 0 is refused.
    pub max_identical_tool_calls: Option<u64>,
    /// What happens when one is reached.
    pub at_limit: AtLimit,
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
}

impl Default for ExecutionLimits {
    fn default() -> Self {
        Self {
            max_turns: MAX_TURNS,
            max_tool_calls: None,
            max_identical_tool_calls: None,
            at_limit: AtLimit::Finalize,
        }
    }
}
