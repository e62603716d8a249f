//! [`HookInput`]: a point in a run at which the host may have a hook, with the data for it. The hook
//! either decides or is informed.
//!
//! The hooks themselves are in `core`.

use std::sync::Arc;

use plimsoll_context::{CallId, Message, Seq, Tokens, Usage};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::outcome::Outcome;

/// A point in a run at which the host may have a hook, in the order in which a run reaches them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// Before the first run of a session. "No" rejects the task.
    BeforeTask,
    /// Before a run. "No" rejects it.
    BeforeLoop,
    /// Before a turn. "No" ends the run.
    BeforeTurn,
    /// The host may rewrite the messages of a request.
    TransformContext,
    /// Like [`HookPoint::TransformContext`], after it.
    ConvertToLlm,
    /// Before a tool call runs, and before its approval. "No" skips it; the arguments may be
    /// rewritten.
    BeforeToolExecution,
    /// Before a progress update of a tool is published. "No" suppresses it.
    BeforeToolExecutionUpdate,
    /// After a progress update was published.
    AfterToolExecutionUpdate,
    /// A tool has returned. Its result may be rewritten before it is recorded.
    TransformToolResult,
    /// The host may send messages that the model reads before its next call.
    Steering,
    /// After an executed tool call.
    AfterToolExecution,
    /// Before a plan is applied. "No" keeps the view unchanged.
    BeforeCompactionStart,
    /// After a plan was applied.
    AfterCompactionEnd,
    /// After a plan has removed messages from the view.
    OnEvict,
    /// After a turn: the model call and its tool calls.
    AfterTurn,
    /// The model has answered. "No" refuses the answer, and the model answers again.
    CheckAnswer,
    /// The model has answered, and no message is queued. The hook decides whether there is more to do.
    FollowUp,
    /// After a failed model call.
    OnError,
    /// After a run.
    AfterLoop,
    /// After a run, once its log is durable.
    AfterTask,
}

/// The messages passed to a hook. The list is a copy that shares the messages.
pub type Messages = Vec<Arc<Message>>;

/// The messages that one plan has removed from the view or shortened in it.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Eviction {
    /// The messages in view order, without summaries and markers of earlier plans.
    pub items: Vec<EvictedMessage>,
}

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
    /// The complete original, even if an earlier plan had shortened it.
    pub message: Arc<Message>,
}

