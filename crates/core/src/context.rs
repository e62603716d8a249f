//! [`Contexts`]: what a builder was told of how its agents' contexts are kept small besides the
//! preset, and what that comes to. Not the stages; those are in `context`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_context::{
    ArgumentDigest, Budget, CompactionConfig, ContextConfig, ContextStrategy, Draft, Economy, Gap,
    HistoryLimit, Line, MAX_SUMMARY, OwnStages, Policy, SessionPruneConfig, Stage, Summarization,
    SummaryConfig, Threshold, Tokens, Trigger,
};

use crate::Window;
use crate::builder::AgentBuilder;
use crate::contained::Breakdowns;

/// What a builder was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contexts {
    config: Said,
    compaction: Option<CompactionConfig>,
    own: OwnStages,
    digest: Option<ArgumentDigest>,
    summarization: Summarization,
    max_history: Option<usize>,
}

/// What was said of a [`ContextConfig`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Said {
    /// Nothing.
    #[default]
    Nothing,
    /// That there is none: unlimited.
    Unlimited,
    /// This.
    Config(ContextConfig),
}

/// What the other settings of a builder come to beside these.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside {
    pub(crate) strategy: ContextStrategy,
    /// Whether the strategy was chosen rather than the default.
    pub(crate) has_strategy: bool,
    pub(crate) prune: Option<SessionPruneConfig>,
    pub(crate) summary: SummaryConfig,
    pub(crate) economy: Option<Economy>,
}

impl AgentBuilder {
    /// When a context is compacted and how, by its size; `None` is unlimited. Unless [`Economy`]
    /// says otherwise, a plan is due at its trigger, neither earlier nor later.
    pub fn context_config(mut self, config: impl Into<Option<ContextConfig>>) -> Self {
        self.context.config = match config.into() {
            Some(config) => Said::Config(config),
            None => Said::Unlimited,
        };
        self
    }

    /// When to compact and how, in the context's [`ContextConfig`]: the default one where none is set.
    pub fn compaction_config(mut self, compaction: CompactionConfig) -> Self {
        self.context.compaction = Some(compaction);
        self
    }

    /// A stage of your own in place of what compacts the newest run under a [`ContextConfig`].
    pub fn in_memory_strategy(mut self, stage: Arc<dyn Stage>) -> Self {
        self.context.own.in_memory = Some(stage);
        self
    }

    /// A stage of your own in place of what compacts earlier runs under a [`ContextConfig`].
    pub fn block_strategy(mut self, stage: Arc<dyn Stage>) -> Self {
        self.context.own.block = Some(stage);
        self
    }

    /// Long texts in the arguments of old calls become digests when a plan is due. Default: they
    /// stay.
    pub fn argument_digest(mut self, digest: ArgumentDigest) -> Self {
        self.context.digest = Some(digest);
        self
    }

    /// Whether what leaves is summarised where the strategy would. Without, the trigger that was
    /// meant for summaries is not heeded. Default: it is.
    pub fn summarization(mut self, summarization: impl Into<Summarization>) -> Self {
        self.context.summarization = summarization.into();
        self
    }

    /// Messages of the view, at most, as far as the task, the newest exchange and pins allow; whole
    /// exchanges leave. Default: no limit.
    pub fn max_history_messages(mut self, messages: usize) -> Self {
        self.context.max_history = Some(messages);
        self
    }
}

impl Contexts {
    /// The configuration, all that was said of it in one.
    pub(crate) fn config(&self, summary: SummaryConfig) -> Option<ContextConfig> {
        let mut config = match self.config {
            Said::Unlimited => return None,
            Said::Config(config) => config,
            Said::Nothing if self.compaction.is_some() || self.has_own() => {
                ContextConfig::default()
            }
            Said::Nothing => return None,
        };
        if let Some(compaction) = self.compaction {
            config.compaction = compaction;
        }
        let compaction = &mut config.compaction;
        if compaction.max_summary_tokens == MAX_SUMMARY {
            compaction.max_summary_tokens = summary.max_summary_tokens;
        }
        if self.summarization == Summarization::Off {
            compaction.summarization = Summarization::Off;
        }
        Some(config)
    }

    /// The preset that is left of the one that was asked for.
    pub(crate) fn strategy(&self, strategy: ContextStrategy) -> ContextStrategy {
        match (self.config, strategy) {
            (Said::Unlimited, _) => ContextStrategy::Unlimited {},
            (_, ContextStrategy::Summarize { .. } | ContextStrategy::Extract { .. })
                if self.summarization == Summarization::Off =>
            {
                ContextStrategy::Evict { max_tokens: None }
            }
            (_, strategy) => strategy,
        }
    }

    /// When plans are due.
    pub(crate) fn economy(&self, beside: &Beside, line: Line) -> Economy {
        let line = self.strategy(beside.strategy).line(line);
        let set = line.window.is_some() && matches!(line.trigger, Threshold::Sent(_));
        beside
            .economy
            .unwrap_or_else(|| match set || self.config(beside.summary).is_some() {
                true => Economy::Fixed,
                false => Economy::Priced,
            })
    }

    /// The stages; `own` are those of a policy that was set.
    pub(crate) fn policy(
        &self,
        own: Option<Policy>,
        beside: &Beside,
        breakdowns: &Arc<Breakdowns>,
    ) -> Policy {
        let (mut digest, mut prune) = (self.digest, beside.prune);
        let mut policy = own.unwrap_or_else(|| match self.config(beside.summary) {
            Some(config) => config.policy(beside.summary, digest.take(), self.own.clone()),
            None => self
                .strategy(beside.strategy)
                .policy(prune.take(), beside.summary),
        });
        if let Some(prune) = prune {
            policy = policy.with_prune(prune);
        }
        if let Some(digest) = digest {
            policy = policy.with_stage(Arc::new(digest));
        }
        if let Some(messages) = self.max_history {
            let limit = ReportedHistoryLimit {
                limit: HistoryLimit(messages),
                breakdowns: Arc::clone(breakdowns),
                is_reported: AtomicBool::new(false),
            };
            policy = policy.with_stage(Arc::new(limit));
        }
        policy
    }

