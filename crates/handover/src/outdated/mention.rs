//! The topic of a sentence, by its rarer words. A later sentence replaces an earlier one if it
//! announces a change, has the same topic as exactly one earlier sentence, and has another value of
//! the same kind.

use std::collections::BTreeSet;

use foldhash::HashMap;

use super::statement::{SentenceWord, is_cjk};
use crate::sentence_kinds::{PersonCues, Rule};

/// The maximum number of messages that contain a rare word.
const RARE: usize = 4;
/// The number of letters by which English words are compared: "meet" and "meeting" are equal.
const PREFIX: usize = 4;
/// The maximum length of a sentence that only states a value.
const MENTION_MAX: usize = 160;
/// The maximum number of earlier sentences about a word that are examined.
const EARLIER_MAX: usize = 16;

/// Words that announce a change.
const CHANGES: &str = include_str!("../words/changes.txt");
/// Words for the same thing, one line for each thing, in scripts whose words have no common prefix.
const SAME: &str = include_str!("../words/same.txt");

/// The topic of a sentence.
#[derive(Debug, Default)]
pub(crate) struct Mention {
    terms: BTreeSet<String>,
    numbers: BTreeSet<String>,
    /// Names: words with a capital letter inside a sentence, paths and identifiers.
    names: BTreeSet<String>,
    changes: bool,
    forbids: bool,
    /// Whether it is a rule about the thing rather than a value of the thing.
    is_rule: bool,
    is_wide: bool,
}

impl Mention {
    pub(crate) fn of(sentence: &str, words: &[SentenceWord]) -> Self {
        if sentence.len() > MENTION_MAX || sentence.trim_end().ends_with(['?', '？']) {
            return Self::default();
        }
        let low = sentence.to_lowercase();
        // "Now run test 2" is the next action and does not replace test 1.
        let low = low.strip_prefix("now ").unwrap_or(&low);
        let mut mention = Self {
            changes: changes().any(|change| has_phrase(low, change)),
            forbids: words.iter().any(SentenceWord::forbids),
            is_rule: PersonCues::of(sentence).rule == Some(Rule::Must),
            is_wide: sentence.chars().any(is_cjk),
            ..Self::default()
        };
        let runs = sentence
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '@')));
        for (n, run) in runs.filter(|run| !run.is_empty()).enumerate() {
            let run = run.trim_matches(['.', '-', '/']);
            if run.chars().any(is_cjk) {
                mention.read_wide(run);
            } else if run.contains(|c: char| c.is_ascii_digit()) {
                mention.numbers.insert(run.to_owned());
            } else if (run.starts_with(char::is_uppercase) && (n > 0 || is_what_changed(run, low)))
                || run.contains(['_', '/', '@'])
            {
                mention.names.insert(run.to_owned());
            } else if run.len() >= PREFIX && !is_plain(run) {
                let low = run.to_lowercase();
                mention.terms.extend(low.get(..PREFIX).map(str::to_owned));
            }
        }
        if mention.is_wide {
            let things = SAME.lines().enumerate();
            let named = things.filter(|(_, words)| words.split('|').any(|word| low.contains(word)));
            mention
                .terms
                .extend(named.map(|(n, _)| format!("thing {n}")));
        }
        mention
    }

    /// Reads a run of a script without blanks: its digits are values, and each two characters are a
    /// word.
    fn read_wide(&mut self, run: &str) {
        let digits = run
            .split(|c: char| !c.is_ascii_digit())
            .filter(|part| !part.is_empty());
        self.numbers.extend(digits.map(str::to_owned));
        let chars: Vec<char> = run.chars().filter(|c| is_cjk(*c)).collect();
        for pair in chars.windows(2) {
            // Kana are endings and particles.
            let is_plain =
                |c: &char| matches!(c, '\u{3040}'..='\u{309f}') || PLAIN_WIDE.contains(*c);
            let term: String = pair.iter().collect();
            // "The change of the list" and "change the file" are not about the same thing.
            if !pair.iter().any(is_plain) && !changes().any(|change| term.contains(change)) {
                self.terms.insert(term);
            }
        }
    }

    pub(crate) fn is_change(&self) -> bool {
        self.changes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns `true` if both sentences have a value of the same kind, and the values differ.
    fn has_another_value(&self, old: &Self) -> bool {
        match (self.numbers.is_empty(), old.numbers.is_empty()) {
            (false, false) => self
                .numbers
                .iter()
                .any(|number| !old.numbers.contains(number)),
            (true, true) if self.is_wide && old.is_wide => true,
            (true, true) => {
                !old.names.is_empty() && self.names.iter().any(|name| !old.names.contains(name))
            }
            _ => false,
        }
    }
}

