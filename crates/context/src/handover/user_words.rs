//! Selects the user's words that are kept, unchanged and in their order.
//!
//! If not all of them fit, obligations and prohibitions come first, then answers, then the other
//! short messages, then long ones. No sentence is left out because of what another sentence says.

use std::cmp::Reverse;
use std::ops::Range;

use foldhash::{HashMap, HashSet};

use super::cues::{self, Cues};
use super::format::{GAP, ItemKind, SectionItem};
use super::sentences::{normal, sentences};
use super::tokens::TokenBudget;

/// Shares of all tokens up to which the user's words are chosen in each step, in percent.
const OBLIGATIONS: u64 = 28;
const SHORT_MESSAGES: u64 = 48;
const WHOLE_MESSAGES: u64 = 56;
const ALL_WORDS: u64 = 57;
/// The minimum number of tokens for the user's words in a small text.
const LEAST: u64 = 120;
/// The maximum length of a message that is kept whole or not at all, in bytes. From longer messages
/// single sentences are kept if the whole does not fit.
const SHORT: usize = 400;
/// The maximum number of sentences that a user writes into one message by hand. The rest is pasted
/// text, in which no rules are searched.
const BY_HAND: usize = 4_000;
/// A long message is kept whole if it takes at most this percentage of the remaining tokens.
const WHOLE: u64 = 50;
/// The number of bytes of a token that no counter exceeds.
const DENSE: u64 = 12;
/// The maximum number of tokens of the sign for omitted words.
const GAP_COST: u64 = 2;
/// The length below which a sentence is worth less, in characters.
const PHRASE: usize = 20;

/// The user's words, with the choice of the kept ones.
#[derive(Debug, Default)]
pub(crate) struct UserWords {
    messages: Vec<UserMessage>,
}

#[derive(Debug)]
struct UserMessage {
    /// The position in the transcript.
    order: usize,
    text: String,
    is_answer: bool,
    /// The sentences, once they are needed.
    sentences: Vec<Sentence>,
    cues: Cues,
    /// Whether other short messages contain each of its sentences.
    is_repetition: bool,
    kept: KeptPart,
    /// The tokens of the whole message, once they are counted.
    cost: Option<u64>,
    /// The tokens of the kept sentences.
    paid: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptPart {
    No,
    Whole,
    Sentences,
}

#[derive(Debug)]
struct Sentence {
    at: Range<usize>,
    cues: Cues,
    is_machine: bool,
    is_kept: bool,
    /// How often the sentence occurs in all long messages; 0 if it occurs earlier.
    times: u32,
}

impl UserWords {
    /// Adds a text. Of a repeated text the last one stays.
    pub(crate) fn add(&mut self, order: usize, text: &str, is_answer: bool) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.messages.push(UserMessage {
            order,
            text: text.to_owned(),
            is_answer,
            sentences: Vec::new(),
            cues: Cues::default(),
            is_repetition: false,
            kept: KeptPart::No,
            cost: None,
            paid: 0,
        });
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
            is_last.push(seen.insert(message.text.clone()));
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

    /// Discards all choices.
    pub(crate) fn reset(&mut self) {
        for message in &mut self.messages {
            message.kept = KeptPart::No;
            message.paid = 0;
            for sentence in &mut message.sentences {
                sentence.is_kept = false;
            }
        }
    }

    /// Splits the messages into sentences, if they do not fit into `tokens` as a whole.
    pub(crate) fn prepare(&mut self, tokens: u64, count: &dyn Fn(&str) -> u64) {
        let is_done = self.messages.iter().any(|one| !one.sentences.is_empty());
        if is_done || self.total(tokens, count) <= tokens {
            return;
        }
        let mut times: HashMap<String, (usize, usize)> = HashMap::default();
        for (m, message) in self.messages.iter_mut().enumerate() {
            message.split();
            for (n, sentence) in message.sentences.iter().enumerate() {
                let text = normal(message.text.get(sentence.at.clone()).unwrap_or_default());
                let (count, last) = times.entry(text).or_default();
                if *last != m + 1 || n == 0 {
                    *count += 1;
                }
                *last = m + 1;
            }
        }
        for message in &mut self.messages {
            let mut is_repetition = true;
            let is_short = message.is_short();
            for sentence in &mut message.sentences {
                let text = normal(message.text.get(sentence.at.clone()).unwrap_or_default());
                let (count, _) = times.get_mut(&text).map_or((1, 0), |found| *found);
                is_repetition &= count > 1;
                sentence.times = u32::try_from(count).unwrap_or(u32::MAX);
                if !is_short {
                    // The other occurrences in long messages need not be kept.
                    times.entry(text).and_modify(|found| found.0 = 0);
                }
            }
            message.is_repetition = is_repetition;
        }
    }

