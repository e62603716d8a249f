//! [`Session`]: an open session with its durable log.
//!
//! The loop itself is in the driver.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_agent::{
    AppliedPlan, Cost, EndReason, Entry, Event, ExecutionTracker, Input, Now, Outcome, Run,
    RunStep, Spend, State, WindowUse,
};
use plimsoll_context::{Bytes, CacheTally, Message, Part, PinnedPart, Seq, Tokens, Usage};

use crate::agent::{Agent, SessionResources};
use crate::driver::{self, LogWrite, Parts, RunUsage};
use crate::error::Error;
use crate::host_pins::HostPins;
use crate::host_steps::Steps;
use crate::journal::LogChain;
use crate::loop_config::Base;
use crate::opened_log::OpenedLog;
use crate::remote::{Inbox, Remote, UserMessage};
use crate::store::{Lease, SessionId};
use crate::telemetry::SpanContext;
use crate::tool::Tool;

/// A session that this process writes to.
///
/// If it is dropped, a write to its log that has begun is still finished, in the background. The
/// session can be opened again after that. [`Session::close`] waits for it.
pub struct Session {
    pub(crate) run: Run,
    /// Number of stored entries.
    pub(crate) entries: u64,
    pub(crate) lease: Arc<Lease>,
    pub(crate) parts: Arc<Parts>,
    pub(crate) inbox: Inbox,
    /// Entries that the machine has recorded but the store has not.
    pub(crate) pending: Vec<Entry>,
    /// The entries that are being written to the store.
    pub(crate) writing: Option<LogWrite>,
    /// Whether a write has failed, so that the session is ahead of its log.
    pub(crate) stale: bool,
    /// The log, if it was kept for a run that will ask for it.
    pub(crate) log: Option<Vec<Entry>>,
    /// Whether the log has reached a new point that another process could continue from.
    pub(crate) reached: bool,
    /// The digests of the log, while a run is journaled.
    pub(crate) chain: Option<LogChain>,
    pub(crate) state: Arc<AgentState>,
    /// Tools of this session only: the recall tools.
    pub(crate) tools: HashMap<String, Arc<dyn Tool>>,
    /// The steps of the current run.
    pub(crate) steps: Steps,
    /// The reservation of the run, and the usage of its calls under way.
    pub(crate) usage: RunUsage,
    /// When the current or most recent run began.
    pub(crate) started: tokio::time::Instant,
    /// How many answers of that run were refused.
    pub(crate) answers_refused: u32,
    /// When the provider last answered in this process.
    pub(crate) called: Option<Instant>,
    /// The age of the log when the session was opened, and the time of opening.
    pub(crate) found: Option<(Duration, Instant)>,
    /// The address and name of the model of the last run.
    pub(crate) endpoint: String,
    /// The key of the provider's prompt cache for this session.
    pub(crate) cache_key: Option<Arc<str>>,
    /// The settings to restore after a run with other settings.
    pub(crate) base: Option<Base>,
    /// The memory that this session holds, as part of the agent's total.
    pub(crate) held: HeldMemory,
    /// The agent's dynamic context, used if the host attaches none.
    own_context: Option<Arc<str>>,
}

/// Data that a host attaches to a session.
#[derive(Debug, Clone)]
pub struct AgentState {
    /// Id of the session.
    pub session_id: SessionId,
    /// Text sent after the history of each request of the next run, outside the log. `None` uses
    /// the agent's own.
    pub dynamic_context: Option<String>,
    /// Arbitrary values of the host, by type.
    pub extensions: Extensions,
}

