//! [`Allowance`]: what agents that work together may use, as a tree. Each takes its part out of what
//! the one above has left, its spending is seen there at once, and what it did not use is back the
//! moment it is done, however it ended. Not who is stopped by that; a run's own limits do that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_agent::{CountTokens, ExecutionLimits, Own, Spend};
use plimsoll_context::{Money, Tokens};
use tokio::time::Instant;

mod meter;
mod tree;

pub use meter::Meter;
pub use tree::{Amounts, Kind};
pub(crate) use tree::{Limit, Used};

use tree::{Place, Refused, Tree};

/// Model calls of all agents that one run starts, its own aside, and of those that they start. A
/// turn bounds one loop; without this bound loops within loops multiply.
pub const MAX_TURNS_BELOW: u64 = 1_000;

/// What may be used, here and by all that reserve from it. Clones are the same allowance.
///
/// ```
/// use plimsoll_agent::{ExecutionLimits, Spend};
/// use plimsoll_context::{Tokens, Usage};
/// use plimsoll_core::Allowance;
///
/// let limits = |tokens| ExecutionLimits {
///     max_total_tokens: Some(Tokens(tokens)),
///     ..ExecutionLimits::default()
/// };
/// let all = Allowance::new(&limits(100_000));
/// let grant = all.reserve(&limits(80_000))?;
/// assert_eq!(all.left().tokens, Some(20_000));
/// let usage = Usage { input: Tokens(30_000), ..Usage::default() };
/// grant.meter().add(&Spend { usage, ..Spend::default() });
/// drop(grant);
/// assert_eq!(all.left().tokens, Some(70_000));
/// # Ok::<(), plimsoll_core::NothingLeft>(())
/// ```
#[derive(Debug, Clone)]
pub struct Allowance {
    tree: Shared,
    place: Place,
    until: Option<Instant>,
    meter: Meter,
    /// Agents that work for agents, down to here.
    depth: u32,
}

/// What was reserved from an [`Allowance`]; itself one. Dropping it settles what was used and gives
/// back the rest, also where a panic or a timeout drops it.
#[derive(Debug)]
pub struct Grant(Allowance);

/// Nothing can be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NothingLeft {
    /// It is used up or reserved by others.
    #[error("no {0} are left")]
    Of(Kind),
    /// There is some, and it is not worth beginning.
    #[error("too few {0} are left")]
    TooFew(Kind),
    /// The time is over.
    #[error("no time is left")]
    Time,
    /// Too many have reserved something.
    #[error("too many agents are at work at once")]
    TooMany,
}

/// What a run is known to have used itself, so that only what is new is booked.
#[derive(Debug)]
pub(crate) struct Books {
    allowance: Allowance,
    known: Spend,
    tokens: Tokens,
}

type Shared = Arc<Mutex<Tree>>;

impl Allowance {
    /// What these limits allow, from now on. Its turns are those of all together.
    #[must_use]
    pub fn new(limits: &ExecutionLimits) -> Self {
        Self::of(wanted(limits), limits.max_duration)
    }

    pub(crate) fn of(limit: Limit, time: Option<Duration>) -> Self {
        let (tree, place) = Tree::new(limit);
        let tree = Arc::new(Mutex::new(tree));
        let meter = Meter::at(None, Some((Arc::clone(&tree), place)));
        Self {
            tree,
            place,
            until: time.and_then(|time| Instant::now().checked_add(time)),
            meter,
            depth: 0,
        }
    }

