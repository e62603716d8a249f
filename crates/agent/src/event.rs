//! [`Event`]: a report about a run for observers, and [`AppliedPlan`], its announcement of a plan.
//!
//! Events are not part of the log; losing some does no harm.

use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Delta, Money, Part, Plan, StopReason, Tokens, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::doom_loop::{LoopConsequence, Repetition};
use crate::entry::{BranchRecord, Waiting};
use crate::outcome::Outcome;
use crate::setup::{RunConfigSnapshot, TurnTrigger};
use crate::spend::{Spend, is_default};

/// The version of the JSON form of events. It is incremented when a field is renamed, removed or gets
/// another meaning, not when a field or an event is added.
pub const EVENT_VERSION: u32 = 2;

/// An event with the session and the run that it belongs to. `plimsoll run --json` prints one per line.
///
/// ```
/// use plimsoll_agent::{Event, SessionEvent};
///
/// let text = "look out".to_owned();
/// let event = SessionEvent { session: "voyage".into(), run: 2, event: Event::Warning { text } };
/// let line = serde_json::to_string(&event)?;
/// assert_eq!(line, r#"{"session":"voyage","run":2,"event":"warning","text":"look out"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEvent {
    /// The id of the session.
    pub session: Arc<str>,
    /// The number of the session's newest run, from 1. 0 before its first run.
    pub run: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// An event of a run. Observers receive it as part of a [`SessionEvent`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A run begins.
    AgentStart {
        /// See [`EVENT_VERSION`].
        version: u32,
        /// The full identifier of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
        /// The model, as `provider/name`.
        model: String,
        /// The rest of the configuration. Boxed, since it is large.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config_snapshot: Option<Box<RunConfigSnapshot>>,
    },
    /// A filter or a hook rejected the user's input.
    InputRejected {
        /// The reason.
        why: String,
    },
    /// A message was queued, delivered or dropped.
    Message {
        /// The message's number in the session, from 1.
        id: u64,
        /// When it is to be delivered.
        kind: Waiting,
        /// The state of the message.
        phase: MessagePhase,
        /// The content of the message.
        parts: Vec<Part>,
    },
    /// A request is about to be made.
    TurnStart {
        /// The turn's number in its run, from 1.
        turn: u64,
        /// The reason for the turn.
        cause: TurnTrigger,
        /// The request's size by our counter.
        tokens: Tokens,
        /// The size at which a plan is due, by our counter; `None` if there is no trigger.
        trigger: Option<Tokens>,
        /// The model's window as the provider counts, if known.
        window: Option<Tokens>,
    },
    /// A streamed piece of the reply.
    Delta(Delta),
    /// The model call is repeated. All deltas of the failed attempt are void.
    Retrying {
        /// The number of the next attempt, from 2.
        attempt: u32,
        /// Milliseconds until the next attempt.
        wait_ms: u64,
        /// The reason.
        why: String,
    },
    /// The model has answered, and all its tool calls have results.
    TurnEnd {
        /// The turn's number in its run, from 1.
        turn: u64,
        /// Why the model stopped.
        stop: StopReason,
        /// The usage of the call, if the provider reported it.
        usage: Option<Usage>,
        /// The usage of the run so far.
        total: Usage,
        /// Estimated usage of the calls for which the provider reported none. Not part of `total`.
        #[serde(default, skip_serializing_if = "is_default")]
        estimated: Usage,
        /// The cost of the run so far, if all of it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Money>,
        /// The memory that the run holds now.
        memory: Bytes,
    },
    /// A running tool reports progress.
    ToolUpdate {
        /// The call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// The progress report.
        text: String,
    },
    /// The model called an unknown tool, and the name was corrected.
    ToolCallRepaired {
        /// The call.
        call: CallId,
        /// The name that the model wrote.
        from: String,
        /// The name of the tool that receives the call.
        to: String,
    },
    /// The model is repeating itself.
    LoopDetected {
        /// The kind of repetition.
        kind: Repetition,
        /// The reaction of the run.
        consequence: LoopConsequence,
    },
    /// A tool call entered a new phase.
    ToolCall {
        /// The phase.
        phase: ToolPhase,
        /// The call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// The arguments when the call starts, the result when it ends; shortened.
        text: String,
        /// The full size of the arguments or the result.
        size: Bytes,
        /// The full text, for observers in the same process. Not part of the JSON; empty if read from
        /// it.
        #[serde(skip)]
        whole: Arc<str>,
    },
    /// A tool call has a result.
    Step(RunStep),
    /// A plan was applied: the view is smaller now.
    PlanApplied(AppliedPlan),
    /// A model is asked for a summary.
    SummaryStarted {
        /// The model, as `provider/name`.
        model: String,
        /// Number of messages that the summary replaces.
        messages: usize,
        /// The size of these messages.
        tokens: Tokens,
    },
    /// A model wrote a summary, or failed to write one.
    SummaryEnded {
        /// Number of model calls.
        calls: u64,
        /// The usage of these calls.
        usage: Usage,
        /// The reason why the model wrote no summary, if it failed. `extract` writes it then, and further
        /// ones of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// A call read too little from the provider's prompt cache: less than four fifths of the tokens that the
    /// call before it read and wrote. Tokens that a plan has rewritten since are not expected.
    CacheMissed {
        /// Tokens that the call before it read from the cache and wrote there.
        expected: Tokens,
        /// Tokens that the call read from the cache.
        read: Tokens,
    },
    /// The provider refused a request as too long, or cut it. All deltas of the call are void.
    Overflow {
        /// The step of the recovery ladder that follows, from 1.
        rung: u32,
        /// The window, if known by now.
        window: Option<Tokens>,
        /// The provider's text.
        message: String,
    },
    /// The model was warned that a limit is near.
    LimitNear {
        /// The text of the warning.
        notice: String,
    },
    /// A limit was reached, and the model is asked to finish.
    LimitReached {
        /// The text that the model receives.
        notice: String,
    },
    /// An event of an agent that a tool call started.
    SubAgent {
        /// The call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// The event, with the session and the run of that agent.
        #[serde(rename = "inner")]
        event: Box<SessionEvent>,
    },
    /// Several agents start to run the same prompt.
    ParallelStarted {
        /// The strategy that will choose the winner.
        strategy: String,
        /// The sessions of the agents, in order. A name that already exists gets a number appended.
        branches: Vec<String>,
    },
    /// One of the parallel agents has ended.
    BranchEnded {
        /// The index of the branch, from 0.
        branch: usize,
        /// The result of the branch.
        record: BranchRecord,
    },
    /// All parallel agents have ended, and the choice was made.
    ParallelEnded {
        /// The index of the chosen branch, from 0; `None` if no branch answered, or if the answer
        /// combines several.
        winner: Option<usize>,
        /// The usage of all branches, including the choice.
        spent: Spend,
    },
    /// A warning for the user.
    Warning {
        /// One sentence.
        text: String,
    },
    /// The run ended.
    AgentEnd {
        /// The outcome.
        outcome: Outcome,
        /// The most memory that the run held at once.
        peak_memory: Bytes,
    },
}

