//! The user's words in the order in which they are kept if not all of them fit: short messages as a
//! whole, long ones in sentences, pasted lines last. No sentence is left out because of another one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::rows::Row;
use super::sentences::{is_machine, sentences, words_of};
use super::words::any_in;

/// The maximum length of a message that is kept whole or not at all, in bytes.
const SHORT: usize = 400;
/// The rank of pasted lines of long messages.
pub(crate) const PASTED: u8 = 7;
/// The number of digits from which a line counts as one of a log.
const LOG_DIGITS: usize = 6;

/// A short message, or a sentence of a long one, in the order of choice.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece<'t> {
    /// Short obligations and prohibitions, answers, the ends of long messages, short messages with a
    /// fact or a wish, the others, then what else stands in long messages.
    pub(crate) rank: u8,
    /// The length of a long message.
    length: usize,
    /// The number of sentences between this one and the nearer end of the message.
    depth: usize,
    /// The index of the message among the rows, the newest first.
    pub(crate) row: Reverse<usize>,
    /// The number of the sentence.
    pub(crate) n: usize,
    pub(crate) text: &'t str,
}

/// Returns the pieces of all the user's words among `rows`, those to keep first at the beginning.
pub(crate) fn pieces<'t>(rows: &'t [Row<'_>]) -> Vec<Piece<'t>> {
    let words = rows.iter().enumerate().filter(|(_, row)| row.is_user);
    let pieces = words.flat_map(|(at, row)| pieces_of(at, row));
    let mut pieces: Vec<Piece<'t>> = pieces.collect();
    pieces.sort_unstable();
    pieces
}

fn pieces_of<'t>(at: usize, row: &'t Row<'_>) -> Vec<Piece<'t>> {
    let is_short = row.text.len() <= SHORT;
    let found = if is_short {
        vec![row.text.as_str()]
    } else {
        sentences(&row.text)
    };
    let last = found.len().saturating_sub(1);
    let pieces = found.into_iter().enumerate().map(|(n, text)| {
        let depth = n.min(last - n);
        let words = words_of(text);
        let rank = match is_short {
            true if any_in("must", &words) => 0,
            true if row.is_answer => 1,
            false if depth == 0 => 2,
            true if any_in("states", &words) => 3,
            true => 4,
            false if is_pasted(text) => PASTED,
            false if any_in("must", &words) => 5,
            false => 6,
        };
        Piece {
            rank,
            length: if rank > 4 { row.text.len() } else { 0 },
            depth,
            row: Reverse(at),
            n,
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

/// Joins the kept sentences of a text, with `…` for others.
pub(crate) fn joined(part: &BTreeMap<usize, &str>, whole: &str) -> String {
    let mut text = String::new();
    let mut next = 0;
    for (n, piece) in part {
        if *n > next {
            text.truncate(text.trim_end().len());
            text.push_str(if text.is_empty() { "… " } else { " … " });
        }
        text.push_str(piece);
        next = n + 1;
    }
    text.truncate(text.trim_end().len());
    let last = part.values().last();
    let is_cut = last.is_some_and(|last| !whole.ends_with(*last));
    text.push_str(if is_cut { " …" } else { "" });
    text
}
