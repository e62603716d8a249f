//! Classifies sentences by their words (`words/cues.txt`): obligations and facts of the user,
//! findings, lead-ins and passing states of the agent.

use std::sync::LazyLock;

use foldhash::HashMap;

use super::words::list;

/// The lists, as bits.
const LISTS: [(&str, Cues); 5] = [
    ("must", Cues::MUST),
    ("states", Cues::STATES),
    ("finding", Cues::FINDING),
    ("lead_in", Cues::LEAD_IN),
    ("passing", Cues::PASSING),
];
/// The maximum number of words of a phrase.
const PHRASE_MAX: usize = 4;

/// The kinds of cues in one sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cues(u8);

/// Phrases, as words, with the lists that contain them.
type Phrases = HashMap<Vec<&'static str>, u8>;

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let mut phrases = Phrases::default();
    for (name, bit) in LISTS {
        for phrase in list(name) {
            *phrases.entry(phrase.split(' ').collect()).or_default() |= bit.0;
        }
    }
    phrases
});

impl Cues {
    /// Something must or must not be.
    pub(crate) const MUST: Self = Self(1);
    /// A wish or a fact.
    pub(crate) const STATES: Self = Self(2);
    pub(crate) const FINDING: Self = Self(4);
    /// An announcement, or a sentence that depends on the one before.
    pub(crate) const LEAD_IN: Self = Self(8);
    pub(crate) const PASSING: Self = Self(16);

    pub(crate) fn of(sentence: &str) -> Self {
        let mut found = 0;
        let plain = sentence.to_lowercase().replace('’', "'");
        let words = plain.split(|c: char| !(c.is_alphanumeric() || c == '\''));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let phrases: &HashMap<Vec<&str>, u8> = &PHRASES;
        for n in 0..words.len() {
            for phrase in (1..=PHRASE_MAX).map_while(|len| words.get(n..n + len)) {
                let bits = phrases.get(phrase).copied().unwrap_or_default();
                // A lead-in begins with its cue.
                found |= if n > 0 { bits & !Self::LEAD_IN.0 } else { bits };
            }
        }
        // Scripts without blanks between words.
        for (name, bit) in LISTS.iter().filter(|_| !sentence.is_ascii()) {
            if super::words::any_in(&format!("{name}_anywhere"), sentence) {
                found |= bit.0;
            }
        }
        Self(found)
    }

    pub(crate) fn has(self, list: Self) -> bool {
        self.0 & list.0 != 0
    }
}

/// Returns `true` if the line was written by a machine rather than a person: a log, a stack trace,
/// code.
pub(crate) fn is_machine(line: &str) -> bool {
    let line = line.trim();
    let (mut signs, mut all) = (0, 0);
    for c in line.chars() {
        all += 1;
        signs += usize::from(!c.is_alphanumeric() && !c.is_whitespace());
    }
    signs * 4 > all.max(24)
        || line.starts_with("at ")
        || line.ends_with(['{', ';', '}', '('])
        || line.ends_with(',') && line.contains(": ")
        || line.starts_with("@@")
        || line.starts_with(['<', '{', '}', '|', '$', '+'])
}
