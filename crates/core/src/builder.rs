//! [`AgentBuilder`]: the settings of an [`Agent`] and their defaults. Required settings are
//! arguments of [`Agent::builder`].

mod context;
mod faults;
mod hooks;
mod hosted;
mod limits;
mod view;

use std::sync::Arc;

use plimsoll_agent::{
    DEFAULT_CONFIG, InputFilter, Permissions, Setup, SummaryModel, ThinkingLevel, TurnTrigger,
};
use plimsoll_context::{Author, Bpe, Memo, OwnStages, Policy, PriceSheet, TokenCounter, Tokens};

use crate::agent::{Agent, known};
use crate::error::Error;
use crate::gate::Gate;
use crate::observer::Observer;
use crate::parts::Parts;
use crate::process::InheritedVariables;
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::run_faults::complete;
use crate::secret::{Secret, Secrets};
use crate::settings::BuilderSettings;
use crate::store::SessionStore;
use crate::tool::Tool;
use crate::window::Window;

/// The settings of an [`Agent`]; created by [`Agent::builder`].
#[must_use]
pub struct AgentBuilder {
    settings: BuilderSettings,
    /// What the agent acts through. The rest of it is filled in by [`AgentBuilder::build`].
    parts: Parts,
    system: Arc<str>,
    tools: Vec<Arc<dyn Tool>>,
    counter: Option<Arc<dyn TokenCounter>>,
    own_stages: OwnStages,
    policy: Option<Policy>,
    summary_prompt: Option<String>,
    prices: Option<PriceSheet>,
    summarizer_prices: Option<PriceSheet>,
    permissions: Permissions,
    secrets: Vec<Secret>,
}

impl Agent {
    /// Creates a builder for an agent that uses this model.
    pub fn builder(provider: impl Provider + 'static) -> AgentBuilder {
        Self::builder_shared(Arc::new(provider))
    }

    /// Like [`Agent::builder`], with a shared provider.
    pub fn builder_shared(provider: Arc<dyn Provider>) -> AgentBuilder {
        AgentBuilder {
            settings: BuilderSettings::default(),
            parts: Parts::new(provider),
            system: "".into(),
            tools: Vec::new(),
            counter: None,
            own_stages: OwnStages::default(),
            policy: None,
            summary_prompt: None,
            prices: None,
            summarizer_prices: None,
            permissions: Permissions::default(),
            secrets: Vec::new(),
        }
    }
}

