//! Measures the content that a text must preserve from a span, and how much of it is present.
//! Independent of `extract`'s own definition of a name or a sentence.

use std::collections::HashSet;

use plimsoll_context::{Message, Part};
use regex::Regex;

use super::authors::{most_typed, typed_messages};
use super::sessions::Session;
use crate::error::Error;

/// Minimum length of a sentence, in characters.
const SENTENCE_MIN: usize = 20;
/// A path, a file name, a word in camelCase or snake_case, a hexadecimal number of 7 digits or
/// more, a number of 3 digits or more. The first alternative that matches wins, with its longest
/// match.
const IDENTIFIER: &str = concat!(
    r"(?P<path>(?:~|\.{1,2})?/?(?:[A-Za-z0-9_@.+-]+/)+[A-Za-z0-9_@.+-]*[A-Za-z0-9_])",
    r"|(?P<file>[A-Za-z0-9_][A-Za-z0-9_.-]*\.(?:rs|py|pyi|ts|tsx|js|jsx|mjs|cjs|json|jsonl|toml|ya?ml|md|mdx|txt|rst|html?|css|scss|sh|bash|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php|sql|xml|svg|png|jpe?g|gif|pdf|csv|lock|cfg|ini|conf|env|log|pony|ipynb|vue|svelte|swift|scala|lua|pl|ex|exs|proto|gradle|mk|patch|diff|zip|gz|tar|db|sqlite)\b)",
    r"|(?P<hex>\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]*\b)",
    r"|(?P<word>\b[A-Za-z_][A-Za-z0-9_]*\b)",
    r"|(?P<number>\b[0-9]{3,}\b)",
);

/// The content that a text must preserve.
pub(super) struct WantedContent {
    /// The user's messages, normalised.
    pub(super) messages: Vec<String>,
    /// Their sentences of at least [`SENTENCE_MIN`] characters, normalised.
    pub(super) sentences: Vec<String>,
    /// The identifiers that the agent used next, normalised.
    pub(super) identifiers: Vec<Identifier>,
}

/// An identifier that the agent wrote after a cut.
pub(super) struct Identifier {
    pub(super) text: String,
    pub(super) kind: &'static str,
}

/// Finds identifiers.
pub(super) struct Finder(Regex);

/// The number of kept things, and of all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Share {
    pub(super) kept: usize,
    pub(super) of: usize,
}

/// A share for each kind of content.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Score {
    pub(super) messages: Share,
    pub(super) sentences: Share,
    pub(super) identifiers: Share,
    /// The identifiers without those in bare lists.
    pub(super) told: Share,
}

impl Finder {
    pub(super) fn new() -> Result<Self, Error> {
        pattern(IDENTIFIER).map(Self)
    }

    /// Returns every occurrence of an identifier in `text`, with its kind.
    pub(super) fn find<'t>(&self, text: &'t str) -> impl Iterator<Item = (&'t str, &'static str)> {
        self.0.captures_iter(text).filter_map(|found| {
            let whole = found.get(0)?.as_str();
            let kind = ["path", "file", "hex", "word", "number"]
                .into_iter()
                .find(|kind| found.name(kind).is_some())?;
            let kind = match kind {
                "path" if !whole.contains(|c: char| c.is_ascii_alphabetic()) => return None,
                "hex" if whole.len() < 7 => return None,
                "word" => word_kind(whole)?,
                kind => kind,
            };
            Some((whole, kind))
        })
    }

    /// Returns the content that a text for the messages before `at` must preserve. The identifiers
    /// are those that the agent used between `from` (the first message after its summary, if any)
    /// and `until`.
    pub(super) fn wanted(
        &self,
        session: &Session,
        at: usize,
        from: usize,
        until: usize,
    ) -> WantedContent {
        let messages = &session.messages;
        let before = messages.get(..at).unwrap_or_default();
        // A program's text in the user's role is not the user's.
        let users = typed_messages(before.iter(), most_typed(session));
        let after = messages.get(from..until).unwrap_or_default();
        WantedContent {
            sentences: users.iter().flat_map(|text| sentences(text)).collect(),
            messages: users.iter().map(|text| normal(text)).collect(),
            identifiers: self.used_next(before, after),
        }
    }

    fn used_next(&self, before: &[Message], after: &[Message]) -> Vec<Identifier> {
        let before: Vec<String> = before.iter().map(whole).collect();
        let before = normal(&before.join("\n"));
        let mut shown = String::new();
        let mut written = HashSet::new();
        let mut found = Vec::new();
        for message in after {
            if !matches!(message, Message::Assistant { .. }) {
                shown.push_str(&normal(&whole(message)));
                shown.push(' ');
                continue;
            }
            for text in writes(message) {
                for (name, kind) in self.find(&text) {
                    let name = name.to_lowercase();
                    if !written.insert(name.clone()) || shown.contains(&name) {
                        continue;
                    }
                    if !before.contains(&name) {
                        continue;
                    }
                    found.push(Identifier { text: name, kind });
                }
            }
        }
        found
    }
}

