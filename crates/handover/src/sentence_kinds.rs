//! Classifies sentences by their words: rules, facts, findings, announcements. The word lists are
//! in `words/cues.txt`.
//!
//! A sentence that is wrongly taken for a rule costs tokens; a missed rule may be lost.

use std::sync::LazyLock;

use foldhash::HashMap;

use crate::names;

/// The strength of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// A wish.
    Wish,
    /// Something that must or must not be.
    Must,
}

/// The kinds of cues in one sentence, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Signs(u8);

const WORDS: &str = include_str!("words/cues.txt");
const MUST: u8 = 1;
const WISH: u8 = 2;
const FACT: u8 = 4;
const FINDING: u8 = 8;
const ANNOUNCEMENT: u8 = 16;
const VAGUE: u8 = 32;
/// The lists of `cues.txt`.
const LISTS: [(&str, u8); 6] = [
    ("must", MUST),
    ("wish", WISH),
    ("fact", FACT),
    ("finding", FINDING),
    ("announcement", ANNOUNCEMENT),
    ("vague", VAGUE),
];
/// The minimum worth of a sentence that reports a finding without hedging.
pub(crate) const FOUND: f64 = 0.6;
/// The minimum number of words in a statement.
const STATEMENT_WORDS: usize = 4;
/// The minimum number of characters in a statement, for scripts without blanks.
const STATEMENT_CHARS: usize = 8;
/// The maximum number of words of a sentence that names nothing; a longer one explains something.
const VAGUE_WORDS: usize = 8;
/// First words of sentences that depend on the previous sentence.
const LEANS: [&str; 18] = [
    "it", "its", "this", "that", "they", "them", "these", "those", "both", "which", "he", "she",
    "but", "so", "and", "or", "also", "then",
];
/// Phrases with which the agent announces an action.
const ANNOUNCES: &str = "let me|i'll|i will|let's|going to|i need to|i should|we need to|we'll|we should|i want to|\
    running|checking|looking|time to|让我|我来";

/// The remaining words of phrases with a common first word, each with its cue.
type Phrases = Vec<(Vec<&'static str>, u8)>;

struct Cues {
    /// Phrases by their first word.
    phrases: HashMap<&'static str, Phrases>,
    /// Texts that count at any position.
    anywhere: Vec<(&'static str, u8)>,
}

static CUES: LazyLock<Cues> = LazyLock::new(|| {
    let mut cues = Cues {
        phrases: HashMap::default(),
        anywhere: Vec::new(),
    };
    let mut list = (0, false);
    for line in WORDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
        {
            let bare = name.strip_suffix("_anywhere").unwrap_or(name);
            let sign = LISTS.iter().find(|(of, _)| *of == bare);
            list = (sign.map_or(0, |(_, sign)| *sign), bare != name);
            continue;
        }
        let (sign, is_anywhere) = list;
        for phrase in line.split('|') {
            if is_anywhere {
                cues.anywhere.push((phrase, sign));
                continue;
            }
            let mut words = phrase.split(' ');
            let first = words.next().unwrap_or_default();
            cues.phrases
                .entry(first)
                .or_default()
                .push((words.collect(), sign));
        }
    }
    cues
});

impl Signs {
    fn of(sentence: &str) -> Self {
        let mut signs = 0;
        let plain = sentence.to_lowercase().replace('’', "'");
        let is_inside = |c: char| c.is_alphanumeric() || c == '\'';
        let words: Vec<&str> = plain
            .split(|c: char| !is_inside(c))
            .filter(|word| !word.is_empty())
            .collect();
        for (n, word) in words.iter().enumerate() {
            for (rest, sign) in CUES.phrases.get(word).into_iter().flatten() {
                // An announcement begins with its cue.
                let counts = *sign != ANNOUNCEMENT || n == 0;
                let behind = words.get(n + 1..).unwrap_or_default();
                if counts && behind.starts_with(rest) {
                    signs |= sign;
                }
            }
        }
        if !sentence.is_ascii() {
            for (cue, sign) in &CUES.anywhere {
                if sentence.contains(cue) {
                    signs |= sign;
                }
            }
        }
        Self(signs)
    }

    fn has(self, sign: u8) -> bool {
        self.0 & sign != 0
    }
}

/// The content of a sentence of the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PersonCues {
    /// The strength of the rule in it, if there is one.
    pub(crate) rule: Option<Rule>,
    /// Whether it contains a fact about the user or the work, or a wish.
    pub(crate) is_fact: bool,
}

impl PersonCues {
    pub(crate) fn of(sentence: &str) -> Self {
        let signs = Signs::of(sentence);
        let rule = if signs.has(MUST) {
            Some(Rule::Must)
        } else {
            signs.has(WISH).then_some(Rule::Wish)
        };
        Self {
            rule,
            is_fact: signs.has(FACT | MUST | WISH)
                || sentence.bytes().any(|byte| byte.is_ascii_digit()),
        }
    }
}

