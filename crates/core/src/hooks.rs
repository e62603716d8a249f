//! [`Hooks`]: where a host is asked or told while a run goes on. A hook that panics or does not come
//! back is a fault of that hook: the run goes on and says so, but for the one before a tool call, which
//! denies it. Not when they are called; the machine says that.

mod command;
mod reply;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::future::BoxFuture;
use plimsoll_agent::{Decision, HookPoint, Leaving, Moment};
use plimsoll_context::{CallId, Message, Seq, Tokens, Usage};
use serde::Serialize;
use serde_json::Value;

use command::{About, Commands};
pub use command::{CommandHook, MAX_COMMAND_HOOKS, MAX_HOOK_OUTPUT};
pub(crate) use reply::said_by;
use reply::{Had, Lane};
pub use reply::{HookReply, Later, MAX_STUCK, Now};

use crate::remote::Said;
use crate::session::{AgentOutput, AgentState};

/// A hook that has not come back after this is given up.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a run is told that its answer was refused by
/// [`check_answer`](crate::AgentBuilder::check_answer), at most: a model that fails so often fails again.
pub const ANSWER_RETRIES: u32 = 3;

/// Messages as a hook sees them; it is a copy of the list and not of what is said.
pub type Messages = Vec<Arc<Message>>;

/// The messages that one plan has removed from the view or shortened in it.
#[derive(Debug, Clone)]
pub struct Evicted {
    /// The messages, in view order. Summaries and markers of earlier plans are not among them.
    pub items: Vec<EvictedMessage>,
}

/// A message that a plan has removed or shortened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvictedMessage {
    /// Its number in the session: 12 for `m12`.
    pub seq: Seq,
    /// `true` if it was removed, `false` if it was shortened.
    pub removed: bool,
    /// The name of the tool, if it is a tool result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The whole original, even if an earlier plan had shortened it.
    pub message: Arc<Message>,
}

/// A hook, and how long it may take is told with each call.
pub(crate) type Hook<A, T> = Arc<dyn Fn(A, Duration) -> BoxFuture<'static, Had<T>> + Send + Sync>;

/// All hooks of an agent. Several at one place are called in the order in which they were given.
#[derive(Clone)]
pub(crate) struct Hooks {
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
    pub(crate) on_evict: Vec<Hook<(Arc<AgentState>, Evicted), ()>>,
    pub(crate) steering: Vec<Hook<(), Vec<Said>>>,
    pub(crate) follow_ups: Vec<Hook<(), Vec<Said>>>,
    pub(crate) check_answer: Vec<Hook<String, Result<(), String>>>,
    /// What rewrites a request on its way, in two steps.
    pub(crate) transform: Vec<Hook<Messages, Messages>>,
    pub(crate) convert: Vec<Hook<Messages, Messages>>,
    /// Programs, which are called behind the closures.
    pub(crate) commands: Commands,
    /// How long each may take.
    pub(crate) timeout: Duration,
}

/// What hooks came to, and what is wrong with them, one sentence each.
#[derive(Debug)]
pub(crate) struct Asked<T> {
    pub(crate) says: T,
    pub(crate) faults: Vec<String>,
}

/// What a hook is shown of the session.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) state: Arc<AgentState>,
    /// The run's number in its session.
    pub(crate) run: u64,
    /// The view or, after a run, what of it was said in the run.
    pub(crate) messages: Messages,
}

/// A hook made of a closure.
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
        R::begin(Box::new(move || call(args)), Lane { timeout, stuck })
    })
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            before_task: Vec::new(),
            after_task: Vec::new(),
            before_loop: Vec::new(),
            after_loop: Vec::new(),
            before_turn: Vec::new(),
            after_turn: Vec::new(),
            on_error: Vec::new(),
            before_tool: Vec::new(),
            after_tool: Vec::new(),
            before_update: Vec::new(),
            after_update: Vec::new(),
            before_compaction: Vec::new(),
            after_compaction: Vec::new(),
            on_evict: Vec::new(),
            steering: Vec::new(),
            follow_ups: Vec::new(),
            check_answer: Vec::new(),
            transform: Vec::new(),
            convert: Vec::new(),
            commands: Commands::default(),
            timeout: HOOK_TIMEOUT,
        }
    }
}

impl Hooks {
    /// Where there are any: only there the machine is to ask or to tell.
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

