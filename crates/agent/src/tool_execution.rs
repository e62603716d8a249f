//! [`ToolExecutionStrategy`]: the number of tool calls of one message that run at the same time.
//!
//! Results are always in call order.

use serde::{Deserialize, Serialize};

/// Upper bound for the configured number of parallel tool calls. Each may hold a process or a
/// connection.
pub const MAX_PARALLEL_TOOLS: usize = 64;
/// Maximum number of tool calls of one message that run; the others receive an explanatory result. A
/// message with more calls is a malfunction of the model, and each call costs resources of the host.
pub const MAX_BATCH: usize = 128;

/// The number of tool calls of one message that run at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolExecutionStrategy {
    /// One after the other.
    #[default]
    Sequential,
    /// All of them, up to [`MAX_PARALLEL_TOOLS`].
    Parallel,
    /// This number of calls.
    Batched(usize),
}

impl ToolExecutionStrategy {
    /// Returns the number for `max_parallel_tools`.
    ///
    /// # Errors
    /// If the number is 0 or above [`MAX_PARALLEL_TOOLS`]. The error states the valid range.
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
