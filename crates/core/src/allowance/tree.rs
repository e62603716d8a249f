//! [`Tree`]: the arithmetic of shared limits. At each place and for each kind that is limited there,
//! used + promised + reserved + left = limit. No clock, no lock, nobody's spending; only sums.

use std::collections::BTreeMap;
use std::fmt;

/// Places in a tree at once, at most; beyond that nothing can be reserved.
pub(crate) const MAX_PLACES: usize = 1_024;

/// One part in so many, on top of what an agent may use, is set aside with it: that a call was its last
/// is known once it is answered, so an agent may go beyond its part by what one request weighs.
pub(crate) const SLACK: u64 = 4;

/// One number for each kind of thing that is limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts<T> {
    /// Tokens, all that are processed and written.
    pub tokens: T,
    /// Money, in billionths of a dollar.
    pub money: T,
    /// Model calls.
    pub turns: T,
    /// Tool calls.
    pub tool_calls: T,
}

/// What was used.
pub(crate) type Used = Amounts<u64>;
/// What may be used; `None` is no limit.
pub(crate) type Limit = Amounts<Option<u64>>;

/// A kind of thing that is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tokens.
    Tokens,
    /// Money.
    Money,
    /// Model calls.
    Turns,
    /// Tool calls.
    ToolCalls,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens => "tokens",
            Self::Money => "dollars",
            Self::Turns => "turns",
            Self::ToolCalls => "tool calls",
        })
    }
}

/// A place in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

/// Why nothing was reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Nothing of a kind is left.
    UsedUp(Kind),
    /// There are [`MAX_PLACES`].
    TooMany,
    /// The place is settled already.
    Settled,
}

/// Shared limits, from a root down.
#[derive(Debug)]
pub(crate) struct Tree {
    places: BTreeMap<Place, Ledger>,
    next: u64,
}

/// The books of one place.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ledger {
    parent: Option<Place>,
    pub(crate) limit: Limit,
    /// What is set aside above for it beyond that.
    slack: Used,
    /// What the place has used itself.
    pub(crate) own: Used,
    /// What it will use itself, whatever happens.
    pub(crate) promised: Used,
    /// What those below it had used when they were settled.
    pub(crate) settled: Used,
    /// What is set aside for those below it: what they may use or, where that is more, what they
    /// have used.
    pub(crate) reserved: Used,
}

impl<T: Copy> Amounts<T> {
    /// Each number by itself.
    pub fn map<R>(self, f: impl Fn(T) -> R) -> Amounts<R> {
        Amounts {
            tokens: f(self.tokens),
            money: f(self.money),
            turns: f(self.turns),
            tool_calls: f(self.tool_calls),
        }
    }

    /// Each number with the one of its kind.
    pub fn with<U: Copy, R>(self, other: Amounts<U>, f: impl Fn(T, U) -> R) -> Amounts<R> {
        Amounts {
            tokens: f(self.tokens, other.tokens),
            money: f(self.money, other.money),
            turns: f(self.turns, other.turns),
            tool_calls: f(self.tool_calls, other.tool_calls),
        }
    }
}

impl Used {
    pub(crate) fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

impl Limit {
    /// The smaller of both.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        self.with(other, |one, other| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        })
    }

    /// A kind without which nothing can be begun, of which there is none. An agent without tool
    /// calls can still answer.
    fn lacks(&self) -> Option<Kind> {
        [
            (self.tokens, Kind::Tokens),
            (self.money, Kind::Money),
            (self.turns, Kind::Turns),
        ]
        .into_iter()
        .find_map(|(amount, kind)| (amount == Some(0)).then_some(kind))
    }
}

impl Ledger {
    /// All that was used here and below.
    pub(crate) fn used(&self) -> Used {
        self.own.plus(self.settled)
    }

    /// All that is used or spoken for.
    fn taken(&self) -> Used {
        self.used().plus(self.promised).plus(self.reserved)
    }

    /// What can still be given away.
    pub(crate) fn left(&self) -> Limit {
        self.limit.with(self.taken(), |limit, taken| {
            Some(limit?.saturating_sub(taken))
        })
    }

    /// What the place above has to hold for this one.
    fn held(&self) -> Used {
        self.limit
            .map(|limit| limit.unwrap_or(0))
            .plus(self.slack)
            .with(self.taken(), u64::max)
    }
}

impl Tree {
    /// A tree of one place.
    pub(crate) fn new(limit: Limit) -> (Self, Place) {
        let root = Place(0);
        let ledger = Ledger {
            limit,
            ..Ledger::default()
        };
        let tree = Self {
            places: BTreeMap::from([(root, ledger)]),
            next: 1,
        };
        (tree, root)
    }

