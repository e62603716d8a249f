//! [`Input`]: what the machine is told; [`Step`]: what it wants done. Not the doing; the driver
//! in `core` is a match over steps.

use plimsoll_context::{CallId, Item, Part, Plan, Reply, Tokens, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

use crate::call_key::CallKey;
use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::moment::{Decision, Moment};
use crate::outcome::Outcome;
use crate::request::Request;
use crate::spend::Spend;

/// What the machine is told.
#[derive(Debug, Clone)]
pub enum Input {
    /// A person says something: a run begins, or a message steers the one that is under way.
    User(Vec<Part>),
    /// A person says something for when the run that is under way has its answer.
    FollowUp(Vec<Part>),
    /// The last run goes on without a new message, after a crash or a failure.
    Continue,
    /// The model call that was asked for has ended. Boxed, since a reply is large.
    Reply(Box<Result<Reply, Failure>>),
    /// A try of a model call has failed, and the driver is about to make the next one: what it has used
    /// was told by [`Run::set_unanswered`](crate::Run::set_unanswered).
    Retried,
    /// A tool call has ended.
    ToolDone {
        /// Its result.
        result: ToolResult,
        /// What the tool wants pinned; said behind the results of its batch.
        pins: Vec<String>,
        /// What the tool used, as a sub-agent does.
        spent: Spend,
    },
    /// A question has its answer.
    Answer {
        /// The call that was asked about.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// A model call for a summary has ended.
    Summarized(Box<Result<Reply, Failure>>),
    /// What the provider says a request weighs; the answer to [`Step::Measure`]. `None` where it does
    /// not say.
    Measured(Option<Tokens>),
    /// Whether a plan may be applied; the answer to [`Step::Leave`].
    Left(Verdict),
    /// What the host says to [`Step::Before`].
    Decided(Decision),
    /// Time has passed: see [`Run::deadline`](crate::Run::deadline).
    Tick,
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
    /// Call the model that writes summaries; other steps may follow before it ends.
    Summarize(Box<Request>),
    /// Ask the provider what this request would weigh, without sending it; the next plan waits for
    /// the answer, [`Input::Measured`].
    Measure(Box<Request>),
    /// Keep what is about to leave the view, and say whether it may.
    Leave(Box<Leaving>),
    /// Tell the host what has left.
    Gone(Box<Leaving>),
    /// Ask the host's hook; the answer is [`Input::Decided`].
    Before(Moment),
    /// Tell the host's hook, and go on once it has come back.
    After(Moment),
    /// Run a tool.
    Execute(ToolCall),
    /// Ask the host's hook, a person, or both, whether a call may run.
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

/// What is about to leave the view, or to be made smaller in it.
#[derive(Debug, Clone)]
pub struct Leaving {
    /// The plan.
    pub plan: Plan,
    /// The items that it touches, as they stand, in view order.
    pub items: Vec<LeavingItem>,
    /// The request's weight by our counter before the plan is applied.
    pub tokens: Tokens,
    /// How many messages the view has before.
    pub messages: usize,
}

/// One item that a plan touches.
#[derive(Debug, Clone)]
pub struct LeavingItem {
    /// The item.
    pub item: Item,
    /// The tool's name, for a result.
    pub tool: Option<String>,
    /// Whether it leaves; otherwise it only becomes smaller.
    pub leaves: bool,
}

/// Whether a plan may be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may; where it can be recalled, its items are in the archive now.
    Go,
    /// The archive could not take its items: the run goes on, and offers no recall.
    NotKept {
        /// Why.
        why: String,
    },
    /// The host does not want it.
    Veto {
        /// Why.
        why: String,
    },
}

/// May this call run?
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The call.
    pub call: ToolCall,
    /// Who decides.
    pub whom: Whom,
    /// Which call it is, also if it is asked about again after a crash.
    pub key: CallKey,
    /// Whether it would change a file that programs run or agents obey unasked. Consent to other calls
    /// of the tool does not cover it.
    pub is_protected: bool,
}

/// Who decides whether a call may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Whom {
    /// The gate.
    #[default]
    Gate,
    /// The hook before a tool call.
    Hook,
    /// The hook, and then the gate.
    Both,
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
    /// It is left out, through no fault of its own.
    Skip {
        /// Why, for the model to read.
        why: String,
    },
}
