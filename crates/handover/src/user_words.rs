//! Selects the user's words that are kept, unchanged and in their order. No sentence is left out
//! because of the content of another one.

use foldhash::{HashMap, HashSet};
use std::ops::Range;

use crate::entries::{Text, WordsOrigin};
use crate::format::{GAP, ItemKind, SectionItem};
use crate::sentence_kinds::{self, PersonCues, Rule};
use crate::sentences::{normal, sentences};
use crate::tokens::TokenBudget;

/// The maximum length of a message that is kept whole or not at all, in bytes. From longer messages
/// single sentences are kept if the whole does not fit.
const SHORT: usize = 400;
/// The maximum number of sentences that a user writes into one message by hand. The rest is pasted
/// text, in which no rules are searched.
const BY_HAND: usize = 4_000;
/// A long message is kept whole if it takes at most this percentage of the remaining tokens.
const WHOLE: u64 = 50;
/// The maximum number of tokens of the sign for omitted words.
const GAP_COST: u64 = 2;
/// The length below which a sentence is worth less, in characters.
const PHRASE: usize = 20;

/// One of the user's texts.
#[derive(Debug)]
pub(crate) struct SaidText {
    /// The position in the transcript.
    pub(crate) order: usize,
    pub(crate) text: String,
    pub(crate) standing: PriorKnowledge,
}

impl SaidText {
    /// Returns the user's words among the texts, including those in earlier handovers.
    pub(crate) fn all(texts: &[(usize, Text<'_>)]) -> Vec<Self> {
        let mut all = Vec::new();
        for (_, text) in texts {
            match text {
                Text::Person { words, source } => {
                    all.push(Self::of_person(all.len(), words, *source));
                }
                Text::Handover(items) => {
                    for (_, item) in items {
                        all.extend(Self::of_item(all.len(), item));
                    }
                }
                _ => {}
            }
        }
        all
    }

    pub(crate) fn of_person(order: usize, words: &str, source: WordsOrigin) -> Self {
        Self {
            order,
            text: words.to_owned(),
            standing: match source {
                WordsOrigin::Message => PriorKnowledge::New,
                WordsOrigin::Reply => PriorKnowledge::Reply,
            },
        }
    }

    /// Converts an item of an earlier handover. Returns `None` if the item is not the user's.
    pub(crate) fn of_item(order: usize, item: &SectionItem) -> Option<Self> {
        let standing = match item.kind {
            ItemKind::Rule => PriorKnowledge::Rule,
            ItemKind::User => PriorKnowledge::New,
            ItemKind::Note => return None,
        };
        Some(Self {
            order,
            text: item.text.clone(),
            standing,
        })
    }
}

/// Prior knowledge about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PriorKnowledge {
    New,
    /// The text answers a tool call: a decision of the user.
    Reply,
    /// The text was marked as a rule in an earlier handover.
    Rule,
}

/// The user's words, with the choice of the kept ones.
#[derive(Debug, Default)]
pub(crate) struct UserWords {
    messages: Vec<Utterance>,
}

#[derive(Debug)]
struct Utterance {
    order: usize,
    text: String,
    sentences: Vec<Sentence>,
    kept: KeptPart,
    /// The cost of the kept sentences.
    paid: u64,
    standing: PriorKnowledge,
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
    rule: Option<Rule>,
    is_fact: bool,
    is_kept: bool,
    /// Whether the sentence only acknowledges, or repeats other messages.
    is_chatter: bool,
    /// How often the sentence occurs in all of the user's messages; 0 if it occurs earlier.
    times: u32,
    is_machine: bool,
}

impl UserWords {
    /// Reads texts in their order.
    pub(crate) fn of(texts: Vec<SaidText>) -> Self {
        let all = texts.iter().map(|message| message.text.as_str());
        let repeated = repeated(all.filter(|text| text.len() <= SHORT));
        // Of a repeated text the last one stays.
        let mut seen = HashSet::default();
        let mut last: Vec<SaidText> = texts
            .into_iter()
            .rev()
            .filter(|message| !message.text.trim().is_empty() && seen.insert(normal(&message.text)))
            .collect();
        last.reverse();
        let mut messages = Vec::with_capacity(last.len());
        for message in last {
            let mut utterance = Utterance::of(message);
            utterance.mark_chatter(&repeated);
            messages.push(utterance);
        }
        count_repetitions(&mut messages);
        Self { messages }
    }

