//! The ways in which other systems say how a context shrinks, translated into the one way here:
//! [`ViewLimits`] (trigger, target, exchanges that stay) and a [`Policy`] (stages).
//!
//! | there | here |
//! |---|---|
//! | Heartbit: `sliding_window` or `summarize` with `max_tokens` N | a preset of [`ContextStrategy`](crate::ContextStrategy) whose trigger is N, and its target 0.70 of that |
//! | phi-core: `ContextConfig`, `CompactionConfig` | [`ContextConfig::line`], [`ContextConfig::policy`]: the exact thresholds, then digest → lines → sections |
//! | Cognipeer: `maxToken`, `contextTokenLimit`, `summaryTokenLimit`, `summarization: false` | the preset `summarize` with a trigger, a target and a `SummaryConfig`; without summaries no trigger |

use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smart_default::SmartDefault;

use crate::budget::{TARGET_OF_EXPLICIT, Threshold, ViewLimits};
use crate::policy::{Policy, Stage};
use crate::setting_fault::SettingFault;
use crate::stages::{
    ArgumentDigest, Cap, Evict, Fit, Lines, MAX_SUMMARY, Section, Sections, SummaryConfig,
};
use crate::tokens::{Ppm, Tokens};

/// The size of a context and how it is compacted. As a setting, `None` means unlimited: no message
/// is edited until a provider refuses a request.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextConfig {
    /// The maximum size of a request. A smaller window of the model takes precedence. Default
    /// 100,000.
    #[default(Tokens(100_000))]
    pub max_context_tokens: Tokens,
    /// The tokens set aside for the system prompt; a larger system prompt counts with its own size.
    /// Default 4,000.
    #[default(Tokens(4_000))]
    pub system_prompt_tokens: Tokens,
    /// When and how to compact.
    pub compaction: CompactionConfig,
}

/// When and how to compact.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionConfig {
    /// The share of the context that may be filled. Default 0.90.
    #[serde(serialize_with = "as_fraction", deserialize_with = "of_fraction")]
    #[default(Ppm(900_000))]
    pub compact_at_pct: Ppm,
    /// The share of the context that is kept free below that. Default 0.05.
    #[serde(serialize_with = "as_fraction", deserialize_with = "of_fraction")]
    #[default(Ppm(50_000))]
    pub compact_budget_threshold_pct: Ppm,
    /// How many earlier runs of the session are summarised. Default `FixedCount(3)`.
    pub compaction_scope: CompactionScope,
    /// Number of turns that are kept at the beginning of the newest run. Default 2.
    #[default(2)]
    pub keep_first_turns: usize,
    /// Number of turns that are kept at the end of the newest run, each with all its results.
    /// Default 10.
    #[default(10)]
    pub keep_recent_turns: usize,
    /// The maximum size of the whole summary. Default 2,000.
    #[default(MAX_SUMMARY)]
    pub max_summary_tokens: Tokens,
    /// The maximum number of lines of one tool result within the kept turns at the end. A long line
    /// counts as several. Default 50.
    #[default(50)]
    pub tool_output_max_lines: usize,
    /// The request size that triggers a compaction, instead of the two shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Tokens>,
    /// The size at which a compaction ends, counted like the trigger. Default 0.70 of the trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Tokens>,
    /// Whether removed messages are summarised. If not, a trigger meant for summaries is ignored.
    /// Default: true.
    #[default(true)]
    pub summarization: bool,
}

/// How many earlier runs of a session are summarised. Runs before these are removed without a
/// summary.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionScope {
    /// This number of the newest runs.
    #[default]
    FixedCount(#[default(3)] usize),
    /// As many of the newest runs as fit within the target of a compaction.
    TokenBudget,
}

/// The sizes at which a compaction starts and ends, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// The size above which a compaction starts.
    pub fires_above: Tokens,
    /// The size at or below which it ends.
    pub ends_at: Tokens,
    /// The parts of a request that both sizes include.
    pub counts: Counts,
}

/// The parts of a request that thresholds count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// The whole request.
    All,
    /// The whole request except the system prompt.
    AllButSystem,
}

/// Stages that replace the built-in ones.
#[derive(Debug, Clone, Default)]
pub struct OwnStages {
    /// The stage that compacts the newest run.
    pub in_memory: Option<Arc<dyn Stage>>,
    /// The stage that compacts the earlier runs.
    pub block: Option<Arc<dyn Stage>>,
}

