//! Selects the content of a handover within the available tokens. The state, the rules and the
//! user's words come first, then what was done, the newest first, until the tokens are used.

use std::cmp::Reverse;

use foldhash::{HashMap, HashSet};

use super::files::FileRecord;
use super::format::{self, Section, SectionItem};
use super::names;
use super::tokens::TokenBudget;
use super::user_words::UserWords;
use super::work::{LineKind, Work};

/// Shares of the tokens, in percent. Tokens that one part does not use go to the next.
const STATE: u64 = 10;
const RULES: u64 = 10;
const WORDS: u64 = 60;
const FORMER: u64 = 8;
const STATEMENTS: u64 = 7;
const CHANGED: u64 = 8;
const CALLS: u64 = 10;
const NEWEST_FILES: u64 = 45;
/// The minimum number of tokens for the user's words in a small text.
const LEAST_WORDS: u64 = 120;
/// The minimum number of tokens for changed files in a small text.
const LEAST_FILES: u64 = 40;
/// The maximum number of names for one file, and if there are tokens left in the end.
const NAMES_OF_FILE: usize = 6;
const MORE_NAMES_OF_FILE: usize = 16;

/// Returns a handover of at most `tokens` tokens, or `None` if there is no content.
pub(crate) fn select(
    work: &mut Work,
    words: &mut UserWords,
    tokens: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    let mut budget = TokenBudget::new(tokens, count);
    if !budget.spend(&format::write(&[])) {
        return None;
    }
    let all = budget.left();
    for line in &mut work.lines {
        line.is_kept = false;
    }
    words.reset();

    let state = take_items(
        Section::State,
        work.state.items(),
        all * STATE / 100,
        &mut budget,
    );
    let rules = work.rules.iter().map(SectionItem::note).collect();
    let rules = take_items(Section::Rules, rules, all * RULES / 100, &mut budget);
    words.choose((all * WORDS / 100).max(LEAST_WORDS), &mut budget);
    let has_former = work.lines.iter().any(|line| line.kind == LineKind::Former);
    if has_former {
        budget.spend_tokens(
            heading(Section::Former, &budget) + heading(Section::Transcript, &budget),
        );
    }
    for (kind, share) in [
        (LineKind::Former, FORMER),
        (LineKind::Statement, STATEMENTS),
    ] {
        budget.share(all * share / 100);
        take_lines(work, |of| of == kind, &mut budget);
    }
    let mut files = ListedFiles::default();
    budget.share((all * CHANGED / 100).max(LEAST_FILES));
    files.take_changed(work, &mut budget);
    budget.share(all * CALLS / 100);
    take_lines(work, |of| of == LineKind::Call, &mut budget);
    budget.share(all * NEWEST_FILES / 100);
    files.take_newest(work, words, NAMES_OF_FILE, &mut budget);
    // The rest goes to the user's words, then to what was done.
    words.choose(u64::MAX, &mut budget);
    budget.share(u64::MAX);
    take_lines(work, |of| of != LineKind::Aside, &mut budget);
    take_lines(work, |_| true, &mut budget);
    files.take_newest(work, words, MORE_NAMES_OF_FILE, &mut budget);

    let mut transcript: Vec<(usize, SectionItem)> = words.items().collect();
    let kept = |is_former: bool| {
        let lines = work.lines.iter().filter(move |line| line.is_kept);
        lines
            .filter(move |line| (line.kind == LineKind::Former) == is_former)
            .map(|line| (line.order, line.item()))
    };
    transcript.extend(kept(false));
    transcript.sort_by_key(|(order, _)| *order);
    let transcript = transcript.into_iter().map(|(_, item)| item).collect();
    let sections = [
        (Section::Former, kept(true).map(|(_, item)| item).collect()),
        (Section::Transcript, transcript),
        (Section::State, state),
        (Section::Rules, rules),
        (Section::Files, files.items(work)),
    ];
    let is_empty = sections.iter().all(|(_, items)| items.is_empty());
    (!is_empty).then(|| format::write(&sections))
}

fn heading(section: Section, budget: &TokenBudget<'_>) -> u64 {
    budget.count(section.heading()) + 1
}

/// Takes the first items of a section, up to a share of the tokens.
fn take_items(
    section: Section,
    items: Vec<SectionItem>,
    share: u64,
    budget: &mut TokenBudget<'_>,
) -> Vec<SectionItem> {
    budget.share(share);
    let mut taken = Vec::new();
    for item in items {
        if budget.is_spent() {
            break;
        }
        let first = if taken.is_empty() {
            heading(section, budget)
        } else {
            0
        };
        if budget.spend_tokens(first + budget.count(&item.written())) {
            taken.push(item);
        }
    }
    taken
}

