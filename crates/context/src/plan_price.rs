//! [`Price`]: the cost and the savings of a plan for the view that it was made for, and the reason
//! for making it now. The price of a token is in a [`PriceSheet`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::plan::{Plan, Trigger};
use crate::price::{Money, PriceSheet};
use crate::tokens::Tokens;
use crate::transcript::Transcript;

/// The cost and the savings of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// Tokens that were in the provider's cache, stay in the view and must be written again.
    pub rewrites: Tokens,
    /// The additional cost of writing these tokens instead of reading them from the cache; `None`
    /// if prices are unknown.
    pub loses: Option<Money>,
    /// The amount by which each later request costs less; `None` if prices are unknown.
    pub saves: Option<Money>,
    /// Why the plan was made now.
    pub reason: Reason,
}

/// Why a plan was made at this point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The view would not have fitted.
    Must,
    /// The view exceeded its trigger.
    Size,
    /// The cache was cold, so rewriting cost nothing extra.
    Cold,
    /// A user or the host asked for the plan.
    Asked,
    /// The plan rewrites nothing that had been sent.
    Free,
}

/// The facts beside a view that the price of a plan depends on.
#[derive(Debug, Clone, Copy, Default)]
pub struct PriceFacts<'a> {
    /// The prices of the model, if they are known.
    pub sheet: Option<&'a PriceSheet>,
    /// Whether the provider's cache has expired.
    pub is_cold: bool,
}

impl Price {
    /// Returns the price of a plan for this view, before the plan is applied.
    #[must_use]
    pub fn of(plan: &Plan, view: &Transcript, budget: &Budget, facts: PriceFacts<'_>) -> Self {
        let rewrites = rewritten(plan, view);
        let cold = facts.is_cold;
        let read = facts.sheet.and_then(|sheet| sheet.rates.cache_read);
        let extra = facts
            .sheet
            .and_then(PriceSheet::rewrite)
            .zip(read)
            .map(|(write, read)| if cold { Money(0) } else { write.minus(read) });
        let reason = match plan.why {
            Trigger::Asked => Reason::Asked,
            Trigger::Overflow => Reason::Must,
            _ if rewrites == Tokens::ZERO => Reason::Free,
            _ if plan.before > budget.limit => Reason::Must,
            _ if cold => Reason::Cold,
            _ => Reason::Size,
        };
        Self {
            rewrites,
            loses: extra.map(|extra| extra.of(rewrites)),
            saves: extra.and(read).map(|read| read.of(plan.frees)),
            reason,
        }
    }
}

/// Returns the tokens that were sent, stay and are written again.
fn rewritten(plan: &Plan, view: &Transcript) -> Tokens {
    let mut after = view.clone();
    let (Some(from), Ok(_)) = (plan.rewrites_from, after.apply(plan)) else {
        return Tokens::ZERO;
    };
    let stays = after.items().iter();
    stays
        .filter(|item| item.seq >= from && item.seq < view.sent())
        .map(|item| item.tokens)
        .sum()
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Must => "it would not have fitted",
            Self::Size => "the trigger was exceeded",
            Self::Cold => "the cache was cold",
            Self::Asked => "asked for",
            Self::Free => "nothing sent is rewritten",
        })
    }
}

impl fmt::Display for Price {
    /// Formats the price like `rewrites 12,300 tokens for $0.0461, then saves $0.0059 a request:
    /// the trigger was exceeded`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rewrites ")?;
        grouped(f, self.rewrites.0)?;
        f.write_str(" tokens")?;
        match (self.loses, self.saves) {
            // A local model costs nothing but time.
            (Some(loses), Some(saves)) if loses < PRINTED && saves < PRINTED => {}
            (Some(loses), Some(saves)) => {
                write!(f, " for {loses}, then saves {saves} a request")?;
            }
            _ => f.write_str(", at prices that are not known")?,
        }
        write!(f, ": {}", self.reason)
    }
}

/// Smaller amounts would be printed as zero: half of a hundredth of a cent.
pub(crate) const PRINTED: Money = Money(50_000);

/// Writes a number with separators, like `12,300`.
fn grouped(f: &mut fmt::Formatter<'_>, number: u64) -> fmt::Result {
    if number < 1_000 {
        return write!(f, "{number}");
    }
    grouped(f, number / 1_000)?;
    write!(f, ",{:03}", number % 1_000)
}
