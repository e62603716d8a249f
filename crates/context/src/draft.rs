//! [`Draft`]: a view with the edits that stages have proposed so far. It refuses what the
//! invariants forbid, so that no stage can part an exchange, drop one of the protected set or make
//! anything heavier. Not applied to anything; that is `Transcript::apply`.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::budget::Budget;
use crate::counter::TokenCounter;
use crate::exchange::{Exchange, ExchangeKind};
use crate::fingerprint::Fingerprint;
use crate::item::{Form, Item, Seq};
use crate::means::{Means, Recall, Span, When};
use crate::message::Message;
use crate::plan::{Edit, Plan, Rendition, SeqRange, Trigger};
use crate::rendition::is_form_of;
use crate::tokens::Tokens;
use crate::transcript::Transcript;
use crate::truncate::Marker;

/// A view and the edits proposed to it. Making one costs nothing; the exchanges are found when a
/// stage first asks for them.
#[derive(Debug)]
pub struct Draft<'a> {
    transcript: &'a Transcript,
    keep_recent: usize,
    means: Cow<'a, Means>,
    structure: OnceCell<Structure>,
    changes: BTreeMap<usize, Change>,
    tokens: Tokens,
    due: bool,
    stages: Vec<String>,
    wants: Option<Span>,
    summaries: Summaries,
}

/// Whether a draft may hold summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Summaries {
    Allowed,
    Refused,
}

#[derive(Debug)]
struct Structure {
    exchanges: Vec<Exchange>,
    protected: Vec<bool>,
}

#[derive(Debug)]
enum Change {
    Shrunk(Rendition),
    Dropped,
    /// Stands for all these positions, of which its own is the first.
    Summary {
        covers: Vec<usize>,
        to: Rendition,
    },
    /// Is covered by a summary that stands elsewhere.
    Covered,
}

impl<'a> Draft<'a> {
    /// A draft without edits; the newest `keep_recent` complete exchanges are protected.
    #[must_use]
    pub fn new(transcript: &'a Transcript, keep_recent: usize) -> Self {
        Self {
            transcript,
            keep_recent: keep_recent.max(1),
            means: Cow::Owned(Means::default()),
            structure: OnceCell::new(),
            changes: BTreeMap::new(),
            tokens: transcript.tokens(),
            due: false,
            stages: Vec::new(),
            wants: None,
            summaries: Summaries::Allowed,
        }
    }

    /// The same with what a stage may count on besides the view.
    #[must_use]
    pub fn with_means(mut self, means: &'a Means) -> Self {
        self.means = Cow::Borrowed(means);
        self
    }

    /// The same where a summary would be too much: every one is refused.
    pub(crate) fn without_summaries(mut self) -> Self {
        self.summaries = Summaries::Refused;
        self
    }

    /// Whether a stage has put a summary in.
    pub(crate) fn has_summary(&self) -> bool {
        let mut changes = self.changes.values();
        changes.any(|change| matches!(change, Change::Summary { .. }))
    }

    /// What a stage may count on besides the view.
    #[must_use]
    pub fn means(&self) -> &Means {
        &self.means
    }

    /// The marker for what is cut from an item: it says how to recall the original where that can
    /// be done.
    #[must_use]
    pub fn marker(&self, at: usize) -> Marker {
        match (self.means.recall, self.items().get(at)) {
            (Recall::Offered, Some(item)) if item.form != Form::Edited(Recall::None) => {
                Marker::with_note(&format!("recall {}", item.seq.recall_id()))
            }
            _ => Marker::default(),
        }
    }

    /// The weight of the view with the edits so far.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Whether the view is over its trigger, or was when an earlier stage asked: a rewrite that
    /// has begun goes on to the target, for one that ends just under the trigger is soon followed
    /// by the next, and each loses the provider's cache.
    pub fn is_due(&mut self, budget: &Budget) -> bool {
        self.due |= self.tokens > budget.trigger;
        self.due
    }

    /// What weighs the messages.
    #[must_use]
    pub fn counter(&self) -> &dyn TokenCounter {
        self.transcript.counter().as_ref()
    }

