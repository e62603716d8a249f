//! [`Hook`]: the host's part in a run. The machine decides when hooks are called.
//!
//! Closures ([`Hooks`]) and programs ([`CommandHook`]) give the same answers as a [`Hook`]. If one of
//! them panics or times out, the run continues with a warning. A hook that guards a tool call or its
//! result is the exception: its failure denies the call or withholds the result.

mod command;
mod reply;
mod request_check;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use plimsoll_agent::{Decision, HookInput, HookPoint, Messages, UserMessage, refusal};
use plimsoll_context::SettingFault;
use serde_json::Value;
use tokio::sync::Semaphore;

pub use command::{CommandHook, MAX_HOOK_OUTPUT};
pub(crate) use reply::HookOutput;
pub(crate) use reply::HookSlot;
pub use reply::{HookReply, Later, MAX_HOOK_CALLS, Now};
pub(crate) use request_check::check_pairs;

use crate::agent_state::AgentState;
use crate::process::InheritedVariables;

/// Default timeout of a hook.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// How often in a run an answer may be refused by
/// [`check_answer`](crate::AgentBuilder::check_answer). A model that fails this often would fail
/// again.
pub const ANSWER_RETRIES: u32 = 3;

/// A hook of the host, as a type with state. Every method has a default that changes nothing.
///
/// A return type is everything that a hook can do at that place. All methods run as tasks within
/// the hook timeout and must not block.
///
/// ```
/// # use plimsoll_core::{Agent, testing::ScriptedProvider};
/// use async_trait::async_trait;
/// use plimsoll_core::{Hook, HookContext, ToolDecision};
/// use serde_json::Value;
///
/// /// Gives a command of `bash` ten seconds.
/// struct Impatient;
///
/// #[async_trait]
/// impl Hook for Impatient {
///     async fn tool_call(&self, _: &HookContext, tool: &str, mut arguments: Value) -> ToolDecision {
///         let Some(command) = arguments["command"].as_str().filter(|_| tool == "bash") else {
///             return ToolDecision::Allow;
///         };
///         arguments["command"] = format!("timeout 10 {command}").into();
///         ToolDecision::Rewrite { arguments }
///     }
/// }
/// # let model = ScriptedProvider::new([]);
/// let agent = Agent::builder(model).hook(Impatient).build()?;
/// # Ok::<(), plimsoll_core::Error>(())
/// ```
#[async_trait]
pub trait Hook: Send + Sync + 'static {
    /// Returns the points at which the hook is called. Default: all but [`HookPoint::OnEvict`], for
    /// which the log may be read.
    fn points(&self) -> Vec<HookPoint> {
        let points = HookPoint::ALL.iter().copied();
        points
            .filter(|point| *point != HookPoint::OnEvict)
            .collect()
    }

    /// Decides whether a task, a run, a turn, a compaction or a progress update may happen, or an
    /// answer is accepted. Default: yes.
    async fn decide(&self, _cx: &HookContext, _input: &HookInput) -> Decision {
        Decision::Go
    }

    /// Decides whether a tool call may run, and with which arguments. The permission rules apply to
    /// rewritten arguments as well. Default: as the model wrote it.
    async fn tool_call(&self, _cx: &HookContext, _tool: &str, _arguments: Value) -> ToolDecision {
        ToolDecision::Allow
    }

    /// Returns another text for the result of a tool, before the result is recorded. Images of the
    /// result stay. Default: `None`, the text stays.
    async fn tool_result(&self, _cx: &HookContext, _tool: &str, _text: &str) -> Option<String> {
        None
    }

    /// Returns other messages for the next request. The view and the log do not change. Default:
    /// `None`, the messages stay.
    async fn request(&self, _cx: &HookContext, _messages: &Messages) -> Option<Messages> {
        None
    }

    /// Returns messages to the model: at [`HookPoint::Steering`] before its next call, at
    /// [`HookPoint::FollowUp`] after its answer. Default: none.
    async fn messages(&self, _cx: &HookContext, _point: HookPoint) -> Vec<UserMessage> {
        Vec::new()
    }

    /// Is notified of everything that has happened. Default: nothing.
    async fn observe(&self, _cx: &HookContext, _input: &HookInput) {}
}

/// A hook's decision about a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolDecision {
    /// The call runs as the model wrote it, unless another hook, a rule or a person refuses it.
    Allow,
    /// The call is skipped.
    Deny {
        /// The reason, which the model reads.
        why: String,
    },
    /// The call runs with these arguments instead.
    Rewrite {
        /// The arguments, a JSON object.
        arguments: Value,
    },
}

/// The session that a hook is called for.
#[derive(Debug, Clone)]
pub struct HookContext {
    /// The session's name and the host's own data.
    pub state: Arc<AgentState>,
    /// The number of the run in its session, from 1.
    pub run: u64,
}

