//! [`AgentSettings`]: the settings of one agent, merged from all layers. They become the settings
//! of an [`AgentBuilder`]. The origins of the values are in the `Layer`s.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::PermissionMode;
use plimsoll_context::{
    ArgumentDigest, Bpe, Chars4, ContextConfig, ContextStrategy, Estimate, Memo, Threshold,
    TokenCounter,
};
use plimsoll_core::{
    AgentBuilder, BuilderSettings, CommandHook, DriverSettings, HOOK_TIMEOUT, RetryConfig,
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

/// The settings of one agent. Settings that are not configured have their defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    /// The settings that a builder takes as they are.
    pub builder: BuilderSettings,
    /// The name, if any.
    pub name: Option<String>,
    /// The purpose of the agent, as told to agents that may call it.
    pub description: Option<String>,
    /// The model, as PROVIDER/NAME.
    pub model: Option<String>,
    /// The server's address, if it is not the vendor's.
    pub base_url: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// A file with the system prompt.
    pub system_file: Option<PathBuf>,
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
    /// Whether long texts in old arguments are replaced by digests.
    pub has_digest: bool,
    /// The settings of these digests.
    pub digest: ArgumentDigest,
    /// Whether the context is limited by its size instead of a preset.
    pub has_context: bool,
    /// The settings of a context limited by its size.
    pub context: ContextConfig,
    /// The model that writes summaries.
    pub summarizer: Option<String>,
    /// A file with the summarizer's prompt.
    pub summary_prompt: Option<PathBuf>,
    /// The name of the token counter.
    pub counter: &'static str,
    /// Permission rules.
    pub permissions: Vec<Rule>,
    /// The treatment of calls that no rule matches, if set.
    pub permission_mode: Option<PermissionMode>,
    /// The files and the network that commands may access.
    pub sandbox: SandboxMode,
    /// Commands that are run on events of a run.
    pub hooks: Vec<CommandHook>,
    /// The timeout of a hook.
    pub hook_timeout: Duration,
    /// The timeout for connecting.
    pub connect_timeout: Option<Duration>,
    /// The maximum silence during a response.
    pub idle_timeout: Option<Duration>,
}

/// Attempts of a model call of an agent with a configuration: an overloaded server gets about two and a
/// half minutes.
const ATTEMPTS: u32 = 10;

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            builder: BuilderSettings {
                driver: DriverSettings {
                    retry: RetryConfig {
                        max_attempts: ATTEMPTS,
                        ..RetryConfig::default()
                    },
                    ..DriverSettings::default()
                },
                ..BuilderSettings::default()
            },
            name: None,
            description: None,
            model: None,
            base_url: None,
            system: None,
            system_file: None,
            tools: vec!["all".to_owned()],
            tool_style: None,
            root: PathBuf::from("."),
            sub_agents: Vec::new(),
            skills: None,
            mcp: None,
            strategy: None,
            trigger: None,
            has_digest: false,
            digest: ArgumentDigest::default(),
            has_context: false,
            context: ContextConfig::default(),
            summarizer: None,
            summary_prompt: None,
            counter: "o200k",
            permissions: Vec::new(),
            permission_mode: None,
            sandbox: SandboxMode::Off,
            hooks: Vec::new(),
            hook_timeout: HOOK_TIMEOUT,
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

    /// Returns the preset policy with its trigger, as a run uses it: without summaries, messages
    /// are only evicted.
    #[must_use]
    pub fn context_strategy(&self) -> ContextStrategy {
        let trigger = match self.trigger {
            Some(Threshold::Sent(tokens)) => Some(tokens),
            _ => None,
        };
        let named = self
            .strategy
            .and_then(|name| ContextStrategy::named(name, trigger));
        let strategy = named
            .unwrap_or_else(|| ContextStrategy::default_for(self.summarizer.is_some(), trigger));
        let summarizes = matches!(
            strategy,
            ContextStrategy::Summarize { .. } | ContextStrategy::Extract { .. }
        );
        if !self.builder.summarization && summarizes {
            // A trigger of summaries has no effect then; without a strategy, it is one of eviction.
            let max_tokens = trigger.filter(|_| self.strategy.is_none());
            return ContextStrategy::Evict { max_tokens };
        }
        strategy
    }

    /// Returns the complete settings of a context limited by its size, if enabled.
    #[must_use]
    pub fn context_config(&self) -> Option<ContextConfig> {
        if !self.has_context {
            return None;
        }
        let mut context = self.context;
        context.compaction.max_summary_tokens = self.builder.summary.max_summary_tokens;
        context.compaction.summarization = self.builder.summarization;
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
    /// system prompt, the tools, the permission rules and the store. Settings of [`Self::builder`] that
    /// the builder had are replaced.
    pub fn apply(&self, builder: AgentBuilder) -> AgentBuilder {
        let mut settings = self.builder.clone();
        let has_own = self.has_context || settings.context_strategy.is_some();
        if self.strategy.is_some() || !has_own {
            settings.context_strategy = Some(self.context_strategy());
        }
        let is_unlimited = settings.context_strategy == Some(ContextStrategy::Unlimited {});
        match self.trigger {
            // A trigger in tokens is part of the strategy. The builder refuses one that has no effect.
            Some(Threshold::Sent(_)) if !is_unlimited => {}
            Some(trigger) => settings.trigger = trigger,
            None => {}
        }
        settings.argument_digest = self.argument_digest().or(settings.argument_digest);
        // The name distinguishes its runs from those of another agent in the same session.
        let name = self.name.as_ref().filter(|name| !name.is_empty());
        settings.config_id = settings.config_id.or_else(|| name.cloned());
        let mut builder = builder
            .settings(settings)
            .counter(self.counter())
            .hook_timeout(self.hook_timeout);
        if let Some(context) = self.context_config() {
            builder = builder.context_config(context);
        }
        for hook in &self.hooks {
            let mut hook = hook.clone();
            hook.timeout = hook.timeout.or(Some(self.hook_timeout));
            builder = builder.command_hook(hook);
        }
        builder
    }
}
