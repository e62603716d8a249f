//! [`Hooks`]: where a host is asked or told while a run goes on. A hook that panics or does not come
//! back is a fault of that hook: the run goes on and says so, but for the one before a tool call, which
//! denies it. Not when they are called; the machine says that.

mod reply;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::future::BoxFuture;
use plimsoll_agent::{Decision, HookPoint, Leaving, Moment};
use plimsoll_context::{CallId, Item, Message, Tokens, Usage};
use serde_json::Value;

pub(crate) use reply::said_by;
use reply::{Had, Lane};
pub use reply::{HookReply, Later, MAX_STUCK, Now};

use crate::remote::Said;
use crate::session::{AgentOutput, AgentState};

/// A hook that has not come back after this is given up.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// Messages as a hook sees them; it is a copy of the list and not of what is said.
pub type Messages = Vec<Arc<Message>>;

/// What has left the view, once for every plan.
#[derive(Debug, Clone)]
pub struct Evicted {
    /// The items, as they stood, in view order.
    pub items: Vec<Item>,
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
pub(crate) struct Seen {
    pub(crate) state: Arc<AgentState>,
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
            (HookPoint::FollowUp, !self.follow_ups.is_empty()),
            (HookPoint::OnError, !self.on_error.is_empty()),
            (HookPoint::AfterLoop, !self.after_loop.is_empty()),
            (HookPoint::AfterTask, !self.after_task.is_empty()),
        ];
        let there = there.into_iter().filter(|(_, is_there)| *is_there);
        there.map(|(point, _)| point).collect()
    }

    /// Whether any is to know of what leaves the view.
    pub(crate) fn leave(&self) -> bool {
        !(self.before_compaction.is_empty()
            && self.after_compaction.is_empty()
            && self.on_evict.is_empty())
    }

    /// Whether something may happen.
    pub(crate) async fn before(&self, moment: &Moment, seen: Seen) -> Asked<Decision> {
        let point = moment.point();
        let mut asked = match moment {
            Moment::BeforeTask => self.ask(point.name(), &self.before_task, seen.state).await,
            Moment::BeforeLoop { run } => {
                let args = (seen.messages, *run);
                self.ask(point.name(), &self.before_loop, args).await
            }
            Moment::BeforeTurn { turn } => {
                let args = (seen.messages, *turn);
                self.ask(point.name(), &self.before_turn, args).await
            }
            _ => Asked::new(Decision::Go),
        };
        asked.go_on("it went on all the same");
        asked
    }

    /// Tells what has happened; gives what is wrong with the hooks.
    pub(crate) async fn after(&self, moment: Moment, seen: Seen) -> Vec<String> {
        let name = moment.point().name();
        match moment {
            Moment::AfterToolExecution {
                call,
                name: tool,
                is_error,
            } => {
                self.tell(name, &self.after_tool, (tool, call, is_error))
                    .await
            }
            Moment::AfterTurn { usage, .. } => {
                let args = (seen.messages, usage.unwrap_or_default());
                self.tell(name, &self.after_turn, args).await
            }
            Moment::OnError { message } => self.tell(name, &self.on_error, message).await,
            Moment::AfterLoop { outcome } => {
                let args = (seen.messages, outcome.usage);
                self.tell(name, &self.after_loop, args).await
            }
            Moment::AfterTask { outcome } => {
                let id = seen.state.session_id.clone();
                let args = (seen.state, AgentOutput::new(id, *outcome));
                self.tell(name, &self.after_task, args).await
            }
            Moment::BeforeTask
            | Moment::BeforeLoop { .. }
            | Moment::BeforeTurn { .. }
            | Moment::FollowUp => Vec::new(),
        }
    }

    /// Whether a tool call may run. One that is broken lets nothing run.
    pub(crate) async fn before_tool(
        &self,
        name: &str,
        call: &CallId,
        arguments: Value,
    ) -> Asked<Decision> {
        let point = HookPoint::BeforeToolExecution.name();
        let args = (name.to_owned(), call.clone(), arguments);
        self.ask(point, &self.before_tool, args).await
    }

    /// Whether what a tool says of its progress is told.
    pub(crate) async fn before_update(&self, update: (String, CallId, String)) -> Asked<Decision> {
        let name = "before_tool_execution_update";
        let mut asked = self.ask(name, &self.before_update, update).await;
        asked.go_on("the update was told all the same");
        asked
    }

    /// Tells that what a tool said was told.
    pub(crate) async fn after_update(&self, update: (String, CallId, String)) -> Vec<String> {
        let name = "after_tool_execution_update";
        self.tell(name, &self.after_update, update).await
    }

    /// Whether a plan may be applied.
    pub(crate) async fn before_compaction(
        &self,
        tokens: Tokens,
        messages: usize,
    ) -> Asked<Decision> {
        let (name, hooks) = ("before_compaction_start", &self.before_compaction);
        let mut asked = self.ask(name, hooks, (tokens, messages)).await;
        asked.go_on("the plan is applied all the same");
        asked
    }

    /// Tells what has left: `messages` and `tokens` are what is there now.
    pub(crate) async fn gone(
        &self,
        leaving: &Leaving,
        state: Arc<AgentState>,
        messages: usize,
        tokens: Tokens,
    ) -> Vec<String> {
        let args = (leaving.messages, messages, leaving.tokens, tokens);
        let mut faults = self
            .tell("after_compaction_end", &self.after_compaction, args)
            .await;
        let left = leaving.items.iter().filter(|leaving| leaving.leaves);
        let items: Vec<Item> = left.map(|leaving| leaving.item.clone()).collect();
        if !items.is_empty() {
            let evicted = (state, Evicted { items });
            let told = self.tell("on_evict", &self.on_evict, evicted).await;
            let kept = |text| format!("{text}; what left is in the log all the same");
            faults.extend(told.into_iter().map(kept));
        }
        faults
    }

    /// What the host wants said: before the next model call, or once there is an answer.
    pub(crate) async fn messages(&self, point: Polled) -> Asked<Vec<Said>> {
        let (name, hooks) = match point {
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
        asked
    }

    /// Asks until one says no.
    async fn ask<A: Clone>(&self, name: &str, hooks: &[Hook<A, bool>], args: A) -> Asked<Decision> {
        let mut asked = Asked::new(Decision::Go);
        for hook in hooks {
            match hook(args.clone(), self.timeout).await {
                Ok(true) => {}
                Ok(false) => {
                    asked.says = Decision::No {
                        why: format!("{name} said no"),
                    };
                    break;
                }
                Err(fault) => asked.faults.push(format!("{name} {}", fault.what())),
            }
        }
        asked
    }

    async fn tell<A: Clone>(&self, name: &str, hooks: &[Hook<A, ()>], args: A) -> Vec<String> {
        let mut faults = Vec::new();
        for hook in hooks {
            if let Err(fault) = hook(args.clone(), self.timeout).await {
                faults.push(format!("{name} {}", fault.what()));
            }
        }
        faults
    }
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
