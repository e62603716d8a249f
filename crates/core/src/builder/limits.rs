//! Settings of how long a run may be, and of how its tools run. Not the checking of limits; that is
//! the machine's.

use std::time::Duration;

use plimsoll_agent::{AtLimit, CountTokens, ExecutionLimits, Permissions, ToolExecutionStrategy};
use plimsoll_context::{Bytes, Money, Tokens};

use super::AgentBuilder;
use crate::secret::Secret;

impl AgentBuilder {
    /// How long a run may be: all limits at once, in place of those set before. Default: 50 turns and
    /// no other limit; [`ExecutionLimits::default`] has one of tokens and one of time besides.
    pub fn execution_limits(mut self, limits: ExecutionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Model calls in a run. Default 50.
    #[doc(alias = "max_steps")]
    #[doc(alias = "max_iterations")]
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.limits.max_turns = turns;
        self
    }

    /// Tokens in a run. Default: no limit.
    pub fn max_total_tokens(mut self, tokens: impl Into<Option<Tokens>>) -> Self {
        self.limits.max_total_tokens = tokens.into();
        self
    }

    /// Which tokens count towards [`Self::max_total_tokens`]. Default: all that are processed.
    pub fn count_tokens(mut self, count: CountTokens) -> Self {
        self.limits.count_tokens = count;
        self
    }

    /// How long a run may take; a model call, a tool, a hook or a question that hangs is cut off.
    /// Default: no limit.
    pub fn max_duration(mut self, duration: impl Into<Option<Duration>>) -> Self {
        self.limits.max_duration = duration.into();
        self
    }

    /// What a run may cost, its summaries and sub-agents included. It needs [`Self::prices`], and
    /// [`Self::summarizer_prices`] where another model writes summaries. Default: no limit.
    pub fn max_cost(mut self, cost: impl Into<Option<Money>>) -> Self {
        self.limits.max_cost = cost.into();
        self
    }

    /// Tool calls that run in a run. Default: no limit.
    pub fn max_tool_calls(mut self, calls: u64) -> Self {
        self.limits.max_tool_calls = Some(calls);
        self
    }

    /// Calls of one tool that run in a run. Default: no limit.
    pub fn max_calls_per_tool(mut self, tool: impl Into<String>, calls: u64) -> Self {
        self.limits.max_calls_per_tool.insert(tool.into(), calls);
        self
    }

    /// How often in a row the same batch of tool calls may be asked for while its results do not
    /// change. Default: no limit; 1 acts as 2.
    pub fn max_identical_tool_calls(mut self, times: u64) -> Self {
        self.limits.max_identical_tool_calls = Some(times);
        self
    }

    /// Batches that loop detection remembers. Default 10.
    pub fn tool_call_history_size(mut self, batches: usize) -> Self {
        self.limits.tool_call_history_size = batches;
        self
    }

    /// What the messages of a run may take of this process's memory. Default: no limit.
    pub fn max_memory(mut self, bytes: impl Into<Option<Bytes>>) -> Self {
        self.limits.max_memory = bytes.into();
        self
    }

    /// What happens when a limit is reached. Default: the model is asked to finish.
    pub fn at_limit(mut self, at_limit: AtLimit) -> Self {
        self.limits.at_limit = at_limit;
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
    /// a call decides. Default: the tool says whether to ask.
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

    /// How often a call of an idempotent tool is made again where it does not end in time; others
    /// never are. Default 3.
    pub fn tool_retries(mut self, retries: u32) -> Self {
        self.tool_retries = retries;
        self
    }
}
