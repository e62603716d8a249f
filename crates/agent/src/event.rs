//! [`Event`]: what an observer sees while a run goes on. Not the log: events may be lost without
//! harm.

use std::sync::Arc;

use plimsoll_context::{
    Bytes, CacheMiss, CallId, Delta, Money, Part, Plan, StopReason, Tokens, Trigger, Usage,
};
use serde::{Deserialize, Serialize};

use crate::arguments::Coercion;
use crate::branches::BranchRecord;
use crate::doom_loop::Repetition;
use crate::entry::Waiting;
use crate::loop_id::LoopId;
use crate::loop_record::LoopConfigSnapshot;
use crate::outcome::{Outcome, is_nothing};
use crate::spend::Spend;

/// The version of events as JSON. It grows if a field is renamed, removed or means something else, not if a
/// field or an event is added.
pub const EVENT_VERSION: u32 = 1;

/// What an observer sees; as JSON lines this is `plimsoll run --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A run begins.
    AgentStart {
        /// [`EVENT_VERSION`]; 0 if an older program wrote the event.
        #[serde(default)]
        version: u32,
        /// The run's number in its session, from 1.
        run: u64,
        /// The run by its full name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loop_id: Option<LoopId>,
        /// The model, as `provider/name`.
        model: String,
        /// What else it is configured as. Boxed, since it is large.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config_snapshot: Option<Box<LoopConfigSnapshot>>,
    },
    /// A filter or a hook did not let something in that was said.
    InputRejected {
        /// Why.
        why: String,
    },
    /// A message waits, is delivered, or never will be.
    Message {
        /// Its number in the session, from 1.
        id: u64,
        /// For when it waits.
        kind: Waiting,
        /// What becomes of it.
        phase: MessagePhase,
        /// What it says.
        parts: Vec<Part>,
    },
    /// A request is about to be made.
    TurnStart {
        /// The turn's number in its run, from 1.
        turn: u64,
        /// What it answers.
        #[serde(default)]
        cause: TurnTrigger,
        /// The request's weight by our counter.
        tokens: Tokens,
        /// The weight at which a plan is due, likewise; `None` where there is none.
        trigger: Option<Tokens>,
        /// The model's window as the provider counts, where known.
        window: Option<Tokens>,
    },
    /// A piece of the reply, live.
    Delta(Delta),
    /// What a stream had delivered is void: the call is made again.
    Retrying {
        /// The number of the try that comes, from 2.
        attempt: u32,
        /// Milliseconds until then.
        wait_ms: u64,
        /// Why.
        why: String,
    },
    /// The model has answered and its tool calls, if any, have their results.
    TurnEnd {
        /// The turn's number in its run, from 1.
        turn: u64,
        /// Why the model stopped.
        stop: StopReason,
        /// What the call used, where the provider said.
        usage: Option<Usage>,
        /// What the run has used so far.
        total: Usage,
        /// What its calls took besides whose provider did not say it, by our own count.
        #[serde(default, skip_serializing_if = "is_nothing")]
        estimated: Usage,
        /// What it has cost so far, where all of it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Money>,
        /// What the run holds in memory now.
        #[serde(default)]
        memory: Bytes,
    },
    /// A tool that runs says how far it is.
    ToolUpdate {
        /// The call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// What it says.
        text: String,
    },
    /// The model named a tool that there is not, and one that there is was meant.
    ToolCallRepaired {
        /// The call.
        call: CallId,
        /// What the model wrote.
        from: String,
        /// The tool that gets the call.
        to: String,
    },
    /// Arguments of a tool call were put right by the tool's schema. The model's own stay in the view.
    ArgumentsCoerced {
        /// The call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// What was changed.
        changes: Vec<Coercion>,
    },
    /// The model goes round in circles.
    LoopDetected {
        /// In what it repeats itself.
        kind: Repetition,
        /// What follows.
        consequence: LoopConsequence,
    },
    /// A tool call goes through its phases.
    ToolCall {
        /// The phase.
        phase: ToolPhase,
        /// The call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// Its arguments where it starts, its result (shortened) where it ends.
        text: String,
        /// How long they are, whole.
        #[serde(default)]
        size: Bytes,
        /// All of them, for observers of the same process. Not in JSON; empty if read from it.
        #[serde(skip)]
        whole: Arc<str>,
    },
    /// Results that the model has not read yet were shortened. Nothing that was sent is rewritten.
    ResultsShortened {
        /// How many results.
        results: usize,
        /// The request's weight before.
        tokens_before: Tokens,
        /// The request's weight after.
        tokens_after: Tokens,
    },
    /// A tool call has its result: the call as [`RunStep`] keeps it.
    Step(RunStep),
    /// A plan that removes messages or rewrites some that were sent is about to be applied.
    CompactionStarted {
        /// Why.
        why: Trigger,
        /// The stages that had a part in it.
        stages: Vec<String>,
        /// The request's weight.
        tokens: Tokens,
        /// How many messages the view has.
        messages: usize,
    },
    /// A plan was applied.
    CompactionEnded {
        /// The plan.
        plan: Plan,
        /// How many messages the view had.
        messages_before: usize,
        /// How many it has.
        messages_after: usize,
        /// The request's weight before it.
        tokens_before: Tokens,
        /// The request's weight after it.
        tokens_after: Tokens,
    },
    /// A model is asked for a summary.
    SummaryStarted {
        /// The model, as `provider/name`.
        model: String,
        /// How many messages it is to stand for.
        messages: usize,
        /// What they weigh.
        tokens: Tokens,
    },
    /// A model has written a summary, or failed to.
    SummaryEnded {
        /// Model calls.
        calls: u64,
        /// What they used.
        usage: Usage,
        /// Why the model wrote no summary, if it did not: then `extract` writes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// A call read clearly less from the provider's prompt cache than the call before it should have
    /// left there.
    CacheMissed(CacheMiss),
    /// The provider refused a request as too long, or cut it: what a stream had delivered is void.
    Overflow {
        /// The rung of the ladder that answers it, from 1.
        rung: u32,
        /// The window, where it is known now.
        window: Option<Tokens>,
        /// The provider's text.
        message: String,
    },
    /// A limit is near; the model was told.
    LimitNear {
        /// What it was told.
        notice: String,
    },
    /// A limit was reached; the model is asked to finish.
    LimitReached {
        /// What the model is told.
        notice: String,
    },
    /// Something happens in an agent that a tool call has started.
    SubAgent {
        /// The call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// The agent's own session, to look into.
        session: String,
        /// What happens.
        #[serde(rename = "inner")]
        event: Box<Event>,
    },
    /// Several agents begin to run the same prompt.
    ParallelStarted {
        /// By what one will be chosen.
        strategy: String,
        /// The sessions that they run in, in their order; a name that is taken gets a number behind it.
        branches: Vec<String>,
    },
    /// One of them has ended.
    BranchEnded {
        /// Which, from 0.
        branch: usize,
        /// How.
        record: BranchRecord,
    },
    /// One was chosen, or none.
    ParallelEnded {
        /// Which, from 0; `None` where none answered, or where the answer is made of several.
        winner: Option<usize>,
        /// What all of it has used, the choice included.
        spent: Spend,
    },
    /// Something that a person should know.
    Warning {
        /// One sentence.
        text: String,
    },
    /// The run ended.
    AgentEnd {
        /// How.
        outcome: Outcome,
        /// The most that the run held in memory at once.
        #[serde(default)]
        peak_memory: Bytes,
    },
}

