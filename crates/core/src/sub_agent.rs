//! [`SubAgentTool`]: an agent as a tool of another one.
//!
//! The sub-agent works in its own session and context, within reserved limits, and returns one
//! text of limited size. The caller stays in control.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{
    CountTokens, Entry, Event, ExecutionLimits, Permissions, SessionEvent, TurnTrigger,
};
use plimsoll_context::{Bytes, TokenCounter, Tokens, ToolSpec, clip, shorten};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::agent::Agent;
use crate::error::Error;
use crate::output::AgentOutput;
use crate::parts::Parts;
use crate::remote::Remote;
use crate::reservation::Reservation;
use crate::store::new_session_id;
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput, parse_arguments, schema_of};

/// Maximum depth of nested sub-agents. Agents that call each other stop here.
pub const MAX_DEPTH: u32 = 4;
/// Default maximum size of a sub-agent's result.
pub const MAX_SUB_AGENT_RESULT: Tokens = Tokens(2_000);
/// Default timeout of a sub-agent.
pub const SUB_AGENT_TIMEOUT: Duration = Duration::from_secs(600);
/// Tokens that a sub-agent needs in addition to its first request. With less, it is not started.
pub const LEAST_FOR_SUB_AGENT: Tokens = Tokens(1_000);
/// How long after its own time limit a sub-agent is cut off. Normally it has ended by then.
const GRACE: Duration = Duration::from_secs(30);

/// An agent as a tool. The model gives it a task and gets its answer or, if a limit ended it, the
/// result so far and the reason.
///
/// If the agent has no gate, it uses the caller's. Its part is reserved from the calling run's
/// remaining amounts, minus the caller's own next call, and the unused rest is returned. Its last
/// answer may exceed its part: for that, an extra quarter of its tokens and money is set
/// aside, and the caller pays for a single request that needs more. Its session is
/// `{session}.{tool}.{place}` in the caller's store. When the caller continues after a crash, so does the sub-agent.
///
/// ```
/// use plimsoll_agent::ExecutionLimits;
/// use plimsoll_context::Tokens;
/// use plimsoll_core::Agent;
/// use plimsoll_core::testing::{ScriptedProvider, Turn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedProvider::new([Turn::say("Three harbours have fuel.")]);
/// let scout = Agent::builder(model).system("You look things up.").build()?;
/// let scout = scout
///     .as_tool("scout", "Looks something up and reports.")
///     .limits(ExecutionLimits::turns(10))
///     .max_result(Tokens(500));
///
/// let model = ScriptedProvider::new([
///     Turn::call("scout", serde_json::json!({"task": "Which harbours have fuel?"})),
///     Turn::say("There are three."),
/// ]);
/// let captain = Agent::builder(model).tool(scout).build()?;
/// assert_eq!(captain.run("Where can we refuel?").await?.text, "There are three.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SubAgentTool {
    spec: ToolSpec,
    agent: Arc<AgentSource>,
    limits: ExecutionLimits,
    max_result: Tokens,
    timeout: Duration,
    asks: bool,
}

/// Returns the agent when it is called, or `None` if there is none yet.
type AgentSource = dyn Fn() -> Option<Agent> + Send + Sync;

/// What a sub-agent is told.
#[derive(Deserialize, JsonSchema)]
struct TaskInput {
    /// The task, complete: nothing else that was said here is known to who does it
    task: String,
}

impl Agent {
    /// Returns this agent as a tool for another one.
    #[must_use]
    pub fn as_tool(&self, name: impl Into<String>, description: impl Into<String>) -> SubAgentTool {
        let agent = self.clone();
        sub_agent(name, description, move || Some(agent.clone()))
    }

    /// Reserves a part for a run: one of `parts` equal parts of each kind that the agent's limits do not
    /// limit. `max_turns` includes the turns of agents below it.
    ///
    /// # Errors
    /// The reason why the agent cannot run within the shared limits.
    pub(crate) fn reserve(
        &self,
        from: &Reservation,
        max_turns: Option<u64>,
        parts: u64,
    ) -> Result<Reservation, String> {
        let limits = &self.setup.limits;
        let counts_all = limits.count_tokens() == CountTokens::Processed;
        let requested = ExecutionLimits {
            max_turns,
            max_total_tokens: limits.max_total_tokens.filter(|_| counts_all),
            ..**limits
        };
        let part = from.reserve_part(&requested, parts);
        let part = part.map_err(|nothing| format!("{nothing} for it"))?;
        let own = self.setup.sheet.is_none().then_some(&*self.setup.model);
        let summarizer = || self.parts.unpriced_summarizer(&self.setup);
        match own.or_else(summarizer) {
            Some(model) if part.limits().max_cost.is_some() => Err(format!(
                "its cost is limited, and the prices of `{model}` are unknown; give its agent \
                 prices, or summarizer_prices if it only writes summaries"
            )),
            _ => Ok(part),
        }
    }

