//! [`Item`]: a message in the view, with its number and size. The log records messages as entries
//! of `agent`.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::message::Message;
use crate::plan::Recall;
use crate::tokens::Tokens;

/// The number of a message in its session, from 0. It never changes and is never reused.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the next number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the message's id for recall, such as `m12`.
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
    /// The number of the message in the session.
    pub seq: Seq,
    /// The message that is sent: the original, or the replacement from a plan.
    pub message: Arc<Message>,
    /// The size of the message, counted once.
    pub tokens: Tokens,
    /// The pin that keeps the message in the view, if there is one.
    pub pin: Option<Pin>,
    /// Whether the message is the original.
    pub form: Form,
}

/// Whether an item is the original message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The original message.
    Original,
    /// A replacement from a plan, and whether the original can be recalled.
    Edited(Recall),
}

/// A pin on an item, which must stay in the view unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The fingerprint of the message when it was pinned.
    pub hash: Fingerprint,
}

impl Pin {
    /// Creates a pin on a message.
    #[must_use]
    pub fn on(message: &Message) -> Self {
        let hash = Fingerprint::of([message]);
        Self { hash }
    }

    /// Checks whether a message is still the pinned one.
    #[must_use]
    pub fn holds(&self, message: &Message) -> bool {
        *self == Self::on(message)
    }
}