    /// Returns the tokens of all words.
    pub(crate) fn weight(&self, count: &dyn Fn(&str) -> u64) -> u64 {
        let live = self.messages.iter().map(Utterance::live);
        live.map(|text| count(&SectionItem::user(text, false).written()))
            .sum()
    }

    /// Discards all choices.
    pub(crate) fn reset(&mut self) {
        for message in &mut self.messages {
            message.kept = KeptPart::No;
            message.paid = 0;
            message
                .sentences
                .iter_mut()
                .for_each(|sentence| sentence.is_kept = false);
        }
    }

    /// Keeps short messages with a rule or a decision: the newest first.
    pub(crate) fn spend_on_rules(&mut self, tokens: &mut TokenBudget<'_>) {
        let mut found = Vec::new();
        for (m, message) in self.messages.iter().enumerate() {
            if message.is_short() && message.kept == KeptPart::No {
                let is_reply = message.standing == PriorKnowledge::Reply;
                let strength = message.strength().filter(|rule| *rule > Rule::Wish);
                found.extend(strength.map(|rule| (is_reply, rule, m)));
            }
        }
        found.sort_by_key(|found| std::cmp::Reverse(*found));
        for (_, _, m) in found {
            if tokens.is_spent() {
                break;
            }
            if let Some(message) = self.messages.get_mut(m)
                && tokens.spend(&message.item(message.live()).written())
            {
                message.kept = KeptPart::Whole;
            }
        }
    }

    /// Keeps the rules in long messages that are not kept whole. Words such as "use" and "keep" do
    /// not count as rules there, because they are everywhere in a long text.
    pub(crate) fn spend_on_inner_rules(&mut self, tokens: &mut TokenBudget<'_>) {
        for message in self.messages.iter_mut().rev() {
            if !message.is_open() {
                continue;
            }
            for n in (0..message.sentences.len()).rev() {
                if tokens.is_spent() {
                    return;
                }
                message.spend_on_sentence(n, tokens, |sentence| sentence.rule > Some(Rule::Wish));
            }
        }
    }

