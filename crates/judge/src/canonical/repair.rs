//! [`Repair`]: one thing that was mended in a request: where, what, for which rule, and in whose
//! words it would have been refused. Does no mending.

use std::fmt;

use plimsoll_context as context;
use serde::{Serialize, Serializer};

use super::target::Target;
use crate::fault::{Fault, Rule};

/// One thing that was mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// Where, as the request counted it before: `messages[3]`, `input[7]`, `system`.
    pub place: String,
    /// The rule for which it was done; `None` where it only follows from something else.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "by_name")]
    pub rule: Option<Rule>,
    /// What was done.
    pub done: String,
    /// What the provider would have said, where it would have refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// The same while places are still counted in the transcript.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    /// The message of the transcript as it was read.
    pub(super) at: usize,
    pub(super) rule: Option<Rule>,
    pub(super) done: String,
    pub(super) words: Option<String>,
}

impl Finding {
    /// What `plimsoll_context::repair` mended, by the rule of the wire that asks for it.
    pub(super) fn of(repair: &context::Repair, target: &Target) -> Self {
        use context::Repair as Mended;
        let rules = target.form().pair_rules();
        let rule = match repair {
            Mended::ClosedCall { .. } => rules.open,
            Mended::DroppedResult { .. } => rules.orphan,
            Mended::DroppedCall { .. } => Rule::V3,
            Mended::MovedResult { .. } => rules.moved,
            Mended::DroppedEmpty { .. } => rules.empty,
        };
        Self {
            at: repair.at(),
            rule: Some(rule),
            done: repair.done(),
            words: None,
        }
    }
}

impl Repair {
    pub(super) fn new(place: impl Into<String>, done: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            rule: None,
            done: done.into(),
            words: None,
        }
    }

    /// The same, done because of a fault.
    pub(super) fn because(mut self, fault: Option<&Fault>) -> Self {
        self.rule = fault.map(|fault| fault.rule);
        self.words = fault.map(|fault| fault.words.clone());
        self
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.done)?;
        match self.rule {
            Some(rule) => write!(f, " ({rule})"),
            None => Ok(()),
        }
    }
}

fn by_name<S: Serializer>(rule: &Option<Rule>, to: S) -> Result<S::Ok, S::Error> {
    match rule {
        Some(rule) => to.collect_str(rule),
        None => to.serialize_none(),
    }
}
