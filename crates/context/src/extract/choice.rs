//! What is told in the room there is: each section has a share, and what one leaves over flows to
//! the next. Not how anything is found or written.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::counter::TokenCounter;

use super::layout::{self, Section};
use super::names::{self, Kind};
use super::notes::{Line, Notes};
use super::purse::Purse;
use super::said::Said;

/// Shares of the room, in percent. The user's words may have half of it, in steps that each leave
/// something to the next; names cost least for what they tell.
const RULES: u64 = 25;
const SHORT: u64 = 48;
const WHOLE: u64 = 58;
const SAID: u64 = 58;
const FORMER: u64 = 6;
const DECISIONS: u64 = 7;
const ERRORS: u64 = 3;
const CALLS: u64 = 4;
const FILES: u64 = 5;
const NAMES: u64 = 45;
/// Where there is little room it is the user's, up to so many tokens.
const LEAST_SAID: u64 = 120;
/// How much a name's length counts against it: 0 not at all, 1 in proportion.
const DENSITY: f64 = 0.6;
/// What a line of its own costs more than a place in a list.
const LINE: u64 = 3;
/// Names less likely than this only take what nothing else wants.
const LIKELY: f64 = 0.006;
/// A name less likely than this is not told, however much room there is.
const LEAST: f64 = 0.002;

/// The text of what is worth telling of `notes` in `room` tokens; `None` where nothing is.
pub(super) fn choose(
    notes: &Notes<'_>,
    said: &mut Said,
    room: u64,
    counter: &dyn TokenCounter,
) -> Option<String> {
    let mut purse = Purse::new(room, counter);
    if !purse.pay(&layout::write(&[])) {
        return None;
    }
    let room = purse.in_all();
    said.reset();
    let forgotten = forgotten(said);
    let mut foreign = Chosen::of(Section::Former, &notes.foreign, &forgotten);
    let mut decisions = Chosen::of(Section::Decisions, &notes.decisions, &forgotten);
    let mut errors = Chosen::of(Section::Errors, &notes.errors, &forgotten);
    let mut calls = Chosen::of(Section::Calls, &notes.calls, &forgotten);
    let mut map = Map::of(notes, &forgotten);
    let share = |percent: u64| room * percent / 100;

    // Both headings of the user's words, and what each of them needs.
    let headings = heading(Section::Rules, &purse) + heading(Section::Said, &purse);
    purse.pay_tokens(headings);
    let up_to = |purse: &mut Purse<'_>, percent: u64| {
        let spent = room - purse.in_all();
        purse.share(share(percent).max(LEAST_SAID).saturating_sub(spent));
    };
    up_to(&mut purse, RULES);
    said.spend_on_rules(&mut purse);
    up_to(&mut purse, SHORT);
    said.spend_on_short(&mut purse);
    up_to(&mut purse, WHOLE);
    said.spend_on_whole(&mut purse);
    up_to(&mut purse, SAID);
    said.spend_on_inner_rules(&mut purse);
    said.spend_on_pieces(&mut purse);
    for (chosen, percent) in [
        (&mut foreign, FORMER),
        (&mut decisions, DECISIONS),
        (&mut errors, ERRORS),
        (&mut calls, CALLS),
    ] {
        purse.share(share(percent));
        chosen.spend(&mut purse);
    }
    map.cover(said, &[&foreign, &decisions, &errors, &calls]);
    purse.share(share(FILES));
    map.spend_on_changed(&mut purse);
    purse.share(share(NAMES));
    map.spend(&mut purse, LIKELY);
    // What is left over.
    purse.share(u64::MAX);
    said.spend_on_rules(&mut purse);
    said.spend_on_short(&mut purse);
    said.spend_on_whole(&mut purse);
    said.spend_on_inner_rules(&mut purse);
    said.spend_on_pieces(&mut purse);
    for chosen in [&mut foreign, &mut decisions, &mut calls, &mut errors] {
        chosen.spend(&mut purse);
    }
    map.cover(said, &[&foreign, &decisions, &errors, &calls]);
    map.spend(&mut purse, LEAST);

    let (rules, rest) = said.items();
    let (files, elsewhere) = map.items();
    let items = [
        (Section::Rules, rules),
        (Section::Said, rest),
        (Section::Former, foreign.items()),
        (Section::Decisions, decisions.items()),
        (Section::Errors, errors.items()),
        (Section::Files, files),
        (Section::Calls, calls.items()),
        (Section::Names, elsewhere),
    ];
    let is_empty = items.iter().all(|(_, items)| items.is_empty());
    (!is_empty).then(|| layout::write(&items))
}

