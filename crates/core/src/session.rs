//! [`Session`]: a durable log under way.
//! Not the loop itself; that is the driver.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_agent::{
    Cost, EndReason, Entry, Event, ExecutionTracker, Input, Outcome, Run, RunStep, State,
};
use plimsoll_context::{Bytes, CacheTally, Message, Part, Pinned, Seq, Tokens, Usage};

use crate::agent::{Agent, Fittings};
use crate::driver::{self, CallLosses, Parts, Purse};
use crate::error::Error;
use crate::host_pins::HostPins;
use crate::journal::LogChain;
use crate::loop_config::Base;
use crate::remote::{Inbox, Remote, Said};
use crate::steps::Steps;
use crate::store::{Lease, SessionId};
use crate::telemetry::{Scene, Told};
use crate::tool::Tool;

/// A session that this process writes to.
pub struct Session {
    pub(crate) run: Run,
    pub(crate) lease: Lease,
    pub(crate) parts: Arc<Parts>,
    pub(crate) inbox: Inbox,
    /// Entries that the machine has recorded and the store has not.
    pub(crate) pending: Vec<Entry>,
    pub(crate) stale: bool,
    /// The log, if it was kept for a run that will ask for it.
    pub(crate) log: Option<Vec<Entry>>,
    /// Something was written from which another process could go on.
    pub(crate) reached: bool,
    /// The digests of the log, while a journal names them.
    pub(crate) chain: Option<LogChain>,
    pub(crate) state: Arc<AgentState>,
    /// Tools of this session alone: those that recall what has left it.
    pub(crate) tools: HashMap<String, Arc<dyn Tool>>,
    /// Whether what leaves the view is archived.
    pub(crate) archives: bool,
    /// What the run under way has done, in small.
    pub(crate) steps: Steps,
    /// What the run may use.
    pub(crate) purse: Purse,
    /// What its calls have used without a reply.
    pub(crate) losses: CallLosses,
    /// When the run began that is under way, or was last.
    pub(crate) started: tokio::time::Instant,
    /// What was said in that run has this number or a later one.
    pub(crate) began: Seq,
    /// How many answers of that run were refused.
    pub(crate) answers_refused: u32,
    /// When the provider last answered, in this process.
    pub(crate) called: Option<Instant>,
    /// How long ago the log had been written when it was opened, and when that was.
    pub(crate) found: Option<(Duration, Instant)>,
    /// Under what name a window is remembered that the provider tells.
    pub(crate) endpoint: String,
    /// By what the provider may find this session's cache.
    pub(crate) cache_key: Option<Arc<str>>,
    /// What to go back to once a run has ended that is configured otherwise.
    pub(crate) base: Option<Base>,
    /// What of it is being told as spans.
    pub(crate) told: Told,
    /// What it holds, as the agent counts.
    pub(crate) held: HeldMemory,
    /// The agent's dynamic context, which holds where the host attaches none.
    own_context: Option<Arc<str>>,
}

/// What a host attaches to a session.
#[derive(Debug, Clone)]
pub struct AgentState {
    /// The session's name.
    pub session_id: SessionId,
    /// Sent after the history of each request of the next run; not part of the log. `None`: the
    /// agent's own.
    pub dynamic_context: Option<String>,
    /// Anything of the host's, by type.
    pub extensions: Extensions,
}

/// Values by their type.
#[derive(Debug, Clone, Default)]
pub struct Extensions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutput {
    /// The session, to carry on with.
    pub session_id: SessionId,
    /// The answer. If a limit, a person or a hook ended the run, a sentence in brackets that says so, after
    /// what the model had said so far: see [`EndReason::is_answer`].
    pub text: String,
    /// Why the run ended.
    pub reason: EndReason,
    /// What the run spent.
    pub tokens_used: Usage,
    /// The part of it that summaries took, whose model may have other prices.
    pub summary_usage: Usage,
    /// What calls took besides whose provider did not say it, by our own count: no part of
    /// `tokens_used`.
    pub estimated: Usage,
    /// Model calls that were answered.
    pub turns: u64,
    /// Tool calls that ran.
    pub tool_calls: u64,
    /// Plans that were applied.
    pub plans: u64,
    /// What they freed.
    pub freed: Tokens,
    /// What the run expected of the prompt cache, and what it read from it.
    pub cache: CacheTally,
    /// What the run cost, summaries and sub-agents included.
    pub cost: Cost,
    /// Messages that waited for the run and came too late for it.
    pub undelivered: Vec<Vec<Part>>,
    /// The view was put back to what it was before the run.
    pub rolled_back: bool,
    /// The most that the run held in memory at once.
    pub peak_memory: Bytes,
    /// What its tools returned, in small; of more than [`MAX_STEPS`](crate::MAX_STEPS) or
    /// [`MAX_STEPS_SIZE`](crate::MAX_STEPS_SIZE), the newest.
    pub steps: Vec<RunStep>,
    /// How many older steps were let go.
    pub steps_dropped: u64,
}

