//! [`Item`]: one message as it stands in the view, with its place and weight.
//! Not the log's record of it; that is an entry of `agent`.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::tokens::Tokens;

/// The number of a message in its session, from 0; it never changes and is never given twice.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
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
    /// Whether it must stay in the view, whole.
    pub pinned: bool,
}