    /// Chooses words, step by step up to a share of `all` tokens.
    pub(crate) fn spend(&mut self, all: u64, budget: &mut TokenBudget<'_>) {
        let up_to = |budget: &mut TokenBudget<'_>, percent: u64| {
            let spent = all.saturating_sub(budget.left());
            budget.share((all * percent / 100).max(LEAST).saturating_sub(spent));
        };
        up_to(budget, OBLIGATIONS);
        self.obligations_and_answers(budget);
        up_to(budget, SHORT_MESSAGES);
        self.short_messages(budget);
        up_to(budget, WHOLE_MESSAGES);
        self.whole_messages(budget);
        up_to(budget, ALL_WORDS);
        self.single_sentences(budget);
    }

    /// Chooses further words from all tokens that are left.
    pub(crate) fn spend_rest(&mut self, budget: &mut TokenBudget<'_>) {
        budget.share(u64::MAX);
        self.obligations_and_answers(budget);
        self.short_messages(budget);
        self.whole_messages(budget);
        self.single_sentences(budget);
    }

    /// Keeps short messages that oblige or forbid something, then answers; the newest first.
    fn obligations_and_answers(&mut self, budget: &mut TokenBudget<'_>) {
        for is_wanted in [
            |message: &UserMessage| message.cues.has(Cues::MUST) || message.sentences.is_empty(),
            |message: &UserMessage| message.is_answer,
        ] {
            for message in self.messages.iter_mut().rev() {
                if message.is_short() && is_wanted(message) {
                    message.keep_whole(budget);
                }
            }
        }
    }

    /// Keeps the other short messages by their length; one with a fact counts as a third of it, and
    /// one that only repeats others comes last.
    fn short_messages(&mut self, budget: &mut TokenBudget<'_>) {
        let mut found: Vec<(bool, f64, usize)> = Vec::new();
        for (m, message) in self.messages.iter().enumerate() {
            if message.is_short() && message.kept == KeptPart::No {
                let has_digit = message.text.bytes().any(|byte| byte.is_ascii_digit());
                let is_fact = message.cues.has(Cues::STATES) || has_digit;
                let cost = message.text.len() as f64 / 4.0 + 4.0;
                let worth = if is_fact { 3.0 } else { 1.0 } / cost;
                found.push((message.is_repetition, worth, m));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(b.2.cmp(&a.2)));
        for (_, _, m) in found {
            if budget.is_spent() {
                return;
            }
            if let Some(message) = self.messages.get_mut(m) {
                message.keep_whole(budget);
            }
        }
    }

    /// Keeps long messages that fit as a whole, the shorter ones first.
    fn whole_messages(&mut self, budget: &mut TokenBudget<'_>) {
        let mut long: Vec<&mut UserMessage> = self.messages.iter_mut().collect();
        long.retain(|message| message.is_open());
        long.sort_by_key(|message| message.text.len());
        for message in long {
            // If all words fit, no tokens are needed for single sentences.
            let share = if message.sentences.is_empty() {
                100
            } else {
                WHOLE
            };
            let left = budget.left_of_share() * share / 100 + message.paid;
            if message.text.len() as u64 / DENSE > left {
                return;
            }
            if message.cost(&|text| budget.count(text)) <= left {
                message.keep_whole(budget);
            }
        }
    }

    /// Keeps sentences of the other messages, by their worth in proportion to their length.
    fn single_sentences(&mut self, budget: &mut TokenBudget<'_>) {
        let newest = self.messages.len().max(1) as f64;
        let mut found: Vec<(bool, f64, usize, usize)> = Vec::new();
        for (m, message) in self.messages.iter().enumerate() {
            if !message.is_open() {
                continue;
            }
            let last = message.sentences.len().saturating_sub(1);
            for (n, sentence) in message.sentences.iter().enumerate() {
                if sentence.is_kept || sentence.times == 0 {
                    continue;
                }
                let text = message.text.get(sentence.at.clone()).unwrap_or_default();
                let mut worth = f64::from(sentence.times).powf(0.8);
                if text.trim().chars().count() < PHRASE {
                    worth *= 0.2;
                }
                if sentence.is_machine {
                    worth *= 0.6;
                }
                // The first and the last sentence of a text are the most important ones.
                if n == 0 || n == last {
                    worth *= 3.0;
                }
                if sentence.cues.has(Cues::STATES) {
                    worth *= 1.6;
                }
                worth *= 1.0 + 0.5 * (m as f64 / newest);
                let cost = text.len() as f64 / 4.0 + 3.0;
                found.push((sentence.cues.has(Cues::MUST), worth / cost, m, n));
            }
        }
        found.sort_by_key(|(is_must, _, m, n)| (Reverse(*is_must), *m, *n));
        found.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        for (_, _, m, n) in found {
            if budget.is_spent() {
                return;
            }
            if let Some(message) = self.messages.get_mut(m) {
                message.keep_sentence(n, budget);
            }
        }
    }

    /// Returns `true` if there are words that are not kept.
    pub(crate) fn has_more(&self) -> bool {
        self.messages
            .iter()
            .any(|message| message.kept != KeptPart::Whole)
    }

    /// Returns the kept words, with their positions in the transcript.
    pub(crate) fn items(&self) -> impl Iterator<Item = (usize, SectionItem)> {
        self.messages.iter().filter_map(|message| {
            let text = match message.kept {
                KeptPart::No => return None,
                KeptPart::Whole => message.text.clone(),
                KeptPart::Sentences => message.kept_sentences(),
            };
            Some((message.order, SectionItem::user(text)))
        })
    }
}

impl UserMessage {
    fn cost(&mut self, count: &dyn Fn(&str) -> u64) -> u64 {
        let written = || count(&SectionItem::user(&self.text).written());
        *self.cost.get_or_insert_with(written)
    }

