//! [`Sections`]: keeps the first and the last turns of the newest run, and replaces the turns
//! between them and the earlier runs by one summary. It never splits an exchange.

use crate::budget::Budget;
use crate::compat::CompactionScope;
use crate::draft::Draft;
use crate::exchange::{Exchange, ExchangeKind};
use crate::item::Item;
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::stages::summarize::Summarize;
use crate::stages::{Author, SummaryConfig};
use crate::tokens::Tokens;

/// Summarises the runs before the newest one and the middle of the newest run, once a plan is due.
///
/// Kept turns must fit the target together with a summary. If they do not, the oldest of the last
/// turns are summarised first, then the first turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sections {
    /// The part of the view that this stage handles.
    pub of: Section,
    /// How many earlier runs are summarised. Runs before these are removed without a summary.
    pub scope: CompactionScope,
    /// Number of turns that are kept at the beginning of the newest run.
    pub keep_first_turns: usize,
    /// Number of turns that are kept at the end of the newest run.
    pub keep_recent_turns: usize,
    /// The settings for the summary; `None` removes the messages without one.
    pub summary: Option<SummaryConfig>,
}

/// A part of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// The whole view.
    All,
    /// The runs before the newest one.
    Earlier,
    /// The newest run.
    Newest,
}

/// The beginnings of the runs of a view, as indices of exchanges.
///
/// A run begins with the first user message, and with each user message after an answer, or after a
/// gap that may have contained one. A user message after results was sent during a run.
pub(super) struct RunStarts(Vec<usize>);

/// The number of turns of the newest run that are kept.
#[derive(Debug, Clone, Copy)]
struct Keep {
    first: usize,
    recent: usize,
}

impl Stage for Sections {
    fn name(&self) -> &str {
        match self.summary {
            None => "sections",
            Some(summary) => match summary.author {
                Author::Model => "summarize",
                Author::Extract => "extract",
            },
        }
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        let due = draft.is_due(budget);
        if due && self.of != Section::Newest {
            self.drop_beyond_scope(draft, budget);
        }
        if let Some(summary) = self.summary {
            let choose = |draft: &Draft<'_>, _enough| self.chosen(draft, budget);
            return Summarize(summary).choosing(draft, budget, &choose);
        }
        if !due || draft.tokens() <= budget.target {
            return;
        }
        let chosen = self.chosen(draft, budget);
        draft.drop_exchanges(&chosen);
    }
}

impl Sections {
    /// Removes the runs before those that the scope includes.
    fn drop_beyond_scope(&self, draft: &mut Draft<'_>, budget: &Budget) {
        let runs = RunStarts::of(draft);
        let spans: Vec<(usize, usize)> = runs.earlier().collect();
        let kept = match self.scope {
            CompactionScope::FixedCount(count) => count,
            CompactionScope::TokenBudget => {
                let mut sum = Tokens::ZERO;
                let fits = |span: &&(usize, usize)| {
                    let all: Vec<usize> = (span.0..span.1).collect();
                    sum += draft.weight_of(&all);
                    sum <= budget.target
                };
                spans.iter().rev().take_while(fits).count()
            }
        };
        let beyond = spans.len().saturating_sub(kept);
        let Some((_, end)) = beyond.checked_sub(1).and_then(|last| spans.get(last)) else {
            return;
        };
        for together in draft.removable(budget.target) {
            if draft.is_within(budget.target) || together.iter().any(|index| index >= end) {
                return;
            }
            let is_summary = |index: &usize| {
                let found = draft.exchanges().get(*index);
                found.is_some_and(|found| found.kind == ExchangeKind::Summary)
            };
            if !together.iter().any(is_summary) {
                draft.drop_exchanges(&together);
            }
        }
    }

