//! [`BuilderSettings`]: the settings of an [`AgentBuilder`](crate::AgentBuilder) that are plain data,
//! each declared once with its default.

use std::time::Duration;

use plimsoll_agent::{ExecutionLimits, Sampling, ToolExecutionStrategy, TurnTrigger};
use plimsoll_context::{
    ArgumentDigest, Bytes, CacheConfig, CacheRetention, ContextConfig, ContextStrategy, HostedTool,
    SessionPruneConfig, SummaryConfig, Threshold, Tokens, ViewLimits,
};
use serde::Deserialize;
use smart_default::SmartDefault;

use crate::host_steps::MAX_STEP_RESULT;
use crate::retry::RetryConfig;
use crate::window::Window;

/// Default number of retries after a timeout. Only idempotent tools are retried.
pub const TOOL_RETRIES: u32 = 3;
/// Default timeout of one summarizer call, including its retries. The run waits for the summary.
pub const SUMMARY_TIMEOUT: Duration = Duration::from_secs(120);

/// The settings of an [`AgentBuilder`](crate::AgentBuilder) that are plain data. The builder has a
/// method for each; [`AgentBuilder::settings`](crate::AgentBuilder::settings) replaces them all.
#[derive(Debug, Clone, SmartDefault, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BuilderSettings {
    /// A text that is sent after the history of each request but is not part of it.
    pub dynamic_context: Option<String>,
    /// The source of the model's context window.
    pub window: Window,
    /// Maximum number of tokens of one answer. `None`: chosen by the provider.
    pub max_tokens: Option<Tokens>,
    /// The temperature, the seed and the thinking level. `None`: chosen by the provider.
    pub sampling: Sampling,
    /// The preset policy with its trigger. `None`: `summarize` with a summarizer, else `extract`.
    pub context_strategy: Option<ContextStrategy>,
    /// A context limited by its size, instead of a preset policy. `None`: the policy decides.
    pub context_config: Option<ContextConfig>,
    /// The size above which a plan is due.
    pub trigger: Threshold,
    /// The size at which a plan ends. `None`: see [`ViewLimits::target`].
    pub target: Option<Threshold>,
    /// Maximum size of one tool result in the view. `None`: see [`ViewLimits::max_result`].
    pub max_result: Option<Tokens>,
    /// The number of newest complete exchanges that are protected.
    #[default(ViewLimits::default().keep_recent)]
    pub keep_recent: usize,
    /// Maximum number of messages in the view. `None`: no limit.
    pub max_history_messages: Option<usize>,
    /// How long texts in the arguments of old calls are replaced. `None`: they are kept.
    pub argument_digest: Option<ArgumentDigest>,
    /// How old results are shortened. `None`: as the strategy does by default.
    pub session_prune: Option<SessionPruneConfig>,
    /// The size and the author of summaries.
    pub summary: SummaryConfig,
    /// Whether evicted messages are summarized, if the strategy supports it.
    #[default(true)]
    pub summarization: bool,
    /// How the provider's prompt cache is used.
    pub cache: CacheConfig,
    /// How long the provider is asked to keep that cache.
    pub retention: CacheRetention,
    /// Tools that the provider runs itself.
    pub hosted_tools: Vec<HostedTool>,
    /// Whether the model gets tools to recall evicted messages.
    #[default(true)]
    pub recall: bool,
    /// Whether `recall` is also offered as `get_tool_response`.
    pub get_tool_response: bool,
    /// Rules that are never evicted or shortened.
    pub pins: Vec<String>,
    /// The limits of a run.
    pub limits: ExecutionLimits,
    /// Maximum number of tool calls that run at the same time. `None`: by `tool_execution`.
    pub max_parallel_tools: Option<usize>,
    /// How the tool calls of one message are executed. `None`: by `max_parallel_tools`, else one
    /// after the other.
    pub tool_execution: Option<ToolExecutionStrategy>,
    /// Variables that child processes inherit although they look like keys.
    pub pass_env: Vec<String>,
    /// The settings of calls of models, tools and the gate.
    pub driver: DriverSettings,
    /// The name of the configuration in run ids. `None`:
    /// [`DEFAULT_CONFIG`](plimsoll_agent::DEFAULT_CONFIG).
    pub config_id: Option<String>,
    /// The trigger of a run's first turn.
    pub first_turn_trigger: TurnTrigger,
}

/// The settings of calls of models, tools and the gate.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriverSettings {
    /// When a failed model call is retried.
    pub retry: RetryConfig,
    /// The timeout of one call of the summarizer. `None`: [`SUMMARY_TIMEOUT`](crate::SUMMARY_TIMEOUT).
    pub summary_timeout: Option<Duration>,
    /// How often a call of an idempotent tool is retried after a timeout.
    #[default(TOOL_RETRIES)]
    pub tool_retries: u32,
    /// Maximum size of a tool result in the steps for the host.
    #[default(MAX_STEP_RESULT)]
    pub max_step_result: Bytes,
    /// How long to wait for the gate. `None`: no limit.
    pub gate_timeout: Option<Duration>,
}

impl BuilderSettings {
    /// Returns the limits of the view, whose window is found later.
    pub(crate) fn view_limits(&self) -> ViewLimits {
        ViewLimits {
            trigger: self.trigger,
            target: self.target,
            max_result: self.max_result,
            keep_recent: self.keep_recent,
            ..ViewLimits::default()
        }
    }

    /// Returns the maximum number of concurrent tool calls. It can be set in two ways; if both were
    /// used, their values have been checked to agree.
    pub(crate) fn parallel_tools(&self) -> usize {
        let strategy = self.tool_execution.unwrap_or_default();
        self.max_parallel_tools
            .unwrap_or_else(|| strategy.max_parallel_tools().unwrap_or(1))
    }
}
