//! [`Economy`]: when a rewrite of the view is worth its money, and [`Price`]: what one costs and
//! saves. Integers in, integers out: it sees no clock, and decides nothing about what leaves.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, TRIGGER};
use crate::item::{Item, Seq};
use crate::message::Message;
use crate::plan::{Edit, Plan, Trigger};
use crate::price::{Money, PriceSheet};
use crate::tokens::{Ppm, Tokens};
use crate::transcript::Transcript;

/// Where a priced view must be made smaller at the latest, as a share of its limit. The rest is for
/// what the counter cannot see until the provider reports it.
pub const SAFETY_MARK: Ppm = Ppm(950_000);
/// A plan is not due for less than this share of its target, so that none is due every turn.
pub const MIN_GAIN: Ppm = Ppm(100_000);
/// A run is expected to last at least this many turns more, unless its limit says otherwise: with a
/// shorter outlook nothing would pay at its beginning.
pub const LEAST_TURNS: u64 = 8;
/// How many turns the mean growth looks back, about.
pub const RECENT_TURNS: u64 = 32;
/// What reading from a cache costs where it is not known, as a share of fresh input: the usual
/// ratio of today's providers. Only the shape of a decision comes from it, never money.
pub const USUAL_READ: Ppm = Ppm(100_000);

/// When plans are due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Economy {
    /// When it pays, when it must, or when the cache is cold anyway: the default.
    #[default]
    Priced,
    /// At the trigger, down to the target, whatever it costs.
    Fixed,
    /// Whenever the view is over its trigger, and by no more than that: every turn, once it is full.
    Eager,
}

/// How a view has grown, turn by turn: a mean of about the last [`RECENT_TURNS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// How many turns it has seen.
    pub turns: u64,
    calls: u64,
    other: u64,
    cold: u64,
}

/// What is expected of the rest of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// What a turn's calls and results add (`g`).
    pub grows: Tokens,
    /// What else a turn adds (`c`).
    pub other: Tokens,
    /// How many requests are still to come, the next one included.
    pub turns_left: u64,
    /// The chance that the cache is cold when a later request is made (`λ`).
    pub cold: Ppm,
    /// The chance that it is cold now.
    pub cold_now: Ppm,
}

/// What a plan costs and saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// `P`, is the target without what stands before every cut and stays in the cache ([`head`]), and
    /// without what a turn brings, which is new anyway. The view may outgrow its target by
    /// [`batch`]`(P)`, and by `1 - √(Δ/P)` of that where `Δ` more than usual has just arrived: at such
    /// a turn a cut writes less again (waiting at `M` is worth `a·(M*·M - M²/2)/(g+c)`; equal
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

impl Pace {
    /// Notes a turn: what no request has carried yet, as the next request is made. The beginning of
    /// a session, before the model has said anything, is no turn.
    pub fn observe(&mut self, unsent: &[Item], cold: Ppm) {
        let (mut calls, mut other, mut turn) = (0_u64, 0_u64, false);
        for item in unsent {
            let sum = match item.message.as_ref() {
                Message::Assistant { .. } | Message::ToolResult(_) => &mut calls,
                _ => &mut other,
            };
            *sum = sum.saturating_add(item.tokens.0);
            turn |= matches!(item.message.as_ref(), Message::Assistant { .. });
        }
        if !turn {
            return;
        }
        self.turns = self.turns.saturating_add(1);
        let over = self.turns.min(RECENT_TURNS);
        for (mean, new) in [
            (&mut self.calls, calls.saturating_mul(1_000)),
            (&mut self.other, other.saturating_mul(1_000)),
            (&mut self.cold, cold.0),
        ] {
            *mean = (*mean - *mean / over).saturating_add(new / over);
        }
    }

    /// What to expect. The growth is the mean of the turns seen; as many turns are to come as have
    /// passed, at least [`LEAST_TURNS`] and at most `limit`: of a run of unknown length one knows
    /// how long it has lasted, and nothing better.
    #[must_use]
    pub fn outlook(&self, limit: Option<u64>, cold_now: Ppm) -> Outlook {
        let expected = self.turns.max(LEAST_TURNS);
        Outlook {
            grows: Tokens(self.calls / 1_000),
            other: Tokens(self.other / 1_000),
            turns_left: limit.map_or(expected, |limit| expected.min(limit)).max(1),
            cold: Ppm(self.cold.min(Ppm::ONE.0)),
            cold_now,
        }
    }
}

