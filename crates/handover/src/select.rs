//! Selects the content of a handover within the available tokens. Each kind of content has a share;
//! unused tokens go to the next kind.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};

use crate::file_actions::FileActions;
use crate::format::{self, Section, SectionItem};
use crate::names::{self, NameKind};
use crate::story::{LineKind, Story, StoryLine};
use crate::tokens::TokenBudget;
use crate::user_words::UserWords;

/// Shares of the tokens, in percent. The user's words come first, in steps that each leave some
/// tokens to the next one.
const STATE: u64 = 10;
const RULES: u64 = 28;
const SHORT: u64 = 48;
const WHOLE: u64 = 56;
const SAID: u64 = 57;
const FORMER: u64 = 6;
const FINDINGS: u64 = 7;
const CALLS: u64 = 6;
const FILES: u64 = 6;
const NAMES: u64 = 45;
/// The maximum share of names without a file.
const BARE_NAMES: u64 = 3;
/// The maximum number of tokens of names without a file.
const BARE_NAMES_MAX: u64 = 80;
/// The minimum number of tokens for changed files in a small text.
const LEAST_FILES: u64 = 40;
/// The minimum number of tokens for the user's words in a small text.
const LEAST_SAID: u64 = 120;
/// How much the length of a name reduces its rank: 0 not at all, 1 in proportion.
const DENSITY: f64 = 0.6;
/// The additional cost of a separate line compared with an entry in a list.
const LINE: u64 = 3;
/// Names less likely than this are only chosen from tokens that are left over.
const LIKELY: f64 = 0.03;
/// The minimum likelihood of a chosen name.
const LEAST: f64 = 0.002;
/// The maximum number of names for one file.
const NAMES_OF_FILE: usize = 6;

/// Returns a handover of at most `tokens` tokens, or `None` if there is no content.
pub(crate) fn select(
    story: &Story<'_>,
    user_words: &mut UserWords,
    tokens: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    let mut budget = TokenBudget::new(tokens, count);
    if !budget.spend(&format::write(&[])) {
        return None;
    }
    let all = budget.left();
    user_words.reset();
    let lines = |section, kind| SectionLines::of(section, &story.lines, kind);
    let mut former = lines(Section::Former, LineKind::Former);
    let mut findings = lines(Section::Transcript, LineKind::Finding);
    let mut calls = lines(Section::Transcript, LineKind::Call);
    let bare = (all * BARE_NAMES / 100).min(BARE_NAMES_MAX);
    let mut map = Map::of(story, bare);
    let share = |percent: u64| all * percent / 100;

    if story.lines.iter().any(|line| line.kind == LineKind::Former) {
        budget.spend_tokens(heading(Section::Transcript, &budget));
    }
    budget.share(share(STATE));
    let mut state = Vec::new();
    for item in story.state.items() {
        let first = if state.is_empty() {
            heading(Section::State, &budget)
        } else {
            0
        };
        if budget.spend_tokens(first + budget.count(&item.written())) {
            state.push(item);
        }
    }
    let up_to = |budget: &mut TokenBudget<'_>, percent: u64| {
        let spent = all - budget.left();
        budget.share(share(percent).max(LEAST_SAID).saturating_sub(spent));
    };
    up_to(&mut budget, RULES);
    user_words.spend_on_rules(&mut budget);
    up_to(&mut budget, SHORT);
    user_words.spend_on_short(&mut budget);
    up_to(&mut budget, WHOLE);
    user_words.spend_on_whole(&mut budget);
    up_to(&mut budget, SAID);
    user_words.spend_on_inner_rules(&mut budget);
    user_words.spend_on_sentences(&mut budget);
    for (lines, percent) in [
        (&mut former, FORMER),
        (&mut findings, FINDINGS),
        (&mut calls, CALLS),
    ] {
        budget.share(share(percent));
        lines.spend(&mut budget);
    }
    map.cover(user_words, &[&former, &findings, &calls]);
    budget.share(share(FILES).max(LEAST_FILES));
    map.spend_on_changed(&mut budget);
    budget.share(share(NAMES));
    map.spend(&mut budget, LIKELY);
    // Distribute the unused tokens.
    budget.share(u64::MAX);
    user_words.spend_on_rules(&mut budget);
    user_words.spend_on_short(&mut budget);
    user_words.spend_on_whole(&mut budget);
    user_words.spend_on_inner_rules(&mut budget);
    user_words.spend_on_sentences(&mut budget);
    for lines in [&mut former, &mut findings, &mut calls] {
        lines.spend(&mut budget);
    }
    map.cover(user_words, &[&former, &findings, &calls]);
    map.spend(&mut budget, LEAST);
    for lines in [&mut former, &mut findings, &mut calls] {
        lines.fill(&mut budget);
    }

    let mut transcript = user_words.items();
    transcript.extend(findings.items());
    transcript.extend(calls.items());
    transcript.sort_by_key(|(order, _)| *order);
    let (files, names) = map.items();
    let in_order = |items: Vec<(usize, SectionItem)>| {
        items
            .into_iter()
            .map(|(_, item)| item)
            .collect::<Vec<SectionItem>>()
    };
    let sections = [
        (Section::Former, in_order(former.items())),
        (Section::Transcript, in_order(transcript)),
        (Section::State, state),
        (Section::Files, files),
        (Section::Names, names),
    ];
    let is_empty = sections.iter().all(|(_, items)| items.is_empty());
    (!is_empty).then(|| format::write(&sections))
}

