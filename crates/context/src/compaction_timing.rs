//! [`CompactionTiming`]: decides when a compaction pays for itself.
//!
//! Compacting rewrites part of the prompt, and the provider charges for writing that part to its
//! cache again. [`CompactionTiming::Priced`] weighs this cost against the cheaper requests that follow. All
//! computations use integers and no clock. The stages of the policy decide which messages are
//! removed.

mod forecast;
mod price;

pub use forecast::{GrowthForecast, GrowthRate, LEAST_TURNS, RECENT_TURNS};
pub(crate) use price::PRINTED;
pub use price::{Price, Reason, price, price_with_head};
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::cache::CacheRetention;
use crate::message::Message;
use crate::price::PriceSheet;
use crate::tokens::{Ppm, Tokens};
use crate::transcript::Transcript;

/// The smallest gain, as a share of the target, that justifies a plan. It prevents a plan on every
/// turn.
pub const MIN_GAIN: Ppm = Ppm(100_000);
/// The cost of reading removed content again after a plan, including the calls, as a share of the
/// plan's target.
///
/// After 50 compactions of a recorded client this was about 5,000 tokens and 3 to 4 calls: in all
/// about 20,000 tokens of fresh input, for a view of 40,000 tokens.
pub const REREADING: Ppm = Ppm(400_000);
/// The assumed price of reading from the cache if it is unknown, as a share of fresh input. This is
/// the usual ratio of current providers. It only influences decisions and never reported amounts of
/// money.
pub const USUAL_READ: Ppm = Ppm(100_000);
/// The assumed price of writing to a cache with longer retention if it is unknown, as a share of
/// fresh input. This is the highest known price.
pub const USUAL_LONGER_WRITE: Ppm = Ppm(2_000_000);

/// When to compact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionTiming {
    /// When it saves money, when the limit forces it, or when the cache is cold anyway. The
    /// default.
    #[default]
    Priced,
    /// As soon as the view exceeds the trigger, down to the target, regardless of cost.
    Fixed,
    /// As soon as the view exceeds the trigger, by the smallest possible amount. Once the view is
    /// full, this means on every turn.
    Eager,
}

/// The prices of reading and of writing a token of the cache, in a common unit.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    read: u128,
    write: u128,
}

impl CompactionTiming {
    /// The names that a configuration may use.
    pub const NAMES: [&'static str; 3] = ["priced", "fixed", "eager"];

    /// Parses a name as used in configuration files. Returns `None` for an unknown name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "priced" => Some(Self::Priced),
            "fixed" => Some(Self::Fixed),
            "eager" => Some(Self::Eager),
            _ => None,
        }
    }

    /// Returns the budget for the next plan, derived from the budget of the line: `Priced` moves its
    /// trigger.
    ///
    /// The size of a view that is repeatedly cut to its target and grows again has the shape of a
    /// saw. A cut has two costs: the kept tokens that are written to the cache again, `P`, and the
    /// tokens that the model reads again because of the cut, `R` ([`REREADING`] of the target). `P`
    /// is the target less the [`head`], which stays in the cache, and less the tokens that a turn
    /// adds, which are new anyway. If the last plan rewrote fewer tokens ([`GrowthRate::planned`]), `P` is
    /// that number.
    ///
    /// The view may exceed its target by [`batch`]`(P, R)`. If `Δ` tokens more than usual have just
    /// arrived, it may only exceed it by `1 - √(Δ/P)` of that, because a cut on such a turn rewrites
    /// less (waiting at `M` is worth `a·(M*·M - M²/2)/(g+c)`; equal to `b·(P-Δ)` at that share). The
    /// cut must also pay for itself in the remaining turns.
    ///
    /// The trigger is never above [`Budget::forced`]. If the cache has expired, a plan ends at
    /// [`Budget::cold_target`], and is due as soon as it saves more than `R`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use plimsoll_context::{Budget, Chars4, CompactionTiming, ViewLimits, Message, GrowthForecast, Tokens, Transcript};
    /// let line = ViewLimits { window: Some(Tokens(106_096)), ..ViewLimits::default() };
    /// let line = line.budget(Tokens(2_000), Tokens::ZERO, Default::default()).unwrap();
    /// assert_eq!((line.trigger, line.target), (Tokens(80_000), Tokens(26_000)));
    /// let mut view = Transcript::new(Arc::new(Chars4));
    /// view.push(Message::user("What is in README.md?"));
    /// let outlook = GrowthForecast { grows: Tokens(400), turns_left: 100, ..GrowthForecast::default() };
    /// // √(2 · (0.9 · 25,590 + 10,400) · 400 / 0.1) = 16,353 at the usual ratio of prices
    /// let priced = CompactionTiming::Priced.budget(&line, &view, None, &outlook);
    /// assert_eq!(priced, Budget { trigger: Tokens(42_353), ..line });
    /// assert_eq!(CompactionTiming::Fixed.budget(&line, &view, None, &outlook), line);
    /// ```
    #[must_use]
    pub fn budget(
        self,
        line: &Budget,
        view: &Transcript,
        sheet: Option<&PriceSheet>,
        outlook: &GrowthForecast,
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
                let is_cold = outlook.cold_now == Ppm::ONE;
                let line = Budget {
                    target: if is_cold {
                        line.cold_target
                    } else {
                        line.target
                    },
                    ..*line
                };
                let over = if is_cold {
                    worth_rereading(&line, sheet, outlook)
                } else {
                    let arrived = view.unsent().iter().map(|item| item.tokens).sum();
                    over(&line, head(view), arrived, sheet, outlook)
                };
                Budget {
                    trigger: (line.target + over.max(least(&line))).min(line.forced),
                    ..line
                }
            }
        }
    }
}

