//! The hook settings.
//!
//! Each hook is a type that implements [`Hook`], or a closure: one that returns a value may block,
//! one that returns a future must not. Hooks set twice are both called, in order, until one refuses.
//! The methods are the same for an agent and for the [`Hooks`] of a single run.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{EvictedMessage, HookInput, HookPoint, Messages, UserMessage};
use plimsoll_context::{CallId, Tokens, Usage};
use serde_json::Value;

use super::AgentBuilder;
use crate::agent_state::AgentState;
use crate::hooks::{CommandHook, Hook, HookContext, HookOutput, HookReply, Hooks};
use crate::output::AgentOutput;

/// Adds methods that register closures. `($input, $cx) => $values` takes the arguments out of the
/// input of the hook and its context, and `$answer` converts the returned value.
macro_rules! hook_methods {
    ($owner:ty, $this:ident => $hooks:expr; $(
        $(#[$docs:meta])*
        $point:ident: $name:ident($($argument:ident: $of:ty),*) -> $reply:ty $(where $item:ident)?,
        ($input:pat, $cx:pat) => $values:expr, $answer:expr;
    )*) => {
        impl $owner {$(
            $(#[$docs])*
            pub fn $name<F, R, $($item,)? M>(mut self, hook: F) -> Self
            where
                F: Fn($($of),*) -> R + Send + Sync + 'static,
                R: HookReply<$reply, M>,
                $($item: Into<UserMessage> + Send + 'static,)?
            {
                let take = |input: HookInput, $cx: &HookContext| match input {
                    $input => Some($values),
                    _ => None,
                };
                let hook = move |($($argument,)*)| hook($($argument),*);
                let point = HookPoint::$point;
                let $this = &mut self;
                $hooks.add_closure(point, stringify!($name), take, hook, $answer);
                self
            }
        )*}
    };
}

/// Adds the methods that set hooks.
macro_rules! hook_settings {
    ($owner:ty, $this:ident => $hooks:expr) => {
        hook_methods! { $owner, $this => $hooks;
            /// Adds a hook that is called before the first run of a session. `false` refuses the run.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .before_task(|state| state.dynamic_context.is_some())
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            BeforeTask: before_task(state: Arc<AgentState>) -> bool,
            (HookInput::BeforeTask, cx) => (Arc::clone(&cx.state),), allowed;

            /// Adds a hook that is called after each run, once its log is durable.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .after_task(|_, output| println!("{}", output.text))
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            AfterTask: after_task(state: Arc<AgentState>, output: AgentOutput) -> (),
            (HookInput::AfterTask { outcome }, cx) => {
                let id = cx.state.session_id.clone();
                (Arc::clone(&cx.state), AgentOutput::new(id, *outcome))
            }, noted;

            /// Adds a hook that is called before each run, with the view and the number of the run in its
            /// session, from 1. `false` refuses the run.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).before_loop(|messages, run| run < 100).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            BeforeLoop: before_loop(messages: Messages, run: u64) -> bool,
            (HookInput::BeforeLoop { messages, run }, _) => (messages, run), allowed;

            /// Adds a hook that is called after each run, with its messages and its usage.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).after_loop(|_, usage| println!("{usage}")).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            AfterLoop: after_loop(messages: Messages, usage: Usage) -> (),
            (HookInput::AfterLoop { messages, outcome }, _) => (messages, outcome.tokens_used), noted;

            /// Adds a hook that is called before each turn, with the view and the number of the turn in its
            /// run, from
            /// 1. `false` ends the run.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).before_turn(|_, turn| turn <= 20).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            BeforeTurn: before_turn(messages: Messages, turn: u64) -> bool,
            (HookInput::BeforeTurn { messages, turn }, _) => (messages, turn), allowed;

            /// Adds a hook that is called after each turn, with the view and the usage of its model call.
            /// The usage is zero if the provider does not report it.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).after_turn(|_, usage| println!("{usage}")).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            AfterTurn: after_turn(messages: Messages, usage: Usage) -> (),
            (HookInput::AfterTurn { messages, usage, .. }, _) => (messages, usage.unwrap_or_default()), noted;

            /// Adds a hook that is called after each failed model call, with the error text of the
            /// provider.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).on_error(|error| eprintln!("{error}")).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            OnError: on_error(error: String) -> (),
            (HookInput::OnError { error }, _) => (error,), noted;

            /// Adds a hook that is called before a tool call runs and before the gate is asked, with the
            /// tool, the call and its arguments.
            ///
            /// `false` skips the call, and its result says so. If the hook fails, the call is denied,
            /// because the hook may guard it.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .before_tool_execution(|tool, _, _| tool != "bash")
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            BeforeToolExecution: before_tool_execution(tool: String, call: CallId, arguments: Value) -> bool,
            (HookInput::BeforeToolExecution { tool, call, arguments }, _) => (tool, call, arguments), allowed;

            /// Adds a hook that is called after each executed tool call, with the tool, the call, and
            /// whether it failed.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .after_tool_execution(|tool, _, failed| println!("{tool}: {failed}"))
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            AfterToolExecution: after_tool_execution(tool: String, call: CallId, is_error: bool) -> (),
            (HookInput::AfterToolExecution { tool, call, is_error }, _) => (tool, call, is_error), noted;

            /// Adds a hook that is called before a progress update of a tool is published, with the tool,
            /// the call and the text. `false` suppresses the update.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .before_tool_execution_update(|_, _, text| !text.is_empty())
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            BeforeToolExecutionUpdate: before_tool_execution_update(tool: String, call: CallId, text: String) -> bool,
            (HookInput::BeforeToolExecutionUpdate { tool, call, text }, _) => (tool, call, text), allowed;

            /// Adds a hook that is called after a progress update of a tool was published.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .after_tool_execution_update(|tool, _, text| println!("{tool}: {text}"))
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            AfterToolExecutionUpdate: after_tool_execution_update(tool: String, call: CallId, text: String) -> (),
            (HookInput::AfterToolExecutionUpdate { tool, call, text }, _) => (tool, call, text), noted;

            /// Adds a hook that is called before a plan is applied, with the tokens of the request (by our
            /// counter) and the number of messages in the view.
            ///
            /// `false` leaves the view unchanged for this request. If the view is over its limit, the run
            /// then ends with `CannotFit`.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// use plimsoll_context::Tokens;
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .before_compaction_start(|tokens: Tokens, _| tokens > Tokens(8_000))
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            BeforeCompactionStart: before_compaction_start(tokens: Tokens, messages: usize) -> bool,
            (HookInput::BeforeCompactionStart { tokens, messages }, _) => (tokens, messages), allowed;

            /// Adds a hook that is called after a plan was applied: messages before and after, tokens
            /// before and after.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .after_compaction_end(|_, _, before, after| println!("{before} -> {after}"))
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            AfterCompactionEnd: after_compaction_end(messages_before: usize, messages_after: usize, tokens_before: Tokens, tokens_after: Tokens) -> (),
            (HookInput::AfterCompactionEnd { messages_before, messages_after, tokens_before, tokens_after }, _) => (messages_before, messages_after, tokens_before, tokens_after), noted;

            /// Adds a hook that is called once for every plan that evicts messages, with the evicted
            /// messages. If it fails, nothing is lost.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .on_evict(|_, evicted| println!("{} messages", evicted.len()))
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            OnEvict: on_evict(state: Arc<AgentState>, evicted: Vec<EvictedMessage>) -> (),
            (HookInput::OnEvict { evicted }, cx) => (Arc::clone(&cx.state), evicted), noted;

            /// Adds a hook that is called between tool calls and before each answer of the model is
            /// processed. The returned messages steer the run, as [`Remote::steer`](crate::Remote::steer)
            /// does.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).get_steering_messages(|| vec!["Be brief."]).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            Steering: get_steering_messages() -> Vec<S> where S,
            (HookInput::Steering, _) => (), sent;

            /// Adds a hook that is called when the model has answered and no other message waits. The run
            /// continues with the returned messages, as with
            /// [`Remote::follow_up`](crate::Remote::follow_up).
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).get_follow_up_messages(Vec::<String>::new).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            FollowUp: get_follow_up_messages() -> Vec<S> where S,
            (HookInput::FollowUp, _) => (), sent;

            /// Adds a check of the final answer of each run.
            ///
            /// If `check` returns an error, the model gets the reason and answers again, at most
            /// [`ANSWER_RETRIES`](crate::ANSWER_RETRIES) times a run. If the next answer is not accepted
            /// either, or if the check panics or times out, the run ends with
            /// [`EndReason::Refused`](plimsoll_agent::EndReason::Refused), and the text of the output
            /// contains the answer.
            ///
            /// ```
            /// # use plimsoll_core::Agent;
            /// # use plimsoll_core::testing::{ScriptedProvider, Turn};
            /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), plimsoll_core::Error> {
            /// # let provider = ScriptedProvider::new([Turn::say("about 4"), Turn::say("4")]);
            /// let agent = Agent::builder(provider)
            ///     .check_answer(|answer: String| match answer.parse::<i64>() {
            ///         Ok(_) => Ok(()),
            ///         Err(error) => Err(format!("it is not a number: {error}")),
            ///     })
            ///     .build()?;
            /// assert_eq!(agent.run("How many seasons are there?").await?.text, "4");
            /// # Ok(()) }
            /// ```
            CheckAnswer: check_answer(answer: String) -> Result<(), String>,
            (HookInput::CheckAnswer { answer }, _) => (answer,), checked;

            /// Adds a hook that rewrites each request to the run's model just before it is sent. It may
            /// omit, add or reorder messages.
            ///
            /// The hook works on a copy; the view does not change. Its result is validated: every call must
            /// have its result, the last message must be one that the model can answer, and the request
            /// must be within the context limit. Otherwise the request is sent without the rewrite, and a
            /// warning explains why.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).transform_context(|messages| messages).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            TransformContext: transform_context(messages: Messages) -> Messages,
            (HookInput::TransformContext { messages }, _) => (messages,), HookOutput::Request;

            /// Adds a hook that converts the host's own kinds of messages to messages for the model. It and
            /// the hooks of [`Self::transform_context`] run in the order in which they were added.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).convert_to_llm(|messages| messages).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            TransformContext: convert_to_llm(messages: Messages) -> Messages,
            (HookInput::TransformContext { messages }, _) => (messages,), HookOutput::Request;
        }

        impl $owner {
            /// Adds a [`Hook`], which is called at all of its points.
            pub fn hook(mut self, hook: impl Hook) -> Self {
                let $this = &mut self;
                $hooks.add(Arc::new(hook));
                self
            }

            /// Adds a program as a hook.
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// use plimsoll_agent::HookPoint;
            /// use plimsoll_core::CommandHook;
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model)
            ///     .command_hook(CommandHook::new(HookPoint::BeforeToolExecution, ["./may-run.sh"]))
            ///     .build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            pub fn command_hook(mut self, hook: CommandHook) -> Self {
                let $this = &mut self;
                $hooks.add_command(hook);
                self
            }

            /// Sets the timeout of a hook. Default [`HOOK_TIMEOUT`](crate::HOOK_TIMEOUT).
            ///
            /// ```
            /// # use plimsoll_core::{Agent, testing::ScriptedProvider};
            /// use std::time::Duration;
            /// # let model = ScriptedProvider::new([]);
            /// let agent = Agent::builder(model).hook_timeout(Duration::from_secs(2)).build()?;
            /// # Ok::<(), plimsoll_core::Error>(())
            /// ```
            pub fn hook_timeout(mut self, timeout: Duration) -> Self {
                let $this = &mut self;
                $hooks.timeout = Some(timeout);
                self
            }
        }
    };
}

hook_settings!(AgentBuilder, builder => builder.parts.hooks);
hook_settings!(Hooks, hooks => hooks);

/// Returns the answer of a hook that may refuse.
fn allowed(is_allowed: bool) -> HookOutput {
    if is_allowed {
        HookOutput::Nothing
    } else {
        HookOutput::Deny(String::new())
    }
}

/// Returns the answer of a hook that is only notified.
fn noted((): ()) -> HookOutput {
    HookOutput::Nothing
}

/// Returns the answer of a check.
fn checked(is_accepted: Result<(), String>) -> HookOutput {
    is_accepted.map_or_else(HookOutput::Deny, noted)
}

/// Returns the answer of a hook that returns messages of any supported type.
fn sent<S: Into<UserMessage>>(messages: Vec<S>) -> HookOutput {
    HookOutput::Send(messages.into_iter().map(Into::into).collect())
}
