//! [`AgentBuilder`]: the settings of an [`Agent`], each with its default; what is required is an
//! argument of [`Agent::builder`]. Not their meaning; that is where they are used.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{
    AtLimit, ExecutionLimits, Leave, MAX_TURNS, Sampling, Setup, SummaryModel,
};
use plimsoll_context::{
    Author, Bpe, CacheConfig, ContextStrategy, Economy, LEAST_SUMMARY, Line, Memo, Policy,
    PriceSheet, Recall, SessionPruneConfig, SummaryConfig, Threshold, TokenCounter, Tokens,
};

use crate::agent::{Agent, Archive, MAX_PARALLEL_TOOLS, RecallNames, SUMMARY_TIMEOUT, known};
use crate::context::{Beside, Contexts};
use crate::driver::Parts;
use crate::error::Error;
use crate::gate::{DenyAll, Gate};
use crate::hooks::{Evicted, Hooks};
use crate::memory_store::MemoryStore;
use crate::observer::Observer;
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::session::AgentState;
use crate::store::SessionStore;
use crate::tool::Tool;
use crate::window::Window;

/// A first-in-first-out bound on everything that is sent (Ambi's name for it).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvictionStrategy {
    /// The oldest exchanges leave once more than this would be sent. Default 8,000.
    pub max_safe_tokens: Tokens,
}

impl Default for EvictionStrategy {
    fn default() -> Self {
        Self {
            max_safe_tokens: Tokens(8_000),
        }
    }
}

/// Settings of an [`Agent`]; made by [`Agent::builder`].
#[must_use]
pub struct AgentBuilder {
    provider: Arc<dyn Provider>,
    system: String,
    dynamic_context: Option<String>,
    tools: Vec<Arc<dyn Tool>>,
    counter: Option<Arc<dyn TokenCounter>>,
    window: Window,
    strategy: ContextStrategy,
    pub(crate) context: Contexts,
    policy: Option<Policy>,
    line: Line,
    prune: SessionPruneConfig,
    summary: SummaryConfig,
    summarizer: Option<Arc<dyn Provider>>,
    summary_prompt: Option<String>,
    summary_timeout: Duration,
    economy: Option<Economy>,
    sheet: Option<PriceSheet>,
    cache: CacheConfig,
    archive: Archive,
    recall_names: RecallNames,
    pins: Vec<String>,
    hooks: Hooks,
    limits: ExecutionLimits,
    max_parallel_tools: usize,
    max_tokens: Option<Tokens>,
    sampling: Sampling,
    store: Arc<dyn SessionStore>,
    gate: Arc<dyn Gate>,
    observers: Vec<Arc<dyn Observer>>,
    retry: RetryConfig,
}

impl Agent {
    /// Begins the settings of an agent on this model.
    pub fn builder(provider: impl Provider + 'static) -> AgentBuilder {
        Self::builder_shared(Arc::new(provider))
    }

    /// The same with a provider that is shared.
    pub fn builder_shared(provider: Arc<dyn Provider>) -> AgentBuilder {
        AgentBuilder {
            provider,
            system: String::new(),
            dynamic_context: None,
            tools: Vec::new(),
            counter: None,
            window: Window::default(),
            strategy: ContextStrategy::default(),
            context: Contexts::default(),
            policy: None,
            line: Line::default(),
            prune: SessionPruneConfig::default(),
            summary: SummaryConfig::default(),
            summarizer: None,
            summary_prompt: None,
            summary_timeout: SUMMARY_TIMEOUT,
            economy: None,
            sheet: None,
            cache: CacheConfig::default(),
            archive: Archive::default(),
            recall_names: RecallNames::default(),
            pins: Vec::new(),
            hooks: Hooks::default(),
            limits: ExecutionLimits::turns(MAX_TURNS),
            max_parallel_tools: 1,
            max_tokens: None,
            sampling: Sampling::default(),
            store: Arc::new(MemoryStore::default()),
            gate: Arc::new(DenyAll),
            observers: Vec::new(),
            retry: RetryConfig::default(),
        }
    }
}

