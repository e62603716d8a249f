//! Selects the user's words that are kept, unchanged and in their order.
//!
//! If not all of them fit, of pasted lines the first and last ones stay. Then short messages come
//! first: obligations and prohibitions, then answers, then the newest. Long ones follow, whole if they
//! fit, otherwise with their obligations, their head and their tail. No sentence is left out because
//! of another one.

use std::collections::BTreeMap;

use super::DENSE;
use super::cues::{Cues, is_machine};
use super::format::GAP;
use super::rows::Row;
use super::sentences::sentences;
use super::tokens::TokenBudget;

/// The maximum length of a message that is kept whole or not at all, in bytes.
const SHORT: usize = 400;
/// The share of the tokens that short messages may use before the long ones, in percent.
const SHORT_MESSAGES: u64 = 90;
/// The minimum number of tokens for the sentences of a long message.
const LEAST_CUT: u64 = 12;
/// The number of sentences that do not fit after which no further ones of a message are counted.
const MISSES: u32 = 8;
/// The maximum number of tokens of the sign for omitted words, and of the mark of a message.
const GAP_COST: u64 = 2;
const MARK_COST: u64 = 4;
/// The number of pasted lines that are kept at each end.
const PASTED_ENDS: usize = 3;
/// The number of digits from which a line counts as one of a log.
const LOG_DIGITS: usize = 6;

/// Chooses words of at most `tokens` among `rows`, in place of the former choice.
pub(crate) fn choose(rows: &mut [Row<'_>], tokens: u64, budget: &mut TokenBudget<'_>) {
    let words = rows.iter_mut().rev().filter(|row| row.is_user);
    let mut words: Vec<&mut Row<'_>> = words.collect();
    budget.left += words.iter_mut().map(|row| row.reset()).sum::<u64>();
    let before = budget.left;
    let tokens = tokens.min(before);
    budget.share(tokens);
    let bytes: usize = words.iter().map(|row| row.kept_text().len()).sum();
    if bytes as u64 / DENSE <= tokens
        && words.iter_mut().map(|row| row.cost(budget)).sum::<u64>() <= tokens
    {
        return keep_all(&mut words, budget);
    }
    for row in &mut words {
        let part = without_pasted(row.kept_text());
        part.into_iter().for_each(|part| row.shorten(part));
    }
    let is_short = |row: &&mut Row<'_>| row.kept_text().len() <= SHORT;
    let (mut short, mut long): (Vec<_>, Vec<_>) = words.into_iter().partition(is_short);
    short.sort_by_cached_key(|row| rank(row));
    long.sort_by_key(|row| row.kept_text().len());
    budget.share(tokens * SHORT_MESSAGES / 100);
    keep_all(&mut short, budget);
    budget.share(tokens.saturating_sub(before - budget.left));
    // A long one may take half of the rest; otherwise it is cut to an equal share.
    for (others, row) in (0..long.len() as u64).rev().zip(long) {
        let left = budget.share;
        row.keep(0, if others == 0 { left } else { left / 2 }, budget);
        if !row.is_kept {
            keep_part(row, left / (others + 1), budget);
        }
    }
    keep_all(&mut short, budget);
}

/// Keeps the messages for which there are enough tokens.
fn keep_all(rows: &mut [&mut Row<'_>], budget: &mut TokenBudget<'_>) {
    for row in rows {
        if budget.is_spent() {
            return;
        }
        row.keep(0, u64::MAX, budget);
    }
}

/// Returns the place of a short message in the order of choice.
fn rank(row: &Row<'_>) -> u8 {
    let cues = Cues::of(row.kept_text());
    if cues.has("must") {
        0
    } else if row.is_answer {
        1
    } else if cues.has("states") {
        2
    } else {
        3
    }
}

/// Returns a text in which only the first and last of many pasted lines stand, if there are many.
fn without_pasted(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept: Vec<&str> = Vec::new();
    for run in lines.chunk_by(|a, b| is_pasted(a) == is_pasted(b)) {
        let ends = (run.first_chunk::<PASTED_ENDS>(), run.last_chunk::<PASTED_ENDS>());
        let is_long = run.len() > 2 * PASTED_ENDS + 1 && run.iter().any(|line| is_pasted(line));
        match ends {
            (Some(first), Some(last)) if is_long => {
                kept.extend(first);
                kept.push("…");
                kept.extend(last);
            }
            _ => kept.extend(run),
        }
    }
    (kept.len() < lines.len()).then(|| kept.join("\n"))
}

/// Checks whether a line may be one of a log, a stack trace or code. Blank lines stand in them, too.
fn is_pasted(line: &str) -> bool {
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    let is_indented = line.starts_with([' ', '\t']) && !line.trim_start().starts_with(['-', '*']);
    line.trim().is_empty() || is_indented || digits >= LOG_DIGITS || is_machine(line)
}

/// Keeps sentences of at most `tokens`: obligations, then those nearest to the beginning and the end.
fn keep_part(row: &mut Row<'_>, tokens: u64, budget: &mut TokenBudget<'_>) {
    if tokens < LEAST_CUT {
        return;
    }
    let found = sentences(row.kept_text());
    let order = found.iter().enumerate();
    let order = order.map(|(n, text)| (!Cues::of(text).has("must"), n.min(found.len() - 1 - n), n));
    let mut order: Vec<(bool, usize, usize)> = order.collect();
    order.sort_unstable();
    let mut part = TokenBudget::new(tokens - GAP_COST - MARK_COST, budget.counter);
    let mut kept = BTreeMap::new();
    let mut misses = 0;
    for (.., n) in order {
        let text = found.get(n).copied().unwrap_or_default();
        if part.spend(part.count(text) + GAP_COST) {
            kept.insert(n, text);
        } else {
            misses += 1;
            if misses == MISSES {
                break;
            }
        }
    }
    let mut joined = String::new();
    let mut next = 0;
    for (n, text) in &kept {
        push_gap(&mut joined, *n > next);
        joined.push_str(text);
        next = n + 1;
    }
    push_gap(&mut joined, next < found.len());
    if !kept.is_empty() {
        row.shorten(joined.trim_end().to_owned());
        row.keep(0, u64::MAX, budget);
    }
}

/// Adds the sign for omitted words, between blanks, if words are omitted.
fn push_gap(text: &mut String, is_gap: bool) {
    if is_gap {
        text.truncate(text.trim_end().len());
        text.push_str(if text.is_empty() { "" } else { " " });
        text.push(GAP);
        text.push(' ');
    }
}
