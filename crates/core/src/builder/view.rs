//! Settings of the view: how it is kept below its limit, when, at which price, and how evicted
//! messages are kept. Their meaning is defined in `context`.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{
    CacheConfig, CacheRetention, ContextStrategy, Policy, PriceSheet, SessionPruneConfig,
    SummaryConfig, Threshold, Tokens,
};

use super::AgentBuilder;
use crate::provider::Provider;

impl AgentBuilder {
    /// Sets the preset policy. Default: `extract`, or `summarize` if a
    /// [`summarizer`](Self::summarizer) is set.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::{ContextStrategy, Tokens};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .context_strategy(ContextStrategy::Evict { max_tokens: Some(Tokens(9_000)) })
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn context_strategy(mut self, strategy: ContextStrategy) -> Self {
        self.settings.context_strategy = Some(strategy);
        self
    }

    /// Sets your own stages instead of a preset policy.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::Policy;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).policy(Policy::sliding_window()).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets when a plan is due, if the strategy has no trigger of its own.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::{Threshold, Tokens};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).trigger(Threshold::Sent(Tokens(60_000))).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn trigger(mut self, trigger: Threshold) -> Self {
        self.settings.trigger = trigger;
        self
    }

    /// Sets the size that a plan reduces the view to.
    ///
    /// Without a target and a trigger, both are derived from the window and from the money they
    /// save; see [`plimsoll_context::WORKING_TARGET`].
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::{Threshold, Tokens};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).target(Threshold::Sent(Tokens(30_000))).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn target(mut self, target: Threshold) -> Self {
        self.settings.target = Some(target);
        self
    }

    /// Sets the maximum size of one tool result.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::Tokens;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).max_result(Tokens(4_000)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn max_result(mut self, tokens: Tokens) -> Self {
        self.settings.max_result = Some(tokens);
        self
    }

    /// Sets how many of the newest complete exchanges are kept. Default 1.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).keep_recent(3).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn keep_recent(mut self, exchanges: usize) -> Self {
        self.settings.keep_recent = exchanges;
        self
    }

    /// Sets how old tool results are shortened, with any strategy. Default:
    /// [`SessionPruneConfig::default`] with `extract` and `evict`; other strategies do not shorten
    /// them.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::SessionPruneConfig;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .session_prune(SessionPruneConfig {
    ///         keep_recent_n: 5,
    ///         ..SessionPruneConfig::default()
    ///     })
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn session_prune(mut self, prune: SessionPruneConfig) -> Self {
        self.settings.session_prune = Some(prune);
        self
    }

    /// Sets the size, timing and author of summaries.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::{SummaryConfig, Tokens};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .summary_config(SummaryConfig {
    ///         max_summary_tokens: Tokens(800),
    ///         ..SummaryConfig::default()
    ///     })
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn summary_config(mut self, summary: SummaryConfig) -> Self {
        self.settings.summary = summary;
        self
    }

    /// Sets the model that writes summaries, for example a cheaper one. The default strategy is
    /// then `summarize`. Without it, `summarize` uses the agent's own model.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .summarizer(Arc::new(ScriptedProvider::new([])))
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn summarizer(mut self, provider: Arc<dyn Provider>) -> Self {
        self.summarizer = Some(provider);
        self
    }

    /// Sets the summarizer's prompt, instead of
    /// [`SummaryModel::PROMPT`](plimsoll_agent::SummaryModel::PROMPT). A summary must still contain
    /// at least four of the nine headings from that prompt.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_agent::SummaryModel;
    /// # let model = ScriptedProvider::new([]);
    /// let prompt = format!("{}\nWrite in Danish.", SummaryModel::PROMPT);
    /// let agent = Agent::builder(model).summary_prompt(prompt).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn summary_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.summary_prompt = Some(prompt.into());
        self
    }

    /// Sets the timeout of one summarizer call. Default
    /// [`SUMMARY_TIMEOUT`](crate::SUMMARY_TIMEOUT).
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::time::Duration;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).summary_timeout(Duration::from_secs(30)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn summary_timeout(mut self, timeout: Duration) -> Self {
        self.settings.driver.summary_timeout = Some(timeout);
        self
    }

    /// Sets the prices of the model. Default: unknown.
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
    /// let agent = Agent::builder(model).prices(PriceSheet::of(rates)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn prices(mut self, sheet: PriceSheet) -> Self {
        self.prices = Some(sheet);
        self
    }

    /// Sets the prices of the summarizer's model, if it is not the agent's own. Default: unknown,
    /// and then the cost of a run with summaries is unknown too.
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
    /// let agent = Agent::builder(model).summarizer_prices(PriceSheet::of(rates)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn summarizer_prices(mut self, sheet: PriceSheet) -> Self {
        self.summarizer_prices = Some(sheet);
        self
    }

    /// Sets how the provider's prompt cache is used. Default: breakpoints at all useful places.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::CacheConfig;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .cache_config(CacheConfig { enabled: false, ..CacheConfig::default() })
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn cache_config(mut self, cache: CacheConfig) -> Self {
        self.settings.cache = cache;
        self
    }

    /// Requests a longer lifetime of cache entries, if the provider offers one. If not, there is a
    /// warning and entries live as usual. Default: as usual.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::CacheRetention;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).cache_retention(CacheRetention::Head).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn cache_retention(mut self, retention: CacheRetention) -> Self {
        self.settings.retention = retention;
        self
    }

    /// Sets whether the model gets tools to recall evicted messages. Default: true.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).recall(false).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn recall(mut self, recall: bool) -> Self {
        self.settings.recall = recall;
        self
    }

    /// Also offers `recall` under the name `get_tool_response(execution_id)`, which some prompts
    /// and models use.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).get_tool_response().build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn get_tool_response(mut self) -> Self {
        self.settings.get_tool_response = true;
        self
    }

    /// Adds a rule that is part of every session and is never evicted or shortened.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).pin("Never call the coast guard.").build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn pin(mut self, rule: impl Into<String>) -> Self {
        self.settings.pins.push(rule.into());
        self
    }
}
