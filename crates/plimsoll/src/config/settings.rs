//! [`AgentSettings`]: the settings of one agent, merged from all layers. They become the settings
//! of an [`AgentBuilder`]. The origins of the values are in the `Layer`s.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{
    ExecutionLimits, MAX_TURNS, PermissionMode, QueueMode, ThinkingLevel, ToolExecutionStrategy,
    TurnTrigger,
};
use plimsoll_context::{
    ArgumentDigest, Bpe, Bytes, CacheConfig, CacheRetention, CacheStrategy, Chars4,
    CompactionTiming, ContextConfig, ContextStrategy, Estimate, HostedTool, Memo, Ppm,
    SessionPruneConfig, SummaryConfig, Threshold, TokenCounter, Tokens,
};
use plimsoll_core::{
    AgentBuilder, CommandHook, HOOK_TIMEOUT, MAX_STEP_RESULT, RetryConfig, TOOL_RETRIES, Window,
};
use plimsoll_tools::SandboxMode;
use plimsoll_wire::openai_chat::ToolStyle;

use super::permission::Rule;

/// The names of the token counters.
pub const COUNTERS: [&str; 4] = ["o200k", "cl100k", "estimate", "chars4"];

/// Returns the token counter of this name, or `None` if it is not one of [`COUNTERS`].
#[must_use]
pub fn token_counter(name: &str) -> Option<Arc<dyn TokenCounter>> {
    Some(match name {
        "o200k" => Arc::new(Memo::new(Bpe::o200k())),
        "cl100k" => Arc::new(Memo::new(Bpe::cl100k())),
        "estimate" => Arc::new(Estimate),
        "chars4" => Arc::new(Chars4),
        _ => return None,
    })
}

/// Calls a method of the builder for each of these settings that has a value.
macro_rules! with_given {
    ($builder:ident, $($method:ident($setting:expr)),* $(,)?) => {
        $(if let Some(value) = $setting {
            $builder = $builder.$method(value);
        })*
    };
}

/// The settings of one agent. Settings that are not configured have their defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    /// The name, if any.
    pub name: Option<String>,
    /// The purpose of the agent, as told to agents that may call it.
    pub description: Option<String>,
    /// The model, as PROVIDER/NAME.
    pub model: Option<String>,
    /// The server's address, if it is not the vendor's.
    pub base_url: Option<String>,
    /// The source of the model's context window.
    pub window: WindowSetting,
    /// The system prompt.
    pub system: Option<String>,
    /// A file with the system prompt.
    pub system_file: Option<PathBuf>,
    /// A text that is sent after the history in each request.
    pub dynamic_context: Option<String>,
    /// Names of tools, or `all` or `none`.
    pub tools: Vec<String>,
    /// How the model calls tools.
    pub tool_style: Option<ToolStyle>,
    /// The directory that file tools must not leave.
    pub root: PathBuf,
    /// Agents of the same file that it may call.
    pub sub_agents: Vec<String>,
    /// Folders with skills; `None` for the program's default folders.
    pub skills: Option<Vec<PathBuf>>,
    /// The tool servers that it uses; `None` for all.
    pub mcp: Option<Vec<String>>,
    /// The name of the preset policy, if any.
    pub strategy: Option<&'static str>,
    /// The size that triggers a compaction.
    pub trigger: Option<Threshold>,
    /// The size after a compaction.
    pub target: Option<Threshold>,
    /// Maximum size of one tool result.
    pub max_result: Option<Tokens>,
    /// The number of most recent exchanges that are kept.
    pub keep_recent: usize,
    /// Maximum number of messages in the view.
    pub max_history: Option<usize>,
    /// Whether long texts in old arguments are replaced by digests.
    pub has_digest: bool,
    /// The settings of these digests.
    pub digest: ArgumentDigest,
    /// Whether evicted messages are summarized.
    pub summarization: bool,
    /// Whether the context is limited by its size instead of a preset.
    pub has_context: bool,
    /// The settings of a context limited by its size.
    pub context: ContextConfig,
    /// How old results are shortened.
    pub prune: Option<SessionPruneConfig>,
    /// The size and the author of summaries.
    pub summary: SummaryConfig,
    /// The share of the limit at which summaries are prepared, if set.
    pub soft_mark: Option<Ppm>,
    /// The model that writes summaries.
    pub summarizer: Option<String>,
    /// A file with the summarizer's prompt.
    pub summary_prompt: Option<PathBuf>,
    /// The timeout of one call of the summarizer.
    pub summary_timeout: Option<Duration>,
    /// When to compact.
    pub compaction_timing: Option<CompactionTiming>,
    /// How the provider's prompt cache is used.
    pub cache: CacheConfig,
    /// How long the provider is to keep its cache.
    pub retention: CacheRetention,
    /// Tools that run at the provider.
    pub hosted_tools: Vec<HostedTool>,
    /// Whether evicted messages are archived.
    pub archive: bool,
    /// Whether `recall` is also offered under its other name.
    pub get_tool_response: bool,
    /// Rules that are never evicted or shortened.
    pub pins: Vec<String>,
    /// The name of the token counter.
    pub counter: &'static str,
    /// The limits of a run.
    pub limits: ExecutionLimits,
    /// Maximum number of concurrent tool calls.
    pub max_parallel_tools: Option<usize>,
    /// Maximum number of tokens of one answer.
    pub max_tokens: Option<Tokens>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The sampling seed.
    pub seed: Option<u64>,
    /// The model's thinking level.
    pub thinking: Option<ThinkingLevel>,
    /// How the tool calls of one message are executed.
    pub tool_execution: Option<ToolExecutionStrategy>,
    /// Maximum size of a tool result in the steps of a run.
    pub max_step_result: Bytes,
    /// Permission rules.
    pub permissions: Vec<Rule>,
    /// The treatment of calls that no rule matches, if set.
    pub permission_mode: Option<PermissionMode>,
    /// The files and the network that commands may access.
    pub sandbox: SandboxMode,
    /// Variables that child processes inherit although they look like keys.
    pub pass_env: Vec<String>,
    /// Commands that are run on events of a run.
    pub hooks: Vec<CommandHook>,
    /// The timeout of a hook.
    pub hook_timeout: Duration,
    /// How long a question about a tool call may stay open.
    pub gate_timeout: Option<Duration>,
    /// The number of retries of an idempotent tool.
    pub tool_retries: u32,
    /// How steering messages are delivered.
    pub steering: QueueMode,
    /// How follow-ups are delivered.
    pub follow_ups: QueueMode,
    /// The name of the configuration in loop ids.
    pub config_id: Option<String>,
    /// The trigger of a run's first turn.
    pub first_turn_trigger: TurnTrigger,
    /// When a failed model call is retried.
    pub retry: RetryConfig,
    /// The timeout for connecting.
    pub connect_timeout: Option<Duration>,
    /// The maximum silence during a response.
    pub idle_timeout: Option<Duration>,
}