impl AgentBuilder {
    /// Replaces all settings that are plain data, limits included, for example by those of a
    /// configuration file. Single ones can be changed afterwards.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_core::BuilderSettings;
    /// # let model = ScriptedProvider::new([]);
    /// let settings = BuilderSettings { keep_recent: 3, ..BuilderSettings::default() };
    /// let agent = Agent::builder(model).settings(settings).max_turns(20).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn settings(mut self, settings: BuilderSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Changes settings that are plain data and have no method here.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).configure(|settings| settings.keep_recent = 3).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn configure(mut self, change: impl FnOnce(&mut BuilderSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Sets the system prompt. Default: none.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).system("You watch a harbour.").build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = text.into().into();
        self
    }

    /// Replaces the provider that the builder was created with.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .provider_override(Arc::new(ScriptedProvider::new([])))
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn provider_override(mut self, provider: Arc<dyn Provider>) -> Self {
        self.parts.provider = provider;
        self
    }

    /// Adds a tool.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Nothing {}
    /// # let watch = plimsoll_core::tool("watch", "Lists the ships.", |_: Nothing| async {
    /// #     Ok::<_, String>("Kestrel")
    /// # });
    /// let agent = Agent::builder(model).tool(watch).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds several tools.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// use plimsoll_core::Tool;
    /// # let model = ScriptedProvider::new([]);
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Nothing {}
    /// # let watch = plimsoll_core::tool("watch", "Lists the ships.", |_: Nothing| async {
    /// #     Ok::<_, String>("Kestrel")
    /// # });
    /// let agent = Agent::builder(model).tools([Arc::new(watch) as Arc<dyn Tool>]).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets the token counter. Default: exact o200k.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// use plimsoll_context::Chars4;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).counter(Arc::new(Chars4)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Sets the source of the model's context window. Default: the server.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::Tokens;
    /// use plimsoll_core::Window;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).window(Window::Known(Tokens(32_768))).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn window(mut self, window: Window) -> Self {
        self.settings.window = window;
        self
    }

    /// Sets the maximum number of tokens in one answer. Default: chosen by the provider.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::Tokens;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).max_tokens(Tokens(2_000)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn max_tokens(mut self, tokens: Tokens) -> Self {
        self.settings.max_tokens = Some(tokens);
        self
    }

    /// Sets the temperature. Default: chosen by the provider.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).temperature(0.2).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.settings.sampling.temperature = Some(temperature);
        self
    }

    /// Sets the model's thinking effort. Default: chosen by the provider.
    ///
    /// [`ThinkingLevel::Off`] turns thinking off. If the model does not support this, there is a
    /// warning.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::ThinkingLevel;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).thinking_level(ThinkingLevel::Low).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn thinking_level(mut self, level: ThinkingLevel) -> Self {
        self.settings.sampling.thinking = Some(level);
        self
    }

    /// Adds an input filter after the existing ones. Filters check prompts, steers and follow-ups
    /// before the model sees them.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::FilterResult;
    /// # let model = ScriptedProvider::new([]);
    /// let no_keys = |text: &str| match text.contains("sk-") {
    ///     true => FilterResult::Reject("it contains a key".to_owned()),
    ///     false => FilterResult::Pass,
    /// };
    /// let agent = Agent::builder(model).input_filter(no_keys).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn input_filter(mut self, filter: impl InputFilter + 'static) -> Self {
        self.parts.input_filters.push(Arc::new(filter));
        self
    }

    /// Adds several input filters, called in order.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// use plimsoll_agent::{FilterResult, InputFilter};
    /// # let model = ScriptedProvider::new([]);
    /// let pass: Arc<dyn InputFilter> = Arc::new(|_: &str| FilterResult::Pass);
    /// let agent = Agent::builder(model).input_filters([pass]).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn input_filters(
        mut self,
        filters: impl IntoIterator<Item = Arc<dyn InputFilter>>,
    ) -> Self {
        self.parts.input_filters.extend(filters);
        self
    }

    /// Sets the name of this configuration in run ids, `{session}.{config}.{N}`. Default:
    /// [`DEFAULT_CONFIG`](plimsoll_agent::DEFAULT_CONFIG).
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).config_id("harbour").build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn config_id(mut self, id: impl Into<String>) -> Self {
        self.settings.config_id = Some(id.into());
        self
    }

    /// Sets the trigger of the first turn of a run. Default: user input.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::TurnTrigger;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).first_turn_trigger(TurnTrigger::SubAgent).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn first_turn_trigger(mut self, trigger: TurnTrigger) -> Self {
        self.settings.first_turn_trigger = trigger;
        self
    }

    /// Sets the store for session logs. Default: in memory.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// use plimsoll_core::MemoryStore;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).store(Arc::new(MemoryStore::default())).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.parts.store = store;
        self
    }

    /// Sets the gate that approves tool calls. Without a gate, calls that need approval are denied.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_core::AllowAll;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).gate(AllowAll).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.parts.gate = Some(Arc::new(gate));
        self
    }

    /// Like [`Self::gate`], with a shared gate.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// use plimsoll_core::DenyAll;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).shared_gate(Arc::new(DenyAll)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn shared_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.parts.gate = Some(gate);
        self
    }

    /// Adds an observer.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::SessionEvent;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .observer(|event: &SessionEvent| println!("{event:?}"))
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        self.shared_observer(Arc::new(observer))
    }

    /// Adds a shared observer.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// use plimsoll_agent::SessionEvent;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .shared_observer(Arc::new(|event: &SessionEvent| println!("{event:?}")))
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn shared_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.parts.observers.push(observer);
        self
    }

    /// Sets when failed model calls are retried.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_core::RetryConfig;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .retry_config(RetryConfig { max_attempts: 2, ..RetryConfig::default() })
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn retry_config(mut self, retry: RetryConfig) -> Self {
        self.settings.driver.retry = retry;
        self
    }

    /// Sets whether spans contain message contents. Default: controlled by
    /// [`CAPTURE_VARIABLE`](crate::telemetry::CAPTURE_VARIABLE); off if it is unset.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).record_contents(true).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn record_contents(mut self, contents: bool) -> Self {
        self.parts.records_contents = contents;
        self
    }

    /// Validates the settings and builds the agent.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Build`] with a list of all faults.
    pub fn build(mut self) -> Result<Agent, Error> {
        let faults = self.faults();
        let (hosted_tools, retention, mut notes) = self.asked_of_provider();
        notes.extend(self.leave_out_tools(hosted_tools.len()));
        let counter = self.counter.take();
        let counter = counter.unwrap_or_else(|| Arc::new(Memo::new(Bpe::o200k())));
        let settings = &self.settings;
        let strategy = self.effective_strategy();
        let context = self.effective_context_config();
        let is_preset = context.is_none() && self.policy.is_none();
        let mut setup = Setup {
            system: Arc::clone(&self.system),
            dynamic_context: settings.dynamic_context.as_deref().map(Into::into),
            tools: self.tools.iter().map(known).collect(),
            hosted_tools: hosted_tools.into(),
            line: strategy.line(settings.view_limits()),
            sheet: self.prices.map(|sheet| sheet.kept(retention)),
            cache: settings.cache,
            retention,
            recovery: self.recovery(),
            summary_model: self.summary_model(),
            max_parallel_tools: settings.parallel_tools(),
            limits: Arc::new(settings.limits.filled()),
            permissions: Arc::new(self.permissions.clone()),
            config_id: settings
                .config_id
                .as_deref()
                .unwrap_or(DEFAULT_CONFIG)
                .into(),
            first_turn_trigger: settings.first_turn_trigger,
            max_output: settings.max_tokens,
            sampling: settings.sampling,
            ..Setup::new(
                self.parts.provider.model(),
                counter,
                self.effective_policy(),
            )
        };
        let (settings, mut parts) = (self.settings, self.parts);
        let secrets = self.secrets.into_iter();
        let secrets = secrets
            .chain(parts.provider.secrets())
            .chain(parts.summarizer().secrets());
        parts.secrets = Secrets::with_environment(secrets);
        parts.variables =
            InheritedVariables::new(settings.pass_env.clone(), parts.secrets.variables());
        let tools = self.tools.into_iter();
        let tools = tools.map(|tool| (tool.spec().name.clone(), tool));
        parts.tools = tools.collect();
        parts.settings = settings.driver;
        parts.max_history_messages = settings.max_history_messages;
        complete(&mut setup, &parts, faults)?;
        Ok(Agent {
            setup,
            settings,
            strategy: is_preset.then_some(strategy),
            context,
            notes,
            parts: Arc::new(parts),
        })
    }

    /// Returns the model that writes summaries, if one does.
    fn summary_model(&self) -> Option<SummaryModel> {
        let prompt = self.summary_prompt.as_deref();
        // Prices of the agent's model are those of its summaries if it writes them itself.
        let own_prices = self.prices.filter(|_| self.parts.summarizer.is_none());
        (self.settings.summary.author == Author::Model).then(|| SummaryModel {
            model: self.parts.summarizer().model().to_owned(),
            window: None,
            prompt: prompt.unwrap_or(SummaryModel::PROMPT).into(),
            sheet: self.summarizer_prices.or(own_prices),
        })
    }
}