    /// No limits at all.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::of(Limit::default(), None)
    }

    /// Takes `min(requested, left)` of each kind out of what is left; of what `requested` does not
    /// limit, all that is left.
    ///
    /// # Errors
    /// Where there is nothing left of a kind without which nothing can be done.
    pub fn reserve(&self, requested: &ExecutionLimits) -> Result<Grant, NothingLeft> {
        self.reserve_part(wanted(requested), requested.max_duration, 1)
    }

    /// The same; of what is not asked for, one of so many equal parts.
    pub(crate) fn reserve_part(
        &self,
        wanted: Limit,
        time: Option<Duration>,
        parts: u64,
    ) -> Result<Grant, NothingLeft> {
        self.take(time, |tree| tree.reserve(self.place, wanted, parts))
    }

    /// The same for an agent that works for a run: the run keeps its last call also where the agent
    /// goes beyond its part by its own last one, up to one part in [`tree::SLACK`].
    pub(crate) fn reserve_for_agent(
        &self,
        wanted: Limit,
        time: Option<Duration>,
        parts: u64,
    ) -> Result<Grant, NothingLeft> {
        self.take(time, |tree| {
            tree.reserve_with_slack(self.place, wanted, parts)
        })
    }

    fn take(
        &self,
        time: Option<Duration>,
        reserve: impl FnOnce(&mut Tree) -> Result<Place, Refused>,
    ) -> Result<Grant, NothingLeft> {
        let now = Instant::now();
        if self.until.is_some_and(|until| until <= now) {
            return Err(NothingLeft::Time);
        }
        let until = time.and_then(|time| now.checked_add(time));
        let place = reserve(&mut lock(&self.tree))?;
        let tree = Arc::clone(&self.tree);
        let meter = Meter::at(
            Some(self.meter.clone()),
            Some((Arc::clone(&self.tree), place)),
        );
        Ok(Grant(Self {
            tree,
            place,
            until: earlier(self.until, until),
            meter,
            depth: self.depth,
        }))
    }

    /// What can still be reserved.
    #[must_use]
    pub fn left(&self) -> Limit {
        let tree = lock(&self.tree);
        let ledger = tree.ledger(self.place);
        ledger.map_or_else(nothing, |ledger| ledger.left())
    }

    /// What may be used in all; `None` is no limit.
    #[must_use]
    pub fn limit(&self) -> Limit {
        let tree = lock(&self.tree);
        tree.ledger(self.place)
            .map_or_else(nothing, |ledger| ledger.limit)
    }

    /// What is set aside for those below that are not done.
    #[must_use]
    pub fn reserved(&self) -> Used {
        let tree = lock(&self.tree);
        tree.ledger(self.place)
            .map_or_else(Used::default, |ledger| ledger.reserved)
    }

    /// What was used, here and by all below that are done.
    #[must_use]
    pub fn used(&self) -> Used {
        let tree = lock(&self.tree);
        tree.ledger(self.place)
            .map_or_else(Used::default, |ledger| ledger.used())
    }

    /// Where spending is booked, and read live.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// When it ends.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// How many agents work for each other, down to whoever has this; 0 for who works for nobody.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// How many have reserved something and are not done.
    pub(crate) fn at_work(&self) -> usize {
        lock(&self.tree).below(self.place)
    }

    /// The same allowance, ending at `until` if that is earlier.
    pub(crate) fn ending(&self, until: Option<Instant>) -> Self {
        Self {
            until: earlier(self.until, until),
            ..self.clone()
        }
    }

    /// The same allowance for one tool call: what is used through it is booked here, and its meter
    /// reads the call alone.
    pub(crate) fn for_call(&self) -> Self {
        let books = Some((Arc::clone(&self.tree), self.place));
        Self {
            meter: Meter::at(Some(self.meter.clone()), books),
            ..self.clone()
        }
    }

    /// `limits` and what may be used here, whichever is less. What is used here counts as it is
    /// processed: that is what whoever reserved it is charged.
    #[must_use]
    pub fn within(&self, limits: &ExecutionLimits) -> ExecutionLimits {
        let limit = self.limit();
        let mut limits = limits.clone();
        if let Some(tokens) = limit.tokens {
            let tokens = Tokens(tokens);
            limits.count_tokens = CountTokens::Processed;
            limits.max_total_tokens = Some(
                limits
                    .max_total_tokens
                    .map_or(tokens, |max| max.min(tokens)),
            );
        }
        if let Some(money) = limit.money {
            limits.max_cost = Some(
                limits
                    .max_cost
                    .map_or(Money(money), |max| max.min(Money(money))),
            );
        }
        if let Some(turns) = limit.turns {
            limits.max_turns = limits.max_turns.min(turns);
        }
        if let Some(calls) = limit.tool_calls {
            limits.max_tool_calls = Some(limits.max_tool_calls.map_or(calls, |max| max.min(calls)));
        }
        if let Some(until) = self.until {
            let left = until.saturating_duration_since(Instant::now());
            limits.max_duration = Some(limits.max_duration.map_or(left, |max| max.min(left)));
        }
        limits
    }
}

