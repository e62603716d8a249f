//! The builder's context settings besides the preset, and how they are combined.

use std::sync::Arc;

use plimsoll_context::{
    ContextConfig, ContextStrategy, HistoryLimit, MAX_SUMMARY, Policy, SettingFault, Stage, Tokens,
    ViewLimits,
};

use super::AgentBuilder;
use crate::context_limits::no_room;
use crate::window::Window;

impl AgentBuilder {
    /// Sets when and how the context is compacted, by its size. `None` means unlimited.
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use plimsoll_context::{ContextConfig, Tokens};
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model)
    ///     .context_config(ContextConfig {
    ///         max_context_tokens: Tokens(50_000),
    ///         ..ContextConfig::default()
    ///     })
    ///     .build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn context_config(mut self, config: impl Into<Option<ContextConfig>>) -> Self {
        self.settings.context_config = config.into();
        if self.settings.context_config.is_none() {
            self.settings.context_strategy = Some(ContextStrategy::Unlimited {});
        }
        self
    }

    /// Replaces the stage that compacts the newest run under a [`ContextConfig`].
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// use plimsoll_context::Evict;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).in_memory_strategy(Arc::new(Evict::Oldest)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn in_memory_strategy(mut self, stage: Arc<dyn Stage>) -> Self {
        self.own_stages.in_memory = Some(stage);
        self
    }

    /// Replaces the stage that compacts earlier runs under a [`ContextConfig`].
    ///
    /// ```
    /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
    /// use std::sync::Arc;
    /// use plimsoll_context::Evict;
    /// # let model = ScriptedProvider::new([]);
    /// let agent = Agent::builder(model).block_strategy(Arc::new(Evict::Oldest)).build()?;
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn block_strategy(mut self, stage: Arc<dyn Stage>) -> Self {
        self.own_stages.block = Some(stage);
        self
    }

    /// Returns the combined [`ContextConfig`], if the context is limited by its size.
    pub(super) fn effective_context_config(&self) -> Option<ContextConfig> {
        let default = self.has_own_stages().then(ContextConfig::default);
        let mut config = self.settings.context_config.or(default)?;
        let compaction = &mut config.compaction;
        if compaction.max_summary_tokens == MAX_SUMMARY {
            compaction.max_summary_tokens = self.settings.summary.max_summary_tokens;
        }
        compaction.summarization &= self.settings.summarization;
        Some(config)
    }

    /// Returns the chosen preset policy, or the default one.
    pub(super) fn strategy(&self) -> ContextStrategy {
        let default = || ContextStrategy::default_for(self.parts.summarizer.is_some(), None);
        self.settings.context_strategy.unwrap_or_else(default)
    }

    /// Returns the preset policy as changed by the other settings.
    pub(super) fn effective_strategy(&self) -> ContextStrategy {
        match self.strategy() {
            ContextStrategy::Summarize { .. } | ContextStrategy::Extract { .. }
                if !self.settings.summarization =>
            {
                ContextStrategy::Evict { max_tokens: None }
            }
            strategy => strategy,
        }
    }

    /// Returns the policy with the stages that other settings add.
    pub(super) fn effective_policy(&self) -> Policy {
        let settings = &self.settings;
        let (mut digest, mut prune) = (settings.argument_digest, settings.session_prune);
        let own = self.policy.clone();
        let mut policy = own.unwrap_or_else(|| match self.effective_context_config() {
            Some(config) => config.policy(settings.summary, digest.take(), self.own_stages.clone()),
            None => self
                .effective_strategy()
                .policy(prune.take(), settings.summary),
        });
        if let Some(prune) = prune {
            policy = policy.with_prune(prune);
        }
        if let Some(digest) = digest {
            policy = policy.with_stage(Arc::new(digest));
        }
        if let Some(messages) = settings.max_history_messages {
            policy = policy.with_stage(Arc::new(HistoryLimit(messages)));
        }
        policy
    }

    /// Returns the policy for an overflow, independent of the strategy: shorten results, then
    /// summarize the evicted messages.
    pub(super) fn recovery(&self) -> Policy {
        let settings = &self.settings;
        let config = self.effective_context_config();
        let usual = settings.summarization.then_some(settings.summary);
        let summary = config.map_or(usual, |it| it.summary(settings.summary));
        Policy::recovery(settings.session_prune.unwrap_or_default(), summary)
    }

    /// Returns the faults of the context settings in combination.
    pub(super) fn context_faults(&self) -> Vec<SettingFault> {
        let settings = &self.settings;
        let policy = self.policy.as_ref();
        let is_set = settings.context_config.is_some() || self.has_own_stages();
        let default = ViewLimits::default();
        let has_trigger = settings.trigger != default.trigger || settings.target.is_some();
        let preset = settings.context_strategy;
        let is_unlimited = preset == Some(ContextStrategy::Unlimited {});
        let own = match settings.context_config {
            Some(_) => "context_config",
            None => "in_memory_strategy or block_strategy",
        };
        let name = format!("context_strategy ({})", preset.unwrap_or_default().name());
        let has_two_triggers = self.strategy().line(default).trigger != default.trigger
            && settings.trigger != default.trigger
            && !is_unlimited;
        let twice = [
            (is_set && preset.is_some(), own, name.as_str()),
            (is_set && policy.is_some(), "context_config", "policy"),
            (is_set && has_trigger, "context_config", "trigger or target"),
            (has_two_triggers, "context_strategy's max_tokens", "trigger"),
        ];
        let twice = twice.into_iter().filter(|(is_twice, ..)| *is_twice);
        let twice = twice.map(|(_, first, second)| {
            let text = format!(
                "{first} and {second} are two settings of one thing; keep the one you mean"
            );
            SettingFault::new(&["context_strategy", "trigger"], text)
        });
        let mut faults: Vec<SettingFault> = twice.collect();
        if let Some(config) = self.effective_context_config() {
            faults.extend(config.faults());
            if let Window::Known(window) = settings.window {
                faults.extend(no_room(&config, Tokens::ZERO, window));
            }
        }
        let is_preset_unlimited = self.effective_strategy() == ContextStrategy::Unlimited {};
        let edits_nothing = policy.map_or(is_preset_unlimited, |policy| !policy.is_limited());
        let (digest, max_history) = (settings.argument_digest, settings.max_history_messages);
        if edits_nothing && (digest.is_some() || max_history.is_some()) {
            faults.push(SettingFault::new(
                &[
                    "context_strategy",
                    "argument_digest",
                    "max_history_messages",
                ],
                "argument_digest and max_history_messages change the context, but unlimited never \
                 does; choose another strategy or remove them",
            ));
        }
        if is_unlimited && has_trigger {
            faults.push(SettingFault::new(
                &["context_strategy", "trigger", "target"],
                "context_strategy \"unlimited\" never compacts, so `trigger` and `target` have no \
                 effect; remove them or choose another context_strategy",
            ));
        }
        let digest = digest.and_then(|digest| digest.fault());
        faults.extend(digest.map(|text| SettingFault::new(&["argument_digest"], text)));
        faults
    }

    fn has_own_stages(&self) -> bool {
        self.own_stages.in_memory.is_some() || self.own_stages.block.is_some()
    }
}
