//! [`Transcript`]: the view with its running size. Messages that a plan removes are still in the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::counter::TokenCounter;
use crate::exchange::Exchange;
use crate::item::{Form, Item, Pin, Seq};
use crate::message::{Message, MessageList};
use crate::plan::{Edit, Plan, PlanError, Recall, Rendition, SeqRange};
use crate::removal_marker::Gap;
use crate::tokens::Tokens;

/// The messages that the model will see, each counted when it was added.
#[derive(Debug, Clone)]
pub struct Transcript {
    items: Vec<Item>,
    /// The messages of the items.
    messages: MessageList,
    total: Tokens,
    next: Seq,
    sent: Seq,
    /// The size of the system messages. No plan removes them.
    instructions: Tokens,
    /// The number of pinned items. No plan removes them.
    pinned: usize,
    counter: Arc<dyn TokenCounter>,
}

/// The messages that a plan removed from the view.
#[derive(Debug, Clone)]
pub struct RemovedMessages {
    /// The items before the plan, in view order.
    pub items: Vec<Item>,
    /// The number of freed tokens.
    pub freed: Tokens,
}

impl Transcript {
    /// Creates an empty view whose messages are counted by `counter`.
    #[must_use]
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            items: Vec::new(),
            messages: MessageList::default(),
            total: Tokens::ZERO,
            instructions: Tokens::ZERO,
            next: Seq(0),
            sent: Seq(0),
            pinned: 0,
            counter,
        }
    }

    /// Appends a message and counts it. O(1) besides counting the message once.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) -> Seq {
        let message = message.into();
        let seq = self.next;
        let tokens = self.counter.message(&message);
        if message.is_system() {
            self.instructions += tokens;
        }
        Arc::make_mut(&mut self.messages).push(Arc::clone(&message));
        self.items.push(Item {
            seq,
            message,
            tokens,
            pin: None,
            form: Form::Original,
        });
        self.total += tokens;
        self.next = seq.next();
        seq
    }

    /// Pins an item, so that it stays in the view. Returns `false` if it is not in the view.
    pub fn pin(&mut self, seq: Seq) -> bool {
        let pin = self.get(seq).map(|item| Pin::on(&item.message));
        pin.is_some_and(|pin| self.set_pin(seq, pin))
    }

    /// Applies a pin to an item. Returns `false` if the item is not in the view, or is no longer the
    /// pinned message.
    pub fn set_pin(&mut self, seq: Seq, pin: Pin) -> bool {
        let found = self.position(seq).and_then(|at| self.items.get_mut(at));
        let Some(item) = found.filter(|item| pin.holds(&item.message)) else {
            return false;
        };
        if item.pin.replace(pin).is_none() {
            self.pinned += 1;
        }
        true
    }

    /// Removes the pin from an item. Returns `false` if it has none.
    pub fn unpin(&mut self, seq: Seq) -> bool {
        let found = self.position(seq).and_then(|at| self.items.get_mut(at));
        let was_pinned = found.is_some_and(|item| item.pin.take().is_some());
        self.pinned -= usize::from(was_pinned);
        was_pinned
    }

    /// Returns the items that a plan changes, as they are now, and whether each of them is removed;
    /// in view order.
    #[must_use]
    pub fn touched(&self, plan: &Plan) -> Vec<(&Item, bool)> {
        let mut touched = Vec::new();
        let mut range = |first: Seq, last: Seq, leaves: bool| {
            if let (Some(first), Some(last)) = (self.position(first), self.position(last)) {
                let items = self.items.get(first..=last).unwrap_or_default();
                touched.extend(items.iter().map(|item| (item, leaves)));
            }
        };
        for edit in &plan.edits {
            match edit {
                Edit::Shrink { seq, .. } => range(*seq, *seq, false),
                Edit::Drop { first, last, .. } => range(*first, *last, true),
                Edit::Summarize { covers, .. } => {
                    for of in covers {
                        range(of.first, of.last, true);
                    }
                }
            }
        }
        touched.sort_by_key(|(item, _)| item.seq);
        touched
    }

    /// Returns the first pinned item that is not the pinned message, which would be a bug in Plimsoll.
    ///
    /// Checked before every request. O(1) if nothing is pinned, else one pass over the items up to
    /// the last pin.
    #[must_use]
    pub fn broken_pin(&self) -> Option<Seq> {
        let pinned = self
            .items
            .iter()
            .filter_map(|item| Some((item, item.pin.as_ref()?)));
        let mut broken = pinned
            .take(self.pinned)
            .filter(|(item, pin)| !pin.holds(&item.message));
        broken.next().map(|(item, _)| item.seq)
    }

    /// Returns the size of the whole view. O(1).
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.total
    }

    /// Returns the size of the system messages in the view, which no plan removes. O(1).
    #[must_use]
    pub fn instructions(&self) -> Tokens {
        self.instructions
    }

    /// Returns the items of the view.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the messages of the view. A copy shares the blocks that later changes do not touch.
    #[must_use]
    pub fn messages(&self) -> &MessageList {
        &self.messages
    }

    /// Returns the item with this number, if it is in the view.
    #[must_use]
    pub fn get(&self, seq: Seq) -> Option<&Item> {
        self.position(seq).and_then(|at| self.items.get(at))
    }

    /// Returns the counter of the view.
    #[must_use]
    pub fn counter(&self) -> &Arc<dyn TokenCounter> {
        &self.counter
    }

    /// Returns the number of the next message.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next
    }

    /// Records that the whole view has been sent to the model. Unsent messages are never dropped,
    /// and editing them costs no cache.
    pub fn mark_sent(&mut self) {
        self.sent = self.next;
    }

    /// Returns the first number that was not sent yet.
    #[must_use]
    pub fn sent(&self) -> Seq {
        self.sent
    }

    /// Returns the items that were not sent yet.
    #[must_use]
    pub fn unsent(&self) -> &[Item] {
        let from = self.items.partition_point(|item| item.seq < self.sent);
        self.items.get(from..).unwrap_or_default()
    }

    /// Applies a plan. If the plan does not match this view, nothing is changed.
    ///
    /// # Errors
    /// If the plan was made for another view: it names an item that is not here, would split an
    /// exchange, replace an item by something else, or not free exactly the stated number of
    /// tokens.
    pub fn apply(&mut self, plan: &Plan) -> Result<RemovedMessages, PlanError> {
        if plan.before != self.total {
            return Err(PlanError::OtherView {
                stated: plan.before,
                actual: self.total,
            });
        }
        let changes = self.changes(plan, |to| to.tokens)?;
        let (mut now, mut then) = (Tokens::ZERO, Tokens::ZERO);
        for (at, change) in &changes {
            let Some(item) = self.items.get(*at) else {
                continue;
            };
            if let Change::Form(to) = change
                && to.tokens >= item.tokens
            {
                return Err(PlanError::NotLighter(item.seq));
            }
            now += item.tokens;
            then += change.left();
        }
        let freed = now.minus(then);
        if freed != plan.frees {
            return Err(PlanError::WrongGain {
                stated: plan.frees,
                actual: freed,
            });
        }
        if freed == Tokens::ZERO {
            return Err(PlanError::FreesNothing);
        }
        Ok(self.make(changes, plan.recall))
    }

    /// Applies a plan from a log. The edits are taken from the plan, but their sizes are counted
    /// again.
    ///
    /// The log may have been counted by another counter, or by an earlier version of this one. Its
    /// replay must give the same messages nevertheless.
    ///
    /// # Errors
    /// If the plan names an item that is not in the view, would split an exchange or replace an
    /// item by something else.
    pub fn replay(&mut self, plan: &Plan) -> Result<RemovedMessages, PlanError> {
        let counter = Arc::clone(&self.counter);
        let changes = self.changes(plan, |to| counter.message(&to.message))?;
        Ok(self.make(changes, plan.recall))
    }

    /// Restores the view to earlier items. The numbers of later items are not reused.
    pub fn rewind(&mut self, items: Vec<Item>) {
        self.items = items;
        self.pinned = self.items.iter().filter(|item| item.pin.is_some()).count();
        self.recount(0);
    }

    /// Updates the sums, and the messages from the first changed position on.
    fn recount(&mut self, first: usize) {
        let system = self.items.iter().filter(|item| item.message.is_system());
        self.instructions = system.map(|item| item.tokens).sum();
        self.total = self.items.iter().map(|item| item.tokens).sum();
        let changed = self.items.get(first..).unwrap_or_default().iter();
        let messages = Arc::make_mut(&mut self.messages);
        messages.truncate(first);
        messages.extend(changed.map(|item| Arc::clone(&item.message)));
    }

    fn position(&self, seq: Seq) -> Option<usize> {
        self.items.binary_search_by_key(&seq, |item| item.seq).ok()
    }

    fn make(&mut self, changes: Changes, recall: Recall) -> RemovedMessages {
        let before = self.total;
        let first = changes.keys().next().copied();
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
            let (Change::Form(to) | Change::Replaced(to)) = change else {
                return false;
            };
            item.message = to.message;
            item.tokens = to.tokens;
            if item.form == Form::Original {
                item.form = Form::Edited(recall);
            }
            true
        });
        if let Some(first) = first {
            self.recount(first);
        }
        RemovedMessages {
            items,
            freed: before.minus(self.total),
        }
    }

    /// Returns the change of each edited position.
    fn changes(
        &self,
        plan: &Plan,
        weigh: impl Fn(&Rendition) -> Tokens,
    ) -> Result<Changes, PlanError> {
        let find = |seq: Seq| self.position(seq).ok_or(PlanError::NotInView(seq));
        let weighed = |to: &Rendition| Rendition {
            message: Arc::clone(&to.message),
            tokens: weigh(to),
        };
        let mut changes = Changes::new();
        for edit in &plan.edits {
            match edit {
                Edit::Shrink { seq, to } => {
                    let at = find(*seq)?;
                    let now = self.items.get(at).map(|item| item.message.as_ref());
                    if !now.is_some_and(|now| to.message.is_form_of(now)) {
                        return Err(PlanError::NotItsForm(*seq));
                    }
                    changes.insert(at, Change::Form(weighed(to)));
                }
                Edit::Drop {
                    first,
                    last,
                    marker,
                } => {
                    let start = find(*first)?;
                    let range = start..=find(*last)?;
                    changes.extend(range.map(|at| (at, Change::Dropped)));
                    if Gap::of(&marker.message).is_none() {
                        return Err(PlanError::NotItsForm(*first));
                    }
                    changes.insert(start, Change::Replaced(weighed(marker)));
                }
                Edit::Summarize { covers, to } => {
                    let Some(first) = covers.first().map(|range| range.first) else {
                        return Err(PlanError::FreesNothing);
                    };
                    if !matches!(*to.message, Message::Summary { .. }) {
                        return Err(PlanError::NotItsForm(first));
                    }
                    for SeqRange { first, last } in covers {
                        let range = find(*first)?..=find(*last)?;
                        changes.extend(range.map(|at| (at, Change::Dropped)));
                    }
                    changes.insert(find(first)?, Change::Replaced(weighed(to)));
                }
            }
        }
        self.keeps_pins(&changes)?;
        self.parts_none(&changes)?;
        Ok(changes)
    }

    /// Rejects changes of pinned items.
    fn keeps_pins(&self, changes: &Changes) -> Result<(), PlanError> {
        let mut items = changes.keys().filter_map(|at| self.items.get(*at));
        let pinned = items.find(|item| item.pin.is_some());
        pinned.map_or(Ok(()), |item| Err(PlanError::Pinned(item.seq)))
    }

    /// Rejects changes that would remove only a part of an exchange.
    fn parts_none(&self, changes: &Changes) -> Result<(), PlanError> {
        let dropped = changes
            .iter()
            .filter(|(_, change)| !matches!(change, Change::Form(_)));
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

type Changes = BTreeMap<usize, Change>;

/// The change of one position.
enum Change {
    Dropped,
    /// A smaller form of the item.
    Form(Rendition),
    /// A summary or a marker that replaces this item and others.
    Replaced(Rendition),
}

impl Change {
    /// Returns the remaining size.
    fn left(&self) -> Tokens {
        match self {
            Self::Dropped => Tokens::ZERO,
            Self::Form(to) | Self::Replaced(to) => to.tokens,
        }
    }
}
