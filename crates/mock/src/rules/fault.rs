//! [`Fault`]: one rule that a request breaks, with its place and the provider's words. Each protocol's
//! `validate.rs` creates the provider's error response from it.

use std::fmt;

use serde_json::Value;

/// The maximum number of faults that are reported for one request.
pub const MAX_FAULTS: usize = 100;

/// One broken rule of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The rule.
    pub rule: Rule,
    /// The place in the request, such as `messages[3].content`.
    pub place: String,
    /// The provider's error message.
    pub words: String,
}

/// Declares the rules once, each with its description and its name.
macro_rules! rules {
    ($($(#[$description:meta])+ $rule:ident = $name:literal,)+) => {
        /// The rules, named as the validators' documentation names them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$description])+ $rule,)+
        }

        impl Rule {
            /// All rules, in the order of the documentation.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$rule),+];

            /// Returns the rule of this name.
            pub(crate) fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|rule| rule.name() == name)
            }

            /// Returns the rule's name in the documentation, for example `AM3`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)+
                }
            }
        }
    };
}

rules! {
    /// The request does not have the shape that the protocol prescribes.
    Shape = "shape",
    /// Each tool call has one result, and each result has one earlier call, in call order.
    V3 = "V3",
    /// A batch of tool calls is complete.
    V4 = "V4",
    /// Every tool call of an assistant message is answered directly after it.
    Oc1 = "OC1",
    /// A tool message answers a call of the assistant message before it.
    Oc2 = "OC2",
    /// No other message is between calls and results, and a tool message is text.
    Oc3 = "OC3",
    /// The arguments of a tool call are a JSON string.
    Oc4 = "OC4",
    /// An assistant message has content or tool calls.
    Oc5 = "OC5",
    /// Reasoning is sent back if the provider requires it.
    Oc6 = "OC6",
    /// Mistral's ids, order and counts of tool calls.
    Oc7 = "OC7",
    /// The last message is not the assistant's.
    Oc8 = "OC8",
    /// Every tool call of the input has an output.
    Or1 = "OR1",
    /// Every output answers a tool call before it.
    Or2 = "OR2",
    /// Reasoning is followed by an item of the model.
    Or3 = "OR3",
    /// An item is sent with its id only together with the reasoning before it. If nothing is stored,
    /// reasoning is sent only with its content.
    Or4 = "OR4",
    /// Ids of items begin with the prefix of their kind, and are short.
    Or5 = "OR5",
    /// A compaction is complete.
    Or6 = "OR6",
    /// Every tool call is answered in the next message.
    Am1 = "AM1",
    /// Every result answers a call of the message before it.
    Am2 = "AM2",
    /// Results come first in their message.
    Am3 = "AM3",
    /// Every tool call has a single result.
    Am4 = "AM4",
    /// Ids of tool calls are letters, digits, `_` and `-`.
    Am5 = "AM5",
    /// No text is empty or only white space, and a prefill does not end with white space.
    Am6 = "AM6",
    /// There is a message, and the first one is the user's.
    Am7 = "AM7",
    /// The last message is not the assistant's, if the model refuses a prefill.
    Am8 = "AM8",
    /// While the model thinks, a tool loop begins with thinking, and no message ends with it.
    Am9 = "AM9",
    /// Thinking is sent back as it was signed, after the same messages as when it was signed.
    Am10 = "AM10",
    /// Breakpoints: at most four, only in allowed places, long-lived ones first.
    Am11 = "AM11",
    /// Breakpoints without an effect: too early, or too far apart.
    Am12 = "AM12",
    /// The body does not exceed the maximum size.
    Am13 = "AM13",
    /// Context editing: its order and its minimum trigger.
    Am14 = "AM14",
    /// Every tool call of a turn is answered in the next one, with as many responses as calls.
    Gm1 = "GM1",
    /// A turn with tool calls comes directly after a user turn or after responses.
    Gm2 = "GM2",
    /// The first tool call of each step of the current turn carries its thought signature.
    Gm3 = "GM3",
    /// The responses of a batch are in one content, before other parts.
    Gm4 = "GM4",
    /// Roles, contents and parts exist.
    Gm5 = "GM5",
    /// The first message is the user's, and roles alternate.
    Br1 = "BR1",
    /// There are no more results than tool calls in the turn before.
    Br2 = "BR2",
    /// The results of all calls are in the next message.
    Br3 = "BR3",
    /// For some models, results are alone in their message.
    Br4 = "BR4",
    /// Tools are configured if the history has tool blocks.
    Br5 = "BR5",
    /// Names of tools, and the allowed choices of tools.
    Br6 = "BR6",
    /// Template: user and assistant alternate.
    T1 = "T1",
    /// Template: no user message directly after a tool result.
    T2 = "T2",
    /// Template: one system message, at the beginning.
    T3 = "T3",
    /// Template: there is a user message.
    T4 = "T4",
    /// Template: one tool call per assistant message.
    T5 = "T5",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns a key as part of a place. Unusual keys are quoted so that they cannot be confused with a
/// place: `messages[1]x` becomes `["messages[1]x"]`.
pub(crate) fn key_place(key: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '$');
    if !key.is_empty() && key.chars().all(is_plain) {
        key.to_owned()
    } else {
        format!("[{}]", Value::from(key))
    }
}

/// Adds a fault, unless the report is full.
pub(crate) fn note(
    faults: &mut Vec<Fault>,
    rule: Rule,
    place: impl Into<String>,
    words: impl Into<String>,
) {
    if faults.len() < MAX_FAULTS {
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