/// Values by their type.
#[derive(Debug, Clone, Default)]
pub struct Extensions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutput {
    /// The session, which can be continued.
    pub session_id: SessionId,
    /// The answer. If a limit ended the run and the model could sum up, its summary. If a user, a hook
    /// or another limit ended it, the text so far, followed by a sentence in brackets with the
    /// reason; see [`EndReason::is_answer`].
    pub text: String,
    /// Why the run ended.
    pub reason: EndReason,
    /// Token usage of the run.
    pub tokens_used: Usage,
    /// The part of `tokens_used` spent on summaries, whose model may have other prices.
    pub summary_usage: Usage,
    /// Our estimate for calls whose provider reported no usage. Not included in `tokens_used`.
    pub estimated: Usage,
    /// Number of answered model calls.
    pub turns: u64,
    /// Number of executed tool calls.
    pub tool_calls: u64,
    /// Number of applied plans.
    pub plans: u64,
    /// Tokens freed by the plans.
    pub freed: Tokens,
    /// Expected and actual reads from the prompt cache.
    pub cache: CacheTally,
    /// Cost of the run, including summaries and sub-agents.
    pub cost: Cost,
    /// Messages that came too late for the run.
    pub undelivered: Vec<Vec<Part>>,
    /// Whether the view was restored to its state before the run.
    pub rolled_back: bool,
    /// Peak memory held by the run, in bytes.
    pub peak_memory: Bytes,
    /// Shortened tool results, limited to the newest [`MAX_STEPS`](crate::MAX_STEPS) and
    /// [`MAX_STEPS_SIZE`](crate::MAX_STEPS_SIZE).
    pub steps: Vec<RunStep>,
    /// Number of older steps that were dropped.
    pub steps_dropped: u64,
}

impl Session {
    pub(crate) fn new(run: Run, entries: u64, lease: Lease, parts: Arc<Parts>) -> Self {
        let state = AgentState {
            session_id: lease.session().clone(),
            dynamic_context: None,
            extensions: Extensions::default(),
        };
        Self {
            run,
            entries,
            lease: Arc::new(lease),
            inbox: Inbox::default(),
            pending: Vec::new(),
            writing: None,
            stale: false,
            log: None,
            reached: false,
            chain: None,
            state: Arc::new(state),
            tools: HashMap::new(),
            steps: Steps::new(parts.settings.max_step_result),
            usage: RunUsage::default(),
            started: tokio::time::Instant::now(),
            answers_refused: 0,
            called: None,
            found: None,
            endpoint: String::new(),
            cache_key: None,
            base: None,
            held: HeldMemory::new(&parts.held),
            own_context: None,
            parts,
        }
    }

    /// Sets the parts that the session works with from now on.
    pub(crate) async fn fit_out(&mut self, resources: SessionResources) -> Result<(), Error> {
        let mut parts = Arc::unwrap_or_clone(resources.parts);
        let runs = self.run.state().runs();
        parts.observers = parts.observers.of_session(self.id().as_str(), runs);
        self.parts = Arc::new(parts);
        self.held = HeldMemory::new(&self.parts.held);
        self.own_context
            .clone_from(&self.run.setup().dynamic_context);
        self.steps = Steps::new(self.parts.settings.max_step_result);
        // A run that was killed left calls whose results the next run records.
        let items = self.run.state().transcript().items().iter().rev();
        let mut messages = items.map(|item| &item.message);
        if let Some(message) = messages.find(|message| message.calls().next().is_some()) {
            self.steps.begin_batch(message);
        }
        // The cache state of one provider is meaningless for another.
        if self.called.is_some() && self.endpoint != resources.endpoint {
            self.called = None;
            self.found = None;
        }
        self.endpoint = resources.endpoint;
        self.cache_key = resources.cache_key;
        let tools = resources.tools.into_iter();
        let named = tools.map(|tool| (tool.spec().name.clone(), tool));
        self.tools = named.collect();
        for text in resources.notes {
            self.parts.tell(Event::Warning { text });
        }
        for rule in &resources.pins {
            self.pin_rule(rule).await?;
        }
        Ok(())
    }

