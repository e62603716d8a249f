//! Selects the content of a handover within the available tokens: the user's words, the state, the
//! rules and the changed files, then the calls, the newest first, until the tokens are used.

use std::cmp::Reverse;

use foldhash::HashSet;

use super::format::{self, Section};
use super::names::each_name;
use super::rows::Row;
use super::tokens::TokenBudget;
use super::user_words;

/// The share of the user's words in the tokens, in percent, and the minimum in a small text. Tokens
/// that one part does not use go to the next.
const WORDS: (u64, u64) = (75, 120);
/// The shares of lines without names: of a section, or of files of one rank.
const LINES: [(Section, u8, (u64, u64)); 5] = [
    (Section::State, u8::MAX, (10, 60)),
    (Section::Rules, u8::MAX, (10, 0)),
    (Section::Former, u8::MAX, (8, 0)),
    (Section::Files, 0, (8, 40)),
    (Section::Files, 1, (8, 0)),
];
/// The share of the newest files with names.
const FILES: (u64, u64) = (25, 0);
/// The number of names beside a line, as long as there are further lines.
const NAMES: usize = 6;

/// Returns a handover of at most `tokens` tokens, or `None` if there is no content.
pub(crate) fn select(
    rows: &mut [Row<'_>],
    tokens: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    let mut budget = TokenBudget::new(tokens, count);
    if !budget.spend(budget.count(&format::write(&[]))) {
        return None;
    }
    let all = budget.left;
    let share = |(percent, least): (u64, u64)| (all * percent / 100).max(least);
    for row in rows.iter_mut() {
        row.reset();
    }
    user_words::choose(rows, share(WORDS), &mut budget);
    let mut rows = RowSelection {
        all: rows,
        known: HashSet::default(),
        headed: vec![Section::Transcript],
    };
    rows.learn_words();
    for (section, rank, part) in LINES {
        budget.share(share(part));
        rows.take(0, &mut budget, |row| (row.section, row.rank) == (section, rank));
    }
    budget.share(share(FILES));
    rows.take(NAMES, &mut budget, |row| row.section == Section::Files);
    // The rest goes to the user's words, then to what was done, then to further names.
    user_words::choose(rows.all, u64::MAX, &mut budget);
    budget.share(u64::MAX);
    for most in [NAMES, usize::MAX] {
        rows.take(most, &mut budget, |row| {
            matches!(row.section, Section::Transcript | Section::Files)
        });
    }

    let mut kept: Vec<&Row<'_>> = rows.all.iter().filter(|row| row.is_kept).collect();
    kept.sort_by_key(|row| match row.section {
        Section::Former | Section::Transcript => {
            (row.section, row.rank, row.order, Reverse((0, 0)))
        }
        // The most important and the newest ones are first.
        _ => (row.section, row.rank, (0, 0), Reverse(row.order)),
    });
    let items: Vec<_> = kept.iter().map(|row| (row.section, row.item())).collect();
    (!items.is_empty()).then(|| format::write(&items))
}

/// The lines to choose from.
struct RowSelection<'w, 't> {
    all: &'w mut [Row<'t>],
    /// The names that the handover contains already.
    known: HashSet<String>,
    /// The sections that need no further heading.
    headed: Vec<Section>,
}

impl RowSelection<'_, '_> {
    /// Records the names in the user's kept words.
    fn learn_words(&mut self) {
        for row in self.all.iter().filter(|row| row.is_user && row.is_kept) {
            learn(row, &mut self.known);
        }
    }

    /// Keeps lines, the newest first, and adds names to each until it has `most`.
    fn take(
        &mut self,
        most: usize,
        budget: &mut TokenBudget<'_>,
        is_meant: impl Fn(&Row<'_>) -> bool,
    ) {
        let rows = self.all.iter_mut().rev();
        for row in rows.filter(|row| !row.is_user && is_meant(row)) {
            if budget.is_spent() {
                return;
            }
            if !row.is_kept {
                let is_headed = self.headed.contains(&row.section);
                let heading = if is_headed {
                    0
                } else {
                    budget.count(row.section.heading()) + 1
                };
                row.keep(heading, u64::MAX, budget);
                if row.is_kept {
                    self.headed.push(row.section);
                    learn(row, &mut self.known);
                }
            }
            if row.is_kept {
                row.add_names(most, &mut self.known, budget);
            }
        }
    }
}

/// Records the names in a kept entry.
fn learn(row: &Row<'_>, known: &mut HashSet<String>) {
    each_name(&row.item().text, true, &mut |name| {
        known.insert(name.to_owned());
        true
    });
}
