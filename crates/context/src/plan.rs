//! [`Plan`]: a change of the view as a value, with what it frees and from where on it rewrites
//! what was already sent. Not the decision to make it; that is a policy.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::economy::Price;
use crate::item::Seq;
use crate::means::Recall;
use crate::message::Message;
use crate::tokens::Tokens;

/// A list of edits, and what they are worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Why it was made.
    pub why: Trigger,
    /// The stages that contributed, in order.
    pub stages: Vec<String>,
    /// The edits, in view order.
    pub edits: Vec<Edit>,
    /// The view's weight before.
    pub before: Tokens,
    /// What the edits free, exactly.
    pub frees: Tokens,
    /// The first edited item that a request had already carried: the provider's prompt cache is
    /// lost from there on. `None` where only new items are edited.
    pub rewrites_from: Option<Seq>,
    /// Whether what it takes can be recalled: its markers say so, so the archive must hold the
    /// originals before it is applied.
    #[serde(default, skip_serializing_if = "Recall::is_none")]
    pub recall: Recall,
    /// What that costs and saves; `None` where nobody has asked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// One change of the view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum Edit {
    /// A lighter message takes an item's place.
    Shrink {
        /// The item.
        seq: Seq,
        /// What takes its place.
        to: Rendition,
    },
    /// Items are removed from the view, from the first to the last. A marker takes their place.
    Drop {
        /// The first item to be removed.
        first: Seq,
        /// The last item to be removed.
        last: Seq,
        /// The marker, a [`Gap`](crate::Gap). `None` only in logs of format 4 and older.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        marker: Option<Rendition>,
    },
    /// A summary takes the place of the first item that it covers; the others leave the view.
    Summarize {
        /// What it covers, in view order: whole exchanges, the former summary among them.
        covers: Vec<SeqRange>,
        /// The summary.
        to: Rendition,
    },
}

/// Items from the first to the last, as they stand in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeqRange {
    /// The first.
    pub first: Seq,
    /// The last.
    pub last: Seq,
}

/// A lighter form of a message, with its weight. The log keeps its bytes, so that a fold gives
/// the same view even where a later version would shorten differently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rendition {
    /// The lighter message.
    pub message: Arc<Message>,
    /// Its weight.
    pub tokens: Tokens,
}

/// Why a policy is asked for a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Trigger {
    /// A request is about to be made; the stages act where the view is over its trigger.
    Request,
    /// The provider refused a request as too long.
    Overflow,
    /// Someone asked for it.
    Asked,
}

impl Trigger {
    /// Its name, in one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Overflow => "overflow",
            Self::Asked => "asked",
        }
    }
}

/// Why a plan cannot be applied to a view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// It was made for a view of another weight.
    #[error("the plan is for a view of {said} tokens, and this one has {is}; plan again on it")]
    OtherView {
        /// The weight that it was made for.
        said: Tokens,
        /// The weight of this view.
        is: Tokens,
    },
    /// It names an item that the view does not hold.
    #[error("the plan edits item {0}, which is not in the view; plan again on this view")]
    NotInView(Seq),
    /// Its replacement has another role, answers another call or makes other calls.
    #[error("the plan puts something else in the place of item {0}; plan again on this view")]
    NotItsForm(Seq),
    /// Its replacement is not lighter than what it replaces.
    #[error("the plan does not make item {0} lighter; plan again on this view")]
    NotLighter(Seq),
    /// It would change or drop what is pinned.
    #[error("the plan takes what is pinned at {0} out of the view; unpin it, or leave it")]
    Pinned(Seq),
    /// It would drop a part of an exchange.
    #[error("the plan parts the exchange that begins at {0}; drop it whole or not at all")]
    PartsExchange(Seq),
    /// It frees something else than it says.
    #[error("the plan says that it frees {said} tokens but frees {is}; plan again on this view")]
    WrongGain {
        /// What it says.
        said: Tokens,
        /// What it does.
        is: Tokens,
    },
    /// It does nothing.
    #[error("the plan frees nothing; there is no need to apply it")]
    FreesNothing,
}

impl Plan {
    /// Returns `true` if the plan removes messages or rewrites what was already sent. A plan that
    /// only shortens results before the model first reads them is no compaction.
    #[must_use]
    pub fn is_compaction(&self) -> bool {
        let removes = |edit: &Edit| !matches!(edit, Edit::Shrink { .. });
        self.rewrites_from.is_some() || self.edits.iter().any(removes)
    }

    /// The view's weight after.
    #[must_use]
    pub fn after(&self) -> Tokens {
        self.before.minus(self.frees)
    }
}