    /// What an overflow is answered with, whatever the strategy: results shrink, then what has to
    /// leave is summed up.
    pub(crate) fn recovery(&self, beside: &Beside) -> Policy {
        let summary = match self.config(beside.summary) {
            Some(config) => config.summary(beside.summary),
            None => Some(beside.summary),
        };
        Policy::recovery(beside.prune.unwrap_or_default(), summary)
    }

    /// What is wrong with what was said, beside the other settings.
    pub(crate) fn faults(
        &self,
        beside: &Beside,
        line: Line,
        window: Window,
        policy: Option<&Policy>,
    ) -> Vec<String> {
        let mut faults = Vec::new();
        let mut twice = |bad: bool, first: &str, second: &str| {
            if bad {
                faults.push(format!(
                    "{first} and {second} are two settings of one thing; keep the one you mean"
                ));
            }
        };
        let default = Line::default();
        let is_set = self.config != Said::Nothing || self.compaction.is_some() || self.has_own();
        let has_trigger = line.trigger != default.trigger || line.target.is_some();
        let preset = beside.has_strategy;
        twice(is_set && preset, "context_config", "context_strategy");
        twice(is_set && policy.is_some(), "context_config", "policy");
        twice(is_set && has_trigger, "context_config", "trigger or target");
        if let Some(compaction) = self.compaction {
            let within = match self.config {
                Said::Config(config) => config.compaction,
                Said::Nothing | Said::Unlimited => compaction,
            };
            let differs = within != compaction && within != CompactionConfig::default();
            twice(differs, "context_config's compaction", "compaction_config");
        }
        let unlimited = self.config == Said::Unlimited;
        let compacts = self.compaction.is_some() || self.has_own();
        twice(
            unlimited && compacts,
            "context_config(None), which is unlimited,",
            "compaction_config",
        );
        if let Some(config) = self.config(SummaryConfig::default()) {
            let (said, beside) = (
                config.compaction.max_summary_tokens,
                beside.summary.max_summary_tokens,
            );
            let differ = said != MAX_SUMMARY && beside != MAX_SUMMARY && said != beside;
            twice(
                differ,
                &format!("compaction_config's max_summary_tokens ({said})"),
                &format!("summary_config's ({beside})"),
            );
            faults.extend(config.faults());
            if let Window::Known(window) = window {
                faults.extend(no_room(&config, Tokens::ZERO, window));
            }
        }
        let edits_nothing = match policy {
            Some(policy) => !policy.is_limited(),
            None => self.strategy(beside.strategy) == ContextStrategy::Unlimited {},
        };
        if edits_nothing && (self.digest.is_some() || self.max_history.is_some()) {
            faults.push(
                "argument_digest and max_history_messages edit the context, and unlimited edits \
                 nothing; choose another strategy or leave them out"
                    .to_owned(),
            );
        }
        if self.max_history == Some(0) {
            faults.push("max_history_messages is 0; allow at least 1".to_owned());
        }
        faults.extend(self.digest.and_then(|digest| digest.fault()));
        faults
    }

    fn has_own(&self) -> bool {
        self.own.in_memory.is_some() || self.own.block.is_some()
    }
}

/// A history limit that reports the first time that the protected messages alone exceed it.
#[derive(Debug)]
struct ReportedHistoryLimit {
    limit: HistoryLimit,
    breakdowns: Arc<Breakdowns>,
    is_reported: AtomicBool,
}

impl Stage for ReportedHistoryLimit {
    fn name(&self) -> &str {
        self.limit.name()
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, why: Trigger) {
        self.limit.propose(draft, budget, why);
        let at = 0..draft.items().len();
        let is_left = |at: &usize| {
            let current = draft.current(*at);
            current.is_some_and(|(message, _)| Gap::of(message).is_none())
        };
        let left = at.filter(is_left).count();
        let HistoryLimit(limit) = self.limit;
        if left > limit && !self.is_reported.swap(true, Ordering::Relaxed) {
            self.breakdowns.add(format!(
                "max_history_messages is {limit}, and the view has {left} messages: the task and the \
                 newest calls with their results stay"
            ));
        }
    }
}

/// The line that a configuration draws beside a system prompt of `system` tokens, or why it cannot.
pub(crate) fn line(config: &ContextConfig, line: Line, system: Tokens) -> Result<Line, String> {
    let window = line.window.unwrap_or(Tokens::MAX);
    let drawn = config.line(line, system);
    match no_room(config, system, window) {
        Some(fault) => Err(fault),
        None => Ok(drawn),
    }
}

/// Why compaction would fire above nothing in this window, if it would.
fn no_room(config: &ContextConfig, system: Tokens, window: Tokens) -> Option<String> {
    // Without room in its own maximum either it is faulty as it is, which is said elsewhere.
    let is_good = config.faults().is_empty();
    let fires = config.thresholds(system, Some(window)).fires_above;
    let aside = config.system_prompt_tokens.max(system);
    let max = config.max_context_tokens.min(window);
    (is_good && fires == Tokens::ZERO).then(|| {
        format!(
            "compaction would fire above nothing: of {max} tokens of context the system prompt \
             takes {aside}; allow more with max_context_tokens, or lower system_prompt_tokens or \
             the system prompt"
        )
    })
}
