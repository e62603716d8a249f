//! [`AgentLoopConfig`]: settings for a single run, and [`agent_loop`], which uses them.
//!
//! Settings that are not set fall back to the agent's. To use other tools, see [`Session::switch`].

use std::fmt;
use std::sync::Arc;

use plimsoll_agent::{
    ExecutionLimits, Input, InputFilter, Setup, ThinkingLevel, ToolExecutionStrategy, TurnTrigger,
    UserMessage,
};
use plimsoll_context::{
    Author, CacheConfig, CacheRetention, ContextConfig, OwnStages, PriceSheet, SettingFault,
    SummaryConfig, Threshold, Tokens, ViewLimits,
};

use crate::context_limits::context_limits;
use crate::error::Error;
use crate::hooks::Hooks;
use crate::observer::Observer;
use crate::output::AgentOutput;
use crate::parts::Parts;
use crate::provider::Provider;
use crate::remote::checked;
use crate::retry::RetryConfig;
use crate::run_faults::complete;
use crate::session::Session;
use crate::window::{self, Window};

/// The settings of a single run. `None` falls back to the agent's setting.
#[derive(Clone, Default)]
pub struct AgentLoopConfig {
    /// The provider of the run. It also writes the summaries if the agent has no summarizer. If its
    /// model has another name, its prices are unknown.
    pub provider_override: Option<Arc<dyn Provider>>,
    /// Prices of the run's model. Without them, those of another model are unknown.
    pub prices: Option<PriceSheet>,
    /// Hooks of the run, called after the agent's.
    pub hooks: Option<Hooks>,
    /// When and how the context of the run is compacted, in place of the agent's strategy, policy,
    /// trigger and target.
    pub context_config: Option<ContextConfig>,
    /// Thinking effort of the model.
    pub thinking_level: Option<ThinkingLevel>,
    /// Maximum number of tokens in one answer.
    pub max_tokens: Option<Tokens>,
    /// Temperature.
    pub temperature: Option<f64>,
    /// Limits of the run. Each one that is not set falls back to the agent's.
    pub execution_limits: ExecutionLimits,
    /// How the provider's prompt cache is used.
    pub cache_config: Option<CacheConfig>,
    /// Number of concurrent tool calls.
    pub tool_execution: Option<ToolExecutionStrategy>,
    /// When failed model calls are retried.
    pub retry_config: Option<RetryConfig>,
    /// Input filters, instead of the agent's filters.
    pub input_filters: Option<Vec<Arc<dyn InputFilter>>>,
    /// Trigger of the first turn.
    pub first_turn_trigger: Option<TurnTrigger>,
    /// Name of the configuration in run ids.
    pub config_id: Option<String>,
}

/// Runs a task in a session with `config`. Other settings are those of the session's agent.
///
/// # Errors
/// If the task is empty, the configuration is faulty, the log cannot be written, or the model cannot be
/// called ([`Error::Failed`]).
pub async fn agent_loop(
    session: &mut Session,
    prompt: impl Into<UserMessage>,
    config: &AgentLoopConfig,
) -> Result<AgentOutput, Error> {
    let message = checked(prompt)?;
    session.with(config, Input::User(message), None).await
}

/// Continues a session without a new prompt, with `config`; see [`Session::carry_on`].
///
/// # Errors
/// If the session is empty, the configuration is faulty, the log cannot be written, or the model cannot
/// be called ([`Error::Failed`]).
pub async fn agent_loop_continue(
    session: &mut Session,
    config: &AgentLoopConfig,
) -> Result<AgentOutput, Error> {
    let input = session.continue_input()?;
    session.with(config, input, None).await
}

impl Session {
    pub(crate) async fn with(
        &mut self,
        config: &AgentLoopConfig,
        input: Input,
        reader: Option<Arc<dyn Observer>>,
    ) -> Result<AgentOutput, Error> {
        self.configure(config, reader).await?;
        let output = self.drive(input).await;
        self.restore();
        output
    }

