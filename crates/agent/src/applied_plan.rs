//! [`AppliedPlan`]: the announcement of a plan, for observers and for the caller of a compaction.

use std::fmt;

use plimsoll_context::{Plan, Tokens};
use serde::{Deserialize, Serialize};

use crate::display::Counted;

/// A plan that was applied to the view, and the sizes before and after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppliedPlan {
    /// The plan, with its cause, its edits and its price.
    pub plan: Plan,
    /// `true` if messages were removed, or rewritten after they had been sent. `false` if only results
    /// were shortened before the model first reads them.
    pub is_compaction: bool,
    /// Number of messages in the view before.
    pub messages_before: usize,
    /// Number of messages in the view after.
    pub messages_after: usize,
    /// The request's size before.
    pub tokens_before: Tokens,
    /// The request's size after.
    pub tokens_after: Tokens,
}

impl fmt::Display for AppliedPlan {
    /// Formats the sizes, such as "20 messages became 6, 9000 tokens became 2000".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = u64::try_from(self.messages_before).unwrap_or(u64::MAX);
        write!(
            f,
            "{} became {}, {} became {}",
            Counted(messages, "message"),
            self.messages_after,
            Counted(self.tokens_before.0, "token"),
            self.tokens_after
        )
    }
}
