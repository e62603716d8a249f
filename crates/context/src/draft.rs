//! [`Draft`]: a view with the edits that stages have proposed so far. It refuses what the
//! invariants forbid, so that no stage can part an exchange, drop one of the protected set or make
//! anything heavier. Not applied to anything; that is `Transcript::apply`.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::budget::Budget;
use crate::counter::TokenCounter;
use crate::exchange::{Exchange, ExchangeKind};
use crate::item::{Item, Seq};
use crate::message::Message;
use crate::plan::{Edit, Plan, Rendition, Trigger};
use crate::rendition::is_form_of;
use crate::tokens::Tokens;
use crate::transcript::Transcript;

/// A view and the edits proposed to it. Making one costs nothing; the exchanges are found when a
/// stage first asks for them.
#[derive(Debug)]
pub struct Draft<'a> {
    transcript: &'a Transcript,
    keep_recent: usize,
    structure: OnceCell<Structure>,
    changes: BTreeMap<usize, Change>,
    tokens: Tokens,
    due: bool,
    stages: Vec<String>,
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
}

impl<'a> Draft<'a> {
    /// A draft without edits; the newest `keep_recent` complete exchanges are protected.
    #[must_use]
    pub fn new(transcript: &'a Transcript, keep_recent: usize) -> Self {
        Self {
            transcript,
            keep_recent: keep_recent.max(1),
            structure: OnceCell::new(),
            changes: BTreeMap::new(),
            tokens: transcript.tokens(),
            due: false,
            stages: Vec::new(),
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
            Some(Change::Dropped) => None,
            Some(Change::Shrunk(to)) => Some((&to.message, to.tokens)),
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
        if !is_form_of(&to, now) || self.items().get(at).is_none_or(|item| item.pinned) {
            return Tokens::ZERO;
        }
        let tokens = self.counter().message(&to);
        let freed = weight.minus(tokens);
        if freed > Tokens::ZERO {
            self.changes.insert(
                at,
                Change::Shrunk(Rendition {
                    message: Arc::new(to),
                    tokens,
                }),
            );
            self.tokens = self.tokens.minus(freed);
        }
        freed
    }

    /// Drops an exchange whole and says what that frees: zero where it is protected or gone.
    pub fn drop_exchange(&mut self, exchange: usize) -> Tokens {
        match self.exchanges().get(exchange) {
            Some(found) if !self.is_protected(exchange) => self.remove(found.at.clone()),
            _ => Tokens::ZERO,
        }
    }

    /// Gives up protected exchanges from before `before`, which stages may not: first those that no
    /// request has carried, left behind by a run that failed; if there are none, the complete ones
    /// that stayed for being the newest. For a host whose next question does not fit beside them.
    /// Says what that frees.
    pub fn give_up(&mut self, before: Seq) -> Tokens {
        let unsent = self.first_unsent();
        let freed = self.drop_past(before, |exchange| {
            exchange.at.end > unsent && exchange.kind != ExchangeKind::System
        });
        if freed > Tokens::ZERO {
            return freed;
        }
        self.drop_past(before, |exchange| exchange.kind == ExchangeKind::Complete)
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
            price: None,
        })
    }

    fn drop_past(&mut self, before: Seq, is_meant: impl Fn(&Exchange) -> bool) -> Tokens {
        let items = self.items();
        let past = |exchange: &Exchange| {
            let mut range = items.get(exchange.at.clone()).unwrap_or_default().iter();
            range.all(|item| item.seq < before && !item.pinned)
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
                || range.iter().any(|item| item.pinned)
        })
        .collect()
}
