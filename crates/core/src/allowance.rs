//! [`Allowance`]: a tree of limits that agents share.
//!
//! Each agent reserves its part from the remaining amount of the node above. Its spending is
//! visible there immediately, and the unused rest is returned when the agent ends, even after a
//! panic. A run's own limits stop the run; this module only keeps the accounts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_agent::{CountTokens, ExecutionLimits, OwnUsage, Spend};
use plimsoll_context::{Money, Tokens};
use tokio::time::Instant;

mod meter;
mod tree;

pub use meter::Meter;
pub use tree::{AllowanceKind, Amounts};
pub(crate) use tree::{Limit, UsedAmounts};

use tree::{NodeId, ReserveError, Tree};

/// The maximum number of model calls of all agents below one run, not counting the run's own calls.
///
/// The turn limit bounds one loop only. Without this bound, nested loops would multiply.
pub const MAX_TURNS_BELOW: u64 = 1_000;

/// The amounts that may be used, directly or through reservations. Clones share the same allowance.
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
    tree: SharedTree,
    node: NodeId,
    until: Option<Instant>,
    meter: Meter,
    /// The number of agents above this one: 0 for the first agent.
    depth: u32,
}

/// A part reserved from an [`Allowance`], itself an allowance.
///
/// Dropping it records the usage and returns the rest, even after a panic or a timeout.
#[derive(Debug)]
pub struct Grant(Allowance);

/// The reason why nothing can be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NothingLeft {
    /// The amount is used up or reserved by others.
    #[error("no {0} are left")]
    Of(AllowanceKind),
    /// Too little is left to begin.
    #[error("too few {0} are left")]
    TooFew(AllowanceKind),
    /// The time is over.
    #[error("no time is left")]
    Time,
    /// Too many reservations are open.
    #[error("too many agents are at work at once")]
    TooMany,
}

/// The usage of a run that has already been recorded, so that only new usage is added.
#[derive(Debug)]
pub(crate) struct BudgetLedger {
    allowance: Allowance,
    known: Spend,
    tokens: Tokens,
}

type SharedTree = Arc<Mutex<Tree>>;

impl Allowance {
    /// Creates an allowance with these limits. Its time starts now, and its turns count for all
    /// users together.
    #[must_use]
    pub fn new(limits: &ExecutionLimits) -> Self {
        Self::of(wanted(limits), limits.max_duration)
    }

    pub(crate) fn of(limit: Limit, time: Option<Duration>) -> Self {
        let (tree, node) = Tree::new(limit);
        let tree = Arc::new(Mutex::new(tree));
        let meter = Meter::at(None, Some((Arc::clone(&tree), node)));
        Self {
            tree,
            node,
            until: time.and_then(|time| Instant::now().checked_add(time)),
            meter,
            depth: 0,
        }
    }

    /// Creates an allowance without limits.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::of(Limit::default(), None)
    }

    /// Reserves `min(requested, left)` of each kind. Reserves everything that is left of a kind
    /// that `requested` does not limit.
    ///
    /// # Errors
    /// If nothing is left of a kind that every run needs.
    pub fn reserve(&self, requested: &ExecutionLimits) -> Result<Grant, NothingLeft> {
        self.reserve_part(wanted(requested), requested.max_duration, 1)
    }

    /// Like [`Self::reserve`], but takes one of `parts` equal parts of each kind without a
    /// requested amount.
    pub(crate) fn reserve_part(
        &self,
        wanted: Limit,
        time: Option<Duration>,
        parts: u64,
    ) -> Result<Grant, NothingLeft> {
        self.take(time, |tree| tree.reserve(self.node, wanted, parts))
    }

    /// Reserves a part for an agent that works for a run.
    ///
    /// Additionally sets aside a share of 1/[`tree::SLACK`], since the agent may exceed its part
    /// with its last call. This way the run itself can still make its own last call.
    pub(crate) fn reserve_for_agent(
        &self,
        wanted: Limit,
        time: Option<Duration>,
        parts: u64,
    ) -> Result<Grant, NothingLeft> {
        self.take(time, |tree| {
            tree.reserve_with_slack(self.node, wanted, parts)
        })
    }

    fn take(
        &self,
        time: Option<Duration>,
        reserve: impl FnOnce(&mut Tree) -> Result<NodeId, ReserveError>,
    ) -> Result<Grant, NothingLeft> {
        let now = Instant::now();
        if self.until.is_some_and(|until| until <= now) {
            return Err(NothingLeft::Time);
        }
        let until = time.and_then(|time| now.checked_add(time));
        let node = reserve(&mut lock(&self.tree))?;
        let tree = Arc::clone(&self.tree);
        let meter = Meter::at(
            Some(self.meter.clone()),
            Some((Arc::clone(&self.tree), node)),
        );
        Ok(Grant(Self {
            tree,
            node,
            until: earlier(self.until, until),
            meter,
            depth: self.depth,
        }))
    }

    /// Returns the amounts that can still be reserved.
    #[must_use]
    pub fn left(&self) -> Limit {
        let tree = lock(&self.tree);
        let ledger = tree.ledger(self.node);
        ledger.map_or_else(nothing, |ledger| ledger.left())
    }

    /// Returns the total amounts that may be used. `None` means no limit.
    #[must_use]
    pub fn limit(&self) -> Limit {
        let tree = lock(&self.tree);
        tree.ledger(self.node)
            .map_or_else(nothing, |ledger| ledger.limit)
    }

    /// Returns the amounts set aside for open reservations.
    #[must_use]
    pub fn reserved(&self) -> UsedAmounts {
        let tree = lock(&self.tree);
        tree.ledger(self.node)
            .map_or_else(UsedAmounts::default, |ledger| ledger.reserved)
    }

    /// Returns the amounts used here and by all settled reservations.
    #[must_use]
    pub fn used(&self) -> UsedAmounts {
        let tree = lock(&self.tree);
        tree.ledger(self.node)
            .map_or_else(UsedAmounts::default, |ledger| ledger.used())
    }

    /// Returns the meter that records spending and can be read at any time.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns the deadline, if there is one.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Returns the number of agents above this one: 0 for the first agent.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the number of open reservations.
    pub(crate) fn at_work(&self) -> usize {
        lock(&self.tree).below(self.node)
    }

    /// Returns the same allowance, ending at `until` if that is earlier.
    pub(crate) fn ending(&self, until: Option<Instant>) -> Self {
        Self {
            until: earlier(self.until, until),
            ..self.clone()
        }
    }

    /// Returns the same allowance for one tool call. Usage is recorded here, but the meter covers
    /// this call only.
    pub(crate) fn for_call(&self) -> Self {
        let ledger = Some((Arc::clone(&self.tree), self.node));
        Self {
            meter: Meter::at(Some(self.meter.clone()), ledger),
            ..self.clone()
        }
    }

    /// Returns `limits`, reduced to the amounts available here.
    ///
    /// If tokens are limited here, all processed tokens count, because they are charged to the
    /// reservation.
    #[must_use]
    pub fn within(&self, limits: &ExecutionLimits) -> ExecutionLimits {
        let limit = self.limit();
        let mut limits = limits.clone();
        if let Some(tokens) = limit.tokens {
            let tokens = Tokens(tokens);
            limits.count_tokens = Some(CountTokens::Processed);
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
            limits.max_turns = Some(limits.max_turns().min(turns));
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
    /// Marks the grant as belonging to a sub-agent.
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
        lock(&self.0.tree).settle(self.0.node);
    }
}

