//! [`RemovedRuns`]: runs of removed messages, each with the size of its marker. [`Removal`]:
//! precomputed sums that give the marker of any run in constant time.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::gap::Gap;
use crate::item::{Form, Item, Seq};
use crate::message::Message;
use crate::plan_context::Recall;
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

/// The contribution of a removed message to a gap.
#[derive(Debug)]
pub(super) struct Removal {
    /// The number of messages that the item stands for: those of a former gap or summary, or 1.
    messages: u64,
    /// The number of messages that this item and all items before it stand for.
    sum: u128,
    /// The range of messages that can be recalled.
    recall: Option<(Seq, Seq)>,
    /// The first item of the unbroken sequence of items that can be recalled.
    since: usize,
}

impl Removal {
    /// Computes the removals of all items.
    pub(super) fn of(items: &[Item], offered: Recall) -> Vec<Self> {
        let (mut sum, mut since) = (0, 0);
        let removals = items.iter().enumerate().map(|(at, item)| {
            let own = (offered == Recall::Offered && item.form != Form::Edited(Recall::None))
                .then_some((item.seq, item.seq));
            let former = match item.message.as_ref() {
                Message::Summary { text } => Gap::split_summary(text).0,
                message => Gap::of(message),
            };
            let (messages, recall) = former.map_or((1, own), |gap| (gap.messages, gap.recall));
            let recall = recall.filter(|_| offered == Recall::Offered);
            sum += u128::from(messages);
            if recall.is_none() {
                since = at + 1;
            }
            Self {
                messages,
                sum,
                recall,
                since,
            }
        });
        removals.collect()
    }

    /// Returns the gap that the removal of a run of items leaves.
    pub(super) fn gap(all: &[Self], run: Range<usize>) -> Gap {
        let last = run.end.checked_sub(1).and_then(|last| all.get(last));
        let before = run.start.checked_sub(1).and_then(|before| all.get(before));
        let sum = |removal: Option<&Self>| removal.map_or(0, |removal| removal.sum);
        let messages = sum(last).saturating_sub(sum(before)).max(1);
        // Only an unbroken range is offered for recall: an id in the middle of the range that is
        // not archived would be a false promise.
        let recall = last.and_then(|last| {
            let first = all.get(last.since.max(run.start))?;
            Some((first.recall?.0, last.recall?.1))
        });
        Gap {
            messages: u64::try_from(messages).unwrap_or(u64::MAX),
            recall,
        }
    }

    /// Returns the gap that the removal of any items leaves.
    pub(super) fn gap_of<'r>(removals: impl Iterator<Item = &'r Self>) -> Gap {
        let nothing = Gap {
            messages: 0,
            recall: None,
        };
        let gap = removals.fold(nothing, |gap, removal| Gap {
            messages: gap.messages.saturating_add(removal.messages),
            recall: removal
                .recall
                .map(|(first, last)| (gap.recall.map_or(first, |(first, _)| first), last)),
        });
        Gap {
            messages: gap.messages.max(1),
            ..gap
        }
    }
}