/// Returns the JSON Schema (draft 2020-12) of a [`SessionEvent`] of version [`EVENT_VERSION`].
#[must_use]
pub fn event_schema() -> serde_json::Value {
    // Descriptions keep the first paragraph; links between doc comments do not work in JSON.
    let plain = |schema: &mut schemars::Schema| {
        if let Some(serde_json::Value::String(text)) = schema.get_mut("description") {
            let first = text.split("\n\n").next().unwrap_or_default();
            *text = first
                .replace('\n', " ")
                .replace("[`", "`")
                .replace("`]", "`");
        }
    };
    let settings = schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(schemars::transform::RecursiveTransform(plain));
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<SessionEvent>();
    let title = format!("An event of Plimsoll, version {EVENT_VERSION}");
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

/// One tool call of a run with its result, in the form that the host stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStep {
    /// The call.
    pub call: CallId,
    /// The name of the tool as the model wrote it.
    pub name: String,
    /// The arguments, shortened like the result.
    pub arguments: String,
    /// The text of the result. A text longer than `max_step_result_size` ends with `[truncated]`. A
    /// JSON list or object stays valid: whole items are removed from its middle, and a marker states
    /// their number.
    pub result: String,
    /// `true` if the call failed or did not run.
    pub is_error: bool,
}

/// The state of a queued message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessagePhase {
    /// The message is waiting.
    Queued,
    /// The message is part of the next request.
    Delivered,
    /// The run ended before the message was delivered.
    Undelivered,
}

/// The phase of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolPhase {
    /// The tool was started.
    Start,
    /// The tool returned a result.
    Success,
    /// The tool failed.
    Error,
    /// The tool was not run.
    Skipped,
}

/// A plan that was applied to the view, and the sizes before and after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
