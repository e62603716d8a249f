//! Selects the content of a handover within the available tokens: the user's words, the state, the
//! rules and the changed files, then the calls, the newest first, until the tokens are used.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use foldhash::HashSet;
use serde_json::Value;

use super::DENSE;
use super::format::{self, HEADINGS, Section, SectionItem};
use super::names::each_name;
use super::rows::Row;
use super::sentences::clip;
use super::user_words::{PASTED, Piece, joined};
use super::words::is_in;

/// A share of the tokens: in percent, and the minimum in a small text. Tokens that one part does not use go
/// to the next.
type Share = (u64, u64);
/// The share of the user's words.
const WORDS: Share = (75, 120);
/// All that is left.
const REST: Share = (100, 0);
/// The number of names beside a line, and whether numbers of lines are among them.
type NameLimit = (usize, bool);
const NO_NAMES: NameLimit = (0, false);
const SOME_NAMES: NameLimit = (6, false);
const ALL_NAMES: NameLimit = (usize::MAX, false);
const ALL_NUMBERS: NameLimit = (usize::MAX, true);

/// Some lines, the newest first: their sections, the last rank of files, the share, and the names beside
/// them.
type Pass = (&'static [Section], u8, Share, NameLimit);
const STATE: [Pass; 6] = [
    (&[Section::State], 0, (10, 60), NO_NAMES),
    (&[Section::Rules], 0, (10, 0), NO_NAMES),
    (&[Section::Former], 0, (8, 0), NO_NAMES),
    (&[Section::Files], 0, (8, 40), NO_NAMES),
    (&[Section::Files], 1, (8, 40), NO_NAMES),
    (&[Section::Files], 2, (25, 0), SOME_NAMES),
];
const WORK: &[Section] = &[Section::Transcript, Section::Files];
const DONE: [Pass; 3] = [
    (WORK, 2, REST, SOME_NAMES),
    (WORK, 2, REST, ALL_NAMES),
    (WORK, 2, REST, ALL_NUMBERS),
];

/// The separator between a line and the names in the result of its call.
pub(crate) const NAMES: &str = "; names: ";
/// The separator between a file and names in it.
const NAMES_OF_FILE: &str = ": ";
/// The maximum number of texts in which names for a line are searched.
const SOURCES_MAX: usize = 8;
/// The length up to which a text is read as JSON, in bytes.
const JSON_MAX: usize = 100_000;
/// The tokens of the mark of a line.
pub(crate) const MARK: u64 = 2;
/// The number of consecutive candidates that do not fit after which no further ones are counted.
const MISSES: u32 = 400;

/// Returns a handover of about `tokens` tokens, or `None` if there is no content. `pieces` are the user's
/// words among `rows`.
pub(crate) fn select<'t>(
    rows: &'t [Row<'_>],
    pieces: &[Piece<'t>],
    tokens: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    let has = |section: &Section| rows.iter().any(|row| row.section == *section);
    let headings = HEADINGS.iter();
    let headings = headings.filter(|(section, _)| *section != Section::Transcript && has(section));
    let frame: u64 = headings.map(|(_, heading)| count(heading)).sum();
    let all = tokens.checked_sub(count(&format::write(&[])) + frame)?;
    let mut selection = Selection {
        rows,
        kept: BTreeMap::new(),
        names: BTreeMap::new(),
        known: HashSet::default(),
        count,
        all,
        left: all,
        share: 0,
        misses: 0,
    };
    let typed = pieces.partition_point(|piece| piece.rank < PASTED);
    selection.start(WORDS);
    for piece in pieces {
        selection.keep(piece.row.0, piece.n, piece.text);
    }
    STATE.into_iter().for_each(|pass| selection.take(pass));
    // The rest goes to the user's words, then to what was done, then to further names.
    selection.start(REST);
    for piece in pieces.iter().take(typed) {
        selection.keep(piece.row.0, piece.n, piece.text);
    }
    DONE.into_iter().for_each(|pass| selection.take(pass));
    selection.text()
}

struct Selection<'a> {
    rows: &'a [Row<'a>],
    /// The kept pieces, by the indices of their rows and their numbers. A line that is not the user's is one
    /// piece.
    kept: BTreeMap<(usize, usize), &'a str>,
    /// The names beside the rows.
    names: BTreeMap<usize, Vec<String>>,
    /// The names in the kept text.
    known: HashSet<String>,
    count: &'a dyn Fn(&str) -> u64,
    /// The tokens of the text, those that are left, and those of the current share.
    all: u64,
    left: u64,
    share: u64,
    misses: u32,
}

impl<'a> Selection<'a> {
    /// Starts a share.
    fn start(&mut self, (percent, least): Share) {
        self.share = (self.all * percent / 100).max(least).min(self.left);
        self.misses = 0;
    }