impl Session {
    pub(crate) fn new(run: Run, lease: Lease, parts: Arc<Parts>) -> Self {
        let state = AgentState {
            session_id: lease.session().clone(),
            dynamic_context: None,
            extensions: Extensions::default(),
        };
        Self {
            run,
            lease,
            inbox: Inbox::default(),
            pending: Vec::new(),
            stale: false,
            log: None,
            reached: false,
            chain: None,
            state: Arc::new(state),
            tools: HashMap::new(),
            archives: false,
            steps: Steps::new(parts.max_step_result),
            purse: Purse::default(),
            losses: CallLosses::default(),
            started: tokio::time::Instant::now(),
            began: Seq::default(),
            answers_refused: 0,
            called: None,
            found: None,
            endpoint: String::new(),
            cache_key: None,
            base: None,
            told: Told::default(),
            held: HeldMemory::new(&parts.held),
            own_context: None,
            parts,
        }
    }

    /// Takes what the session is to work with from now on.
    pub(crate) async fn fit_out(&mut self, fittings: Fittings) -> Result<(), Error> {
        self.parts = fittings.parts;
        self.held = HeldMemory::new(&self.parts.held);
        self.own_context
            .clone_from(&self.run.setup().dynamic_context);
        self.steps = Steps::new(self.parts.max_step_result);
        // What one provider has in its cache says nothing of another's.
        if self.called.is_some() && self.endpoint != fittings.endpoint {
            self.called = None;
            self.found = None;
        }
        self.endpoint = fittings.endpoint;
        self.cache_key = fittings.cache_key;
        self.archives = fittings.archives;
        let tools = fittings.tools.into_iter();
        let named = tools.map(|tool| (tool.spec().name.clone(), tool));
        self.tools = named.collect();
        for text in fittings.notes {
            self.parts.tell(&Event::Warning { text });
        }
        for rule in &fittings.pins {
            self.pin_rule(rule).await?;
        }
        Ok(())
    }

    /// Goes on with another agent: another model, other tools, other limits over the same log. The
    /// session stays in the store that it is in. Where this fails, it is as it was.
    ///
    /// # Errors
    /// Where the log cannot be read or written, or where the agent's configuration leaves no room in
    /// its model's window.
    pub async fn switch(&mut self, agent: &Agent) -> Result<(), Error> {
        driver::between_runs(self)?;
        driver::settle(self).await?;
        let parts = Arc::new(Parts {
            store: Arc::clone(&self.parts.store),
            ..Parts::clone(&agent.parts)
        });
        let log = parts.store.load(self.id()).await?;
        let (setup, fittings) = agent.prepare(parts, &self.lease, &log).await?;
        self.run = Run::resume(&log, setup)?;
        self.fit_out(fittings).await
    }

    /// Undoes the newest run that is not undone: the view is, byte for byte, what it was before its
    /// task was said. What the host has pinned since stays pinned; rules that it has said since then
    /// are said again, behind that view. The log keeps both; what the run did elsewhere, it has done.
    /// Gives its number.
    ///
    /// # Errors
    /// Where there is no run to undo, or the log cannot be read or written.
    pub async fn undo(&mut self) -> Result<u64, Error> {
        driver::between_runs(self)?;
        driver::settle(self).await?;
        let log = self.parts.store.load(self.id()).await?;
        let pins = HostPins::of(&log, self.pinned());
        let run = self.run.undo()?;
        driver::settle(self).await?;
        pins.restore(self).await?;
        Ok(run)
    }

    /// Pins an item of the view, or a part of it: it stays, whole, in every later request.
    ///
    /// # Errors
    /// Where it is not in the view as it was said, where too much would be pinned, or where the
    /// log cannot be written.
    pub async fn pin(&mut self, seq: Seq, what: Pinned) -> Result<(), Error> {
        driver::between_runs(self)?;
        self.run.pin(seq, what)?;
        driver::settle(self).await
    }

    /// Says a rule in the host's name and pins it.
    ///
    /// # Errors
    /// Where it is empty, where too much would be pinned, where calls of a crashed run wait to be
    /// carried on, or where the log cannot be written.
    pub async fn pin_text(&mut self, text: &str) -> Result<Seq, Error> {
        driver::between_runs(self)?;
        let seq = self.run.pin_text(text)?;
        driver::settle(self).await?;
        Ok(seq)
    }

    /// The same, but where calls of a crashed run wait for their results it is said behind them.
    pub(crate) async fn pin_rule(&mut self, text: &str) -> Result<(), Error> {
        self.run.pin_rule(text)?;
        driver::settle(self).await
    }

