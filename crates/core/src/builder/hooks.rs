//! Settings of hooks. Each may be a closure that gives back a value, and may block, or one that gives
//! back a future, and may not. Given twice, both are called, in that order; the first no counts.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{CallId, Tokens, Usage};
use serde_json::Value;

use super::AgentBuilder;
use crate::hooks::{CommandHook, Evicted, HookReply, Messages, hook};
use crate::remote::Said;
use crate::session::{AgentOutput, AgentState};

impl AgentBuilder {
    /// Asked before the first run of a session; `false` refuses it.
    pub fn before_task<F, R, M>(mut self, ask: F) -> Self
    where
        F: Fn(&AgentState) -> R + Send + Sync + 'static,
        R: HookReply<bool, M>,
    {
        let ask = move |state: Arc<AgentState>| ask(&state);
        self.hooks.before_task.push(hook(ask));
        self
    }

    /// Told after each run, once its log is durable.
    pub fn after_task<F, R, M>(mut self, tell: F) -> Self
    where
        F: Fn(&AgentState, AgentOutput) -> R + Send + Sync + 'static,
        R: HookReply<(), M>,
    {
        let tell = move |(state, output): (Arc<AgentState>, _)| tell(&state, output);
        self.hooks.after_task.push(hook(tell));
        self
    }

    /// Asked before each run, with the view and the run's number in its session, from 1; `false`
    /// refuses it.
    pub fn before_loop<F, R, M>(mut self, ask: F) -> Self
    where
        F: Fn(Messages, u64) -> R + Send + Sync + 'static,
        R: HookReply<bool, M>,
    {
        let ask = move |(messages, run)| ask(messages, run);
        self.hooks.before_loop.push(hook(ask));
        self
    }

    /// Told after each run, with what it has said and what it has used.
    pub fn after_loop<F, R, M>(mut self, tell: F) -> Self
    where
        F: Fn(Messages, Usage) -> R + Send + Sync + 'static,
        R: HookReply<(), M>,
    {
        let tell = move |(messages, usage)| tell(messages, usage);
        self.hooks.after_loop.push(hook(tell));
        self
    }

    /// Asked before each turn, with the view and the turn's number in its run, from 1; `false` ends
    /// the run.
    pub fn before_turn<F, R, M>(mut self, ask: F) -> Self
    where
        F: Fn(Messages, u64) -> R + Send + Sync + 'static,
        R: HookReply<bool, M>,
    {
        let ask = move |(messages, turn)| ask(messages, turn);
        self.hooks.before_turn.push(hook(ask));
        self
    }

    /// Told after each turn, with the view and what its model call used: nothing, where the provider
    /// does not say.
    pub fn after_turn<F, R, M>(mut self, tell: F) -> Self
    where
        F: Fn(Messages, Usage) -> R + Send + Sync + 'static,
        R: HookReply<(), M>,
    {
        let tell = move |(messages, usage)| tell(messages, usage);
        self.hooks.after_turn.push(hook(tell));
        self
    }

