//! Removes exchanges from a [`Draft`]. A question is only removed together with all its answers.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{Change, Draft};
use crate::exchange::{Exchange, ExchangeKind};
use crate::handover::extract;
use crate::item::{Form, Item, Seq};
use crate::message::Message;
use crate::plan::Recall;
use crate::removal_marker::Gap;
use crate::tokens::Tokens;

/// The runs of removed positions.
#[derive(Debug, Default)]
pub(super) struct RemovedRuns(BTreeMap<usize, Run>);

/// A run; its key in the map is its beginning.
#[derive(Debug)]
struct Run {
    end: usize,
    /// The size of the marker that replaces the run, computed on first use.
    marker: OnceCell<Tokens>,
}

impl Draft<'_> {
    /// Removes an exchange, and for a question also everything that answers it.
    ///
    /// Returns the same as [`Draft::drop_exchanges`].
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

    /// Removes exchanges and returns the tokens of the removed messages. The marker that replaces
    /// them is not subtracted.
    ///
    /// Skips exchanges that are protected or already removed, markers of gaps, and questions with a
    /// remaining answer.
    pub fn drop_exchanges(&mut self, exchanges: &[usize]) -> Tokens {
        let mut removable = exchanges.to_vec();
        removable.retain(|index| self.is_removable(*index));
        let removable = self.with_their_answers(&removable);
        self.remove(&removable)
    }

    /// Returns the exchanges that may be removed, oldest first. The exchanges of one entry must be
    /// removed together.
    ///
    /// An entry is usually a whole turn: a question with everything that answers it. A turn is
    /// split if its question is protected, or if it is larger than `turn_limit`. Then its steps may
    /// be removed one by one, and the question only together with the last step.
    #[must_use]
    pub fn removable(&self, turn_limit: Tokens) -> Vec<Vec<usize>> {
        let weight = |steps: &[usize]| self.weight_of(steps);
        self.entries(turn_limit, |index| self.is_removable(index), weight)
    }

    /// Returns the exchanges that were removed, oldest first, in entries like those of
    /// [`Draft::removable`].
    pub(crate) fn removed(&self, turn_limit: Tokens) -> Vec<Vec<usize>> {
        let weight = |steps: &[usize]| {
            let positions = self.positions(steps).into_iter();
            let items = positions.filter_map(|at| self.items().get(at));
            items.map(|item| item.tokens).sum()
        };
        self.entries(turn_limit, |index| self.is_removed(index), weight)
    }

    /// Restores removed exchanges. An answer is only restored if its question is in the view.
    pub(crate) fn restore(&mut self, exchanges: &[usize]) {
        let has_question = |index: usize| {
            let question = self.turn_of(index).start;
            !self.is_question(question)
                || !self.is_removed(question)
                || exchanges.contains(&question)
        };
        let mut removed = exchanges.to_vec();
        removed.retain(|index| self.is_removed(*index) && has_question(*index));
        for at in self.positions(&removed) {
            if let (Some(Change::Dropped), Some(item)) =
                (self.changes.remove(&at), self.items().get(at))
            {
                self.left += item.tokens;
                self.runs.remove(at);
            }
        }
    }

    fn entries(
        &self,
        turn_limit: Tokens,
        is_member: impl Fn(usize) -> bool,
        weight: impl Fn(&[usize]) -> Tokens,
    ) -> Vec<Vec<usize>> {
        let mut entries: Vec<Vec<usize>> = Vec::new();
        for turn in &self.structure().turns {
            let mut steps: Vec<usize> = turn.clone().filter(|index| is_member(*index)).collect();
            if !steps.first().is_some_and(|first| self.is_question(*first)) {
                entries.extend(steps.into_iter().map(|step| vec![step]));
                continue;
            }
            if steps.len() > 2 && weight(&steps) > turn_limit {
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

    /// Returns the current size of these exchanges.
    #[must_use]
    pub fn weight_of(&self, exchanges: &[usize]) -> Tokens {
        let positions = self.positions(exchanges).into_iter();
        let weights = positions.filter_map(|at| self.current(at));
        weights.map(|(_, weight)| weight).sum()
    }

    /// Returns these exchanges without the questions that have a remaining answer outside the list.
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

    /// Replaces everything from before `before` that is not pinned by a summary without a model,
    /// protected exchanges too, or removes it if the view has more than `limit` tokens with the
    /// summary. Only an answered first question and the newest question stay. If there are unanswered
    /// questions of more than half of `limit`, only these are removed. Returns the freed tokens.
    ///
    /// Used by a host whose next question does not fit otherwise.
    pub fn give_up(&mut self, before: Seq, limit: Tokens) -> Tokens {
        let weight = self.tokens();
        let past = self.past(before);
        let is_large = |index: &usize| {
            self.is_unanswered(*index) && self.weight_of(&[*index]) > Tokens(limit.0 / 2)
        };
        let large: Vec<usize> = past.iter().copied().filter(is_large).collect();
        if !large.is_empty() {
            self.remove(&large);
        } else if self.cover_past(&past, limit) == Tokens::ZERO {
            self.remove(&past);
        }
        weight.minus(self.tokens())
    }

    /// Replaces exchanges by a summary without a model, and returns the freed tokens. Changes
    /// nothing if a summary remains beside it, or if the view has more than `limit` tokens with it.
    fn cover_past(&mut self, past: &[usize], limit: Tokens) -> Tokens {
        let mut kinds = self
            .exchanges()
            .iter()
            .map(|exchange| exchange.kind)
            .enumerate();
        let stays = |(index, kind)| kind == ExchangeKind::Summary && !past.contains(&index);
        if past.is_empty() || kinds.any(stays) {
            return Tokens::ZERO;
        }
        let weight = self.weight_of(past);
        let room = limit.minus(self.tokens().minus(weight));
        let room = room.min(Tokens(weight.0 / 2)).min(self.summary_limit());
        let items = self.positions(past).into_iter();
        let messages: Vec<&Message> = items
            .filter_map(|at| Some(self.items().get(at)?.message.as_ref()))
            .collect();
        let room = room.minus(self.summary_frame(past));
        match extract(&messages, room, self.counter()) {
            Some(text) => self.cover(past, text),
            None => Tokens::ZERO,
        }
    }

    /// Returns the exchanges from before `before` that [`Draft::give_up`] removes.
    fn past(&self, before: Seq) -> Vec<usize> {
        let exchanges = self.exchanges();
        let questions = (0..exchanges.len()).filter(|index| self.is_question(*index));
        let ends = [questions.clone().next(), questions.last()];
        let is_past = |index: usize, exchange: &Exchange| {
            let items = self.items().get(exchange.at.clone()).unwrap_or_default();
            let is_old = items
                .iter()
                .all(|item| item.seq < before && item.pin.is_none());
            is_old
                && match exchange.kind {
                    ExchangeKind::Complete | ExchangeKind::Summary => true,
                    // The last answer and its question leave together.
                    ExchangeKind::User => self.is_unanswered(index) || !ends.contains(&Some(index)),
                    _ => false,
                }
        };
        let past = exchanges.iter().enumerate();
        let past = past.filter(|(index, exchange)| is_past(*index, exchange));
        let past: Vec<usize> = past.map(|(index, _)| index).collect();
        self.with_their_answers(&past)
    }

    /// Removes exchanges. An adjacent gap becomes part of the new gap.
    fn remove(&mut self, exchanges: &[usize]) -> Tokens {
        let mut freed = Tokens::ZERO;
        for at in self.positions(exchanges) {
            if let Some((_, weight)) = self.current(at) {
                freed += weight;
                self.changes.insert(at, Change::Dropped);
                self.runs.insert(at);
            }
        }
        self.left = self.left.minus(freed);
        for index in exchanges {
            for next_to in [index.checked_sub(1), index.checked_add(1)] {
                self.absorb_gap(next_to);
            }
        }
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
            self.runs.insert(at);
            self.left = self.left.minus(weight);
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

    fn is_unanswered(&self, exchange: usize) -> bool {
        self.is_question(exchange) && !self.turn_of(exchange).any(|step| self.is_step(step))
    }

    /// Returns `true` if an exchange belongs to an answer and is still in the view.
    fn is_step(&self, exchange: usize) -> bool {
        self.exchanges().get(exchange).is_some_and(|found| {
            found.kind.is_step()
                && self.current(found.at.start).is_some()
                && !self.is_covered(found)
        })
    }

    fn is_removed(&self, exchange: usize) -> bool {
        self.exchanges().get(exchange).is_some_and(|found| {
            let change = self.changes.get(&found.at.start);
            found.kind != ExchangeKind::Gap && matches!(change, Some(Change::Dropped))
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
}

/// Returns the gap that the removal of one item leaves. A former gap or summary stands for the messages
/// that it replaced.
pub(super) fn gap(item: &Item, offered: Recall) -> Gap {
    let own = (item.form != Form::Edited(Recall::None)).then_some((item.seq, item.seq));
    let former = match item.message.as_ref() {
        Message::Summary { text } => Gap::split_summary(text).0,
        message => Gap::of(message),
    };
    let (messages, recall) = former.map_or((1, own), |gap| (gap.messages, gap.recall));
    Gap {
        messages,
        recall: recall.filter(|_| offered == Recall::Offered),
    }
}

impl RemovedRuns {
    /// Adds a position.
    pub(super) fn insert(&mut self, at: usize) {
        let start = match self.before(at) {
            Some(run) if run.end > at => return,
            Some(run) if run.end == at => run.start,
            _ => at,
        };
        let next = self.0.remove(&(at + 1));
        self.put(start..next.map_or(at + 1, |next| next.end));
    }

    /// Removes a position.
    pub(super) fn remove(&mut self, at: usize) {
        if let Some(run) = self.before(at).filter(|run| run.end > at) {
            self.0.remove(&run.start);
            self.put(run.start..at);
            self.put(at + 1..run.end);
        }
    }

    /// Returns the runs in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        self.0.iter().map(|(start, run)| *start..run.end)
    }

    /// Returns the size of all markers. Only the markers of changed runs are counted again.
    pub(super) fn markers(&self, weigh: impl Fn(Range<usize>) -> Tokens) -> Tokens {
        let runs = self.0.iter();
        let marker =
            |(start, run): (&usize, &Run)| *run.marker.get_or_init(|| weigh(*start..run.end));
        runs.map(marker).sum()
    }

    /// Returns the last run that begins at or before a position.
    fn before(&self, at: usize) -> Option<Range<usize>> {
        let (start, run) = self.0.range(..=at).next_back()?;
        Some(*start..run.end)
    }

    fn put(&mut self, run: Range<usize>) {
        if !run.is_empty() {
            let marker = OnceCell::new();
            let end = run.end;
            self.0.insert(run.start, Run { end, marker });
        }
    }
}
