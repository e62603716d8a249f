//! [`PlanContext`]: the context of a plan besides the view: an archive, a model that summarises,
//! and a finished summary. The agent's machine requests summaries.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::item::Seq;
use crate::tokens::Tokens;

/// The context of a plan besides the view. By default nothing is available.
#[derive(Debug, Clone, Default)]
pub struct PlanContext {
    /// Whether removed messages can be recalled, so that markers may say how.
    pub recall: Recall,
    /// Whether a model can write a summary.
    pub summarizer: Summarizer,
    /// A finished summary by a model.
    pub ready: Option<ReadySummary>,
}

/// Whether the model can recall removed messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recall {
    /// They cannot be recalled.
    #[default]
    None,
    /// They can be recalled by [`Seq::recall_id`].
    Offered,
}

impl Recall {
    /// Returns `true` if removed messages cannot be recalled.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Whether a model can write a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Summarizer {
    /// There is no model, or it has failed.
    #[default]
    None,
    /// A model is available.
    Free,
    /// The model is writing a summary now.
    Busy,
}

/// A range of messages that a stage wants a model to summarise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRange {
    /// The items, in view order, including the former summary.
    pub seqs: Vec<Seq>,
    /// The fingerprint of their messages.
    pub fingerprint: Fingerprint,
    /// The total size of the items.
    pub tokens: Tokens,
    /// The maximum size of the summary.
    pub max: Tokens,
    /// Whether a plan waits for the summary.
    pub when: SummaryTiming,
}

/// Whether a plan waits for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryTiming {
    /// A plan is due now.
    Now,
    /// A plan will be due soon. The summary can be written while the run continues.
    Soon,
}

/// A finished summary by a model, with the messages that it summarises.
#[derive(Debug, Clone)]
pub struct ReadySummary {
    /// The summarised items.
    pub seqs: Vec<Seq>,
    /// The fingerprint of the messages when they were summarised.
    pub fingerprint: Fingerprint,
    /// The text of the summary.
    pub text: Arc<str>,
}
