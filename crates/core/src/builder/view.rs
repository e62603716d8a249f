//! Settings of the view: what keeps it under its line, when, at what price, and what becomes of what
//! leaves it. Not their meaning; that is in `context`.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{
    CacheConfig, CacheRetention, ContextStrategy, Economy, Policy, PriceSheet, SessionPruneConfig,
    SummaryConfig, Threshold, Tokens,
};

use super::AgentBuilder;
use crate::agent::{Archive, RecallNames};
use crate::provider::Provider;

impl AgentBuilder {
    /// The preset policy. Default: `extract`, or `summarize` if a [`summarizer`](Self::summarizer)
    /// is set.
    pub fn context_strategy(mut self, strategy: ContextStrategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// Returns the preset policy that was chosen, or the default one.
    pub(super) fn strategy(&self) -> ContextStrategy {
        let default = || ContextStrategy::default_for(self.summarizer.is_some(), None);
        self.strategy.unwrap_or_else(default)
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

    /// Where a plan ends. Without it, and without a trigger, the sizes follow from the window and from
    /// what money they save: see [`plimsoll_context::WORKING_TARGET`].
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

    /// How old tool results are shortened, under any strategy. Default: as
    /// [`SessionPruneConfig::default`] says under `extract` and `evict`, not at all under others.
    pub fn session_prune(mut self, prune: SessionPruneConfig) -> Self {
        self.prune = Some(prune);
        self
    }

    /// How large summaries may be, when they are written and by whom.
    pub fn summary_config(mut self, summary: SummaryConfig) -> Self {
        self.summary = summary;
        self
    }

    /// Who writes summaries, a cheaper model say. The default strategy is then `summarize`. Without
    /// it, `summarize` asks the agent's own model.
    pub fn summarizer(mut self, provider: Arc<dyn Provider>) -> Self {
        self.summarizer = Some(provider);
        self
    }

    /// What the summariser is told, in place of
    /// [`SummaryModel::PROMPT`](plimsoll_agent::SummaryModel::PROMPT). A summary must still have
    /// at least four of the seven headings that it asks for.
    pub fn summary_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.summary_prompt = Some(prompt.into());
        self
    }

    /// How long one call of the summariser may take. Default
    /// [`SUMMARY_TIMEOUT`](crate::SUMMARY_TIMEOUT).
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

    /// What the summariser's model costs, where it is another than the agent's own. Default: unknown,
    /// and with it what a run costs that has summaries.
    pub fn summarizer_prices(mut self, sheet: PriceSheet) -> Self {
        self.summarizer_sheet = Some(sheet);
        self
    }

    /// How the provider's prompt cache is used. Default: breakpoints wherever they help.
    pub fn cache_config(mut self, cache: CacheConfig) -> Self {
        self.cache = cache;
        self
    }

    /// How long entries of that cache are asked to be kept, where the provider has a longer life to
    /// sell; where it has not, that is told and they live as usual. Default: as usual.
    pub fn cache_retention(mut self, retention: CacheRetention) -> Self {
        self.retention = retention;
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
}