/// A point of a run with the data for its hooks.
///
/// A program reads it as JSON, with the number of messages in place of the messages.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "hook", rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookInput {
    /// See [`HookPoint::BeforeTask`].
    BeforeTask,
    /// See [`HookPoint::BeforeLoop`].
    BeforeLoop {
        /// The view.
        #[serde(serialize_with = "count")]
        messages: Messages,
        /// The number of the run in its session, from 1.
        run: u64,
    },
    /// See [`HookPoint::BeforeTurn`].
    BeforeTurn {
        /// The view.
        #[serde(serialize_with = "count")]
        messages: Messages,
        /// The number of the turn in its run, from 1.
        turn: u64,
    },
    /// See [`HookPoint::TransformContext`].
    TransformContext {
        /// The messages of the request.
        #[serde(serialize_with = "count")]
        messages: Messages,
    },
    /// See [`HookPoint::ConvertToLlm`].
    ConvertToLlm {
        /// The messages of the request.
        #[serde(serialize_with = "count")]
        messages: Messages,
    },
    /// See [`HookPoint::BeforeToolExecution`].
    BeforeToolExecution {
        /// The name of the tool.
        tool: String,
        /// The call.
        call: CallId,
        /// The arguments, a JSON object.
        arguments: Value,
    },
    /// See [`HookPoint::BeforeToolExecutionUpdate`].
    BeforeToolExecutionUpdate {
        /// The name of the tool.
        tool: String,
        /// The call.
        call: CallId,
        /// The text of the update.
        text: String,
    },
    /// See [`HookPoint::AfterToolExecutionUpdate`].
    AfterToolExecutionUpdate {
        /// The name of the tool.
        tool: String,
        /// The call.
        call: CallId,
        /// The text of the update.
        text: String,
    },
    /// See [`HookPoint::TransformToolResult`].
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
    /// See [`HookPoint::Steering`].
    Steering,
    /// See [`HookPoint::AfterToolExecution`].
    AfterToolExecution {
        /// The name of the tool.
        tool: String,
        /// The call.
        call: CallId,
        /// `true` if the call failed.
        is_error: bool,
    },
    /// See [`HookPoint::BeforeCompactionStart`].
    BeforeCompactionStart {
        /// The size of the request.
        tokens: Tokens,
        /// The number of messages in the view.
        messages: usize,
    },
    /// See [`HookPoint::AfterCompactionEnd`].
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
    /// See [`HookPoint::OnEvict`].
    OnEvict {
        /// The evicted messages.
        evicted: Eviction,
    },
    /// See [`HookPoint::AfterTurn`].
    AfterTurn {
        /// The view.
        #[serde(serialize_with = "count")]
        messages: Messages,
        /// The number of the turn in its run, from 1.
        turn: u64,
        /// The usage of its model call, if the provider reported it.
        usage: Option<Usage>,
    },
    /// See [`HookPoint::CheckAnswer`].
    CheckAnswer {
        /// The text of the answer.
        answer: String,
    },
    /// See [`HookPoint::FollowUp`].
    FollowUp,
    /// See [`HookPoint::OnError`].
    OnError {
        /// The text of the provider.
        error: String,
    },
    /// See [`HookPoint::AfterLoop`].
    AfterLoop {
        /// The messages of this run that are in the view.
        #[serde(serialize_with = "count")]
        messages: Messages,
        /// The outcome of the run.
        outcome: Box<Outcome>,
    },
    /// See [`HookPoint::AfterTask`].
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
        match self {
            Self::BeforeTask => HookPoint::BeforeTask,
            Self::BeforeLoop { .. } => HookPoint::BeforeLoop,
            Self::BeforeTurn { .. } => HookPoint::BeforeTurn,
            Self::TransformContext { .. } => HookPoint::TransformContext,
            Self::ConvertToLlm { .. } => HookPoint::ConvertToLlm,
            Self::BeforeToolExecution { .. } => HookPoint::BeforeToolExecution,
            Self::BeforeToolExecutionUpdate { .. } => HookPoint::BeforeToolExecutionUpdate,
            Self::AfterToolExecutionUpdate { .. } => HookPoint::AfterToolExecutionUpdate,
            Self::TransformToolResult { .. } => HookPoint::TransformToolResult,
            Self::Steering => HookPoint::Steering,
            Self::AfterToolExecution { .. } => HookPoint::AfterToolExecution,
            Self::BeforeCompactionStart { .. } => HookPoint::BeforeCompactionStart,
            Self::AfterCompactionEnd { .. } => HookPoint::AfterCompactionEnd,
            Self::OnEvict { .. } => HookPoint::OnEvict,
            Self::AfterTurn { .. } => HookPoint::AfterTurn,
            Self::CheckAnswer { .. } => HookPoint::CheckAnswer,
            Self::FollowUp => HookPoint::FollowUp,
            Self::OnError { .. } => HookPoint::OnError,
            Self::AfterLoop { .. } => HookPoint::AfterLoop,
            Self::AfterTask { .. } => HookPoint::AfterTask,
        }
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
    pub const ALL: [Self; 20] = [
        Self::BeforeTask,
        Self::BeforeLoop,
        Self::BeforeTurn,
        Self::TransformContext,
        Self::ConvertToLlm,
        Self::BeforeToolExecution,
        Self::BeforeToolExecutionUpdate,
        Self::AfterToolExecutionUpdate,
        Self::TransformToolResult,
        Self::Steering,
        Self::AfterToolExecution,
        Self::BeforeCompactionStart,
        Self::AfterCompactionEnd,
        Self::OnEvict,
        Self::AfterTurn,
        Self::CheckAnswer,
        Self::FollowUp,
        Self::OnError,
        Self::AfterLoop,
        Self::AfterTask,
    ];

    /// Returns `true` if a "no" has an effect at this point.
    #[must_use]
    pub fn decides(self) -> bool {
        matches!(
            self,
            Self::BeforeTask
                | Self::BeforeLoop
                | Self::BeforeTurn
                | Self::BeforeToolExecution
                | Self::BeforeToolExecutionUpdate
                | Self::BeforeCompactionStart
                | Self::CheckAnswer
        )
    }

    /// Returns `true` if the point concerns one tool call.
    #[must_use]
    pub fn is_of_a_tool(self) -> bool {
        matches!(
            self,
            Self::BeforeToolExecution
                | Self::BeforeToolExecutionUpdate
                | Self::AfterToolExecutionUpdate
                | Self::TransformToolResult
                | Self::AfterToolExecution
        )
    }

    /// Returns the name as used in configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeTask => "before_task",
            Self::BeforeLoop => "before_loop",
            Self::BeforeTurn => "before_turn",
            Self::TransformContext => "transform_context",
            Self::ConvertToLlm => "convert_to_llm",
            Self::BeforeToolExecution => "before_tool_execution",
            Self::BeforeToolExecutionUpdate => "before_tool_execution_update",
            Self::AfterToolExecutionUpdate => "after_tool_execution_update",
            Self::TransformToolResult => "transform_tool_result",
            Self::Steering => "steering",
            Self::CheckAnswer => "check_answer",
            Self::AfterToolExecution => "after_tool_execution",
            Self::BeforeCompactionStart => "before_compaction_start",
            Self::AfterCompactionEnd => "after_compaction_end",
            Self::OnEvict => "on_evict",
            Self::AfterTurn => "after_turn",
            Self::FollowUp => "follow_up",
            Self::OnError => "on_error",
            Self::AfterLoop => "after_loop",
            Self::AfterTask => "after_task",
        }
    }
}