/// The configured source of a model's context window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WindowSetting {
    /// The server, or else the table of models.
    #[default]
    Ask,
    /// Unknown; the provider's refusals reveal it.
    Unknown,
    /// This number of tokens.
    Tokens(Tokens),
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            name: None,
            description: None,
            model: None,
            base_url: None,
            window: WindowSetting::Ask,
            system: None,
            system_file: None,
            dynamic_context: None,
            tools: vec!["all".to_owned()],
            tool_style: None,
            root: PathBuf::from("."),
            sub_agents: Vec::new(),
            skills: None,
            mcp: None,
            strategy: None,
            trigger: None,
            target: None,
            max_result: None,
            keep_recent: 1,
            max_history: None,
            has_digest: false,
            digest: ArgumentDigest::default(),
            summarization: true,
            has_context: false,
            context: ContextConfig::default(),
            prune: None,
            summary: SummaryConfig::default(),
            soft_mark: None,
            summarizer: None,
            summary_prompt: None,
            summary_timeout: None,
            compaction_timing: None,
            cache: CacheConfig::default(),
            retention: CacheRetention::default(),
            hosted_tools: Vec::new(),
            archive: true,
            get_tool_response: false,
            pins: Vec::new(),
            counter: "o200k",
            limits: ExecutionLimits::turns(MAX_TURNS),
            max_parallel_tools: None,
            max_tokens: None,
            temperature: None,
            seed: None,
            thinking: None,
            tool_execution: None,
            max_step_result: MAX_STEP_RESULT,
            permissions: Vec::new(),
            permission_mode: None,
            sandbox: SandboxMode::Off,
            pass_env: Vec::new(),
            hooks: Vec::new(),
            hook_timeout: HOOK_TIMEOUT,
            gate_timeout: None,
            tool_retries: TOOL_RETRIES,
            steering: QueueMode::All,
            follow_ups: QueueMode::All,
            config_id: None,
            first_turn_trigger: TurnTrigger::User,
            retry: RetryConfig::default(),
            connect_timeout: None,
            idle_timeout: None,
        }
    }
}

impl AgentSettings {
    /// Returns the treatment of calls that no rule matches. Default: [`PermissionMode::AutoEdit`].
    #[must_use]
    pub fn permission_mode(&self) -> PermissionMode {
        self.permission_mode.unwrap_or_default()
    }