impl WantedContent {
    /// Returns the shares that `text` contains. `told` is `text` without bare lists.
    pub(super) fn score(&self, text: &str, told: &str) -> Score {
        let (text, told) = (normal(text), normal(told));
        let share = |wanted: &[String]| Share {
            kept: wanted.iter().filter(|one| text.contains(*one)).count(),
            of: wanted.len(),
        };
        Score {
            messages: share(&self.messages),
            sentences: share(&self.sentences),
            identifiers: self.identifiers_in(&text),
            told: self.identifiers_in(&told),
        }
    }
}

impl WantedContent {
    fn identifiers_in(&self, text: &str) -> Share {
        let kept = self
            .identifiers
            .iter()
            .filter(|one| text.contains(&one.text));
        Share {
            kept: kept.count(),
            of: self.identifiers.len(),
        }
    }

    /// Returns the content that `text` lacks, one item per line.
    pub(super) fn lost(&self, text: &str) -> String {
        let text = normal(text);
        let mut lost = String::new();
        let mut tell = |kind: &str, one: &str| {
            if !text.contains(one) {
                lost.push_str(&format!("{kind}: {one}\n"));
            }
        };
        self.messages.iter().for_each(|one| tell("message", one));
        self.sentences.iter().for_each(|one| tell("sentence", one));
        for one in &self.identifiers {
            tell(one.kind, &one.text);
        }
        lost
    }
}

/// Compiles a pattern of the judge.
pub(super) fn pattern(text: &str) -> Result<Regex, Error> {
    Regex::new(text).map_err(|error| Error::Unreadable {
        what: format!("the pattern {text}"),
        why: error.to_string(),
    })
}

impl Share {
    /// Counts one more thing, kept or not.
    pub(super) fn count(&mut self, kept: bool) {
        self.kept += usize::from(kept);
        self.of += 1;
    }

    pub(super) fn part(self) -> Option<f64> {
        (self.of > 0).then(|| self.kept as f64 / self.of as f64)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.kept += other.kept;
        self.of += other.of;
    }
}

/// Normalises a text: lower case, single blanks between words, none at the ends.
pub(super) fn normal(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.push_str(&word.to_lowercase());
    }
    normal
}

/// Returns the sentences of `text`, normalised: split at line ends, after `.`, `!` and `?` before
/// whitespace, and after their CJK forms.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for line in text.lines() {
        let mut sentence = String::new();
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            sentence.push(c);
            let ends = match c {
                '.' | '!' | '?' => chars.peek().is_none_or(|next| next.is_whitespace()),
                '。' | '！' | '？' => true,
                _ => false,
            };
            if ends {
                sentences.push(normal(&std::mem::take(&mut sentence)));
            }
        }
        sentences.push(normal(&sentence));
    }
    sentences.retain(|sentence| sentence.chars().count() >= SENTENCE_MIN);
    sentences
}

/// Returns the agent's own text: its answers and the arguments of its calls, without thinking.
fn writes(message: &Message) -> Vec<String> {
    let parts = message.parts().iter();
    parts
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.clone()),
            Part::ToolCall(call) => Some(plain(&call.arguments)),
            _ => None,
        })
        .collect()
}

