//! [`Session`]: an open session with its durable log.
//!
//! The loop itself is in the driver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_agent::{
    Cost, EndReason, Entry, ExecutionTracker, Outcome, Run, Setup, State, WindowUse,
};
use plimsoll_context::{Message, Seq, Tokens};
use tokio::task::JoinHandle;

use crate::agent_state::{AgentState, Extensions};
use crate::error::Error;
use crate::host_steps::Steps;
use crate::journal::LogChain;
use crate::output::AgentOutput;
use crate::parts::Parts;
use crate::remote::Remote;
use crate::run_usage::RunUsage;
use crate::store::{Lease, SessionId, StoreError};
use crate::telemetry::SpanContext;

/// Entries on their way to the store, and the task that writes them. It goes on if the run or the
/// session that waits for it is dropped.
pub(crate) type LogWrite = (Arc<Vec<Entry>>, JoinHandle<Result<(), StoreError>>);

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
    pub(crate) inbox: Remote,
    /// Entries that the machine has recorded but the store has not.
    pub(crate) pending: Vec<Entry>,
    /// The entries that are being written to the store.
    pub(crate) writing: Option<LogWrite>,
    /// Whether a write has failed, so that the session is ahead of its log.
    pub(crate) stale: bool,
    /// Whether the log has reached a new point that another process could continue from.
    pub(crate) reached: bool,
    /// The digests of the log, while a run is journaled.
    pub(crate) chain: Option<LogChain>,
    pub(crate) state: Arc<AgentState>,
    /// The steps of the current run.
    pub(crate) steps: Steps,
    /// The reservation of the run, and the usage of its calls under way.
    pub(crate) usage: RunUsage,
    /// When the current or most recent run began.
    pub(crate) started: tokio::time::Instant,
    /// How many answers of that run were refused.
    pub(crate) answers_refused: u32,
    /// How long ago the provider had answered or, before its first answer, the log had been written, and
    /// when that was so.
    pub(crate) answered: Option<(Duration, Instant)>,
    /// The key of the provider's prompt cache for this session.
    pub(crate) cache_key: Option<Arc<str>>,
    /// Whether a request had more messages than `max_history_messages`.
    pub(crate) has_warned_of_history: bool,
    /// The settings to restore after a run with other settings.
    pub(crate) base: Option<(Setup, Arc<Parts>)>,
    /// The agent's dynamic context, used if the host attaches none.
    pub(crate) own_context: Option<Arc<str>>,
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
            inbox: Remote::new(),
            pending: Vec::new(),
            writing: None,
            stale: false,
            reached: false,
            chain: None,
            state: Arc::new(state),
            steps: Steps::new(parts.settings.max_step_result),
            usage: RunUsage::default(),
            started: tokio::time::Instant::now(),
            answers_refused: 0,
            answered: None,
            cache_key: None,
            has_warned_of_history: false,
            base: None,
            own_context: None,
            parts,
        }
    }

    /// Returns the current use of the window.
    #[must_use]
    pub fn window_use(&self) -> WindowUse {
        self.run.window_use()
    }

    /// Returns the pinned items in view order.
    pub fn pinned(&self) -> impl Iterator<Item = (Seq, &Message)> {
        self.run.pinned()
    }

    /// Replaces the parts that the session works with, and returns the old ones.
    pub(crate) fn set_parts(&mut self, parts: Arc<Parts>) -> Arc<Parts> {
        // The cache state of one provider is meaningless for another.
        if parts.provider.endpoint() != self.parts.provider.endpoint() {
            self.answered = None;
        }
        std::mem::replace(&mut self.parts, parts)
    }

    /// Returns the time since the provider last answered. Before the first answer in this process,
    /// returns the time since the log was written, if the store knows it.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let (age, at) = self.answered?;
        Some(age.saturating_add(at.elapsed()))
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        self.lease.session()
    }

    /// Returns a remote that controls this session's runs from another task.
    #[must_use]
    pub fn remote(&self) -> Remote {
        self.inbox.clone()
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

    /// Returns the context of spans with this purpose, `turn` or `summary`.
    pub(crate) fn span_context(&self, purpose: &'static str) -> SpanContext {
        let setup = self.run.setup();
        let summary = setup.summary_model.as_ref();
        let summary = summary.filter(|_| purpose == "summary");
        SpanContext {
            purpose,
            session: Some(self.id().clone()),
            contents: self.parts.records_contents,
            prices: summary.map_or(setup.sheet, |model| model.sheet),
        }
    }

    /// Publishes the memory held by the current run.
    pub(crate) fn hold(&mut self) {
        self.inbox.holds(self.current_query_memory_usage());
    }
}
