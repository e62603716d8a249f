//! One-line texts of messages and plans, as a host prints them.

use std::fmt;

use crate::message::Message;
use crate::plan::{Edit, Plan};
use crate::plan_price::PRINTED;
use crate::reply::StopReason;

impl Message {
    /// Returns the name of the message's kind: `system`, `user`, `assistant`, `tool`, `notice` or
    /// `summary`.
    #[must_use]
    pub fn role(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Message {
    /// Formats the role, the text and the names of the called tools, such as "assistant: I look it
    /// up. \[read, ls\]". White space becomes single spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.role())?;
        let text = self.text();
        text.split_whitespace()
            .try_for_each(|word| write!(f, " {word}"))?;
        let calls: Vec<&str> = self.calls().map(|call| call.name.as_str()).collect();
        if calls.is_empty() {
            Ok(())
        } else {
            write!(f, " [{}]", calls.join(", "))
        }
    }
}

impl Plan {
    /// Describes the plan in one line, with the number of messages that it removed from a view if
    /// that is known: "compacted (drop): 12 messages, 3400 tokens freed, $0.0010 saved a request".
    #[must_use]
    pub fn describe(&self, removed: Option<usize>) -> String {
        let is_removal = |edit: &Edit| !matches!(edit, Edit::Shrink { .. });
        let (what, messages) = if self.edits.iter().any(is_removal) {
            ("compacted", removed)
        } else {
            ("shortened", Some(self.edits.len()))
        };
        let messages = messages.map_or_else(String::new, |count| {
            format!(": {}", counted(count as u64, "message"))
        });
        let saves = self.price.as_ref().and_then(|price| price.saves);
        let saves = saves.filter(|saves| *saves >= PRINTED);
        format!(
            "{what} ({}){messages}, {} freed{}",
            self.stages.join(", "),
            counted(self.frees.0, "token"),
            saves.map_or_else(String::new, |saves| format!(", {saves} saved a request"))
        )
    }
}

/// Returns a number of things: "1 turn", "2 turns".
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

impl fmt::Display for Plan {
    /// Formats the effect, such as "compacted (drop), 3400 tokens freed".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.describe(None))
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stop => "the answer is complete",
            Self::ToolCalls => "the model calls tools",
            Self::Length => "the answer reached the output limit",
            Self::Window => "the answer reached the end of the window",
            Self::ContentFilter => "the provider withheld the rest of the answer",
            Self::Paused => "the answer is paused",
            Self::Other => "the model stopped for another reason",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Recall, Trigger};
    use crate::tokens::Tokens;

    #[test]
    fn messages_and_plans_are_one_line() {
        assert_eq!(
            Message::user("Which ships?").to_string(),
            "user: Which ships?"
        );
        let lines = Message::user("Which ships?\n\n- the  Kestrel\n\tand hers");
        assert_eq!(
            lines.to_string(),
            "user: Which ships? - the Kestrel and hers"
        );
        let plan = Plan {
            why: Trigger::Asked,
            stages: vec!["prune".to_owned()],
            edits: Vec::new(),
            before: Tokens(9),
            frees: Tokens(1),
            rewrites_from: None,
            recall: Recall::default(),
            price: None,
        };
        assert_eq!(
            plan.to_string(),
            "shortened (prune): 0 messages, 1 token freed"
        );
        assert_eq!(StopReason::Paused.to_string(), "the answer is paused");
    }
}