impl BudgetLedger {
    /// Opens the ledger of a run, either under its own limits or under an existing reservation.
    pub(crate) fn of_run(limits: &ExecutionLimits, under: Option<&Allowance>) -> Self {
        let own = |limits: &ExecutionLimits| {
            Allowance::of(with_turns_below(wanted(&limits.filled())), None)
        };
        Self {
            allowance: under.map_or_else(|| own(limits), Allowance::clone),
            known: Spend::default(),
            tokens: Tokens::ZERO,
        }
    }

    /// Records usage by sub-agents and tools before a crash, for a run that continues after it.
    pub(crate) fn carry(&mut self, own: &OwnUsage) {
        self.allowance.meter.add(&own.others);
    }

    /// Records the run's own usage since the last call.
    pub(crate) fn book(&mut self, own: &OwnUsage) {
        let more = own.spend.without(self.known);
        let tokens = own.tokens.minus(self.tokens);
        (self.known, self.tokens) = (own.spend, own.tokens);
        let used = UsedAmounts {
            tokens: tokens.0,
            ..amounts(&more)
        };
        let promised = UsedAmounts {
            tokens: own.keeps_tokens.0,
            money: own.keeps_cost.0,
            turns: own.keeps_turns,
            tool_calls: own.keeps_tool_calls,
        };
        lock(&self.allowance.tree).meter(self.allowance.node, used, promised);
        self.allowance.meter.seen(&more);
    }

    /// Returns the allowance of the run.
    #[cfg(test)]
    pub(crate) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// Returns the allowance for a tool call, ending at `until`.
    pub(crate) fn for_call(&self, until: Option<Instant>) -> Allowance {
        self.allowance.ending(until).for_call()
    }
}

impl From<ReserveError> for NothingLeft {
    fn from(refused: ReserveError) -> Self {
        match refused {
            ReserveError::UsedUp(kind) => Self::Of(kind),
            ReserveError::TooMany => Self::TooMany,
            ReserveError::Settled => Self::Of(AllowanceKind::Tokens),
        }
    }
}

/// Converts execution limits to the amounts to reserve.
pub(crate) fn wanted(limits: &ExecutionLimits) -> Limit {
    Limit {
        tokens: limits.max_total_tokens.map(|tokens| tokens.0),
        money: limits.max_cost.map(|money| money.0),
        turns: limits.max_turns,
        tool_calls: limits.max_tool_calls,
    }
}

/// Adds the turns of sub-agents to a limit.
pub(crate) fn with_turns_below(limit: Limit) -> Limit {
    Limit {
        turns: limit
            .turns
            .map(|turns| turns.saturating_add(MAX_TURNS_BELOW)),
        ..limit
    }
}

/// Converts spending to amounts of the limited kinds.
fn amounts(spend: &Spend) -> UsedAmounts {
    UsedAmounts {
        tokens: spend.usage.total_tokens().0,
        money: spend.cost.known.0,
        turns: spend.turns,
        tool_calls: spend.tool_calls,
    }
}

fn nothing() -> Limit {
    UsedAmounts::default().map(Some)
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