    /// Takes a pin off. False where there is none.
    ///
    /// # Errors
    /// Where the log cannot be written.
    pub async fn unpin(&mut self, seq: Seq) -> Result<bool, Error> {
        driver::between_runs(self)?;
        let unpinned = self.run.unpin(seq);
        driver::settle(self).await?;
        Ok(unpinned)
    }

    /// What is pinned, in the order of the view.
    pub fn pinned(&self) -> impl Iterator<Item = (Seq, &Message)> {
        self.run.pinned()
    }

    /// How long ago the provider last answered; before the first answer in this process, how long
    /// ago the log was written, where the store knows.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let here = self.called.map(|called| called.elapsed());
        let (before, opened) = self.found.unzip();
        here.or_else(|| Some(before?.saturating_add(opened?.elapsed())))
    }

    /// Runs a task. Dropping the future interrupts it; the session can be carried on.
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

    /// Runs a task that has more than text in it.
    ///
    /// # Errors
    /// If nothing is said, the log cannot be written, or the model cannot be called
    /// ([`Error::Failed`]).
    pub async fn run_parts(&mut self, parts: Vec<Part>) -> Result<AgentOutput, Error> {
        let parts = Said(parts).checked()?;
        driver::between_runs(self)?;
        self.drive(Input::User(parts)).await
    }

    /// Goes on without a new message, where a crash or a failure ended the last run: calls that
    /// had not begun run now, and what ran is not run again unless it is idempotent.
    ///
    /// # Errors
    /// If the session is empty, the log cannot be written, or the model cannot be called
    /// ([`Error::Failed`]).
    pub async fn carry_on(&mut self) -> Result<AgentOutput, Error> {
        if self.run.state().transcript().items().is_empty() {
            return Err(Error::EmptyTask);
        }
        driver::between_runs(self)?;
        self.drive(Input::Continue).await
    }

    /// The session's name.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        self.lease.session()
    }

    /// Reaches into this session's run from another task.
    #[must_use]
    pub fn remote(&self) -> Remote {
        self.inbox.remote()
    }

    /// What the host attached. A hook that still runs keeps what it was given.
    pub fn state_mut(&mut self) -> &mut AgentState {
        Arc::make_mut(&mut self.state)
    }

    /// What all runs of the session have cost.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.run.state().cost()
    }

    /// What the run that is under way, or was last, has used of its limits.
    #[must_use]
    pub fn tracker(&self) -> ExecutionTracker {
        self.run.tracker()
    }

    /// What the log amounts to.
    #[must_use]
    pub fn view(&self) -> &State {
        self.run.state()
    }

    /// The model's window as far as it is known by now.
    #[must_use]
    pub fn window(&self) -> Option<Tokens> {
        self.run.line().window
    }

    pub(crate) async fn drive(&mut self, input: Input) -> Result<AgentOutput, Error> {
        self.attach_context();
        let outcome = driver::drive(self, input).await?;
        self.output(outcome)
    }

    /// Tells the machine what the host has attached.
    pub(crate) fn attach_context(&mut self) {
        let attached = self.state.dynamic_context.as_deref().map(Arc::from);
        let context = attached.or_else(|| self.own_context.clone());
        self.run.set_dynamic_context(context);
    }

    /// What a run came to that has just ended.
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

    /// Bytes that the run under way holds: see
    /// [`Remote::current_query_memory_usage`](crate::Remote::current_query_memory_usage).
    #[must_use]
    pub fn current_query_memory_usage(&self) -> usize {
        match self.run.is_running() {
            true => usize::try_from(self.run.state().memory().0).unwrap_or(usize::MAX),
            false => 0,
        }
    }

    /// What its spans say of it.
    pub(crate) fn scene(&self) -> Scene {
        Scene {
            session: Some(self.id().clone()),
            contents: self.parts.manner.contents,
        }
    }

    /// Says to those outside what the run under way holds.
    pub(crate) fn hold(&mut self) {
        let bytes = self.current_query_memory_usage();
        self.inbox.holds(bytes);
        self.held.set(bytes);
    }
}

/// What one session holds, as part of what all sessions of its agent hold.
#[derive(Debug, Default)]
pub(crate) struct HeldMemory {
    of_agent: Arc<AtomicUsize>,
    own: usize,
}

impl HeldMemory {
    /// A session of the agent that counts here, which holds nothing yet.
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
    /// Puts a value in; gives back the one of its type that was there.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) -> Option<Arc<T>> {
        let old = self.0.insert(TypeId::of::<T>(), Arc::new(value))?;
        old.downcast().ok()
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl AgentOutput {
    /// Returns what a run came to by its outcome alone: without steps and memory, which only the process
    /// that ran it knows.
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
