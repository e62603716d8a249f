//! Selects the content of a handover within the available tokens: the user's words, the state, the
//! rules and the changed files, then the calls, the newest first, until the tokens are used.

use std::cmp::Reverse;

use foldhash::HashSet;

use super::format::{self, HEADINGS, Section};
use super::names::each_name;
use super::rows::{NameLimit, Row};
use super::tokens::TokenBudget;
use super::user_words;

/// The share of the user's words in the tokens, in percent, and the minimum in a small text. Tokens
/// that one part does not use go to the next.
const WORDS: (u64, u64) = (75, 120);
/// The shares of lines without names: of a section, or of files of one rank.
const LINES: [(Section, u8, (u64, u64)); 5] = [
    (Section::State, 0, (10, 60)),
    (Section::Rules, 0, (10, 0)),
    (Section::Former, 0, (8, 0)),
    (Section::Files, 0, (8, 40)),
    (Section::Files, 1, (8, 40)),
];
/// The share of the newest files with names.
const FILES: (u64, u64) = (25, 0);
/// The names beside a line: none for the shares of lines, some as long as there are further lines, then
/// all of them, and at last the numbers of lines.
const NO_NAMES: NameLimit = (0, false);
const SOME_NAMES: NameLimit = (6, false);
const ALL_NAMES: NameLimit = (usize::MAX, false);
const ALL_NUMBERS: NameLimit = (usize::MAX, true);

/// Returns a handover of at most `tokens` tokens, or `None` if there is no content.
pub(crate) fn select(
    rows: &mut [Row<'_>],
    tokens: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    let mut budget = TokenBudget::new(tokens, count);
    let has = |section: &Section| rows.iter().any(|row| row.section == *section);
    let headings = HEADINGS
        .iter()
        .filter(|(section, _)| *section != Section::Transcript && has(section));
    let frame: u64 = headings.map(|(_, heading)| count(heading)).sum();
    if !budget.spend(count(&format::write(&[])) + frame) {
        return None;
    }
    let all = budget.left;
    let share = |(percent, least): (u64, u64)| (all * percent / 100).max(least);
    for row in rows.iter_mut() {
        row.reset();
    }
    let words = share(WORDS);
    user_words::choose(rows, (words, words), &mut budget);
    let mut known = HashSet::default();
    rows.iter().for_each(|row| learn(row, &mut known));
    for (section, rank, part) in LINES {
        budget.share(share(part));
        take(rows, NO_NAMES, &mut known, &mut budget, |row| {
            (row.section, row.rank) == (section, rank)
        });
    }
    budget.share(share(FILES));
    take(rows, SOME_NAMES, &mut known, &mut budget, |row| {
        row.section == Section::Files
    });
    // The rest goes to the user's words, then to what was done, then to further names.
    user_words::choose(rows, (u64::MAX, words), &mut budget);
    budget.share(u64::MAX);
    for limit in [SOME_NAMES, ALL_NAMES, ALL_NUMBERS] {
        take(rows, limit, &mut known, &mut budget, |row| {
            matches!(row.section, Section::Transcript | Section::Files)
        });
    }
    let mut kept: Vec<&Row<'_>> = rows.iter().filter(|row| row.is_kept).collect();
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

/// Keeps lines that are not the user's, the newest first, and adds names that are not `known` to each.
fn take(
    rows: &mut [Row<'_>],
    limit: NameLimit,
    known: &mut HashSet<String>,
    budget: &mut TokenBudget<'_>,
    is_meant: impl Fn(&Row<'_>) -> bool,
) {
    let rows = rows.iter_mut().rev();
    for row in rows.filter(|row| !row.is_user && is_meant(row)) {
        if budget.is_spent() {
            return;
        }
        if !row.is_kept {
            row.keep(budget);
            learn(row, known);
        }
        if row.is_kept {
            row.add_names(limit, known, budget);
        }
    }
}

/// Records the names in an entry, if it is kept.
fn learn(row: &Row<'_>, known: &mut HashSet<String>) {
    if row.is_kept {
        each_name(&row.item().text, true, &mut |name| {
            known.insert(name.to_owned());
            true
        });
    }
}