fn heading(section: Section, budget: &TokenBudget<'_>) -> u64 {
    budget.count(section.heading()) + 1
}

/// The lines of one kind, and the choice among them.
struct SectionLines<'n> {
    section: Section,
    lines: &'n [StoryLine],
    /// Indices of the lines, ordered by worth in proportion to length.
    order: Vec<usize>,
    /// The position in `order` up to which lines have been chosen.
    next: usize,
    kept: Vec<usize>,
}

impl<'n> SectionLines<'n> {
    fn of(section: Section, lines: &'n [StoryLine], kind: LineKind) -> Self {
        let density = |n: &usize| lines.get(*n).map_or(0.0, StoryLine::density);
        let is_of_kind = |n: &usize| lines.get(*n).is_some_and(|line| line.kind == kind);
        let mut order: Vec<usize> = (0..lines.len()).filter(is_of_kind).collect();
        order.sort_by(|a, b| density(b).total_cmp(&density(a)).then(b.cmp(a)));
        // Equal lines are included once.
        let mut seen = HashSet::default();
        order.retain(|n| {
            lines
                .get(*n)
                .is_some_and(|line| seen.insert(line.text.as_str()))
        });
        Self {
            section,
            lines,
            order,
            next: 0,
            kept: Vec::new(),
        }
    }

    /// Keeps the best lines, until one does not fit: it is not skipped in favour of a shorter,
    /// worse one.
    fn spend(&mut self, budget: &mut TokenBudget<'_>) {
        while !budget.is_spent()
            && let Some(n) = self.order.get(self.next).copied()
            && self.spend_on(n, budget)
        {
            self.next += 1;
        }
    }

    /// Keeps the shorter ones of the remaining lines, from tokens that nothing else can use.
    fn fill(&mut self, budget: &mut TokenBudget<'_>) {
        for n in self.order.split_off(self.next.min(self.order.len())) {
            if budget.is_spent() {
                return;
            }
            self.spend_on(n, budget);
        }
    }

    fn spend_on(&mut self, n: usize, budget: &mut TokenBudget<'_>) -> bool {
        let Some(line) = self.lines.get(n) else {
            return false;
        };
        let heading = match self.section {
            Section::Former if self.kept.is_empty() => heading(self.section, budget),
            _ => 0,
        };
        let cost = heading + budget.count(&SectionItem::note(line.words()).written());
        let is_told = budget.spend_tokens(cost);
        self.kept.extend(is_told.then_some(n));
        is_told
    }

    /// Returns the kept lines, with their positions in the transcript.
    fn items(&self) -> Vec<(usize, SectionItem)> {
        let mut kept = self.kept.clone();
        kept.sort_unstable();
        let lines = kept.iter().filter_map(|n| self.lines.get(*n));
        lines
            .map(|line| (line.order, SectionItem::note(line.words())))
            .collect()
    }
}

/// The choice of files and names.
struct Map<'n> {
    story: &'n Story<'n>,
    /// All candidates, the likeliest in proportion to their length first.
    order: Vec<Candidate<'n>>,
    chosen: Vec<Candidate<'n>>,
    /// Names that occur in the chosen content already, or that must be omitted.
    covered: HashSet<String>,
    /// Chosen files without actions and without a chosen name; they are listed as names.
    alone: HashSet<&'n str>,
    /// The candidate for each file.
    file_of: HashMap<&'n str, Candidate<'n>>,
    /// The chosen files.
    files: HashSet<&'n str>,
    /// The number of chosen names of each file.
    names_of: HashMap<u32, usize>,
    /// Remaining tokens for names without a file.
    bare: u64,
    is_headed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Candidate<'n> {
    word: &'n str,
    likely: f64,
    density: f64,
    is_file: bool,
    /// Whether a tool read or changed the file.
    is_used: bool,
    home: Option<u32>,
}