    /// Continues with another agent: another model, other tools and other limits for the same log.
    ///
    /// The session stays in its store. On an error, it does not change.
    ///
    /// # Errors
    /// If the log cannot be read or written, or if the agent's configuration leaves no room in its
    /// model's window.
    pub async fn switch(&mut self, agent: &Agent) -> Result<(), Error> {
        driver::between_runs(self).await?;
        driver::settle(self).await?;
        let parts = Arc::new(Parts {
            store: Arc::clone(&self.parts.store),
            ..Parts::clone(&agent.parts)
        });
        let OpenedLog { state, entries, .. } =
            OpenedLog::read(&*parts.store, self.id(), None, &agent.setup).await?;
        let (setup, resources) = agent.prepare(parts, &self.lease, &state).await?;
        self.run = Run::of_state(state, setup);
        self.entries = entries;
        self.fit_out(resources).await
    }

    /// Undoes the newest run that is not undone yet. Returns the number of the run.
    ///
    /// The view becomes, byte for byte, the view before the task of the run. Pins that the host has
    /// set since then stay pinned; its newer rules are added again at the end of the view. The log
    /// keeps the run. Effects outside the session are not undone.
    ///
    /// # Errors
    /// If there is no run to undo, or the log cannot be read or written.
    pub async fn undo(&mut self) -> Result<u64, Error> {
        driver::between_runs(self).await?;
        driver::settle(self).await?;
        let log = self.parts.store.load(self.id()).await?;
        let pins = HostPins::of(&log, self.pinned());
        let run = self.run.undo()?;
        driver::settle(self).await?;
        pins.restore(self).await?;
        Ok(run)
    }

    /// Compacts the view now, regardless of the trigger.
    ///
    /// The policy plans down to its target, and the plan is recorded and reported like
    /// any other. `focus` tells a model that writes a summary which information matters most.
    /// Returns `None` if the view is already below its target, if no message can be evicted, or if
    /// a hook refuses the plan. No model is called if there is nothing to compact. Dropping the future
    /// cancels the plan.
    ///
    /// ```
    /// use plimsoll_core::testing::{ScriptedProvider, Turn};
    /// use plimsoll_core::{Agent, SessionId};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(ScriptedProvider::new([Turn::say("Hello.")])).build()?;
    /// let mut session = agent.session(SessionId::new("one")?).await?;
    /// session.run("Hi.").await?;
    /// assert!(session.compact(None).await?.is_none(), "there is nothing to compact");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the focus is too long, or the log cannot be written.
    pub async fn compact(&mut self, focus: Option<&str>) -> Result<Option<AppliedPlan>, Error> {
        driver::between_runs(self).await?;
        driver::settle(self).await?;
        let now = Now {
            since_call: self.idle(),
            ..Now::default()
        };
        self.run.compact(now, focus)?;
        driver::settle(self).await?;
        Ok(self.run.take_compaction())
    }

    /// Returns the current use of the window.
    #[must_use]
    pub fn window_use(&self) -> WindowUse {
        self.run.window_use()
    }

    /// Pins an item of the view, or a part of it. It stays complete in every later request.
    ///
    /// # Errors
    /// If the original item is not in the view, if too much would be pinned, or if the log cannot
    /// be written.
    pub async fn pin(&mut self, seq: Seq, what: PinnedPart) -> Result<(), Error> {
        driver::between_runs(self).await?;
        self.run.pin(seq, what)?;
        driver::settle(self).await
    }

    /// Adds a rule from the host and pins it.
    ///
    /// # Errors
    /// If the rule is empty, if too much would be pinned, if calls of a crashed run are waiting to
    /// be continued, or if the log cannot be written.
    pub async fn pin_text(&mut self, text: &str) -> Result<Seq, Error> {
        driver::between_runs(self).await?;
        let seq = self.run.pin_text(text)?;
        driver::settle(self).await?;
        Ok(seq)
    }

    /// Like [`Self::pin_text`], but if calls of a crashed run wait for their results, adds the rule
    /// after them.
    pub(crate) async fn pin_rule(&mut self, text: &str) -> Result<(), Error> {
        self.run.pin_rule(text)?;
        driver::settle(self).await
    }

