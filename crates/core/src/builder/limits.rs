//! Settings of how long a run may be, and of how its tools run. Not the checking of limits; that is
//! the machine's.

use std::time::Duration;

use plimsoll_agent::{AtLimit, CountTokens, ExecutionLimits, Permissions, ToolExecutionStrategy};
use plimsoll_context::{Bytes, Money, Tokens};

use super::AgentBuilder;
use crate::secret::Secret;

impl AgentBuilder {
    /// Sets all limits of a run at once. A limit that is set by its own method takes precedence,
    /// whichever is called first. Default: 50 turns and no other limit; [`ExecutionLimits::default`]
    /// also limits tokens and time.
    pub fn execution_limits(mut self, limits: ExecutionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Model calls in a run. Default 50.
    #[doc(alias = "max_steps")]
    #[doc(alias = "max_iterations")]
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.limit_overrides.max_turns = Some(turns);
        self
    }

    /// Tokens in a run. Default: no limit.
    pub fn max_total_tokens(mut self, tokens: impl Into<Option<Tokens>>) -> Self {
        self.limit_overrides.max_total_tokens = Some(tokens.into());
        self
    }

    /// Which tokens count towards [`Self::max_total_tokens`]. Default: all that are processed.
    pub fn count_tokens(mut self, count: CountTokens) -> Self {
        self.limit_overrides.count_tokens = Some(count);
        self
    }

    /// How long a run may take; a model call, a tool, a hook or a question that hangs is cut off.
    /// Default: no limit.
    pub fn max_duration(mut self, duration: impl Into<Option<Duration>>) -> Self {
        self.limit_overrides.max_duration = Some(duration.into());
        self
    }

    /// What a run may cost, its summaries and sub-agents included. It needs [`Self::prices`], and
    /// [`Self::summarizer_prices`] where another model writes summaries. Default: no limit.
    pub fn max_cost(mut self, cost: impl Into<Option<Money>>) -> Self {
        self.limit_overrides.max_cost = Some(cost.into());
        self
    }

    /// Tool calls that run in a run. Default: no limit.
    pub fn max_tool_calls(mut self, calls: u64) -> Self {
        self.limit_overrides.max_tool_calls = Some(Some(calls));
        self
    }

    /// Calls of one tool that run in a run. Default: no limit.
    pub fn max_calls_per_tool(mut self, tool: impl Into<String>, calls: u64) -> Self {
        let own = &mut self.limit_overrides.max_calls_per_tool;
        own.insert(tool.into(), calls);
        self
    }

    /// How often in a row the same batch of tool calls may be asked for while its results do not
    /// change. Default: no limit, or 4 with [`Self::tool_call_history_size`]; 1 acts as 2.
    pub fn max_identical_tool_calls(mut self, times: u64) -> Self {
        self.limit_overrides.max_identical_tool_calls = Some(Some(times));
        self
    }

    /// Sets how many batches loop detection remembers, and turns it on. Default 10, or one more than
    /// [`Self::max_identical_tool_calls`].
    pub fn tool_call_history_size(mut self, batches: usize) -> Self {
        self.limit_overrides.tool_call_history_size = Some(Some(batches));
        self
    }

    /// What the messages of a run may take of this process's memory. Default: no limit.
    pub fn max_memory(mut self, bytes: impl Into<Option<Bytes>>) -> Self {
        self.limit_overrides.max_memory = Some(bytes.into());
        self
    }

    /// What happens when a limit is reached. Default: the model is asked to finish.
    pub fn at_limit(mut self, at_limit: AtLimit) -> Self {
        self.limit_overrides.at_limit = Some(at_limit);
        self
    }

    /// Tool calls at once, at most. Default 1.
    pub fn max_parallel_tools(mut self, calls: usize) -> Self {
        self.max_parallel_tools = Some(calls);
        self
    }

    /// Tool calls at once, by another name: sequential is 1, parallel as many as may be. Where
    /// [`Self::max_parallel_tools`] is set too, both must say the same.
    pub fn tool_execution(mut self, strategy: ToolExecutionStrategy) -> Self {
        self.tool_execution = Some(strategy);
        self
    }

    /// Which tool calls run, which do not, and of which the gate is asked: the first rule that matches
    /// a call decides, else the mode. Default: no rules and [`PermissionMode::AutoEdit`]: the tool says whether
    /// to ask.
    ///
    /// [`PermissionMode::AutoEdit`]: plimsoll_agent::PermissionMode::AutoEdit
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Further secrets that are struck out of what tools return, before it is logged or sent. Those of the
    /// providers, and of the variables that are kept from child processes, need not be named.
    pub fn secrets(mut self, secrets: impl IntoIterator<Item = Secret>) -> Self {
        self.secrets.extend(secrets);
        self
    }

    /// Variables of the environment that commands get although their names look like those of secrets.
    /// Default: none. Their values are struck out of what tools return all the same.
    pub fn pass_env(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.pass_env.extend(names);
        self
    }

    /// How often a call of an idempotent tool is made again where it does not end in time; others
    /// never are. Default 3.
    pub fn tool_retries(mut self, retries: u32) -> Self {
        self.tool_retries = retries;
        self
    }
}