/// What a section's heading weighs.
fn heading(section: Section, purse: &Purse<'_>) -> u64 {
    purse.weigh(section.heading()) + 1
}

/// Names that stand only in what the user has updated since: they are told nowhere.
fn forgotten(said: &Said) -> HashMap<String, Kind> {
    let mut forgotten = HashMap::new();
    for text in said.stale() {
        names::each(text, &mut |word, kind| {
            forgotten.insert(word.to_owned(), kind);
        });
    }
    if !forgotten.is_empty() {
        for text in said.live() {
            names::each(text, &mut |word, _| {
                forgotten.remove(word);
            });
        }
    }
    forgotten
}

/// Which lines of a section are told.
struct Chosen<'n> {
    section: Section,
    lines: &'n [Line],
    /// By what they are worth for their length.
    order: Vec<usize>,
    /// How far in `order` we are.
    next: usize,
    kept: Vec<bool>,
    is_headed: bool,
}

impl<'n> Chosen<'n> {
    fn of(section: Section, lines: &'n [Line], forgotten: &HashMap<String, Kind>) -> Self {
        let density = |n: usize| {
            lines.get(n).map_or(0.0, |line| {
                line.worth / (8.0 + line.text.len() as f64).powf(0.6)
            })
        };
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by(|a, b| density(*b).total_cmp(&density(*a)).then(b.cmp(a)));
        // Nobody is told a number that the user has updated since.
        let numbers = |kind: &Kind| matches!(kind, Kind::Number | Kind::Hex);
        if forgotten.values().any(numbers) {
            order.retain(|n| {
                let mut holds = false;
                names::each(
                    lines.get(*n).map_or("", |line| &line.text),
                    &mut |word, _| {
                        holds |= forgotten.get(word).is_some_and(numbers);
                    },
                );
                !holds
            });
        }
        // The same words twice are told once, where they are newest.
        let mut seen = HashSet::new();
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
            kept: vec![false; lines.len()],
            is_headed: false,
        }
    }

    fn spend(&mut self, purse: &mut Purse<'_>) {
        while !purse.is_spent() {
            let Some(n) = self.order.get(self.next).copied() else {
                return;
            };
            let Some(line) = self.lines.get(n) else {
                return;
            };
            let heading = if self.is_headed {
                0
            } else {
                heading(self.section, purse)
            };
            let cost = heading + purse.weigh(&self.section.item(&line.words()));
            if !purse.pay_tokens(cost) {
                // The best is not passed over for a worse one that is shorter.
                return;
            }
            self.is_headed = true;
            self.next += 1;
            if let Some(kept) = self.kept.get_mut(n) {
                *kept = true;
            }
        }
    }

    /// The lines, in the order in which they came.
    fn items(&self) -> Vec<String> {
        let kept = self.lines.iter().zip(&self.kept).filter(|(_, kept)| **kept);
        kept.map(|(line, _)| line.words()).collect()
    }
}

/// Which files and names are told.
struct Map<'n> {
    notes: &'n Notes<'n>,
    /// The likeliest for their length first.
    order: Vec<Candidate<'n>>,
    chosen: Vec<Candidate<'n>>,
    /// Names that stand in what is told already, or must not be told.
    covered: HashSet<String>,
    /// Files that nothing was done with and of which no name is told: they are names too.
    alone: HashSet<&'n str>,
    is_headed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Candidate<'n> {
    word: &'n str,
    likely: f64,
    density: f64,
    is_file: bool,
    home: Option<u32>,
}

impl<'n> Map<'n> {
    fn of(notes: &'n Notes<'n>, forgotten: &HashMap<String, Kind>) -> Self {
        let density =
            |word: &str, likely: f64| likely / (1.0 + word.len() as f64 / 3.2).powf(DENSITY);
        let mut order: Vec<Candidate<'n>> = notes
            .names
            .found
            .iter()
            .map(|(word, name)| {
                let likely = name.likely(word, notes.files.get(*word));
                Candidate {
                    word,
                    likely,
                    density: density(word, likely),
                    is_file: matches!(name.kind, Kind::Path | Kind::File),
                    home: name.home,
                }
            })
            .filter(|candidate| candidate.likely >= LEAST)
            .collect();
        // Paths that no rule of names knows (with blanks, say) are files all the same.
        for path in notes.files.keys() {
            if !notes.names.found.contains_key(path.as_str()) {
                order.push(Candidate {
                    word: path,
                    likely: 0.05,
                    density: density(path, 0.05),
                    is_file: true,
                    home: None,
                });
            }
        }
        order.sort_by(|a, b| b.density.total_cmp(&a.density).then(a.word.cmp(b.word)));
        Self {
            notes,
            order,
            chosen: Vec::new(),
            covered: forgotten.keys().cloned().collect(),
            alone: HashSet::new(),
            is_headed: false,
        }
    }