    /// Removes a pin. Returns `false` if there is none.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub async fn unpin(&mut self, seq: Seq) -> Result<bool, Error> {
        driver::between_runs(self).await?;
        let unpinned = self.run.unpin(seq);
        driver::settle(self).await?;
        Ok(unpinned)
    }

    /// Returns the pinned items in view order.
    pub fn pinned(&self) -> impl Iterator<Item = (Seq, &Message)> {
        self.run.pinned()
    }

    /// Returns the time since the provider last answered. Before the first answer in this process,
    /// returns the time since the log was written, if the store knows it.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let here = self.called.map(|called| called.elapsed());
        let (before, opened) = self.found.unzip();
        here.or_else(|| Some(before?.saturating_add(opened?.elapsed())))
    }

    /// Runs a task. Dropping the future interrupts it; the session can be continued.
    ///
    /// # Errors
    /// If the task is empty, the log cannot be written, or the model cannot be called
    /// ([`Error::Failed`]).
    pub async fn run(&mut self, task: &str) -> Result<AgentOutput, Error> {
        if task.trim().is_empty() {
            return Err(Error::EmptyTask);
        }
        self.run_parts(vec![Part::text(task)]).await
    }

    /// Runs a task with images, files or other parts besides text.
    ///
    /// # Errors
    /// If the message is empty, the log cannot be written, or the model cannot be called
    /// ([`Error::Failed`]).
    pub async fn run_parts(&mut self, parts: Vec<Part>) -> Result<AgentOutput, Error> {
        let parts = UserMessage(parts).checked()?;
        driver::between_runs(self).await?;
        self.drive(Input::User(parts.into())).await
    }

    /// Continues without a new message after a crash or a failure has ended the last run. Calls
    /// that had not begun run now; started calls run again only if they are idempotent.
    ///
    /// # Errors
    /// If the session is empty, the log cannot be written, or the model cannot be called
    /// ([`Error::Failed`]).
    pub async fn carry_on(&mut self) -> Result<AgentOutput, Error> {
        if self.run.state().transcript().items().is_empty() {
            return Err(Error::EmptyTask);
        }
        driver::between_runs(self).await?;
        self.drive(Input::Continue).await
    }

    /// Closes the session: ends a run whose future was dropped, and waits until the log is complete.
    /// The session can then be opened again at once, also by another process.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub async fn close(mut self) -> Result<(), Error> {
        driver::between_runs(&mut self).await?;
        driver::settle(&mut self).await
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        self.lease.session()
    }

    /// Returns a remote that controls this session's runs from another task.
    #[must_use]
    pub fn remote(&self) -> Remote {
        self.inbox.remote()
    }

    /// Returns the host's data for modification. A running hook keeps its own snapshot.
    pub fn state_mut(&mut self) -> &mut AgentState {
        Arc::make_mut(&mut self.state)
    }

    /// Returns the total cost of all runs of the session.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.run.state().cost()
    }

    /// Returns the usage of limits in the current or most recent run.
    #[must_use]
    pub fn tracker(&self) -> ExecutionTracker {
        self.run.tracker().clone()
    }

    /// Returns the current state of the log.
    #[must_use]
    pub fn view(&self) -> &State {
        self.run.state()
    }

    /// Returns the model's window, as far as it is known.
    #[must_use]
    pub fn window(&self) -> Option<Tokens> {
        self.run.line().window
    }

    pub(crate) async fn drive(&mut self, input: Input) -> Result<AgentOutput, Error> {
        self.attach_context();
        let outcome = driver::drive(self, input).await;
        self.parts.observers.catch_up().await;
        self.output(outcome?)
    }

    /// Passes the host's dynamic context to the machine.
    pub(crate) fn attach_context(&mut self) {
        let attached = self.state.dynamic_context.as_deref().map(Arc::from);
        let context = attached.or_else(|| self.own_context.clone());
        self.run.set_dynamic_context(context);
    }

    /// Returns the output of a run that has just ended.
    pub(crate) fn output(&mut self, outcome: Outcome) -> Result<AgentOutput, Error> {
        let (steps, steps_dropped) = self.steps.take();
        self.hold();
        let output = AgentOutput {
            steps,
            steps_dropped,
            peak_memory: self.run.state().peak_memory(),
            ..AgentOutput::new(self.id().clone(), outcome)
        };
        match output.reason {
            EndReason::Failed { .. } | EndReason::CannotFit { .. } => {
                Err(Error::Failed(Box::new(output)))
            }
            _ => Ok(output),
        }
    }

    /// Returns the memory held by the current run, in bytes; see
    /// [`Remote::current_query_memory_usage`](crate::Remote::current_query_memory_usage).
    #[must_use]
    pub fn current_query_memory_usage(&self) -> usize {
        if self.run.is_running() {
            usize::try_from(self.run.state().memory().0).unwrap_or(usize::MAX)
        } else {
            0
        }
    }

    /// Returns the context of the session's spans.
    pub(crate) fn span_context(&self) -> SpanContext {
        SpanContext {
            purpose: "turn",
            session: Some(self.id().clone()),
            contents: self.parts.telemetry.contents,
            prices: self.run.setup().sheet,
        }
    }

    /// Returns the context of the spans of a summary's calls.
    pub(crate) fn summary_span_context(&self) -> SpanContext {
        let setup = self.run.setup();
        let own = setup.summary_model.as_ref();
        SpanContext {
            purpose: "summary",
            prices: own.map_or(setup.sheet, |model| model.sheet),
            ..self.span_context()
        }
    }

    /// Publishes the memory held by the current run.
    pub(crate) fn hold(&mut self) {
        let bytes = self.current_query_memory_usage();
        self.inbox.holds(bytes);
        self.held.set(bytes);
    }
}