    /// The view as it stands, without the edits.
    #[must_use]
    pub fn items(&self) -> &'a [Item] {
        self.transcript.items()
    }

    /// The position of the first item that no request has carried yet.
    #[must_use]
    pub fn first_unsent(&self) -> usize {
        self.items().len() - self.transcript.unsent().len()
    }

    /// The exchanges of the view as it stands.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        &self.structure().exchanges
    }

    /// Whether an exchange must stay: leading system messages, pins, the first and the newest user
    /// message, the newest complete exchanges, pending calls, the last summary, whatever the model
    /// has not read yet, and the end of the view: what stands before it must not become the end.
    #[must_use]
    pub fn is_protected(&self, exchange: usize) -> bool {
        self.structure()
            .protected
            .get(exchange)
            .copied()
            .unwrap_or(true)
    }

    /// The message at a position with the edits so far, and its weight; `None` once dropped.
    #[must_use]
    pub fn current(&self, at: usize) -> Option<(&Message, Tokens)> {
        match self.changes.get(&at) {
            Some(Change::Dropped | Change::Covered) => None,
            Some(Change::Shrunk(to) | Change::Summary { to, .. }) => Some((&to.message, to.tokens)),
            None => self
                .items()
                .get(at)
                .map(|item| (item.message.as_ref(), item.tokens)),
        }
    }

    /// Puts a lighter form in a message's place and says what that frees: zero where it is
    /// refused, because it is not lighter, answers another call, has another role, or because the
    /// message is pinned or gone.
    pub fn shrink(&mut self, at: usize, to: Message) -> Tokens {
        let Some((now, weight)) = self.current(at) else {
            return Tokens::ZERO;
        };
        let breaks_pin = |item: &Item| item.pin.as_ref().is_some_and(|pin| !pin.holds(&to));
        if !is_form_of(&to, now) || self.items().get(at).is_none_or(breaks_pin) {
            return Tokens::ZERO;
        }
        let tokens = self.counter().message(&to);
        let freed = weight.minus(tokens);
        if freed > Tokens::ZERO {
            let to = Rendition {
                message: Arc::new(to),
                tokens,
            };
            let change = match self.changes.remove(&at) {
                Some(Change::Summary { covers, .. }) => Change::Summary { covers, to },
                _ => Change::Shrunk(to),
            };
            self.changes.insert(at, change);
            self.tokens = self.tokens.minus(freed);
        }
        freed
    }

    /// Whether an exchange may be covered by a summary: one that may be dropped, or a former
    /// summary that is not pinned.
    #[must_use]
    pub fn is_coverable(&self, exchange: usize) -> bool {
        let Some(found) = self.exchanges().get(exchange) else {
            return false;
        };
        let whole = !self.is_covered(found) && self.current(found.at.start).is_some();
        let is_former = || {
            found.kind == ExchangeKind::Summary
                && found.at.end <= self.first_unsent()
                && found.at.end < self.items().len()
                && !self.is_pinned(found)
        };
        whole && (!self.is_protected(exchange) || is_former())
    }

    /// What a summary of these exchanges is of.
    #[must_use]
    pub fn span(&self, exchanges: &[usize], max: Tokens, when: When) -> Span {
        let at = self.positions(exchanges);
        let items = || at.iter().filter_map(|at| self.items().get(*at));
        Span {
            seqs: items().map(|item| item.seq).collect(),
            fingerprint: Fingerprint::of(items().map(|item| item.message.as_ref())),
            tokens: items().map(|item| item.tokens).sum(),
            max,
            when,
        }
    }

    /// Asks for a model's summary of this; whoever plans decides whether one is written.
    pub fn want(&mut self, span: Span) {
        if self.summaries == Summaries::Allowed {
            self.wants = Some(span);
        }
    }

    /// Puts one summary in the place of these exchanges and says what that frees: zero where it is
    /// refused, because one of them may not be covered, or because it would not be lighter.
    pub fn summarize(&mut self, exchanges: &[usize], text: impl Into<String>) -> Tokens {
        let to = Message::Summary { text: text.into() };
        let tokens = self.counter().message(&to);
        let covers = self.positions(exchanges);
        let weight: Tokens = covers
            .iter()
            .filter_map(|at| self.current(*at))
            .map(|(_, weight)| weight)
            .sum();
        let freed = weight.minus(tokens);
        let coverable = exchanges.iter().all(|index| self.is_coverable(*index));
        let (Some(first), true) = (covers.first().copied(), coverable) else {
            return Tokens::ZERO;
        };
        if freed == Tokens::ZERO || self.summaries == Summaries::Refused {
            return Tokens::ZERO;
        }
        self.tokens = self.tokens.minus(freed);
        for at in &covers {
            self.changes.insert(*at, Change::Covered);
        }
        let to = Rendition {
            message: Arc::new(to),
            tokens,
        };
        self.changes.insert(first, Change::Summary { covers, to });
        freed
    }

    /// Drops an exchange whole and says what that frees: zero where it is protected or gone.
    pub fn drop_exchange(&mut self, exchange: usize) -> Tokens {
        match self.exchanges().get(exchange) {
            Some(found) if !self.is_protected(exchange) && !self.is_covered(found) => {
                self.remove(found.at.clone())
            }
            _ => Tokens::ZERO,
        }
    }

    /// Gives up protected exchanges from before `before`, which stages may not: first those that no
    /// request has carried, left behind by a run that failed; if there are none, the complete ones
    /// that stayed for being the newest; if there are none of these either, the summary, made when
    /// there was more room. For a host whose next question does not fit beside them.
    /// Says what that frees.
    pub fn give_up(&mut self, before: Seq) -> Tokens {
        let unsent = self.first_unsent();
        let freed = self.drop_past(before, |exchange| {
            exchange.at.end > unsent && exchange.kind != ExchangeKind::System
        });
        if freed > Tokens::ZERO {
            return freed;
        }
        let freed = self.drop_past(before, |exchange| exchange.kind == ExchangeKind::Complete);
        if freed > Tokens::ZERO {
            return freed;
        }
        self.drop_past(before, |exchange| exchange.kind == ExchangeKind::Summary)
    }

    /// Notes that a stage had a part in the edits so far.
    pub fn credit(&mut self, stage: &str) {
        if !self.stages.iter().any(|credited| credited == stage) {
            self.stages.push(stage.to_owned());
        }
    }

    /// The edits so far as a plan; `None` where there are none.
    #[must_use]
    pub fn into_plan(self, why: Trigger) -> Option<Plan> {
        let items = self.items();
        let seq = |at: usize| items.get(at).map_or(Seq(0), |item| item.seq);
        let ranges = |covers: &[usize]| {
            let mut ranges: Vec<(usize, usize)> = Vec::new();
            for at in covers {
                match ranges.last_mut() {
                    Some((_, last)) if *last + 1 == *at => *last = *at,
                    _ => ranges.push((*at, *at)),
                }
            }
            let range = |(first, last)| SeqRange {
                first: seq(first),
                last: seq(last),
            };
            ranges.into_iter().map(range).collect()
        };
        let first = *self.changes.keys().next()?;
        let rewrites_from = (first < self.first_unsent()).then(|| seq(first));
        let before = self.transcript.tokens();
        let frees = before.minus(self.tokens);
        let mut edits: Vec<Edit> = Vec::new();
        let mut open: Option<(usize, usize)> = None;
        let close = |open: &mut Option<(usize, usize)>, edits: &mut Vec<Edit>| {
            if let Some((from, to)) = open.take() {
                edits.push(Edit::Drop {
                    first: seq(from),
                    last: seq(to),
                });
            }
        };
        for (at, change) in self.changes {
            match change {
                Change::Dropped => match &mut open {
                    Some((_, to)) if *to + 1 == at => *to = at,
                    _ => {
                        close(&mut open, &mut edits);
                        open = Some((at, at));
                    }
                },
                Change::Shrunk(to) => {
                    close(&mut open, &mut edits);
                    edits.push(Edit::Shrink { seq: seq(at), to });
                }
                Change::Summary { covers, to } => {
                    close(&mut open, &mut edits);
                    let covers = ranges(&covers);
                    edits.push(Edit::Summarize { covers, to });
                }
                // Named by its summary, which stands before it.
                Change::Covered => {}
            }
        }
        close(&mut open, &mut edits);
        Some(Plan {
            why,
            stages: self.stages,
            edits,
            before,
            frees,
            rewrites_from,
            recall: self.means.recall,
            price: None,
        })
    }

    /// What a stage asked for, if one did.
    pub(crate) fn take_wants(&mut self) -> Option<Span> {
        self.wants.take()
    }

    fn positions(&self, exchanges: &[usize]) -> Vec<usize> {
        let found = exchanges.iter().filter_map(|at| self.exchanges().get(*at));
        found.flat_map(|exchange| exchange.at.clone()).collect()
    }

    fn is_covered(&self, exchange: &Exchange) -> bool {
        exchange.at.clone().any(|at| {
            let change = self.changes.get(&at);
            matches!(change, Some(Change::Summary { .. } | Change::Covered))
        })
    }

    fn is_pinned(&self, exchange: &Exchange) -> bool {
        let items = self.items().get(exchange.at.clone()).unwrap_or_default();
        items.iter().any(|item| item.pin.is_some())
    }

    fn drop_past(&mut self, before: Seq, is_meant: impl Fn(&Exchange) -> bool) -> Tokens {
        let items = self.items();
        let past = |exchange: &Exchange| {
            let mut range = items.get(exchange.at.clone()).unwrap_or_default().iter();
            range.all(|item| item.seq < before && item.pin.is_none())
        };
        let found = self.exchanges().iter();
        let found = found.filter(|exchange| is_meant(exchange) && past(exchange));
        let ranges: Vec<_> = found.map(|exchange| exchange.at.clone()).collect();
        ranges.into_iter().map(|range| self.remove(range)).sum()
    }

    fn remove(&mut self, range: Range<usize>) -> Tokens {
        let mut freed = Tokens::ZERO;
        for at in range {
            if let Some((_, weight)) = self.current(at) {
                freed += weight;
                self.changes.insert(at, Change::Dropped);
            }
        }
        self.tokens = self.tokens.minus(freed);
        freed
    }

    fn structure(&self) -> &Structure {
        self.structure.get_or_init(|| {
            let exchanges = Exchange::of(self.items());
            let protected = protected(
                self.items(),
                &exchanges,
                self.first_unsent(),
                self.keep_recent,
            );
            Structure {
                exchanges,
                protected,
            }
        })
    }
}