    /// Keeps short messages by their length; one with a fact counts as a third of it.
    pub(crate) fn spend_on_short(&mut self, tokens: &mut TokenBudget<'_>) {
        let mut found: Vec<(f64, usize)> = Vec::new();
        for (m, message) in self.messages.iter().enumerate() {
            if message.is_short() && message.kept == KeptPart::No && !message.is_chatter() {
                let fact = if message.says_a_fact() { 3.0 } else { 1.0 };
                let cost = message.text.len() as f64 / 4.0 + 4.0;
                found.push((fact / cost, m));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        for (_, m) in found {
            if tokens.is_spent() {
                break;
            }
            if let Some(message) = self.messages.get_mut(m) {
                let text = message.live();
                if text.is_empty() || tokens.spend(&message.item(text).written()) {
                    message.kept = KeptPart::Whole;
                }
            }
        }
    }

    /// Keeps long messages that fit as a whole, the shorter ones first.
    pub(crate) fn spend_on_whole(&mut self, tokens: &mut TokenBudget<'_>) {
        let mut long: Vec<usize> = (0..self.messages.len()).collect();
        long.retain(|m| self.messages.get(*m).is_some_and(Utterance::is_open));
        long.sort_by_key(|m| self.messages.get(*m).map(|message| message.text.len()));
        for m in long {
            let Some(message) = self.messages.get_mut(m) else {
                continue;
            };
            let left = tokens.left_of_share() * WHOLE / 100 + message.paid;
            // Even a very dense counter has a token for a dozen bytes, so larger messages need no
            // counting.
            if message.text.len() as u64 / 12 > left {
                break;
            }
            let cost = tokens.count(&message.item(message.live()).written());
            if cost <= left && tokens.spend_tokens(cost.saturating_sub(message.paid)) {
                message.kept = KeptPart::Whole;
                message.paid = cost;
            }
        }
    }

    /// Keeps sentences of the other messages, by their worth in proportion to their length.
    pub(crate) fn spend_on_sentences(&mut self, tokens: &mut TokenBudget<'_>) {
        let newest = self.messages.len().max(1) as f64;
        let mut found: Vec<(f64, usize, usize)> = Vec::new();
        for (m, message) in self.messages.iter().enumerate() {
            if !message.is_open() {
                continue;
            }
            let last = message.sentences.len().saturating_sub(1);
            for (n, sentence) in message.sentences.iter().enumerate() {
                if sentence.is_kept || sentence.times == 0 {
                    continue;
                }
                let text = message.text_of(sentence).trim();
                let mut worth = f64::from(sentence.times).powf(0.8);
                worth *= if text.chars().count() < PHRASE {
                    0.2
                } else {
                    1.0
                };
                worth *= if sentence.is_machine { 0.6 } else { 1.0 };
                worth *= if sentence.rule.is_some() { 1.6 } else { 1.0 };
                // The first and the last sentence of a text are the most important ones.
                worth *= if n == 0 || n == last { 3.0 } else { 1.0 };
                worth *= 1.0 + 0.5 * (m as f64 / newest);
                let cost = text.len() as f64 / 4.0 + 3.0;
                found.push((worth / cost, m, n));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        for (_, m, n) in found {
            if tokens.is_spent() {
                break;
            }
            if let Some(message) = self.messages.get_mut(m) {
                message.spend_on_sentence(n, tokens, |_| true);
            }
        }
    }

    /// Returns the kept words, with their positions in the transcript.
    pub(crate) fn items(&self) -> Vec<(usize, SectionItem)> {
        let kept = self.messages.iter().filter_map(|message| {
            let text = match message.kept {
                KeptPart::No => return None,
                KeptPart::Whole => message.live(),
                KeptPart::Sentences => message.joined(|sentence| sentence.is_kept),
            };
            (!text.is_empty()).then(|| (message.order, message.item(text)))
        });
        kept.collect()
    }
}

impl Utterance {
    fn of(message: SaidText) -> Self {
        let text = message.text.trim().to_owned();
        let mut found = Vec::new();
        for (n, at) in sentences(&text).into_iter().enumerate() {
            let sentence = text.get(at.clone()).unwrap_or_default();
            let is_machine = n >= BY_HAND || sentence_kinds::is_machine(sentence);
            let cues = if is_machine {
                PersonCues::default()
            } else {
                PersonCues::of(sentence)
            };
            found.push(Sentence {
                at,
                rule: cues.rule,
                is_fact: cues.is_fact,
                is_kept: false,
                is_chatter: false,
                times: 1,
                is_machine,
            });
        }
        Self {
            order: message.order,
            text,
            sentences: found,
            kept: KeptPart::No,
            paid: 0,
            standing: message.standing,
        }
    }

    /// Marks sentences that other messages repeat, unless they contain a rule.
    fn mark_chatter(&mut self, repeated: &HashSet<String>) {
        if !self.is_short() || self.standing != PriorKnowledge::New {
            return;
        }
        for n in 0..self.sentences.len() {
            let Some(sentence) = self.sentences.get(n) else {
                return;
            };
            let text = self.text_of(sentence);
            let is_chatter = sentence.rule < Some(Rule::Must) && repeated.contains(&normal(text));
            if let Some(sentence) = self.sentences.get_mut(n) {
                sentence.is_chatter = is_chatter;
            }
        }
    }

    fn is_chatter(&self) -> bool {
        self.sentences.iter().all(|one| one.is_chatter)
    }

    fn text_of(&self, sentence: &Sentence) -> &str {
        self.text.get(sentence.at.clone()).unwrap_or_default()
    }

    /// Returns the strongest rule in the message.
    fn strength(&self) -> Option<Rule> {
        let strength = self.sentences.iter().filter_map(|one| one.rule).max();
        match self.standing {
            PriorKnowledge::New => strength,
            PriorKnowledge::Reply => Some(Rule::Must),
            PriorKnowledge::Rule => Some(Rule::Must),
        }
    }

    fn says_a_fact(&self) -> bool {
        self.sentences.iter().any(|one| one.is_fact)
    }

    /// Returns a part of the message as an item.
    fn item(&self, text: String) -> SectionItem {
        let is_rule = match self.kept {
            KeptPart::Sentences => self
                .sentences
                .iter()
                .any(|one| one.is_kept && one.rule > Some(Rule::Wish)),
            _ => self.standing != PriorKnowledge::Reply && self.strength() > Some(Rule::Wish),
        };
        SectionItem::user(text, is_rule)
    }

    /// Keeps the sentence with this number if it is wanted and there are enough tokens.
    fn spend_on_sentence(
        &mut self,
        n: usize,
        tokens: &mut TokenBudget<'_>,
        wanted: impl Fn(&Sentence) -> bool,
    ) {
        let first = self.kept == KeptPart::No;
        let Some(sentence) = self.sentences.get_mut(n) else {
            return;
        };
        if sentence.is_kept || sentence.times == 0 || !wanted(sentence) {
            return;
        }
        let text = self.text.get(sentence.at.clone()).unwrap_or_default();
        let cost = tokens.count(text) + GAP_COST + if first { 2 } else { 0 };
        if tokens.spend_tokens(cost) {
            sentence.is_kept = true;
            self.kept = KeptPart::Sentences;
            self.paid += cost;
        }
    }

    fn is_short(&self) -> bool {
        self.text.len() <= SHORT
    }

    /// Returns `true` if further sentences of the message could be kept.
    fn is_open(&self) -> bool {
        !self.is_short() && matches!(self.kept, KeptPart::No | KeptPart::Sentences)
    }

    /// Returns the text of the message without acknowledgements at its ends.
    fn live(&self) -> String {
        if self.is_chatter() {
            return self.text.clone();
        }
        // An acknowledgement before or after the rest leaves no gap.
        let first = self
            .sentences
            .iter()
            .position(|one| !one.is_chatter)
            .unwrap_or(0);
        let last = self.sentences.iter().rposition(|one| !one.is_chatter);
        let last = last.unwrap_or(self.sentences.len());
        let whole = self.sentences.get(first..=last).unwrap_or_default();
        self.join(whole, |one| !one.is_chatter)
    }

    /// Returns the wanted sentences, with a sign for omitted ones.
    fn joined(&self, wanted: impl Fn(&Sentence) -> bool) -> String {
        self.join(&self.sentences, wanted)
    }

    fn join(&self, sentences: &[Sentence], wanted: impl Fn(&Sentence) -> bool) -> String {
        let mut joined = String::new();
        let mut gap = false;
        for sentence in sentences {
            if !wanted(sentence) {
                gap = true;
                continue;
            }
            if std::mem::take(&mut gap) {
                let end = joined.trim_end().len();
                let blanks = joined.split_off(end);
                if end > 0 {
                    joined.push(' ');
                }
                joined.push(GAP);
                joined.push_str(if blanks.contains('\n') { "\n" } else { " " });
            }
            joined.push_str(self.text_of(sentence));
        }
        let end = joined.trim_end().len();
        joined.truncate(end);
        if gap && end > 0 {
            joined.push(' ');
            joined.push(GAP);
        }
        joined
    }
}

/// Returns the sentences that occur in more than one of the texts, normalised.
fn repeated<'t>(texts: impl Iterator<Item = &'t str>) -> HashSet<String> {
    let mut seen = HashSet::default();
    let mut repeated = HashSet::default();
    for text in texts {
        let own_sentences: HashSet<String> = sentences(text)
            .into_iter()
            .filter_map(|at| text.get(at).map(normal))
            .collect();
        for sentence in own_sentences {
            if seen.contains(&sentence) {
                repeated.insert(sentence);
            } else {
                seen.insert(sentence);
            }
        }
    }
    repeated
}

/// Counts how often each sentence of long messages occurs in all of them, and records the number at
/// the first occurrence.
fn count_repetitions(messages: &mut [Utterance]) {
    let mut number: HashMap<String, usize> = HashMap::default();
    let mut times: Vec<u32> = Vec::new();
    let mut order = Vec::new();
    for message in messages.iter().filter(|message| !message.is_short()) {
        for sentence in &message.sentences {
            let next = times.len();
            let n = *number
                .entry(normal(message.text_of(sentence)))
                .or_insert(next);
            if n == next {
                times.push(0);
            }
            if let Some(times) = times.get_mut(n) {
                *times += 1;
            }
            order.push(n);
        }
    }
    let long = messages.iter_mut().filter(|message| !message.is_short());
    let sentences = long.flat_map(|message| message.sentences.iter_mut());
    for (sentence, n) in sentences.zip(order) {
        sentence.times = times.get_mut(n).map_or(0, std::mem::take);
    }
}
