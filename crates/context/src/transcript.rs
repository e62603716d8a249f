//! [`Transcript`]: the view with its running weight. Not the log: what a plan takes out of it is
//! still in the log and in the archive.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::counter::TokenCounter;
use crate::exchange::Exchange;
use crate::item::{Item, Seq};
use crate::message::Message;
use crate::plan::{Edit, Plan, PlanError, Rendition};
use crate::rendition::is_form_of;
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
    /// When the plan was made for another view: it names an item that is not here, would part an
    /// exchange, put something else in an item's place, or not free exactly what it says.
    pub fn apply(&mut self, plan: &Plan) -> Result<Released, PlanError> {
        if plan.before != self.total {
            return Err(PlanError::OtherView {
                said: plan.before,
                is: self.total,
            });
        }
        let changes = self.changes(plan, |to| to.tokens)?;
        let mut freed = Tokens::ZERO;
        for (at, change) in &changes {
            let Some(item) = self.items.get(*at) else {
                continue;
            };
            let left = change.as_ref().map_or(Tokens::ZERO, |to| to.tokens);
            if left >= item.tokens {
                return Err(PlanError::NotLighter(item.seq));
            }
            freed += item.tokens.minus(left);
        }
        if freed != plan.frees {
            return Err(PlanError::WrongGain {
                said: plan.frees,
                is: freed,
            });
        }
        if freed == Tokens::ZERO {
            return Err(PlanError::FreesNothing);
        }
        Ok(self.make(changes))
    }

    /// Applies a plan from a log. What it does to the view is taken from it, what that weighs is
    /// counted again: the log may have been weighed by another counter, or by this one in an
    /// earlier version, and must fold to the same bytes all the same.
    ///
    /// # Errors
    /// When it names an item that is not in the view, would part an exchange or put something
    /// else in an item's place.
    pub fn replay(&mut self, plan: &Plan) -> Result<Released, PlanError> {
        let counter = Arc::clone(&self.counter);
        let changes = self.changes(plan, |to| counter.message(&to.message))?;
        Ok(self.make(changes))
    }

    fn position(&self, seq: Seq) -> Option<usize> {
        self.items.binary_search_by_key(&seq, |item| item.seq).ok()
    }

    fn make(&mut self, changes: Changes) -> Released {
        let before = self.total;
        let mut items = Vec::with_capacity(changes.len());
        let mut changes = changes.into_iter().peekable();
        let mut at = 0;
        self.items.retain_mut(|item| {
            let change = changes.next_if(|(changed, _)| *changed == at);
            at += 1;
            let Some((_, change)) = change else {
                return true;
            };
            items.push(item.clone());
            self.total = self.total.minus(item.tokens);
            let Some(to) = change else { return false };
            self.total += to.tokens;
            item.message = to.message;
            item.tokens = to.tokens;
            true
        });
        Released {
            items,
            freed: before.minus(self.total),
        }
    }

    /// What becomes of which position: a lighter form, or nothing.
    fn changes(
        &self,
        plan: &Plan,
        weigh: impl Fn(&Rendition) -> Tokens,
    ) -> Result<Changes, PlanError> {
        let find = |seq: Seq| self.position(seq).ok_or(PlanError::NotInView(seq));
        let mut changes = Changes::new();
        for edit in &plan.edits {
            match edit {
                Edit::Shrink { seq, to } => {
                    let at = find(*seq)?;
                    let now = self.items.get(at).map(|item| item.message.as_ref());
                    if !now.is_some_and(|now| is_form_of(&to.message, now)) {
                        return Err(PlanError::NotItsForm(*seq));
                    }
                    let to = Rendition {
                        message: Arc::clone(&to.message),
                        tokens: weigh(to),
                    };
                    changes.insert(at, Some(to));
                }
                Edit::Drop { first, last } => {
                    changes.extend((find(*first)?..=find(*last)?).map(|at| (at, None)));
                }
            }
        }
        self.parts_none(&changes)?;
        Ok(changes)
    }

    /// Refuses changes that would drop some of an exchange and leave the rest.
    fn parts_none(&self, changes: &Changes) -> Result<(), PlanError> {
        let dropped = changes.iter().filter(|(_, change)| change.is_none());
        let mut dropped = dropped.map(|(at, _)| *at).peekable();
        if dropped.peek().is_none() {
            return Ok(());
        }
        for exchange in Exchange::of(&self.items) {
            let mut count = 0;
            while dropped.next_if(|at| exchange.at.contains(at)).is_some() {
                count += 1;
            }
            if count != 0 && count != exchange.at.len() {
                let first = self.items.get(exchange.at.start);
                return Err(PlanError::PartsExchange(
                    first.map_or(Seq(0), |item| item.seq),
                ));
            }
        }
        Ok(())
    }
}

type Changes = BTreeMap<usize, Option<Rendition>>;
