//! [`Economy`]: when a rewrite of the view is worth its money. Integers in, integers out: it sees
//! no clock, and decides nothing about what leaves.

mod outlook;
mod price;

pub use outlook::{LEAST_TURNS, Outlook, Pace, RECENT_TURNS};
pub use price::{Price, Reason, price, price_with_head};
use serde::{Deserialize, Serialize};

use crate::budget::{Budget, TRIGGER};
use crate::cache::CacheRetention;
use crate::message::Message;
use crate::price::PriceSheet;
use crate::tokens::{Ppm, Tokens};
use crate::transcript::Transcript;

/// Where a priced view must be made smaller at the latest, as a share of its limit. The rest is for
/// what the counter cannot see until the provider reports it.
pub const SAFETY_MARK: Ppm = Ppm(950_000);
/// A plan is not due for less than this share of its target, so that none is due every turn.
pub const MIN_GAIN: Ppm = Ppm(100_000);
/// What reading from a cache costs where it is not known, as a share of fresh input: the usual
/// ratio of today's providers. Only the shape of a decision comes from it, never money.
pub const USUAL_READ: Ppm = Ppm(100_000);
/// What writing to a cache costs where entries are kept longer and it is not known, likewise: the most
/// that any provider asks.
pub const USUAL_LONGER_WRITE: Ppm = Ppm(2_000_000);

/// When plans are due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Economy {
    /// When it pays, when it must, or when the cache is cold anyway: the default.
    #[default]
    Priced,
    /// At the trigger, down to the target, whatever it costs.
    Fixed,
    /// Whenever the view is over its trigger, and by no more than that: every turn, once it is
    /// full.
    Eager,
}

/// What a token costs to read from the cache and to write to it, in one unit, whatever that is.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    read: u128,
    write: u128,
}

impl Economy {
    /// Every name that a configuration may use.
    pub const NAMES: [&'static str; 3] = ["priced", "fixed", "eager"];

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "priced" => Some(Self::Priced),
            "fixed" => Some(Self::Fixed),
            "eager" => Some(Self::Eager),
            _ => None,
        }
    }

    /// The budget to plan with, made of the line's: `Priced` moves its trigger.
    ///
    /// A view that is cut to its target and then grows is a saw. What a cut keeps and writes again,
    /// `P`, is the target without what stands before every cut and stays in the cache ([`head`]),
    /// and without what a turn brings, which is new anyway; or what the last plan rewrote
    /// ([`Pace::planned`]), where that was less. The view may outgrow its target by
    /// [`batch`]`(P)`, and by `1 - √(Δ/P)` of that where `Δ` more than usual has just arrived: at
    /// such a turn a cut writes less again (waiting at `M` is worth `a·(M*·M - M²/2)/(g+c)`; equal
    /// to `b·(P-Δ)` at that share). It must also pay for itself in the turns that are left.
    ///
    /// The trigger ends below the mark where a plan must be made: where one was set, there; else at
    /// [`SAFETY_MARK`]. With a cold cache [`MIN_GAIN`] is enough.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use plimsoll_context::{Budget, Chars4, Economy, Message, Outlook, Tokens, Transcript};
    /// let line = Budget {
    ///     limit: Tokens(100_000),
    ///     trigger: Tokens(80_000),
    ///     target: Tokens(55_000),
    ///     max_result: Tokens(8_000),
    ///     keep_recent: 1,
    ///     overhead: Tokens(2_000),
    ///     instructions: Tokens(0),
    /// };
    /// let mut view = Transcript::new(Arc::new(Chars4));
    /// view.push(Message::user("What is in README.md?"));
    /// let outlook = Outlook { grows: Tokens(400), turns_left: 100, ..Outlook::default() };
    /// // √(2 · 0.9 · 54,590 · 400 / 0.1) = 19,825 at the usual ratio of prices
    /// let priced = Economy::Priced.budget(&line, &view, None, &outlook);
    /// assert_eq!(priced, Budget { trigger: Tokens(74_825), ..line });
    /// assert_eq!(Economy::Fixed.budget(&line, &view, None, &outlook), line);
    /// ```
    #[must_use]
    pub fn budget(
        self,
        line: &Budget,
        view: &Transcript,
        sheet: Option<&PriceSheet>,
        outlook: &Outlook,
    ) -> Budget {
        match self {
            Self::Fixed => *line,
            Self::Eager => Budget {
                target: line.trigger,
                ..*line
            },
            Self::Priced if line.trigger == Tokens::MAX || outlook.growth() == Tokens::ZERO => {
                *line
            }
            Self::Priced => {
                let arrived = view.unsent().iter().map(|item| item.tokens).sum();
                let over = over(line, head(view), arrived, sheet, outlook);
                Budget {
                    trigger: (line.target + over).min(mark(line)),
                    ..*line
                }
            }
        }
    }
}

/// The weight of what stands before every cut: leading system messages and the task. O(1) in the
/// length of the view.
#[must_use]
pub fn head(transcript: &Transcript) -> Tokens {
    let mut weight = Tokens::ZERO;
    for item in transcript.items() {
        match item.message.as_ref() {
            Message::System { .. } => weight += item.tokens,
            Message::User { .. } => return weight + item.tokens,
            _ => break,
        }
    }
    weight
}

