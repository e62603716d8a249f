//! [`Price`]: the cost and the savings of a plan for the view that it was made for, and the reason
//! for making it now. The price of a token is in a `PriceSheet`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{GrowthForecast, Ratio};
use crate::budget::Budget;
use crate::item::Seq;
use crate::plan::{Edit, Plan, Trigger};
use crate::price::{Money, PriceSheet};
use crate::tokens::{Ppm, Tokens};
use crate::transcript::Transcript;

/// The cost and the savings of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// Tokens that were in the provider's cache, stay in the view and must be written again.
    pub rewrites: Tokens,
    /// The additional cost of writing these tokens instead of reading them; `None` if prices are
    /// unknown.
    pub loses: Option<Money>,
    /// The amount that the remaining requests cost less; `None` if prices are unknown.
    pub saves: Option<Money>,
    /// The number of requests that the savings include.
    pub over_turns: u64,
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
    /// The plan saves more than it costs.
    Pays,
    /// The cache was cold, so the plan cost nothing.
    Cold,
    /// A user or the host asked for the plan.
    Asked,
    /// The plan rewrites nothing that had been sent.
    Free,
    /// The view exceeded the configured trigger, regardless of cost.
    Configured,
}

impl Price {
    /// Returns the net savings of the plan in billionths of a dollar. Negative if the plan costs
    /// more than it saves.
    #[must_use]
    pub fn net(&self) -> Option<i128> {
        let (saves, loses) = (self.saves?, self.loses?);
        Some(i128::from(saves.0) - i128::from(loses.0))
    }
}

/// Returns the cost and the savings of a plan for this view, before the plan is applied. `line` is
/// the budget before [`CompactionTiming::budget`](super::CompactionTiming::budget).
#[must_use]
pub fn price(
    plan: &Plan,
    transcript: &Transcript,
    line: &Budget,
    sheet: Option<&PriceSheet>,
    outlook: &GrowthForecast,
) -> Price {
    price_with_head(plan, transcript, None, line, sheet, outlook)
}

/// Returns the price of a plan with which further tools are declared. Then everything that was sent
/// is written again, after a head (tools and system prompt) of this size.
#[must_use]
pub fn price_with_head(
    plan: &Plan,
    transcript: &Transcript,
    head: Option<Tokens>,
    line: &Budget,
    sheet: Option<&PriceSheet>,
    outlook: &GrowthForecast,
) -> Price {
    let (rewrites, freed_unsent) = rewritten(plan, transcript, head);
    let ratio = Ratio::of(sheet);
    let turns = outlook.turns_left.max(1);
    let parts = |tokens: Tokens, parts: u128| u128::from(tokens.0).saturating_mul(parts);
    let loses = parts(rewrites, ratio.rewriting(outlook.cold_now));
    let later = ratio.reading(outlook.cold);
    let saves = parts(
        plan.frees.minus(freed_unsent),
        ratio.reading(outlook.cold_now),
    )
    .saturating_add(parts(freed_unsent, ratio.reading(Ppm::ONE)))
    .saturating_add(parts(plan.frees, later).saturating_mul(u128::from(turns - 1)));
    let reason = match plan.why {
        Trigger::Asked => Reason::Asked,
        Trigger::Overflow => Reason::Must,
        _ if rewrites == Tokens::ZERO => Reason::Free,
        _ if plan.before > line.forced => Reason::Must,
        _ if outlook.cold_now == Ppm::ONE => Reason::Cold,
        _ if saves >= loses => Reason::Pays,
        _ => Reason::Configured,
    };
    let known = sheet.filter(|sheet| Ratio::known(sheet).is_some());
    let money = |parts: u128| known.map(|_| Money(money(parts)));
    Price {
        rewrites,
        loses: money(loses),
        saves: money(saves),
        over_turns: turns,
        reason,
    }
}

/// Returns the tokens that were sent, stay and are written again; and the freed tokens that were
/// never sent.
fn rewritten(plan: &Plan, transcript: &Transcript, head: Option<Tokens>) -> (Tokens, Tokens) {
    let sent = transcript.sent();
    let weight = |seq: Seq| transcript.get(seq).map_or(Tokens::ZERO, |item| item.tokens);
    let unsent = |edit: &Edit| match edit {
        Edit::Shrink { seq, to } if *seq >= sent => weight(*seq).minus(to.tokens),
        Edit::Drop {
            first,
            last,
            marker,
        } if *last >= sent => {
            let from = (*first).max(sent);
            let items = transcript.unsent().iter();
            let within = items.filter(|item| (from..=*last).contains(&item.seq));
            let weight: Tokens = within.map(|item| item.tokens).sum();
            if *first >= sent {
                weight.minus(marker.tokens)
            } else {
                weight
            }
        }
        _ => Tokens::ZERO,
    };
    let freed_unsent = plan.edits.iter().map(unsent).sum();
    let items = transcript.items();
    let head = head.filter(|_| items.first().is_some_and(|item| item.seq < sent));
    let start = match (head, plan.rewrites_from) {
        (Some(_), _) => 0,
        (None, Some(from)) => items.partition_point(|item| item.seq < from),
        (None, None) => return (Tokens::ZERO, freed_unsent),
    };
    let end = items.partition_point(|item| item.seq < sent);
    let stood = items.get(start..end).unwrap_or_default();
    let stood: Tokens = stood.iter().map(|item| item.tokens).sum();
    let stays = stood.minus(plan.frees.minus(freed_unsent));
    (stays + head.unwrap_or_default(), freed_unsent)
}

/// Converts millionths of millionths of [`Money`] to money.
fn money(parts: u128) -> u64 {
    let million = u128::from(Ppm::ONE.0);
    u64::try_from(parts / million / million).unwrap_or(u64::MAX)
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Must => "it would not have fitted",
            Self::Pays => "pays",
            Self::Cold => "the cache was cold",
            Self::Asked => "asked for",
            Self::Free => "nothing sent is rewritten",
            Self::Configured => "as configured",
        })
    }
}

impl fmt::Display for Price {
    /// Formats the price like `rewrites 12,300 tokens for $0.0461, saves $0.0820 over 14 turns:
    /// pays`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { over_turns, .. } = self;
        f.write_str("rewrites ")?;
        grouped(f, self.rewrites.0)?;
        f.write_str(" tokens")?;
        match (self.loses, self.saves) {
            // A local model costs nothing but time.
            (Some(loses), Some(saves)) if loses < PRINTED && saves < PRINTED => {}
            (Some(loses), Some(saves)) => {
                write!(f, " for {loses}, saves {saves} over {over_turns} turns")?;
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
