//! [`Run`]: the state machine.
//!
//! Pass it an [`Input`], then poll it until it returns `Wait` or `Finish`, and perform each [`Step`].
//! The machine itself performs no I/O.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_context::{
    Budget, Bytes, Calibration, CannotFit, Message, RESULT_SHARE, Seq, Tokens, ViewLimits,
};

use crate::entry::{Entry, LOG_FORMAT, Waiting};
use crate::event::{AppliedPlan, Event};
use crate::ledger::Ledger;
use crate::limits::LimitKind;
use crate::memory::RunMemory;
use crate::outcome::EndReason;
use crate::phase::{CurrentRun, Phase};
use crate::setup::{DeclaredTools, Setup};
use crate::state::{FoldError, State};
use crate::step::{Input, Now, Step};

/// The state machine of one session. It executes one run after another on the same log.
///
/// ```
/// # use std::sync::Arc;
/// use plimsoll_agent::{Input, Now, Run, Setup, Step};
/// use plimsoll_context::{Chars4, ContextStrategy, Part, Reply, StopReason};
///
/// let policy = ContextStrategy::default().policy(Default::default(), Default::default());
/// let setup = Setup::new("test/test", Arc::new(Chars4), policy);
/// let mut run = Run::resume(&[], setup)?;
/// run.handle(Now::default(), Input::User(vec![Part::text("What is 6 × 7?")].into()));
/// let outcome = loop {
///     match run.poll() {
///         Step::Call(_request) => {
///             let reply = Reply { parts: vec![Part::text("42")], stop: StopReason::Stop, usage: None, model: None };
///             run.handle(Now::default(), Input::Reply(Box::new(Ok(reply))));
///         }
///         Step::Finish(outcome) => break outcome,
///         _ => {}
///     }
/// };
/// assert_eq!(outcome.text, "42");
/// # Ok::<(), plimsoll_agent::FoldError>(())
/// ```
#[derive(Debug)]
pub struct Run {
    pub(crate) setup: Setup,
    pub(crate) state: State,
    pub(crate) phase: Phase,
    /// The steps that the driver has not polled yet.
    pub(crate) queue: VecDeque<Step>,
    /// The facts that came with the last input.
    pub(crate) now: Now,
    pub(crate) current: CurrentRun,
    pub(crate) tools: DeclaredTools,
    /// The server refused a tool choice of `none`. A last answer is then requested without tools.
    pub(crate) refuses_tool_choice: bool,
    /// The user was warned that the server reports too few tokens.
    pub(crate) is_doubted: bool,
    /// Rules of the host that are added as soon as no tool call is open.
    pub(crate) rules: Vec<String>,
    /// The last compaction that the user asked for and that was applied.
    pub(crate) compaction: Option<AppliedPlan>,
}

impl Run {
    /// Creates a machine that continues a log. An empty log starts a session.
    ///
    /// # Errors
    /// If the log is damaged or newer than this version.
    pub fn resume(log: &[Entry], setup: Setup) -> Result<Self, FoldError> {
        let mut state = State::for_setup(&setup);
        log.iter().try_for_each(|entry| state.absorb(entry))?;
        Ok(Self::of_state(state, setup))
    }

    /// Creates a machine that continues from a state. The state must be one for this setup: see
    /// [`State::for_setup`].
    #[must_use]
    pub fn of_state(mut state: State, setup: Setup) -> Self {
        if !state.running {
            // The peak of a run is known to the process that ran it, and to no other.
            state.memory = RunMemory::default();
        }
        Self {
            tools: DeclaredTools::new(&setup),
            current: CurrentRun::new(&setup, Seq::default()),
            refuses_tool_choice: false,
            is_doubted: false,
            setup,
            state,
            phase: Phase::Idle,
            queue: VecDeque::new(),
            now: Now::default(),
            rules: Vec::new(),
            compaction: None,
        }
    }

    /// Returns the state that results from the log so far.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns `true` if a run is in progress.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    /// Returns the setup of the next run.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Processes an input. The resulting steps are returned by [`Run::poll`].
    pub fn handle(&mut self, now: Now, input: Input) {
        self.now = self.now.followed_by(now, self.is_running());
        match input {
            Input::User(message) if self.is_running() => self.enqueue(Waiting::Steer, message),
            Input::FollowUp(message) if self.is_running() => {
                self.enqueue(Waiting::FollowUp, message);
            }
            Input::User(message) | Input::FollowUp(message) => self.start(message),
            Input::Continue => self.carry_on(),
            Input::Reply(reply) => self.replied(*reply),
            Input::Retried => self.retried(),
            Input::Rewritten { counted } => self.rewritten(counted),
            Input::ToolDone { result, spent } => self.tool_done(result, spent),
            Input::Answer { call, answer } => self.answered(&call, answer),
            Input::Summarized(reply) => self.summarized(*reply),
            Input::Decided(decision) => self.decided(decision),
            Input::Tick => self.tick(),
            Input::Interrupt => self.interrupt(),
        }
        // The steps that follow from this input belong to no call.
        self.now.partial_answers = Vec::new();
    }