    /// Returns the preset policy with its trigger.
    #[must_use]
    pub fn context_strategy(&self) -> ContextStrategy {
        let trigger = match self.trigger {
            Some(Threshold::Sent(tokens)) => Some(tokens),
            _ => None,
        };
        let named = self
            .strategy
            .and_then(|name| ContextStrategy::named(name, trigger));
        named.unwrap_or_else(|| {
            if self.summarization {
                ContextStrategy::default_for(self.summarizer.is_some(), trigger)
            } else {
                ContextStrategy::Evict {
                    max_tokens: trigger,
                }
            }
        })
    }

    /// Returns the complete settings of a context limited by its size, if enabled.
    #[must_use]
    pub fn context_config(&self) -> Option<ContextConfig> {
        if !self.has_context {
            return None;
        }
        let mut context = self.context;
        context.compaction.max_summary_tokens = self.summary.max_summary_tokens;
        context.compaction.summarization = self.summarization;
        Some(context)
    }

    /// Returns the settings for shortening old arguments, if enabled.
    #[must_use]
    pub fn argument_digest(&self) -> Option<ArgumentDigest> {
        self.has_digest.then_some(self.digest)
    }

    /// Returns the token counter.
    #[must_use]
    pub fn counter(&self) -> Arc<dyn TokenCounter> {
        token_counter(self.counter).unwrap_or_else(|| Arc::new(Memo::new(Bpe::o200k())))
    }

    /// Applies all of these settings to a builder, except those created elsewhere: the model, the
    /// system prompt, the tools, the permission rules and the store.
    pub fn apply(&self, mut builder: AgentBuilder) -> AgentBuilder {
        builder = self.apply_context(builder);
        builder = match self.window {
            WindowSetting::Ask => builder,
            WindowSetting::Unknown => builder.window(Window::Unknown),
            WindowSetting::Tokens(tokens) => builder.window(Window::Known(tokens)),
        };
        with_given!(
            builder,
            dynamic_context(&self.dynamic_context),
            max_parallel_tools(self.max_parallel_tools),
            max_tokens(self.max_tokens),
            temperature(self.temperature),
            seed(self.seed),
            gate_timeout(self.gate_timeout),
            tool_execution(self.tool_execution),
            thinking_level(self.thinking),
        );
        if self.get_tool_response {
            builder = builder.get_tool_response();
        }
        for pin in &self.pins {
            builder = builder.pin(pin);
        }
        // The name distinguishes its runs from those of another agent in the same session.
        let name = self.name.as_ref().filter(|name| !name.is_empty());
        if let Some(id) = self.config_id.as_ref().or(name) {
            builder = builder.config_id(id);
        }
        for hook in &self.hooks {
            let mut hook = hook.clone();
            hook.timeout = hook.timeout.or(Some(self.hook_timeout));
            builder = builder.command_hook(hook);
        }
        builder
            .pass_env(self.pass_env.iter().cloned())
            .tool_retries(self.tool_retries)
            .max_step_result_size(self.max_step_result)
            .hook_timeout(self.hook_timeout)
            .steering_mode(self.steering)
            .follow_up_mode(self.follow_ups)
            .first_turn_trigger(self.first_turn_trigger)
            .counter(self.counter())
            .archive(self.archive)
            .cache_config(self.cache)
            .cache_retention(self.retention)
            .hosted_tools(self.hosted_tools.iter().cloned())
            .execution_limits(self.limits.clone())
            .retry_config(self.retry)
    }

    fn apply_context(&self, mut builder: AgentBuilder) -> AgentBuilder {
        with_given!(builder, context_config(self.context_config()));
        if !self.has_context || self.strategy.is_some() {
            builder = builder.context_strategy(self.context_strategy());
        }
        if let Some(trigger @ Threshold::Share(_)) = self.trigger {
            builder = builder.trigger(trigger);
        }
        with_given!(
            builder,
            target(self.target),
            max_result(self.max_result),
            max_history_messages(self.max_history),
            argument_digest(self.argument_digest()),
            compaction_timing(self.compaction_timing),
            summary_timeout(self.summary_timeout),
            session_prune(self.prune),
        );
        let summary = SummaryConfig {
            soft_mark: self.soft_mark.or(self.summary.soft_mark),
            ..self.summary
        };
        builder
            .keep_recent(self.keep_recent)
            .summary_config(summary)
            .summarization(self.summarization)
    }

    /// Sets parts of [`CacheStrategy::Manual`], and selects that strategy.
    pub(crate) fn manual(&mut self, set: impl FnOnce(&mut bool, &mut bool, &mut bool)) {
        let (mut system, mut tools, mut messages) = match self.cache.strategy {
            CacheStrategy::Manual {
                cache_system,
                cache_tools,
                cache_messages,
            } => (cache_system, cache_tools, cache_messages),
            _ => (false, false, false),
        };
        set(&mut system, &mut tools, &mut messages);
        self.cache.strategy = CacheStrategy::Manual {
            cache_system: system,
            cache_tools: tools,
            cache_messages: messages,
        };
    }
}
