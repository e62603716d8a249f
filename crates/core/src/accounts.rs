//! [`Account`]: an agent's part of limits that several agents share.
//!
//! For each account and each kind that is limited there: used + promised + held below + left = limit.

use std::sync::{Arc, Mutex};

use plimsoll_agent::{Amounts, LimitKind};

use crate::error::lock;

/// Used amounts.
pub(crate) type Used = Amounts;
/// Allowed amounts; `None` means no limit.
pub(crate) type Limit = Amounts<Option<u64>>;

/// The reason why nothing can be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NothingLeft {
    /// The amount is used up or reserved by others.
    #[error("nothing is left of the limit on {}", .0.noun())]
    Of(LimitKind),
    /// The time is over.
    #[error("no time is left")]
    Time,
}

/// An account. When it is dropped, its usage is added to the one above, and the rest is released there.
/// The accounts below it keep it open.
#[derive(Debug)]
pub(crate) struct Account {
    above: Option<Arc<Self>>,
    limit: Limit,
    books: Mutex<Books>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Books {
    /// Used by this account and by the closed ones below it.
    pub(crate) used: Used,
    /// Promised to this account itself, so it cannot be reserved.
    pub(crate) promised: Used,
    /// Taken by the open accounts below: their limits, or their usage if that is more.
    below: Used,
    /// The number of these accounts.
    open: usize,
}

/// Returns a kind that has nothing left and is needed to begin. An agent without tool calls can still
/// answer, so these do not count.
fn lacks(limit: &Limit) -> Option<LimitKind> {
    [
        (limit.tokens, LimitKind::MaxTokens),
        (limit.money, LimitKind::MaxCost),
        (limit.turns, LimitKind::MaxTurns),
    ]
    .into_iter()
    .find_map(|(amount, kind)| (amount == Some(0)).then_some(kind))
}

impl Books {
    fn taken(&self) -> Used {
        self.used.plus(self.promised).plus(self.below)
    }
}

impl Account {
    /// Creates the account above all others.
    pub(crate) fn new(limit: Limit) -> Arc<Self> {
        Arc::new(Self {
            above: None,
            limit,
            books: Mutex::default(),
        })
    }

    /// Opens an account below with `min(wanted, left)` of each kind. For a kind without a wanted amount,
    /// it gets one of `parts` equal parts of the remaining amount.
    pub(crate) fn open(
        self: &Arc<Self>,
        wanted: Limit,
        parts: u64,
    ) -> Result<Arc<Self>, NothingLeft> {
        let limit = self.change(|books| {
            let limit = self.left_of(books).with(wanted, |left, wanted| match left {
                Some(left) => Some(wanted.unwrap_or(left.div_ceil(parts.max(1))).min(left)),
                None => wanted,
            });
            if let Some(kind) = lacks(&limit) {
                return Err(NothingLeft::Of(kind));
            }
            books.below = books.below.plus(limit.map(Option::unwrap_or_default));
            books.open += 1;
            Ok(limit)
        })?;
        Ok(Arc::new(Self {
            above: Some(Arc::clone(self)),
            limit,
            books: Mutex::default(),
        }))
    }

    /// Changes the books, and what the accounts above hold for this one.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Books) -> T) -> T {
        // Locked from below to above, and until all of them agree.
        let mut books = lock(&self.books);
        let before = self.held(&books);
        let changed = change(&mut books);
        let after = self.held(&books);
        if let Some(above) = self.above.as_ref().filter(|_| before != after) {
            above.replace_held(before, after);
        }
        changed
    }

    fn replace_held(&self, before: Used, after: Used) {
        self.change(|books| books.below = books.below.plus(after).minus(before));
    }

    /// Returns what the account above holds for this one.
    fn held(&self, books: &Books) -> Used {
        let limit = self.limit.map(Option::unwrap_or_default);
        limit.with(books.taken(), u64::max)
    }

    fn left_of(&self, books: &Books) -> Limit {
        let taken = books.taken();
        self.limit
            .with(taken, |limit, taken| Some(limit?.saturating_sub(taken)))
    }

    pub(crate) fn limit(&self) -> Limit {
        self.limit
    }

    /// Returns the amounts that can still be reserved.
    pub(crate) fn left(&self) -> Limit {
        self.left_of(&lock(&self.books))
    }

    /// Returns the number of open accounts directly below.
    pub(crate) fn at_work(&self) -> usize {
        lock(&self.books).open
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let books = *lock(&self.books);
        let held = self.held(&books);
        if let Some(above) = &self.above {
            above.change(|above| {
                above.below = above.below.minus(held);
                above.used = above.used.plus(books.used);
                above.open -= 1;
            });
        }
    }
}

#[cfg(test)]
mod tests;