/// The answers of all hooks of a point.
#[derive(Debug)]
pub(crate) struct HookOutcome {
    /// The input as the hooks have rewritten it.
    pub(crate) input: HookInput,
    /// `true` if a hook has rewritten it.
    pub(crate) is_rewritten: bool,
    /// The reason, if a hook refused.
    pub(crate) denied: Option<String>,
    /// The messages to the model.
    pub(crate) messages: Vec<UserMessage>,
    /// One sentence for each failure.
    pub(crate) faults: Vec<String>,
}

/// Calls a hook. An error completes a sentence that starts with the hook's name.
type HookCall = dyn for<'a> Fn(
        HookInput,
        &'a HookContext,
        Duration,
        &'a InheritedVariables,
    ) -> BoxFuture<'a, Result<HookOutput, String>>
    + Send
    + Sync;

/// A closure, a program, or a [`Hook`] at one of its points.
#[derive(Clone)]
struct RegisteredHook {
    point: HookPoint,
    /// The name in warnings.
    name: String,
    call: Arc<HookCall>,
}

/// Hooks, for [`AgentLoopConfig::hooks`](crate::AgentLoopConfig::hooks). Those at the same point are
/// called in the order in which they were added.
///
/// The methods are those of [`AgentBuilder`](crate::AgentBuilder), which sets hooks for all runs of
/// an agent.
///
/// ```
/// use plimsoll_core::{AgentLoopConfig, Hooks};
///
/// let hooks = Hooks::new().before_tool_execution(|tool, _, _| tool != "bash");
/// let config = AgentLoopConfig { hooks: Some(hooks), ..AgentLoopConfig::default() };
/// ```
#[derive(Clone, Default)]
pub struct Hooks {
    hooks: Vec<RegisteredHook>,
    /// The faults of each program's settings.
    program_faults: Vec<Option<SettingFault>>,
    /// Timeout of each hook. Default [`HOOK_TIMEOUT`].
    pub(crate) timeout: Option<Duration>,
}

impl Hooks {
    /// Creates an empty set of hooks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook at all of its points.
    pub(crate) fn add(&mut self, hook: Arc<dyn Hook>) {
        for point in hook.points() {
            let hook = Arc::clone(&hook);
            let take = |input: HookInput, cx: &HookContext| Some((input, cx.clone()));
            let call = move |(input, cx)| dispatch(Arc::clone(&hook), cx, input);
            self.add_closure(point, point.name(), take, call, |output| output);
        }
    }

    /// Adds a closure: `take` returns its arguments, and `answer` converts its return value.
    pub(crate) fn add_closure<A, T, F, R, M>(
        &mut self,
        point: HookPoint,
        name: &'static str,
        take: fn(HookInput, &HookContext) -> Option<A>,
        call: F,
        answer: fn(T) -> HookOutput,
    ) where
        A: Send + 'static,
        T: 'static,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: HookReply<T, M>,
    {
        let call = Arc::new(call);
        let threads = Arc::new(Semaphore::new(MAX_HOOK_CALLS));
        let call: Arc<HookCall> = Arc::new(move |input, cx, timeout, _| {
            let Some(args) = take(input, cx) else {
                return ready(Ok(HookOutput::Nothing)).boxed();
            };
            let call = Arc::clone(&call);
            let slot = HookSlot {
                timeout,
                threads: Arc::clone(&threads),
            };
            let reply = R::begin(Box::new(move || call(args)), slot);
            reply.map(move |reply| reply.map(answer)).boxed()
        });
        let name = name.to_owned();
        self.hooks.push(RegisteredHook { point, name, call });
    }

    /// Adds a program.
    pub(crate) fn add_command(&mut self, hook: CommandHook) {
        let point = hook.on;
        let program = hook.command.first().map_or("", String::as_str);
        let name = format!("{}: `{program}`", point.name());
        self.program_faults.push(hook.fault());
        let hook = Arc::new(hook);
        let call: Arc<HookCall> = Arc::new(move |input, cx, timeout, variables| {
            let hook = Arc::clone(&hook);
            async move { hook.answer(&input, cx, timeout, variables).await }.boxed()
        });
        self.hooks.push(RegisteredHook { point, name, call });
    }

    /// Returns these hooks, followed by `more`.
    pub(crate) fn followed_by(&self, more: &Self) -> Self {
        let mut all = self.clone();
        all.hooks.extend(more.hooks.iter().cloned());
        all.program_faults
            .extend(more.program_faults.iter().cloned());
        all.timeout = more.timeout.or(self.timeout);
        all
    }

