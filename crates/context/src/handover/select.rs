//! Selects the content of a handover within the available tokens: the user's words, the state, the
//! rules and the changed files, then the calls, the newest first, until the tokens are used.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use foldhash::HashSet;

use super::DENSE;
use super::format::{self, HEADINGS, Section, SectionItem};
use super::names::each_name;
use super::pieces::{Piece, PieceKind, pieces};
use super::rows::Row;

/// Some pieces and their share of the tokens: in percent, and the minimum in a small text. Tokens that
/// one share does not use go to the next.
struct Pass(&'static [PieceKind], u64, u64, Names);

/// The names that a line gets in a pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Names {
    No,
    Some,
    All,
}

const TYPED: &[PieceKind] = &[PieceKind::Typed];
const PASTED: &[PieceKind] = &[PieceKind::Pasted];
const STATE: &[PieceKind] = &[PieceKind::Line(Section::State, 0)];
const RULES: &[PieceKind] = &[PieceKind::Line(Section::Rules, 0)];
const FORMER: &[PieceKind] = &[PieceKind::Line(Section::Former, 0)];
const CHANGED: PieceKind = PieceKind::Line(Section::Files, 0);
const OTHER_CHANGED: PieceKind = PieceKind::Line(Section::Files, 1);
const READ: PieceKind = PieceKind::Line(Section::Files, 2);
const FILES: &[PieceKind] = &[CHANGED, OTHER_CHANGED, READ];
const DONE: PieceKind = PieceKind::Line(Section::Transcript, 0);
const WORK: &[PieceKind] = &[CHANGED, OTHER_CHANGED, READ, DONE];

/// The share of the user's words.
const WORDS: u64 = 75;

const PASSES: [Pass; 12] = [
    Pass(TYPED, WORDS, 120, Names::No),
    Pass(STATE, 10, 60, Names::No),
    Pass(RULES, 10, 0, Names::No),
    Pass(FORMER, 8, 0, Names::No),
    Pass(&[CHANGED], 8, 40, Names::No),
    Pass(&[OTHER_CHANGED], 8, 40, Names::No),
    Pass(FILES, 25, 0, Names::Some),
    Pass(TYPED, 100, 0, Names::No),
    Pass(PASTED, 50, 0, Names::No),
    Pass(WORK, 100, 0, Names::Some),
    Pass(WORK, 100, 0, Names::All),
    Pass(PASTED, 100, 0, Names::No),
];

/// The separator between a line and the names in the result of its call.
pub(crate) const NAMES: &str = "; names: ";
/// The separator between a file and names in it.
const NAMES_OF_FILE: &str = ": ";
/// The number of names of a line if there are further lines.
const SOME_NAMES: usize = 6;
/// The maximum number of texts in which names for a line are searched.
const SOURCES_MAX: usize = 8;
/// The tokens of the mark of a line.
pub(crate) const MARK: u64 = 2;
/// The number of consecutive candidates that do not fit after which no further ones are counted.
const MISSES: u32 = 400;

/// Returns a handover of about `tokens` tokens of `rows`, or `None` if there is no content.
pub(crate) fn select(rows: &[Row<'_>], tokens: u64, count: &dyn Fn(&str) -> u64) -> Option<String> {
    let has = |section: &Section| rows.iter().any(|row| row.section == *section);
    let headings = HEADINGS.iter();
    let headings = headings.filter(|(section, _)| *section != Section::Transcript && has(section));
    let frame: u64 = headings.map(|(_, heading)| count(heading)).sum();
    let all = tokens.checked_sub(count(&format::write(&[])) + frame)?;
    let pieces = pieces(rows, all * WORDS / 100, count);
    let mut selection = Selection {
        rows,
        kept: BTreeMap::new(),
        names: BTreeMap::new(),
        known: HashSet::default(),
        count,
        left: all,
        share: 0,
        misses: 0,
    };
    for Pass(kinds, percent, least, names) in PASSES {
        selection.share = (all * percent / 100).max(least).min(selection.left);
        selection.misses = 0;
        for piece in pieces.iter().filter(|piece| kinds.contains(&piece.kind)) {
            if selection.share == 0 || selection.misses >= MISSES {
                break;
            }
            selection.keep(piece, names);
        }
    }
    selection.text()
}

struct Selection<'a> {
    rows: &'a [Row<'a>],
    /// The kept pieces, by the indices of their rows and their numbers.
    kept: BTreeMap<(usize, usize), &'a str>,
    /// The names beside the rows.
    names: BTreeMap<usize, Vec<String>>,
    /// The names in the kept text.
    known: HashSet<String>,
    count: &'a dyn Fn(&str) -> u64,
    /// The tokens that are left, and those of the current share.
    left: u64,
    share: u64,
    misses: u32,
}

