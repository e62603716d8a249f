//! [`AgentBuilder`]: the settings of an [`Agent`] and their defaults. Required settings are
//! arguments of [`Agent::builder`].

mod faults;
mod hooks;
mod hosted;
mod limits;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{
    DEFAULT_CONFIG, ExecutionLimits, InputFilter, InputFilters, KnownTool, LimitOverrides,
    MAX_TURNS, Permissions, QueueMode, Sampling, Setup, SummaryModel, ThinkingLevel,
    ToolExecutionStrategy, TurnTrigger,
};
use plimsoll_context::{
    Author, Bpe, Bytes, CacheConfig, CacheRetention, ContextStrategy, Economy, HostedTool, Memo,
    Policy, PriceSheet, Recall, SessionPruneConfig, SummaryConfig, TokenCounter, Tokens,
    ViewLimits,
};

use crate::agent::{Agent, Archive, RecallNames, SUMMARY_TIMEOUT, known};
use crate::contained;
use crate::context::{Contexts, RelatedSettings};
use crate::driver::Parts;
use crate::error::Error;
use crate::gate::Gate;
use crate::hooks::Hooks;
use crate::memory_store::MemoryStore;
use crate::observer::{Observer, Observers};
use crate::process::InheritedVariables;
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::secret::{Secret, Secrets};
use crate::steps::MAX_STEP_RESULT;
use crate::store::SessionStore;
use crate::telemetry::{Contents, Manner};
use crate::tool::{TOOL_RETRIES, Tool};
use crate::window::Window;

/// The settings of an [`Agent`]; created by [`Agent::builder`].
#[must_use]
pub struct AgentBuilder {
    provider: Arc<dyn Provider>,
    system: String,
    dynamic_context: Option<String>,
    tools: Vec<Arc<dyn Tool>>,
    /// Names of the tools that are declared from the first plan on.
    joining: BTreeSet<String>,
    hosted_tools: Vec<HostedTool>,
    counter: Option<Arc<dyn TokenCounter>>,
    window: Window,
    strategy: Option<ContextStrategy>,
    pub(crate) context: Contexts,
    policy: Option<Policy>,
    line: ViewLimits,
    prune: Option<SessionPruneConfig>,
    summary: SummaryConfig,
    summarizer: Option<Arc<dyn Provider>>,
    summary_prompt: Option<String>,
    summary_timeout: Duration,
    economy: Option<Economy>,
    sheet: Option<PriceSheet>,
    summarizer_sheet: Option<PriceSheet>,
    cache: CacheConfig,
    retention: CacheRetention,
    archive: Archive,
    recall_names: RecallNames,
    pins: Vec<String>,
    hooks: Hooks,
    limits: ExecutionLimits,
    limit_overrides: LimitOverrides,
    max_parallel_tools: Option<usize>,
    tool_execution: Option<ToolExecutionStrategy>,
    permissions: Permissions,
    pass_env: Vec<String>,
    secrets: Vec<Secret>,
    tool_retries: u32,
    gate_timeout: Option<Duration>,
    input_filters: InputFilters,
    steering: QueueMode,
    follow_ups: QueueMode,
    config_id: Option<String>,
    first_turn_trigger: TurnTrigger,
    max_tokens: Option<Tokens>,
    sampling: Sampling,
    store: Arc<dyn SessionStore>,
    gate: Option<Arc<dyn Gate>>,
    observers: Observers,
    retry: RetryConfig,
    max_step_result: Bytes,
    contents: Contents,
}

impl Agent {
    /// Creates a builder for an agent that uses this model.
    pub fn builder(provider: impl Provider + 'static) -> AgentBuilder {
        Self::builder_shared(Arc::new(provider))
    }

