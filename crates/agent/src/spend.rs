//! [`Spend`]: usage besides the run's own model calls, for example of a sub-agent.

use plimsoll_context::{Money, Usage};
use serde::{Deserialize, Serialize};

use crate::outcome::is_nothing;

/// Used tokens, money, turns and tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spend {
    /// Tokens.
    pub usage: Usage,
    /// Estimated usage of the calls for which the provider reported none. Not part of `usage`.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub estimated: Usage,
    /// The cost of the calls.
    pub cost: Cost,
    /// Model calls.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
}

/// A sum of prices. Some of them may be unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// The sum of the known prices.
    pub known: Money,
    /// Number of calls with an unknown price.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

impl Cost {
    /// Returns the cost of one call.
    #[must_use]
    pub fn of(price: Option<Money>) -> Self {
        Self {
            known: price.unwrap_or_default(),
            unpriced: u64::from(price.is_none()),
        }
    }

    /// Returns the sum if all prices are known.
    #[must_use]
    pub fn whole(self) -> Option<Money> {
        (self.unpriced == 0).then_some(self.known)
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            known: self.known + other.known,
            unpriced: self.unpriced.saturating_add(other.unpriced),
        }
    }

    /// Returns the difference. Each field is at least 0.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            known: Money(self.known.0.saturating_sub(part.known.0)),
            unpriced: self.unpriced.saturating_sub(part.unpriced),
        }
    }
}

impl Spend {
    /// Returns the sum of both.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            usage: self.usage.combine(other.usage),
            estimated: self.estimated.combine(other.estimated),
            cost: self.cost.combine(other.cost),
            turns: self.turns.saturating_add(other.turns),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
        }
    }

    /// Returns the difference. Each field is at least 0.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            usage: self.usage.without(part.usage),
            estimated: self.estimated.without(part.estimated),
            cost: self.cost.without(part.cost),
            turns: self.turns.saturating_sub(part.turns),
            tool_calls: self.tool_calls.saturating_sub(part.tool_calls),
        }
    }

    /// Returns `true` if nothing was used.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
