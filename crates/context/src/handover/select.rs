//! Selects the content of a handover within the available tokens: the state, the rules, the user's
//! words and the changed files, then what was done, the newest first, until the tokens are used.

use std::cmp::Reverse;

use foldhash::HashSet;

use super::format::{self, Section, SectionItem};
use super::names::each_name;
use super::rows::Row;
use super::tokens::TokenBudget;
use super::user_words::UserWords;
use super::work::Work;

/// Shares of the tokens, in percent. Tokens that one part does not use go to the next.
const STATE: u64 = 10;
const RULES: u64 = 10;
const WORDS: u64 = 60;
const FORMER: u64 = 8;
const CHANGED: u64 = 8;
const NEWEST_FILES: u64 = 20;
/// The minimum number of tokens for the user's words in a small text.
const LEAST_WORDS: u64 = 120;
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
    let Work {
        rows,
        rules,
        state,
        known,
    } = work;
    rows.iter_mut().for_each(Row::reset);
    words.reset();

    budget.share(all * STATE / 100);
    let state = first(Section::State, state, &mut budget);
    budget.share(all * RULES / 100);
    let rules = first(Section::Rules, rules, &mut budget);
    words.choose((all * WORDS / 100).max(LEAST_WORDS), &mut budget);
    let mut rows = RowSelection::new(rows, known, words);
    budget.share(all * FORMER / 100);
    rows.take(0, &mut budget, |row| row.section == Section::Former);
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
        rows.take(most, &mut budget, |row| row.section != Section::Former);
    }

    let of = |section| {
        let rows = rows.all.iter();
        rows.filter(move |row| row.is_kept && row.section == section)
    };
    let mut transcript: Vec<_> = words.items().collect();
    transcript.extend(of(Section::Transcript).map(|row| (row.order, row.item())));
    transcript.sort_by_key(|(order, _)| *order);
    let mut files: Vec<&Row<'_>> = of(Section::Files).collect();
    files.sort_by_key(|row| (row.rank, Reverse(row.order)));
    let sections = [
        (
            Section::Former,
            of(Section::Former).map(Row::item).collect(),
        ),
        (
            Section::Transcript,
            transcript.into_iter().map(|(_, item)| item).collect(),
        ),
        (Section::State, state),
        (Section::Rules, rules),
        (Section::Files, files.into_iter().map(Row::item).collect()),
    ];
    let is_empty = sections
        .iter()
        .all(|(_, items): &(_, Vec<_>)| items.is_empty());
    (!is_empty).then(|| format::write(&sections))
}

/// The lines, of which some are kept.
struct RowSelection<'w, 't> {
    all: &'w mut [Row<'t>],
    /// The names that the handover contains already.
    known: HashSet<String>,
    /// The sections that need no further heading.
    headed: Vec<Section>,
}

impl<'w, 't> RowSelection<'w, 't> {
    fn new(all: &'w mut [Row<'t>], known: &HashSet<String>, words: &UserWords) -> Self {
        let mut known = known.clone();
        for (_, item) in words.items() {
            each_name(&item.text, &mut |name| {
                known.insert(name.to_owned());
                true
            });
        }
        Self {
            all,
            known,
            headed: vec![Section::Transcript],
        }
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

/// Returns the first items of a section.
fn first(
    section: Section,
    items: &[SectionItem],
    budget: &mut TokenBudget<'_>,
) -> Vec<SectionItem> {
    let mut cost = heading(section, budget);
    let mut kept = Vec::new();
    for item in items {
        if budget.is_spent() {
            break;
        }
        if budget.spend_tokens(cost + budget.count(&item.written())) {
            kept.push(item.clone());
            cost = 0;
        }
    }
    kept
}
