//! [`Reservation`]: a part of the limits that several agents share.
//!
//! A run's own limits stop the run; this module only keeps the accounts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_agent::{CountTokens, ExecutionLimits, LimitKind, Spend};
use plimsoll_context::{Money, Tokens};
use tokio::time::Instant;

use crate::accounts::{Account, NothingLeft};
use crate::error::lock;

/// The maximum number of model calls of all agents below one run, not counting the run's own calls.
///
/// The turn limit bounds one loop only. Without this bound, nested loops would multiply.
pub const MAX_TURNS_BELOW: u64 = 1_000;

/// Amounts that may be used, directly or by further reservations.
///
/// An agent reserves its part from what is left above. Its usage is visible there immediately, and
/// the unused rest returns when the last clone of the reservation is dropped, and all reservations below
/// it, even after a panic or a timeout.
///
/// ```
/// use plimsoll_agent::{ExecutionLimits, Spend};
/// use plimsoll_context::{Tokens, Usage};
/// use plimsoll_core::Reservation;
///
/// let limits = |tokens| ExecutionLimits {
///     max_total_tokens: Some(Tokens(tokens)),
///     ..ExecutionLimits::default()
/// };
/// let all = Reservation::new(&limits(100_000));
/// let part = all.reserve(&limits(80_000))?;
/// assert_eq!(all.left().max_total_tokens, Some(Tokens(20_000)));
/// let usage = Usage { input: Tokens(30_000), ..Usage::default() };
/// part.spend(&Spend { usage, ..Spend::default() });
/// drop(part);
/// assert_eq!(all.left().max_total_tokens, Some(Tokens(70_000)));
/// # Ok::<(), plimsoll_core::NothingLeft>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reservation {
    account: Arc<Account>,
    meter: Arc<Meter>,
    until: Option<Instant>,
    /// The number of agents above this one: 0 for the first agent.
    depth: u32,
}

/// The usage of a reservation, or of a tool call within one, and of everything below it.
#[derive(Debug, Default)]
struct Meter {
    above: Option<Arc<Self>>,
    spent: Mutex<Spend>,
}

impl Meter {
    fn below(above: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            above: Some(Arc::clone(above)),
            spent: Mutex::default(),
        })
    }

    fn add(&self, more: &Spend) {
        let mut spent = lock(&self.spent);
        *spent = spent.combine(*more);
        if let Some(above) = &self.above {
            above.add(more);
        }
    }
}

impl Reservation {
    /// Creates a reservation of everything within these limits, for all of its users together. Its
    /// time starts now.
    #[must_use]
    pub fn new(limits: &ExecutionLimits) -> Self {
        Self {
            account: Account::new(limits),
            meter: Arc::default(),
            until: ends_in(limits.max_duration),
            depth: 0,
        }
    }

    /// Creates a reservation without limits.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(&ExecutionLimits::default())
    }

    /// Creates the reservation of a run and everything below it. Its time is that of the run.
    pub(crate) fn of_run(limits: &ExecutionLimits) -> Self {
        Self::new(&ExecutionLimits {
            max_turns: Some(limits.max_turns().saturating_add(MAX_TURNS_BELOW)),
            max_duration: None,
            ..*limits
        })
    }

    /// Reserves `min(requested, left)` of each kind. Reserves everything that is left of a kind that
    /// `requested` does not limit.
    ///
    /// # Errors
    /// If nothing is left of a kind that every run needs.
    pub fn reserve(&self, requested: &ExecutionLimits) -> Result<Self, NothingLeft> {
        self.reserve_part(requested, 1)
    }

    /// Like [`Self::reserve`], but takes one of `parts` equal parts of each kind without a requested
    /// amount.
    pub(crate) fn reserve_part(
        &self,
        requested: &ExecutionLimits,
        parts: u64,
    ) -> Result<Self, NothingLeft> {
        if self.until.is_some_and(|until| until <= Instant::now()) {
            return Err(NothingLeft::Time);
        }
        let until = [self.until, ends_in(requested.max_duration)];
        Ok(Self {
            account: self.account.open(requested, parts)?,
            meter: Meter::below(&self.meter),
            until: until.into_iter().flatten().min(),
            depth: self.depth,
        })
    }

    /// Returns a reservation for one tool call, ending at `until` if that is earlier. It shares all
    /// limits with this one, and its usage is that of the call only.
    pub(crate) fn for_call(&self, until: Option<Instant>) -> Self {
        Self {
            meter: Meter::below(&self.meter),
            until: [self.until, until].into_iter().flatten().min(),
            ..self.clone()
        }
    }

    /// Marks the reservation as belonging to a sub-agent.
    pub(crate) fn deeper(self) -> Self {
        Self {
            depth: self.depth.saturating_add(1),
            ..self
        }
    }

    /// Adds usage, for example of a model or a service that a tool has called.
    pub fn spend(&self, spend: &Spend) {
        self.meter.add(spend);
        self.account
            .change(|book| book.used = book.used.saturating_add(spend.of(book.kind)));
    }

    /// Returns the usage so far, including that of all reservations below this one.
    #[must_use]
    pub fn spent(&self) -> Spend {
        *lock(&self.meter.spent)
    }

    /// Returns the amounts that may be used in total.
    ///
    /// If tokens are limited, all processed tokens count, because they are charged to the
    /// reservation.
    #[must_use]
    pub fn limits(&self) -> ExecutionLimits {
        self.in_time(|kind| self.account.limit(kind))
    }

    /// Returns the amounts that can still be reserved.
    #[must_use]
    pub fn left(&self) -> ExecutionLimits {
        self.in_time(|kind| self.account.left(kind))
    }

    fn in_time(&self, amount: impl Fn(LimitKind) -> Option<u64>) -> ExecutionLimits {
        let (now, tokens) = (Instant::now(), amount(LimitKind::MaxTokens));
        ExecutionLimits {
            max_total_tokens: tokens.map(Tokens),
            count_tokens: tokens.map(|_| CountTokens::Processed),
            max_cost: amount(LimitKind::MaxCost).map(Money),
            max_turns: amount(LimitKind::MaxTurns),
            max_tool_calls: amount(LimitKind::ToolLimit),
            max_duration: self.until.map(|until| until.saturating_duration_since(now)),
            ..ExecutionLimits::default()
        }
    }

    /// Returns the number of agents above this one: 0 for the first agent.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the number of open reservations below this one.
    pub(crate) fn at_work(&self) -> usize {
        self.account.at_work()
    }

    /// Records the usage of a run since `before`, which is set to the present usage, and promises the
    /// run the part that it keeps for itself. Both are as [`Ledger::own`](plimsoll_agent::Ledger::own) and
    /// [`Run::keeps`](plimsoll_agent::Run::keeps) return them.
    pub(crate) fn book(&self, own: (Spend, Tokens), keeps: Spend, before: &mut (Spend, Tokens)) {
        let (more, tokens) = (own.0.without(before.0), own.1.minus(before.1));
        *before = own;
        self.meter.add(&more);
        self.account.change(|book| {
            let more = match book.kind {
                LimitKind::MaxTokens => tokens.0,
                kind => more.of(kind),
            };
            book.used = book.used.saturating_add(more);
            book.promised = keeps.of(book.kind);
        });
    }
}

fn ends_in(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}

#[cfg(test)]
mod tests;
