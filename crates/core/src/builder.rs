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
    InputFilter, KnownTool, LimitOverrides, QueueMode, Setup, SummaryModel, ThinkingLevel,
    ToolExecutionStrategy, TurnTrigger,
};
use plimsoll_context::{
    Author, Bpe, Bytes, Chars4, CompactionTiming, ContextStrategy, HostedTool, Memo, Policy,
    PriceSheet, SessionPruneConfig, SummaryConfig, TokenCounter, Tokens,
};

use crate::agent::{Agent, known};
use crate::contained;
use crate::context::{Contexts, RelatedSettings};
use crate::driver::Parts;
use crate::error::Error;
use crate::gate::Gate;
use crate::observer::Observer;
use crate::process::InheritedVariables;
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::secret::{Secret, Secrets};
use crate::store::SessionStore;
use crate::tool::Tool;
use crate::window::Window;
pub(crate) use faults::faults_of_run;

/// The settings of an [`Agent`]; created by [`Agent::builder`].
#[must_use]
pub struct AgentBuilder {
    /// The settings of the state machine. [`Self::build`] adds those that depend on others.
    setup: Setup,
    parts: Parts,
    tools: Vec<Arc<dyn Tool>>,
    /// Names of the tools that are declared from the first plan on.
    joining: BTreeSet<String>,
    hosted_tools: Vec<HostedTool>,
    counter: Option<Arc<dyn TokenCounter>>,
    window: Window,
    strategy: Option<ContextStrategy>,
    pub(crate) context: Contexts,
    policy: Option<Policy>,
    prune: Option<SessionPruneConfig>,
    summary: SummaryConfig,
    summarizer: Option<Arc<dyn Provider>>,
    summary_prompt: Option<String>,
    compaction_timing: Option<CompactionTiming>,
    summarizer_sheet: Option<PriceSheet>,
    archives: bool,
    get_tool_response: bool,
    pins: Vec<String>,
    limit_overrides: LimitOverrides,
    max_parallel_tools: Option<usize>,
    tool_execution: Option<ToolExecutionStrategy>,
    pass_env: Vec<String>,
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
            setup: Setup::new("", Arc::new(Chars4), Policy::unlimited()),
            parts: Parts::new(provider),
            tools: Vec::new(),
            joining: BTreeSet::new(),
            hosted_tools: Vec::new(),
            counter: None,
            window: Window::default(),
            strategy: None,
            context: Contexts::default(),
            policy: None,
            prune: None,
            summary: SummaryConfig::default(),
            summarizer: None,
            summary_prompt: None,
            compaction_timing: None,
            summarizer_sheet: None,
            archives: true,
            get_tool_response: false,
            pins: Vec::new(),
            limit_overrides: LimitOverrides::default(),
            max_parallel_tools: None,
            tool_execution: None,
            pass_env: Vec::new(),
            secrets: Vec::new(),
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
        self.setup.system = text.into().into();
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
        self.setup.dynamic_context = Some(text.into().into());
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
        self.setup.max_output = Some(tokens);
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
        self.setup.sampling.temperature = Some(temperature);
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
        self.setup.sampling.seed = Some(seed);
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
        self.setup.sampling.thinking = Some(level);
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
        self.setup.input_filters.push(Arc::new(filter));
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
            self.setup.input_filters.push(filter);
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
        self.setup.steering = mode;
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
        self.setup.follow_ups = mode;
        self
    }

    /// Sets the name of this configuration in loop ids, `{session}.{config}.{N}`. Default:
    /// [`DEFAULT_CONFIG`](plimsoll_agent::DEFAULT_CONFIG).
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).config_id("harbour").build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn config_id(mut self, id: impl Into<String>) -> Self {
        self.setup.config_id = id.into();
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
        self.setup.first_turn_trigger = trigger;
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
        self.parts.gate_timeout = Some(timeout);
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
        self.parts.max_step_result = bytes;
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
        self.parts.retry = retry;
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
        self.parts.telemetry.contents = contents;
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
        self.parts.summarizer = match &self.summarizer {
            Some(summarizer) => Arc::clone(summarizer),
            None => Arc::clone(&self.parts.provider),
        };
        self.parts.asks_summarizer = !Arc::ptr_eq(&self.parts.summarizer, &self.parts.provider);
        self.setup.limits = Arc::new(self.limit_overrides.over(&self.setup.limits));
        self.setup.summary_model = self.summary_model();
        let mut faults = self.faults();
        faults.extend(faults_of_run(&self.setup, &self.parts));
        if !faults.is_empty() {
            return Err(Error::Build(faults));
        }
        let (hosted_tools, retention, notes) = self.asked_of_provider();
        let beside = self.beside();
        let tools = self.known_tools();
        let max_parallel_tools = self.parallel_tools();
        let (setup, mut parts) = (self.setup, self.parts);
        let counter = match self.counter {
            Some(counter) => contained::counter(counter, &parts.breakdowns),
            None => Arc::new(Memo::new(Bpe::o200k())),
        };
        let policy = self.context.policy(self.policy, &beside, &parts.breakdowns);
        let setup = Setup {
            model: parts.provider.model().to_owned(),
            tools,
            hosted_tools: hosted_tools.into(),
            counter,
            line: self.context.strategy(beside.strategy).line(setup.line),
            compaction_timing: self.context.compaction_timing(&beside, setup.line),
            sheet: setup.sheet.map(|sheet| sheet.kept(retention)),
            retention,
            policy: contained::policy(policy, &parts.breakdowns),
            recovery: self.context.recovery(&beside),
            announces_plans: parts.hooks.follow_plans(),
            hooks: parts.hooks.points(),
            max_parallel_tools,
            ..setup
        };
        let secrets = self.secrets.into_iter();
        let secrets = secrets
            .chain(parts.provider.secrets())
            .chain(parts.summarizer.secrets());
        parts.secrets = Secrets::with_environment(secrets);
        parts.variables = InheritedVariables::new(self.pass_env, parts.secrets.variables());
        parts.hooks.commands.variables = parts.variables.clone();
        let tools = self.tools.into_iter();
        let tools = tools.map(|tool| (tool.spec().name.clone(), tool));
        parts.tools = tools.collect();
        parts.permissions = Arc::new(setup.permissions.clone());
        Ok(Agent {
            setup,
            context: self.context.config(self.summary),
            window: self.window,
            archives: self.archives,
            get_tool_response: self.get_tool_response,
            pins: self.pins,
            notes,
            parts: Arc::new(parts),
        })
    }

    /// Returns the model that writes summaries, if one does.
    fn summary_model(&self) -> Option<SummaryModel> {
        let prompt = self.summary_prompt.as_deref();
        let own_sheet = self.setup.sheet.filter(|_| !self.parts.asks_summarizer);
        (self.summary.author == Author::Model).then(|| SummaryModel {
            model: self.parts.summarizer.model().to_owned(),
            window: None,
            prompt: prompt.unwrap_or(SummaryModel::PROMPT).into(),
            sheet: self.summarizer_sheet.or(own_sheet),
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
            compaction_timing: self.compaction_timing,
        }
    }
}
