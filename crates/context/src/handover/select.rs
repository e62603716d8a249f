//! Selects the content of a handover within the available tokens: the user's words, the state, the
//! rules and the changed files, then the calls, the newest first, until the tokens are used.
//!
//! Messages of the user that do not all fit are kept in parts: short ones as a whole, long ones in
//! sentences, pasted lines last. No sentence is left out because of another one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use foldhash::HashSet;

use super::DENSE;
use super::format::{self, Kind, TRANSCRIPT};
use super::names::each_name;
use super::sentences::{clip, is_machine, sentences, words_of};
use super::words::any_in;
use crate::counter::TokenCounter;

/// A position in the transcript: a text, and a line in it.
pub(crate) type Order = (usize, usize);

/// A possible entry of the handover.
#[derive(Debug)]
pub(crate) struct Row<'t> {
    /// The position in the transcript, that of the last use.
    pub(crate) order: Order,
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// The texts with names for this line, the most important last. An object in JSON stands for its
    /// values.
    pub(crate) sources: Vec<&'t str>,
}

impl Row<'_> {
    pub(crate) fn new(order: Order, kind: Kind, text: String) -> Self {
        let sources = Vec::new();
        Self {
            order,
            kind,
            text,
            sources,
        }
    }
}

/// Entries of some kinds, and their share of the tokens: in percent, and the minimum in a small text; and
/// the number of names that a line gets. Tokens that one share does not use go to the next.
struct Pass(&'static [Kind], u64, u64, usize);

const TYPED: &[Kind] = &[Kind::Typed, Kind::Answer];
const FILES: &[Kind] = &[Kind::Changed, Kind::OtherFile, Kind::ReadFile];
const WORK: &[Kind] = &[Kind::Changed, Kind::OtherFile, Kind::ReadFile, Kind::Done];

/// The share of the user's words.
const WORDS: u64 = 75;
/// The number of names of a line if there are further lines.
const SOME: usize = 6;

const PASSES: [Pass; 14] = [
    Pass(TYPED, WORDS, 120, 0),
    Pass(&[Kind::State], 10, 60, 0),
    Pass(&[Kind::Rule], 10, 0, 0),
    Pass(&[Kind::Former], 8, 0, 0),
    Pass(&[Kind::Changed], 8, 40, 0),
    Pass(&[Kind::OtherFile], 8, 40, 0),
    Pass(FILES, 15, 0, SOME),
    Pass(TYPED, 100, 0, 0),
    Pass(&[Kind::State], 100, 0, 0),
    Pass(&[Kind::Pasted], 50, 0, 0),
    Pass(WORK, 100, 0, SOME),
    Pass(WORK, 100, 0, usize::MAX),
    Pass(&[Kind::Pasted], 100, 0, 0),
    Pass(&[Kind::Repeated], 100, 0, 0),
];

/// The separator between a line and the names in the result of its call, and that behind a file.
pub(crate) const NAMES: &str = "; names: ";
pub(crate) const NAMES_OF_FILE: &str = ": ";
/// The maximum number of texts in which names for a line are searched, and the length up to which each is
/// read, in bytes.
const SOURCES_MAX: usize = 8;
const SOURCE_MAX: usize = 16_000;
/// The tokens of the mark of a line.
pub(crate) const MARK: u64 = 2;
/// The number of consecutive candidates that do not fit after which no further ones are counted.
const MISSES: u32 = 400;
/// The maximum length of a message that is kept whole or not at all, in bytes.
const SHORT: usize = 400;
/// The number of digits from which a line counts as one of a log.
const LOG_DIGITS: usize = 6;

/// Returns a handover of about `tokens` tokens of `rows`, or `None` if there is no content.
pub(crate) fn select(rows: &[Row<'_>], tokens: u64, counter: &dyn TokenCounter) -> Option<String> {
    let headings = rows.iter().map(|row| row.kind.heading());
    let headings = headings.filter(|heading| *heading != TRANSCRIPT);
    let headings: HashSet<&str> = headings.collect();
    let frame: u64 = headings.iter().map(|text| counter.text(text).0).sum();
    let all = tokens.checked_sub(counter.text(&format::write(&[])).0 + frame)?;
    let words = all * WORDS / 100;
    let users = rows.iter().filter(|row| row.kind.is_user());
    let users = users.filter(|row| row.kind != Kind::Repeated);
    let users: Vec<&str> = users.map(|row| row.text.as_str()).collect();
    let fits = person_tokens(&users, words, counter) <= words;
    let short = if fits { usize::MAX } else { SHORT };
    let pieces = rows.iter().enumerate();
    let pieces = pieces.flat_map(|(at, row)| pieces_of(at, row, short));
    let mut pieces: Vec<Piece<'_>> = pieces.collect();
    pieces.sort_unstable();
    let mut selection = Selection {
        rows,
        kept: BTreeMap::new(),
        known: HashSet::default(),
        counter,
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

/// Returns the tokens of texts of the user. If there are more than `enough`, returns at least that number.
pub(crate) fn person_tokens(texts: &[&str], enough: u64, counter: &dyn TokenCounter) -> u64 {
    let least = texts.iter().map(|text| text.len() as u64).sum::<u64>() / DENSE;
    if least > enough {
        return least;
    }
    let tokens = texts.iter().map(|text| counter.text(text).0 + MARK);
    tokens.sum()
}

/// A short message, a sentence of a long one, or a line, which is kept as a whole or not at all. In the
/// order of choice.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Piece<'t> {
    /// Obligations and prohibitions, answers, short messages with a fact or a wish, other words.
    rank: u8,
    /// The length of a message that is split.
    length: usize,
    /// The number of sentences between this one and the nearer end of the message.
    depth: usize,
    /// The index among the rows, the newest first.
    row: Reverse<usize>,
    /// The number of the sentence.
    n: usize,
    kind: Kind,
    text: &'t str,
}

/// Splits the text of a row. A message of at most `short` bytes is one piece.
fn pieces_of<'t>(at: usize, row: &'t Row<'_>, short: usize) -> Vec<Piece<'t>> {
    let is_user = row.kind.is_user();
    let is_whole = !is_user || row.text.len() <= short;
    let found = if is_whole {
        vec![row.text.as_str()]
    } else {
        sentences(&row.text)
    };
    let last = found.len().saturating_sub(1);
    let pieces = found.into_iter().enumerate().map(|(n, text)| {
        let has = |cue| any_in(cue, &words_of(text));
        let is_pasted = is_user && !is_whole && is_pasted(text);
        let rank = match row.kind {
            _ if !is_user || is_pasted => 0,
            _ if has("must") => 0,
            Kind::Answer => 1,
            _ if is_whole && has("states") => 2,
            _ => 3,
        };
        Piece {
            rank,
            length: if is_whole { 0 } else { row.text.len() },
            depth: n.min(last - n),
            row: Reverse(at),
            n,
            kind: match row.kind {
                Kind::Repeated => Kind::Repeated,
                _ if is_pasted => Kind::Pasted,
                kind => kind,
            },
            text,
        }
    });
    pieces.collect()
}

/// Checks whether a line may be one of a log, a stack trace or code. An entry of a list is typed.
fn is_pasted(line: &str) -> bool {
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    digits >= LOG_DIGITS || is_machine(line) && !line.starts_with("- ")
}

struct Selection<'a> {
    rows: &'a [Row<'a>],
    /// The kept pieces, by the indices of their rows and their numbers.
    kept: BTreeMap<(usize, usize), String>,
    /// The names in the kept text.
    known: HashSet<String>,
    counter: &'a dyn TokenCounter,
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
        let cost = self.counter.text(text).0 + mark;
        if cost > self.share {
            self.misses += 1;
            return false;
        }
        (self.left, self.share, self.misses) = (self.left - cost, self.share - cost, 0);
        true
    }

    /// Keeps a piece, and adds up to `names` names that are not known yet, if there are enough tokens.
    fn keep(&mut self, piece: &Piece<'a>, names: usize) {
        let Reverse(at) = piece.row;
        let mark = if piece.n == 0 { MARK } else { 0 };
        let mut text = match self.kept.remove(&(at, piece.n)) {
            Some(text) => text,
            None if self.spend(piece.text, mark) => piece.text.to_owned(),
            None => return,
        };
        each_name(&text, &mut |name| {
            self.known.insert(name.to_owned());
            true
        });
        let sources = self.rows.get(at).map_or(&[][..], |row| &row.sources);
        let sources = sources.iter().rev().take(SOURCES_MAX);
        let former = text.get(piece.text.len()..).unwrap_or_default();
        let mut count = former.split_terminator(", ").count();
        let mut separator = match FILES.contains(&piece.kind) {
            _ if count > 0 => ", ",
            true => NAMES_OF_FILE,
            false => NAMES,
        };
        let mut tell = |name: &str| {
            let goes_on = count < names && self.share > 0 && self.misses < MISSES;
            let named = format!("{separator}{name}");
            let is_new = goes_on && !self.known.contains(name) && !piece.text.contains(name);
            if is_new && self.spend(&named, 0) {
                self.known.insert(name.to_owned());
                text.push_str(&named);
                (count, separator) = (count + 1, ", ");
            }
            goes_on
        };
        for source in sources.filter(|_| names > 0) {
            each_name(clip(source, SOURCE_MAX), &mut tell);
        }
        self.kept.insert((at, piece.n), text);
    }

    /// Returns the text of the kept rows, or `None` if there are none.
    fn text(&self) -> Option<String> {
        let rows = self.rows.iter().enumerate().filter_map(|(at, row)| {
            let kept = self.kept.range((at, 0)..(at + 1, 0));
            let text = joined(kept.map(|((_, n), text)| (*n, text.as_str())), &row.text)?;
            Some((row, text))
        });
        let mut rows: Vec<(&Row<'_>, String)> = rows.collect();
        rows.sort_by_key(|(row, _)| match row.kind {
            Kind::Former => (row.kind, row.order, Reverse((0, 0))),
            kind if kind.heading() == TRANSCRIPT => (Kind::Typed, row.order, Reverse((0, 0))),
            // The most important and the newest ones are first.
            kind => (kind, (0, 0), Reverse(row.order)),
        });
        let items = rows.into_iter().map(|(row, text)| (row.kind, text));
        let items: Vec<(Kind, String)> = items.collect();
        (!items.is_empty()).then(|| format::write(&items))
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
    // A line may have names behind it.
    let last: &str = last?;
    let is_end = last.starts_with(whole) || whole.ends_with(last);
    text.push_str(if is_end { "" } else { " …" });
    Some(text)
}
