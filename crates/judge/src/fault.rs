//! [`Fault`]: one rule that a request breaks, where, and in whose words a provider says so.
//! Not a provider's error answer; each wire's `validate.rs` makes that from it.

use std::cell::Cell;
use std::fmt;

use serde_json::Value;

/// Faults reported for one request; a mock says one, a person reads no more.
pub const MAX_FAULTS: usize = 100;

/// Faults looked for where a request is mended, so that it is gone through once for all of them: more
/// than any request has messages, and a bound all the same.
const MENDED_AT_ONCE: usize = 1_000_000;

thread_local! {
    /// How many faults a report has room for; only [`all`] changes it.
    static ROOM: Cell<usize> = const { Cell::new(MAX_FAULTS) };
}

/// One broken rule of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The rule.
    pub rule: Rule,
    /// Where in the request: `messages[3].content`.
    pub place: String,
    /// What the provider says about it.
    pub words: String,
}

/// The rules, named as the validators' documentation names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The request has not the shape that the wire's types prescribe.
    Shape,
    /// Each tool call has one result, each result one earlier call, in call order.
    V3,
    /// A batch of tool calls is whole.
    V4,
    /// Every tool call of an assistant message is answered directly after it.
    Oc1,
    /// A tool message answers a call of the assistant message before it.
    Oc2,
    /// Nothing stands between calls and results; a tool message is text.
    Oc3,
    /// The arguments of a tool call are a JSON string.
    Oc4,
    /// An assistant message has content or tool calls.
    Oc5,
    /// Reasoning is given back where the provider demands it.
    Oc6,
    /// Mistral's ids, order and counts of tool calls.
    Oc7,
    /// The assistant does not have the last word.
    Oc8,
    /// Every tool call of the input has an output.
    Or1,
    /// Every output answers a tool call before it.
    Or2,
    /// Reasoning is followed by what came of it.
    Or3,
    /// What came of reasoning is sent under its id only together with that reasoning, and
    /// reasoning only with its content, where nothing is stored.
    Or4,
    /// Ids of items begin as their kind does, and are short.
    Or5,
    /// A compaction is whole.
    Or6,
    /// Every tool call is answered in the next message.
    Am1,
    /// Every result answers a call of the message before it.
    Am2,
    /// Results come first in their message.
    Am3,
    /// Every tool call has a single result.
    Am4,
    /// Ids of tool calls are letters, digits, `_` and `-`.
    Am5,
    /// No text is empty or white space, and none ends a prefill with white space.
    Am6,
    /// There is a message, and the first one is the user's.
    Am7,
    /// The assistant does not have the last word where the model refuses a prefill.
    Am8,
    /// While the model thinks, a tool loop begins with thinking, and no message ends with it.
    Am9,
    /// Thinking comes back as it was signed, and after what it was signed under.
    Am10,
    /// Breakpoints: four at most, where they may stand, long-lived ones first.
    Am11,
    /// Breakpoints that do nothing: too early, or too far apart.
    Am12,
    /// The body has a largest size.
    Am13,
    /// Context editing: its order and its least trigger.
    Am14,
    /// Every tool call of a turn is answered in the next one: as many responses as calls.
    Gm1,
    /// A turn that calls tools comes directly after the user's or after responses.
    Gm2,
    /// The first tool call of each step of the current turn carries its thought signature.
    Gm3,
    /// The responses of a batch stand in one content, before all else.
    Gm4,
    /// Roles, contents and parts that are there, and an explicit cache that is large enough.
    Gm5,
    /// The user speaks first, and roles alternate.
    Br1,
    /// No more results than the turn before called tools.
    Br2,
    /// The results of all calls stand in the next message.
    Br3,
    /// Results stand alone in their message, for some models.
    Br4,
    /// Tools are configured wherever the history has tool blocks.
    Br5,
    /// Names of tools, and which choices of tools there are.
    Br6,
    /// Template: user and assistant alternate.
    T1,
    /// Template: no user message directly after a tool result.
    T2,
    /// Template: one system message, at the beginning.
    T3,
    /// Template: there is a user message.
    T4,
    /// Template: one tool call an assistant message.
    T5,
}

impl Rule {
    /// Every rule, in the order of the documentation.
    pub const ALL: [Self; 47] = [
        Self::Shape,
        Self::V3,
        Self::V4,
        Self::Oc1,
        Self::Oc2,
        Self::Oc3,
        Self::Oc4,
        Self::Oc5,
        Self::Oc6,
        Self::Oc7,
        Self::Oc8,
        Self::Or1,
        Self::Or2,
        Self::Or3,
        Self::Or4,
        Self::Or5,
        Self::Or6,
        Self::Am1,
        Self::Am2,
        Self::Am3,
        Self::Am4,
        Self::Am5,
        Self::Am6,
        Self::Am7,
        Self::Am8,
        Self::Am9,
        Self::Am10,
        Self::Am11,
        Self::Am12,
        Self::Am13,
        Self::Am14,
        Self::Gm1,
        Self::Gm2,
        Self::Gm3,
        Self::Gm4,
        Self::Gm5,
        Self::Br1,
        Self::Br2,
        Self::Br3,
        Self::Br4,
        Self::Br5,
        Self::Br6,
        Self::T1,
        Self::T2,
        Self::T3,
        Self::T4,
        Self::T5,
    ];

    /// Returns its name in the documentation, such as `AM3`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.get(self as usize).copied().unwrap_or_default()
    }
}

/// The names of the rules, in the order of [`Rule::ALL`].
const NAMES: [&str; 47] = [
    "shape", "V3", "V4", "OC1", "OC2", "OC3", "OC4", "OC5", "OC6", "OC7", "OC8", "OR1", "OR2",
    "OR3", "OR4", "OR5", "OR6", "AM1", "AM2", "AM3", "AM4", "AM5", "AM6", "AM7", "AM8", "AM9",
    "AM10", "AM11", "AM12", "AM13", "AM14", "GM1", "GM2", "GM3", "GM4", "GM5", "BR1", "BR2", "BR3",
    "BR4", "BR5", "BR6", "T1", "T2", "T3", "T4", "T5",
];

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The faults that are found while reports have room for all of them.
pub(crate) fn all(judge: impl FnOnce() -> Vec<Fault>) -> Vec<Fault> {
    struct Back(usize);
    impl Drop for Back {
        fn drop(&mut self) {
            ROOM.set(self.0);
        }
    }
    let _back = Back(ROOM.replace(MENDED_AT_ONCE));
    judge()
}

/// Returns a key as part of a place. A key that is no plain name is quoted, so that it cannot be
/// taken for a place of its own: `messages[1]x` becomes `["messages[1]x"]`.
pub(crate) fn key_place(key: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '$');
    if !key.is_empty() && key.chars().all(is_plain) {
        key.to_owned()
    } else {
        format!("[{}]", Value::from(key))
    }
}

/// Checks whether a place is the value of a top-level key, or within it.
pub(crate) fn is_within(place: &str, key: &str) -> bool {
    let rest = place.strip_prefix(key);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
}

/// Notes one more fault, while a report has room for it.
pub(crate) fn note(
    faults: &mut Vec<Fault>,
    rule: Rule,
    place: impl Into<String>,
    words: impl Into<String>,
) {
    if faults.len() < ROOM.get() {
        faults.push(Fault {
            rule,
            place: place.into(),
            words: words.into(),
        });
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.place, self.words, self.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_its_name() {
        for (index, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, index);
            let name = format!("{rule:?}");
            assert!(rule.name().eq_ignore_ascii_case(&name), "{name}");
        }
    }
}
