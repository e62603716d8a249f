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
        #[serde(
            default,
            alias = "trigger",
            alias = "threshold",
            alias = "max_token",
            alias = "max_safe_tokens"
        )]
        max_tokens: Option<Tokens>,
    },
    /// Old results shrink first, then the oldest exchanges leave: the default.
    Evict {
        /// The trigger, in tokens of everything that is sent. Default: a share of room.
        #[serde(
            default,
            alias = "trigger",
            alias = "threshold",
            alias = "max_token",
            alias = "max_safe_tokens"
        )]
        max_tokens: Option<Tokens>,
    },
    /// Over the trigger, one summary takes the place of the oldest exchanges.
    Summarize {
        /// The trigger, in tokens of everything that is sent. Default: a share of room.
        #[serde(
            default,
            alias = "trigger",
            alias = "threshold",
            alias = "max_token",
            alias = "max_safe_tokens"
        )]
        max_tokens: Option<Tokens>,
    },
    /// The same without a model: what was said stands word for word, most important first.
    Extract {
        /// The trigger, in tokens of everything that is sent. Default: a share of room.
        #[serde(
            default,
            alias = "trigger",
            alias = "threshold",
            alias = "max_token",
            alias = "max_safe_tokens"
        )]
        max_tokens: Option<Tokens>,
    },
}

impl Default for ContextStrategy {
    fn default() -> Self {
        Self::Evict { max_tokens: None }
    }
}

impl ContextStrategy {
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

    /// Returns its stages. Every strategy prunes old results if `prune` is given; `evict` also does
    /// if it is not, as [`SessionPruneConfig::default`] says.
    #[must_use]
    pub fn policy(self, prune: Option<SessionPruneConfig>, summary: SummaryConfig) -> Policy {
        let policy = match self {
            Self::Unlimited {} => Policy::unlimited(),
            Self::SlidingWindow { .. } => Policy::sliding_window(),
            Self::Evict { .. } => return Policy::evict(prune.unwrap_or_default()),
            Self::Summarize { .. } => Policy::summarize(summary),
            Self::Extract { .. } => Policy::summarize(summary.without_model()),
        };
        match prune {
            Some(prune) => policy.with_prune(prune),
            None => policy,
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
