//! [`Sections`]: the first and the last turns of the newest run stay; what stands between them, and
//! the runs before it, become one summary. It weighs what it chooses; it never parts an exchange.

use crate::budget::Budget;
use crate::compaction::CompactionScope;
use crate::draft::Draft;
use crate::exchange::{Exchange, ExchangeKind};
use crate::item::Item;
use crate::plan::Trigger;
use crate::stage::Stage;
use crate::stages::summarize::Summarize;
use crate::stages::{Author, SummaryConfig};
use crate::tokens::Tokens;

/// Sums up what stands before the newest run and in its middle, once a plan is due.
///
/// Turns that are to stay do so as far as they fit the target beside a summary: else the oldest of
/// the last give way first, then the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sections {
    /// Which part of the view it sees to.
    pub of: Section,
    /// How many earlier runs are summed up; those before them leave without.
    pub scope: CompactionScope,
    /// Turns that stay from the start of the newest run.
    pub keep_first_turns: usize,
    /// Turns that stay from its end.
    pub keep_recent_turns: usize,
    /// How what leaves is summed up; `None` where it leaves without a summary.
    pub summary: Option<SummaryConfig>,
}

/// A part of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// All of it.
    All,
    /// The runs before the newest.
    Earlier,
    /// The newest run.
    Newest,
}

/// Where the runs of a view begin: indices of exchanges.
///
/// A run begins with the first user message, and with each that follows an answer, or a gap where
/// there may have been one: one that stands behind results was said during a run.
pub(super) struct Runs(Vec<usize>);

/// How many turns of the newest run stay.
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
    /// Drops the runs before those that the scope has room for.
    fn drop_beyond_scope(&self, draft: &mut Draft<'_>, budget: &Budget) {
        let runs = Runs::of(draft);
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
            if draft.tokens() <= budget.target || together.iter().any(|index| index >= end) {
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

    /// The exchanges that a summary is to stand for.
    fn chosen(&self, draft: &Draft<'_>, budget: &Budget) -> Vec<usize> {
        let runs = Runs::of(draft);
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
        let asked = Keep {
            first: self.keep_first_turns.min(turns.len()),
            recent,
        };
        // Fewer kept is lighter, so both are found by halving.
        let recent = most_that(1..=recent, |recent| fits(Keep { recent, ..asked }));
        let keep = match recent {
            Some(recent) => Keep { recent, ..asked },
            None => {
                let first = most_that(0..=asked.first, |first| fits(Keep { first, recent: 1 }));
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
        // A summary alone has nothing new to it.
        if new.is_empty() && summaries.count() < 2 {
            return Vec::new();
        }
        chosen
    }

    /// What is outside the turns that stay and may leave; none where a summary stands that may not
    /// be covered yet, for there would be two.
    fn outside(&self, draft: &Draft<'_>, runs: &Runs, turns: &[usize], keep: Keep) -> Vec<usize> {
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

impl Runs {
    pub(super) fn of(draft: &Draft<'_>) -> Self {
        let mut starts = Vec::new();
        // Whether a user message that comes now would begin a run.
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

    /// The runs before the newest, each from its start to the start of the next.
    fn earlier(&self) -> impl Iterator<Item = (usize, usize)> {
        let ends = self.0.iter().skip(1);
        self.0.iter().copied().zip(ends.copied())
    }

    /// The model's turns in the newest run.
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

/// Whether something has left the view right before this place.
pub(super) fn follows_gap(items: &[Item], at: usize) -> bool {
    let seq = |at: usize| items.get(at).map(|item| item.seq);
    let before = at.checked_sub(1).and_then(seq);
    before.is_some_and(|before| Some(before.next()) != seq(at))
}

/// The largest number of a range that is good, where every number below a good one is good.
fn most_that(
    range: std::ops::RangeInclusive<usize>,
    is_good: impl Fn(usize) -> bool,
) -> Option<usize> {
    let (mut low, mut high) = (*range.start(), *range.end());
    if !is_good(low) {
        return None;
    }
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match is_good(middle) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    Some(low)
}
