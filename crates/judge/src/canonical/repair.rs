//! [`Repair`]: one repair of a request, with its place, the action, the rule, and the provider's words
//! for the fault.

use std::fmt;

use plimsoll_context as context;
use serde::{Serialize, Serializer};

use super::{Form, Target};
use crate::fault::{Fault, Rule};

/// One repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The place in the original request: `messages[3]`, `input[7]`, `system`.
    pub place: String,
    /// The rule that required it. `None` if it follows from another repair.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "by_name")]
    pub rule: Option<Rule>,
    /// The action, in words.
    pub done: String,
    /// The provider's error message, if it would have refused the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// A [`Repair`] while places still refer to the transcript.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    /// The index of the message in the original transcript.
    pub(super) at: usize,
    pub(super) rule: Option<Rule>,
    pub(super) done: String,
    pub(super) words: Option<String>,
}

impl Finding {
    /// Creates a finding from a repair of `plimsoll_context::repair`, with the protocol's rule for it.
    pub(super) fn of(repair: &context::Repair, target: &Target) -> Self {
        use context::Repair as TranscriptRepair;
        let rules = target.form().facts();
        let rule = match repair {
            TranscriptRepair::ClosedCall { .. } => rules.open,
            TranscriptRepair::DroppedResult { .. } => rules.orphan,
            TranscriptRepair::DroppedCall { .. } => Rule::V3,
            TranscriptRepair::MovedResult { .. } => rules.moved,
            TranscriptRepair::DroppedEmpty { .. } => rules.empty,
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

    /// Returns the finding with the rule and the words of a fault as its reason.
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
