//! [`Draft`]: a view with the edits that stages have proposed so far.
//!
//! It refuses what the invariants forbid: no stage can split an exchange, part an answer from its
//! question, remove one of the protected set or make a message heavier. `Transcript::apply` applies
//! the resulting plan.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::budget::Budget;
use crate::counter::{MESSAGE_OVERHEAD, SUMMARY_FRAME, TokenCounter};
use crate::exchange::{Exchange, ExchangeKind, turns};
use crate::fingerprint::Fingerprint;
use crate::gap::Gap;
use crate::item::{Form, Item, Seq};
use crate::means::{Means, Recall, Span, When};
use crate::message::Message;
use crate::plan::{Edit, Plan, Rendition, SeqRange, Trigger};
use crate::rendition::is_form_of;
use crate::tokens::Tokens;
use crate::transcript::Transcript;
use crate::truncate::Marker;

/// The tokens that two texts may weigh more together than apart.
const NOTE_SEAM: Tokens = Tokens(2);

/// A view and the edits proposed to it. Making one costs nothing; the exchanges are found when a
/// stage first asks for them.
#[derive(Debug)]
pub struct Draft<'a> {
    transcript: &'a Transcript,
    keep_recent: usize,
    means: Cow<'a, Means>,
    structure: OnceCell<Structure>,
    changes: BTreeMap<usize, Change>,
    /// The weight of all messages that are left, without the markers of new gaps.
    left: Tokens,
    /// The weight of these markers, unless something was removed since it was counted.
    markers: Cell<Option<Tokens>>,
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
    turns: Vec<Range<usize>>,
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
            left: transcript.tokens(),
            markers: Cell::new(Some(Tokens::ZERO)),
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

    /// Returns the weight of the view with the edits so far, the markers of new gaps included.
    ///
    /// O(number of edits) after a removal, O(1) otherwise.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.left + self.markers()
    }

    /// Returns the weight of the markers of new gaps.
    pub(crate) fn markers(&self) -> Tokens {
        let markers = self.markers.get().unwrap_or_else(|| {
            let gaps = self.gaps();
            let weigh = |(_, gap): &(_, Gap)| self.counter().message(&gap.message());
            gaps.iter().map(weigh).sum()
        });
        self.markers.set(Some(markers));
        markers
    }

    /// Whether the view is over its trigger, or was when an earlier stage asked: a rewrite that
    /// has begun goes on to the target, for one that ends just under the trigger is soon followed
    /// by the next, and each loses the provider's cache.
    pub fn is_due(&mut self, budget: &Budget) -> bool {
        self.due |= self.tokens() > budget.trigger;
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

    /// Returns `true` if an exchange must stay.
    ///
    /// Protected are system messages wherever they stand, pins, the first and the newest user
    /// message, the newest complete exchanges with the questions that they answer, pending calls,
    /// the last summary, everything that the model has not read yet, and the last message of the
    /// view.
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
            self.left = self.left.minus(freed);
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

    /// Puts one summary in the place of these exchanges and returns the freed tokens.
    ///
    /// The summary gets a first line that says how many messages it replaces and how to recall
    /// them. Returns zero and changes nothing if one of the exchanges may not be covered, if a
    /// question would be covered and its answer stay, or if the summary would not be lighter.
    pub fn summarize(&mut self, exchanges: &[usize], text: impl AsRef<str>) -> Tokens {
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
        let coverable = exchanges.iter().all(|index| self.is_coverable(*index));
        let (Some(first), true) = (covers.first().copied(), coverable) else {
            return Tokens::ZERO;
        };
        if freed == Tokens::ZERO
            || self.summaries == Summaries::Refused
            || self.with_their_answers(exchanges).len() < exchanges.len()
        {
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

    /// Returns what a summary of these exchanges weighs besides its own words: the message, the
    /// frame around it and the line that says what it replaces.
    #[must_use]
    pub fn summary_frame(&self, exchanges: &[usize]) -> Tokens {
        let gap = self.gap(self.positions(exchanges).into_iter());
        let note = self.counter().text(&gap.with_summary(""));
        MESSAGE_OVERHEAD + SUMMARY_FRAME + note + NOTE_SEAM
    }

    /// Removes an exchange, and with a question everything that answers it.
    ///
    /// Returns what [`Draft::drop_exchanges`] returns.
    pub fn drop_exchange(&mut self, exchange: usize) -> Tokens {
        let together: Vec<usize> = if self.is_question(exchange) {
            self.turn_of(exchange).collect()
        } else {
            vec![exchange]
        };
        if self.is_removable(exchange) {
            self.drop_exchanges(&together)
        } else {
            Tokens::ZERO
        }
    }

    /// Removes exchanges, and returns the weight of the removed messages; the marker that takes
    /// their place is not subtracted from it.
    ///
    /// Exchanges that are protected or already removed, markers of gaps, and questions of which an
    /// answer would stay are left as they are.
    pub fn drop_exchanges(&mut self, exchanges: &[usize]) -> Tokens {
        let mut removable = exchanges.to_vec();
        removable.retain(|index| self.is_removable(*index));
        let removable = self.with_their_answers(&removable);
        self.remove(&removable)
    }

    /// Returns the exchanges that may be removed, oldest first. The exchanges of one entry are to
    /// be removed together.
    ///
    /// An entry is a whole turn, that is a question with everything that answers it. A turn is
    /// split if its question is protected, or if it weighs more than `turn_limit`: then its steps
    /// may be removed one by one, and the question only together with the last of them.
    #[must_use]
    pub fn removable(&self, turn_limit: Tokens) -> Vec<Vec<usize>> {
        let mut entries: Vec<Vec<usize>> = Vec::new();
        for turn in &self.structure().turns {
            let mut steps: Vec<usize> = turn
                .clone()
                .filter(|index| self.is_removable(*index))
                .collect();
            if !steps.first().is_some_and(|first| self.is_question(*first)) {
                entries.extend(steps.into_iter().map(|step| vec![step]));
                continue;
            }
            if steps.len() > 2 && self.weight_of(&steps) > turn_limit {
                let last = steps.split_off(steps.len() - 1);
                let mut steps = steps.into_iter();
                let question = steps.next();
                entries.extend(steps.map(|step| vec![step]));
                entries.push(question.into_iter().chain(last).collect());
            } else {
                entries.push(steps);
            }
        }
        entries
    }

    /// Returns the current weight of these exchanges.
    #[must_use]
    pub fn weight_of(&self, exchanges: &[usize]) -> Tokens {
        let found = exchanges.iter().filter_map(|at| self.exchanges().get(*at));
        let positions = found.flat_map(|exchange| exchange.at.clone());
        let weights = positions.filter_map(|at| self.current(at));
        weights.map(|(_, weight)| weight).sum()
    }

    /// Returns these exchanges without the questions of which an answer is not among them and stays.
    #[must_use]
    pub fn with_their_answers(&self, exchanges: &[usize]) -> Vec<usize> {
        let chosen: BTreeSet<usize> = exchanges.iter().copied().collect();
        let stays = |index: &usize| !chosen.contains(index) && self.is_step(*index);
        let keeps_answer =
            |index: usize| self.is_question(index) && self.turn_of(index).any(|step| stays(&step));
        let mut whole = exchanges.to_vec();
        whole.retain(|index| !keeps_answer(*index));
        whole
    }

    /// Removes protected exchanges from before `before`, which stages may not.
    ///
    /// First those that no request has carried, left behind by a run that failed; if there are
    /// none, the complete ones that stayed for being the newest; if there are none of these either,
    /// the summary, made when there was more room. For a host whose next question does not fit
    /// beside them. Returns by how much the view became lighter.
    pub fn give_up(&mut self, before: Seq) -> Tokens {
        let unsent = self.first_unsent();
        let is_unsent = |exchange: &Exchange| {
            let is_message = !matches!(exchange.kind, ExchangeKind::System | ExchangeKind::Gap);
            exchange.at.end > unsent && is_message
        };
        let is_complete = |exchange: &Exchange| exchange.kind == ExchangeKind::Complete;
        let is_summary = |exchange: &Exchange| exchange.kind == ExchangeKind::Summary;
        let weight = self.tokens();
        let meant: [&dyn Fn(&Exchange) -> bool; 3] = [&is_unsent, &is_complete, &is_summary];
        for is_meant in meant {
            self.drop_past(before, is_meant);
            // What is lighter than its marker alone frees nothing.
            if self.tokens() < weight {
                break;
            }
        }
        weight.minus(self.tokens())
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
        let frees = before.minus(self.tokens());
        if frees == Tokens::ZERO {
            return None;
        }
        let mut edits: Vec<(usize, Edit)> = Vec::new();
        for (run, gap) in self.gaps() {
            let message = gap.message();
            let marker = Rendition {
                tokens: self.counter().message(&message),
                message: Arc::new(message),
            };
            let edit = Edit::Drop {
                first: seq(run.start),
                last: seq(run.end - 1),
                marker: Some(marker),
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
                // Named by its gap or its summary.
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

    fn drop_past(&mut self, before: Seq, is_meant: &dyn Fn(&Exchange) -> bool) {
        let items = self.items();
        let is_past = |exchange: &Exchange| {
            let mut range = items.get(exchange.at.clone()).unwrap_or_default().iter();
            range.all(|item| item.seq < before && item.pin.is_none())
        };
        let found = self.exchanges().iter().enumerate();
        let found = found.filter(|(_, exchange)| is_meant(exchange) && is_past(exchange));
        let mut gone: BTreeSet<usize> = found.map(|(index, _)| index).collect();
        // A question leaves with its last answer, unless it is the task or the newest one.
        let all = 0..self.exchanges().len();
        let asked: Vec<usize> = all.filter(|index| self.is_question(*index)).collect();
        let ends = [asked.first(), asked.last()];
        for question in &asked {
            let Some(exchange) = self.exchanges().get(*question) else {
                continue;
            };
            let steps: Vec<usize> = self
                .turn_of(*question)
                .filter(|index| self.is_step(*index))
                .collect();
            let leaves = steps.iter().all(|step| gone.contains(step)) && !steps.is_empty();
            if leaves && is_past(exchange) && !ends.contains(&Some(question)) {
                gone.insert(*question);
            }
        }
        let gone: Vec<usize> = gone.into_iter().collect();
        self.remove(&gone);
    }

    /// Removes exchanges. A gap next to one of them becomes part of the new gap.
    fn remove(&mut self, exchanges: &[usize]) -> Tokens {
        let mut freed = Tokens::ZERO;
        for at in self.positions(exchanges) {
            if let Some((_, weight)) = self.current(at) {
                freed += weight;
                self.changes.insert(at, Change::Dropped);
            }
        }
        self.left = self.left.minus(freed);
        for index in exchanges {
            for next_to in [index.checked_sub(1), index.checked_add(1)] {
                self.absorb_gap(next_to);
            }
        }
        self.markers.set(None);
        freed
    }

    fn absorb_gap(&mut self, exchange: Option<usize>) {
        let found = exchange.and_then(|index| self.exchanges().get(index));
        let Some(at) = found
            .filter(|found| found.kind == ExchangeKind::Gap && !self.is_covered(found))
            .map(|found| found.at.start)
        else {
            return;
        };
        let is_pinned = self.items().get(at).is_some_and(|item| item.pin.is_some());
        if let (false, Some((_, weight))) = (is_pinned, self.current(at)) {
            self.changes.insert(at, Change::Dropped);
            self.left = self.left.minus(weight);
        }
    }

    /// Returns the runs of removed messages.
    fn gaps(&self) -> Vec<(Range<usize>, Gap)> {
        let dropped = self.changes.iter();
        let dropped = dropped.filter(|(_, change)| matches!(change, Change::Dropped));
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (at, _) in dropped {
            match runs.last_mut() {
                Some(run) if run.end == *at => run.end = at + 1,
                _ => runs.push(*at..at + 1),
            }
        }
        let runs = runs.into_iter();
        runs.map(|run| (run.clone(), self.gap(run))).collect()
    }

    /// Returns the gap that the removal of these items leaves. Former gaps and summaries among them
    /// count as the messages that they stand for.
    fn gap(&self, positions: impl Iterator<Item = usize>) -> Gap {
        let mut messages: u64 = 0;
        let mut recall: Option<(Seq, Seq)> = None;
        for item in positions.filter_map(|at| self.items().get(at)) {
            let own = (self.means.recall == Recall::Offered
                && item.form != Form::Edited(Recall::None))
            .then_some((item.seq, item.seq));
            let former = match item.message.as_ref() {
                Message::Summary { text } => Gap::split_summary(text).0,
                message => Gap::of(message),
            };
            let (count, range) = former.map_or((1, own), |gap| (gap.messages, gap.recall));
            messages = messages.saturating_add(count);
            // Only an unbroken range is offered: an id in the middle that is not archived would be
            // a false promise.
            recall = match (recall, range) {
                (_, None) => None,
                (None, range) => range,
                (Some((first, _)), Some((_, last))) => Some((first, last)),
            };
        }
        Gap {
            messages: messages.max(1),
            recall: recall.filter(|_| self.means.recall == Recall::Offered),
        }
    }

    /// Returns the turn that an exchange belongs to.
    fn turn_of(&self, exchange: usize) -> Range<usize> {
        let turns = &self.structure().turns;
        let at = turns.partition_point(|turn| turn.end <= exchange);
        turns.get(at).cloned().unwrap_or_default()
    }

    fn is_question(&self, exchange: usize) -> bool {
        let found = self.exchanges().get(exchange);
        found.is_some_and(|found| found.kind == ExchangeKind::User)
    }

    /// Returns `true` if an exchange belongs to an answer and is still in the view.
    fn is_step(&self, exchange: usize) -> bool {
        self.exchanges().get(exchange).is_some_and(|found| {
            is_step(found.kind) && self.current(found.at.start).is_some() && !self.is_covered(found)
        })
    }

    fn is_removable(&self, exchange: usize) -> bool {
        self.exchanges().get(exchange).is_some_and(|found| {
            found.kind != ExchangeKind::Gap
                && !self.is_protected(exchange)
                && !self.is_covered(found)
                && self.current(found.at.start).is_some()
        })
    }

    fn structure(&self) -> &Structure {
        self.structure.get_or_init(|| {
            let exchanges = Exchange::of(self.items());
            let turns = turns(&exchanges);
            let protected = protected(
                self.items(),
                &exchanges,
                &turns,
                self.first_unsent(),
                self.keep_recent,
            );
            Structure {
                exchanges,
                turns,
                protected,
            }
        })
    }
}

/// Returns `true` for what answers a question: messages of the model and its tool results.
fn is_step(kind: ExchangeKind) -> bool {
    matches!(
        kind,
        ExchangeKind::Complete | ExchangeKind::Pending | ExchangeKind::Orphan
    )
}

fn protected(
    items: &[Item],
    exchanges: &[Exchange],
    turns: &[Range<usize>],
    unsent: usize,
    recent: usize,
) -> Vec<bool> {
    let last_of = |kind| exchanges.iter().rposition(|exchange| exchange.kind == kind);
    let first_user = exchanges
        .iter()
        .position(|exchange| exchange.kind == ExchangeKind::User);
    let last_user = last_of(ExchangeKind::User);
    let last_summary = last_of(ExchangeKind::Summary);
    let mut complete = exchanges
        .iter()
        .rev()
        .filter(|exchange| exchange.kind == ExchangeKind::Complete);
    let recent_from = complete
        .nth(recent - 1)
        .map_or(0, |exchange| exchange.at.start);
    let mut protected: Vec<bool> = exchanges
        .iter()
        .enumerate()
        .map(|(index, exchange)| {
            let range = items.get(exchange.at.clone()).unwrap_or_default();
            [first_user, last_user, last_summary].contains(&Some(index))
                || matches!(exchange.kind, ExchangeKind::System | ExchangeKind::Pending)
                || (exchange.kind == ExchangeKind::Complete && exchange.at.start >= recent_from)
                || exchange.at.end > unsent
                || exchange.at.end == items.len()
                || range.iter().any(|item| item.pin.is_some())
        })
        .collect();
    // An answer that stays keeps its question.
    for turn in turns {
        let kinds = exchanges.get(turn.clone()).unwrap_or_default();
        let flags = protected.get_mut(turn.clone()).unwrap_or_default();
        let mut steps = kinds.iter().zip(flags.iter());
        let answered = steps.any(|(exchange, stays)| *stays && is_step(exchange.kind));
        if let (true, Some(first), Some(exchange)) = (answered, flags.first_mut(), kinds.first()) {
            *first |= exchange.kind == ExchangeKind::User;
        }
    }
    protected
}