/// Returns all readable text of a message.
fn whole(message: &Message) -> String {
    let mut texts = vec![message.text()];
    for part in message.parts() {
        match part {
            Part::Thinking(thinking) => texts.push(thinking.text.clone()),
            Part::ToolCall(call) => texts.push(plain(&call.arguments)),
            _ => {}
        }
    }
    texts.join("\n")
}

/// Returns the strings of a call's arguments, with JSON's escapes decoded: otherwise the `n` of `\n`
/// would be joined to the next word. Numbers are settings, such as time limits.
pub(super) fn plain(arguments: &str) -> String {
    fn leaves(value: &serde_json::Value, out: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => out.push(text.clone()),
            serde_json::Value::Array(list) => list.iter().for_each(|one| leaves(one, out)),
            serde_json::Value::Object(map) => map.values().for_each(|one| leaves(one, out)),
            _ => {}
        }
    }
    match serde_json::from_str(arguments) {
        Ok(value) => {
            let mut out = Vec::new();
            leaves(&value, &mut out);
            out.join("\n")
        }
        Err(_) => arguments.to_owned(),
    }
}

fn word_kind(word: &str) -> Option<&'static str> {
    let inner = word.trim_matches('_');
    let hump = word
        .as_bytes()
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    if inner.contains('_') {
        Some("snake_case")
    } else if hump {
        Some("camelCase")
    } else if word.len() >= 7 && word.bytes().all(|b| matches!(b, b'a'..=b'f')) {
        Some("hex")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_those_of_the_wording() {
        let finder = Finder::new().unwrap();
        for (text, found) in [
            ("see src/main.rs:12 now", &[("src/main.rs", "path")][..]),
            ("open main.rs, please", &[("main.rs", "file")]),
            (
                "the AgentSession and fooBar",
                &[("AgentSession", "camelCase"), ("fooBar", "camelCase")],
            ),
            (
                "call max_tokens of __init__",
                &[("max_tokens", "snake_case")],
            ),
            ("commit 1e62beb8 of 42", &[("1e62beb8", "hex")]),
            ("port 8431, not 80", &[("8431", "number")]),
            ("1/2 and plain words.", &[]),
        ] {
            assert_eq!(finder.find(text).collect::<Vec<_>>(), found, "{text}");
        }
    }

    #[test]
    fn sentences_end_at_lines_and_stops() {
        let text = "Short one. This one is long enough to count!\nsrc/a.rs is not. an end of any kind\n这是一个足够长的句子，它有超过二十个字符在里面吧。";
        assert_eq!(
            sentences(text),
            [
                "this one is long enough to count!",
                "an end of any kind",
                "这是一个足够长的句子，它有超过二十个字符在里面吧。",
            ]
            .into_iter()
            .filter(|s| s.chars().count() >= SENTENCE_MIN)
            .collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_was_shown_since_is_not_asked() {
        let call = |arguments: &str| Message::Assistant {
            parts: vec![Part::ToolCall(plimsoll_context::ToolCall {
                id: plimsoll_context::CallId("1".into()),
                name: "read".into(),
                arguments: arguments.into(),
                opaque: None,
            })],
        };
        let messages = [
            Message::user("old_name lives in src/a.rs, other_name in src/b.rs"),
            Message::user("look at other_name"),
            call(r#"{"path": "src/a.rs", "text": "\nold_name never_seen other_name"}"#),
        ];
        let session = Session {
            id: "made/one".to_owned(),
            as_sent: messages.to_vec(),
            messages: messages.to_vec(),
            weights: Vec::new(),
            compactions: Vec::new(),
        };
        let wanted = Finder::new().unwrap().wanted(&session, 1, 1, 3);
        let names: Vec<&str> = wanted
            .identifiers
            .iter()
            .map(|one| one.text.as_str())
            .collect();
        assert_eq!(names, ["src/a.rs", "old_name"]);
        assert_eq!(wanted.messages.len(), 1);
    }
}
