//! Selects the user's words that are kept, unchanged and in their order.
//!
//! If not all of them fit, short messages are kept as a whole, and long ones in sentences. Pasted lines
//! come last. No sentence is left out because of another one.

use std::collections::BTreeMap;

use super::DENSE;
use super::cues::{Cues, is_machine};
use super::rows::Row;
use super::sentences::sentences;
use super::tokens::TokenBudget;

/// The maximum length of a message that is kept whole or not at all, in bytes.
const SHORT: usize = 400;
/// The rank of pasted lines of long messages.
const PASTED: u8 = 7;
/// The number of digits from which a line counts as one of a log.
const LOG_DIGITS: usize = 6;
/// The tokens of the mark of a message, or of the sign for omitted words.
const MARK: u64 = 2;

/// A short message, or a sentence of a long one. The order of choice: the rank, the length of a long
/// message, the number of sentences between this one and the nearer end of the message, and the number
/// of the message, the newest first. Then the number of the sentence.
type Piece<'t> = (u8, usize, usize, usize, usize, &'t str);

/// Chooses words of at most `tokens` among `rows`, in place of the former choice. Pasted lines get what
/// the typed words leave of `pasted`.
pub(crate) fn choose(
    rows: &mut [Row<'_>],
    (tokens, pasted): (u64, u64),
    budget: &mut TokenBudget<'_>,
) {
    let words = rows.iter_mut().rev().filter(|row| row.is_user);
    let mut words: Vec<&mut Row<'_>> = words.collect();
    budget.left += words.iter_mut().map(|row| row.reset()).sum::<u64>();
    budget.share(tokens);
    let bytes: usize = words.iter().map(|row| row.text.len()).sum();
    if bytes as u64 / DENSE <= budget.share
        && words.iter_mut().map(|row| row.cost(budget)).sum::<u64>() <= budget.share
    {
        words.iter_mut().for_each(|row| row.keep(budget));
        return;
    }
    let texts: Vec<String> = words.iter().map(|row| row.text.clone()).collect();
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for (n, (row, text)) in words.iter().zip(&texts).enumerate() {
        pieces.extend(pieces_of(n, text, row.is_answer));
    }
    pieces.sort_unstable();
    let (typed, lines) = pieces.split_at(pieces.partition_point(|(rank, ..)| *rank < PASTED));
    let mut parts = vec![(BTreeMap::new(), 0); words.len()];
    let all = budget.share;
    keep_pieces(typed, &mut parts, budget);
    let spent = all - budget.share;
    budget.share(pasted.saturating_sub(spent).min(budget.share));
    keep_pieces(lines, &mut parts, budget);
    for ((row, text), (part, spent)) in words.into_iter().zip(&texts).zip(parts) {
        if !part.is_empty() {
            row.keep_part(joined(&part, text), spent);
        }
    }
}

/// Keeps pieces for which there are enough tokens, in the part of their message, with the spent tokens.
fn keep_pieces<'t>(
    pieces: &[Piece<'t>],
    parts: &mut [(BTreeMap<usize, &'t str>, u64)],
    budget: &mut TokenBudget<'_>,
) {
    for (.., row, n, text) in pieces {
        if budget.is_spent() {
            return;
        }
        let cost = budget.count(text) + MARK;
        if let Some((part, spent)) = parts.get_mut(*row).filter(|_| budget.spend(cost)) {
            part.insert(*n, *text);
            *spent += cost;
        }
    }
}

/// Returns a short message as a whole, or the sentences of a long one. Short obligations and
/// prohibitions come first, then answers, the ends of long messages, and short messages with a fact or
/// a wish.
fn pieces_of(row: usize, text: &str, is_answer: bool) -> Vec<Piece<'_>> {
    let length = text.len();
    let is_short = length <= SHORT;
    let found = if is_short {
        vec![text]
    } else {
        sentences(text)
    };
    let last = found.len().saturating_sub(1);
    let pieces = found.into_iter().enumerate().map(|(n, text)| {
        let depth = n.min(last - n);
        let cues = Cues::of(text);
        let rank = match is_short {
            true if cues.has("must") => 0,
            true if is_answer => 1,
            false if depth == 0 => 2,
            true if cues.has("states") => 3,
            true => 4,
            false if is_pasted(text) => PASTED,
            false if cues.has("must") => 5,
            false => 6,
        };
        let length = if rank > 4 { length } else { 0 };
        (rank, length, depth, row, n, text)
    });
    pieces.collect()
}

/// Joins the kept sentences of a text, with `…` for others.
fn joined(part: &BTreeMap<usize, &str>, whole: &str) -> String {
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
    let is_cut = part
        .values()
        .last()
        .is_some_and(|last| !whole.ends_with(*last));
    text.push_str(if is_cut { " …" } else { "" });
    text
}

/// Checks whether a line may be one of a log, a stack trace or code. An entry of a list is typed.
fn is_pasted(line: &str) -> bool {
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    digits >= LOG_DIGITS || is_machine(line) && !line.starts_with("- ")
}
