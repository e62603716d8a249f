//! [`Hooks`]: the host's hooks into a run.
//!
//! If a hook panics or times out, the run continues with a warning. The hook before a tool call is
//! the exception: its failure denies the call. The machine decides when hooks are called.

mod command;
mod reply;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::future::BoxFuture;
use plimsoll_agent::{Decision, HookEvent, HookPoint, PendingPlan};
use plimsoll_context::{CallId, Message, Seq, Tokens, Usage};
use serde::Serialize;
use serde_json::Value;

use command::{About, Commands};
pub use command::{CommandHook, MAX_COMMAND_HOOKS, MAX_HOOK_OUTPUT};
pub use reply::{HookReply, Later, MAX_STUCK, Now};
use reply::{HookResult, HookSlot};

use crate::remote::UserMessage;
use crate::session::{AgentOutput, AgentState};

/// Default timeout of a hook.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// How often in a run an answer may be refused by
/// [`check_answer`](crate::AgentBuilder::check_answer). A model that fails this often would fail
/// again.
pub const ANSWER_RETRIES: u32 = 3;

/// The messages passed to a hook. The list is a copy that shares the messages.
pub type Messages = Vec<Arc<Message>>;

/// The messages that one plan has removed from the view or shortened in it.
#[derive(Debug, Clone)]
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

/// A hook. Each call is given its timeout.
pub(crate) type Hook<A, T> =
    Arc<dyn Fn(A, Duration) -> BoxFuture<'static, HookResult<T>> + Send + Sync>;

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
    pub(crate) before_task: Vec<Hook<Arc<AgentState>, bool>>,
    pub(crate) after_task: Vec<Hook<(Arc<AgentState>, AgentOutput), ()>>,
    pub(crate) before_loop: Vec<Hook<(Messages, u64), bool>>,
    pub(crate) after_loop: Vec<Hook<(Messages, Usage), ()>>,
    pub(crate) before_turn: Vec<Hook<(Messages, u64), bool>>,
    pub(crate) after_turn: Vec<Hook<(Messages, Usage), ()>>,
    pub(crate) on_error: Vec<Hook<String, ()>>,
    pub(crate) before_tool: Vec<Hook<(String, CallId, Value), bool>>,
    pub(crate) after_tool: Vec<Hook<(String, CallId, bool), ()>>,
    pub(crate) before_update: Vec<Hook<(String, CallId, String), bool>>,
    pub(crate) after_update: Vec<Hook<(String, CallId, String), ()>>,
    pub(crate) before_compaction: Vec<Hook<(Tokens, usize), bool>>,
    pub(crate) after_compaction: Vec<Hook<(usize, usize, Tokens, Tokens), ()>>,
    pub(crate) on_evict: Vec<Hook<(Arc<AgentState>, Eviction), ()>>,
    pub(crate) steering: Vec<Hook<(), Vec<UserMessage>>>,
    pub(crate) follow_ups: Vec<Hook<(), Vec<UserMessage>>>,
    pub(crate) check_answer: Vec<Hook<String, Result<(), String>>>,
    /// Hooks that rewrite a request, called before those in `convert`.
    pub(crate) transform: Vec<Hook<Messages, Messages>>,
    pub(crate) convert: Vec<Hook<Messages, Messages>>,
    /// Programs, called after the closures.
    pub(crate) commands: Commands,
    /// Timeout of each hook. Default [`HOOK_TIMEOUT`].
    pub(crate) timeout: Option<Duration>,
}

/// The answer of the hooks and one sentence for each failure.
#[derive(Debug)]
pub(crate) struct HookAnswer<T> {
    pub(crate) says: T,
    pub(crate) faults: Vec<String>,
}

/// The part of the session that a hook receives.
#[derive(Clone)]
pub(crate) struct HookInput {
    pub(crate) state: Arc<AgentState>,
    /// The number of the run in its session.
    pub(crate) run: u64,
    /// The view or, after a run, the messages of this run that are in the view.
    pub(crate) messages: Messages,
}

