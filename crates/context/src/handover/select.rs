//! Selects the content of a handover within the available tokens: the state, the rules, the user's
//! words and the changed files, then what was done and the names that are likely needed next, the
//! newest first, until the tokens are used.

use std::cmp::Reverse;

use foldhash::{HashMap, HashSet};

use super::files::{FileList, FileRecord};
use super::format::{self, Section, SectionItem};
use super::names::{self, Names};
use super::tokens::TokenBudget;
use super::user_words::UserWords;
use super::work::{NAMES, Work, WorkLine};

/// Shares of the tokens, in percent. Tokens that one part does not use go to the next.
const STATE: u64 = 10;
const RULES: u64 = 10;
const WORDS: u64 = 60;
const FORMER: u64 = 8;
const CHANGED: u64 = 8;
const NEWEST_FILES: u64 = 45;
/// The minimum number of tokens for the user's words in a small text.
const LEAST_WORDS: u64 = 120;
/// The minimum number of tokens for changed files in a small text.
const LEAST_FILES: u64 = 40;
/// The maximum number of names for one file, before the lines of calls are chosen.
const NAMES_OF_FILE: usize = 6;
/// The maximum number of names from the result of one call, and if there are tokens left in the end.
const NAMES_OF_RESULT: [usize; 2] = [24, 200];

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
        lines,
        files,
        names,
        rules,
        state,
        ..
    } = work;
    lines.iter_mut().for_each(WorkLine::reset);
    words.reset();

    budget.share(all * STATE / 100);
    let state = take_items(Section::State, state.items(), &mut budget);
    budget.share(all * RULES / 100);
    let rules = rules.iter().map(SectionItem::note).collect();
    let rules = take_items(Section::Rules, rules, &mut budget);
    words.choose((all * WORDS / 100).max(LEAST_WORDS), &mut budget);
    if lines.iter().any(|line| line.is_former) {
        budget.spend_tokens(
            heading(Section::Former, &budget) + heading(Section::Transcript, &budget),
        );
        budget.share(all * FORMER / 100);
        take_lines(lines, true, &mut budget);
    }
    let mut listed = ListedFiles::of(files, names);
    budget.share((all * CHANGED / 100).max(LEAST_FILES));
    listed.take_changed(&mut budget);
    budget.share(all * NEWEST_FILES / 100);
    let named = known(lines, words, &listed);
    listed.take_newest(&named, NAMES_OF_FILE, 0, &mut budget);
    // The rest goes to the user's words, then to what was done.
    words.choose(u64::MAX, &mut budget);
    budget.share(u64::MAX);
    take_lines(lines, false, &mut budget);
    take_names(lines, words, &mut listed, &mut budget);

    let mut transcript: Vec<(usize, SectionItem)> = words.items().collect();
    let kept = |is_former: bool| {
        let kept = lines.iter();
        kept.filter(move |line| line.is_kept && line.is_former == is_former)
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
        (Section::Files, listed.items()),
    ];
    let is_empty = sections.iter().all(|(_, items)| items.is_empty());
    (!is_empty).then(|| format::write(&sections))
}

fn heading(section: Section, budget: &TokenBudget<'_>) -> u64 {
    budget.count(section.heading()) + 1
}

