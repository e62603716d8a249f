//! [`Tree`]: the arithmetic of shared limits.
//!
//! For each node and each kind that is limited there: used + promised + reserved + left = limit.
//! The tree has no clock and no lock.

use std::collections::BTreeMap;
use std::fmt;

/// The maximum number of nodes in a tree. Beyond it, nothing can be reserved.
pub(crate) const MAX_NODES: usize = 1_024;

/// An agent's part is enlarged by 1/`SLACK` as a safety margin.
///
/// A call turns out to be the last one only after it has been answered, so an agent may exceed its
/// part by the size of one request.
pub(crate) const SLACK: u64 = 4;

/// One value for each limited kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts<T> {
    /// Tokens, input and output.
    pub tokens: T,
    /// Money, in billionths of a dollar.
    pub money: T,
    /// Model calls.
    pub turns: T,
    /// Tool calls.
    pub tool_calls: T,
}

/// Used amounts.
pub(crate) type UsedAmounts = Amounts<u64>;
/// Allowed amounts; `None` means no limit.
pub(crate) type Limit = Amounts<Option<u64>>;

/// A limited kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowanceKind {
    /// Tokens.
    Tokens,
    /// Money.
    Money,
    /// Model calls.
    Turns,
    /// Tool calls.
    ToolCalls,
}

impl fmt::Display for AllowanceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens => "tokens",
            Self::Money => "dollars",
            Self::Turns => "turns",
            Self::ToolCalls => "tool calls",
        })
    }
}

/// The key of a node in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u64);

/// Why nothing was reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReserveError {
    /// Nothing is left of this kind.
    UsedUp(AllowanceKind),
    /// The tree already has [`MAX_NODES`] nodes.
    TooMany,
    /// The node is already settled.
    Settled,
}

/// A tree of shared limits.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: BTreeMap<NodeId, Ledger>,
    next: u64,
}

/// The accounts of one node.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ledger {
    parent: Option<NodeId>,
    pub(crate) limit: Limit,
    /// The safety margin that the parent sets aside in addition to the limit.
    slack: UsedAmounts,
    /// Used by this node itself.
    pub(crate) own: UsedAmounts,
    /// Promised to this node itself, so it cannot be reserved.
    pub(crate) promised: UsedAmounts,
    /// Used by child nodes that are settled.
    pub(crate) settled: UsedAmounts,
    /// Set aside for open child nodes: their limit or, if larger, their usage.
    pub(crate) reserved: UsedAmounts,
}

impl<T: Copy> Amounts<T> {
    /// Applies `f` to each value.
    pub fn map<R>(self, f: impl Fn(T) -> R) -> Amounts<R> {
        Amounts {
            tokens: f(self.tokens),
            money: f(self.money),
            turns: f(self.turns),
            tool_calls: f(self.tool_calls),
        }
    }

    /// Combines the values of both, kind by kind.
    pub fn with<U: Copy, R>(self, other: Amounts<U>, f: impl Fn(T, U) -> R) -> Amounts<R> {
        Amounts {
            tokens: f(self.tokens, other.tokens),
            money: f(self.money, other.money),
            turns: f(self.turns, other.turns),
            tool_calls: f(self.tool_calls, other.tool_calls),
        }
    }
}

impl UsedAmounts {
    pub(crate) fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

impl Limit {
    /// Returns the smaller limit of each kind.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        self.with(other, |one, other| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        })
    }

    /// Returns a kind that has nothing left and is needed to begin. An agent without tool calls can
    /// still answer, so these do not count.
    fn lacks(&self) -> Option<AllowanceKind> {
        [
            (self.tokens, AllowanceKind::Tokens),
            (self.money, AllowanceKind::Money),
            (self.turns, AllowanceKind::Turns),
        ]
        .into_iter()
        .find_map(|(amount, kind)| (amount == Some(0)).then_some(kind))
    }
}

impl Ledger {
    /// Returns the total usage of this node and its settled children.
    pub(crate) fn used(&self) -> UsedAmounts {
        self.own.plus(self.settled)
    }

    /// Returns the amounts that are used, promised or reserved.
    fn taken(&self) -> UsedAmounts {
        self.used().plus(self.promised).plus(self.reserved)
    }

    /// Returns the amounts that can still be reserved.
    pub(crate) fn left(&self) -> Limit {
        self.limit.with(self.taken(), |limit, taken| {
            Some(limit?.saturating_sub(taken))
        })
    }

    /// Returns the amounts that the parent sets aside for this node.
    fn held(&self) -> UsedAmounts {
        self.limit
            .map(|limit| limit.unwrap_or(0))
            .plus(self.slack)
            .with(self.taken(), u64::max)
    }
}

