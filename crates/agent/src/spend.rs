//! [`Spend`]: the usage of an agent or a tool, [`Cost`], and [`Amounts`], whose limits agents share.

use plimsoll_context::{Money, Tokens, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::ExecutionLimits;

/// Used tokens, money, turns and tool calls.
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

/// One value for each kind of amount whose limit agents share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts<T = u64> {
    /// Tokens, as the limits count them.
    pub tokens: T,
    /// Money, in billionths of a dollar.
    pub money: T,
    /// Model calls.
    pub turns: T,
    /// Tool calls.
    pub tool_calls: T,
}

impl<T: Copy> Amounts<T> {
    /// Applies `f` to each value.
    pub fn map<R>(self, f: impl Fn(T) -> R) -> Amounts<R> {
        Amounts {
            tokens: f(self.tokens),
            money: f(self.money),
            turns: f(self.turns),
            tool_calls: f(self.tool_calls),
        }
    }

    /// Combines the values of both, kind by kind.
    pub fn with<U: Copy, R>(self, other: Amounts<U>, f: impl Fn(T, U) -> R) -> Amounts<R> {
        Amounts {
            tokens: f(self.tokens, other.tokens),
            money: f(self.money, other.money),
            turns: f(self.turns, other.turns),
            tool_calls: f(self.tool_calls, other.tool_calls),
        }
    }
}

impl Amounts {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// Returns the difference of each kind, 0 if it would be negative.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

impl From<&Spend> for Amounts {
    fn from(spend: &Spend) -> Self {
        Self {
            tokens: spend.usage.total_tokens().0,
            money: spend.cost.known.0,
            turns: spend.turns,
            tool_calls: spend.tool_calls,
        }
    }
}

impl From<&ExecutionLimits> for Amounts<Option<u64>> {
    fn from(limits: &ExecutionLimits) -> Self {
        Self {
            tokens: limits.max_total_tokens.map(|tokens| tokens.0),
            money: limits.max_cost.map(|money| money.0),
            turns: limits.max_turns,
            tool_calls: limits.max_tool_calls,
        }
    }
}

impl From<Amounts<Option<u64>>> for ExecutionLimits {
    fn from(limit: Amounts<Option<u64>>) -> Self {
        Self {
            max_total_tokens: limit.tokens.map(Tokens),
            max_cost: limit.money.map(Money),
            max_turns: limit.turns,
            max_tool_calls: limit.tool_calls,
            ..Self::default()
        }
    }
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

/// Checks whether a value can be left out of the JSON.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