/// Creates a hook from a closure.
pub(crate) fn hook<A, T, F, R, M>(call: F) -> Hook<A, T>
where
    A: Send + 'static,
    F: Fn(A) -> R + Send + Sync + 'static,
    R: HookReply<T, M>,
{
    let call = Arc::new(call);
    let stuck = Arc::new(AtomicUsize::new(0));
    Arc::new(move |args, timeout| {
        let call = Arc::clone(&call);
        let stuck = Arc::clone(&stuck);
        R::begin(Box::new(move || call(args)), HookSlot { timeout, stuck })
    })
}

impl Hooks {
    /// Creates an empty set of hooks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns these hooks, followed by `more`.
    pub(crate) fn followed_by(&self, more: &Self) -> Self {
        fn both<T: Clone>(first: &[T], then: &[T]) -> Vec<T> {
            first.iter().chain(then).cloned().collect()
        }
        Self {
            before_task: both(&self.before_task, &more.before_task),
            after_task: both(&self.after_task, &more.after_task),
            before_loop: both(&self.before_loop, &more.before_loop),
            after_loop: both(&self.after_loop, &more.after_loop),
            before_turn: both(&self.before_turn, &more.before_turn),
            after_turn: both(&self.after_turn, &more.after_turn),
            on_error: both(&self.on_error, &more.on_error),
            before_tool: both(&self.before_tool, &more.before_tool),
            after_tool: both(&self.after_tool, &more.after_tool),
            before_update: both(&self.before_update, &more.before_update),
            after_update: both(&self.after_update, &more.after_update),
            before_compaction: both(&self.before_compaction, &more.before_compaction),
            after_compaction: both(&self.after_compaction, &more.after_compaction),
            on_evict: both(&self.on_evict, &more.on_evict),
            steering: both(&self.steering, &more.steering),
            follow_ups: both(&self.follow_ups, &more.follow_ups),
            check_answer: both(&self.check_answer, &more.check_answer),
            transform: both(&self.transform, &more.transform),
            convert: both(&self.convert, &more.convert),
            commands: Commands {
                hooks: both(&self.commands.hooks, &more.commands.hooks),
                variables: self.commands.variables.clone(),
            },
            timeout: more.timeout.or(self.timeout),
        }
    }

    /// Returns the faults of these hooks.
    pub(crate) fn faults(&self) -> Vec<String> {
        let commands = &self.commands.hooks;
        let mut faults: Vec<String> = commands.iter().filter_map(CommandHook::fault).collect();
        if commands.len() > MAX_COMMAND_HOOKS {
            faults.push(format!(
                "there are {} command hooks; at most {MAX_COMMAND_HOOKS} are called",
                commands.len()
            ));
        }
        if self.timeout().is_zero() {
            faults.push("hook_timeout is 0; give hooks some time".to_owned());
        }
        faults
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(HOOK_TIMEOUT)
    }

    /// Returns the points that have hooks. The machine stops only at these.
    pub(crate) fn points(&self) -> BTreeSet<HookPoint> {
        let there = [
            (HookPoint::BeforeTask, !self.before_task.is_empty()),
            (HookPoint::BeforeLoop, !self.before_loop.is_empty()),
            (HookPoint::BeforeTurn, !self.before_turn.is_empty()),
            (HookPoint::BeforeToolExecution, !self.before_tool.is_empty()),
            (HookPoint::AfterToolExecution, !self.after_tool.is_empty()),
            (HookPoint::AfterTurn, !self.after_turn.is_empty()),
            (
                HookPoint::FollowUp,
                !self.follow_ups.is_empty() || !self.check_answer.is_empty(),
            ),
            (HookPoint::OnError, !self.on_error.is_empty()),
            (HookPoint::AfterLoop, !self.after_loop.is_empty()),
            (HookPoint::AfterTask, !self.after_task.is_empty()),
        ];
        let there = there.into_iter().filter(|(_, is_there)| *is_there);
        let closures = there.map(|(point, _)| point);
        closures.chain(self.commands.points()).collect()
    }