    /// Returns the exchanges that the summary replaces.
    fn chosen(&self, draft: &Draft<'_>, budget: &Budget) -> Vec<usize> {
        let runs = RunStarts::of(draft);
        let turns = runs.turns(draft.exchanges());
        let fits = |keep: Keep| {
            let chosen = self.outside(draft, &runs, &turns, keep);
            let weight = draft.weight_of(&chosen);
            let summary = self.summary.map_or(Tokens::ZERO, |summary| {
                summary.most(budget).min(Tokens(weight.0 / 2))
            });
            draft.tokens().minus(weight) + summary <= budget.target
        };
        let recent = self.keep_recent_turns.clamp(1, turns.len().max(1));
        let wanted = Keep {
            first: self.keep_first_turns.min(turns.len()),
            recent,
        };
        // Keeping fewer turns is smaller, so both numbers are found by bisection.
        let recent = most_that(1..=recent, |recent| fits(Keep { recent, ..wanted }));
        let keep = match recent {
            Some(recent) => Keep { recent, ..wanted },
            None => {
                let first = most_that(0..=wanted.first, |first| fits(Keep { first, recent: 1 }));
                Keep {
                    first: first.unwrap_or(0),
                    recent: 1,
                }
            }
        };
        let chosen = self.outside(draft, &runs, &turns, keep);
        let kinds = chosen
            .iter()
            .filter_map(|index| draft.exchanges().get(*index));
        let is_new =
            |kind: ExchangeKind| !matches!(kind, ExchangeKind::Summary | ExchangeKind::Gap);
        let (new, old): (Vec<_>, Vec<_>) = kinds.partition(|found| is_new(found.kind));
        let summaries = old
            .iter()
            .filter(|found| found.kind == ExchangeKind::Summary);
        // A single summary contains nothing new.
        if new.is_empty() && summaries.count() < 2 {
            return Vec::new();
        }
        chosen
    }

    /// Returns the coverable exchanges outside the kept turns. Returns none if there is a summary
    /// that cannot be covered yet, because there would be two summaries.
    fn outside(
        &self,
        draft: &Draft<'_>,
        runs: &RunStarts,
        turns: &[usize],
        keep: Keep,
    ) -> Vec<usize> {
        let exchanges = draft.exchanges();
        let newest = runs.newest();
        let start = match keep.first {
            0 => newest + 1,
            first => turns.get(first - 1).map_or(exchanges.len(), |at| at + 1),
        };
        let end = turns.len().saturating_sub(keep.recent);
        let end = turns.get(end).copied().unwrap_or(exchanges.len());
        let mut chosen = Vec::new();
        for (index, exchange) in exchanges.iter().enumerate() {
            let is_summary = exchange.kind == ExchangeKind::Summary;
            let of_it = match self.of {
                Section::All => index < newest || (start..end).contains(&index),
                Section::Earlier => index < newest,
                Section::Newest => (start..end).contains(&index),
            };
            match draft.is_coverable(index) {
                true if is_summary || of_it => chosen.push(index),
                false if is_summary && draft.current(exchange.at.start).is_some() => {
                    return Vec::new();
                }
                _ => {}
            }
        }
        draft.with_their_answers(&chosen)
    }
}

impl RunStarts {
    pub(super) fn of(draft: &Draft<'_>) -> Self {
        let mut starts = Vec::new();
        // Whether a user message at this point begins a run.
        let mut answered = true;
        for (index, exchange) in draft.exchanges().iter().enumerate() {
            answered |= follows_gap(draft.items(), exchange.at.start);
            match exchange.kind {
                ExchangeKind::User => {
                    if answered {
                        starts.push(index);
                    }
                    answered = false;
                }
                ExchangeKind::Complete => answered = exchange.at.len() == 1,
                ExchangeKind::Summary | ExchangeKind::Gap => answered = true,
                ExchangeKind::Pending | ExchangeKind::Orphan => answered = false,
                ExchangeKind::System | ExchangeKind::Notice => {}
            }
        }
        Self(starts)
    }

    fn newest(&self) -> usize {
        self.0.last().copied().unwrap_or(0)
    }

    /// Returns the runs before the newest one, each from its start to the start of the next.
    fn earlier(&self) -> impl Iterator<Item = (usize, usize)> {
        let ends = self.0.iter().skip(1);
        self.0.iter().copied().zip(ends.copied())
    }

    /// Returns the model's turns in the newest run.
    pub(super) fn turns(&self, exchanges: &[Exchange]) -> Vec<usize> {
        let of_it = exchanges.iter().enumerate().skip(self.newest());
        let is_turn = |exchange: &Exchange| {
            matches!(
                exchange.kind,
                ExchangeKind::Complete | ExchangeKind::Pending
            )
        };
        of_it
            .filter(|(_, exchange)| is_turn(exchange))
            .map(|(index, _)| index)
            .collect()
    }
}

/// Checks whether messages were removed from the view directly before this position.
pub(super) fn follows_gap(items: &[Item], at: usize) -> bool {
    let seq = |at: usize| items.get(at).map(|item| item.seq);
    let before = at.checked_sub(1).and_then(seq);
    before.is_some_and(|before| Some(before.next()) != seq(at))
}

/// Returns the largest good number of a range in which every number below a good one is good.
fn most_that(
    range: std::ops::RangeInclusive<usize>,
    is_good: impl Fn(usize) -> bool,
) -> Option<usize> {
    let all: Vec<usize> = range.collect();
    let good = all.partition_point(|number| is_good(*number));
    good.checked_sub(1).and_then(|last| all.get(last).copied())
}