/// The memory held by one session, as part of the total of its agent.
#[derive(Debug, Default)]
pub(crate) struct HeldMemory {
    of_agent: Arc<AtomicUsize>,
    own: usize,
}

impl HeldMemory {
    /// Creates an empty account within the agent's total.
    pub(crate) fn new(of_agent: &Arc<AtomicUsize>) -> Self {
        Self {
            of_agent: Arc::clone(of_agent),
            own: 0,
        }
    }

    fn set(&mut self, bytes: usize) {
        self.of_agent.fetch_add(bytes, Ordering::Relaxed);
        self.of_agent.fetch_sub(self.own, Ordering::Relaxed);
        self.own = bytes;
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Extensions {
    /// Inserts a value. Returns the previous value of the same type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) -> Option<Arc<T>> {
        let old = self.0.insert(TypeId::of::<T>(), Arc::new(value))?;
        old.downcast().ok()
    }

    /// Returns the value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Display for AgentOutput {
    /// Formats the reason and the usage, such as "answered: 3 turns, 2 tool calls, read 120 (50 %
    /// cached), wrote 40, $0.0012". The answer is in `text`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spend = Spend {
            usage: self.tokens_used,
            estimated: self.estimated,
            cost: self.cost,
            turns: self.turns,
            tool_calls: self.tool_calls,
        };
        write!(f, "{}: {spend}", self.reason.word())
    }
}

impl AgentOutput {
    /// Creates the output from an outcome alone. Steps and memory are empty, since only the process
    /// of the run knows them.
    #[must_use]
    pub fn new(session_id: SessionId, outcome: Outcome) -> Self {
        Self {
            session_id,
            text: outcome.text,
            reason: outcome.reason,
            tokens_used: outcome.usage,
            summary_usage: outcome.summary_usage,
            estimated: outcome.estimated,
            turns: outcome.turns,
            tool_calls: outcome.tool_calls,
            plans: outcome.plans,
            freed: outcome.freed,
            cache: outcome.cache,
            cost: outcome.cost,
            undelivered: outcome.undelivered,
            rolled_back: outcome.rolled_back,
            peak_memory: Bytes(0),
            steps: Vec::new(),
            steps_dropped: 0,
        }
    }
}
