//! [`HookInput`]: a point in a run at which the host may have a hook, with the data for it. The hook
//! either decides or is informed.
//!
//! The hooks themselves are in `core`.

use std::sync::Arc;

use plimsoll_context::{CallId, Message, Seq, Tokens, Usage};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use strum::{Display, EnumDiscriminants, IntoStaticStr, VariantArray};

use crate::outcome::Outcome;

/// The messages passed to a hook. The list is a copy that shares the messages.
pub type Messages = Vec<Arc<Message>>;

/// A message that a plan has removed or shortened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvictedMessage {
    /// Sequence number in the session: 12 for `m12`.
    pub seq: Seq,
    /// `true` if the message was removed, `false` if it was shortened.
    pub removed: bool,
    /// Name of the tool, if it is a tool result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The message as it was in the view: the original, unless an earlier plan had shortened it.
    pub message: Arc<Message>,
}

/// A point of a run with the data for its hooks.
///
/// A program reads it as JSON, with the number of messages in place of the messages.
#[derive(Debug, Clone, Serialize, EnumDiscriminants)]
#[serde(tag = "hook", rename_all = "snake_case")]
#[strum_discriminants(
    name(HookPoint),
    doc = "A point in a run at which the host may have a hook, in the order in which a run reaches them.",
    derive(
        PartialOrd,
        Ord,
        Hash,
        Serialize,
        Deserialize,
        Display,
        IntoStaticStr,
        VariantArray
    ),
    serde(rename_all = "snake_case"),
    strum(serialize_all = "snake_case")
)]
#[non_exhaustive]
pub enum HookInput {
    /// Before the first run of a session. "No" rejects the task.
    BeforeTask,
    /// Before a run. "No" rejects it.
    BeforeLoop {
        /// The view.
        #[serde(serialize_with = "count")]
        messages: Messages,
        /// The number of the run in its session, from 1.
        run: u64,
    },
    /// Before a turn. "No" ends the run.
    BeforeTurn {
        /// The view.
        #[serde(serialize_with = "count")]
        messages: Messages,
        /// The number of the turn in its run, from 1.
        turn: u64,
    },
    /// The host may rewrite the messages of a request.
    TransformContext {
        /// The messages of the request.
        #[serde(serialize_with = "count")]
        messages: Messages,
    },
    /// Before a tool call runs, and before its approval. "No" skips it; the arguments may be
    /// rewritten.
    BeforeToolExecution {
        /// The name of the tool.
        tool: String,
        /// The call.
        call: CallId,
        /// The arguments, a JSON object.
        arguments: Value,
    },
    /// Before a progress update of a tool is published. "No" suppresses it.
    BeforeToolExecutionUpdate {
        /// The name of the tool.
        tool: String,
        /// The call.
        call: CallId,
        /// The text of the update.
        text: String,
    },
    /// After a progress update was published.
    AfterToolExecutionUpdate {
        /// The name of the tool.
        tool: String,
        /// The call.
        call: CallId,
        /// The text of the update.
        text: String,
    },
    /// A tool has returned. Its result may be rewritten before it is recorded.
    TransformToolResult {
        /// The name of the tool.
        tool: String,
        /// The call.
        call: CallId,
        /// The text of the result.
        result: String,
        /// `true` if the call failed.
        is_error: bool,
    },
    /// The host may send messages that the model reads before its next call.
    Steering,
    /// After an executed tool call.
    AfterToolExecution {
        /// The name of the tool.
        tool: String,
        /// The call.
        call: CallId,
        /// `true` if the call failed.
        is_error: bool,
    },
    /// Before a plan is applied. "No" keeps the view unchanged.
    BeforeCompactionStart {
        /// The size of the request.
        tokens: Tokens,
        /// The number of messages in the view.
        messages: usize,
    },
    /// After a plan was applied.
    AfterCompactionEnd {
        /// The number of messages before.
        messages_before: usize,
        /// The number of messages after.
        messages_after: usize,
        /// The size of the request before.
        tokens_before: Tokens,
        /// The size of the request after.
        tokens_after: Tokens,
    },
    /// After a plan has removed messages from the view.
    OnEvict {
        /// The evicted messages in view order, without summaries and markers of earlier plans.
        evicted: Vec<EvictedMessage>,
    },
    /// After a turn: the model call and its tool calls.
    AfterTurn {
        /// The view.
        #[serde(serialize_with = "count")]
        messages: Messages,
        /// The number of the turn in its run, from 1.
        turn: u64,
        /// The usage of its model call, if the provider reported it.
        usage: Option<Usage>,
    },
    /// The model has answered. "No" refuses the answer, and the model answers again.
    CheckAnswer {
        /// The text of the answer.
        answer: String,
    },
    /// The model has answered, and no message is queued. The hook decides whether there is more to do.
    FollowUp,
    /// After a failed model call.
    OnError {
        /// The text of the provider.
        error: String,
    },
    /// After a run.
    AfterLoop {
        /// The messages of this run that are in the view.
        #[serde(serialize_with = "count")]
        messages: Messages,
        /// The outcome of the run.
        outcome: Box<Outcome>,
    },
    /// After a run, once its log is durable.
    AfterTask {
        /// The outcome of the run.
        outcome: Box<Outcome>,
    },
}

/// The host's decision at a hook point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Continue.
    Go,
    /// Do not continue.
    No {
        /// The reason.
        why: String,
    },
}

impl HookInput {
    /// Returns the point.
    #[must_use]
    pub fn point(&self) -> HookPoint {
        self.into()
    }

    /// Returns the name of the tool, if the point concerns a tool call.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::BeforeToolExecution { tool, .. }
            | Self::BeforeToolExecutionUpdate { tool, .. }
            | Self::AfterToolExecutionUpdate { tool, .. }
            | Self::TransformToolResult { tool, .. }
            | Self::AfterToolExecution { tool, .. } => Some(tool),
            _ => None,
        }
    }
}

/// Serializes the number of messages in place of the messages.
fn count<S: Serializer>(messages: &Messages, serializer: S) -> Result<S::Ok, S::Error> {
    messages.len().serialize(serializer)
}

impl HookPoint {
    /// All points, in the order in which a run reaches them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns `true` if a "no" has an effect at this point, as before anything that happens.
    #[must_use]
    pub fn decides(self) -> bool {
        self == Self::CheckAnswer || self.name().starts_with("before_")
    }

    /// Returns `true` if the point concerns one tool call.
    #[must_use]
    pub fn is_of_a_tool(self) -> bool {
        self.name().contains("_tool_")
    }

    /// Returns the name as used in configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
