//! [`Item`]: one message as it stands in the view, with its place and weight.
//! Not the log's record of it; that is an entry of `agent`.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::means::Recall;
use crate::message::Message;
use crate::tokens::Tokens;

/// The number of a message in its session, from 0; it never changes and is never given twice.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// What the archive calls it: `m12`.
    #[must_use]
    pub fn recall_id(self) -> String {
        format!("m{}", self.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// One message of the view.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its number in the session.
    pub seq: Seq,
    /// What is sent: the original, or what a plan put in its place.
    pub message: Arc<Message>,
    /// Its weight, counted once.
    pub tokens: Tokens,
    /// What of it must stay in the view, if anything must.
    pub pin: Option<Pin>,
    /// Whether it is what was said.
    pub form: Form,
}

/// Whether an item is what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// It is.
    Original,
    /// A plan has put something else in its place; the original can be recalled, or not.
    Edited(Recall),
}

/// What of an item must stay in the view, with the proof that it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// What of it.
    pub what: Pinned,
    /// What that said when it was pinned.
    pub hash: Fingerprint,
}

/// What of an item is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pinned {
    /// All of it.
    Whole,
    /// One part, by its place in the message. The others may give way.
    Part(usize),
}

impl Pin {
    /// A pin on `what` of a message; `None` where it has no such part.
    #[must_use]
    pub fn on(message: &Message, what: Pinned) -> Option<Self> {
        let hash = match what {
            Pinned::Whole => Fingerprint::of([message]),
            Pinned::Part(at) => Fingerprint::of_part(message.parts().get(at)?),
        };
        Some(Self { what, hash })
    }

    /// Whether a message still says what was pinned. A part may have moved.
    #[must_use]
    pub fn holds(&self, message: &Message) -> bool {
        match self.what {
            Pinned::Whole => Fingerprint::of([message]) == self.hash,
            Pinned::Part(_) => message
                .parts()
                .iter()
                .any(|part| Fingerprint::of_part(part) == self.hash),
        }
    }
}
