//! Selects the content of a handover within the available tokens: the user's words, the state, the
//! rules and the changed files, then the calls, the newest first, until the tokens are used.

use std::cmp::Reverse;

use foldhash::HashSet;

use super::format::{self, Section};
use super::names::each_name;
use super::rows::Row;
use super::tokens::TokenBudget;
use super::user_words::UserWords;
use super::work::Work;

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
    work: &mut Work<'_>,
    words: &mut UserWords,
    tokens: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    let mut budget = TokenBudget::new(tokens, count);
    if !budget.spend(&format::write(&[])) {
        return None;
    }
    let all = budget.left();
    work.rows.iter_mut().for_each(Row::reset);
    words.reset();
    let mut rows = RowSelection::new(work);
    words.choose((all * WORDS / 100).max(LEAST_WORDS), &mut budget);
    words.items().for_each(|(_, item)| rows.learn(&item.text));
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
    words.choose(u64::MAX, &mut budget);
    budget.share(u64::MAX);
    for most in [NAMES, usize::MAX] {
        rows.take(most, &mut budget, |row| row.section.is_work());
    }

    let mut items: Vec<_> = words
        .items()
        .map(|(order, item)| (Section::Transcript, u8::MAX, order, item))
        .collect();
    let kept = rows.all.iter().filter(|row| row.is_kept);
    items.extend(kept.map(|row| (row.section, row.rank, row.order, row.item())));
    items.sort_by_key(|(section, rank, order, _)| match section {
        Section::Former | Section::Transcript => (*section, *rank, *order, Reverse((0, 0))),
        // The most important and the newest ones are first.
        _ => (*section, *rank, (0, 0), Reverse(*order)),
    });
    let items: Vec<_> = items
        .into_iter()
        .map(|(section, .., item)| (section, item))
        .collect();
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

impl<'w, 't> RowSelection<'w, 't> {
    fn new(work: &'w mut Work<'t>) -> Self {
        Self {
            all: &mut work.rows,
            known: work.known.clone(),
            headed: vec![Section::Transcript],
        }
    }

    /// Records the names in a kept text.
    fn learn(&mut self, text: &str) {
        each_name(text, &mut |name| {
            self.known.insert(name.to_owned());
            true
        });
    }

    /// Keeps lines, the newest first, and adds names to each until it has `most`.
    fn take(
        &mut self,
        most: usize,
        budget: &mut TokenBudget<'_>,
        is_meant: impl Fn(&Row<'_>) -> bool,
    ) {
        for row in self.all.iter_mut().rev().filter(|row| is_meant(row)) {
            if budget.is_spent() {
                return;
            }
            if !row.is_kept {
                let is_headed = self.headed.contains(&row.section);
                let first = if is_headed {
                    0
                } else {
                    heading(row.section, budget)
                };
                row.keep(first, &mut self.known, budget);
                if row.is_kept && !is_headed {
                    self.headed.push(row.section);
                }
            }
            if row.is_kept {
                row.add_names(most, &mut self.known, budget);
            }
        }
    }
}

fn heading(section: Section, budget: &TokenBudget<'_>) -> u64 {
    budget.count(section.heading()) + 1
}