    /// Told after a model call that failed, with the provider's text.
    pub fn on_error<F, R, M>(mut self, tell: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: HookReply<(), M>,
    {
        self.hooks.on_error.push(hook(tell));
        self
    }

    /// Asked before a tool call runs and before anybody else is asked whether it may, with the tool,
    /// the call and its arguments; `false` skips it, which its result says. It guards, so if it is
    /// broken the call is denied.
    pub fn before_tool_execution<F, R, M>(mut self, ask: F) -> Self
    where
        F: Fn(String, CallId, Value) -> R + Send + Sync + 'static,
        R: HookReply<bool, M>,
    {
        let ask = move |(tool, call, arguments)| ask(tool, call, arguments);
        self.hooks.before_tool.push(hook(ask));
        self
    }

    /// Told after a tool call that ran: the tool, the call, and whether it failed.
    pub fn after_tool_execution<F, R, M>(mut self, tell: F) -> Self
    where
        F: Fn(String, CallId, bool) -> R + Send + Sync + 'static,
        R: HookReply<(), M>,
    {
        let tell = move |(tool, call, is_error)| tell(tool, call, is_error);
        self.hooks.after_tool.push(hook(tell));
        self
    }

    /// Asked before anybody is told how far a tool is, with the tool, the call and what it says;
    /// `false` keeps it back.
    pub fn before_tool_execution_update<F, R, M>(mut self, ask: F) -> Self
    where
        F: Fn(String, CallId, String) -> R + Send + Sync + 'static,
        R: HookReply<bool, M>,
    {
        let ask = move |(tool, call, text)| ask(tool, call, text);
        self.hooks.before_update.push(hook(ask));
        self
    }

    /// Told after everybody else how far a tool is.
    pub fn after_tool_execution_update<F, R, M>(mut self, tell: F) -> Self
    where
        F: Fn(String, CallId, String) -> R + Send + Sync + 'static,
        R: HookReply<(), M>,
    {
        let tell = move |(tool, call, text)| tell(tool, call, text);
        self.hooks.after_update.push(hook(tell));
        self
    }

    /// Asked before a plan is applied, with the request's tokens by our counter and the messages of
    /// the view; `false` leaves the view as it is for this request; where that is over its limit, the run
    /// ends with `CannotFit`.
    pub fn before_compaction_start<F, R, M>(mut self, ask: F) -> Self
    where
        F: Fn(Tokens, usize) -> R + Send + Sync + 'static,
        R: HookReply<bool, M>,
    {
        let ask = move |(tokens, messages)| ask(tokens, messages);
        self.hooks.before_compaction.push(hook(ask));
        self
    }

    /// Told after a plan was applied: messages before and after, tokens before and after.
    pub fn after_compaction_end<F, R, M>(mut self, tell: F) -> Self
    where
        F: Fn(usize, usize, Tokens, Tokens) -> R + Send + Sync + 'static,
        R: HookReply<(), M>,
    {
        let tell = move |(before, after, tokens_before, tokens_after)| {
            tell(before, after, tokens_before, tokens_after)
        };
        self.hooks.after_compaction.push(hook(tell));
        self
    }

    /// Called once for every plan that takes something out of the view, with exactly what left. If it
    /// fails, nothing is lost.
    pub fn on_evict<F, R, M>(mut self, tell: F) -> Self
    where
        F: Fn(&AgentState, Evicted) -> R + Send + Sync + 'static,
        R: HookReply<(), M>,
    {
        let tell = move |(state, evicted): (Arc<AgentState>, _)| tell(&state, evicted);
        self.hooks.on_evict.push(hook(tell));
        self
    }

    /// Asked between tool calls and before each answer of the model is taken: what it gives back steers
    /// the run, as [`Remote::steer`](crate::Remote::steer) does.
    pub fn get_steering_messages<F, R, S, M>(mut self, ask: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: HookReply<Vec<S>, M>,
        S: Into<Said> + Send + 'static,
    {
        self.hooks.steering.push(polled(ask));
        self
    }

    /// Asked once the model has answered and nothing else waits: the run goes on with what it gives
    /// back, as with [`Remote::follow_up`](crate::Remote::follow_up).
    pub fn get_follow_up_messages<F, R, S, M>(mut self, ask: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: HookReply<Vec<S>, M>,
        S: Into<Said> + Send + 'static,
    {
        self.hooks.follow_ups.push(polled(ask));
        self
    }

    /// Checks the answer of each run before the run ends. If `check` returns an error, the model is told why
    /// and answers again, [`ANSWER_RETRIES`](crate::ANSWER_RETRIES) times a run at most; the run then ends
    /// with the answer as it is, so check [`AgentOutput::text`](crate::AgentOutput::text) as well. A check
    /// that panics or does not return in time refuses nothing, and a warning says so.
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
    pub fn check_answer<F, R, M>(mut self, check: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: HookReply<Result<(), String>, M>,
    {
        self.hooks.check_answer.push(hook(check));
        self
    }

    /// Rewrites each request of the run's model just before it is sent: leaves messages out, puts some
    /// in, or orders them anew. It works on a copy, and the view stays as it is. What it makes of it is
    /// checked: every call must have its result, the last message must be one to answer, and all of it
    /// must be within the line. Otherwise the request is sent without it, and a warning says why.
    pub fn transform_context<F, R, M>(mut self, rewrite: F) -> Self
    where
        F: Fn(Messages) -> R + Send + Sync + 'static,
        R: HookReply<Messages, M>,
    {
        self.hooks.transform.push(hook(rewrite));
        self
    }

    /// The same behind [`Self::transform_context`]: makes messages of the host's kinds into what the
    /// model is to read.
    pub fn convert_to_llm<F, R, M>(mut self, convert: F) -> Self
    where
        F: Fn(Messages) -> R + Send + Sync + 'static,
        R: HookReply<Messages, M>,
    {
        self.hooks.convert.push(hook(convert));
        self
    }

    /// A hook that is a program; it is called behind the closures of its place.
    pub fn command_hook(mut self, hook: CommandHook) -> Self {
        self.hooks.commands.hooks.push(hook);
        self
    }

    /// How long a hook may take before it is given up. Default
    /// [`HOOK_TIMEOUT`](crate::HOOK_TIMEOUT).
    pub fn hook_timeout(mut self, timeout: Duration) -> Self {
        self.hooks.timeout = timeout;
        self
    }
}

/// A hook that gives messages, of whatever kind they are.
fn polled<F, R, S, M>(ask: F) -> crate::hooks::Hook<(), Vec<Said>>
where
    F: Fn() -> R + Send + Sync + 'static,
    R: HookReply<Vec<S>, M>,
    S: Into<Said> + Send + 'static,
{
    let ask = hook(move |()| ask());
    Arc::new(move |(), timeout| {
        let asked = ask((), timeout);
        Box::pin(async move { Ok(asked.await?.into_iter().map(Into::into).collect()) })
    })
}
