//! [`AgentSettings`]: what a configuration says of one agent, every layer in one; it becomes the
//! settings of an [`AgentBuilder`]. Not where a value came from; that is a `Layer`'s.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{
    ExecutionLimits, MAX_TURNS, PermissionMode, QueueMode, ThinkingLevel, ToolExecutionStrategy,
    TurnTrigger,
};
use plimsoll_context::{
    ArgumentDigest, Bpe, Bytes, CacheConfig, CacheRetention, CacheStrategy, Chars4, ContextConfig,
    ContextStrategy, Economy, Estimate, HostedTool, Memo, Ppm, SessionPruneConfig, Summarization,
    SummaryConfig, Threshold, TokenCounter, Tokens,
};
use plimsoll_core::{
    AgentBuilder, Archive, CommandHook, HOOK_TIMEOUT, MAX_STEP_RESULT, RetryConfig, TOOL_RETRIES,
    Window,
};
use plimsoll_tools::SandboxMode;
use plimsoll_wire::openai_chat::ToolStyle;

use super::permission::Rule;

/// What a configuration says of one agent; what it does not say is at its default.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The model, as PROVIDER/NAME.
    pub model: Option<String>,
    /// The server's address, where it is not the vendor's.
    pub base_url: Option<String>,
    /// Where the model's window comes from.
    pub window: WindowSetting,
    /// The system prompt.
    pub system: Option<String>,
    /// A file with it.
    pub system_file: Option<PathBuf>,
    /// What is sent after the history of each request.
    pub dynamic_context: Option<String>,
    /// Names of tools, or `all` or `none`.
    pub tools: Vec<String>,
    /// How the model calls them.
    pub tool_style: Option<ToolStyle>,
    /// The directory that file tools may not leave.
    pub root: PathBuf,
    /// Agents of the same file that it may call.
    pub sub_agents: Vec<String>,
    /// Folders with skills; `None` for those that the program looks at.
    pub skills: Option<Vec<PathBuf>>,
    /// Servers of tools that it uses; all where none are named.
    pub mcp: Option<Vec<String>>,
    /// The preset policy's name, where one is named.
    pub strategy: Option<&'static str>,
    /// When a plan is due.
    pub trigger: Option<Threshold>,
    /// Where a plan ends.
    pub target: Option<Threshold>,
    /// One tool result, at most.
    pub max_result: Option<Tokens>,
    /// Exchanges that stay.
    pub keep_recent: usize,
    /// Messages of the view, at most.
    pub max_history: Option<usize>,
    /// Whether long texts in old arguments become digests.
    pub has_digest: bool,
    /// How.
    pub digest: ArgumentDigest,
    /// Whether what leaves is summarised.
    pub summarization: Summarization,
    /// Whether the context is kept by its size rather than by a preset.
    pub has_context: bool,
    /// How.
    pub context: ContextConfig,
    /// How old results shrink.
    pub prune: Option<SessionPruneConfig>,
    /// How large summaries may be and who writes them.
    pub summary: SummaryConfig,
    /// Where in the run they are begun, if it is said.
    pub soft_mark: Option<Ppm>,
    /// The model that writes them.
    pub summarizer: Option<String>,
    /// A file with what the summariser is told.
    pub summary_prompt: Option<PathBuf>,
    /// How long one call of it may take.
    pub summary_timeout: Option<Duration>,
    /// When plans are due.
    pub economy: Option<Economy>,
    /// How the provider's prompt cache is used.
    pub cache: CacheConfig,
    /// How long it is to be kept.
    pub retention: CacheRetention,
    /// Tools of the provider's own.
    pub hosted_tools: Vec<HostedTool>,
    /// Whether what leaves is archived.
    pub archive: Archive,
    /// Whether `recall` is offered by its other name too.
    pub get_tool_response: bool,
    /// Rules that stay in view.
    pub pins: Vec<String>,
    /// What counts tokens.
    pub counter: &'static str,
    /// How long a run may be.
    pub limits: ExecutionLimits,
    /// Tool calls at once.
    pub max_parallel_tools: Option<usize>,
    /// Tokens of one answer.
    pub max_tokens: Option<Tokens>,
    /// Temperature.
    pub temperature: Option<f64>,
    /// Seed.
    pub seed: Option<u64>,
    /// How hard the model thinks.
    pub thinking: Option<ThinkingLevel>,
    /// How many tool calls of one message run at once.
    pub tool_execution: Option<ToolExecutionStrategy>,
    /// A tool result among a run's steps, at most.
    pub max_step_result: Bytes,
    /// Rules for what may run.
    pub permissions: Vec<Rule>,
    /// What happens to calls that no rule decides about, if it is said.
    pub permission_mode: Option<PermissionMode>,
    /// What commands may write to and reach.
    pub sandbox: SandboxMode,
    /// Variables that children get although they look like keys.
    pub pass_env: Vec<String>,
    /// Commands that are asked or told.
    pub hooks: Vec<CommandHook>,
    /// How long a hook may take.
    pub hook_timeout: Duration,
    /// How long a question about a tool call may stay open.
    pub gate_timeout: Option<Duration>,
    /// How often an idempotent tool is called again.
    pub tool_retries: u32,
    /// How steers are delivered.
    pub steering: QueueMode,
    /// How follow-ups are delivered.
    pub follow_ups: QueueMode,
    /// What the configuration is called in loop ids.
    pub config_id: Option<String>,
    /// What the first turn of a run answers.
    pub first_turn_trigger: TurnTrigger,
    /// When a failed call is made again.
    pub retry: RetryConfig,
    /// How long a connection is waited for.
    pub connect_timeout: Option<Duration>,
    /// How long silence is waited through.
    pub idle_timeout: Option<Duration>,
}

