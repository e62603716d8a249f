//! [`Transcript`]: the view with its running weight. Not the log: what a plan takes out of it is
//! still in the log and in the archive.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::counter::TokenCounter;
use crate::exchange::Exchange;
use crate::gap::Gap;
use crate::item::{Form, Item, Pin, Pinned, Seq};
use crate::means::Recall;
use crate::message::Message;
use crate::message_list::MessageList;
use crate::plan::{Edit, Plan, PlanError, Rendition, SeqRange};
use crate::rendition::is_form_of;
use crate::tokens::Tokens;

/// What the model will see, weighed item by item as it was pushed.
#[derive(Debug, Clone)]
pub struct Transcript {
    items: Vec<Item>,
    /// The messages of the items.
    messages: MessageList,
    total: Tokens,
    next: Seq,
    sent: Seq,
    /// The weight of the system messages. No plan removes one.
    instructions: Tokens,
    /// How many items are pinned. No plan takes one out.
    pinned: usize,
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
            messages: MessageList::default(),
            total: Tokens::ZERO,
            instructions: Tokens::ZERO,
            next: Seq(0),
            sent: Seq(0),
            pinned: 0,
            counter,
        }
    }

    /// Adds a message at the end and weighs it. O(1) besides counting the message once.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) -> Seq {
        let message = message.into();
        let seq = self.next;
        let tokens = self.counter.message(&message);
        if message.is_system() {
            self.instructions += tokens;
        }
        self.messages.push(Arc::clone(&message));
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

    /// Pins an item: it stays in the view, whole. False if it is not in the view.
    pub fn pin(&mut self, seq: Seq) -> bool {
        let pin = self
            .get(seq)
            .and_then(|item| Pin::on(&item.message, Pinned::Whole));
        pin.is_some_and(|pin| self.set_pin(seq, pin))
    }

    /// Pins what a pin says of an item; a pin on the whole of it is not weakened. False if it is
    /// not in the view, or no longer says what the pin proves.
    pub fn set_pin(&mut self, seq: Seq, pin: Pin) -> bool {
        let found = self.position(seq).and_then(|at| self.items.get_mut(at));
        let Some(item) = found.filter(|item| pin.holds(&item.message)) else {
            return false;
        };
        let is_whole = item
            .pin
            .as_ref()
            .is_some_and(|pin| pin.what == Pinned::Whole);
        if !is_whole && item.pin.replace(pin).is_none() {
            self.pinned += 1;
        }
        true
    }

    /// Takes the pin off an item. False if it has none.
    pub fn unpin(&mut self, seq: Seq) -> bool {
        let found = self.position(seq).and_then(|at| self.items.get_mut(at));
        let had = found.is_some_and(|item| item.pin.take().is_some());
        self.pinned -= usize::from(had);
        had
    }

    /// The items that a plan touches, as they stand, and whether each leaves; in view order.
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

    /// The first pinned item that does not say what was pinned, which would be a fault of ours:
    /// asked before every request. O(1) where nothing is pinned, else one look at the items up to
    /// the last that is.
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

    /// The weight of the whole view. O(1).
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.total
    }

    /// Returns the weight of the system messages in the view, which no plan removes. O(1).
    #[must_use]
    pub fn instructions(&self) -> Tokens {
        self.instructions
    }

    /// The view itself, borrowed.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the messages of the view. A copy shares what later changes leave as it is.
    #[must_use]
    pub fn messages(&self) -> &MessageList {
        &self.messages
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
                said: plan.frees,
                is: freed,
            });
        }
        if freed == Tokens::ZERO {
            return Err(PlanError::FreesNothing);
        }
        Ok(self.make(changes, plan.recall))
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
        Ok(self.make(changes, plan.recall))
    }

    /// Puts the view back to items that it had before. Their numbers are not given again.
    pub fn rewind(&mut self, items: Vec<Item>) {
        self.total = items.iter().map(|item| item.tokens).sum();
        let system = items.iter().filter(|item| item.message.is_system());
        self.instructions = system.map(|item| item.tokens).sum();
        self.pinned = items.iter().filter(|item| item.pin.is_some()).count();
        self.items = items;
        self.take_messages(0);
    }

    /// Takes the messages anew from the first changed position on.
    fn take_messages(&mut self, first: usize) {
        self.messages.truncate(first);
        let changed = self.items.get(first..).unwrap_or_default().iter();
        let changed = changed.map(|item| Arc::clone(&item.message));
        self.messages.extend(changed);
    }

    fn position(&self, seq: Seq) -> Option<usize> {
        self.items.binary_search_by_key(&seq, |item| item.seq).ok()
    }

    fn make(&mut self, changes: Changes, recall: Recall) -> Released {
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
            self.total = self.total.minus(item.tokens);
            if item.message.is_system() {
                self.instructions = self.instructions.minus(item.tokens);
            }
            let (Change::Form(to) | Change::Replaced(to)) = change else {
                return false;
            };
            self.total += to.tokens;
            if to.message.is_system() {
                self.instructions += to.tokens;
            }
            item.message = to.message;
            item.tokens = to.tokens;
            if item.form == Form::Original {
                item.form = Form::Edited(recall);
            }
            true
        });
        if let Some(first) = first {
            self.take_messages(first);
        }
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
                    if !now.is_some_and(|now| is_form_of(&to.message, now)) {
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
                    if let Some(marker) = marker {
                        if Gap::of(&marker.message).is_none() {
                            return Err(PlanError::NotItsForm(*first));
                        }
                        changes.insert(start, Change::Replaced(weighed(marker)));
                    }
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

    /// Refuses changes after which a pinned item would not say what was pinned.
    fn keeps_pins(&self, changes: &Changes) -> Result<(), PlanError> {
        for (at, change) in changes {
            let Some((item, pin)) = self
                .items
                .get(*at)
                .and_then(|item| Some((item, item.pin.as_ref()?)))
            else {
                continue;
            };
            if !matches!(change, Change::Form(to) if pin.holds(&to.message)) {
                return Err(PlanError::Pinned(item.seq));
            }
        }
        Ok(())
    }

    /// Refuses changes that would drop some of an exchange and leave the rest.
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

/// What becomes of one position.
enum Change {
    Dropped,
    /// A lighter form of it.
    Form(Rendition),
    /// A summary or a marker that takes the place of this item and others.
    Replaced(Rendition),
}

impl Change {
    /// The weight that stays.
    fn left(&self) -> Tokens {
        match self {
            Self::Dropped => Tokens::ZERO,
            Self::Form(to) | Self::Replaced(to) => to.tokens,
        }
    }
}
