//! [`ContextStrategy`]: the names of the preset policies, as a configuration spells them.
//! Not the stages themselves.

use serde::{Deserialize, Serialize};

use crate::budget::{Line, Threshold};
use crate::policy::Policy;
use crate::stages::{SessionPruneConfig, SummaryConfig};
use crate::tokens::Tokens;

/// A preset policy with its trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContextStrategy {
    /// Nothing is edited before a provider refuses.
    Unlimited {},
    /// The newest exchanges within `max_tokens` of everything that is sent.
    SlidingWindow {
        /// The trigger, in tokens of everything that is sent. Default: a share of room.
        #[serde(default)]
        max_tokens: Option<Tokens>,
    },
    /// Old results shrink first, then the oldest exchanges leave.
    Evict {
        /// The trigger, in tokens of everything that is sent. Default: a share of room.
        #[serde(default)]
        max_tokens: Option<Tokens>,
    },
    /// Over the trigger, a model's summary takes the place of the oldest exchanges.
    Summarize {
        /// The trigger, in tokens of everything that is sent. Default: a share of room.
        #[serde(default)]
        max_tokens: Option<Tokens>,
    },
    /// Old results shrink first, then a summary that needs no model takes the place of the oldest
    /// exchanges: it repeats the user's words and tells what was done. The default.
    Extract {
        /// The trigger, in tokens of everything that is sent. Default: a share of room.
        #[serde(default)]
        max_tokens: Option<Tokens>,
    },
}

impl Default for ContextStrategy {
    fn default() -> Self {
        Self::Extract { max_tokens: None }
    }
}

impl ContextStrategy {
    /// Returns the default strategy with this trigger: `summarize` if a model is configured to write
    /// summaries, else `extract`.
    #[must_use]
    pub fn default_for(has_summarizer: bool, max_tokens: Option<Tokens>) -> Self {
        if has_summarizer {
            Self::Summarize { max_tokens }
        } else {
            Self::Extract { max_tokens }
        }
    }

    /// Every name that [`ContextStrategy::named`] knows.
    pub const NAMES: [&'static str; 5] = [
        "unlimited",
        "sliding_window",
        "evict",
        "summarize",
        "extract",
    ];

    /// The preset of this name (`-` and `_` are one), with its trigger where it has one.
    #[must_use]
    pub fn named(name: &str, max_tokens: Option<Tokens>) -> Option<Self> {
        match name.replace('-', "_").as_str() {
            "unlimited" => Some(Self::Unlimited {}),
            "sliding_window" => Some(Self::SlidingWindow { max_tokens }),
            "evict" => Some(Self::Evict { max_tokens }),
            "summarize" => Some(Self::Summarize { max_tokens }),
            "extract" => Some(Self::Extract { max_tokens }),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unlimited {} => "unlimited",
            Self::SlidingWindow { .. } => "sliding_window",
            Self::Evict { .. } => "evict",
            Self::Summarize { .. } => "summarize",
            Self::Extract { .. } => "extract",
        }
    }

    /// Returns its stages. Every strategy prunes old results if `prune` is given; `evict` and
    /// `extract` also do if it is not, as [`SessionPruneConfig::default`] says. `summarize` does not:
    /// a summary that is written beside the run would be of results that are pruned by then.
    #[must_use]
    pub fn policy(self, prune: Option<SessionPruneConfig>, summary: SummaryConfig) -> Policy {
        let (policy, prune) = match self {
            Self::Unlimited {} => (Policy::unlimited(), prune),
            Self::SlidingWindow { .. } => (Policy::sliding_window(), prune),
            Self::Evict { .. } => return Policy::evict(prune.unwrap_or_default()),
            Self::Summarize { .. } => (Policy::summarize(summary), prune),
            Self::Extract { .. } => (
                Policy::summarize(summary.without_model()),
                Some(prune.unwrap_or_default()),
            ),
        };
        match prune {
            Some(prune) => policy.with_prune(prune),
            None => policy,
        }
    }

    /// Returns its stages for a filter, which cuts a chat once to the size that it is given. The
    /// summary of a filter may take half of that size, and then contains more than pruned results
    /// do, so `extract` does not prune.
    #[must_use]
    pub fn filter_policy(self, summary: SummaryConfig) -> Policy {
        match self {
            Self::Extract { .. } => Policy::summarize(summary.without_model()),
            _ => self.policy(None, summary),
        }
    }

    /// The line with this strategy's trigger in it.
    #[must_use]
    pub fn line(self, line: Line) -> Line {
        let max_tokens = match self {
            Self::Unlimited {} => {
                return Line {
                    window: None,
                    trigger: Threshold::Sent(Tokens::MAX),
                    ..line
                };
            }
            Self::SlidingWindow { max_tokens }
            | Self::Evict { max_tokens }
            | Self::Summarize { max_tokens }
            | Self::Extract { max_tokens } => max_tokens,
        };
        Line {
            trigger: max_tokens.map_or(line.trigger, Threshold::Sent),
            ..line
        }
    }
}
