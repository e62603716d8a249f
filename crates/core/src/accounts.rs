//! [`Account`]: an agent's part of limits that several agents share.
//!
//! For each account and each kind that is limited there: used + promised + held below + left = limit.

use std::sync::{Arc, Mutex};

use plimsoll_agent::{ExecutionLimits, LimitKind};

use crate::error::lock;

/// The kinds of limits that agents share.
const SHARED: [LimitKind; 4] = [
    LimitKind::MaxTokens,
    LimitKind::MaxCost,
    LimitKind::MaxTurns,
    LimitKind::ToolLimit,
];

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
    books: Mutex<Books>,
}

#[derive(Debug, Clone, Copy)]
struct Books {
    books: [Book; SHARED.len()],
    /// The number of open accounts directly below.
    open: usize,
}

/// The amounts of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Book {
    pub(crate) kind: LimitKind,
    /// `None` means no limit.
    limit: Option<u64>,
    /// Used by this account and by the closed ones below it.
    pub(crate) used: u64,
    /// Promised to this account itself, so it cannot be reserved.
    pub(crate) promised: u64,
    /// Taken by the open accounts below: their limits, or their usage if that is more.
    below: u64,
}

impl Book {
    fn new(kind: LimitKind, limit: Option<u64>) -> Self {
        Self {
            kind,
            limit,
            used: 0,
            promised: 0,
            below: 0,
        }
    }

    fn taken(&self) -> u64 {
        let own = self.used.saturating_add(self.promised);
        own.saturating_add(self.below)
    }

    /// Returns the amount that the account above holds for this one.
    fn held(&self) -> u64 {
        self.limit.unwrap_or_default().max(self.taken())
    }

    fn left(&self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.taken()))
    }
}

impl Account {
    /// Creates the account above all others.
    pub(crate) fn new(limits: &ExecutionLimits) -> Arc<Self> {
        let books = SHARED.map(|kind| Book::new(kind, limits.of(kind)));
        Self::begin(None, books)
    }

    fn begin(above: Option<Arc<Self>>, books: [Book; SHARED.len()]) -> Arc<Self> {
        Arc::new(Self {
            above,
            books: Mutex::new(Books { books, open: 0 }),
        })
    }

    /// Opens an account below with `min(wanted, left)` of each kind. For a kind without a wanted amount,
    /// it gets one of `parts` equal parts of the remaining amount.
    pub(crate) fn open(
        self: &Arc<Self>,
        wanted: &ExecutionLimits,
        parts: u64,
    ) -> Result<Arc<Self>, NothingLeft> {
        let opened = self.change_all(|all| {
            let new = all.books.map(|book| {
                let wanted = wanted.of(book.kind);
                let share = |left: u64| wanted.unwrap_or(left.div_ceil(parts.max(1))).min(left);
                Book::new(book.kind, book.left().map(share).or(wanted))
            });
            // An agent without tool calls can still answer.
            let lacks = |book: &&Book| book.limit == Some(0) && book.kind != LimitKind::ToolLimit;
            if let Some(book) = new.iter().find(lacks) {
                return Err(NothingLeft::Of(book.kind));
            }
            for (book, new) in all.books.iter_mut().zip(&new) {
                book.below = book.below.saturating_add(new.held());
            }
            all.open += 1;
            Ok(new)
        });
        Ok(Self::begin(Some(Arc::clone(self)), opened?))
    }

    /// Changes each book, and the amounts that the accounts above hold for this one.
    pub(crate) fn change(&self, change: impl Fn(&mut Book)) {
        self.change_all(|all| all.books.iter_mut().for_each(change));
    }

    fn change_all<T>(&self, change: impl FnOnce(&mut Books) -> T) -> T {
        // Locked from below to above, and until all of them agree.
        let mut books = lock(&self.books);
        let before = books.books.map(|book| book.held());
        let changed = change(&mut books);
        let after = books.books.map(|book| book.held());
        if let Some(above) = self.above.as_ref().filter(|_| before != after) {
            above.replace_held(before, after);
        }
        changed
    }

    fn replace_held(&self, before: [u64; SHARED.len()], after: [u64; SHARED.len()]) {
        self.change_all(|all| {
            for ((book, before), after) in all.books.iter_mut().zip(before).zip(after) {
                book.below = book.below.saturating_add(after).saturating_sub(before);
            }
        });
    }

    /// Returns the limit of a kind; `None` if there is none.
    pub(crate) fn limit(&self, kind: LimitKind) -> Option<u64> {
        self.book(kind)?.limit
    }

    /// Returns the amount of a kind that can still be reserved; `None` if it is not limited.
    pub(crate) fn left(&self, kind: LimitKind) -> Option<u64> {
        self.book(kind)?.left()
    }

    fn book(&self, kind: LimitKind) -> Option<Book> {
        let mut books = lock(&self.books).books.into_iter();
        books.find(|book| book.kind == kind)
    }

    /// Returns the number of open accounts directly below.
    pub(crate) fn at_work(&self) -> usize {
        lock(&self.books).open
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let own = *lock(&self.books);
        if let Some(above) = &self.above {
            above.change_all(|above| {
                for (above, own) in above.books.iter_mut().zip(own.books) {
                    above.below = above.below.saturating_sub(own.held());
                    above.used = above.used.saturating_add(own.used);
                }
                above.open -= 1;
            });
        }
    }
}

#[cfg(test)]
mod tests;