/// Keeps lines of some kinds, the newest first.
fn take_lines(work: &mut Work, is_wanted: impl Fn(LineKind) -> bool, budget: &mut TokenBudget<'_>) {
    for line in work.lines.iter_mut().rev() {
        if line.is_kept || !is_wanted(line.kind) {
            continue;
        }
        if budget.is_spent() {
            return;
        }
        let cost = match line.cost {
            Some(cost) => cost,
            None => budget.count(&line.item().written()),
        };
        line.cost = Some(cost);
        line.is_kept = budget.spend_tokens(cost);
    }
}

/// The chosen files, with the chosen names of each.
#[derive(Default)]
struct ListedFiles {
    names: HashMap<usize, Vec<String>>,
}

impl ListedFiles {
    /// Chooses the files that were changed or removed: those that existed before first, since many
    /// new ones are scripts to try something, and the newest first.
    fn take_changed(&mut self, work: &Work, budget: &mut TokenBudget<'_>) {
        for index in order(work) {
            let file = work.files.all.get(index);
            if budget.is_spent() {
                return;
            }
            if file.is_some_and(FileRecord::is_touched) {
                self.take_file(work, index, budget);
            }
        }
    }

    /// Chooses a file. Returns `false` if there are not enough tokens.
    fn take_file(&mut self, work: &Work, index: usize, budget: &mut TokenBudget<'_>) -> bool {
        let Some(file) = work.files.all.get(index) else {
            return false;
        };
        if self.names.contains_key(&index) {
            return true;
        }
        let first = if self.names.is_empty() {
            heading(Section::Files, budget)
        } else {
            0
        };
        let cost = budget.count(&SectionItem::note(file.words()).written());
        let is_taken = budget.spend_tokens(first + cost);
        if is_taken {
            self.names.insert(index, Vec::new());
        }
        is_taken
    }

    /// Chooses files and names in them that the text does not contain yet, those used last first. A
    /// name stands beside its file.
    fn take_newest(
        &mut self,
        work: &Work,
        words: &UserWords,
        names_max: usize,
        budget: &mut TokenBudget<'_>,
    ) {
        let covered = covered(work, words);
        let files = work.files.all.iter().enumerate();
        let files = files.map(|(index, file)| (file.last, None, index));
        let exists = |index: usize| {
            work.files
                .all
                .get(index)
                .is_some_and(|file| !file.is_removed())
        };
        let names = work.names.all().filter(|(.., file)| exists(*file));
        let names = names.map(|(last, word, file)| (last, Some(word), file));
        let mut all: Vec<(usize, Option<&str>, usize)> = files.chain(names).collect();
        all.sort_unstable_by_key(|(last, word, file)| (Reverse(*last), *word, *file));
        for (_, word, index) in all {
            if budget.is_spent() {
                return;
            }
            if word.is_some_and(|word| covered.contains(word))
                || !self.take_file(work, index, budget)
            {
                continue;
            }
            if let (Some(word), Some(names)) = (word, self.names.get_mut(&index))
                && names.len() < names_max
                && !names.iter().any(|name| name == word)
                && budget.spend(&format!(", {word}"))
            {
                names.push(word.to_owned());
            }
        }
    }

    fn items(&self, work: &Work) -> Vec<SectionItem> {
        let listed = order(work).into_iter().filter_map(|index| {
            let names = self.names.get(&index)?;
            let mut item = work.files.all.get(index)?.words();
            if !names.is_empty() {
                item.push_str(": ");
                item.push_str(&names.join(", "));
            }
            Some(SectionItem::note(item))
        });
        listed.collect()
    }
}

/// Returns the names in the chosen words and lines.
fn covered(work: &Work, words: &UserWords) -> HashSet<String> {
    let mut covered: HashSet<String> = HashSet::default();
    let mut cover = |text: &str| {
        names::each(text, &mut |word| {
            covered.insert(word.to_owned());
        });
    };
    for (_, item) in words.items() {
        cover(&item.text);
    }
    for line in work.lines.iter().filter(|line| line.is_kept) {
        cover(&line.text);
    }
    covered
}

/// Returns the indices of all files: those that were changed first, and among equals the newest.
fn order(work: &Work) -> Vec<usize> {
    let mut order: Vec<usize> = (0..work.files.all.len()).collect();
    order.sort_by_key(|index| {
        work.files.all.get(*index).map(|file| {
            let rank = match (file.is_changed(), file.is_new()) {
                (true, false) => 0,
                (true, true) => 1,
                (false, _) => 2,
            };
            (rank, Reverse(file.last))
        })
    });
    order
}