impl Outlook {
    /// What a turn adds in all.
    #[must_use]
    pub fn growth(&self) -> Tokens {
        self.grows + self.other
    }
}

impl Price {
    /// What the plan saves in all, in billionths of a dollar; negative where it costs.
    #[must_use]
    pub fn net(&self) -> Option<i128> {
        let (saves, loses) = (self.saves?, self.loses?);
        Some(i128::from(saves.0) - i128::from(loses.0))
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
/// A token in the view costs `a = r(1-λ) + wλ` a turn, so that a batch of `M` costs `a·M/2` a turn on
/// average; a cut costs `b·P` with `b = (w-r)(1-λ)`, and there is one in `M/(g+c)` turns. The sum is
/// least at `M* = √(2·b·P·(g+c)/a)`. `r` and `w` are the prices of reading and of writing the cache.
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

/// What a plan costs and saves on this view, before it is applied; `line` is the budget before
/// [`Economy::budget`].
#[must_use]
pub fn price(
    plan: &Plan,
    transcript: &Transcript,
    line: &Budget,
    sheet: Option<&PriceSheet>,
    outlook: &Outlook,
) -> Price {
    let (rewrites, freed_unsent) = rewritten(plan, transcript);
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
        _ if plan.before > mark(line) => Reason::Must,
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
fn rewritten(plan: &Plan, transcript: &Transcript) -> (Tokens, Tokens) {
    let sent = transcript.sent();
    let weight = |seq: Seq| transcript.get(seq).map_or(Tokens::ZERO, |item| item.tokens);
    let unsent = |edit: &Edit| match edit {
        Edit::Shrink { seq, to } if *seq >= sent => weight(*seq).minus(to.tokens),
        Edit::Drop { first, last } if *last >= sent => {
            let first = (*first).max(sent);
            let items = transcript.unsent().iter();
            let within = items.filter(|item| (first..=*last).contains(&item.seq));
            within.map(|item| item.tokens).sum()
        }
        _ => Tokens::ZERO,
    };
    let freed_unsent = plan.edits.iter().map(unsent).sum();
    let Some(from) = plan.rewrites_from else {
        return (Tokens::ZERO, freed_unsent);
    };
    let items = transcript.items();
    let start = items.partition_point(|item| item.seq < from);
    let end = items.partition_point(|item| item.seq < sent);
    let stood = items.get(start..end).unwrap_or_default();
    let stood: Tokens = stood.iter().map(|item| item.tokens).sum();
    (stood.minus(plan.frees.minus(freed_unsent)), freed_unsent)
}

/// Where a plan must be made. A trigger that was set is such a mark; one that was left at its
/// default is only a habit, and gives way to the safety mark.
fn mark(line: &Budget) -> Tokens {
    if line.trigger == line.limit.share(TRIGGER) {
        line.limit.share(SAFETY_MARK)
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
    let kept = room.minus(outlook.growth());
    let more = u128::from(arrived.minus(outlook.growth()).0);
    // The root of a share in parts per million of millions is one in parts per million.
    let million = u128::from(Ppm::ONE.0);
    let root = (more.saturating_mul(million * million) / u128::from(kept.0.max(1))).isqrt();
    let share = Ppm(Ppm::ONE
        .0
        .saturating_sub(u64::try_from(root).unwrap_or(u64::MAX)));
    let enough = batch(sheet, kept, outlook).share(share);
    let pays = least_that_pays(sheet, room.minus(arrived), outlook);
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

/// Millionths of millionths of [`Money`], as money.
fn money(parts: u128) -> u64 {
    let million = u128::from(Ppm::ONE.0);
    u64::try_from(parts / million / million).unwrap_or(u64::MAX)
}

impl Ratio {
    /// The sheet's prices, or the usual ratio where they are not known, or nothing costs anything.
    fn of(sheet: Option<&PriceSheet>) -> Self {
        let usual = Self {
            read: u128::from(USUAL_READ.0),
            write: u128::from(Ppm::ONE.0),
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
            write: u128::from(sheet.rates.cache_write?.0),
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
            (Some(loses), Some(saves)) => {
                write!(f, " for {loses}, saves {saves} over {over_turns} turns")?;
            }
            _ => f.write_str(", at prices that are not known")?,
        }
        write!(f, ": {}", self.reason)
    }
}

/// `12,300`
fn grouped(f: &mut fmt::Formatter<'_>, number: u64) -> fmt::Result {
    if number < 1_000 {
        return write!(f, "{number}");
    }
    grouped(f, number / 1_000)?;
    write!(f, ",{:03}", number % 1_000)
}
