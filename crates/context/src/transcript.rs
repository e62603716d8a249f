//! [`Transcript`]: the view with its running weight. Not the log: what a plan takes out of it is
//! still in the log and in the archive.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::counter::TokenCounter;
use crate::exchange::Exchange;
use crate::item::{Item, Seq};
use crate::message::Message;
use crate::plan::{Edit, Plan, PlanError};
use crate::tokens::Tokens;

/// What the model will see, weighed item by item as it was pushed.
#[derive(Debug, Clone)]
pub struct Transcript {
    items: Vec<Item>,
    total: Tokens,
    next: Seq,
    sent: Seq,
    counter: Arc<dyn TokenCounter>,
}

/// What applying a plan took out of the view.
#[derive(Debug, Clone)]
pub struct Released {
    /// The items as they stood before, in view order.
    pub items: Vec<Item>,
    /// By how much the view became lighter.
    pub freed: Tokens,
}

impl Transcript {
    /// An empty view whose items are weighed by `counter`.
    #[must_use]
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            items: Vec::new(),
            total: Tokens::ZERO,
            next: Seq(0),
            sent: Seq(0),
            counter,
        }
    }

    /// Adds a message at the end and weighs it. O(1) besides counting the message once.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) -> Seq {
        let message = message.into();
        let seq = self.next;
        let tokens = self.counter.message(&message);
        self.items.push(Item {
            seq,
            message,
            tokens,
            pinned: false,
        });
        self.total += tokens;
        self.next = seq.next();
        seq
    }

    /// Pins an item: it stays in the view, whole. False if it is not in the view.
    pub fn pin(&mut self, seq: Seq) -> bool {
        let found = self.position(seq).and_then(|at| self.items.get_mut(at));
        found.map(|item| item.pinned = true).is_some()
    }

    /// The weight of the whole view. O(1).
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.total
    }

    /// The view itself, borrowed.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The item with this number, if it is in the view.
    #[must_use]
    pub fn get(&self, seq: Seq) -> Option<&Item> {
        self.position(seq).and_then(|at| self.items.get(at))
    }

    /// The counter that weighs the items.
    #[must_use]
    pub fn counter(&self) -> &Arc<dyn TokenCounter> {
        &self.counter
    }

    /// The number that the next message will get.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next
    }

    /// Notes that everything in the view has been sent to the model. What has not been sent is
    /// never dropped, and editing it costs no cache.
    pub fn mark_sent(&mut self) {
        self.sent = self.next;
    }

    /// The first number that no request has carried yet.
    #[must_use]
    pub fn sent(&self) -> Seq {
        self.sent
    }

    /// The items that no request has carried yet.
    #[must_use]
    pub fn unsent(&self) -> &[Item] {
        let from = self.items.partition_point(|item| item.seq < self.sent);
        self.items.get(from..).unwrap_or_default()
    }

    /// Applies a plan: all of it or, where it does not match this view, nothing.
    ///
    /// # Errors
    /// When an edit names an item that is not in the view, would part an exchange or would not
    /// make its item lighter, or when the plan frees something else than it says.
    pub fn apply(&mut self, plan: &Plan) -> Result<Released, PlanError> {
        let changes = self.changes(plan)?;
        let mut released = Vec::new();
        let mut freed = Tokens::ZERO;
        for (at, edit) in &changes {
            let Some(item) = self.items.get(*at) else {
                continue;
            };
            freed += item
                .tokens
                .minus(edit.as_ref().map_or(Tokens::ZERO, |(_, tokens)| *tokens));
        }
        if freed != plan.frees {
            return Err(PlanError::WrongGain {
                said: plan.frees,
                is: freed,
            });
        }
        let mut at = 0;
        self.items.retain_mut(|item| {
            let change = changes.get(&at);
            at += 1;
            let Some(change) = change else { return true };
            released.push(item.clone());
            let Some((message, tokens)) = change else {
                return false;
            };
            item.message = Arc::clone(message);
            item.tokens = *tokens;
            true
        });
        self.total = self.total.minus(freed);
        Ok(Released {
            items: released,
            freed,
        })
    }

    fn position(&self, seq: Seq) -> Option<usize> {
        self.items.binary_search_by_key(&seq, |item| item.seq).ok()
    }

    /// What becomes of which position: a lighter message, or nothing.
    fn changes(&self, plan: &Plan) -> Result<Changes, PlanError> {
        let mut changes = Changes::new();
        for edit in &plan.edits {
            match edit {
                Edit::Shrink { seq, to } => {
                    let at = self.position(*seq).ok_or(PlanError::NotInView(*seq))?;
                    if self
                        .items
                        .get(at)
                        .is_none_or(|item| item.tokens <= to.tokens)
                    {
                        return Err(PlanError::NotLighter(*seq));
                    }
                    changes.insert(at, Some((Arc::clone(&to.message), to.tokens)));
                }
                Edit::Drop { first, last } => {
                    let from = self.position(*first).ok_or(PlanError::NotInView(*first))?;
                    let to = self.position(*last).ok_or(PlanError::NotInView(*last))?;
                    changes.extend((from..=to).map(|at| (at, None)));
                }
            }
        }
        for exchange in Exchange::of(&self.items) {
            let dropped = exchange
                .at
                .clone()
                .filter(|at| matches!(changes.get(at), Some(None)));
            let count = dropped.count();
            if count != 0 && count != exchange.at.len() {
                let seq = self
                    .items
                    .get(exchange.at.start)
                    .map_or(Seq(0), |item| item.seq);
                return Err(PlanError::PartsExchange(seq));
            }
        }
        Ok(changes)
    }
}

type Changes = BTreeMap<usize, Option<(Arc<Message>, Tokens)>>;