    /// Returns the next step.
    pub fn poll(&mut self) -> Step {
        if self.queue.is_empty() {
            match self.phase {
                Phase::TurnDue => self.start_turn(),
                Phase::Preparing { is_vetoed } => self.prepare(is_vetoed),
                Phase::Working(_) => self.work(),
                Phase::Compacting { .. } => self.plan_compaction(),
                Phase::Idle | Phase::Calling(_) | Phase::Summarizing(..) | Phase::Deciding(_) => {}
            }
        }
        self.queue.pop_front().unwrap_or(Step::Wait)
    }

    /// Returns the limits of the view, including the window learned so far.
    #[must_use]
    pub fn line(&self) -> ViewLimits {
        let set = self.setup.line.window;
        let windows = [set, self.state.learned_beside(set)];
        ViewLimits {
            window: windows.into_iter().flatten().min(),
            max_output: self.current.max_output,
            is_cold: self.is_cold(),
            ..self.setup.line
        }
    }

    /// Returns the budget of the next request.
    pub(crate) fn budget(&self) -> Result<Budget, CannotFit> {
        let instructions = self.state.transcript.instructions();
        let calibration = self.calibration();
        self.line()
            .budget(self.tools.overhead, instructions, calibration)
    }

    /// Returns the budget for a plan that reduces the view to at most `goal`.
    pub(crate) fn budget_at(&self, goal: Tokens) -> Budget {
        let instructions = self.state.transcript.instructions();
        Budget {
            limit: goal,
            trigger: goal,
            target: goal,
            max_result: goal.minus(instructions).share(RESULT_SHARE),
            keep_recent: self.setup.line.keep_recent,
            overhead: self.tools.overhead,
            instructions,
        }
    }

    /// Returns the calibration of our counter for the next request.
    pub(crate) fn calibration(&self) -> Calibration {
        self.state.facts.calibration
    }

    /// Returns the size of the request that would be sent now.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.tools.overhead + self.state.transcript.tokens()
    }

    /// Returns how many more tokens can be sent.
    #[must_use]
    pub fn room(&self) -> Tokens {
        let budget = self.budget();
        let limit = budget.map_or(Tokens::ZERO, |budget| budget.limit);
        limit.minus(self.state.transcript.tokens())
    }

    /// Handles the size of the requested call after the host has rewritten it.
    fn rewritten(&mut self, counted: Tokens) {
        if let Phase::Calling(calling) = &mut self.phase {
            calling.counted = counted;
        }
    }

    /// Sets the memory that the driver holds for the run in addition to the messages, until it is set again.
    pub fn set_held_beside(&mut self, bytes: Bytes) {
        self.state.memory.set_beside(bytes);
        self.state.facts.ledger.memory = self.state.memory();
    }

    fn interrupt(&mut self) {
        if !self.is_running() {
            return;
        }
        self.queue.push_back(Step::Abort);
        if self.phase.is_compaction() {
            self.drop_digest();
            return self.end_compaction();
        }
        self.finish(EndReason::Interrupted);
    }

    /// Writes the first entry of an empty log, so that the session can be forked.
    pub fn open_log(&mut self) {
        if self.state.facts.format == 0 {
            self.append(Entry::Opened { format: LOG_FORMAT });
        }
    }

    /// Appends an entry to the log and applies it to the state. The first one opens the log.
    ///
    /// An entry that does not match the state is a bug in the machine. It is reported and not recorded,
    /// so that the log stays valid.
    pub(crate) fn record(&mut self, entry: Entry) -> bool {
        self.open_log();
        self.append(entry)
    }

    fn append(&mut self, mut entry: Entry) -> bool {
        if let Entry::Message { message, .. }
        | Entry::Reply { message, .. }
        | Entry::PartialReply { message, .. }
        | Entry::ToolResult { message, .. } = &mut entry
            && let Some(message) = Arc::get_mut(message)
        {
            // Texts of a stream have up to twice the memory that they need. A clone has no more.
            *message = message.clone();
        }
        match self.state.absorb(&entry) {
            Ok(()) => self.queue.push_back(Step::Record(entry)),
            Err(error) => {
                self.warn(format!("an entry was not recorded: {error}"));
                return false;
            }
        }
        true
    }

    /// Adds a notice for the model, sent in the role of the user.
    pub(crate) fn notice(&mut self, text: String) {
        self.record(Entry::Message {
            message: Arc::new(Message::Notice { text }),
            queued: None,
        });
    }

    pub(crate) fn notify(&mut self, event: Event) {
        self.queue.push_back(Step::Notify(event));
    }

    pub(crate) fn warn(&mut self, text: String) {
        self.notify(Event::Warning { text });
    }

    /// Returns `true` if the provider's cache has expired.
    pub(crate) fn is_cold(&self) -> bool {
        let sheet = self.setup.sheet;
        sheet.is_some_and(|sheet| sheet.is_cold_after(self.now.since_call))
    }

    /// Returns the limit of this kind if it is used up now.
    pub(crate) fn used_up(&self, kind: LimitKind) -> Option<EndReason> {
        self.tracker().used_up(kind, self.now.elapsed)
    }

    /// Returns the usage of the run, with its limits.
    #[must_use]
    pub fn tracker(&self) -> &Ledger {
        &self.state.facts.ledger
    }
}