/// The batch that minimises money: by how much a view that is cut to `kept` tokens, all of them
/// written again, may grow before the next cut.
///
/// A token in the view costs `a = r(1-λ) + wλ` a turn, so that a batch of `M` costs `a·M/2` a turn
/// on average; a cut costs `b·P` with `b = (w-r)(1-λ)`, and there is one in `M/(g+c)` turns. The
/// sum is least at `M* = √(2·b·P·(g+c)/a)`. `r` and `w` are the prices of reading and of writing
/// the cache.
///
/// ```
/// use plimsoll_context::{Outlook, Tokens, batch};
/// let outlook = Outlook { grows: Tokens(500), ..Outlook::default() };
/// assert_eq!(batch(None, Tokens(10_000), &outlook), Tokens(9_486)); // r = 0.1 w
/// ```
#[must_use]
pub fn batch(sheet: Option<&PriceSheet>, kept: Tokens, outlook: &Outlook) -> Tokens {
    let ratio = Ratio::of(sheet);
    let (a, b) = (ratio.reading(outlook.cold), ratio.rewriting(outlook.cold));
    let area = b
        .saturating_mul(u128::from(kept.0))
        .saturating_mul(2)
        .saturating_mul(u128::from(outlook.growth().0));
    Tokens(u64::try_from((area / a.max(1)).isqrt()).unwrap_or(u64::MAX))
}

/// Where a plan must be made. A trigger that was set is such a mark; one that was left at its
/// default is only a habit, and gives way to the safety mark.
fn mark(line: &Budget) -> Tokens {
    let room = line.limit.minus(line.instructions);
    let is_default = line.trigger == line.instructions + room.share(TRIGGER);
    if is_default {
        line.instructions + room.share(SAFETY_MARK)
    } else {
        line.trigger
    }
}

/// By how much the view may outgrow its target.
fn over(
    line: &Budget,
    head: Tokens,
    arrived: Tokens,
    sheet: Option<&PriceSheet>,
    outlook: &Outlook,
) -> Tokens {
    let least = line.target.share(MIN_GAIN).max(Tokens(1));
    if outlook.cold_now == Ppm::ONE {
        return least;
    }
    let room = line.target.minus(head);
    let most = room.minus(outlook.growth());
    let kept = outlook.rewrites.map_or(most, |rewrites| rewrites.min(most));
    let more = u128::from(arrived.minus(outlook.growth()).0);
    // The root of a share in parts per million of millions is one in parts per million.
    let million = u128::from(Ppm::ONE.0);
    let root = (more.saturating_mul(million * million) / u128::from(kept.0.max(1))).isqrt();
    let share = Ppm(Ppm::ONE
        .0
        .saturating_sub(u64::try_from(root).unwrap_or(u64::MAX)));
    let enough = batch(sheet, kept, outlook).share(share);
    let pays = least_that_pays(sheet, kept.min(room.minus(arrived)), outlook);
    enough.max(pays).max(least)
}

/// The least batch whose removal saves, in the turns that are left, what the rewrite costs.
fn least_that_pays(sheet: Option<&PriceSheet>, kept: Tokens, outlook: &Outlook) -> Tokens {
    let ratio = Ratio::of(sheet);
    let loses = ratio
        .rewriting(outlook.cold_now)
        .saturating_mul(u128::from(kept.0));
    let turns = u128::from(outlook.turns_left.max(1));
    let a_token = ratio.reading(outlook.cold).saturating_mul(turns);
    Tokens(u64::try_from(loses / a_token.max(1)).unwrap_or(u64::MAX))
}

impl Ratio {
    /// The sheet's prices, or the usual ratio where they are not known, or nothing costs anything.
    fn of(sheet: Option<&PriceSheet>) -> Self {
        let long = sheet.is_some_and(|sheet| sheet.retention == CacheRetention::Long);
        let write = if long { USUAL_LONGER_WRITE } else { Ppm::ONE };
        let usual = Self {
            read: u128::from(USUAL_READ.0),
            write: u128::from(write.0),
        };
        sheet.and_then(Self::known).map_or(
            usual,
            |known| {
                if known.read == 0 { usual } else { known }
            },
        )
    }

    fn known(sheet: &PriceSheet) -> Option<Self> {
        Some(Self {
            read: u128::from(sheet.rates.cache_read?.0),
            write: u128::from(sheet.rewrite()?.0),
        })
    }

    /// What a token in the view costs a turn.
    fn reading(self, cold: Ppm) -> u128 {
        let cold = u128::from(cold.0.min(Ppm::ONE.0));
        self.read * (u128::from(Ppm::ONE.0) - cold) + self.write * cold
    }

    /// What writing a token costs more than reading it.
    fn rewriting(self, cold: Ppm) -> u128 {
        let cold = u128::from(cold.0.min(Ppm::ONE.0));
        self.write.saturating_sub(self.read) * (u128::from(Ppm::ONE.0) - cold)
    }
}