impl ContextConfig {
    /// Returns the sizes at which a compaction starts and ends, for a system prompt of `system`
    /// tokens and a model with the given window, if it is known.
    ///
    /// A compaction starts when everything except the system prompt exceeds
    /// `max · (at − threshold) − max(set aside, system)`, and ends at 0.70 of that. An explicit
    /// trigger includes the system prompt. The sizes are whole numbers, rounded down:
    ///
    /// ```
    /// use plimsoll_context::{ContextConfig, Tokens};
    /// let thresholds = ContextConfig::default().thresholds(Tokens(900), None);
    /// assert_eq!(thresholds.fires_above, Tokens(81_000));
    /// assert_eq!(thresholds.ends_at, Tokens(56_700));
    /// ```
    #[must_use]
    pub fn thresholds(&self, system: Tokens, window: Option<Tokens>) -> Thresholds {
        let compaction = &self.compaction;
        let (fires_above, counts) = match compaction.explicit_trigger() {
            Some(trigger) => (trigger, Counts::All),
            None => {
                let max = self.max(window);
                let at = compaction.compact_at_pct.0;
                let share = Ppm(at.saturating_sub(compaction.compact_budget_threshold_pct.0));
                let reserved = self.system_prompt_tokens.max(system);
                (max.share(share).minus(reserved), Counts::AllButSystem)
            }
        };
        let target = compaction.target.filter(|target| *target < fires_above);
        Thresholds {
            fires_above,
            ends_at: target.unwrap_or_else(|| fires_above.share(TARGET_OF_EXPLICIT)),
            counts,
        }
    }

    /// Returns the line with these thresholds applied, for a system prompt of `system` tokens.
    #[must_use]
    pub fn line(&self, line: ViewLimits, system: Tokens) -> ViewLimits {
        let thresholds = self.thresholds(system, line.window);
        let (trigger, target) = (thresholds.fires_above, thresholds.ends_at);
        let (trigger, target) = match thresholds.counts {
            Counts::All => (Threshold::Sent(trigger), Threshold::Sent(target)),
            Counts::AllButSystem => (
                Threshold::Mark(trigger + system),
                Threshold::Mark(target + system),
            ),
        };
        ViewLimits {
            window: Some(self.max(line.window)),
            trigger,
            target: Some(target),
            ..line
        }
    }

    /// Returns the policy with the stages cap → (digest) → lines → sections → evict → fit.
    ///
    /// The summary size of this configuration overrides the one in `summary`.
    #[must_use]
    pub fn policy(
        &self,
        summary: SummaryConfig,
        digest: Option<ArgumentDigest>,
        own: OwnStages,
    ) -> Policy {
        let compaction = &self.compaction;
        let mut stages: Vec<Arc<dyn Stage>> = vec![Arc::new(Cap::Arrivals)];
        if let Some(digest) = digest {
            stages.push(Arc::new(digest));
        }
        stages.push(Arc::new(Lines {
            max: compaction.tool_output_max_lines,
            of_turns: compaction.keep_recent_turns,
            after_turns: compaction.keep_first_turns,
        }));
        let of = match (&own.in_memory, &own.block) {
            (None, None) => Some(Section::All),
            (Some(_), None) => Some(Section::Earlier),
            (None, Some(_)) => Some(Section::Newest),
            (Some(_), Some(_)) => None,
        };
        stages.extend(own.block);
        stages.extend(own.in_memory);
        if let Some(of) = of {
            stages.push(Arc::new(Sections {
                of,
                scope: compaction.compaction_scope,
                keep_first_turns: compaction.keep_first_turns,
                keep_recent_turns: compaction.keep_recent_turns,
                summary: self.summary(summary),
            }));
        }
        stages.push(Arc::new(Evict::Oldest));
        stages.push(Arc::new(Fit::Results));
        Policy::new(stages)
    }

    /// Returns the settings for summaries, or `None` if removed messages are not summarised.
    #[must_use]
    pub fn summary(&self, summary: SummaryConfig) -> Option<SummaryConfig> {
        let summary = SummaryConfig {
            max_summary_tokens: self.compaction.max_summary_tokens,
            ..summary
        };
        self.compaction.summarization.then_some(summary)
    }