impl AgentBuilder {
    /// The system prompt. Default: none.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = text.into();
        self
    }

    /// What is sent after the history of each request and is not part of it.
    pub fn dynamic_context(mut self, text: impl Into<String>) -> Self {
        self.dynamic_context = Some(text.into());
        self
    }

    /// One more tool.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// More tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// What counts tokens. Default: exact o200k.
    pub fn counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Where the model's window comes from. Default: the server.
    pub fn window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// The preset policy. Default: `evict`.
    pub fn context_strategy(mut self, strategy: ContextStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// First-in-first-out eviction under a bound: [`ContextStrategy::SlidingWindow`] by Ambi's name.
    pub fn with_eviction_strategy(self, eviction: EvictionStrategy) -> Self {
        self.context_strategy(ContextStrategy::SlidingWindow {
            max_tokens: Some(eviction.max_safe_tokens),
        })
    }

    /// Your own stages, in place of the preset's.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// When a plan is due, where the strategy has no trigger of its own.
    pub fn trigger(mut self, trigger: Threshold) -> Self {
        self.line.trigger = trigger;
        self
    }

    /// Where a plan ends.
    pub fn target(mut self, target: Threshold) -> Self {
        self.line.target = Some(target);
        self
    }

    /// One tool result, at most.
    pub fn max_result(mut self, tokens: Tokens) -> Self {
        self.line.max_result = Some(tokens);
        self
    }

    /// How many of the newest complete exchanges stay. Default 1.
    pub fn keep_recent(mut self, exchanges: usize) -> Self {
        self.line.keep_recent = exchanges;
        self
    }

    /// How old tool results shrink.
    pub fn session_prune(mut self, prune: SessionPruneConfig) -> Self {
        self.prune = prune;
        self
    }

    /// How large summaries may be, when they are written and by whom.
    pub fn summary_config(mut self, summary: SummaryConfig) -> Self {
        self.summary = summary;
        self
    }

    /// Who writes summaries, a cheaper model say. Default: the agent's own model.
    pub fn summarizer(mut self, provider: Arc<dyn Provider>) -> Self {
        self.summarizer = Some(provider);
        self
    }

    /// What the summariser is told, in place of [`SummaryModel::PROMPT`]. A summary must still have
    /// at least four of the seven headings that it asks for.
    pub fn summary_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.summary_prompt = Some(prompt.into());
        self
    }

    /// How long one call of the summariser may take. Default [`SUMMARY_TIMEOUT`].
    pub fn summary_timeout(mut self, timeout: Duration) -> Self {
        self.summary_timeout = timeout;
        self
    }

    /// When plans are due. Default: when they pay, or at the trigger where one was set in tokens.
    pub fn economy(mut self, economy: Economy) -> Self {
        self.economy = Some(economy);
        self
    }

    /// What the model costs. Default: unknown; then the usual ratios decide when a plan pays.
    pub fn prices(mut self, sheet: PriceSheet) -> Self {
        self.sheet = Some(sheet);
        self
    }

    /// How the provider's prompt cache is used. Default: breakpoints wherever they help.
    pub fn cache_config(mut self, cache: CacheConfig) -> Self {
        self.cache = cache;
        self
    }

    /// Whether what leaves the view is archived. Default: where the store can.
    pub fn archive(mut self, archive: Archive) -> Self {
        self.archive = archive;
        self
    }

    /// Offers `recall` under the name `get_tool_response(execution_id)` too, which some prompts and
    /// models know.
    pub fn get_tool_response(mut self) -> Self {
        self.recall_names = RecallNames::Both;
        self
    }

    /// A rule that is said in every session and stays in its view, whole.
    pub fn pin(mut self, rule: impl Into<String>) -> Self {
        self.pins.push(rule.into());
        self
    }

    /// Asked before a plan is applied, with the request's tokens by our counter and the messages of
    /// the view; `false` leaves the view as it is for this request; where that is over its limit, the run
    /// ends with `CannotFit`.
    pub fn before_compaction_start(
        mut self,
        hook: impl Fn(Tokens, usize) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.hooks.set_before(hook);
        self
    }

    /// Told after a plan was applied: messages before and after, tokens before and after.
    pub fn after_compaction_end(
        mut self,
        hook: impl Fn(usize, usize, Tokens, Tokens) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.set_after(hook);
        self
    }

    /// Called once for every plan that takes something out of the view, with exactly what left.
    /// It may be async; if it fails, nothing is lost.
    pub fn on_evict<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(&AgentState, Evicted) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.hooks.set_on_evict(hook);
        self
    }

    /// How long a run may be.
    pub fn execution_limits(mut self, limits: ExecutionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Model calls in a run. Default 50.
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.limits.max_turns = turns;
        self
    }

    /// Tool calls that run in a run. Default: no limit.
    pub fn max_tool_calls(mut self, calls: u64) -> Self {
        self.limits.max_tool_calls = Some(calls);
        self
    }

    /// How often in a row the same batch of tool calls may be asked for while its results do not
    /// change. Default: no limit; 1 acts as 2.
    pub fn max_identical_tool_calls(mut self, times: u64) -> Self {
        self.limits.max_identical_tool_calls = Some(times);
        self
    }

    /// What happens when a limit is reached. Default: the model is asked to finish.
    pub fn at_limit(mut self, at_limit: AtLimit) -> Self {
        self.limits.at_limit = at_limit;
        self
    }

    /// Tool calls at once, at most. Default 1.
    pub fn max_parallel_tools(mut self, calls: usize) -> Self {
        self.max_parallel_tools = calls;
        self
    }

    /// Tokens of one answer, at most. Default: the provider's.
    pub fn max_tokens(mut self, tokens: Tokens) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Temperature. Default: the provider's.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.sampling.temperature = Some(temperature);
        self
    }

    /// Seed, for providers that take one.
    pub fn seed(mut self, seed: u64) -> Self {
        self.sampling.seed = Some(seed);
        self
    }

    /// Where logs are kept. Default: in memory.
    pub fn store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.store = store;
        self
    }

    /// Who is asked before a tool call that asks. Default: nobody, which denies.
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gate = Arc::new(gate);
        self
    }

    /// The same with a gate that is shared.
    pub fn shared_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = gate;
        self
    }

    /// One more observer.
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        self.shared_observer(Arc::new(observer))
    }

    /// The same with an observer that is shared.
    pub fn shared_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// When a failed model call is made again.
    pub fn retry_config(mut self, retry: RetryConfig) -> Self {
        self.retry = retry;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Build`] with every fault at once.
    pub fn build(self) -> Result<Agent, Error> {
        let faults = self.faults();
        if !faults.is_empty() {
            return Err(Error::Build(faults));
        }
        let beside = self.beside();
        let counter = self
            .counter
            .unwrap_or_else(|| Arc::new(Memo::new(Bpe::o200k())));
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
            sheet: self.sheet.filter(|_| same),
        };
        let policy = self.context.policy(self.policy, &beside);
        let setup = Setup {
            model: self.provider.model().to_owned(),
            system: self.system.into(),
            dynamic_context: self.dynamic_context.map(Into::into),
            tools: self.tools.iter().map(known).collect(),
            line: self.context.strategy(self.strategy).line(self.line),
            economy: self.context.economy(&beside, self.line),
            sheet: self.sheet,
            cache: self.cache,
            recovery: self.context.recovery(&beside),
            summary_model: (self.summary.author == Author::Model).then_some(summary_model),
            recall: Recall::None,
            leave: match self.hooks.is_empty() {
                true => Leave::Freely,
                false => Leave::Asked,
            },
            limits: Arc::new(self.limits),
            max_parallel_tools: self.max_parallel_tools,
            max_output: self.max_tokens,
            sampling: self.sampling,
            ..Setup::new(String::new(), counter, policy)
        };
        let parts = Parts {
            provider: self.provider,
            summarizer,
            asks_summarizer: !same,
            summary_timeout: self.summary_timeout,
            hooks: self.hooks,
            tools: self
                .tools
                .into_iter()
                .map(|tool| (tool.spec().name.clone(), tool))
                .collect(),
            store: self.store,
            gate: self.gate,
            observers: self.observers,
            retry: self.retry,
        };
        Ok(Agent {
            setup,
            context: self.context.config(self.summary),
            window: self.window,
            archive: self.archive,
            recall_names: self.recall_names,
            pins: self.pins,
            parts: Arc::new(parts),
        })
    }

    fn beside(&self) -> Beside {
        Beside {
            strategy: self.strategy,
            prune: self.prune,
            summary: self.summary,
            economy: self.economy,
        }
    }

    fn faults(&self) -> Vec<String> {
        let (beside, policy) = (self.beside(), self.policy.as_ref());
        let mut faults = self.context.faults(&beside, self.line, self.window, policy);
        faults.extend(self.limits.faults());
        let mut fault = |bad: bool, text: String| {
            if bad {
                faults.push(text);
            }
        };
        fault(
            self.max_parallel_tools == 0 || self.max_parallel_tools > MAX_PARALLEL_TOOLS,
            format!(
                "max_parallel_tools is {}; choose 1 to {MAX_PARALLEL_TOOLS}",
                self.max_parallel_tools
            ),
        );
        fault(
            self.summary.max_summary_tokens < LEAST_SUMMARY,
            format!(
                "max_summary_tokens is {}; allow at least {LEAST_SUMMARY}, of which the frame of a summary takes 52",
                self.summary.max_summary_tokens
            ),
        );
        fault(
            self.max_tokens == Some(Tokens::ZERO),
            "max_tokens is 0; allow at least 1 token".into(),
        );
        fault(
            self.window == Window::Known(Tokens::ZERO),
            "the window is 0 tokens; give its real size".into(),
        );
        fault(
            self.retry.max_attempts == 0,
            "max_attempts is 0; allow at least 1".into(),
        );
        let temperature = self.sampling.temperature.unwrap_or_default();
        fault(
            !temperature.is_finite() || temperature < 0.0,
            format!("temperature is {temperature}; choose a number from 0"),
        );
        if let (Threshold::Sent(trigger), Some(Threshold::Sent(target))) =
            (self.strategy.line(self.line).trigger, self.line.target)
        {
            fault(
                target > trigger,
                format!(
                    "the target ({target}) is above the trigger ({trigger}); a plan must end below it"
                ),
            );
        }
        let mut names = HashSet::new();
        for tool in &self.tools {
            let name = &tool.spec().name;
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            fault(
                name.is_empty() || name.len() > 64 || !name.chars().all(good),
                format!("`{name}` cannot name a tool: use 1 to 64 letters, digits, `_` or `-`"),
            );
            fault(
                !names.insert(name),
                format!("two tools are named `{name}`; rename one"),
            );
        }
        faults
    }
}
