//! [`HookEvent`]: a point in a run at which the host may have a hook, which either decides or is informed.
//!
//! The hooks themselves are in `core`.

use plimsoll_context::{CallId, Usage};
use serde::{Deserialize, Serialize};

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

/// A hook point with its data.
#[derive(Debug, Clone, PartialEq)]
pub enum HookEvent {
    /// See [`HookPoint::BeforeTask`].
    BeforeTask,
    /// See [`HookPoint::BeforeLoop`].
    BeforeLoop {
        /// The run's number in its session, from 1.
        run: u64,
    },
    /// See [`HookPoint::BeforeTurn`].
    BeforeTurn {
        /// The turn's number in its run, from 1.
        turn: u64,
    },
    /// See [`HookPoint::AfterToolExecution`].
    AfterToolExecution {
        /// The call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// `true` if the call failed.
        is_error: bool,
    },
    /// See [`HookPoint::AfterTurn`].
    AfterTurn {
        /// The turn's number in its run, from 1.
        turn: u64,
        /// The usage of its model call, if the provider reported it.
        usage: Option<Usage>,
    },
    /// See [`HookPoint::FollowUp`].
    FollowUp,
    /// See [`HookPoint::OnError`].
    OnError {
        /// The error message.
        message: String,
    },
    /// See [`HookPoint::AfterLoop`].
    AfterLoop {
        /// The outcome of the run. Boxed, since it is large.
        outcome: Box<Outcome>,
    },
    /// See [`HookPoint::AfterTask`].
    AfterTask {
        /// The outcome of the run. Boxed, since it is large.
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

impl HookEvent {
    /// Returns the hook point.
    #[must_use]
    pub fn point(&self) -> HookPoint {
        match self {
            Self::BeforeTask => HookPoint::BeforeTask,
            Self::BeforeLoop { .. } => HookPoint::BeforeLoop,
            Self::BeforeTurn { .. } => HookPoint::BeforeTurn,
            Self::AfterToolExecution { .. } => HookPoint::AfterToolExecution,
            Self::AfterTurn { .. } => HookPoint::AfterTurn,
            Self::FollowUp => HookPoint::FollowUp,
            Self::OnError { .. } => HookPoint::OnError,
            Self::AfterLoop { .. } => HookPoint::AfterLoop,
            Self::AfterTask { .. } => HookPoint::AfterTask,
        }
    }
}

impl HookPoint {
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