    /// Checks whether any hook is called before or after a plan.
    pub(crate) fn follow_plans(&self) -> bool {
        let closures = !self.before_compaction.is_empty()
            || !self.after_compaction.is_empty()
            || !self.on_evict.is_empty();
        let points = [
            HookPoint::BeforeCompactionStart,
            HookPoint::AfterCompactionEnd,
            HookPoint::OnEvict,
        ];
        closures || self.commands.points().any(|point| points.contains(&point))
    }

    /// Asks whether an operation may happen.
    pub(crate) async fn before(&self, moment: &HookEvent, seen: HookInput) -> HookAnswer<Decision> {
        let point = moment.point();
        let messages = seen.messages.len();
        let about = self.commands.about(point, &seen);
        let about = about.map(|about| match point {
            HookPoint::BeforeTask => about,
            _ => about.with("messages", messages),
        });
        let (answer, about) = match moment {
            HookEvent::BeforeTask => {
                let answer = self.ask(point, &self.before_task, seen.state);
                (answer.await, about)
            }
            HookEvent::BeforeLoop { run } => {
                let args = (seen.messages, *run);
                (self.ask(point, &self.before_loop, args).await, about)
            }
            HookEvent::BeforeTurn { turn } => {
                let about = about.map(|about| about.with("turn", *turn));
                let args = (seen.messages, *turn);
                (self.ask(point, &self.before_turn, args).await, about)
            }
            _ => return HookAnswer::new(Decision::Go),
        };
        let mut answer = self.then(answer, about).await;
        answer.go_on("it went on all the same");
        answer
    }

    /// Notifies the hooks. Returns their failures.
    pub(crate) async fn after(&self, moment: HookEvent, seen: HookInput) -> Vec<String> {
        let point = moment.point();
        let messages = seen.messages.len();
        let about = self.commands.about(point, &seen);
        let (mut faults, about) = match moment {
            HookEvent::AfterToolExecution {
                call,
                name: tool,
                is_error,
            } => {
                let about = about.map(|about| about.of(&tool, &call.0).with("is_error", is_error));
                let args = (tool, call, is_error);
                (self.tell(point, &self.after_tool, args).await, about)
            }
            HookEvent::AfterTurn { turn, usage } => {
                let about = about.map(|about| about.with("messages", messages));
                let about = about.map(|about| about.with("turn", turn).with_all("usage", &usage));
                let args = (seen.messages, usage.unwrap_or_default());
                (self.tell(point, &self.after_turn, args).await, about)
            }
            HookEvent::OnError { message } => {
                let about = about.map(|about| about.with("error", message.as_str()));
                (self.tell(point, &self.on_error, message).await, about)
            }
            HookEvent::AfterLoop { outcome } => {
                let about = about.map(|about| about.with_all("outcome", &outcome));
                let args = (seen.messages, outcome.usage);
                (self.tell(point, &self.after_loop, args).await, about)
            }
            HookEvent::AfterTask { outcome } => {
                let about = about.map(|about| about.with_all("outcome", &outcome));
                let id = seen.state.session_id.clone();
                let args = (seen.state, AgentOutput::new(id, *outcome));
                (self.tell(point, &self.after_task, args).await, about)
            }
            HookEvent::BeforeTask
            | HookEvent::BeforeLoop { .. }
            | HookEvent::BeforeTurn { .. }
            | HookEvent::FollowUp => return Vec::new(),
        };
        faults.extend(self.commands.tell(about, self.timeout()).await);
        faults
    }

    /// Asks whether a tool call may run. The caller denies the call if a hook fails.
    pub(crate) async fn before_tool(
        &self,
        seen: &HookInput,
        name: &str,
        call: &CallId,
        arguments: Value,
    ) -> HookAnswer<Decision> {
        let point = HookPoint::BeforeToolExecution;
        let about = self.commands.about(point, seen);
        let about = about.map(|about| about.of(name, &call.0).with("arguments", arguments.clone()));
        let args = (name.to_owned(), call.clone(), arguments);
        let answer = self.ask(point, &self.before_tool, args).await;
        self.then(answer, about).await
    }