impl Grant {
    /// For an agent that works for whoever reserved it.
    pub(crate) fn deeper(mut self) -> Self {
        self.0.depth = self.0.depth.saturating_add(1);
        self
    }
}

impl std::ops::Deref for Grant {
    type Target = Allowance;
    fn deref(&self) -> &Allowance {
        &self.0
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        lock(&self.0.tree).settle(self.0.place);
    }
}

impl Books {
    /// The books of a run: of its own under these limits, or below what was reserved for it.
    pub(crate) fn of_run(limits: &ExecutionLimits, under: Option<&Allowance>) -> Self {
        let own = |limits| Allowance::of(with_turns_below(wanted(limits)), None);
        Self {
            allowance: under.map_or_else(|| own(limits), Allowance::clone),
            known: Spend::default(),
            tokens: Tokens::ZERO,
        }
    }

    /// Books what others have used for a run that goes on after a crash.
    pub(crate) fn carry(&mut self, own: &Own) {
        self.allowance.meter.add(&own.others);
    }

    /// Books what a run has used itself since.
    pub(crate) fn book(&mut self, own: &Own) {
        let more = own.spend.without(self.known);
        let tokens = own.tokens.minus(self.tokens);
        (self.known, self.tokens) = (own.spend, own.tokens);
        let used = Used {
            tokens: tokens.0,
            ..amounts(&more)
        };
        let promised = Used {
            tokens: own.keeps_tokens.0,
            money: own.keeps_cost.0,
            turns: own.keeps_turns,
            tool_calls: own.keeps_tool_calls,
        };
        lock(&self.allowance.tree).meter(self.allowance.place, used, promised);
        self.allowance.meter.seen(&more);
    }

    /// What the run may use.
    #[cfg(test)]
    pub(crate) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// What its tool calls may use, until then.
    pub(crate) fn for_call(&self, until: Option<Instant>) -> Allowance {
        self.allowance.ending(until).for_call()
    }
}

impl From<Refused> for NothingLeft {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::UsedUp(kind) => Self::Of(kind),
            Refused::TooMany => Self::TooMany,
            Refused::Settled => Self::Of(Kind::Tokens),
        }
    }
}

/// What limits ask for.
pub(crate) fn wanted(limits: &ExecutionLimits) -> Limit {
    Limit {
        tokens: limits.max_total_tokens.map(|tokens| tokens.0),
        money: limits.max_cost.map(|money| money.0),
        turns: Some(limits.max_turns),
        tool_calls: limits.max_tool_calls,
    }
}

/// The same, with turns for those that it starts.
pub(crate) fn with_turns_below(limit: Limit) -> Limit {
    Limit {
        turns: limit
            .turns
            .map(|turns| turns.saturating_add(MAX_TURNS_BELOW)),
        ..limit
    }
}

/// What was spent, in the kinds that are limited.
fn amounts(spend: &Spend) -> Used {
    Used {
        tokens: spend.usage.total_tokens().0,
        money: spend.cost.known.0,
        turns: spend.turns,
        tool_calls: spend.tool_calls,
    }
}

fn nothing() -> Limit {
    Used::default().map(Some)
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn lock(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