/// Takes the first items of a section.
fn take_items(
    section: Section,
    items: Vec<SectionItem>,
    budget: &mut TokenBudget<'_>,
) -> Vec<SectionItem> {
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

/// Keeps lines, the newest first.
fn take_lines(lines: &mut [WorkLine<'_>], is_former: bool, budget: &mut TokenBudget<'_>) {
    let lines = lines.iter_mut().rev();
    for line in lines.filter(|line| line.is_former == is_former) {
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

/// Adds further names of files, and names in the results of the kept calls, that the text does not
/// contain yet: the newest first.
fn take_names(
    lines: &mut [WorkLine<'_>],
    words: &UserWords,
    files: &mut ListedFiles<'_>,
    budget: &mut TokenBudget<'_>,
) {
    let mut known = known(lines, words, files);
    files.next = 0;
    for most in NAMES_OF_RESULT {
        for line in lines.iter_mut().rev().filter(|line| line.is_kept) {
            files.take_newest(&known, usize::MAX, line.order, budget);
            if budget.is_spent() {
                return;
            }
            let mut found = Vec::new();
            names::each_of_result(line.result, &mut |name| {
                if line.names.len() + found.len() < most && known.insert(name.to_owned()) {
                    found.push(name.to_owned());
                }
            });
            if line.names.is_empty() && !found.is_empty() && !budget.spend(NAMES) {
                continue;
            }
            found.retain(|name| budget.spend(&format!(", {name}")));
            line.names.append(&mut found);
        }
        files.take_newest(&known, usize::MAX, 0, budget);
    }
}

/// Returns the names in the chosen words, lines and files.
fn known(lines: &[WorkLine<'_>], words: &UserWords, files: &ListedFiles<'_>) -> HashSet<String> {
    let mut known: HashSet<String> = HashSet::default();
    let mut learn = |text: &str| {
        names::each_of_result(text, &mut |name| {
            known.insert(name.to_owned());
        });
    };
    words.items().for_each(|(_, item)| learn(&item.text));
    files.items().iter().for_each(|item| learn(&item.text));
    let kept = lines.iter().filter(|line| line.is_kept);
    kept.for_each(|line| learn(&line.text));
    known
}

/// The chosen files, with the chosen names of each.
struct ListedFiles<'w> {
    files: &'w FileList,
    names: HashMap<usize, Vec<&'w str>>,
    /// The files and the names in them, those that were used last first.
    candidates: Vec<(Reverse<usize>, Option<&'w str>, usize)>,
    /// The first candidate that was not tried yet.
    next: usize,
}

impl<'w> ListedFiles<'w> {
    fn of(files: &'w FileList, names: &'w Names) -> Self {
        let all = files.all.iter().enumerate();
        let all = all.map(|(index, file)| (Reverse(file.last), None, index));
        let exists = |index: &usize| files.all.get(*index).is_some_and(|file| !file.is_removed());
        let names = names.all().filter(|(.., file)| exists(file));
        let names = names.map(|(last, word, file)| (Reverse(last), Some(word), file));
        let mut candidates: Vec<_> = all.chain(names).collect();
        candidates.sort_unstable();
        Self {
            files,
            names: HashMap::default(),
            candidates,
            next: 0,
        }
    }

    /// Chooses the files that were changed or removed: those that existed before first, since many
    /// new ones are scripts to try something, and the newest first.
    fn take_changed(&mut self, budget: &mut TokenBudget<'_>) {
        for (index, file) in self.in_order() {
            if budget.is_spent() {
                return;
            }
            if file.is_touched() {
                self.take_file(index, budget);
            }
        }
    }

    /// Chooses a file. Returns `false` if there are not enough tokens.
    fn take_file(&mut self, index: usize, budget: &mut TokenBudget<'_>) -> bool {
        let Some(file) = self.files.all.get(index) else {
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

    /// Chooses files that were used at a position from `since` on, and names in them that are not
    /// `known`, those used last first. A name stands beside its file.
    fn take_newest(
        &mut self,
        known: &HashSet<String>,
        names_max: usize,
        since: usize,
        budget: &mut TokenBudget<'_>,
    ) {
        while let Some((last, word, index)) = self.candidates.get(self.next).copied() {
            if budget.is_spent() || last.0 < since {
                return;
            }
            self.next += 1;
            let is_known = word.is_some_and(|word| known.contains(word));
            if is_known || !self.take_file(index, budget) {
                continue;
            }
            if let (Some(word), Some(names)) = (word, self.names.get_mut(&index))
                && names.len() < names_max
                && !names.contains(&word)
                && budget.spend(&format!(", {word}"))
            {
                names.push(word);
            }
        }
    }

    fn items(&self) -> Vec<SectionItem> {
        let listed = self.in_order().into_iter().filter_map(|(index, file)| {
            let names = self.names.get(&index)?;
            let mut item = file.words();
            if !names.is_empty() {
                item.push_str(": ");
                item.push_str(&names.join(", "));
            }
            Some(SectionItem::note(item))
        });
        listed.collect()
    }

    /// Returns all files: those that were changed first, and among equals the newest.
    fn in_order(&self) -> Vec<(usize, &'w FileRecord)> {
        let mut order: Vec<(usize, &FileRecord)> = self.files.all.iter().enumerate().collect();
        order.sort_by_key(|(_, file)| {
            let rank = match (file.is_changed(), file.is_new()) {
                (true, false) => 0,
                (true, true) => 1,
                (false, _) => 2,
            };
            (rank, Reverse(file.last))
        });
        order
    }
}