    /// Takes `min(wanted, left)` out of a place for a new one below it. Of what is not said how much
    /// is wanted, it is one of `shares` equal parts of what is left.
    pub(crate) fn reserve(
        &mut self,
        above: Place,
        wanted: Limit,
        shares: u64,
    ) -> Result<Place, Refused> {
        if self.places.len() >= MAX_PLACES {
            return Err(Refused::TooMany);
        }
        let ledger = self.places.get(&above).ok_or(Refused::Settled)?;
        let limit = ledger.left().with(wanted, |left, wanted| match left {
            Some(left) => Some(wanted.unwrap_or(left.div_ceil(shares.max(1))).min(left)),
            None => wanted,
        });
        if let Some(kind) = limit.lacks() {
            return Err(Refused::UsedUp(kind));
        }
        let place = Place(self.next);
        self.next += 1;
        let ledger = Ledger {
            parent: Some(above),
            limit,
            ..Ledger::default()
        };
        self.places.insert(place, ledger);
        self.held_differently(Some(above), Used::default(), ledger.held());
        Ok(place)
    }

    /// The same for an agent: what it may exceed its part by, in tokens and money, is set aside too. Of
    /// what there is not enough for both, its part is the smaller.
    pub(crate) fn reserve_with_slack(
        &mut self,
        above: Place,
        wanted: Limit,
        shares: u64,
    ) -> Result<Place, Refused> {
        let with_slack = |wanted: u64| wanted.saturating_add(wanted / SLACK);
        let both = Limit {
            tokens: wanted.tokens.map(with_slack),
            money: wanted.money.map(with_slack),
            ..wanted
        };
        let place = self.reserve(above, both, shares)?;
        self.change(place, |ledger| {
            let slack = |limit: Option<u64>| limit.unwrap_or(0) / (SLACK + 1);
            ledger.slack = Used {
                tokens: slack(ledger.limit.tokens),
                money: slack(ledger.limit.money),
                ..Used::default()
            };
            ledger.limit = ledger.limit.with(ledger.slack, |limit, slack| {
                Some(limit?.saturating_sub(slack))
            });
        });
        Ok(place)
    }

    /// A place has used more.
    pub(crate) fn spend(&mut self, place: Place, more: Used) {
        self.change(place, |ledger| ledger.own = ledger.own.plus(more));
    }

    /// A place has used more, and will use so much more whatever happens; no longer what was said of
    /// that before.
    pub(crate) fn meter(&mut self, place: Place, more: Used, promised: Used) {
        self.change(place, |ledger| {
            ledger.own = ledger.own.plus(more);
            ledger.promised = promised;
        });
    }

    /// A place is done: what it has used is used up above it, and the rest is there again. What it
    /// had reserved for others is held by the place above from now on. The root stays.
    pub(crate) fn settle(&mut self, place: Place) {
        let Some(above) = self.places.get(&place).and_then(|ledger| ledger.parent) else {
            return;
        };
        let Some(ledger) = self.places.remove(&place) else {
            return;
        };
        let mut orphans = Used::default();
        for below in self.places.values_mut() {
            if below.parent == Some(place) {
                below.parent = Some(above);
                orphans = orphans.plus(below.held());
            }
        }
        self.change(above, |above| {
            above.reserved = above.reserved.minus(ledger.held()).plus(orphans);
            above.settled = above.settled.plus(ledger.used());
        });
    }

    /// The books of a place.
    pub(crate) fn ledger(&self, place: Place) -> Option<&Ledger> {
        self.places.get(&place)
    }

    /// How many places there are right below one.
    pub(crate) fn below(&self, place: Place) -> usize {
        let places = self.places.values();
        places.filter(|ledger| ledger.parent == Some(place)).count()
    }

    fn change(&mut self, place: Place, change: impl FnOnce(&mut Ledger)) {
        let Some(ledger) = self.places.get_mut(&place) else {
            return;
        };
        let before = ledger.held();
        change(ledger);
        let (after, parent) = (ledger.held(), ledger.parent);
        self.held_differently(parent, before, after);
    }

    /// What a place holds for one below it has changed, and so may what is held for itself.
    fn held_differently(&mut self, place: Option<Place>, mut before: Used, mut after: Used) {
        let mut next = place;
        while let Some(place) = next
            && before != after
            && let Some(ledger) = self.places.get_mut(&place)
        {
            let held = ledger.held();
            ledger.reserved = ledger.reserved.minus(before).plus(after);
            (before, after) = (held, ledger.held());
            next = ledger.parent;
        }
    }
}

#[cfg(test)]
mod tests;
