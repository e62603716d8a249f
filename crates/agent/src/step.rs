//! [`Input`] and [`Step`]: the machine's input, with the facts of its moment, and output.
//!
//! The machine has no clock and sees no traffic: the driver in `core` reports both with each input as
//! [`Now`], and performs the steps.

use std::collections::HashMap;
use std::time::Duration;

use plimsoll_context::{CallId, Part, Reply, TokenCounter, Tokens, ToolCall, ToolResult, Usage};
use serde::{Deserialize, Serialize};

use crate::batch::CallKey;
use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::hook_input::{Decision, HookInput};
use crate::outcome::Outcome;
use crate::request::Request;
use crate::spend::Spend;

/// An input of the machine.
#[derive(Debug, Clone)]
pub enum Input {
    /// A message of the user: it starts a run, or steers the current one.
    User(UserMessage),
    /// A message of the user that is delivered when the current run has its answer.
    FollowUp(UserMessage),
    /// Continues the last run without a new message, after a crash or a failure.
    Continue,
    /// The requested model call has ended. Boxed, since a reply is large.
    Reply(Box<Result<Reply, Failure>>),
    /// An attempt of a model call has failed, and the driver is about to make the next one. Its usage
    /// is in [`Now`].
    Retried,
    /// The host has rewritten the requested model call, which has this size by our counter now.
    Rewritten {
        /// The size of the whole request.
        counted: Tokens,
    },
    /// A tool call has ended.
    ToolDone {
        /// The result.
        result: ToolResult,
        /// Usage of the tool itself, for example of a sub-agent.
        spent: Spend,
    },
    /// A question was answered.
    Answer {
        /// The call in question.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// A model call for a summary has ended.
    Summarized(Box<Result<Reply, Failure>>),
    /// The host's decision about [`Step::Before`].
    Decided(Decision),
    /// Time has passed: see [`Run::deadline`](crate::Run::deadline).
    Tick,
    /// Interrupts the run.
    Interrupt,
}

/// The facts of the moment at which an input arrives. They are valid until the next input.
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// The duration of the run so far. During a run, a smaller value than before is ignored.
    pub elapsed: Duration,
    /// The time since the provider was last called, if known. If the provider's prompt cache may have
    /// expired by now, a plan costs nothing beside the input that is paid anyway.
    pub since_call: Option<Duration>,
    /// The attempts of the current model call without a reply, oldest first. They are charged if this
    /// input ends them.
    pub partial_answers: Vec<PartialAnswer>,
    /// The usage so far of running tool calls. It is counted if this input aborts the call.
    pub tool_usage: HashMap<CallId, Spend>,
}

/// An attempt of a model call that was sent and has no whole reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialAnswer {
    /// The usage as last reported by the provider, if any.
    pub usage: Option<Usage>,
    /// The text that has arrived.
    pub text: String,
    /// The thinking, and the names and arguments of tool calls, that have arrived. They are charged but
    /// not kept.
    pub rest: String,
}

/// A message of the user: text, or parts of any kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserMessage {
    /// The content.
    pub parts: Vec<Part>,
    /// The key of the request, chosen by the sender. If there is one, the log has an
    /// [`Entry::Accepted`] before the message.
    pub key: Option<String>,
}

impl PartialAnswer {
    /// Returns `true` if the provider has sent nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the usage to charge for a request of `counted` tokens: the reported one, and our own
    /// count if the provider reported none. Providers report the output late, so what has arrived counts
    /// at least.
    #[must_use]
    pub fn usage(&self, counted: Tokens, counter: &dyn TokenCounter) -> (Usage, Usage) {
        let received = counter.text(&self.text) + counter.text(&self.rest);
        match self.usage {
            Some(usage) => {
                let output = usage.output.max(received);
                (Usage { output, ..usage }, Usage::default())
            }
            None => {
                let estimated = Usage {
                    input: counted,
                    output: received,
                    ..Usage::default()
                };
                (Usage::default(), estimated)
            }
        }
    }
}

impl Now {
    /// Returns the facts at the next input. A clock never runs backwards during a run.
    pub(crate) fn followed_by(&self, next: Self, is_running: bool) -> Self {
        let elapsed = if is_running {
            next.elapsed.max(self.elapsed)
        } else {
            next.elapsed
        };
        Self { elapsed, ..next }
    }
}

impl UserMessage {
    /// Sets the key of the request.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

impl From<Vec<Part>> for UserMessage {
    fn from(parts: Vec<Part>) -> Self {
        Self { parts, key: None }
    }
}

impl From<String> for UserMessage {
    fn from(text: String) -> Self {
        vec![Part::text(text)].into()
    }
}

impl From<&str> for UserMessage {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A step that the driver has to perform, in order.
#[derive(Debug)]
pub enum Step {
    /// Append this entry to the log. It must be durable before the next `Call` or `Execute` starts.
    Record(Entry),
    /// Call the model.
    Call(Box<Request>),
    /// Call the summary model.
    Summarize(Box<Request>),
    /// Ask the host's hook; the answer is [`Input::Decided`].
    Before(HookInput),
    /// Call the host's hook, and continue once it has returned.
    After(HookInput),
    /// Run a tool.
    Execute(ToolCall),
    /// Ask the host's hook, the gate, or both, whether a call may run.
    Ask(Question),
    /// Abort the current model call and tool calls.
    Abort,
    /// Send an event to the observers.
    Notify(Event),
    /// Do nothing until the next input.
    Wait,
    /// The run has ended. Nothing follows until the next `Input::User` or `Input::Continue`.
    Finish(Outcome),
}

/// The question whether a call may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The call, with the corrected tool name and arguments.
    pub call: ToolCall,
    /// `true` if the hook before a tool call is asked.
    pub asks_hook: bool,
    /// `true` if the gate is asked, after the hook.
    pub asks_gate: bool,
    /// The key of the call. It stays the same if the question is repeated after a crash.
    pub key: CallKey,
    /// `true` if the call would change a file that programs run or agents read without asking. Approval
    /// of other calls of the tool does not cover it.
    pub is_protected: bool,
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The call may run.
    Allow,
    /// The call may run with these arguments instead, as far as the rules allow it. If the call still
    /// needs approval, the gate decides about them.
    Rewrite {
        /// The arguments, a JSON object.
        arguments: String,
    },
    /// The call may not run.
    Deny {
        /// The reason, for the model.
        why: String,
    },
    /// The call is skipped, although it is not at fault.
    Skip {
        /// The reason, for the model.
        why: String,
    },
}