    /// Returns the faults of these hooks.
    pub(crate) fn faults(&self) -> Vec<SettingFault> {
        let faults = self.program_faults.iter().enumerate();
        let faults = faults.filter_map(|(at, fault)| Some(fault.clone()?.item(at)));
        let mut faults: Vec<SettingFault> = faults.collect();
        if self.timeout().is_zero() {
            let text = "hook_timeout is 0; give hooks some time";
            faults.push(SettingFault::new(&["hook_timeout"], text));
        }
        faults
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(HOOK_TIMEOUT)
    }

    /// Returns the points that have hooks. The machine stops only at these.
    pub(crate) fn points(&self) -> BTreeSet<HookPoint> {
        let mut points: BTreeSet<_> = self.hooks.iter().map(|hook| hook.point).collect();
        // Answers are checked where the host may say that there is more to do.
        if points.contains(&HookPoint::CheckAnswer) {
            points.insert(HookPoint::FollowUp);
        }
        points
    }

    /// Calls the hooks of a point in order until one refuses. Each receives the input as the ones
    /// before it have rewritten it. A program has these variables.
    pub(crate) async fn call(
        &self,
        cx: &HookContext,
        input: HookInput,
        variables: &InheritedVariables,
    ) -> HookOutcome {
        let point = input.point();
        let mut outcome = HookOutcome {
            input,
            is_rewritten: false,
            denied: None,
            messages: Vec::new(),
            faults: Vec::new(),
        };
        // The failure of a guard is told with its consequence.
        use HookPoint::{BeforeToolExecution, CheckAnswer, TransformToolResult};
        let effect = match point {
            BeforeToolExecution | TransformToolResult | CheckAnswer => "",
            _ => "; the run goes on without it",
        };
        for hook in self.hooks.iter().filter(|hook| hook.point == point) {
            let answer = (hook.call)(outcome.input.clone(), cx, self.timeout(), variables).await;
            if let Err(fault) = answer.and_then(|output| outcome.apply(output)) {
                let name = &hook.name;
                outcome.faults.push(format!("{name} {fault}{effect}"));
            }
            if outcome.denied.is_some() {
                break;
            }
        }
        outcome
    }

    /// Checks whether any hook is called at this point.
    pub(crate) fn has(&self, point: HookPoint) -> bool {
        self.hooks.iter().any(|hook| hook.point == point)
    }
}

/// Calls the method of a hook that is for this point.
async fn dispatch(hook: Arc<dyn Hook>, cx: HookContext, input: HookInput) -> HookOutput {
    match &input {
        HookInput::BeforeToolExecution {
            tool, arguments, ..
        } => match hook.tool_call(&cx, tool, arguments.clone()).await {
            ToolDecision::Allow => HookOutput::Nothing,
            ToolDecision::Deny { why } => HookOutput::Deny(why),
            ToolDecision::Rewrite { arguments } => HookOutput::Arguments(arguments),
        },
        HookInput::TransformToolResult { tool, result, .. } => {
            let text = hook.tool_result(&cx, tool, result).await;
            text.map_or(HookOutput::Nothing, HookOutput::Result)
        }
        HookInput::TransformContext { messages } => {
            let rewritten = hook.request(&cx, messages).await;
            rewritten.map_or(HookOutput::Nothing, HookOutput::Request)
        }
        HookInput::Steering | HookInput::FollowUp => {
            HookOutput::Send(hook.messages(&cx, input.point()).await)
        }
        _ if input.point().decides() => match hook.decide(&cx, &input).await {
            Decision::Go => HookOutput::Nothing,
            Decision::No { why } => HookOutput::Deny(why),
        },
        _ => {
            hook.observe(&cx, &input).await;
            HookOutput::Nothing
        }
    }
}

impl HookOutcome {
    /// Takes the answer of one hook.
    fn apply(&mut self, output: HookOutput) -> Result<(), String> {
        let point = self.input.point();
        match (output, &mut self.input) {
            (HookOutput::Nothing, _) => return Ok(()),
            (HookOutput::Deny(why), _) if point.decides() => {
                let is_check = point == HookPoint::CheckAnswer;
                let why_not = || refusal(point.name(), &why);
                self.denied = Some(if is_check { why } else { why_not() });
                return Ok(());
            }
            (HookOutput::Send(messages), HookInput::Steering | HookInput::FollowUp) => {
                self.messages.extend(messages);
                return Ok(());
            }
            (HookOutput::Arguments(new), HookInput::BeforeToolExecution { arguments, .. }) => {
                if !new.is_object() {
                    return Err("gave arguments that are no JSON object".to_owned());
                }
                *arguments = new;
            }
            (HookOutput::Result(new), HookInput::TransformToolResult { result, .. }) => {
                *result = new;
            }
            (HookOutput::Request(new), HookInput::TransformContext { messages }) => {
                request_check::check(&new)?;
                *messages = new;
            }
            _ => return Err("gave an answer that has no effect here".to_owned()),
        }
        self.is_rewritten = true;
        Ok(())
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
