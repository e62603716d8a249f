//! [`Means`]: what a policy may count on besides the view: an archive, a model that summarises, a
//! summary that is ready. Not the asking for any of it; that is the machine's.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::item::Seq;
use crate::tokens::Tokens;

/// What a policy may count on besides the view. By default: nothing.
#[derive(Debug, Clone, Default)]
pub struct Means {
    /// Whether what leaves the view can be recalled, so that markers may say how.
    pub recall: Recall,
    /// Whether a model can be asked for a summary.
    pub summarizer: Summarizer,
    /// A summary that a model has written.
    pub ready: Option<Ready>,
}

/// Whether what leaves the view can be recalled by the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recall {
    /// It cannot.
    #[default]
    None,
    /// By [`Seq::recall_id`].
    Offered,
}

impl Recall {
    /// Whether it cannot be recalled.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Whether a model can be asked for a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Summarizer {
    /// There is none, or it has failed.
    #[default]
    None,
    /// It can be asked.
    Free,
    /// It writes one just now.
    Busy,
}

/// What a stage would have summarised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The items, in view order; the former summary among them.
    pub seqs: Vec<Seq>,
    /// What they say.
    pub fingerprint: Fingerprint,
    /// What they weigh.
    pub tokens: Tokens,
    /// What the summary may weigh.
    pub max: Tokens,
    /// Whether a plan waits for it.
    pub when: When,
}

/// Whether a plan waits for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A plan is due now.
    Now,
    /// One will be soon; the summary can be written beside the run.
    Soon,
}

/// A summary that a model has written, and of what.
#[derive(Debug, Clone)]
pub struct Ready {
    /// The items that it stands for.
    pub seqs: Vec<Seq>,
    /// What they said.
    pub fingerprint: Fingerprint,
    /// The summary.
    pub text: Arc<str>,
}