/// Returns the worth of a sentence of the agent, higher if it reports a finding, a decision or a
/// result. Returns `None` for announcements, lead-ins, headings, rows of tables and fragments.
pub(crate) fn statement(sentence: &str) -> Option<f64> {
    let text = sentence.trim();
    let words = text.split_whitespace().count();
    let chars = text.chars().count();
    let is_wide = !text.is_ascii() && text.chars().any(|c| c as u32 >= 0x2e80);
    let is_fragment = if is_wide {
        chars < STATEMENT_CHARS
    } else {
        words < STATEMENT_WORDS
    };
    let begins_as_row = text.starts_with([
        '|', '#', '>', '<', '{', '}', '`', '+', '=', '\u{2500}', '\u{2502}', '\u{250c}',
        '\u{2514}', '\u{251c}',
    ]);
    let ends_open = text.ends_with(['?', '？', ':', '：', ',', '(', '{', '|', '、', '，'])
        || text.ends_with("...");
    if is_fragment || begins_as_row || ends_open || is_machine(text) {
        return None;
    }
    let signs = Signs::of(text);
    let is_vague = signs.has(VAGUE) && words <= VAGUE_WORDS && !is_specific(text);
    if signs.has(ANNOUNCEMENT) && announces(text) || is_vague {
        return None;
    }
    let certain = if is_hedged(text) { 0.3 } else { 1.0 };
    let worth = match (signs.has(FINDING), signs.has(ANNOUNCEMENT)) {
        (true, false) => Some(1.0),
        // A sentence that depends on the previous one is useless alone.
        (false, false) if is_hedged(text) || leans(text) => None,
        (false, false) => Some(0.4),
        // "Now the tests pass because …" is more than an announcement, "Let me fix the bug." is
        // not.
        (true, true) => Some(FOUND),
        (false, true) => None,
    };
    worth.map(|worth| worth * certain)
}

/// Returns `true` if a sentence depends on the previous one: it continues it, or refers to
/// something that is only named there.
pub(crate) fn leans(text: &str) -> bool {
    let first = text.split(|c: char| !c.is_alphanumeric()).next();
    let first = first.unwrap_or_default().to_lowercase();
    LEANS.contains(&first.as_str())
}

/// Returns `true` if a sentence thinks aloud: it considers possibilities, or depends on the
/// previous one.
fn is_hedged(text: &str) -> bool {
    let low = text.to_lowercase();
    let mut words = low.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    let first = words.next().unwrap_or_default();
    [
        "if",
        "but",
        "so",
        "or",
        "also",
        "then",
        "however",
        "and",
        "actually",
        "maybe",
        "perhaps",
        "otherwise",
        "yes",
        "no",
    ]
    .contains(&first)
        || words.any(|word| {
            [
                "might", "maybe", "perhaps", "could", "probably", "seems", "would",
            ]
            .contains(&word)
        })
}

/// Returns `true` if a sentence names something: code, a file, a number, or a quoted text.
fn is_specific(text: &str) -> bool {
    let mut is_named =
        text.contains(['`', '"', '“', '「']) || text.bytes().any(|b| b.is_ascii_digit());
    names::each(text, &mut |_, _| is_named = true);
    is_named
}

/// Returns `true` if a sentence only announces the agent's next action, or greets.
fn announces(text: &str) -> bool {
    let low = text.to_lowercase().replace('’', "'");
    ANNOUNCES.split('|').any(|cue| low.contains(cue))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_known_by_their_words() {
        for (text, found) in [
            ("Never touch X.", Some(Rule::Must)),
            ("please don’t push", Some(Rule::Must)),
            ("DO NOT MODIFY: tests", Some(Rule::Must)),
            ("under no\ncircumstances", Some(Rule::Must)),
            ("I prefer tabs", Some(Rule::Wish)),
            ("不要修改文件", Some(Rule::Must)),
            ("設定ファイルだけ編集", Some(Rule::Must)),
            ("ok, continue", None),
            ("nevertheless it ran", None),
        ] {
            assert_eq!(PersonCues::of(text).rule, found, "{text}");
        }
    }

    #[test]
    fn announcements_are_no_statements() {
        for text in [
            "Let me check the file.",
            "Now I'll fix the bug.",
            "The changes are:",
            "| a | b |",
            "## Summary",
            "Great! I found it, let me fix it.",
            "Done.",
            "I can see the issue.",
            "I'm confident in my solution.",
        ] {
            assert_eq!(statement(text), None, "{text}");
        }
        for text in [
            "The root cause is that parse_header trusts raw_length.",
            "We decided to keep the old lexer because macros need it.",
            "All 12 tests pass and the build is green.",
            "I can see that `parse_header` is never called.",
            "I'm confident the deadlock comes from the writer holding its lock.",
        ] {
            assert!(statement(text).is_some(), "{text}");
        }
    }
}