impl<'a> Selection<'a> {
    /// Spends the tokens of a text and `mark` more. Returns `false` if there are not enough.
    fn spend(&mut self, text: &str, mark: u64) -> bool {
        // Even a very dense counter has a token for a dozen bytes.
        if text.len() as u64 / DENSE > self.share {
            return false;
        }
        let cost = (self.count)(text) + mark;
        if cost > self.share {
            self.misses += 1;
            return false;
        }
        (self.left, self.share, self.misses) = (self.left - cost, self.share - cost, 0);
        true
    }

    /// Keeps a piece with names if there are enough tokens.
    fn keep(&mut self, piece: &Piece<'a>, names: Names) {
        let Reverse(row) = piece.row;
        let key = (row, piece.n);
        let mark = if piece.n == 0 { MARK } else { 0 };
        let is_kept = self.kept.contains_key(&key);
        if !is_kept && self.spend(piece.text, mark) {
            self.kept.insert(key, piece.text);
            each_name(piece.text, &mut |name| {
                self.known.insert(name.to_owned());
                true
            });
        }
        if names > Names::No && self.kept.contains_key(&key) {
            self.add_names(row, names);
        }
    }

    /// Adds names that are not known yet to a line.
    fn add_names(&mut self, at: usize, limit: Names) {
        let Some(row) = self.rows.get(at) else {
            return;
        };
        let most = if limit == Names::Some {
            SOME_NAMES
        } else {
            usize::MAX
        };
        let mut names = self.names.remove(&at).unwrap_or_default();
        let mut tell = |name: &str| {
            let goes_on = names.len() < most && self.share > 0 && self.misses < MISSES;
            let before = if names.is_empty() {
                separator(row)
            } else {
                ", "
            };
            let is_new = goes_on && !self.known.contains(name) && !row.text.contains(name);
            if is_new && self.spend(&format!("{before}{name}"), 0) {
                self.known.insert(name.to_owned());
                names.push(name.to_owned());
            }
            goes_on
        };
        for source in row.sources.iter().rev().take(SOURCES_MAX) {
            each_name(source, &mut tell);
        }
        self.names.insert(at, names);
    }

    /// Returns the text of the kept rows, or `None` if there are none.
    fn text(&self) -> Option<String> {
        let rows = self.rows.iter().enumerate().filter_map(|(at, row)| {
            let kept = self.kept.range((at, 0)..(at + 1, 0));
            let mut text = joined(kept.map(|((_, n), text)| (*n, *text)), &row.text)?;
            let names = self.names.get(&at).filter(|names| !names.is_empty());
            if let Some(names) = names {
                text.extend([separator(row), &names.join(", ")]);
            }
            Some((row, SectionItem::new(row.is_user, &text)))
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

/// Joins the kept pieces of a text, with `…` for others.
fn joined<'t>(pieces: impl Iterator<Item = (usize, &'t str)>, whole: &str) -> Option<String> {
    let mut text = String::new();
    let (mut next, mut last) = (0, None);
    for (n, piece) in pieces {
        if n > next {
            text.truncate(text.trim_end().len());
            text.push_str(if text.is_empty() { "… " } else { " … " });
        }
        text.push_str(piece);
        (next, last) = (n + 1, Some(piece));
    }
    text.truncate(text.trim_end().len());
    text.push_str(if whole.ends_with(last?) { "" } else { " …" });
    Some(text)
}