    /// Returns all errors in the configuration, with the conflicting numbers.
    #[must_use]
    pub fn faults(&self) -> Vec<SettingFault> {
        let (compaction, none) = (&self.compaction, Some(Tokens::ZERO));
        let (at, below) = (
            compaction.compact_at_pct,
            compaction.compact_budget_threshold_pct,
        );
        let zeros = SettingFault::zeros([
            (
                &["context.max_context_tokens"],
                self.max_context_tokens == Tokens::ZERO,
            ),
            (&["compaction.compact_at_pct"], at == Ppm(0)),
            (
                &["compaction.keep_recent_turns"],
                compaction.keep_recent_turns == 0,
            ),
            (
                &["summary.max_summary_tokens"],
                compaction.max_summary_tokens == Tokens::ZERO,
            ),
            (
                &["compaction.tool_output_max_lines"],
                compaction.tool_output_max_lines == 0,
            ),
            (&["compaction.trigger"], compaction.trigger == none),
            (&["compaction.target"], compaction.target == none),
        ]);
        let mut faults: Vec<SettingFault> = zeros.collect();
        let mut fault = |bad: bool, settings: &'static [&'static str], text: String| {
            if bad {
                faults.push(SettingFault::new(settings, text));
            }
        };
        let shares = &[
            "compaction.compact_at_pct",
            "compaction.compact_budget_threshold_pct",
        ];
        let named = format!(
            "compact_at_pct is {} and compact_budget_threshold_pct {}",
            fraction(at),
            fraction(below)
        );
        let are_fractions = at <= Ppm::ONE && below <= Ppm::ONE;
        fault(
            !are_fractions,
            shares,
            format!("{named}; give fractions from 0 to 1"),
        );
        let shares_are_good = are_fractions && at > Ppm(0);
        fault(
            shares_are_good && at <= below,
            shares,
            format!(
                "{named}, so every request would be compacted; raise the first above the second"
            ),
        );
        let max = self.max_context_tokens;
        let trigger = compaction.explicit_trigger();
        let full = max.share(Ppm(at.0.saturating_sub(below.0)));
        let reserved = self.system_prompt_tokens;
        fault(
            trigger.is_none() && full > Tokens::ZERO && full <= reserved && shares_are_good,
            &["context.max_context_tokens", "context.system_prompt_tokens"],
            format!(
                "every request would be compacted: {full} of max_context_tokens ({max}) may be \
                 used, and system_prompt_tokens ({reserved}) takes it all; raise \
                 max_context_tokens or lower system_prompt_tokens"
            ),
        );
        let above = trigger.filter(|trigger| *trigger > max);
        fault(
            above.is_some(),
            &["context.max_context_tokens", "compaction.trigger"],
            format!(
                "the trigger ({}) is above max_context_tokens ({max}); compaction would never fire",
                above.unwrap_or_default()
            ),
        );
        let fires = self.thresholds(Tokens::ZERO, None).fires_above;
        let target = compaction.target.filter(|target| *target >= fires);
        fault(
            fires > Tokens::ZERO && target.is_some(),
            &[
                "compaction.trigger",
                "compaction.target",
                "context.max_context_tokens",
            ],
            format!(
                "the trigger ({fires}) is not above the target ({}); a compaction must end below \
                 its trigger",
                target.unwrap_or_default()
            ),
        );
        faults
    }

    fn max(&self, window: Option<Tokens>) -> Tokens {
        let max = self.max_context_tokens;
        window.map_or(max, |window| window.min(max))
    }
}

impl CompactionConfig {
    /// Returns the explicit trigger. It is ignored if no summaries are made.
    fn explicit_trigger(&self) -> Option<Tokens> {
        self.trigger.filter(|_| self.summarization)
    }
}

fn of_fraction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ppm, D::Error> {
    let fraction = Ppm::from_fraction(f64::deserialize(deserializer)?);
    fraction.ok_or_else(|| D::Error::custom("give a fraction from 0 to 1, such as 0.9"))
}

fn as_fraction<S: Serializer>(ppm: &Ppm, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(fraction(*ppm))
}

fn fraction(ppm: Ppm) -> f64 {
    ppm.0 as f64 / Ppm::ONE.0 as f64
}

#[cfg(test)]
mod tests;