/// Where a model's window comes from, as a configuration says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WindowSetting {
    /// Whoever knows it is asked.
    #[default]
    Ask,
    /// Refusals teach it.
    Unknown,
    /// It is this.
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
            summarization: Summarization::On,
            has_context: false,
            context: ContextConfig::default(),
            prune: None,
            summary: SummaryConfig::default(),
            soft_mark: None,
            summarizer: None,
            summary_prompt: None,
            summary_timeout: None,
            economy: None,
            cache: CacheConfig::default(),
            retention: CacheRetention::default(),
            hosted_tools: Vec::new(),
            archive: Archive::On,
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
    /// Returns what happens to calls that no rule decides about. Default: [`PermissionMode::AutoEdit`].
    #[must_use]
    pub fn permission_mode(&self) -> PermissionMode {
        self.permission_mode.unwrap_or_default()
    }

    /// The preset policy with its trigger.
    #[must_use]
    pub fn context_strategy(&self) -> ContextStrategy {
        let trigger = match self.trigger {
            Some(Threshold::Sent(tokens)) => Some(tokens),
            _ => None,
        };
        let named = self
            .strategy
            .and_then(|name| ContextStrategy::named(name, trigger));
        named.unwrap_or_else(|| match self.summarization {
            Summarization::On => ContextStrategy::default_for(self.summarizer.is_some(), trigger),
            Summarization::Off => ContextStrategy::Evict {
                max_tokens: trigger,
            },
        })
    }

    /// How the context is kept small by its size, if it is, all that was said of it in one.
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

    /// How old arguments shrink, if they do.
    #[must_use]
    pub fn argument_digest(&self) -> Option<ArgumentDigest> {
        self.has_digest.then_some(self.digest)
    }

    /// What counts tokens.
    #[must_use]
    pub fn counter(&self) -> Arc<dyn TokenCounter> {
        match self.counter {
            "cl100k" => Arc::new(Memo::new(Bpe::cl100k())),
            "estimate" => Arc::new(Estimate),
            "chars4" => Arc::new(Chars4),
            _ => Arc::new(Memo::new(Bpe::o200k())),
        }
    }

    /// A builder's settings with all of these on top, but for what is made outside of it: the
    /// model, the system prompt, the tools, the rules for them and the store.
    pub fn apply(&self, mut builder: AgentBuilder) -> AgentBuilder {
        builder = self.apply_context(builder);
        builder = match self.window {
            WindowSetting::Ask => builder,
            WindowSetting::Unknown => builder.window(Window::Unknown),
            WindowSetting::Tokens(tokens) => builder.window(Window::Known(tokens)),
        };
        if let Some(text) = &self.dynamic_context {
            builder = builder.dynamic_context(text);
        }
        if self.get_tool_response {
            builder = builder.get_tool_response();
        }
        for pin in &self.pins {
            builder = builder.pin(pin);
        }
        if let Some(calls) = self.max_parallel_tools {
            builder = builder.max_parallel_tools(calls);
        }
        if let Some(tokens) = self.max_tokens {
            builder = builder.max_tokens(tokens);
        }
        if let Some(temperature) = self.temperature {
            builder = builder.temperature(temperature);
        }
        if let Some(seed) = self.seed {
            builder = builder.seed(seed);
        }
        if let Some(timeout) = self.gate_timeout {
            builder = builder.gate_timeout(timeout);
        }
        // Its name tells its runs apart from those of another agent in one session.
        let name = self.name.as_ref().filter(|name| !name.is_empty());
        if let Some(id) = self.config_id.as_ref().or(name) {
            builder = builder.config_id(id);
        }
        if let Some(execution) = self.tool_execution {
            builder = builder.tool_execution(execution);
        }
        for hook in &self.hooks {
            let mut hook = hook.clone();
            hook.timeout = hook.timeout.or(Some(self.hook_timeout));
            builder = builder.command_hook(hook);
        }
        if let Some(level) = self.thinking {
            builder = builder.thinking_level(level);
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
        if let Some(context) = self.context_config() {
            builder = builder.context_config(context);
        }
        if !self.has_context || self.strategy.is_some() {
            builder = builder.context_strategy(self.context_strategy());
        }
        if let Some(trigger @ Threshold::Share(_)) = self.trigger {
            builder = builder.trigger(trigger);
        }
        if let Some(target) = self.target {
            builder = builder.target(target);
        }
        if let Some(tokens) = self.max_result {
            builder = builder.max_result(tokens);
        }
        if let Some(messages) = self.max_history {
            builder = builder.max_history_messages(messages);
        }
        if let Some(digest) = self.argument_digest() {
            builder = builder.argument_digest(digest);
        }
        if let Some(economy) = self.economy {
            builder = builder.economy(economy);
        }
        if let Some(timeout) = self.summary_timeout {
            builder = builder.summary_timeout(timeout);
        }
        let summary = SummaryConfig {
            soft_mark: self.soft_mark.or(self.summary.soft_mark),
            ..self.summary
        };
        if let Some(prune) = self.prune {
            builder = builder.session_prune(prune);
        }
        builder
            .keep_recent(self.keep_recent)
            .summary_config(summary)
            .summarization(self.summarization)
    }

    /// Sets a part of [`CacheStrategy::Manual`], which it becomes.
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