    /// Whether any is to know of what leaves the view.
    pub(crate) fn leave(&self) -> bool {
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

    /// Whether something may happen.
    pub(crate) async fn before(&self, moment: &Moment, seen: Seen) -> Asked<Decision> {
        let point = moment.point();
        let messages = seen.messages.len();
        let about = self.commands.about(point, &seen);
        let about = about.map(|about| match point {
            HookPoint::BeforeTask => about,
            _ => about.with("messages", messages),
        });
        let (asked, about) = match moment {
            Moment::BeforeTask => {
                let asked = self.ask(point, &self.before_task, seen.state);
                (asked.await, about)
            }
            Moment::BeforeLoop { run } => {
                let args = (seen.messages, *run);
                (self.ask(point, &self.before_loop, args).await, about)
            }
            Moment::BeforeTurn { turn } => {
                let about = about.map(|about| about.with("turn", *turn));
                let args = (seen.messages, *turn);
                (self.ask(point, &self.before_turn, args).await, about)
            }
            _ => return Asked::new(Decision::Go),
        };
        let mut asked = self.then(asked, about).await;
        asked.go_on("it went on all the same");
        asked
    }

    /// Tells what has happened; gives what is wrong with the hooks.
    pub(crate) async fn after(&self, moment: Moment, seen: Seen) -> Vec<String> {
        let point = moment.point();
        let messages = seen.messages.len();
        let about = self.commands.about(point, &seen);
        let (mut faults, about) = match moment {
            Moment::AfterToolExecution {
                call,
                name: tool,
                is_error,
            } => {
                let about = about.map(|about| about.of(&tool, &call.0).with("is_error", is_error));
                let args = (tool, call, is_error);
                (self.tell(point, &self.after_tool, args).await, about)
            }
            Moment::AfterTurn { turn, usage } => {
                let about = about.map(|about| about.with("messages", messages));
                let about = about.map(|about| about.with("turn", turn).with_all("usage", &usage));
                let args = (seen.messages, usage.unwrap_or_default());
                (self.tell(point, &self.after_turn, args).await, about)
            }
            Moment::OnError { message } => {
                let about = about.map(|about| about.with("error", message.as_str()));
                (self.tell(point, &self.on_error, message).await, about)
            }
            Moment::AfterLoop { outcome } => {
                let about = about.map(|about| about.with_all("outcome", &outcome));
                let args = (seen.messages, outcome.usage);
                (self.tell(point, &self.after_loop, args).await, about)
            }
            Moment::AfterTask { outcome } => {
                let about = about.map(|about| about.with_all("outcome", &outcome));
                let id = seen.state.session_id.clone();
                let args = (seen.state, AgentOutput::new(id, *outcome));
                (self.tell(point, &self.after_task, args).await, about)
            }
            Moment::BeforeTask
            | Moment::BeforeLoop { .. }
            | Moment::BeforeTurn { .. }
            | Moment::FollowUp => return Vec::new(),
        };
        faults.extend(self.commands.tell(about, self.timeout).await);
        faults
    }

    /// Whether a tool call may run. One that is broken lets nothing run.
    pub(crate) async fn before_tool(
        &self,
        seen: &Seen,
        name: &str,
        call: &CallId,
        arguments: Value,
    ) -> Asked<Decision> {
        let point = HookPoint::BeforeToolExecution;
        let about = self.commands.about(point, seen);
        let about = about.map(|about| about.of(name, &call.0).with("arguments", arguments.clone()));
        let args = (name.to_owned(), call.clone(), arguments);
        let asked = self.ask(point, &self.before_tool, args).await;
        self.then(asked, about).await
    }

    /// Whether what a tool says of its progress is told.
    pub(crate) async fn before_update(&self, update: (String, CallId, String)) -> Asked<Decision> {
        let name = "before_tool_execution_update";
        let mut asked = ask(name, &self.before_update, update, self.timeout).await;
        asked.go_on("the update was told all the same");
        asked
    }

    /// Tells that what a tool said was told.
    pub(crate) async fn after_update(&self, update: (String, CallId, String)) -> Vec<String> {
        let name = "after_tool_execution_update";
        tell(name, &self.after_update, update, self.timeout).await
    }

    /// Returns `true` if a hook is told of evicted messages.
    pub(crate) fn evicts(&self) -> bool {
        let mut points = self.commands.points();
        !self.on_evict.is_empty() || points.any(|point| point == HookPoint::OnEvict)
    }

    /// Whether a plan may be applied.
    pub(crate) async fn before_compaction(&self, seen: Seen, leaving: &Leaving) -> Asked<Decision> {
        let point = HookPoint::BeforeCompactionStart;
        let (tokens, messages) = (leaving.tokens, leaving.messages);
        let about = self.commands.about(point, &seen);
        let about = about.map(|about| about.with("tokens", tokens.0).with("messages", messages));
        let args = (tokens, messages);
        let asked = self.ask(point, &self.before_compaction, args).await;
        let mut asked = self.then(asked, about).await;
        asked.go_on("the plan is applied all the same");
        asked
    }

    /// Tells that a plan was applied: `messages` and `tokens` are what is there now.
    pub(crate) async fn after_compaction(
        &self,
        leaving: &Leaving,
        seen: &Seen,
        messages: usize,
        tokens: Tokens,
    ) -> Vec<String> {
        let point = HookPoint::AfterCompactionEnd;
        let about = self.commands.about(point, seen).map(|about| {
            about
                .with("messages_before", leaving.messages)
                .with("messages_after", messages)
                .with("tokens_before", leaving.tokens.0)
                .with("tokens_after", tokens.0)
        });
        let args = (leaving.messages, messages, leaving.tokens, tokens);
        let mut faults = self.tell(point, &self.after_compaction, args).await;
        faults.extend(self.commands.tell(about, self.timeout).await);
        faults
    }

    /// Tells which messages a plan has removed or shortened.
    pub(crate) async fn on_evict(&self, evicted: Evicted, seen: Seen) -> Vec<String> {
        let point = HookPoint::OnEvict;
        let about = self.commands.about(point, &seen);
        let about = about.map(|about| about.with_all("evicted", &evicted.items));
        let mut faults = self
            .tell(point, &self.on_evict, (seen.state, evicted))
            .await;
        faults.extend(self.commands.tell(about, self.timeout).await);
        let kept = |text| format!("{text}; the log has the evicted messages all the same");
        faults.into_iter().map(kept).collect()
    }

    /// What the host wants said: before the next model call, or once there is an answer.
    pub(crate) async fn messages(&self, what: Polled, seen: Seen) -> Asked<Vec<Said>> {
        let (name, hooks) = match what {
            Polled::Steering => ("get_steering_messages", &self.steering),
            Polled::FollowUps => ("get_follow_up_messages", &self.follow_ups),
        };
        let mut asked = Asked::new(Vec::new());
        for hook in hooks {
            match hook((), self.timeout).await {
                Ok(said) => asked.says.extend(said),
                Err(fault) => asked.faults.push(format!("{name} {}", fault.what())),
            }
        }
        if what == Polled::FollowUps {
            let about = self.commands.about(HookPoint::FollowUp, &seen);
            let Asked { says, faults } = self.commands.messages(about, self.timeout).await;
            asked.says.extend(says);
            asked.faults.extend(faults);
        }
        asked
    }

    /// Returns `true` if answers are checked.
    pub(crate) fn checks_answers(&self) -> bool {
        !self.check_answer.is_empty()
    }

    /// Returns why an answer is refused; `None` if it is not. A check that breaks refuses nothing.
    pub(crate) async fn refusal(&self, answer: String) -> Asked<Option<String>> {
        let mut asked = Asked::new(None);
        for check in &self.check_answer {
            match check(answer.clone(), self.timeout).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => {
                    asked.says = Some(why);
                    break;
                }
                Err(fault) => asked.faults.push(format!("check_answer {}", fault.what())),
            }
        }
        asked
    }

