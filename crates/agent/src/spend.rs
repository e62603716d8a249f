//! [`Spend`]: what somebody used besides this run's own model calls, as a sub-agent does. Not a limit.

use plimsoll_context::{Money, Usage};
use serde::{Deserialize, Serialize};

use crate::outcome::is_nothing;

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Spend {
    /// Tokens.
    pub usage: Usage,
    /// What calls took besides whose provider did not say it, as whoever made them counts.
    #[serde(skip_serializing_if = "is_nothing")]
    pub estimated: Usage,
    /// What they cost.
    pub cost: Cost,
    /// Model calls.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
}

/// A sum of prices, of which some may not be known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cost {
    /// The sum of those that are known.
    pub known: Money,
    /// Calls whose price is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

impl Cost {
    /// Of one call.
    #[must_use]
    pub fn of(price: Option<Money>) -> Self {
        Self {
            known: price.unwrap_or_default(),
            unpriced: u64::from(price.is_none()),
        }
    }

    /// The whole sum, where all of it is known.
    #[must_use]
    pub fn whole(self) -> Option<Money> {
        (self.unpriced == 0).then_some(self.known)
    }

    /// The sum of both.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            known: self.known + other.known,
            unpriced: self.unpriced.saturating_add(other.unpriced),
        }
    }

    /// What is left of it without a part of it.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            known: Money(self.known.0.saturating_sub(part.known.0)),
            unpriced: self.unpriced.saturating_sub(part.unpriced),
        }
    }
}

impl Spend {
    /// The sum of both.
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

    /// What is left of it without a part of it.
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

    /// Whether nothing was used.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