/// Returns the JSON Schema (draft 2020-12) of an event, as [`EVENT_VERSION`] has it.
#[cfg(feature = "schema")]
#[must_use]
pub fn event_schema() -> serde_json::Value {
    // The first paragraph; links of the documentation lead nowhere there.
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
    let mut schema = settings.into_generator().into_root_schema_for::<Event>();
    let title = format!("An event of Plimsoll, version {EVENT_VERSION}");
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

/// One tool call of a run and what it returned, as the host keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStep {
    /// The call.
    pub call: CallId,
    /// The tool, as the model named it.
    pub name: String,
    /// The arguments, cut like the result.
    pub arguments: String,
    /// The texts of the result. One longer than `max_step_result_size` ends with `[truncated]`; a JSON
    /// list or object stays one: whole items leave its middle, and a marker counts them.
    pub result: String,
    /// Whether the call failed or did not run.
    pub is_error: bool,
}

/// What a turn answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnTrigger {
    /// What a person said.
    #[default]
    User,
    /// What another agent asked for.
    SubAgent,
    /// A run that goes on.
    Continue,
    /// Results of tools.
    ToolResults,
    /// A message during the run.
    Steer,
    /// A message after the answer.
    FollowUp,
    /// Something that the run itself said to the model.
    Notice,
}

/// What becomes of a message that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessagePhase {
    /// It waits.
    Queued,
    /// The model will read it in the next request.
    Delivered,
    /// The run has ended without it.
    Undelivered,
}

/// What follows where a model goes round in circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoopConsequence {
    /// It is told.
    Told,
    /// Its newest tool calls do not run.
    Refused,
    /// The run ends.
    Stopped,
}

/// The phase of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolPhase {
    /// It runs.
    Start,
    /// It has a result.
    Success,
    /// It failed.
    Error,
    /// It did not run.
    Skipped,
}