fn changes() -> impl Iterator<Item = &'static str> {
    CHANGES.lines().filter(|change| !change.is_empty())
}

/// Returns `true` if the sentence says that its first word is the new value: "Ada took over".
fn is_what_changed(first: &str, sentence: &str) -> bool {
    let behind = sentence.get(first.len()..).unwrap_or_default().trim_start();
    !is_plain(first) && changes().any(|change| change.contains(' ') && behind.starts_with(change))
}

/// Returns `true` for words that are too general to name a thing.
fn is_plain(word: &str) -> bool {
    let low = word.to_lowercase();
    PLAIN.split('|').any(|plain| plain == low)
}

const PLAIN: &str = "that|this|with|from|have|will|would|should|could|just|about|there|here|they|them|then|than|\
    what|when|where|which|your|ours|into|over|only|also|some|more|most|make|made|need|want|like|please|\
    thanks|thank|okay|sure|yes|actually|instead|correction|change|changed|plan|heard|after|before|again|now|\
    been|were|does|done|going|goes|took|send|keep|very|much|well|good|great|really|still|time|today";

/// Characters of Chinese words that do not name a thing: pronouns, prepositions, particles.
const PLAIN_WIDE: &str = "我你您他她它们在的是了到给把有这那吧也就都请和与很被让跟还又再一";

fn has_phrase(text: &str, phrase: &str) -> bool {
    if !phrase.is_ascii() {
        return text.contains(phrase);
    }
    text.match_indices(phrase).any(|(at, found)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let behind = text
            .get(at + found.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(char::is_alphanumeric) && !behind.is_some_and(char::is_alphanumeric)
    })
}

/// Returns the sentences that a later one replaces, each as the indices of its message and of its
/// sentence there.
pub(crate) fn outdated<'m>(
    mentions: impl Iterator<Item = ((usize, usize), &'m Mention)>,
) -> Vec<(usize, usize)> {
    let mentions: Vec<((usize, usize), &Mention)> = mentions.collect();
    let mut messages: HashMap<&str, BTreeSet<usize>> = HashMap::default();
    for (at, mention) in &mentions {
        for term in &mention.terms {
            messages.entry(term).or_default().insert(at.0);
        }
    }
    let is_rare = |term: &str| messages.get(term).is_some_and(|found| found.len() <= RARE);
    let mut earlier: HashMap<&str, Vec<usize>> = HashMap::default();
    let mut outdated = Vec::new();
    for (n, (at, mention)) in mentions.iter().enumerate() {
        if mention.changes {
            // The number of rare words that each earlier sentence shares with this one.
            let mut shared: HashMap<usize, usize> = HashMap::default();
            for term in mention.terms.iter().filter(|term| is_rare(term)) {
                let found = earlier.get(term.as_str()).into_iter().flatten();
                for old in found.rev().take(EARLIER_MAX) {
                    *shared.entry(*old).or_default() += 1;
                }
            }
            // The sentence with the most shared words is replaced; among equals, a value rather
            // than a rule.
            let mut found: Vec<((usize, bool), (usize, usize))> = shared
                .into_iter()
                .filter_map(|(old, count)| {
                    let (place, old) = mentions.get(old)?;
                    let is_other =
                        place.0 != at.0 && !old.forbids && mention.has_another_value(old);
                    is_other.then_some(((count, !old.is_rule), *place))
                })
                .collect();
            found.sort_unstable();
            match found.as_slice() {
                [(_, one)] => outdated.push(*one),
                [.., (less, _), (more, one)] if more > less => outdated.push(*one),
                _ => {}
            }
        }
        for term in &mention.terms {
            earlier.entry(term).or_default().push(n);
        }
    }
    outdated
}