fn protected(items: &[Item], exchanges: &[Exchange], unsent: usize, recent: usize) -> Vec<bool> {
    let last_of = |kind| exchanges.iter().rposition(|exchange| exchange.kind == kind);
    let first_user = exchanges
        .iter()
        .position(|exchange| exchange.kind == ExchangeKind::User);
    let last_user = last_of(ExchangeKind::User);
    let last_summary = last_of(ExchangeKind::Summary);
    let system = exchanges
        .iter()
        .take_while(|exchange| exchange.kind == ExchangeKind::System);
    let system = system.count();
    let mut complete = exchanges
        .iter()
        .rev()
        .filter(|exchange| exchange.kind == ExchangeKind::Complete);
    let recent_from = complete
        .nth(recent - 1)
        .map_or(0, |exchange| exchange.at.start);
    exchanges
        .iter()
        .enumerate()
        .map(|(index, exchange)| {
            let range = items.get(exchange.at.clone()).unwrap_or_default();
            index < system
                || [first_user, last_user, last_summary].contains(&Some(index))
                || exchange.kind == ExchangeKind::Pending
                || (exchange.kind == ExchangeKind::Complete && exchange.at.start >= recent_from)
                || exchange.at.end > unsent
                || exchange.at.end == items.len()
                || range.iter().any(|item| item.pin.is_some())
        })
        .collect()
}
