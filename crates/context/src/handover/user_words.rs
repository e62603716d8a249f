//! Selects the user's words that are kept, unchanged and in their order.
//!
//! If not all of them fit, short messages come first: obligations and prohibitions, then answers,
//! then the newest. Long ones follow, whole if they fit, otherwise with their obligations, their
//! head and their tail. No sentence is left out because of another one.

use std::collections::BTreeMap;

use super::DENSE;
use super::cues::{self, Cues};
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
/// The maximum number of sentences that a user writes into one message by hand. The rest is pasted
/// text, in which no obligations are searched.
const BY_HAND: usize = 4_000;
/// The maximum number of tokens of the sign for omitted words.
const GAP_COST: u64 = 2;

/// Chooses words of at most `tokens` among `rows`, in place of the former choice.
pub(crate) fn choose(rows: &mut [Row<'_>], tokens: u64, budget: &mut TokenBudget<'_>) {
    let words = rows.iter_mut().rev().filter(|row| row.is_user);
    let mut words: Vec<&mut Row<'_>> = words.collect();
    budget.left += words.iter_mut().map(|row| row.reset()).sum::<u64>();
    let before = budget.left;
    let tokens = tokens.min(before);
    budget.share(tokens);
    let bytes: usize = words.iter().map(|row| row.text.len()).sum();
    if bytes as u64 / DENSE <= tokens
        && words.iter_mut().map(|row| row.cost(budget)).sum::<u64>() <= tokens
    {
        return keep_all(&mut words, budget);
    }
    let (mut short, mut long): (Vec<_>, Vec<_>) =
        words.into_iter().partition(|row| row.text.len() <= SHORT);
    short.sort_by_cached_key(|row| rank(row));
    long.sort_by_key(|row| row.text.len());
    budget.share(tokens * SHORT_MESSAGES / 100);
    keep_all(&mut short, budget);
    budget.share(tokens.saturating_sub(before - budget.left));
    // A long one may take half of the rest; otherwise it is cut to an equal share.
    for (others, row) in (0..long.len() as u64).rev().zip(long) {
        let left = budget.share;
        row.keep(0, if others == 0 { left } else { left / 2 }, budget);
        keep_part(row, left / (others + 1), budget);
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
    let cues = Cues::of(&row.text);
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

/// Keeps sentences of at most `tokens`, unless the message is kept: obligations, then those nearest to
/// the beginning and the end.
fn keep_part(row: &mut Row<'_>, tokens: u64, budget: &mut TokenBudget<'_>) {
    if row.is_kept || tokens < LEAST_CUT {
        return;
    }
    let found = sentences(&row.text).into_iter();
    let found: Vec<&str> = found.filter_map(|at| row.text.get(at)).collect();
    let is_must =
        |n: usize, text: &str| n < BY_HAND && !cues::is_machine(text) && Cues::of(text).has("must");
    let order = found.iter().enumerate();
    let order = order.map(|(n, text)| (!is_must(n, text), n.min(found.len() - 1 - n), n));
    let mut order: Vec<(bool, usize, usize)> = order.collect();
    order.sort_unstable();
    let mut part = TokenBudget::new(tokens.saturating_sub(GAP_COST), budget.counter);
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
    let cost = tokens - part.left;
    if kept.is_empty() || !budget.spend(cost) {
        return;
    }
    let mut joined = String::new();
    let mut next = 0;
    for (n, text) in kept {
        if n > next {
            push_gap(&mut joined);
        }
        joined.push_str(text);
        next = n + 1;
    }
    if next < found.len() {
        push_gap(&mut joined);
    }
    joined.truncate(joined.trim_end().len());
    (row.is_kept, row.spent, row.part) = (true, cost, Some(joined));
}

/// Adds the sign for omitted words, between blanks.
fn push_gap(text: &mut String) {
    text.truncate(text.trim_end().len());
    text.push_str(if text.is_empty() { "" } else { " " });
    text.push(GAP);
    text.push(' ');
}