    /// Asks whether a progress update of a tool may be published.
    pub(crate) async fn before_update(
        &self,
        update: (String, CallId, String),
    ) -> HookAnswer<Decision> {
        let name = "before_tool_execution_update";
        let mut answer = ask(name, &self.before_update, update, self.timeout()).await;
        answer.go_on("the update was sent unchanged");
        answer
    }

    /// Notifies the hooks of a published progress update.
    pub(crate) async fn after_update(&self, update: (String, CallId, String)) -> Vec<String> {
        let name = "after_tool_execution_update";
        tell(name, &self.after_update, update, self.timeout()).await
    }

    /// Returns `true` if any hook receives evicted messages.
    pub(crate) fn evicts(&self) -> bool {
        let mut points = self.commands.points();
        !self.on_evict.is_empty() || points.any(|point| point == HookPoint::OnEvict)
    }

    /// Asks whether a plan may be applied.
    pub(crate) async fn before_compaction(
        &self,
        seen: HookInput,
        pending: &PendingPlan,
    ) -> HookAnswer<Decision> {
        let point = HookPoint::BeforeCompactionStart;
        let (tokens, messages) = (pending.tokens, pending.messages);
        let about = self.commands.about(point, &seen);
        let about = about.map(|about| about.with("tokens", tokens.0).with("messages", messages));
        let args = (tokens, messages);
        let answer = self.ask(point, &self.before_compaction, args).await;
        let mut answer = self.then(answer, about).await;
        answer.go_on("the plan is applied all the same");
        answer
    }

    /// Notifies the hooks of an applied plan. `messages` and `tokens` are the new values.
    pub(crate) async fn after_compaction(
        &self,
        pending: &PendingPlan,
        seen: &HookInput,
        messages: usize,
        tokens: Tokens,
    ) -> Vec<String> {
        let point = HookPoint::AfterCompactionEnd;
        let about = self.commands.about(point, seen).map(|about| {
            about
                .with("messages_before", pending.messages)
                .with("messages_after", messages)
                .with("tokens_before", pending.tokens.0)
                .with("tokens_after", tokens.0)
        });
        let args = (pending.messages, messages, pending.tokens, tokens);
        let mut faults = self.tell(point, &self.after_compaction, args).await;
        faults.extend(self.commands.tell(about, self.timeout()).await);
        faults
    }

    /// Notifies the hooks of the messages that a plan has removed or shortened.
    pub(crate) async fn evicted(&self, evicted: Eviction, seen: HookInput) -> Vec<String> {
        let point = HookPoint::OnEvict;
        let about = self.commands.about(point, &seen);
        let about = about.map(|about| about.with_all("evicted", &evicted.items));
        let mut faults = self
            .tell(point, &self.on_evict, (seen.state, evicted))
            .await;
        faults.extend(self.commands.tell(about, self.timeout()).await);
        let kept = |text| format!("{text}; the log has the evicted messages all the same");
        faults.into_iter().map(kept).collect()
    }

    /// Returns the host's messages for the next model call, or for after the answer.
    pub(crate) async fn messages(
        &self,
        what: HostMessageKind,
        seen: HookInput,
    ) -> HookAnswer<Vec<UserMessage>> {
        let (name, hooks) = match what {
            HostMessageKind::Steering => ("get_steering_messages", &self.steering),
            HostMessageKind::FollowUps => ("get_follow_up_messages", &self.follow_ups),
        };
        let mut answer = HookAnswer::new(Vec::new());
        for hook in hooks {
            match hook((), self.timeout()).await {
                Ok(messages) => answer.says.extend(messages),
                Err(fault) => answer.faults.push(format!("{name} {}", fault.what())),
            }
        }
        if what == HostMessageKind::FollowUps {
            let about = self.commands.about(HookPoint::FollowUp, &seen);
            let HookAnswer { says, faults } = self.commands.messages(about, self.timeout()).await;
            answer.says.extend(says);
            answer.faults.extend(faults);
        }
        answer
    }

