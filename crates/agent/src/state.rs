//! [`State`]: the result of folding a log.
//!
//! Everything that survives a crash is part of the state and changes only when an entry is absorbed. A
//! live run and a resumed one are therefore always in the same state.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_context::{
    Bytes, Calibration, CallId, Item, Message, Part, PlanError, Seq, StopReason, TokenCounter,
    Tokens, ToolCall, Transcript, Usage,
};

use crate::batch::{Batch, CallKey, without_long_faults};
use crate::doom_loop::DoomLoopTracker;
use crate::entry::{Entry, LOG_FORMAT, Waiting};
use crate::ledger::Ledger;
use crate::limits::ExecutionLimits;
use crate::memory::RunMemory;
use crate::outcome::EndReason;
use crate::setup::Setup;
use crate::spend::{Cost, Spend};
use crate::tool_names::ToolNames;
use crate::undo::Marks;

/// The state of a session, computed from its log.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) transcript: Transcript,
    pub(crate) batch: Option<Batch>,
    pub(crate) doom_loop: DoomLoopTracker,
    /// A run has started and not ended.
    pub(crate) running: bool,
    /// Messages queued for the run.
    pub(crate) waiting: VecDeque<QueuedMessage>,
    pub(crate) marks: Marks,
    pub(crate) memory: RunMemory,
    pub(crate) facts: Facts,
}

/// The facts that a log leads to, beside its messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) calibration: Calibration,
    /// The tools of the newest run.
    pub(crate) names: ToolNames,
    pub(crate) learned: Option<Tokens>,
    /// The learned window was inferred, not reported by the provider.
    guessed: bool,
    /// The window that it was inferred for.
    assumed: Option<Tokens>,
    /// Number of turns of the session.
    turns: u64,
    /// The number of the turn in which the view was last compacted.
    compacted_in: Option<u64>,
    /// The size of the last answered request by our counter, and its usage as reported.
    pub(crate) heard: Option<(Tokens, Usage)>,
    /// The tokens that the last call read from the prompt cache and wrote there, unless a plan has
    /// rewritten them.
    pub(crate) cached: Tokens,
    /// The last item of the last request that is still as it was sent.
    pub(crate) sent: Option<Seq>,
    model: String,
    /// The session that the log was forked from first.
    root: Option<String>,
    pub(crate) format: u32,
    pub(crate) runs: u64,
    /// The newest answer is incomplete: the model only paused.
    pub(crate) paused: bool,
    /// The reason why the run ends after the next answer, once the model has been asked for it.
    pub(crate) finalizing: Option<EndReason>,
    pub(crate) ledger: Ledger,
    /// The usage of all runs of the session.
    total: Spend,
    /// Number of messages that were ever queued.
    pub(crate) queued: u64,
    /// The session has received a message of the user.
    pub(crate) tasked: bool,
}

/// The reason why a log cannot be folded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FoldError {
    /// The log was written by a newer version.
    #[error(
        "the session's log has format {found}, and this version reads up to {LOG_FORMAT}; use a newer plimsoll"
    )]
    Format {
        /// The format of the log.
        found: u32,
    },
    /// A plan does not match the view that it was recorded for.
    #[error("the session's log is damaged at a plan: {0}")]
    Plan(#[from] PlanError),
    /// A pinned item is not in the view, or has another content.
    #[error("the session's log is damaged: the pinned message {0} is missing")]
    Pin(Seq),
    /// The log rolls back an unknown run.
    #[error("the session's log is damaged: run {run} cannot be undone there")]
    Undo {
        /// The run.
        run: u64,
    },
    /// The log starts or answers a tool call that is not open.
    #[error(
        "the session's log is damaged: a tool call `{0}` starts or returns, but no message \
             contains it"
    )]
    Result(CallId),
}

/// A queued message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueuedMessage {
    pub(crate) id: u64,
    pub(crate) kind: Waiting,
    pub(crate) parts: Vec<Part>,
}

