//! Selects the content of a handover within the available tokens: the user's words, the state, the
//! rules and the changed files, then the calls, the newest first, until the tokens are used.

use std::cmp::Reverse;

use foldhash::HashSet;

use super::format::{self, Section};
use super::names::each_name;
use super::rows::Row;
use super::tokens::TokenBudget;
use super::user_words;

/// Shares of the tokens, in percent. Tokens that one part does not use go to the next.
const STATE: u64 = 10;
const RULES: u64 = 10;
const WORDS: u64 = 75;
const FORMER: u64 = 8;
const CHANGED: u64 = 8;
const NEWEST_FILES: u64 = 25;
/// The minimum number of tokens for the user's words in a small text.
const LEAST_WORDS: u64 = 120;
/// The minimum number of tokens for the state in a small text.
const LEAST_STATE: u64 = 60;
/// The minimum number of tokens for changed files in a small text.
const LEAST_FILES: u64 = 40;
/// The number of names beside a line, as long as there are further lines.
const NAMES: usize = 6;
/// The rank of files that were only read.
const READ: u8 = 2;

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
    for row in rows.iter_mut() {
        row.reset();
    }
    user_words::choose(rows, (all * WORDS / 100).max(LEAST_WORDS), &mut budget);
    let mut rows = RowSelection {
        all: rows,
        known: HashSet::default(),
        headed: vec![Section::Transcript],
    };
    rows.learn_words();
    for (section, share) in [
        (Section::State, (all * STATE / 100).max(LEAST_STATE)),
        (Section::Rules, all * RULES / 100),
        (Section::Former, all * FORMER / 100),
    ] {
        budget.share(share);
        rows.take(0, &mut budget, |row| row.section == section);
    }
    budget.share((all * CHANGED / 100).max(LEAST_FILES));
    for rank in 0..READ {
        rows.take(0, &mut budget, |row| row.rank == rank);
    }
    budget.share(all * NEWEST_FILES / 100);
    rows.take(NAMES, &mut budget, |row| row.section == Section::Files);
    // The rest goes to the user's words, then to what was done, then to further names.
    user_words::choose(rows.all, u64::MAX, &mut budget);
    budget.share(u64::MAX);
    for most in [NAMES, usize::MAX] {
        rows.take(most, &mut budget, |row| row.section.is_work());
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