    /// Notes what stands in the other sections.
    fn cover(&mut self, said: &Said, sections: &[&Chosen<'_>]) {
        let (rules, rest) = said.items();
        let lines = sections.iter().flat_map(|chosen| chosen.items());
        for text in rules.into_iter().chain(rest).chain(lines) {
            names::each(&text, &mut |word, _| cover(&mut self.covered, word));
        }
    }

    /// Spends on what is at least as likely as `least`.
    fn spend(&mut self, purse: &mut Purse<'_>, least: f64) {
        // From the start each time: what did not fit a share may fit the whole.
        let order = std::mem::take(&mut self.order);
        for candidate in &order {
            if purse.is_spent() {
                break;
            }
            if candidate.likely >= least && !self.covered.contains(candidate.word) {
                self.pay(*candidate, purse);
            }
        }
        self.order = order;
    }

    /// Spends on files that were changed, the newest first.
    fn spend_on_changed(&mut self, purse: &mut Purse<'_>) {
        let mut changed: Vec<(usize, Candidate<'n>)> = Vec::new();
        for candidate in &self.order {
            let deeds = self.notes.files.get(candidate.word);
            let deeds = deeds.filter(|deeds| deeds.written + deeds.edited > 0);
            changed.extend(deeds.map(|deeds| (deeds.last, *candidate)));
        }
        changed.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.word.cmp(b.1.word)));
        for (_, candidate) in changed {
            if purse.is_spent() {
                return;
            }
            self.pay(candidate, purse);
        }
    }

    fn pay(&mut self, candidate: Candidate<'n>, purse: &mut Purse<'_>) {
        let heading = if self.is_headed {
            0
        } else {
            heading(Section::Files, purse) + heading(Section::Names, purse)
        };
        let cost = if self.notes.files.contains_key(candidate.word) {
            purse.weigh(&Section::Files.item(&self.file(candidate.word)))
        } else {
            // With its comma.
            purse.weigh(&format!(", {}", candidate.word))
        };
        // The first name of a file makes it a line of its own.
        let home = candidate.home.and_then(|home| self.notes.names.path(home));
        let home = home.filter(|_| !candidate.is_file);
        let line = match home {
            Some(home) if self.alone.contains(home) => LINE,
            _ => 0,
        };
        if !purse.pay_tokens(heading + cost + line) {
            return;
        }
        if line > 0 {
            home.map(|home| self.alone.remove(home));
        }
        self.is_headed = true;
        cover(&mut self.covered, candidate.word);
        if candidate.is_file && !self.notes.files.contains_key(candidate.word) {
            self.alone.insert(candidate.word);
        }
        self.chosen.push(candidate);
    }

    fn file(&self, path: &str) -> String {
        match self.notes.files.get(path).map(super::calls::Deeds::words) {
            Some(deeds) if !deeds.is_empty() => format!("{path} ({deeds})"),
            _ => path.to_owned(),
        }
    }

    /// The files with the names seen there, and the names seen elsewhere; the likeliest first.
    fn items(&self) -> (Vec<String>, Vec<String>) {
        let mut files: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
        let by_likely = |a: &&Candidate<'_>, b: &&Candidate<'_>| {
            b.likely.total_cmp(&a.likely).then(a.word.cmp(b.word))
        };
        let mut chosen: Vec<&Candidate<'_>> = self.chosen.iter().collect();
        chosen.sort_by(by_likely);
        let mut elsewhere: Vec<&str> = Vec::new();
        for (rank, file) in chosen.iter().filter(|one| one.is_file).enumerate() {
            if self.alone.contains(file.word) {
                elsewhere.push(file.word);
            } else {
                files.insert(file.word, (rank, Vec::new()));
            }
        }
        for name in chosen.iter().filter(|one| !one.is_file) {
            let home = name.home.and_then(|home| self.notes.names.path(home));
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
        let files = files.into_iter().map(|(_, item)| item).collect();
        let elsewhere = (!elsewhere.is_empty()).then(|| elsewhere.join(", "));
        (files, elsewhere.into_iter().collect())
    }
}

/// Notes `word` and what stands in it: the end of a path is a path too.
fn cover(covered: &mut HashSet<String>, word: &str) {
    covered.insert(word.to_owned());
    for (at, _) in word.match_indices('/') {
        if let Some(end) = word.get(at + 1..) {
            covered.insert(end.to_owned());
        }
    }
}