    /// Returns this agent as part of a larger task: within a reservation, and with the caller's store.
    /// Without a gate of its own, it uses the caller's. If the caller is read-only, it is too.
    pub(crate) fn within(
        &self,
        part: &Reservation,
        caller: Option<(&Parts, &Permissions)>,
    ) -> Self {
        let mut agent = self.clone();
        agent.setup.limits = Arc::new(self.setup.limits.within(&part.limits()));
        if let Some((caller, permissions)) = caller {
            agent.setup.permissions = Arc::new(self.setup.permissions.below(permissions));
            let parts = Arc::make_mut(&mut agent.parts);
            parts.store = Arc::clone(&caller.store);
            if parts.gate.is_none() {
                parts.gate.clone_from(&caller.gate);
                parts.settings.gate_timeout = caller.settings.gate_timeout;
            }
        }
        agent
    }
}

/// Creates a tool from an agent that is looked up at each call. This way agents can call each other
/// and themselves, up to a depth of [`MAX_DEPTH`].
///
/// ```
/// use std::sync::{Arc, OnceLock};
/// use plimsoll_core::testing::ScriptedProvider;
/// use plimsoll_core::{Agent, sub_agent};
///
/// let itself: Arc<OnceLock<Agent>> = Arc::default();
/// let found = Arc::clone(&itself);
/// let again = sub_agent("divide", "Does a part of the task.", move || found.get().cloned());
/// let agent = Agent::builder(ScriptedProvider::new([])).tool(again).build()?;
/// let _ = itself.set(agent);
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
pub fn sub_agent(
    name: impl Into<String>,
    description: impl Into<String>,
    agent: impl Fn() -> Option<Agent> + Send + Sync + 'static,
) -> SubAgentTool {
    SubAgentTool {
        spec: ToolSpec {
            name: name.into(),
            description: description.into(),
            schema: schema_of::<TaskInput>(),
        },
        agent: Arc::new(agent),
        limits: ExecutionLimits::default(),
        max_result: MAX_SUB_AGENT_RESULT,
        timeout: SUB_AGENT_TIMEOUT,
        asks: false,
    }
}

impl SubAgentTool {
    /// Sets the limits of one call, which are reserved from the calling run. Default: the agent's
    /// own limits; kinds that they do not limit are shared equally among the calls that run
    /// concurrently.
    #[must_use]
    pub fn limits(mut self, limits: ExecutionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the maximum size of the result. Longer results are shortened in the middle. Default
    /// [`MAX_SUB_AGENT_RESULT`].
    #[must_use]
    pub fn max_result(mut self, tokens: Tokens) -> Self {
        self.max_result = tokens;
        self
    }

    /// Sets the timeout of one call. Shortly before it, the agent is asked for its results so far.
    /// Default [`SUB_AGENT_TIMEOUT`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Requires approval by the gate before each call.
    #[must_use]
    pub fn asks(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Returns the combined limits of the tool, the agent and the timeout.
    fn limits_of(&self, agent: &Agent) -> ExecutionLimits {
        let timeout = ExecutionLimits {
            max_duration: Some(self.timeout),
            ..ExecutionLimits::default()
        };
        timeout.within(&self.limits).within(&agent.setup.limits)
    }

    /// Reserves what a call may use.
    fn reserve(
        &self,
        agent: &Agent,
        task: &str,
        cx: &ToolContext,
    ) -> Result<Reservation, ToolError> {
        let name = &self.spec.name;
        let beside = cx.caller.as_ref().map_or(1, |caller| caller.beside);
        let parts = beside
            .saturating_sub(cx.reservation.at_work() as u64)
            .max(1);
        let refused = |why: String| {
            ToolError(format!(
                "`{name}` was not started: {why}; do without it, and say what is left undone"
            ))
        };
        // Nested agents share the remaining turns.
        let part = agent
            .reserve(&cx.reservation, None, parts)
            .map_err(refused)?;
        let least = agent.overhead() + agent.setup.counter.text(task) + LEAST_FOR_SUB_AGENT;
        let tokens = part.limits().max_total_tokens;
        if tokens.is_some_and(|tokens| tokens < least) {
            return Err(refused("too few tokens are left for it".to_owned()));
        }
        Ok(part.deeper())
    }
}

#[async_trait]
impl Tool for SubAgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// A repeated call after a crash continues the session of the first one.
    fn idempotent(&self) -> bool {
        true
    }

    fn asks(&self) -> bool {
        self.asks
    }

    fn timeout(&self) -> Duration {
        self.timeout.saturating_add(GRACE)
    }

    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let name = &self.spec.name;
        let TaskInput { task } = parse_arguments(&self.spec, arguments)?;
        if task.trim().is_empty() {
            return Err(ToolError(format!(
                "the task for `{name}` is empty; say what it is to do"
            )));
        }
        if cx.reservation.depth() >= MAX_DEPTH {
            return Err(ToolError(format!(
                "`{name}` was not started: agents are {MAX_DEPTH} deep here already; do it yourself"
            )));
        }
        let missing = || ToolError(format!("there is no agent for `{name}` here"));
        let mut agent = (self.agent)().ok_or_else(missing)?;
        agent.setup.limits = Arc::new(self.limits_of(&agent));
        let part = self.reserve(&agent, &task, &cx)?;
        let (counter, model) = (Arc::clone(&agent.setup.counter), agent.setup.model.clone());
        let stop = CancellationToken::new();
        let work = work(agent, part, name.clone(), task, cx, stop.clone());
        // In its own task, it closes its log even if this call is dropped.
        let _stop_on_drop = stop.drop_guard();
        let output = match tokio::spawn(work.in_current_span()).await {
            Ok(output) => output.map_err(|error| {
                ToolError(format!("`{name}` could not work: {error}; do without it"))
            })?,
            Err(error) => return Err(ToolError(format!("`{name}` broke down: {error}"))),
        };
        let text = bounded(output.outcome.text.clone(), self.max_result, &*counter);
        let session = &output.session_id;
        match &output.reason {
            reason if reason.is_answer() => Ok(text.into()),
            reason if reason.is_limit() => Ok(format!(
                "{text}\n\n[`{name}` has not finished: it was stopped by its limit ({}). This is what it had by then.]",
                reason.word()
            )
            .into()),
            reason => Err(ToolError(format!(
                "`{name}` ({model}) has not done it ({}): {text}\n[Its session is {session}.]",
                reason.word()
            ))),
        }
    }
}