    fn split(&mut self) {
        let found = sentences(&self.text);
        self.sentences = found
            .into_iter()
            .enumerate()
            .map(|(n, at)| {
                let text = self.text.get(at.clone()).unwrap_or_default();
                let is_machine = n >= BY_HAND || cues::is_machine(text);
                Sentence {
                    at,
                    cues: if is_machine {
                        Cues::default()
                    } else {
                        Cues::of(text)
                    },
                    is_machine,
                    is_kept: false,
                    times: 1,
                }
            })
            .collect();
        self.cues = Cues::of(if self.is_short() { &self.text } else { "" });
    }

    fn is_short(&self) -> bool {
        self.text.len() <= SHORT
    }

    /// Returns `true` if further sentences of the message could be kept.
    fn is_open(&self) -> bool {
        !self.is_short() && self.kept != KeptPart::Whole
    }

    fn keep_whole(&mut self, budget: &mut TokenBudget<'_>) {
        if self.kept == KeptPart::Whole || budget.is_spent() {
            return;
        }
        let cost = self.cost(&|text| budget.count(text));
        if budget.spend_tokens(cost.saturating_sub(self.paid)) {
            self.kept = KeptPart::Whole;
            self.paid = cost;
        }
    }

    fn keep_sentence(&mut self, n: usize, budget: &mut TokenBudget<'_>) {
        let Some(sentence) = self.sentences.get_mut(n) else {
            return;
        };
        let text = self.text.get(sentence.at.clone()).unwrap_or_default();
        let mut cost = budget.count(text) + GAP_COST;
        if self.kept == KeptPart::No {
            cost += GAP_COST;
        }
        if budget.spend_tokens(cost) {
            sentence.is_kept = true;
            self.kept = KeptPart::Sentences;
            self.paid += cost;
        }
    }

    /// Returns the kept sentences, with a sign for omitted ones.
    fn kept_sentences(&self) -> String {
        let mut joined = String::new();
        let mut has_gap = false;
        for sentence in &self.sentences {
            if !sentence.is_kept {
                has_gap = true;
                continue;
            }
            if std::mem::take(&mut has_gap) {
                let end = joined.trim_end().len();
                let blanks = joined.split_off(end);
                if end > 0 {
                    joined.push(' ');
                }
                joined.push(GAP);
                joined.push_str(if blanks.contains('\n') { "\n" } else { " " });
            }
            joined.push_str(self.text.get(sentence.at.clone()).unwrap_or_default());
        }
        joined.truncate(joined.trim_end().len());
        if has_gap && !joined.is_empty() {
            joined.push(' ');
            joined.push(GAP);
        }
        joined
    }
}