/// Returns the size of the messages before every cut: the leading system messages and the task.
/// O(1) in the length of the view.
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

/// Returns the batch with the lowest cost: the number of tokens by which a view may grow between two
/// cuts. Each cut keeps `kept` tokens, all of which are written again, and `reread` tokens are read
/// again after it.
///
/// A token in the view costs `a = r(1-λ) + wλ` per turn, so a batch of `M` costs `a·M/2` per turn on
/// average. A cut costs `b·P + w·R` with `b = (w-r)(1-λ)`, and there is one every `M/(g+c)` turns.
/// The sum is smallest at `M* = √(2·(b·P + w·R)·(g+c)/a)`. `r` and `w` are the prices of reading and
/// of writing the cache.
///
/// ```
/// use plimsoll_context::{GrowthForecast, Tokens, batch};
/// let outlook = GrowthForecast { grows: Tokens(500), ..GrowthForecast::default() };
/// // r = 0.1 w
/// assert_eq!(batch(None, Tokens(10_000), Tokens(0), &outlook), Tokens(9_486));
/// assert_eq!(batch(None, Tokens(10_000), Tokens(4_000), &outlook), Tokens(11_401));
/// ```
#[must_use]
pub fn batch(
    sheet: Option<&PriceSheet>,
    kept: Tokens,
    reread: Tokens,
    outlook: &GrowthForecast,
) -> Tokens {
    let ratio = Ratio::of(sheet);
    let a = ratio.reading(outlook.cold);
    let area = ratio
        .a_plan(kept, reread, outlook.cold)
        .saturating_mul(2)
        .saturating_mul(u128::from(outlook.growth().0));
    Tokens(u64::try_from((area / a.max(1)).isqrt()).unwrap_or(u64::MAX))
}

/// Returns the minimum by which a view must exceed its target for a plan to be due.
fn least(line: &Budget) -> Tokens {
    line.target.share(MIN_GAIN).max(Tokens(1))
}

/// Returns how many tokens must be removed from an uncached view to save more than the lost content
/// costs to read again.
fn worth_rereading(line: &Budget, sheet: Option<&PriceSheet>, outlook: &GrowthForecast) -> Tokens {
    let ratio = Ratio::of(sheet);
    let costs = ratio.a_plan(Tokens::ZERO, reread(line), Ppm::ONE);
    let later = u128::from(outlook.turns_left.saturating_sub(1));
    let a_token = ratio.reading(Ppm::ONE) + ratio.reading(outlook.cold).saturating_mul(later);
    Tokens(u64::try_from(costs / a_token.max(1)).unwrap_or(u64::MAX))
}

/// Returns the tokens that are read again after a plan that ends at the target.
fn reread(line: &Budget) -> Tokens {
    line.target.minus(line.instructions).share(REREADING)
}

/// Returns by how much the view may exceed its target while the cache is warm.
fn over(
    line: &Budget,
    head: Tokens,
    arrived: Tokens,
    sheet: Option<&PriceSheet>,
    outlook: &GrowthForecast,
) -> Tokens {
    let room = line.target.minus(head);
    let most = room.minus(outlook.growth());
    let kept = outlook.rewrites.map_or(most, |rewrites| rewrites.min(most));
    let more = u128::from(arrived.minus(outlook.growth()).0);
    // The square root of (a share in parts per million times a million) is again in parts per
    // million.
    let million = u128::from(Ppm::ONE.0);
    let root = (more.saturating_mul(million * million) / u128::from(kept.0.max(1))).isqrt();
    let share = Ppm(Ppm::ONE
        .0
        .saturating_sub(u64::try_from(root).unwrap_or(u64::MAX)));
    let enough = batch(sheet, kept, reread(line), outlook).share(share);
    enough.max(least_that_pays(
        sheet,
        kept.min(room.minus(arrived)),
        reread(line),
        outlook,
    ))
}

/// Returns the smallest batch whose removal saves as much in the remaining turns as the plan costs.
fn least_that_pays(
    sheet: Option<&PriceSheet>,
    kept: Tokens,
    reread: Tokens,
    outlook: &GrowthForecast,
) -> Tokens {
    let ratio = Ratio::of(sheet);
    let costs = ratio.a_plan(kept, reread, outlook.cold_now);
    let turns = u128::from(outlook.turns_left.max(1));
    let a_token = ratio.reading(outlook.cold).saturating_mul(turns);
    Tokens(u64::try_from(costs / a_token.max(1)).unwrap_or(u64::MAX))
}

impl Ratio {
    /// Returns the prices of the sheet, or the usual ratio if they are unknown or zero.
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

    /// Returns the cost of a plan that writes `kept` again and after which `reread` is read again.
    fn a_plan(self, kept: Tokens, reread: Tokens, cold: Ppm) -> u128 {
        let kept = self.rewriting(cold).saturating_mul(u128::from(kept.0));
        let reread = (self.write * u128::from(Ppm::ONE.0)).saturating_mul(u128::from(reread.0));
        kept.saturating_add(reread)
    }

    /// Returns the cost of a token in the view for one turn.
    fn reading(self, cold: Ppm) -> u128 {
        let cold = u128::from(cold.0.min(Ppm::ONE.0));
        self.read * (u128::from(Ppm::ONE.0) - cold) + self.write * cold
    }

    /// Returns the additional cost of writing a token compared with reading it.
    fn rewriting(self, cold: Ppm) -> u128 {
        let cold = u128::from(cold.0.min(Ppm::ONE.0));
        self.write.saturating_sub(self.read) * (u128::from(Ppm::ONE.0) - cold)
    }
}