    /// Like [`Agent::builder`], with a shared provider.
    pub fn builder_shared(provider: Arc<dyn Provider>) -> AgentBuilder {
        AgentBuilder {
            provider,
            system: String::new(),
            dynamic_context: None,
            tools: Vec::new(),
            joining: BTreeSet::new(),
            hosted_tools: Vec::new(),
            counter: None,
            window: Window::default(),
            strategy: None,
            context: Contexts::default(),
            policy: None,
            line: ViewLimits::default(),
            prune: None,
            summary: SummaryConfig::default(),
            summarizer: None,
            summary_prompt: None,
            summary_timeout: SUMMARY_TIMEOUT,
            economy: None,
            sheet: None,
            summarizer_sheet: None,
            cache: CacheConfig::default(),
            retention: CacheRetention::default(),
            archive: Archive::default(),
            recall_names: RecallNames::default(),
            pins: Vec::new(),
            hooks: Hooks::default(),
            limits: ExecutionLimits::turns(MAX_TURNS),
            limit_overrides: LimitOverrides::default(),
            max_parallel_tools: None,
            tool_execution: None,
            permissions: Permissions::default(),
            pass_env: Vec::new(),
            secrets: Vec::new(),
            tool_retries: TOOL_RETRIES,
            gate_timeout: None,
            input_filters: InputFilters::default(),
            steering: QueueMode::default(),
            follow_ups: QueueMode::default(),
            config_id: None,
            first_turn_trigger: TurnTrigger::default(),
            max_tokens: None,
            sampling: Sampling::default(),
            store: Arc::new(MemoryStore::default()),
            gate: None,
            observers: Observers::default(),
            retry: RetryConfig::default(),
            max_step_result: MAX_STEP_RESULT,
            contents: Contents::asked_for(),
        }
    }
}