impl Tree {
    /// Creates a tree with a single node.
    pub(crate) fn new(limit: Limit) -> (Self, NodeId) {
        let root = NodeId(0);
        let ledger = Ledger {
            limit,
            ..Ledger::default()
        };
        let tree = Self {
            nodes: BTreeMap::from([(root, ledger)]),
            next: 1,
        };
        (tree, root)
    }

    /// Reserves `min(wanted, left)` for a new child node. For a kind without a wanted amount,
    /// reserves one of `shares` equal parts of the remaining amount.
    pub(crate) fn reserve(
        &mut self,
        above: NodeId,
        wanted: Limit,
        shares: u64,
    ) -> Result<NodeId, ReserveError> {
        if self.nodes.len() >= MAX_NODES {
            return Err(ReserveError::TooMany);
        }
        let ledger = self.nodes.get(&above).ok_or(ReserveError::Settled)?;
        let limit = ledger.left().with(wanted, |left, wanted| match left {
            Some(left) => Some(wanted.unwrap_or(left.div_ceil(shares.max(1))).min(left)),
            None => wanted,
        });
        if let Some(kind) = limit.lacks() {
            return Err(ReserveError::UsedUp(kind));
        }
        let node = NodeId(self.next);
        self.next += 1;
        let ledger = Ledger {
            parent: Some(above),
            limit,
            ..Ledger::default()
        };
        self.nodes.insert(node, ledger);
        self.held_differently(Some(above), UsedAmounts::default(), ledger.held());
        Ok(node)
    }

    /// Like [`Self::reserve`], but also sets aside a safety margin of tokens and money.
    ///
    /// If the remaining amount is too small for both, the part is reduced.
    pub(crate) fn reserve_with_slack(
        &mut self,
        above: NodeId,
        wanted: Limit,
        shares: u64,
    ) -> Result<NodeId, ReserveError> {
        let with_slack = |wanted: u64| wanted.saturating_add(wanted / SLACK);
        let both = Limit {
            tokens: wanted.tokens.map(with_slack),
            money: wanted.money.map(with_slack),
            ..wanted
        };
        let node = self.reserve(above, both, shares)?;
        self.change(node, |ledger| {
            let slack = |limit: Option<u64>| limit.unwrap_or(0) / (SLACK + 1);
            ledger.slack = UsedAmounts {
                tokens: slack(ledger.limit.tokens),
                money: slack(ledger.limit.money),
                ..UsedAmounts::default()
            };
            ledger.limit = ledger.limit.with(ledger.slack, |limit, slack| {
                Some(limit?.saturating_sub(slack))
            });
        });
        Ok(node)
    }

    /// Records additional usage of a node.
    pub(crate) fn spend(&mut self, node: NodeId, more: UsedAmounts) {
        self.change(node, |ledger| ledger.own = ledger.own.plus(more));
    }

    /// Records additional usage of a node and replaces its promised amounts.
    pub(crate) fn meter(&mut self, node: NodeId, more: UsedAmounts, promised: UsedAmounts) {
        self.change(node, |ledger| {
            ledger.own = ledger.own.plus(more);
            ledger.promised = promised;
        });
    }

    /// Settles a node: adds its usage to its parent and releases the rest.
    ///
    /// The parent takes over the open reservations of the node. The root cannot be settled.
    pub(crate) fn settle(&mut self, node: NodeId) {
        let Some(above) = self.nodes.get(&node).and_then(|ledger| ledger.parent) else {
            return;
        };
        let Some(ledger) = self.nodes.remove(&node) else {
            return;
        };
        let mut orphans = UsedAmounts::default();
        for below in self.nodes.values_mut() {
            if below.parent == Some(node) {
                below.parent = Some(above);
                orphans = orphans.plus(below.held());
            }
        }
        self.change(above, |above| {
            above.reserved = above.reserved.minus(ledger.held()).plus(orphans);
            above.settled = above.settled.plus(ledger.used());
        });
    }

    /// Returns the accounts of a node.
    pub(crate) fn ledger(&self, node: NodeId) -> Option<&Ledger> {
        self.nodes.get(&node)
    }

    /// Returns the number of direct children of a node.
    pub(crate) fn below(&self, node: NodeId) -> usize {
        let nodes = self.nodes.values();
        nodes.filter(|ledger| ledger.parent == Some(node)).count()
    }

    fn change(&mut self, node: NodeId, change: impl FnOnce(&mut Ledger)) {
        let Some(ledger) = self.nodes.get_mut(&node) else {
            return;
        };
        let before = ledger.held();
        change(ledger);
        let (after, parent) = (ledger.held(), ledger.parent);
        self.held_differently(parent, before, after);
    }

    /// Updates the ancestors after the amounts held for a node have changed.
    fn held_differently(
        &mut self,
        node: Option<NodeId>,
        mut before: UsedAmounts,
        mut after: UsedAmounts,
    ) {
        let mut next = node;
        while let Some(node) = next
            && before != after
            && let Some(ledger) = self.nodes.get_mut(&node)
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
