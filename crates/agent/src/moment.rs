//! [`Moment`]: a place in a run where a host may have a hook: to decide, or to be told. Not the hooks;
//! those are in `core`.

use plimsoll_context::{CallId, Usage};
use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// A place in a run where a host may have a hook, in the order in which a run comes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// Before the first run of a session; no refuses the task.
    BeforeTask,
    /// Before a run; no refuses it.
    BeforeLoop,
    /// Before a turn; no ends the run.
    BeforeTurn,
    /// Before a tool call runs, and before anybody is asked whether it may; no skips it.
    BeforeToolExecution,
    /// After a tool call that ran.
    AfterToolExecution,
    /// Before a plan is applied; no leaves the view as it is.
    BeforeCompactionStart,
    /// After a plan was applied.
    AfterCompactionEnd,
    /// After a plan has taken something out of the view.
    OnEvict,
    /// After a turn: the model call and the tool calls that it asked for.
    AfterTurn,
    /// The model has answered and nothing waits: is there more to do?
    FollowUp,
    /// After a model call that failed.
    OnError,
    /// After a run.
    AfterLoop,
    /// After a run, once its log is durable.
    AfterTask,
}

/// One of those places, with what is known there.
#[derive(Debug, Clone, PartialEq)]
pub enum Moment {
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
        /// The tool.
        name: String,
        /// Whether it failed.
        is_error: bool,
    },
    /// See [`HookPoint::AfterTurn`].
    AfterTurn {
        /// The turn's number in its run, from 1.
        turn: u64,
        /// What its model call used, where the provider said.
        usage: Option<Usage>,
    },
    /// See [`HookPoint::FollowUp`].
    FollowUp,
    /// See [`HookPoint::OnError`].
    OnError {
        /// What went wrong.
        message: String,
    },
    /// See [`HookPoint::AfterLoop`].
    AfterLoop {
        /// How the run ended. Boxed, since it is large.
        outcome: Box<Outcome>,
    },
    /// See [`HookPoint::AfterTask`].
    AfterTask {
        /// How the run ended. Boxed, since it is large.
        outcome: Box<Outcome>,
    },
}

/// What a host says at a moment before something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may happen.
    Go,
    /// It may not.
    No {
        /// Why.
        why: String,
    },
}

impl Moment {
    /// Which place it is.
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
    /// Whether a no makes a difference there.
    #[must_use]
    pub fn decides(self) -> bool {
        match self {
            Self::BeforeTask
            | Self::BeforeLoop
            | Self::BeforeTurn
            | Self::BeforeToolExecution
            | Self::BeforeCompactionStart => true,
            Self::AfterToolExecution
            | Self::AfterCompactionEnd
            | Self::OnEvict
            | Self::AfterTurn
            | Self::FollowUp
            | Self::OnError
            | Self::AfterLoop
            | Self::AfterTask => false,
        }
    }

    /// Whether it is about one tool call.
    #[must_use]
    pub fn is_of_a_tool(self) -> bool {
        matches!(self, Self::BeforeToolExecution | Self::AfterToolExecution)
    }

    /// Its name, as a configuration writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeTask => "before_task",
            Self::BeforeLoop => "before_loop",
            Self::BeforeTurn => "before_turn",
            Self::BeforeToolExecution => "before_tool_execution",
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
