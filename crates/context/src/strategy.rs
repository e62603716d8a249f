//! [`ContextStrategy`]: the names of the preset policies in a configuration.

use std::fmt;

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use strum::IntoStaticStr;

use crate::budget::{Threshold, ViewLimits};
use crate::policy::Policy;
use crate::stages::{SessionPruneConfig, SummaryConfig};
use crate::tokens::Tokens;

/// A preset policy with its trigger.
#[derive(
    Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[strum(serialize_all = "snake_case")]
pub enum ContextStrategy {
    /// Edits nothing until a provider refuses a request.
    Unlimited {},
    /// Keeps the newest exchanges within `max_tokens`.
    SlidingWindow {
        /// The trigger, as the total size of a request. Default: a share of the available tokens.
        #[serde(default)]
        max_tokens: Option<Tokens>,
    },
    /// First shortens old results, then evicts the oldest exchanges.
    Evict {
        /// The trigger, as the total size of a request. Default: a share of the available tokens.
        #[serde(default)]
        max_tokens: Option<Tokens>,
    },
    /// Replaces the oldest exchanges by a model's summary when the view exceeds the trigger.
    Summarize {
        /// The trigger, as the total size of a request. Default: a share of the available tokens.
        #[serde(default)]
        max_tokens: Option<Tokens>,
    },
    /// First shortens old results, then replaces the oldest exchanges by a summary that needs no
    /// model: it repeats the user's words and lists the actions. The default.
    #[default]
    Extract {
        /// The trigger, as the total size of a request. Default: a share of the available tokens.
        #[serde(default)]
        max_tokens: Option<Tokens>,
    },
}

impl fmt::Display for ContextStrategy {
    /// Formats the name and the trigger, such as "evict above 4000 tokens".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.max_tokens() {
            Some(tokens) => write!(f, " above {tokens} tokens"),
            None => Ok(()),
        }
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

    /// All names that [`ContextStrategy::named`] accepts.
    pub const NAMES: [&'static str; 5] = [
        "unlimited",
        "sliding_window",
        "evict",
        "summarize",
        "extract",
    ];

    /// Returns the preset with this name, with the given trigger. `-` and `_` are equivalent. Returns
    /// `None` for an unknown name.
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

    /// Returns the name used in configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns its stages. Every strategy prunes old results if `prune` is given; `evict` and
    /// `extract` also do if it is not, as [`SessionPruneConfig::default`] says. `summarize` does not:
    /// the model that writes the summary reads the results whole.
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
    pub fn line(self, line: ViewLimits) -> ViewLimits {
        if self == (Self::Unlimited {}) {
            return ViewLimits {
                window: None,
                trigger: Threshold::Sent(Tokens::MAX),
                ..line
            };
        }
        ViewLimits {
            trigger: self.max_tokens().map_or(line.trigger, Threshold::Sent),
            ..line
        }
    }

    /// Returns the strategy's own trigger, if it has one.
    fn max_tokens(self) -> Option<Tokens> {
        match self {
            Self::Unlimited {} => None,
            Self::SlidingWindow { max_tokens }
            | Self::Evict { max_tokens }
            | Self::Summarize { max_tokens }
            | Self::Extract { max_tokens } => max_tokens,
        }
    }
}
