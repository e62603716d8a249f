//! Selects the user's words that are kept, unchanged and in their order.
//!
//! If not all of them fit, short messages come first: obligations and prohibitions, then answers,
//! then the newest. Long ones follow, whole if they fit, otherwise with their obligations, their
//! head and their tail. No sentence is left out because of another one.

use std::collections::BTreeMap;

use foldhash::HashSet;

use super::DENSE;
use super::cues::{self, Cues};
use super::format::{GAP, ItemKind, SectionItem};
use super::sentences::sentences;
use super::tokens::TokenBudget;
use super::work::Order;

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

/// The user's words, with the choice of the kept ones.
#[derive(Debug, Default)]
pub(crate) struct UserWords {
    messages: Vec<UserMessage>,
    /// The tokens of the kept words.
    spent: u64,
}

#[derive(Debug)]
struct UserMessage {
    /// The position in the transcript.
    order: Order,
    text: String,
    is_answer: bool,
    /// The tokens of the whole message, once they are counted.
    cost: Option<u64>,
    kept: Option<String>,
}

impl UserWords {
    /// Adds a text. Of a repeated text the last one stays.
    pub(crate) fn add(&mut self, order: Order, text: &str, is_answer: bool) {
        let text = text.trim();
        if !text.is_empty() {
            self.messages.push(UserMessage {
                order,
                text: text.to_owned(),
                is_answer,
                cost: None,
                kept: None,
            });
        }
    }

    /// Adds an item of an earlier handover. Returns `false` if it is not the user's.
    pub(crate) fn add_item(&mut self, order: Order, item: &SectionItem) -> bool {
        let is_users = item.kind == ItemKind::User;
        if is_users {
            self.add(order, &item.text, false);
        }
        is_users
    }

    /// Drops repeated texts; the last of them stays.
    pub(crate) fn drop_repeated(&mut self) {
        let mut seen = HashSet::default();
        let mut is_last: Vec<bool> = Vec::with_capacity(self.messages.len());
        for message in self.messages.iter().rev() {
            is_last.push(seen.insert(message.text.as_str()));
        }
        let mut is_last = is_last.into_iter().rev();
        self.messages.retain(|_| is_last.next().unwrap_or(true));
    }

    /// Returns the tokens of all words, or at least `enough` if there are more.
    pub(crate) fn total(&mut self, enough: u64, count: &dyn Fn(&str) -> u64) -> u64 {
        // Even a very dense counter has a token for a dozen bytes.
        let bytes: usize = self.messages.iter().map(|message| message.text.len()).sum();
        if bytes as u64 / DENSE > enough {
            return bytes as u64 / DENSE;
        }
        let costs = self.messages.iter_mut().map(|message| message.cost(count));
        costs.sum()
    }

    /// Discards the choice.
    pub(crate) fn reset(&mut self) {
        self.spent = 0;
        for message in &mut self.messages {
            message.kept = None;
        }
    }

    /// Chooses words of at most `tokens` in place of the former choice.
    pub(crate) fn choose(&mut self, tokens: u64, budget: &mut TokenBudget<'_>) {
        budget.give_back(self.spent);
        self.reset();
        let before = budget.left();
        let tokens = tokens.min(before);
        budget.share(tokens);
        if self.total(tokens, &|text| budget.count(text)) <= tokens {
            keep_all(self.messages.iter_mut(), budget);
        } else {
            let messages = self.messages.iter_mut().rev();
            let (mut short, mut long): (Vec<_>, Vec<_>) =
                messages.partition(|message| message.text.len() <= SHORT);
            short.sort_by_cached_key(|message| message.rank());
            long.sort_by_key(|message| message.text.len());
            budget.share(tokens * SHORT_MESSAGES / 100);
            keep_all(short.iter_mut().map(|message| &mut **message), budget);
            budget.share(tokens.saturating_sub(before - budget.left()));
            // A long one may take half of the rest; otherwise it is cut to an equal share.
            for (others, message) in (0..long.len() as u64).rev().zip(long) {
                let left = budget.left_of_share();
                message.keep_whole(if others == 0 { left } else { left / 2 }, budget);
                message.keep_part(left / (others + 1), budget);
            }
            keep_all(short.into_iter(), budget);
        }
        self.spent = before - budget.left();
    }

    /// Returns the kept words, with their positions in the transcript.
    pub(crate) fn items(&self) -> impl Iterator<Item = (Order, SectionItem)> {
        self.messages.iter().filter_map(|message| {
            let text = message.kept.as_ref()?;
            Some((message.order, SectionItem::user(text)))
        })
    }
}

impl UserMessage {
    fn cost(&mut self, count: &dyn Fn(&str) -> u64) -> u64 {
        let written = || count(&SectionItem::user(&self.text).written());
        *self.cost.get_or_insert_with(written)
    }

    /// Returns the place of a short message in the order of choice.
    fn rank(&self) -> u8 {
        let cues = Cues::of(&self.text);
        if cues.has(Cues::MUST) {
            0
        } else if self.is_answer {
            1
        } else if cues.has(Cues::STATES) {
            2
        } else {
            3
        }
    }

    /// Keeps the message if it has at most `most` tokens.
    fn keep_whole(&mut self, most: u64, budget: &mut TokenBudget<'_>) {
        // Even a very dense counter has a token for a dozen bytes.
        let is_far = self.text.len() as u64 / DENSE > most;
        if self.kept.is_none() && !is_far {
            let cost = self.cost(&|text| budget.count(text));
            if cost <= most && budget.spend_tokens(cost) {
                self.kept = Some(self.text.clone());
            }
        }
    }

    /// Keeps sentences of at most `tokens`, unless the message is kept: obligations, then those
    /// nearest to the beginning and the end.
    fn keep_part(&mut self, tokens: u64, budget: &mut TokenBudget<'_>) {
        if self.kept.is_some() || tokens < LEAST_CUT {
            return;
        }
        let found = sentences(&self.text);
        let found: Vec<&str> = found
            .into_iter()
            .filter_map(|at| self.text.get(at))
            .collect();
        let is_must = |n: usize, text: &str| {
            n < BY_HAND && !cues::is_machine(text) && Cues::of(text).has(Cues::MUST)
        };
        let sentences = found.iter().enumerate();
        let mut order: Vec<(bool, usize, usize)> = sentences
            .map(|(n, text)| (!is_must(n, text), n.min(found.len() - 1 - n), n))
            .collect();
        order.sort_unstable();
        let mut part = TokenBudget::new(tokens.saturating_sub(GAP_COST), budget.counter());
        let mut kept = BTreeMap::new();
        let mut misses = 0;
        for (.., n) in order {
            let text = found.get(n).copied().unwrap_or_default();
            if part.spend_tokens(part.count(text) + GAP_COST) {
                kept.insert(n, text);
            } else {
                misses += 1;
                if misses == MISSES {
                    break;
                }
            }
        }
        if kept.is_empty() || !budget.spend_tokens(tokens - part.left()) {
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
        self.kept = Some(joined);
    }
}

/// Keeps the messages for which there are enough tokens.
fn keep_all<'m>(messages: impl Iterator<Item = &'m mut UserMessage>, budget: &mut TokenBudget<'_>) {
    for message in messages {
        if budget.is_spent() {
            return;
        }
        message.keep_whole(u64::MAX, budget);
    }
}

/// Adds the sign for omitted words, between blanks.
fn push_gap(text: &mut String) {
    text.truncate(text.trim_end().len());
    text.push_str(if text.is_empty() { "" } else { " " });
    text.push(GAP);
    text.push(' ');
}
