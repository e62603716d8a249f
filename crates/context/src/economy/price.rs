//! [`Price`]: what a plan costs and saves on the view that it was made for, and why it was made
//! now. Not the price of a token; that is a `PriceSheet`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Outlook, Ratio};
use crate::budget::Budget;
use crate::item::Seq;
use crate::plan::{Edit, Plan, Trigger};
use crate::price::{Money, PriceSheet};
use crate::tokens::{Ppm, Tokens};
use crate::transcript::Transcript;

/// What a plan costs and saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// What the provider's cache held, stays in the view and has to be written again.
    pub rewrites: Tokens,
    /// What writing it costs more than reading it would have; `None` where prices are not known.
    pub loses: Option<Money>,
    /// What the requests to come cost less; `None` where prices are not known.
    pub saves: Option<Money>,
    /// Over how many requests that is.
    pub over_turns: u64,
    /// Why the plan was made now.
    pub reason: Reason,
}

/// Why a plan was made when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The view would not have fitted.
    Must,
    /// It saves more than it costs.
    Pays,
    /// The cache was cold, so that it cost nothing.
    Cold,
    /// Somebody asked for it.
    Asked,
    /// It rewrites nothing that had been sent.
    Free,
    /// The trigger was set there, whatever it costs.
    Configured,
}

impl Price {
    /// What the plan saves in all, in billionths of a dollar; negative where it costs.
    #[must_use]
    pub fn net(&self) -> Option<i128> {
        let (saves, loses) = (self.saves?, self.loses?);
        Some(i128::from(saves.0) - i128::from(loses.0))
    }
}

/// What a plan costs and saves on this view, before it is applied; `line` is the budget before
/// [`Economy::budget`](super::Economy::budget).
#[must_use]
pub fn price(
    plan: &Plan,
    transcript: &Transcript,
    line: &Budget,
    sheet: Option<&PriceSheet>,
    outlook: &Outlook,
) -> Price {
    price_with_head(plan, transcript, None, line, sheet, outlook)
}

/// Returns the price of a plan with which further tools are declared: everything that was sent is
/// written again, and before it a head (tools and system prompt) of this weight.
#[must_use]
pub fn price_with_head(
    plan: &Plan,
    transcript: &Transcript,
    head: Option<Tokens>,
    line: &Budget,
    sheet: Option<&PriceSheet>,
    outlook: &Outlook,
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

/// What was sent, stays and is written again; and what is freed of that which was never sent.
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
            match marker {
                Some(marker) if *first >= sent => weight.minus(marker.tokens),
                _ => weight,
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

/// Millionths of millionths of [`Money`], as money.
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
    /// `rewrites 12,300 tokens for $0.0461, saves $0.0820 over 14 turns: pays`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { over_turns, .. } = self;
        f.write_str("rewrites ")?;
        grouped(f, self.rewrites.0)?;
        f.write_str(" tokens")?;
        match (self.loses, self.saves) {
            // As of a model of one's own, which costs nothing but time.
            (Some(loses), Some(saves)) if loses < PRINTED && saves < PRINTED => {}
            (Some(loses), Some(saves)) => {
                write!(f, " for {loses}, saves {saves} over {over_turns} turns")?;
            }
            _ => f.write_str(", at prices that are not known")?,
        }
        write!(f, ": {}", self.reason)
    }
}

/// Less than this would be printed as nothing: half of a hundredth of a cent.
const PRINTED: Money = Money(50_000);

/// `12,300`
fn grouped(f: &mut fmt::Formatter<'_>, number: u64) -> fmt::Result {
    if number < 1_000 {
        return write!(f, "{number}");
    }
    grouped(f, number / 1_000)?;
    write!(f, ",{:03}", number % 1_000)
}