impl State {
    /// Checks whether the view contains a call of a tool with a matching name. Views that an undo
    /// would restore count as well.
    pub fn has_called(&self, matches: impl Fn(&ToolCall) -> bool) -> bool {
        let old = self.marks.0.iter().flat_map(|(_, items)| items);
        let items = old.chain(self.transcript.items());
        let mut calls = items.flat_map(|item| item.message.calls());
        calls.any(matches)
    }

    /// Returns the state of an empty log.
    #[must_use]
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            transcript: Transcript::new(counter),
            batch: None,
            doom_loop: DoomLoopTracker::default(),
            running: false,
            waiting: VecDeque::new(),
            marks: Marks::default(),
            memory: RunMemory::default(),
            facts: Facts::default(),
        }
    }

    /// Returns the state of an empty log for runs with this setup.
    #[must_use]
    pub fn for_setup(setup: &Setup) -> Self {
        let mut state = Self::new(Arc::clone(&setup.counter));
        state.set_limits(&setup.limits);
        state
    }

    /// Sets the limits of the next run.
    pub(crate) fn set_limits(&mut self, limits: &Arc<ExecutionLimits>) {
        self.facts.ledger.limits = Arc::clone(limits);
        if self.doom_loop.history() != limits.loop_history() {
            self.doom_loop = DoomLoopTracker::new(limits.loop_history());
        }
    }

    /// Folds a log.
    ///
    /// # Errors
    /// If the log is damaged or newer than this version.
    pub fn fold<'a>(
        counter: Arc<dyn TokenCounter>,
        log: impl IntoIterator<Item = &'a Entry>,
    ) -> Result<Self, FoldError> {
        let mut state = Self::new(counter);
        log.into_iter().try_for_each(|entry| state.absorb(entry))?;
        Ok(state)
    }

    /// Returns `true` if the view was compacted in the turn before the next one.
    pub(crate) fn compacted_last_turn(&self) -> bool {
        self.facts
            .compacted_in
            .is_some_and(|turn| turn.saturating_add(1) == self.facts.turns)
    }

    /// Applies one entry.
    ///
    /// # Errors
    /// If the entry does not match the entries before it; the state is then unchanged.
    pub fn absorb(&mut self, entry: &Entry) -> Result<(), FoldError> {
        self.apply(entry)?;
        let spend = entry.spend();
        let facts = &mut self.facts;
        facts.ledger.add(entry, spend);
        facts.ledger.memory = self.memory.held();
        facts.total = facts.total.combine(spend);
        Ok(())
    }

    fn apply(&mut self, entry: &Entry) -> Result<(), FoldError> {
        match entry {
            Entry::Opened { format } if *format > LOG_FORMAT => {
                return Err(FoldError::Format { found: *format });
            }
            Entry::Opened { format } => self.facts.format = *format,
            Entry::RunStarted {
                run, model, tools, ..
            } => {
                self.facts.names = ToolNames::new(tools.iter().map(String::as_str));
                // Learned values are valid for one model only.
                if self.facts.model != *model {
                    self.facts.model.clone_from(model);
                    self.facts.calibration = Calibration::default();
                    self.facts.learned = None;
                    self.facts.heard = None;
                    self.facts.cached = Tokens::ZERO;
                    self.facts.sent = None;
                }
                // A run that continues after a crash keeps its number and its usage.
                if self.facts.runs != *run {
                    // Only what this run adds is unread: an import or a failed run before it is past.
                    self.transcript.mark_sent();
                    self.facts.runs = *run;
                    self.facts.ledger.begin_run();
                    self.facts.finalizing = None;
                    self.doom_loop.forget();
                    let open = self.batch.as_ref();
                    self.marks.begin(*run, &self.transcript, open);
                    self.memory.begin(self.transcript.next_seq());
                }
                self.running = true;
            }
            Entry::Message { message, queued } => {
                if let Some(id) = queued {
                    self.waiting.retain(|queued| queued.id != *id);
                }
                // After a message of the user, repeating a call may make sense again.
                if message.is_user() {
                    self.facts.tasked = true;
                    self.doom_loop.forget();
                }
                self.memory.takes(message);
                self.transcript.push(Arc::clone(message));
            }
            Entry::Queued { id, kind, parts } => {
                self.facts.queued = self.facts.queued.max(*id);
                self.waiting.push_back(QueuedMessage {
                    id: *id,
                    kind: *kind,
                    parts: parts.clone(),
                });
            }
            Entry::Undelivered { ids } => {
                self.waiting.retain(|queued| !ids.contains(&queued.id));
            }
            // When a key is seen again, the log itself is searched for it. A summary only has usage.
            Entry::Accepted { .. } | Entry::Summarized { .. } => {}
            Entry::Warned { limit } => self.facts.ledger.warned.push(*limit),
            Entry::Finalizing { reason } => self.facts.finalizing = Some(reason.clone()),
            Entry::Reply {
                message,
                stop,
                usage,
                counted,
                ..
            } => {
                self.facts.paused = *stop == StopReason::Paused && !is_empty(message);
                self.facts.sent = self.transcript.items().last().map(|item| item.seq);
                self.facts.heard = usage.map(|usage| (*counted, usage));
                let cached = usage.map(|usage| usage.cache_read + usage.cache_write);
                self.facts.cached = cached.unwrap_or_default();
                self.transcript.mark_sent();
                if !is_empty(message) {
                    let message = without_long_faults(message);
                    self.memory.takes(&message);
                    self.batch = Batch::of(&message);
                    self.doom_loop.record_message(&message);
                    self.transcript.push(message);
                    self.transcript.mark_sent();
                }
                self.facts.turns += 1;
                if let Some(usage) = usage {
                    self.facts.calibration.observe(*counted, usage.processed());
                }
            }
            Entry::ToolStarted { call } => {
                let batch = self.batch.as_mut();
                if !batch.is_some_and(|batch| batch.begin(call)) {
                    return Err(FoldError::Result(call.clone()));
                }
            }
            Entry::ToolResult { message, .. } => {
                self.take(message)?;
                self.memory.takes(message);
            }
            Entry::PlanApplied { plan } => {
                let released = self.transcript.replay(plan)?;
                self.memory.planned(&released.items, &self.transcript);
                self.facts.sent = self.facts.sent.and_then(|sent| plan.keeps(sent));
                if plan.rewrites_from.is_some() {
                    self.facts.cached = Tokens::ZERO;
                }
                if plan.is_compaction() {
                    self.facts.compacted_in = Some(self.facts.turns);
                    self.facts.ledger.plans += 1;
                    self.facts.ledger.freed += released.freed;
                }
            }
            Entry::PartialReply { message, .. } => {
                if !is_empty(message) {
                    self.facts.paused = false;
                    self.memory.takes(message);
                    self.transcript.push(Arc::clone(message));
                }
            }
            Entry::Pinned { seq, pin } => {
                if !self.transcript.set_pin(*seq, pin.clone()) {
                    return Err(FoldError::Pin(*seq));
                }
            }
            Entry::Unpinned { seq } => {
                self.transcript.unpin(*seq);
            }
            Entry::WindowLearned {
                window,
                used,
                inferred,
                assumed,
            } => {
                self.facts.learned = Some(*window);
                self.facts.assumed = *assumed;
                self.facts.guessed = *inferred;
                if let Some((counted, reported)) = used {
                    self.facts.calibration.refused(*counted, *reported);
                }
            }
            Entry::RolledBack { run } => {
                if !self.roll_back(*run) {
                    return Err(FoldError::Undo { run: *run });
                }
                // An undone run is not continued.
                self.running = false;
            }
            Entry::Forked { from, .. } => {
                self.facts.root.get_or_insert_with(|| from.clone());
                self.running = false;
                self.facts.finalizing = None;
                self.waiting.clear();
                self.memory.end();
            }
            Entry::Branched {
                branches,
                winner,
                judged,
                ..
            } => {
                // The entries of the chosen branch follow and are counted then.
                let losers = branches.iter().enumerate();
                let losers = losers.filter(|(index, _)| Some(*index) != *winner);
                let spent = losers.map(|(_, branch)| branch.spent).chain([*judged]);
                self.facts.total = spent.fold(self.facts.total, Spend::combine);
            }
            Entry::RunEnded { outcome } => {
                // The window may have been inferred wrongly from the refusal. A guess that leaves no
                // tokens would end the session.
                if matches!(outcome.reason, EndReason::CannotFit { .. }) && self.facts.guessed {
                    self.facts.learned = None;
                    self.facts.guessed = false;
                }
                self.running = false;
                self.waiting.clear();
                self.memory.end();
            }
        }
        Ok(())
    }

    /// Returns the size of the model's last message and all messages after it. Zero if the model
    /// has not answered yet.
    pub(crate) fn newest_turn(&self) -> Tokens {
        let is_answer = |item: &Item| matches!(*item.message, Message::Assistant { .. });
        let items = self.transcript.items();
        let from = items.iter().rposition(is_answer).unwrap_or(items.len());
        items.iter().skip(from).map(|item| item.tokens).sum()
    }

    /// Returns the view.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Returns the number of tool calls without a result, including those that have not been started.
    #[must_use]
    pub fn open_calls(&self) -> u64 {
        let batch = self.batch.iter();
        batch.flat_map(|batch| batch.open()).count() as u64
    }

    /// Returns the usage of all runs of the session.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.facts.total.usage
    }

    /// Returns the cost of all runs of the session.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.facts.total.cost
    }

    /// Returns the memory that the current run takes in this process: its messages and the driver's
    /// data. 0 between runs. O(1).
    #[must_use]
    pub fn memory(&self) -> Bytes {
        self.memory.held()
    }

    /// Returns the most memory that the current or last run held at once.
    #[must_use]
    pub fn peak_memory(&self) -> Bytes {
        self.memory.peak()
    }

    /// Returns the number of runs of the session.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.facts.runs
    }

    /// Returns the model of the newest run, as `provider/name`. Empty before the first run.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.facts.model
    }

    /// Returns the session that the oldest entries of the log come from, if the log is a fork's.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        self.facts.root.as_deref()
    }

    /// Returns the learned window for runs in which this window is set.
    pub(crate) fn learned_beside(&self, set: Option<Tokens>) -> Option<Tokens> {
        let is_valid = !self.facts.guessed || self.facts.assumed == set;
        self.facts.learned.filter(|_| is_valid)
    }

    /// Returns the window that was learned from refused requests, if any.
    #[must_use]
    pub fn learned_window(&self) -> Option<Tokens> {
        self.facts.learned
    }

    fn take(&mut self, message: &Arc<Message>) -> Result<(), FoldError> {
        let Message::ToolResult(result) = message.as_ref() else {
            return Ok(());
        };
        let fault = || FoldError::Result(result.call.clone());
        let batch = self.batch.as_mut().ok_or_else(fault)?;
        if !batch.take(&result.call, Arc::clone(message)) {
            return Err(fault());
        }
        for message in batch.release() {
            self.transcript.push(message);
        }
        if batch.is_complete() {
            self.doom_loop
                .answered(batch.calls().map(|call| match call.result.as_deref() {
                    Some(Message::ToolResult(result)) if call.began => Some(result),
                    _ => None,
                }));
            self.batch = None;
        }
        Ok(())
    }
}

impl CallKey {
    /// Returns the key of a call of the model's newest message. Returns `None` if there is no such
    /// call.
    #[must_use]
    pub fn of(session: &Arc<str>, state: &State, call: &CallId) -> Option<Self> {
        let items = state.transcript.items().iter().rev();
        let mut answers = items.filter(|item| matches!(*item.message, Message::Assistant { .. }));
        let item = answers.next()?;
        let index = item.message.calls().position(|of| of.id == *call)?;
        Some(Self {
            session: Arc::clone(session),
            seq: item.seq,
            index,
        })
    }
}

/// Returns `true` if a message has no content that a provider would accept back.
pub(crate) fn is_empty(message: &Message) -> bool {
    message.parts().iter().all(|part| match part {
        Part::Text { text } => text.trim().is_empty(),
        Part::Thinking(_) => true,
        _ => false,
    })
}