    /// Returns `true` if further candidates are not worth counting.
    fn is_spent(&self) -> bool {
        self.share == 0 || self.misses >= MISSES
    }

    /// Spends the tokens of a text and `mark` more. Returns `false` if there are not enough.
    fn spend(&mut self, text: &str, mark: u64) -> bool {
        // Even a very dense counter has a token for a dozen bytes.
        let is_far = text.len() as u64 / DENSE > self.share;
        let cost = if is_far {
            u64::MAX
        } else {
            (self.count)(text) + mark
        };
        let is_enough = cost <= self.share;
        let cost = if is_enough { cost } else { 0 };
        self.left -= cost;
        self.share -= cost;
        self.misses = if is_enough {
            0
        } else {
            self.misses + u32::from(!is_far)
        };
        is_enough
    }

    /// Keeps a piece of a row if there are enough tokens.
    fn keep(&mut self, row: usize, n: usize, text: &'a str) {
        let is_kept = self.kept.contains_key(&(row, n));
        let mark = if n == 0 { MARK } else { 0 };
        if !is_kept && !self.is_spent() && self.spend(text, mark) {
            self.kept.insert((row, n), text);
            each_name(text, true, &mut |name| {
                self.known.insert(name.to_owned());
                true
            });
        }
    }

    /// Keeps lines that are not the user's, the newest first, and adds names to each.
    fn take(&mut self, (sections, rank, share, limit): Pass) {
        self.start(share);
        for (at, row) in self.rows.iter().enumerate().rev() {
            if self.is_spent() {
                return;
            }
            if !row.is_user && sections.contains(&row.section) && row.rank <= rank {
                self.keep(at, 0, &row.text);
                if self.kept.contains_key(&(at, 0)) {
                    self.add_names(at, row, limit);
                }
            }
        }
    }

    /// Adds names that are not known yet to a line, up to a limit.
    fn add_names(&mut self, at: usize, row: &Row<'_>, (most, with_lines): NameLimit) {
        let mut names = self.names.remove(&at).unwrap_or_default();
        let mut tell = |name: &str| {
            let goes_on = names.len() < most && !self.is_spent();
            let separator = if names.is_empty() {
                separator(row)
            } else {
                ", "
            };
            if goes_on && !self.known.contains(name) && self.spend(&format!("{separator}{name}"), 0)
            {
                self.known.insert(name.to_owned());
                names.push(name.to_owned());
            }
            goes_on
        };
        for source in row.sources.iter().rev().take(SOURCES_MAX) {
            match serde_json::from_str(clip(source, JSON_MAX)) {
                Ok(value @ Value::Object(_)) => each_name_in(&value, with_lines, &mut tell),
                _ => each_name(source, with_lines, &mut tell),
            }
        }
        self.names.insert(at, names);
    }

    /// Returns the text of the kept rows, or `None` if there are none.
    fn text(&self) -> Option<String> {
        let rows = self.rows.iter().enumerate().filter_map(|(at, row)| {
            let kept = self.kept.range((at, 0)..(at + 1, 0));
            let pieces: BTreeMap<usize, &str> = kept.map(|((_, n), text)| (*n, *text)).collect();
            let mut text = joined(&pieces, &row.text);
            let names = self.names.get(&at).filter(|names| !names.is_empty());
            if let Some(names) = names {
                text.push_str(&format!("{}{}", separator(row), names.join(", ")));
            }
            (!pieces.is_empty()).then(|| (row, SectionItem::new(row.is_user, &text)))
        });
        let mut rows: Vec<(&Row<'_>, SectionItem)> = rows.collect();
        rows.sort_by_key(|(row, _)| match row.section {
            Section::Former | Section::Transcript => (row.section, 0, row.order, Reverse((0, 0))),
            // The most important and the newest ones are first.
            _ => (row.section, row.rank, (0, 0), Reverse(row.order)),
        });
        let items = rows.into_iter().map(|(row, item)| (row.section, item));
        let items: Vec<(Section, SectionItem)> = items.collect();
        (!items.is_empty()).then(|| format::write(&items))
    }
}

/// Returns the separator between a line and names.
fn separator(row: &Row<'_>) -> &'static str {
    if row.section == Section::Files {
        NAMES_OF_FILE
    } else {
        NAMES
    }
}

/// Calls `tell` with the names in the texts of a value, and with its numbers if `with_lines`.
fn each_name_in(value: &Value, with_lines: bool, tell: &mut dyn FnMut(&str) -> bool) {
    match value {
        Value::String(text) => each_name(text, with_lines, tell),
        Value::Number(number) if with_lines => each_name(&format!("={number}"), true, tell),
        Value::Array(list) => list
            .iter()
            .for_each(|value| each_name_in(value, with_lines, tell)),
        // The line of a file has its path already.
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !is_in("paths", key))
            .for_each(|(_, value)| each_name_in(value, with_lines, tell)),
        _ => {}
    }
}
