//! How much of a session its views still contain.
//!
//! Two things are searched for: the user's messages, and one *fact* of each tool result, which is a
//! word that does not occur earlier. Both are searched in the text of the view, so the measure does
//! not depend on the form of a summary.

use std::collections::{HashMap, HashSet};

use plimsoll_context::Message;
use serde::Serialize;

use crate::meter::SentMessage;

/// The minimum lengths of a fact and of a user message, in bytes.
const MIN_WORD: usize = 6;
const MIN_USER_MESSAGE: usize = 20;

/// The number of things that were searched for, and how many of them were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Number found.
    pub found: u64,
    /// Total number.
    pub of: u64,
}

/// The share of a session that its views still contained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Retention {
    /// User messages in each view, summed over all requests.
    pub user_messages: Share,
    /// Facts of tool results in each view, summed over all requests.
    pub facts: Share,
    /// User messages in the last view.
    pub last_user_messages: Share,
    /// Facts of tool results in the last view.
    pub last_facts: Share,
}

/// The texts to search for in the views of one session, and their positions in the original
/// messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Probes {
    /// Number of each fact, by its word.
    facts: HashMap<String, u32>,
    /// The text of each user message to search for.
    users: Vec<String>,
    /// The original messages.
    messages: Vec<Original>,
}

#[derive(Debug, Clone, Default)]
struct Original {
    contents: Contents,
    /// Number of facts and user messages up to and including this message.
    facts: u32,
    users: u32,
}

/// The probes that one message of a view contains.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    facts: Vec<u32>,
    users: Vec<u32>,
}

/// Collects the [`Retention`] of a session, request by request.
#[derive(Debug)]
pub(crate) struct RetentionTracker<'a> {
    probes: &'a Probes,
    /// The contents of messages that are not originals.
    edited: HashMap<SentMessage, Contents>,
    retention: Retention,
}

impl Share {
    /// Returns the share as a fraction; 1 if nothing was searched for.
    #[must_use]
    pub fn fraction(self) -> f64 {
        if self.of == 0 {
            return 1.0;
        }
        self.found as f64 / self.of as f64
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            found: self.found + other.found,
            of: self.of + other.of,
        }
    }
}

impl Retention {
    /// Returns the sum of both.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            user_messages: self.user_messages.combine(other.user_messages),
            facts: self.facts.combine(other.facts),
            last_user_messages: self.last_user_messages.combine(other.last_user_messages),
            last_facts: self.last_facts.combine(other.last_facts),
        }
    }
}

impl Probes {
    /// Chooses the probes of a session.
    ///
    /// A fact is the new word nearest to the middle of a result, so that keeping the head and tail
    /// of every result does not preserve all facts.
    pub(crate) fn of<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Self {
        let mut probes = Self::default();
        let mut seen: HashSet<String> = HashSet::new();
        for message in messages {
            let text = full_text(message);
            if matches!(message, Message::ToolResult(_))
                && let Some(word) = middle_word(&text, &seen)
            {
                let number = probes.fact_count();
                probes.facts.insert(word.to_owned(), number);
            }
            if matches!(message, Message::User { .. })
                && normalized(&text).len() >= MIN_USER_MESSAGE
            {
                probes.users.push(normalized(&text));
            }
            for word in words(&text) {
                if !seen.contains(word) {
                    seen.insert(word.to_owned());
                }
            }
            let original = Original {
                contents: probes.contents(message),
                facts: probes.fact_count(),
                users: u32::try_from(probes.users.len()).unwrap_or(u32::MAX),
            };
            probes.messages.push(original);
        }
        probes
    }

    fn fact_count(&self) -> u32 {
        u32::try_from(self.facts.len()).unwrap_or(u32::MAX)
    }

    /// Returns the probes that a message contains.
    fn contents(&self, message: &Message) -> Contents {
        let text = full_text(message);
        let facts = words(&text).filter_map(|word| self.facts.get(word).copied());
        let searched = normalized(&text);
        let users = (0_u32..).zip(&self.users);
        let users = users.filter(|(_, user)| {
            matches!(message, Message::User { .. } | Message::Summary { .. })
                && searched.contains(user.as_str())
        });
        Contents {
            facts: facts.collect(),
            users: users.map(|(at, _)| at).collect(),
        }
    }
}

impl<'a> RetentionTracker<'a> {
    pub(crate) fn new(probes: &'a Probes) -> Self {
        Self {
            probes,
            edited: HashMap::new(),
            retention: Retention::default(),
        }
    }

    /// Records the contents of a message in the view that is not an original.
    pub(crate) fn note_edited(&mut self, sent: SentMessage, message: &Message) {
        let probes = self.probes;
        let contents = || probes.contents(message);
        self.edited.entry(sent).or_insert_with(contents);
    }

    /// Searches a view that is sent when the session has `length` messages.
    pub(crate) fn observe(&mut self, view: &[SentMessage], length: usize) {
        let (mut facts, mut users): (HashSet<u32>, HashSet<u32>) = Default::default();
        for sent in view {
            let original = usize::try_from(sent.0).ok();
            let original = original.and_then(|at| self.probes.messages.get(at));
            let edited = self.edited.get(sent);
            if let Some(contents) = edited.or(original.map(|original| &original.contents)) {
                facts.extend(&contents.facts);
                users.extend(&contents.users);
            }
        }
        let last = self.probes.messages.get(length.wrapping_sub(1));
        let share = |found: usize, of: Option<u32>| Share {
            found: found as u64,
            of: of.unwrap_or_default().into(),
        };
        let facts = share(facts.len(), last.map(|last| last.facts));
        let users = share(users.len(), last.map(|last| last.users));
        self.retention = Retention {
            user_messages: self.retention.user_messages.combine(users),
            facts: self.retention.facts.combine(facts),
            last_user_messages: users,
            last_facts: facts,
        };
    }

    pub(crate) fn retention(&self) -> Retention {
        self.retention
    }
}

/// Returns the text of a message, including the arguments of its calls.
fn full_text(message: &Message) -> String {
    let mut text = message.text();
    for call in message.calls() {
        text.push('\n');
        text.push_str(&call.arguments);
    }
    text
}

fn normalized(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Returns the words of a text that can be facts: long enough, and not plain prose.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(move |letter| !is_part(letter))
        .filter(|word| word.len() >= MIN_WORD && is_name(word))
}

/// Returns `true` if a word has a digit, an underscore, or a capital letter after its first
/// character.
fn is_name(word: &str) -> bool {
    let marks = |letter: u8| letter.is_ascii_digit() || letter == b'_';
    word.bytes().any(marks)
        || word
            .bytes()
            .skip(1)
            .any(|letter| letter.is_ascii_uppercase())
}

/// Returns the word nearest to the middle of a text that is not in `seen`.
fn middle_word<'t>(text: &'t str, seen: &HashSet<String>) -> Option<&'t str> {
    let middle = text.len() / 2;
    let place = |word: &str| (word.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    words(text)
        .filter(|word| !seen.contains(*word))
        .min_by_key(|word| place(word).abs_diff(middle))
}
