//! Settings for the limits of a run and the execution of its tools.

use std::time::Duration;

use plimsoll_agent::{AtLimit, ExecutionLimits, Permissions, ToolExecutionStrategy};
use plimsoll_context::{Money, Tokens};

use super::AgentBuilder;
use crate::secret::Secret;

impl AgentBuilder {
    /// Sets several limits of a run at once. Limits that `limits` does not set stay as they are.
    /// Default: 50 turns and no other limit.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::ExecutionLimits;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).execution_limits(ExecutionLimits::turns(10)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn execution_limits(mut self, limits: ExecutionLimits) -> Self {
        self.settings.limits = limits.over(&self.settings.limits);
        self
    }

    /// Sets the maximum number of model calls in a run. Default 50.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).max_turns(10).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    #[doc(alias = "max_steps")]
    #[doc(alias = "max_iterations")]
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.settings.limits.max_turns = Some(turns);
        self
    }

    /// Sets the maximum number of tokens in a run. Default: no limit.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::Tokens;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).max_total_tokens(Tokens(200_000)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn max_total_tokens(mut self, tokens: impl Into<Option<Tokens>>) -> Self {
        self.settings.limits.max_total_tokens = tokens.into();
        self
    }

    /// Sets the maximum duration of a run. Model calls, tools, hooks and pending approvals are cut
    /// off at the deadline. Default: no limit.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::time::Duration;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).max_duration(Duration::from_secs(300)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn max_duration(mut self, duration: impl Into<Option<Duration>>) -> Self {
        self.settings.limits.max_duration = duration.into();
        self
    }

    /// Sets the maximum cost of a run, including summaries and sub-agents. Requires
    /// [`Self::prices`], and [`Self::summarizer_prices`] if another model writes summaries.
    /// Default: no limit.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::{Money, PriceSheet, Rates};
    /// # let model = ScriptedProvider::new([]);
    /// let rates = Rates {
    ///     input: Money(3_000_000_000),
    ///     output: Money(15_000_000_000),
    ///     cache_read: None,
    ///     cache_write: None,
    /// };
    /// let agent = Agent::builder(model)
    ///     .prices(PriceSheet::of(rates))
    ///     .max_cost(Money(250_000_000))
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn max_cost(mut self, cost: impl Into<Option<Money>>) -> Self {
        self.settings.limits.max_cost = cost.into();
        self
    }

    /// Sets the maximum number of executed tool calls in a run. Default: no limit.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).max_tool_calls(40).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn max_tool_calls(mut self, calls: u64) -> Self {
        self.settings.limits.max_tool_calls = Some(calls);
        self
    }

    /// Sets how often in a row the model may request the same batch of tool calls while the results
    /// do not change. Default: no limit, or 4 with [`ExecutionLimits::tool_call_history_size`]; 1 acts as 2.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).max_identical_tool_calls(3).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn max_identical_tool_calls(mut self, times: u64) -> Self {
        self.settings.limits.max_identical_tool_calls = Some(times);
        self
    }

    /// Sets the action when a limit is reached. Default: the model is asked to finish.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::AtLimit;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).at_limit(AtLimit::Stop).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn at_limit(mut self, at_limit: AtLimit) -> Self {
        self.settings.limits.at_limit = Some(at_limit);
        self
    }

    /// Sets the maximum number of concurrent tool calls. Default 1.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).max_parallel_tools(4).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn max_parallel_tools(mut self, calls: usize) -> Self {
        self.settings.max_parallel_tools = Some(calls);
        self
    }

    /// Sets the number of concurrent tool calls by name: sequential is 1, parallel is the maximum.
    /// If [`Self::max_parallel_tools`] is set too, both must agree.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::ToolExecutionStrategy;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .tool_execution(ToolExecutionStrategy::Parallel)
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn tool_execution(mut self, strategy: ToolExecutionStrategy) -> Self {
        self.settings.tool_execution = Some(strategy);
        self
    }

    /// Sets which tool calls run, which are denied, and which need approval. The first rule that
    /// matches a call decides, otherwise the mode. Default: no rules and
    /// [`PermissionMode::AutoEdit`], so that the tool decides whether to ask.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::{PermissionMode, Permissions};
    /// # let model = ScriptedProvider::new([]);
    /// let read_only = Permissions::default().with_mode(PermissionMode::ReadOnly);
    /// let agent = Agent::builder(model).permissions(read_only).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    ///
    /// [`PermissionMode::AutoEdit`]: plimsoll_agent::PermissionMode::AutoEdit
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Adds secrets that are removed from tool results before these are logged or sent. The secrets
    /// of the providers and of the variables withheld from child processes are included
    /// automatically.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_core::Secret;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .secrets([Secret::new("correct horse battery staple")])
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn secrets(mut self, secrets: impl IntoIterator<Item = Secret>) -> Self {
        self.secrets.extend(secrets);
        self
    }
}
