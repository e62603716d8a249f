//! [`Draft`]: a view with the edits that stages have proposed so far.
//!
//! It enforces the invariants of a view: no stage can split an exchange, separate an answer from
//! its question, remove a protected message or make a message larger. `Transcript::apply` applies
//! the resulting plan.

mod removal;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::budget::Budget;
use crate::counter::{MESSAGE_OVERHEAD, SUMMARY_FRAME, TokenCounter};
use crate::exchange::{Exchange, ExchangeKind, Structure};
use crate::fingerprint::Fingerprint;
use crate::item::{Form, Item, Seq};
use crate::message::Message;
use crate::plan::{Edit, Plan, PlanContext, Recall, Rendition, SeqRange, SummaryRange, Trigger};
use crate::removal_marker::Gap;
use crate::tokens::Tokens;
use crate::transcript::Transcript;
use crate::truncate::Marker;
use removal::RemovedRuns;

/// The maximum number of tokens that two texts count more together than apart.
const NOTE_SEAM: Tokens = Tokens(2);

/// A view and the edits proposed to it.
///
/// Creating a draft is cheap: the exchanges are only found when a stage first asks for them.
#[derive(Debug)]
pub struct Draft<'a> {
    transcript: &'a Transcript,
    keep_recent: usize,
    context: Cow<'a, PlanContext>,
    structure: OnceCell<Structure>,
    changes: BTreeMap<usize, Change>,
    /// The tokens of all remaining messages, without the markers of new gaps.
    left: Tokens,
    /// The runs of removed messages.
    runs: RemovedRuns,
    due: bool,
    stages: Vec<String>,
    wants: Option<SummaryRange>,
    /// The maximum size of a new summary; zero if none is allowed.
    summary_limit: Tokens,
}

#[derive(Debug)]
enum Change {
    Shrunk(Rendition),
    Dropped,
    /// Replaces all these positions; the summary takes the first of them.
    Summary {
        covers: Vec<usize>,
        to: Rendition,
    },
    /// Covered by a summary at another position.
    Covered,
}

impl<'a> Draft<'a> {
    /// Creates a draft without edits. The newest `keep_recent` complete exchanges are protected.
    #[must_use]
    pub fn new(transcript: &'a Transcript, keep_recent: usize) -> Self {
        Self {
            transcript,
            keep_recent: keep_recent.max(1),
            context: Cow::Owned(PlanContext::default()),
            structure: OnceCell::new(),
            changes: BTreeMap::new(),
            left: transcript.tokens(),
            runs: RemovedRuns::default(),
            due: false,
            stages: Vec::new(),
            wants: None,
            summary_limit: Tokens::MAX,
        }
    }

    /// Sets the context, besides the view, that stages may rely on.
    #[must_use]
    pub fn with_context(mut self, context: &'a PlanContext) -> Self {
        self.context = Cow::Borrowed(context);
        self
    }

    /// Limits a new summary to `limit` tokens; zero allows none.
    pub(crate) fn with_summary_limit(mut self, limit: Tokens) -> Self {
        self.summary_limit = limit;
        self
    }

    /// Returns the maximum size of a new summary.
    pub(crate) fn summary_limit(&self) -> Tokens {
        self.summary_limit
    }

    /// Returns the size of the summary that a stage has inserted, if there is one.
    pub(crate) fn summary(&self) -> Option<Tokens> {
        self.changes.values().find_map(|change| match change {
            Change::Summary { to, .. } => Some(to.tokens),
            _ => None,
        })
    }

    /// Returns the context, besides the view, that stages may rely on.
    #[must_use]
    pub fn context(&self) -> &PlanContext {
        &self.context
    }

    /// Returns the marker for text that is cut from an item. It says how to recall the original, if
    /// that is possible.
    #[must_use]
    pub fn marker(&self, at: usize) -> Marker {
        match (self.context.recall, self.items().get(at)) {
            (Recall::Offered, Some(item)) if item.form != Form::Edited(Recall::None) => {
                Marker::with_note(&format!("recall {}", item.seq.recall_id()))
            }
            _ => Marker::default(),
        }
    }