impl AgentBuilder {
    /// Sets the system prompt. Default: none.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).system("You watch a harbour.").build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = text.into();
        self
    }

    /// Sets a text that is sent after the history of each request but is not part of the history.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).dynamic_context("It is 9 o'clock.").build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn dynamic_context(mut self, text: impl Into<String>) -> Self {
        self.dynamic_context = Some(text.into());
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
        self.provider = provider;
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

    /// Adds tools that are declared to the model only after a plan has removed or shortened a
    /// message, like the recall tools.
    ///
    /// Before that, such a tool is useless, yet small models call it anyway. The plan rewrites the
    /// prompt in any case, so declaring more tools at that moment costs little.
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
    /// let agent = Agent::builder(model)
    ///     .tools_after_plan([Arc::new(watch) as Arc<dyn Tool>])
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn tools_after_plan(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        for tool in tools {
            self.joining.insert(tool.spec().name.clone());
            self.tools.push(tool);
        }
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
        self.window = window;
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
        self.max_tokens = Some(tokens);
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
        self.sampling.temperature = Some(temperature);
        self
    }

    /// Sets the seed, for providers that support one.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).seed(7).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.sampling.seed = Some(seed);
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
        self.sampling.thinking = Some(level);
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
        self.input_filters.push(Arc::new(filter));
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
        for filter in filters {
            self.input_filters.push(filter);
        }
        self
    }

    /// Sets how steers are delivered. Default: all waiting ones together.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::QueueMode;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).steering_mode(QueueMode::OneAtATime).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn steering_mode(mut self, mode: QueueMode) -> Self {
        self.steering = mode;
        self
    }

    /// Sets how follow-ups are delivered. Default: all waiting ones together.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::QueueMode;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).follow_up_mode(QueueMode::OneAtATime).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn follow_up_mode(mut self, mode: QueueMode) -> Self {
        self.follow_ups = mode;
        self
    }

    /// Sets the name of this configuration in loop ids, `{session}.{config}.{N}`. Default:
    /// [`DEFAULT_CONFIG`].
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).config_id("harbour").build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn config_id(mut self, id: impl Into<String>) -> Self {
        self.config_id = Some(id.into());
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
        self.first_turn_trigger = trigger;
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
        self.store = store;
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
        self.gate = Some(Arc::new(gate));
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
        self.gate = Some(gate);
        self
    }

    /// Sets how long to wait for an answer of the gate before denying the call. Default: no limit,
    /// since the user may be away.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::time::Duration;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).gate_timeout(Duration::from_secs(60)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn gate_timeout(mut self, timeout: Duration) -> Self {
        self.gate_timeout = Some(timeout);
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
        self.observers.push(observer);
        self
    }

    /// Sets the maximum size of one tool result in
    /// [`AgentOutput::steps`](crate::AgentOutput::steps), which the host keeps. Does not affect the
    /// results in the log or those that the model sees. Default 8,192 bytes.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::Bytes;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).max_step_result_size(Bytes(1_024)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn max_step_result_size(mut self, bytes: Bytes) -> Self {
        self.max_step_result = bytes;
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
        self.retry = retry;
        self
    }

    /// Sets whether spans contain message contents. Default: controlled by
    /// [`CAPTURE_VARIABLE`](crate::telemetry::CAPTURE_VARIABLE); off if it is unset.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_core::telemetry::Contents;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).record_contents(Contents::Recorded).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn record_contents(mut self, contents: Contents) -> Self {
        self.contents = contents;
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
        self.limits = self.limit_overrides.over(&self.limits);
        let faults = self.faults();
        if !faults.is_empty() {
            return Err(Error::Build(faults));
        }
        let (hosted_tools, retention, notes) = self.asked_of_provider();
        let beside = self.beside();
        let tools = self.known_tools();
        let max_parallel_tools = self.parallel_tools();
        let breakdowns = Arc::default();
        let counter = match self.counter {
            Some(counter) => contained::counter(counter, &breakdowns),
            None => Arc::new(Memo::new(Bpe::o200k())),
        };
        let summarizer = self
            .summarizer
            .unwrap_or_else(|| Arc::clone(&self.provider));
        let same = Arc::ptr_eq(&summarizer, &self.provider);
        let summary_model = SummaryModel {
            model: summarizer.model().to_owned(),
            window: None,
            prompt: self
                .summary_prompt
                .as_deref()
                .unwrap_or(SummaryModel::PROMPT)
                .into(),
            sheet: self.summarizer_sheet.or(self.sheet.filter(|_| same)),
        };
        let secrets = self.secrets.into_iter();
        let secrets = secrets
            .chain(self.provider.secrets())
            .chain(summarizer.secrets());
        let secrets: Vec<Secret> = secrets.collect();
        let policy = self.context.policy(self.policy, &beside, &breakdowns);
        let policy = contained::policy(policy, &breakdowns);
        let setup = Setup {
            model: self.provider.model().to_owned(),
            system: self.system.into(),
            dynamic_context: self.dynamic_context.map(Into::into),
            tools,
            line: self.context.strategy(beside.strategy).line(self.line),
            economy: self.context.economy(&beside, self.line),
            hosted_tools: hosted_tools.into(),
            sheet: self.sheet.map(|sheet| sheet.kept(retention)),
            cache: self.cache,
            retention,
            recovery: self.context.recovery(&beside),
            summary_model: (self.summary.author == Author::Model).then_some(summary_model),
            recall: Recall::None,
            announces_plans: self.hooks.follow_plans(),
            hooks: self.hooks.points(),
            limits: Arc::new(self.limits),
            input_filters: self.input_filters,
            steering: self.steering,
            follow_ups: self.follow_ups,
            config_id: self.config_id.unwrap_or_else(|| DEFAULT_CONFIG.to_owned()),
            first_turn_trigger: self.first_turn_trigger,
            permissions: self.permissions.clone(),
            max_parallel_tools,
            max_output: self.max_tokens,
            sampling: self.sampling,
            ..Setup::new(String::new(), counter, policy)
        };
        let secrets = Secrets::with_environment(secrets);
        let variables = InheritedVariables::new(self.pass_env, secrets.variables());
        let mut hooks = self.hooks;
        hooks.commands.variables = variables.clone();
        let parts = Parts {
            provider: self.provider,
            summarizer,
            asks_summarizer: !same,
            summary_timeout: self.summary_timeout,
            hooks,
            tools: self
                .tools
                .into_iter()
                .map(|tool| (tool.spec().name.clone(), tool))
                .collect(),
            permissions: Arc::new(self.permissions),
            variables,
            secrets,
            store: self.store,
            files_of: None,
            gate: self.gate,
            observers: self.observers,
            retry: self.retry,
            max_step_result: self.max_step_result,
            tool_retries: self.tool_retries,
            gate_timeout: self.gate_timeout,
            manner: Manner {
                contents: self.contents,
                called: None,
            },
            held: Arc::default(),
            breakdowns,
        };
        Ok(Agent {
            setup,
            context: self.context.config(self.summary),
            window: self.window,
            archive: self.archive,
            recall_names: self.recall_names,
            pins: self.pins,
            notes,
            parts: Arc::new(parts),
        })
    }

    /// Returns the tools in the form that the loop needs.
    fn known_tools(&self) -> Vec<KnownTool> {
        let tools = self.tools.iter().map(|tool| KnownTool {
            after_plan: self.joining.contains(&tool.spec().name),
            ..known(tool)
        });
        tools.collect()
    }

    /// Returns the maximum number of concurrent tool calls. It can be set in two ways; if both were
    /// used, their values have been checked to agree.
    fn parallel_tools(&self) -> usize {
        let strategy = self.tool_execution.unwrap_or_default();
        self.max_parallel_tools
            .unwrap_or_else(|| strategy.max_parallel_tools().unwrap_or(1))
    }

    fn beside(&self) -> RelatedSettings {
        RelatedSettings {
            strategy: self.strategy(),
            has_strategy: self.strategy.is_some(),
            prune: self.prune,
            summary: self.summary,
            economy: self.economy,
        }
    }
}
