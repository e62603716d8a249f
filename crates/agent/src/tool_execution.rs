//! [`ToolExecutionStrategy`]: how many tool calls of one message run at once. Their results are in
//! call order, whatever it is and whichever ends first.

use serde::{Deserialize, Serialize};

/// Tool calls that run at once, at most, whatever was asked for: each may hold a process or a
/// connection.
pub const MAX_PARALLEL_TOOLS: usize = 64;
/// Tool calls of one message that run, at most; the others get a result that says so. A model that
/// writes more is out of its mind, and each call costs the host something.
pub const MAX_BATCH: usize = 128;

/// How many tool calls of one message run at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolExecutionStrategy {
    /// One after the other.
    #[default]
    Sequential,
    /// All of them, up to [`MAX_PARALLEL_TOOLS`].
    Parallel,
    /// So many.
    Batched(usize),
}

impl ToolExecutionStrategy {
    /// The same as `max_parallel_tools`.
    ///
    /// # Errors
    /// For none at once, or for more than [`MAX_PARALLEL_TOOLS`]: what to do instead.
    pub fn max_parallel_tools(self) -> Result<usize, String> {
        match self {
            Self::Sequential => Ok(1),
            Self::Parallel => Ok(MAX_PARALLEL_TOOLS),
            Self::Batched(calls) if (1..=MAX_PARALLEL_TOOLS).contains(&calls) => Ok(calls),
            Self::Batched(calls) => Err(format!(
                "tool_execution is batched({calls}); choose 1 to {MAX_PARALLEL_TOOLS} calls at once"
            )),
        }
    }
}