    /// Returns the size of the view with the edits so far, including the markers of new gaps.
    ///
    /// O(number of gaps).
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.left + self.markers()
    }

    /// Checks whether the view has at most these tokens. The markers of new gaps are only counted if
    /// the rest fits.
    pub(crate) fn is_within(&self, target: Tokens) -> bool {
        self.left <= target && self.tokens() <= target
    }

    /// Returns the size of the markers of new gaps.
    pub(crate) fn markers(&self) -> Tokens {
        let weigh = |run| self.counter().message(&self.gap(run).message());
        self.runs.markers(weigh)
    }

    /// Checks whether the view exceeds its trigger, or did so when an earlier stage asked.
    ///
    /// A rewrite that has begun continues to the target. If it ended just below the trigger, the
    /// next rewrite would follow soon, and each one loses the provider's cache.
    pub fn is_due(&mut self, budget: &Budget) -> bool {
        self.due |= self.tokens() > budget.trigger;
        self.due
    }

    /// Returns the counter of the view.
    #[must_use]
    pub fn counter(&self) -> &dyn TokenCounter {
        self.transcript.counter().as_ref()
    }

    /// Returns the items of the view without the edits.
    #[must_use]
    pub fn items(&self) -> &'a [Item] {
        self.transcript.items()
    }

    /// Returns the position of the first item that was not sent in any request yet.
    #[must_use]
    pub fn first_unsent(&self) -> usize {
        self.items().len() - self.transcript.unsent().len()
    }

    /// Returns the exchanges of the view without the edits.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        &self.structure().exchanges
    }

    /// Returns `true` if an exchange must not be removed.
    ///
    /// Protected are all system messages, pins, the first and the newest user message, the newest
    /// complete exchanges with the questions that they answer, pending calls, the last summary, all
    /// messages that the model has not read yet, and the last message of the view.
    #[must_use]
    pub fn is_protected(&self, exchange: usize) -> bool {
        self.structure()
            .protected
            .get(exchange)
            .copied()
            .unwrap_or(true)
    }

    /// Returns the message at a position with the edits so far, and its size, or `None` if it was
    /// dropped.
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

    /// Replaces a message by a smaller form and returns the freed tokens.
    ///
    /// Returns zero and changes nothing if the form is not smaller, answers another call or has
    /// another role, or if the message is pinned or already removed.
    pub fn shrink(&mut self, at: usize, to: Message) -> Tokens {
        let Some((now, weight)) = self.current(at) else {
            return Tokens::ZERO;
        };
        let is_pinned = |item: &Item| item.pin.is_some();
        if !to.is_form_of(now) || self.items().get(at).is_none_or(is_pinned) {
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
            self.left = self.left.minus(freed);
        }
        freed
    }

    /// Returns the positions of the shrunk messages, oldest first.
    pub(crate) fn shrunk(&self) -> Vec<usize> {
        let shrunk = self.changes.iter();
        let shrunk = shrunk.filter(|(_, change)| matches!(change, Change::Shrunk(_)));
        shrunk.map(|(at, _)| *at).collect()
    }

    /// Replaces the form of a shrunk message by a larger form, or by the original message if `to`
    /// is `None`.
    ///
    /// Changes nothing if the form is smaller than the current one, or not smaller than the
    /// original.
    pub(crate) fn grow(&mut self, at: usize, to: Option<Message>) {
        let (Some(Change::Shrunk(now)), Some(item)) = (self.changes.get(&at), self.items().get(at))
        else {
            return;
        };
        let grown = match to {
            None => item.tokens,
            Some(ref to) => self.counter().message(to),
        };
        let fits = |to: &Message| grown < item.tokens && to.is_form_of(&item.message);
        if grown < now.tokens || !to.as_ref().is_none_or(fits) {
            return;
        }
        self.left = self.left.minus(now.tokens) + grown;
        match to {
            None => self.changes.remove(&at),
            Some(to) => {
                let to = Rendition {
                    message: Arc::new(to),
                    tokens: grown,
                };
                self.changes.insert(at, Change::Shrunk(to))
            }
        };
    }

    /// Returns `true` if an exchange may be covered by a summary: it may be dropped, or it is a
    /// former summary that is not pinned.
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

    /// Describes a summary of these exchanges.
    #[must_use]
    pub fn span(&self, exchanges: &[usize], max: Tokens) -> SummaryRange {
        let at = self.positions(exchanges);
        let items = || at.iter().filter_map(|at| self.items().get(*at));
        SummaryRange {
            seqs: items().map(|item| item.seq).collect(),
            fingerprint: Fingerprint::of(items().map(|item| item.message.as_ref())),
            tokens: items().map(|item| item.tokens).sum(),
            max,
        }
    }

    /// Requests a summary by a model. The planner decides whether the summary is written.
    pub fn want(&mut self, span: SummaryRange) {
        if self.summary_limit > Tokens::ZERO {
            self.wants = Some(span);
        }
    }

    /// Replaces these exchanges by one summary and returns the freed tokens.
    ///
    /// The first line of the summary says how many messages it replaces and how to recall them.
    /// Returns zero and changes nothing if one of the exchanges may not be covered, if a question
    /// would be covered without its answer, or if the summary would not be smaller.
    pub fn summarize(&mut self, exchanges: &[usize], text: impl AsRef<str>) -> Tokens {
        let is_coverable = exchanges.iter().all(|index| self.is_coverable(*index));
        if !is_coverable || self.with_their_answers(exchanges).len() < exchanges.len() {
            return Tokens::ZERO;
        }
        self.cover(exchanges, text)
    }

    fn cover(&mut self, exchanges: &[usize], text: impl AsRef<str>) -> Tokens {
        let covers = self.positions(exchanges);
        let to = Message::Summary {
            text: self.gap(covers.iter().copied()).with_summary(text.as_ref()),
        };
        let tokens = self.counter().message(&to);
        let weight: Tokens = covers
            .iter()
            .filter_map(|at| self.current(*at))
            .map(|(_, weight)| weight)
            .sum();
        let freed = weight.minus(tokens);
        let Some(first) = covers.first().copied() else {
            return Tokens::ZERO;
        };
        if freed == Tokens::ZERO || tokens > self.summary_limit {
            return Tokens::ZERO;
        }
        self.left = self.left.minus(freed);
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

    /// Returns the size of a summary of these exchanges without its own text: the message, the
    /// frame around it and the line that says how many messages it replaces.
    #[must_use]
    pub fn summary_frame(&self, exchanges: &[usize]) -> Tokens {
        let gap = self.gap(self.positions(exchanges));
        let note = self.counter().text(&gap.with_summary(""));
        MESSAGE_OVERHEAD + SUMMARY_FRAME + note + NOTE_SEAM
    }

    /// Records that a stage contributed to the edits so far.
    pub fn credit(&mut self, stage: &str) {
        if !self.stages.iter().any(|credited| credited == stage) {
            self.stages.push(stage.to_owned());
        }
    }

    /// Returns the edits so far as a plan, or `None` if there are none.
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
        let frees = before.minus(self.tokens());
        if frees == Tokens::ZERO {
            return None;
        }
        let mut edits: Vec<(usize, Edit)> = Vec::new();
        for run in self.runs.iter() {
            let message = self.gap(run.clone()).message();
            let marker = Rendition {
                tokens: self.counter().message(&message),
                message: Arc::new(message),
            };
            let edit = Edit::Drop {
                first: seq(run.start),
                last: seq(run.end - 1),
                marker,
            };
            edits.push((run.start, edit));
        }
        for (at, change) in self.changes {
            match change {
                Change::Shrunk(to) => edits.push((at, Edit::Shrink { seq: seq(at), to })),
                Change::Summary { covers, to } => {
                    let covers = ranges(&covers);
                    edits.push((at, Edit::Summarize { covers, to }));
                }
                // Included in the edit of its gap or its summary.
                Change::Dropped | Change::Covered => {}
            }
        }
        edits.sort_by_key(|(at, _)| *at);
        Some(Plan {
            why,
            stages: self.stages,
            edits: edits.into_iter().map(|(_, edit)| edit).collect(),
            before,
            frees,
            rewrites_from,
            recall: self.context.recall,
            price: None,
        })
    }

    /// Takes the summary request of a stage, if there is one.
    pub(crate) fn take_wants(&mut self) -> Option<SummaryRange> {
        self.wants.take()
    }

    /// Returns the positions of the items of exchanges.
    pub(crate) fn positions(&self, exchanges: &[usize]) -> Vec<usize> {
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

    /// Returns the gap that the removal of these items leaves.
    ///
    /// Only an unbroken range is offered for recall: an id in the middle of the range that is not to
    /// be recalled would be a false promise.
    fn gap(&self, positions: impl IntoIterator<Item = usize>) -> Gap {
        let (mut messages, mut recall) = (0_u64, None);
        let items = positions.into_iter().filter_map(|at| self.items().get(at));
        for gap in items.map(|item| removal::gap(item, self.context.recall)) {
            messages = messages.saturating_add(gap.messages);
            recall = gap
                .recall
                .map(|(first, last)| (recall.map_or(first, |(first, _)| first), last));
        }
        Gap {
            messages: messages.max(1),
            recall,
        }
    }

    fn structure(&self) -> &Structure {
        self.structure
            .get_or_init(|| Structure::new(self.items(), self.first_unsent(), self.keep_recent))
    }
}