/// Shortens a text to at most `most` tokens: to its head and tail or, if even these are too long,
/// to its beginning. A token has at least one byte.
pub(crate) fn bounded(text: String, most: Tokens, counter: &dyn TokenCounter) -> String {
    match shorten(&text, most, counter) {
        Some(short) => short,
        None if counter.text(&text) <= most => text,
        None => clip(&text, Bytes(most.0)).to_owned(),
    }
}

/// Runs the task, or continues it after a crash.
async fn work(
    agent: Agent,
    part: Reservation,
    name: String,
    task: String,
    cx: ToolContext,
    stop: CancellationToken,
) -> Result<AgentOutput, Error> {
    let caller = cx.caller.as_ref();
    let id = caller.map(|caller| caller.session_of(&name));
    let id = id.unwrap_or_else(new_session_id);
    let mut agent = agent.within(
        &part,
        caller.map(|caller| (&*caller.parts, &*cx.permissions)),
    );
    let parts = Arc::make_mut(&mut agent.parts);
    if let Some(caller) = caller {
        // Until the call ends, its events are also the caller's.
        let (to, over) = (Arc::clone(&caller.parts), stop.clone());
        let (call, name) = (cx.call.clone(), name.clone());
        parts.observers.push(Arc::new(move |seen: &SessionEvent| {
            if !over.is_cancelled() {
                to.tell(Event::SubAgent {
                    call: call.clone(),
                    name: name.clone(),
                    event: Box::new(seen.clone()),
                });
            }
        }));
        parts.files_of = Some(caller.files_of.clone());
    }
    parts.called = Some(name.into());
    agent.setup.first_turn_trigger = TurnTrigger::SubAgent;
    let mut session = agent.session(id.clone()).await?;
    session.below(&part);
    let before = session.entries.saturating_sub(1);
    let last = session.parts.store.read(&id, before, 1).await?.pop();
    // If the run of an earlier attempt has ended, only its result was lost.
    if let Some(Entry::RunEnded { outcome }) = last.map(|line| line.entry) {
        let output = AgentOutput::new(id, outcome);
        part.spend(&output.spend());
        return Ok(output);
    }
    let remote = session.remote();
    let run = async {
        // An earlier attempt of this call may have been interrupted by a crash.
        if session.view().transcript().items().is_empty() {
            session.run(&task).await
        } else {
            session.carry_on().await
        }
    };
    until_stopped(&remote, run, &stop).await
}

/// Follows a run until it ends. On a stop, the run is interrupted and closes its log. A run whose
/// model could not be called returns an output, like any other.
pub(crate) async fn until_stopped(
    remote: &Remote,
    run: impl Future<Output = Result<AgentOutput, Error>>,
    stop: &CancellationToken,
) -> Result<AgentOutput, Error> {
    let mut run = std::pin::pin!(run);
    let output = tokio::select! {
        biased;
        output = &mut run => output,
        () = stop.cancelled() => {
            remote.interrupt().await;
            run.await
        }
    };
    output.or_else(Error::into_output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::Chars4;

    #[test]
    fn a_text_is_bounded_however_little_may_be_said() {
        for text in [
            "",
            "short",
            &"long and longer ".repeat(500),
            &"汉字🦀".repeat(300),
        ] {
            for most in [0, 1, 2, 5, 20, 64, 1_000, 100_000] {
                let short = bounded(text.to_owned(), Tokens(most), &Chars4);
                assert!(Chars4.text(&short) <= Tokens(most), "{most}: {short}");
            }
        }
    }
}
