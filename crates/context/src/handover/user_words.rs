//! Selects the user's words that are kept, unchanged and in their order.
//!
//! If not all of them fit, short messages come first: obligations and prohibitions, then answers,
//! then the newest. Long ones follow, whole if they fit, otherwise with their obligations, their
//! head and their tail. No sentence is left out because of another one.

use std::cmp::Reverse;

use foldhash::HashSet;

use super::cues::{self, Cues};
use super::format::{GAP, ItemKind, SectionItem};
use super::sentences::sentences;
use super::tokens::TokenBudget;

/// The maximum length of a message that is kept whole or not at all, in bytes.
const SHORT: usize = 400;
/// The share of the tokens that short messages may use before the long ones, in percent.
const SHORT_MESSAGES: u64 = 80;
/// A long message is kept whole if it takes at most this percentage of the remaining tokens.
const WHOLE: u64 = 50;
/// The minimum number of tokens for the sentences of a long message.
const LEAST_CUT: u64 = 12;
/// The number of sentences that do not fit after which no further ones of a message are counted.
const MISSES: u32 = 8;
/// The maximum number of sentences that a user writes into one message by hand. The rest is pasted
/// text, in which no obligations are searched.
const BY_HAND: usize = 4_000;
/// The number of bytes of a token that no counter exceeds.
const DENSE: u64 = 12;
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
    order: usize,
    text: String,
    is_answer: bool,
    /// The tokens of the whole message, once they are counted.
    cost: Option<u64>,
    kept: Option<String>,
}

impl UserWords {
    /// Adds a text. Of a repeated text the last one stays.
    pub(crate) fn add(&mut self, order: usize, text: &str, is_answer: bool) {
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
    pub(crate) fn add_item(&mut self, order: usize, item: &SectionItem) -> bool {
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
            for message in &mut self.messages {
                message.keep_whole(budget);
            }
        } else {
            let mut short: Vec<(u8, Reverse<usize>)> = self
                .messages
                .iter()
                .enumerate()
                .filter(|(_, message)| message.text.len() <= SHORT)
                .map(|(n, message)| (message.rank(), Reverse(n)))
                .collect();
            short.sort_unstable();
            budget.share(tokens * SHORT_MESSAGES / 100);
            self.keep_short(&short, budget);
            budget.share(tokens.saturating_sub(before - budget.left()));
            self.keep_long(budget);
            self.keep_short(&short, budget);
        }
        self.spent = before - budget.left();
    }

    fn keep_short(&mut self, short: &[(u8, Reverse<usize>)], budget: &mut TokenBudget<'_>) {
        for (_, Reverse(n)) in short {
            if budget.is_spent() {
                return;
            }
            if let Some(message) = self.messages.get_mut(*n) {
                message.keep_whole(budget);
            }
        }
    }

    /// Keeps the long messages, the shorter ones first: whole, or a part in an equal share of the
    /// tokens.
    fn keep_long(&mut self, budget: &mut TokenBudget<'_>) {
        let mut long: Vec<&mut UserMessage> = self.messages.iter_mut().collect();
        long.retain(|message| message.text.len() > SHORT);
        long.sort_by_key(|message| message.text.len());
        let mut others = long.len() as u64;
        for message in long {
            let left = budget.left_of_share();
            others -= 1;
            let whole = if others == 0 {
                left
            } else {
                left * WHOLE / 100
            };
            let is_far = message.text.len() as u64 / DENSE > whole;
            if !is_far && message.cost(&|text| budget.count(text)) <= whole {
                message.keep_whole(budget);
            } else {
                message.keep_part(left / (others + 1), budget);
            }
        }
    }

    /// Returns the kept words, with their positions in the transcript.
    pub(crate) fn items(&self) -> impl Iterator<Item = (usize, SectionItem)> {
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

    fn keep_whole(&mut self, budget: &mut TokenBudget<'_>) {
        if self.kept.is_none() {
            let cost = self.cost(&|text| budget.count(text));
            if budget.spend_tokens(cost) {
                self.kept = Some(self.text.clone());
            }
        }
    }

    /// Keeps sentences of at most `tokens`: obligations, then those nearest to the beginning and
    /// the end.
    fn keep_part(&mut self, tokens: u64, budget: &mut TokenBudget<'_>) {
        if tokens < LEAST_CUT {
            return;
        }
        let found = sentences(&self.text);
        let text = |n: usize| {
            let at = found.get(n).cloned().unwrap_or_default();
            self.text.get(at).unwrap_or_default()
        };
        let mut order: Vec<(bool, usize, usize)> = (0..found.len())
            .map(|n| {
                let is_must =
                    n < BY_HAND && !cues::is_machine(text(n)) && Cues::of(text(n)).has(Cues::MUST);
                (!is_must, n.min(found.len() - 1 - n), n)
            })
            .collect();
        order.sort_unstable();
        let mut part = TokenBudget::new(tokens.saturating_sub(GAP_COST), budget.counter());
        let mut kept: Vec<usize> = Vec::new();
        let mut misses = 0;
        for (_, _, n) in order {
            if part.spend_tokens(part.count(text(n)) + GAP_COST) {
                kept.push(n);
                continue;
            }
            misses += 1;
            if misses == MISSES {
                break;
            }
        }
        kept.sort_unstable();
        let mut joined = String::new();
        let mut next = 0;
        for n in &kept {
            if *n > next {
                joined.truncate(joined.trim_end().len());
                joined.push_str(if joined.is_empty() { "" } else { " " });
                joined.push(GAP);
                joined.push(' ');
            }
            joined.push_str(text(*n));
            next = n + 1;
        }
        joined.truncate(joined.trim_end().len());
        if next < found.len() {
            joined.push(' ');
            joined.push(GAP);
        }
        if !kept.is_empty() && budget.spend_tokens(tokens - part.left()) {
            self.kept = Some(joined);
        }
    }
}