    /// Applies `config` to the next run, until [`Self::restore`]. `reader` sees the events of the run.
    pub(crate) async fn configure(
        &mut self,
        config: &AgentLoopConfig,
        reader: Option<Arc<dyn Observer>>,
    ) -> Result<(), Error> {
        self.between_runs(|_| Ok(())).await?;
        let context = config.context_config.iter();
        let mut faults: Vec<_> = context.flat_map(ContextConfig::faults).collect();
        let parallel = config.tool_execution.map(|how| how.max_parallel_tools());
        let text = parallel.and_then(Result::err);
        faults.extend(text.map(|text| SettingFault::new(&["tool_execution"], text)));
        let mut setup = self.run.setup().clone();
        let mut parts = Parts::clone(&self.parts);
        if let Some(reader) = reader {
            parts.observers.push(reader);
        }
        if let Some(provider) = &config.provider_override {
            if setup.model != provider.model() {
                setup.model = provider.model().to_owned();
                setup.sheet = None;
            }
            if !provider.keeps(setup.retention) {
                setup.retention = CacheRetention::Usual;
                setup.sheet = setup.sheet.map(|sheet| sheet.kept(setup.retention));
            }
            // A faulty configuration costs no request to the server.
            if setup.line.window.is_some() && faults.is_empty() {
                let window = Window::Discover.find(&**provider, setup.limits.max_duration);
                setup.line.window = window.await;
            }
            parts.provider = Arc::clone(provider);
            // The provider also writes the summaries, unless there is a separate summarizer.
            if let (Some(model), None) = (&mut setup.summary_model, &parts.summarizer) {
                model.model = provider.model().to_owned();
                model.sheet = setup.sheet;
            }
        }
        let retry = &mut parts.settings.retry;
        *retry = config.retry_config.unwrap_or(*retry);
        if config.context_config.is_some() && setup.line.window.is_none() && faults.is_empty() {
            setup.line.window = window::reported(&*parts.provider, setup.limits.max_duration).await;
        }
        config.apply(&mut setup);
        if let Some(context) = &config.context_config {
            faults.extend(apply_context(context, &mut setup).err());
            parts.max_history_messages = None;
        }
        if let Some(hooks) = &config.hooks {
            parts.hooks = parts.hooks.followed_by(hooks);
        }
        if let Some(filters) = &config.input_filters {
            parts.input_filters.clone_from(filters);
        }
        complete(&mut setup, &parts, faults)?;
        if config.thinking_level.is_some() || config.provider_override.is_some() {
            parts.warn(parts.provider.sampling_notes(&setup.sampling));
        }
        let parts = self.set_parts(Arc::new(parts));
        self.base = Some((self.run.set_setup(setup), parts));
        Ok(())
    }

    /// Restores the agent's own settings after a run with others.
    pub(crate) fn restore(&mut self) {
        if let Some((setup, parts)) = self.base.take() {
            self.run.set_setup(setup);
            self.set_parts(parts);
        }
    }
}

impl AgentLoopConfig {
    fn apply(&self, setup: &mut Setup) {
        let sampling = &mut setup.sampling;
        sampling.thinking = self.thinking_level.or(sampling.thinking);
        sampling.temperature = self.temperature.or(sampling.temperature);
        setup.max_output = self.max_tokens.or(setup.max_output);
        setup.line.max_output = self.max_tokens.or(setup.line.max_output);
        setup.limits = Arc::new(self.execution_limits.over(&setup.limits));
        let prices = self.prices.map(|sheet| sheet.kept(setup.retention));
        setup.sheet = prices.or(setup.sheet);
        setup.cache = self.cache_config.unwrap_or(setup.cache);
        if let Some(Ok(calls)) = self.tool_execution.map(|how| how.max_parallel_tools()) {
            setup.max_parallel_tools = calls;
        }
        let trigger = self.first_turn_trigger;
        setup.first_turn_trigger = trigger.unwrap_or(setup.first_turn_trigger);
        if let Some(id) = &self.config_id {
            setup.config_id.clone_from(id);
        }
    }
}

/// Sets the context of a run, with the limits that belong to it.
fn apply_context(config: &ContextConfig, setup: &mut Setup) -> Result<(), SettingFault> {
    let line = ViewLimits {
        trigger: Threshold::Auto,
        target: None,
        ..setup.line
    };
    let mut summary = SummaryConfig::default();
    if setup.summary_model.is_none() {
        summary.author = Author::Extract;
    }
    setup.line = context_limits(config, line, setup.system_tokens())?;
    setup.policy = config.policy(summary, None, OwnStages::default());
    Ok(())
}

impl fmt::Debug for AgentLoopConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentLoopConfig")
            .field("config_id", &self.config_id)
            .finish_non_exhaustive()
    }
}
