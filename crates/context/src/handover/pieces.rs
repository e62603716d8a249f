//! The parts of the user's messages and the lines about the work, in the order in which they are kept
//! if not all of them fit: short messages as a whole, long ones in sentences, pasted lines last. No
//! sentence is left out because of another one.

use std::cmp::Reverse;

use super::DENSE;
use super::format::Section;
use super::rows::Row;
use super::select::MARK;
use super::sentences::{is_machine, sentences, words_of};
use super::words::any_in;

/// The maximum length of a message that is kept whole or not at all, in bytes.
const SHORT: usize = 400;
/// The number of digits from which a line counts as one of a log.
const LOG_DIGITS: usize = 6;

/// The kind of a piece, by which shares of the tokens are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PieceKind {
    Typed,
    Pasted,
    Line(Section, u8),
}

/// A short message, a sentence of a long one, or a line, which is kept as a whole or not at all. In the
/// order of choice.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece<'t> {
    /// Obligations and prohibitions, answers, short messages with a fact or a wish, other words of the
    /// user, pasted lines, then lines about the work.
    rank: u8,
    /// The length of a message that is split.
    length: usize,
    /// The number of sentences between this one and the nearer end of the message.
    depth: usize,
    /// The index among the rows, the newest first.
    pub(crate) row: Reverse<usize>,
    /// The number of the sentence.
    pub(crate) n: usize,
    pub(crate) kind: PieceKind,
    pub(crate) text: &'t str,
}

/// Returns the pieces of all rows, those to keep first at the beginning. Messages are not split if all of
/// them have no more than `enough` tokens.
pub(crate) fn pieces<'t>(
    rows: &'t [Row<'_>],
    enough: u64,
    count: &dyn Fn(&str) -> u64,
) -> Vec<Piece<'t>> {
    let words = || {
        rows.iter()
            .filter(|row| row.is_user)
            .map(|row| row.text.as_str())
    };
    let short = match words().map(|text| text.len() as u64 / DENSE).sum::<u64>() <= enough
        && words().map(|text| count(text) + MARK).sum::<u64>() <= enough
    {
        true => usize::MAX,
        false => SHORT,
    };
    let rows = rows.iter().enumerate();
    let pieces = rows.flat_map(|(at, row)| pieces_of(at, row, short));
    let mut pieces: Vec<Piece<'t>> = pieces.collect();
    pieces.sort_unstable();
    pieces
}

fn pieces_of<'t>(at: usize, row: &'t Row<'_>, short: usize) -> Vec<Piece<'t>> {
    let is_whole = !row.is_user || row.text.len() <= short;
    let found = match is_whole {
        true => vec![row.text.as_str()],
        false => sentences(&row.text),
    };
    let last = found.len().saturating_sub(1);
    let pieces = found.into_iter().enumerate().map(|(n, text)| {
        let has = |cue| any_in(cue, &words_of(text));
        let (rank, kind) = match row.is_user {
            false => (5, PieceKind::Line(row.section, row.rank)),
            true if !is_whole && is_pasted(text) => (4, PieceKind::Pasted),
            true if has("must") => (0, PieceKind::Typed),
            true if row.is_answer => (1, PieceKind::Typed),
            true if is_whole && has("states") => (2, PieceKind::Typed),
            true => (3, PieceKind::Typed),
        };
        Piece {
            rank,
            length: if is_whole { 0 } else { row.text.len() },
            depth: n.min(last - n),
            row: Reverse(at),
            n,
            kind,
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
