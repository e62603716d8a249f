//! [`Plan`]: a change of the view as a value, with the tokens that it frees and the position from
//! which on it rewrites sent messages. [`PlanContext`]: whether messages can be recalled, the model that
//! summarises and the finished summary that it may use. Policies decide when a plan is made.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::fingerprint::Fingerprint;
use crate::item::Seq;
use crate::message::Message;
use crate::plan_price::Price;
use crate::tokens::Tokens;

/// A list of edits with their effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Why the policy was asked for the plan.
    pub why: Trigger,
    /// The stages that contributed, in order.
    pub stages: Vec<String>,
    /// The edits, in view order.
    pub edits: Vec<Edit>,
    /// The size of the view before the plan.
    pub before: Tokens,
    /// The exact number of tokens that the edits free.
    pub frees: Tokens,
    /// The first edited item that had already been sent: the provider's prompt cache is lost from
    /// there on. `None` if only new items are edited.
    pub rewrites_from: Option<Seq>,
    /// Whether the removed content can be recalled from the log. If so, the markers say how.
    #[serde(default, skip_serializing_if = "Recall::is_none")]
    pub recall: Recall,
    /// The cost and the savings of the plan; `None` until they are computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// One change of the view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum Edit {
    /// Replaces an item by a smaller message.
    Shrink {
        /// The item.
        seq: Seq,
        /// The replacement.
        to: Rendition,
    },
    /// Removes a range of items from the view and puts a marker in their place.
    Drop {
        /// The first item to be removed.
        first: Seq,
        /// The last item to be removed.
        last: Seq,
        /// The marker, a [`Gap`](crate::Gap).
        marker: Rendition,
    },
    /// Replaces the first covered item by a summary, and removes the other covered items.
    Summarize {
        /// The covered items, in view order: whole exchanges, including the former summary.
        covers: Vec<SeqRange>,
        /// The summary.
        to: Rendition,
    },
}

/// A range of items in view order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeqRange {
    /// The first item.
    pub first: Seq,
    /// The last item, included.
    pub last: Seq,
}

/// A smaller form of a message, with its size. The log stores its bytes, so that replaying the log
/// gives the same view even if a later version shortens messages differently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rendition {
    /// The smaller message.
    pub message: Arc<Message>,
    /// The size of the message.
    pub tokens: Tokens,
}

/// The reason for which a policy is asked for a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Trigger {
    /// A request is about to be made. The stages act if the view exceeds its trigger.
    Request,
    /// The provider refused a request as too long.
    Overflow,
    /// The user or the host asked for a plan.
    Asked,
}

impl Trigger {
    /// Returns the name of the trigger.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The context of a plan besides the view. By default nothing is available.
#[derive(Debug, Clone, Default)]
pub struct PlanContext {
    /// Whether removed messages can be recalled, so that markers may say how.
    pub recall: Recall,
    /// Whether a model can write a summary.
    pub can_summarize: bool,
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

/// An error when a plan is applied to a view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The plan was made for a view of another size.
    #[error(
        "the plan was made for a view of {stated} tokens, but this view has {actual}; plan again"
    )]
    OtherView {
        /// The size that the plan was made for.
        stated: Tokens,
        /// The size of this view.
        actual: Tokens,
    },
    /// The plan names an item that is not in the view.
    #[error("the plan edits item {0}, which is not in the view; plan again on this view")]
    NotInView(Seq),
    /// A replacement has another role, answers another call or makes other calls.
    #[error("the plan puts something else in the place of item {0}; plan again on this view")]
    NotItsForm(Seq),
    /// A replacement is not smaller than the item it replaces.
    #[error("the plan does not make item {0} smaller; plan again on this view")]
    NotLighter(Seq),
    /// The plan would change or remove pinned content.
    #[error("the plan evicts the pinned message {0}; unpin it first, or keep it")]
    Pinned(Seq),
    /// The plan would remove only a part of an exchange.
    #[error("the plan splits the exchange that starts at {0}; evict it completely or not at all")]
    PartsExchange(Seq),
    /// The plan does not free the number of tokens that it states.
    #[error("the plan claims to free {stated} tokens but frees {actual}; plan again on this view")]
    WrongGain {
        /// The number that the plan states.
        stated: Tokens,
        /// The number that it would free.
        actual: Tokens,
    },
    /// The plan frees nothing.
    #[error("the plan frees no tokens, so it is not applied")]
    FreesNothing,
}

impl Recall {
    /// Returns `true` if removed messages cannot be recalled.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl Plan {
    /// Returns `true` if the plan removes messages or rewrites messages that were already sent. A
    /// plan that only shortens results before the model first reads them is no compaction.
    #[must_use]
    pub fn is_compaction(&self) -> bool {
        let removes = |edit: &Edit| !matches!(edit, Edit::Shrink { .. });
        self.rewrites_from.is_some() || self.edits.iter().any(removes)
    }

    /// Returns the last item up to `sent` that the plan leaves as it was sent.
    #[must_use]
    pub fn keeps(&self, sent: Seq) -> Option<Seq> {
        match self.rewrites_from {
            Some(first) if first <= sent => first.0.checked_sub(1).map(Seq),
            _ => Some(sent),
        }
    }

    /// Returns the size of the view after the plan.
    #[must_use]
    pub fn after(&self) -> Tokens {
        self.before.minus(self.frees)
    }
}