    /// What rewrites a request, in its order.
    pub(crate) fn rewrites(&self) -> impl Iterator<Item = (&str, &Hook<Messages, Messages>)> {
        let transform = self
            .transform
            .iter()
            .map(|hook| ("transform_context", hook));
        let convert = self.convert.iter().map(|hook| ("convert_to_llm", hook));
        transform.chain(convert)
    }

    /// Whether there is anybody to be asked for messages.
    pub(crate) fn polls(&self, what: Polled) -> bool {
        match what {
            Polled::Steering => !self.steering.is_empty(),
            Polled::FollowUps => true,
        }
    }

    async fn ask<A: Clone>(
        &self,
        point: HookPoint,
        hooks: &[Hook<A, bool>],
        args: A,
    ) -> Asked<Decision> {
        ask(point.name(), hooks, args, self.timeout).await
    }

    async fn tell<A: Clone>(
        &self,
        point: HookPoint,
        hooks: &[Hook<A, ()>],
        args: A,
    ) -> Vec<String> {
        tell(point.name(), hooks, args, self.timeout).await
    }

    /// Asks the programs where no closure has said no.
    async fn then(&self, mut asked: Asked<Decision>, about: Option<About>) -> Asked<Decision> {
        if asked.says == Decision::Go {
            let Asked { says, faults } = self.commands.ask(about, self.timeout).await;
            asked.says = says;
            asked.faults.extend(faults);
        }
        asked
    }
}

/// Asks until one says no.
async fn ask<A: Clone>(
    name: &str,
    hooks: &[Hook<A, bool>],
    args: A,
    timeout: Duration,
) -> Asked<Decision> {
    let mut asked = Asked::new(Decision::Go);
    for hook in hooks {
        match hook(args.clone(), timeout).await {
            Ok(true) => {}
            Ok(false) => {
                let why = format!("{name} said no");
                asked.says = Decision::No { why };
                break;
            }
            Err(fault) => asked.faults.push(format!("{name} {}", fault.what())),
        }
    }
    asked
}

/// Tells all; gives what is wrong with them.
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

/// What a host is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polled {
    Steering,
    FollowUps,
}

impl<T> Asked<T> {
    fn new(says: T) -> Self {
        Self {
            says,
            faults: Vec::new(),
        }
    }

    /// What is done in spite of the faults.
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