    /// Returns `true` if answers are checked.
    pub(crate) fn checks_answers(&self) -> bool {
        !self.check_answer.is_empty()
    }

    /// Returns the reason if an answer is refused, and the checks that failed.
    pub(crate) async fn refusal(&self, answer: String) -> HookAnswer<Option<String>> {
        let mut refusal = HookAnswer::new(None);
        for check in &self.check_answer {
            match check(answer.clone(), self.timeout()).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => {
                    refusal.says = Some(why);
                    break;
                }
                Err(fault) => refusal
                    .faults
                    .push(format!("check_answer {}", fault.what())),
            }
        }
        refusal
    }

    /// Returns the hooks that rewrite a request, in order.
    pub(crate) fn rewrites(&self) -> impl Iterator<Item = (&str, &Hook<Messages, Messages>)> {
        let transform = self
            .transform
            .iter()
            .map(|hook| ("transform_context", hook));
        let convert = self.convert.iter().map(|hook| ("convert_to_llm", hook));
        transform.chain(convert)
    }

    /// Checks whether any hook may return messages.
    pub(crate) fn polls(&self, what: HostMessageKind) -> bool {
        match what {
            HostMessageKind::Steering => !self.steering.is_empty(),
            HostMessageKind::FollowUps => true,
        }
    }

    async fn ask<A: Clone>(
        &self,
        point: HookPoint,
        hooks: &[Hook<A, bool>],
        args: A,
    ) -> HookAnswer<Decision> {
        ask(point.name(), hooks, args, self.timeout()).await
    }

    async fn tell<A: Clone>(
        &self,
        point: HookPoint,
        hooks: &[Hook<A, ()>],
        args: A,
    ) -> Vec<String> {
        tell(point.name(), hooks, args, self.timeout()).await
    }

    /// Asks the programs, unless a closure has refused.
    async fn then(
        &self,
        mut answer: HookAnswer<Decision>,
        about: Option<About>,
    ) -> HookAnswer<Decision> {
        if answer.says == Decision::Go {
            let HookAnswer { says, faults } = self.commands.ask(about, self.timeout()).await;
            answer.says = says;
            answer.faults.extend(faults);
        }
        answer
    }
}

/// Calls the hooks until one refuses.
async fn ask<A: Clone>(
    name: &str,
    hooks: &[Hook<A, bool>],
    args: A,
    timeout: Duration,
) -> HookAnswer<Decision> {
    let mut answer = HookAnswer::new(Decision::Go);
    for hook in hooks {
        match hook(args.clone(), timeout).await {
            Ok(true) => {}
            Ok(false) => {
                let why = format!("{name} refused");
                answer.says = Decision::No { why };
                break;
            }
            Err(fault) => answer.faults.push(format!("{name} {}", fault.what())),
        }
    }
    answer
}

/// Calls all hooks. Returns their failures.
async fn tell<A: Clone>(
    name: &str,
    hooks: &[Hook<A, ()>],
    args: A,
    timeout: Duration,
) -> Vec<String> {
    let mut faults = Vec::new();
    for hook in hooks {
        if let Err(fault) = hook(args.clone(), timeout).await {
            faults.push(format!("{name} {}", fault.what()));
        }
    }
    faults
}

/// The kind of messages that the host is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostMessageKind {
    Steering,
    FollowUps,
}

impl<T> HookAnswer<T> {
    fn new(says: T) -> Self {
        Self {
            says,
            faults: Vec::new(),
        }
    }

    /// Adds the consequence to each failure.
    fn go_on(&mut self, so: &str) {
        for fault in &mut self.faults {
            fault.push_str("; ");
            fault.push_str(so);
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