impl Candidate<'_> {
    /// Returns the name as an entry in a list.
    fn separated(&self) -> String {
        format!(", {}", self.word)
    }

    /// Returns `true` for `and/or`, `HTTP/1.0`, `s/a/b` and similar text that looks like a path.
    fn is_pair(&self) -> bool {
        let (head, last) = self.word.rsplit_once('/').unwrap_or(("", self.word));
        let is_sed = head.starts_with("s/") || head == "s";
        self.is_file
            && (is_sed
                || self.word.contains("...")
                || !names::has_ending(last) && !self.word.starts_with('/'))
    }
}

impl<'n> Map<'n> {
    fn of(story: &'n Story<'n>, bare: u64) -> Self {
        let density =
            |word: &str, likely: f64| likely / (1.0 + word.len() as f64 / 3.2).powf(DENSITY);
        let mut order: Vec<Candidate<'n>> = story
            .names
            .found
            .iter()
            // A number means nothing without the words around it.
            .filter(|(_, name)| !matches!(name.kind, NameKind::Number | NameKind::Hex))
            .map(|(word, name)| {
                let likely = story.likely(word, name);
                Candidate {
                    word,
                    likely,
                    density: density(word, likely),
                    is_file: matches!(name.kind, NameKind::Path | NameKind::File),
                    is_used: story.files.contains_key(*word),
                    home: name.home,
                }
            })
            .filter(|candidate| candidate.likely >= LEAST)
            .collect();
        // Paths that are not recognised as names (with blanks, for example) are files nevertheless.
        for path in story.files.keys() {
            if !story.names.found.contains_key(path.as_str()) {
                order.push(Candidate {
                    word: path,
                    likely: 0.05,
                    density: density(path, 0.05),
                    is_file: true,
                    is_used: true,
                    home: None,
                });
            }
        }
        order.sort_by(|a, b| b.density.total_cmp(&a.density).then(a.word.cmp(b.word)));
        let files = order.iter().filter(|candidate| candidate.is_file);
        let file_of = files
            .map(|candidate| (candidate.word, *candidate))
            .collect();
        Self {
            story,
            order,
            chosen: Vec::new(),
            covered: HashSet::default(),
            alone: HashSet::default(),
            file_of,
            files: HashSet::default(),
            names_of: HashMap::default(),
            bare,
            is_headed: false,
        }
    }

