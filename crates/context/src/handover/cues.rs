//! Classifies sentences by their words (`words/cues.txt`): obligations and facts of the user,
//! findings, announcements and passing states of the agent.

use std::sync::LazyLock;

use foldhash::HashMap;

const WORDS: &str = include_str!("words/cues.txt");
/// The lists of `cues.txt`, as bits.
const LISTS: [(&str, u8); 5] = [
    ("must", Cues::MUST.0),
    ("states", Cues::STATES.0),
    ("finding", Cues::FINDING.0),
    ("announcement", Cues::ANNOUNCEMENT.0),
    ("passing", Cues::PASSING.0),
];

/// The kinds of cues in one sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cues(u8);

/// The remaining words of phrases with a common first word, each with its list.
type Phrases = Vec<(Vec<&'static str>, u8)>;

#[derive(Default)]
struct CueLists {
    /// Phrases by their first word.
    phrases: HashMap<&'static str, Phrases>,
    /// Texts that count at any position.
    anywhere: Vec<(&'static str, u8)>,
}

static CUES: LazyLock<CueLists> = LazyLock::new(|| {
    let mut cues = CueLists::default();
    let mut list = (0, false);
    for line in super::speaker::entries(WORDS) {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
        {
            let bare = name.strip_suffix("_anywhere").unwrap_or(name);
            let bit = LISTS.iter().find(|(of, _)| *of == bare);
            list = (bit.map_or(0, |(_, bit)| *bit), bare != name);
            continue;
        }
        let (bit, is_anywhere) = list;
        for phrase in line.split('|') {
            if is_anywhere {
                cues.anywhere.push((phrase, bit));
                continue;
            }
            let mut words = phrase.split(' ');
            let first = words.next().unwrap_or_default();
            let same_first = cues.phrases.entry(first).or_default();
            same_first.push((words.collect(), bit));
        }
    }
    cues
});

impl Cues {
    /// Something must or must not be.
    pub(crate) const MUST: Self = Self(1);
    /// A wish or a fact.
    pub(crate) const STATES: Self = Self(2);
    pub(crate) const FINDING: Self = Self(4);
    pub(crate) const ANNOUNCEMENT: Self = Self(8);
    pub(crate) const PASSING: Self = Self(16);

    pub(crate) fn of(sentence: &str) -> Self {
        let mut found = 0;
        let plain = sentence.to_lowercase().replace('’', "'");
        let is_inside = |c: char| c.is_alphanumeric() || c == '\'';
        let words: Vec<&str> = plain
            .split(|c: char| !is_inside(c))
            .filter(|word| !word.is_empty())
            .collect();
        for (n, word) in words.iter().enumerate() {
            for (rest, bit) in CUES.phrases.get(word).into_iter().flatten() {
                // An announcement begins with its cue.
                let counts = *bit != Self::ANNOUNCEMENT.0 || n == 0;
                let behind = words.get(n + 1..).unwrap_or_default();
                if counts && behind.starts_with(rest) {
                    found |= bit;
                }
            }
        }
        if !sentence.is_ascii() {
            for (cue, bit) in &CUES.anywhere {
                if sentence.contains(cue) {
                    found |= bit;
                }
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
