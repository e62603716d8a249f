//! [`Spend`]: the usage of an agent, a tool or a call, or a forecast of it. [`Cost`]: a sum of prices.

use plimsoll_context::{Money, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::LimitKind;

/// Used tokens, money, turns and tool calls.
///
/// It is the part of a [`Ledger`](crate::Ledger) that passes from one to another: from an entry of the log
/// to its run, and from a tool, a sub-agent or a branch to the run that has started it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spend {
    /// Tokens.
    pub usage: Usage,
    /// Estimated usage of the calls for which the provider reported none. Not part of `usage`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub estimated: Usage,
    /// The cost of the calls.
    pub cost: Cost,
    /// Model calls.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
}

/// A sum of prices. Some of them may be unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// The sum of the known prices.
    pub known: Money,
    /// Number of calls with an unknown price.
    #[serde(default, skip_serializing_if = "is_default")]
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

    /// Returns the amount that counts towards a kind of limit. Time and memory are no part of it.
    #[must_use]
    pub fn of(&self, kind: LimitKind) -> u64 {
        match kind {
            LimitKind::MaxTokens => self.usage.combine(self.estimated).total_tokens().0,
            LimitKind::MaxCost => self.cost.known.0,
            LimitKind::MaxTurns => self.turns,
            LimitKind::ToolLimit => self.tool_calls,
            LimitKind::MaxDuration | LimitKind::MaxMemory => 0,
        }
    }

    /// Returns `true` if nothing was used.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Checks whether a value can be left out of the JSON.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