    /// Records the names in the chosen content.
    fn cover(&mut self, user_words: &UserWords, sections: &[&SectionLines<'_>]) {
        let lines = sections.iter().flat_map(|lines| lines.items());
        for (_, item) in user_words.items().into_iter().chain(lines) {
            names::each(&item.text, &mut |word, _| cover(&mut self.covered, word));
        }
    }

    /// Chooses names that are at least as likely as `least`.
    fn spend(&mut self, budget: &mut TokenBudget<'_>, least: f64) {
        // Begins with the first candidate each time: a name that did not fit a share may fit the
        // whole.
        let order = std::mem::take(&mut self.order);
        for candidate in &order {
            if budget.is_spent() {
                break;
            }
            if candidate.likely >= least && !self.covered.contains(candidate.word) {
                self.choose(*candidate, budget);
            }
        }
        self.order = order;
    }

    /// Chooses files that were changed, the newest first. Files that the agent created come last: many
    /// of them are scripts to try something.
    fn spend_on_changed(&mut self, budget: &mut TokenBudget<'_>) {
        let mut changed: Vec<(bool, usize, Candidate<'n>)> = Vec::new();
        for candidate in &self.order {
            let deeds = self.story.files.get(candidate.word);
            let deeds = deeds.filter(|deeds| deeds.written + deeds.edited > 0);
            changed.extend(deeds.map(|deeds| (deeds.written > 0, deeds.last, *candidate)));
        }
        changed.sort_by_key(|(is_new, last, file)| (*is_new, Reverse(*last), file.word));
        for (_, _, candidate) in changed {
            if budget.is_spent() {
                return;
            }
            self.choose(candidate, budget);
        }
    }

    /// Chooses a name. If the name was seen in a file, the file is chosen too, and the name is
    /// listed beside it. A name without a file becomes an entry of a short list.
    fn choose(&mut self, candidate: Candidate<'n>, budget: &mut TokenBudget<'_>) {
        let home = candidate.home.filter(|_| !candidate.is_file);
        if let Some(path) = home.and_then(|home| self.story.names.path(home))
            && !self.files.contains(path)
            && let Some(file) = self.file_of.get(path)
        {
            let cost = budget.count(&candidate.separated()) + budget.count(&self.line(path));
            if cost <= budget.left_of_share() {
                self.spend_on(*file, budget);
            }
        }
        let path = home.and_then(|home| self.story.names.path(home));
        match home.filter(|_| path.is_some_and(|path| self.files.contains(path))) {
            Some(home) => {
                let names = self.names_of.entry(home).or_default();
                if *names < NAMES_OF_FILE {
                    *names += 1;
                    self.spend_on(candidate, budget);
                }
            }
            None if candidate.is_used => self.spend_on(candidate, budget),
            None => {
                let cost = budget.count(&candidate.separated());
                if !candidate.is_pair()
                    && let Some(left) = self.bare.checked_sub(cost)
                {
                    self.bare = left;
                    self.spend_on(candidate, budget);
                }
            }
        }
    }

    fn spend_on(&mut self, candidate: Candidate<'n>, budget: &mut TokenBudget<'_>) {
        let heading = if self.is_headed {
            0
        } else {
            heading(Section::Files, budget) + heading(Section::Names, budget)
        };
        let cost = if candidate.is_used {
            budget.count(&self.line(candidate.word))
        } else {
            budget.count(&candidate.separated())
        };
        // The first name of a file moves the file to a separate line.
        let home = candidate.home.and_then(|home| self.story.names.path(home));
        let home = home.filter(|home| !candidate.is_file && self.alone.contains(home));
        if !budget.spend_tokens(heading + cost + home.map_or(0, |_| LINE)) {
            return;
        }
        if let Some(home) = home {
            self.alone.remove(home);
        }
        self.is_headed = true;
        cover(&mut self.covered, candidate.word);
        if candidate.is_file {
            self.files.insert(candidate.word);
            if !candidate.is_used {
                self.alone.insert(candidate.word);
            }
        }
        self.chosen.push(candidate);
    }

    /// Returns the line of a file without its names.
    fn line(&self, path: &str) -> String {
        SectionItem::note(self.file(path)).written()
    }

    fn file(&self, path: &str) -> String {
        match self.story.files.get(path).map(FileActions::words) {
            Some(deeds) if !deeds.is_empty() => format!("{path} ({deeds})"),
            _ => path.to_owned(),
        }
    }

    /// Returns the files with the names seen there, and the names seen elsewhere; the likeliest
    /// first.
    fn items(&self) -> (Vec<SectionItem>, Vec<SectionItem>) {
        let mut files: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
        let mut chosen: Vec<&Candidate<'_>> = self.chosen.iter().collect();
        chosen.sort_by(|a, b| b.likely.total_cmp(&a.likely).then(a.word.cmp(b.word)));
        let mut elsewhere: Vec<&str> = Vec::new();
        for (rank, file) in chosen.iter().filter(|one| one.is_file).enumerate() {
            if self.alone.contains(file.word) {
                elsewhere.push(file.word);
            } else {
                files.insert(file.word, (rank, Vec::new()));
            }
        }
        for name in chosen.iter().filter(|one| !one.is_file) {
            let home = name.home.and_then(|home| self.story.names.path(home));
            match home.and_then(|home| files.get_mut(home)) {
                Some((_, names)) => names.push(name.word),
                None => elsewhere.push(name.word),
            }
        }
        let mut files: Vec<(usize, String)> = files
            .into_iter()
            .map(|(path, (rank, names))| {
                let mut item = self.file(path);
                if !names.is_empty() {
                    item.push_str(": ");
                    item.push_str(&names.join(", "));
                }
                (rank, item)
            })
            .collect();
        files.sort();
        let files = files
            .into_iter()
            .map(|(_, item)| SectionItem::note(item))
            .collect();
        let elsewhere = (!elsewhere.is_empty()).then(|| SectionItem::note(elsewhere.join(", ")));
        (files, elsewhere.into_iter().collect())
    }
}

/// Records `word` and its path suffixes, since the end of a path is a path too.
fn cover(covered: &mut HashSet<String>, word: &str) {
    covered.insert(word.to_owned());
    for (at, _) in word.match_indices('/') {
        if let Some(end) = word.get(at + 1..) {
            covered.insert(end.to_owned());
        }
    }
}
