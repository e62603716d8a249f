//! [`Input`]: what the machine is told; [`Step`]: what it wants done. Not the doing; the driver
//! in `core` is a match over steps.

use plimsoll_context::{CallId, Part, Reply, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::Request;

/// What the machine is told.
#[derive(Debug, Clone)]
pub enum Input {
    /// A person says something: a run begins, or a message steers the one that is under way.
    User(Vec<Part>),
    /// The last run goes on without a new message, after a crash or a failure.
    Continue,
    /// The model call that was asked for has ended. Boxed, since a reply is large.
    Reply(Box<Result<Reply, Failure>>),
    /// A tool call has ended.
    ToolDone(ToolResult),
    /// A question has its answer.
    Answer {
        /// The call that was asked about.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// The run must end now.
    Interrupt,
}

/// What the machine wants done, in order.
#[derive(Debug)]
pub enum Step {
    /// Append this to the log; it must be durable before the next `Call` or `Execute` is begun.
    Record(Entry),
    /// Call the model.
    Call(Box<Request>),
    /// Run a tool.
    Execute(ToolCall),
    /// Ask a person.
    Ask(Question),
    /// Drop the model call and the tool calls that are under way.
    Abort,
    /// Tell the observers.
    Notify(Event),
    /// Nothing until the next input.
    Wait,
    /// The run has ended; nothing follows until the next `Input::User` or `Input::Continue`.
    Finish(Outcome),
}

/// May this call run?
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The call.
    pub call: ToolCall,
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It may.
    Allow,
    /// It may not.
    Deny {
        /// Why, for the model to read.
        why: String,
    },
}
