//! Settings of the view: how it is kept below its limit, when, at which price, and how evicted
//! messages are kept. Their meaning is defined in `context`.

use std::sync::Arc;

use plimsoll_context::{CacheConfig, ContextStrategy, Policy, PriceSheet};

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
        self.parts.summarizer = Some(provider);
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
