//! [`Run`]: the state machine.
//!
//! Pass it an [`Input`], then poll it until it returns `Wait` or `Finish`, and perform each [`Step`].
//! The machine itself performs no I/O.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{
    Budget, Bytes, CacheBreak, Calibration, CallId, CannotFit, Draft, Line, Message, Plan, Price,
    RESULT_SHARE, Ready, Recall, Seq, StopReason, Tokens, ToolSpec, Trigger, Usage,
    price_with_head,
};

use crate::compact::{Compacting, Compaction};
use crate::decode::Prepared;
use crate::digest::Digest;
use crate::doom_loop::DoomLoopTracker;
use crate::entry::{Entry, Waiting};
use crate::event::{Event, TurnTrigger};
use crate::expect::Aside;
use crate::leave::Next;
use crate::memory::RunMemory;
use crate::opening::Deciding;
use crate::outcome::EndReason;
use crate::request::ToolChoice;
use crate::setup::Setup;
use crate::spend::Spend;
use crate::state::{FoldError, State};
use crate::step::{Input, Leaving, Step};
use crate::tracker::ExecutionTracker;
use crate::waste::Unanswered;

/// The state machine of one session. It executes one run after another on the same log.
///
/// ```
/// # use std::sync::Arc;
/// use plimsoll_agent::{Input, Run, Setup, Step};
/// use plimsoll_context::{Chars4, ContextStrategy, Part, Reply, StopReason};
///
/// let policy = ContextStrategy::default().policy(Default::default(), Default::default());
/// let setup = Setup::new("test/test", Arc::new(Chars4), policy);
/// let mut run = Run::resume(&[], setup)?;
/// run.handle(Input::User(vec![Part::text("What is 6 × 7?")]));
/// let outcome = loop {
///     match run.poll() {
///         Step::Call(_request) => {
///             let reply = Reply { parts: vec![Part::text("42")], stop: StopReason::Stop, usage: None, model: None };
///             run.handle(Input::Reply(Box::new(Ok(reply))));
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
    /// The tools that requests currently declare.
    pub(crate) specs: Arc<[ToolSpec]>,
    /// The current size of a request without the view.
    pub(crate) overhead: Tokens,
    /// The size of the tools that are added once a plan has been applied.
    pub(crate) joins: Tokens,
    /// A tool that is added with the first plan was called before it, for example in another client.
    pub(crate) called_before: bool,
    /// Lowered by the recovery ladder if the provider allows less.
    pub(crate) max_output: Option<Tokens>,
    /// Requests state a limit for the answer even if none is configured.
    pub(crate) names_limit: bool,
    pub(crate) state: State,
    pub(crate) phase: Phase,
    pub(crate) queue: VecDeque<Step>,
    /// Set once the model has been asked to finish: the reason why the run will end.
    pub(crate) finalizing: Option<EndReason>,
    /// Consecutive empty answers.
    pub(crate) empty_replies: u32,
    /// The first message of this run has at least this number.
    pub(crate) asked_at: Seq,
    /// Whether markers may offer recall. Cleared when the archive fails.
    pub(crate) recall: Recall,
    /// The archive has failed in this run, and the user was warned.
    pub(crate) archive_failed: bool,
    /// A summary in progress, and a finished one.
    pub(crate) digest: Option<Digest>,
    pub(crate) ready: Option<Ready>,
    /// The next plan is made without a model's summary, because one has just failed.
    pub(crate) summary_failed: bool,
    /// Consecutive failures of the summary model in this run.
    pub(crate) summary_failures: u32,
    /// The provider was asked to count the tokens of a request.
    pub(crate) measured: bool,
    /// The host has vetoed the plan for the next request.
    pub(crate) vetoed: bool,
    /// The request does not fit by the usual estimate of the provider's count, so the next one is
    /// planned with the lowest possible count.
    pub(crate) hopeful: bool,
    /// The user was warned that the provider reports too few tokens.
    pub(crate) told_low: bool,
    /// Rules of the host that are added as soon as no tool call is open.
    pub(crate) rules: Vec<String>,
    /// The time since the provider was last called, if known.
    pub(crate) idle: Option<Duration>,
    /// The duration of the run so far.
    pub(crate) elapsed: Duration,
    /// A turn has begun, and its request has no answer yet.
    pub(crate) in_turn: bool,
    /// The reason for the next turn.
    pub(crate) cause: TurnTrigger,
    /// The reason why the newest answer is incomplete, if it is.
    pub(crate) cut_off: Option<StopReason>,
    /// The server rejects requests with a tool choice of `none`.
    pub(crate) tool_choice_refused: bool,
    /// The turn whose call is answered and whose tools may still be running.
    pub(crate) turn_end: Option<Answered>,
    /// The run was accepted and announced.
    pub(crate) opened: bool,
    /// The reason why a filter rejected the last input.
    pub(crate) rejected: Option<String>,
    /// The parts of the last request that are not in the log.
    pub(crate) aside: Aside,
    /// The usage so far of tool calls in progress.
    pub(crate) metered: HashMap<CallId, Spend>,
    /// The usage so far of model calls in progress.
    pub(crate) unanswered: Unanswered,
    /// A compaction in progress that the user asked for.
    pub(crate) compacting: Option<Compacting>,
    /// The last such compaction that was applied.
    pub(crate) compaction: Option<Compaction>,
    /// The key of the message in the next input.
    pub(crate) key: Option<String>,
}

/// The current activity of the machine.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Idle.
    Idle,
    /// A request is due.
    Ready,
    /// Waiting for a model call.
    Calling(Calling),
    /// Running tool calls.
    Working(Working),
    /// Waiting for a summary that the next plan needs.
    Summarizing,
    /// Waiting for the provider's token count, which the next plan needs.
    Measuring {
        /// The size by our counter.
        counted: Tokens,
    },
    /// Waiting for the host to approve a plan.
    Leaving(Box<(Leaving, Next)>),
    /// Waiting for another decision of the host.
    Deciding(Deciding),
}

/// A turn whose model call is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) turn: u64,
    pub(crate) stop: StopReason,
    pub(crate) usage: Option<Usage>,
}

/// The properties of a model call that matter if it is refused or misses the cache.
#[derive(Debug, Clone)]
pub(crate) struct Calling {
    /// The request's size by our counter.
    pub(crate) counted: Tokens,
    /// The requested maximum number of tokens of the answer.
    pub(crate) max_output: Option<Tokens>,
    /// How often the request was refused as too long before.
    pub(crate) rung: u32,
    /// The tool choice of the request.
    pub(crate) tool_choice: ToolChoice,
    /// The reason why the call may miss the cache although the view is unchanged.
    pub(crate) not_view: Option<CacheBreak>,
}

/// The tool calls that this process is handling.
#[derive(Debug, Default)]
pub(crate) struct Working {
    /// Calls that may run and have not been started, in call order.
    pub(crate) ready: VecDeque<Prepared>,
    /// Calls that wait for approval.
    pub(crate) asking: HashMap<CallId, Prepared>,
    /// Calls that were approved.
    pub(crate) allowed: VecDeque<Prepared>,
    /// Calls that are running.
    pub(crate) running: HashMap<CallId, Prepared>,
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
    /// [`State::for_setup`] and [`State::restore`].
    #[must_use]
    pub fn of_state(mut state: State, setup: Setup) -> Self {
        if !state.running {
            // The peak of a run is known to the process that ran it, and to no other.
            state.memory = RunMemory::default();
        }
        let mut run = Self {
            specs: Arc::default(),
            overhead: Tokens::ZERO,
            joins: Tokens::ZERO,
            called_before: false,
            max_output: setup.max_output,
            names_limit: false,
            recall: setup.recall,
            archive_failed: false,
            setup,
            state,
            phase: Phase::Idle,
            queue: VecDeque::new(),
            finalizing: None,
            empty_replies: 0,
            asked_at: Seq::default(),
            digest: None,
            ready: None,
            summary_failed: false,
            summary_failures: 0,
            measured: false,
            vetoed: false,
            hopeful: false,
            told_low: false,
            rules: Vec::new(),
            idle: None,
            elapsed: Duration::ZERO,
            in_turn: false,
            cause: TurnTrigger::default(),
            cut_off: None,
            tool_choice_refused: false,
            turn_end: None,
            opened: false,
            rejected: None,
            aside: Aside::default(),
            metered: HashMap::new(),
            unanswered: Unanswered::default(),
            compacting: None,
            compaction: None,
            key: None,
        };
        run.set_tools();
        run
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

    /// Replaces the setup between two runs and returns the old one. The token counter is kept.
    pub fn set_setup(&mut self, setup: Setup) -> Setup {
        let setup = Setup {
            counter: Arc::clone(&self.setup.counter),
            ..setup
        };
        self.max_output = setup.max_output;
        self.names_limit = false;
        self.tool_choice_refused = false;
        self.recall = setup.recall;
        let history = setup.limits.loop_history();
        if self.state.doom_loop.history() != history {
            self.state.doom_loop = DoomLoopTracker::new(history);
        }
        self.measured = false;
        let before = std::mem::replace(&mut self.setup, setup);
        self.set_tools();
        before
    }

    /// Returns `true` if the tools that the first plan adds are declared.
    pub(crate) fn has_planned(&self) -> bool {
        self.state.planned || self.called_before
    }

    /// Updates the declared tools after a change of the setup or the view.
    pub(crate) fn set_tools(&mut self) {
        let joining: Vec<&str> = self
            .setup
            .joining()
            .map(|tool| tool.spec.name.as_str())
            .collect();
        let items = self.state.transcript.items().iter();
        // A provider may reject a request that contains a call of an undeclared tool.
        self.called_before = !joining.is_empty()
            && items
                .flat_map(|item| item.message.calls())
                .any(|call| joining.contains(&call.name.as_str()));
        self.declare();
    }

    /// Declares the tools of the next request.
    pub(crate) fn declare(&mut self) {
        let planned = self.has_planned();
        let declared = self.setup.declared(planned);
        self.specs = declared.map(|tool| tool.spec.clone()).collect();
        self.joins = match planned {
            true => Tokens::ZERO,
            false => self.setup.weight_of(self.setup.joining()),
        };
        self.overhead = self.setup.overhead_after(planned);
    }

    /// Returns the cost and the savings of a plan. If the plan adds tools, the provider also has to
    /// write the head of the request again.
    pub(crate) fn price_of_plan(&self, plan: &Plan, line: &Budget) -> Price {
        let head = (self.joins > Tokens::ZERO).then_some(self.overhead + self.joins);
        let (view, sheet) = (&self.state.transcript, self.setup.sheet.as_ref());
        price_with_head(plan, view, head, line, sheet, &self.outlook())
    }

    /// Sets the text that is appended to the history of each request from now on.
    pub fn set_dynamic_context(&mut self, context: Option<Arc<str>>) {
        self.setup.dynamic_context = context;
        self.overhead = self.setup.overhead_after(self.has_planned());
    }

    /// Sets the time since the provider was last called. If the provider's prompt cache may have
    /// expired by now, a plan costs nothing.
    ///
    /// The value is valid for one input, so it is set again before each of them.
    pub fn set_idle(&mut self, idle: Option<Duration>) {
        self.idle = idle;
    }

    /// Sets the key of the message in the next input. The log then has an [`Entry::Accepted`] before
    /// the message.
    pub fn set_key(&mut self, key: Option<String>) {
        self.key = key;
    }

    /// Processes an input. The resulting steps are returned by [`Run::poll`].
    pub fn handle(&mut self, input: Input) {
        let key = self.key.take();
        match input {
            Input::User(parts) if self.is_running() => self.enqueue(Waiting::Steer, parts, key),
            Input::FollowUp(parts) if self.is_running() => {
                self.enqueue(Waiting::FollowUp, parts, key);
            }
            Input::User(parts) | Input::FollowUp(parts) => self.start(parts, key),
            Input::Continue => self.carry_on(),
            Input::Reply(reply) => {
                self.book_unanswered();
                self.replied(*reply);
            }
            Input::Retried => self.retried(),
            Input::ToolDone {
                result,
                pins,
                spent,
            } => self.tool_done(result, pins, spent),
            Input::Answer { call, answer } => self.answered(&call, answer),
            Input::Summarized(reply) => self.summarized(*reply),
            Input::Measured(reported) => self.measured(reported),
            Input::Left(verdict) => self.left(verdict),
            Input::Decided(decision) => self.decided(decision),
            Input::Tick => self.tick(),
            Input::Interrupt => self.interrupt(),
        }
        self.unanswered = Unanswered::default();
    }

    /// Returns the next step.
    pub fn poll(&mut self) -> Step {
        if self.queue.is_empty() {
            match self.phase {
                Phase::Ready if self.compacting.is_some() => self.plan_asked(),
                Phase::Ready => self.request(),
                Phase::Working(_) => self.work(),
                Phase::Idle
                | Phase::Calling(_)
                | Phase::Summarizing
                | Phase::Measuring { .. }
                | Phase::Leaving(_)
                | Phase::Deciding(_) => {}
            }
        }
        self.queue.pop_front().unwrap_or(Step::Wait)
    }

    /// Returns the limits of the view, including the window learned so far.
    #[must_use]
    pub fn line(&self) -> Line {
        let known = self.setup.line.window;
        let window = match (known, self.state.learned) {
            (Some(known), Some(learned)) => Some(known.min(learned)),
            (known, learned) => known.or(learned),
        };
        Line {
            window,
            max_output: self.max_output,
            ..self.setup.line
        }
    }

    /// Returns the budget of the next request.
    pub(crate) fn budget(&self) -> Result<Budget, CannotFit> {
        self.budget_beside(self.overhead)
    }

    /// Returns the budget of the next request after a plan, which may declare further tools.
    pub(crate) fn budget_planned(&self) -> Result<Budget, CannotFit> {
        self.budget_beside(self.overhead + self.joins)
    }

    fn budget_beside(&self, overhead: Tokens) -> Result<Budget, CannotFit> {
        let instructions = self.state.transcript.instructions();
        let calibration = self.calibration();
        self.line().budget(overhead, instructions, calibration)
    }

    /// Returns the budget for a plan that reduces the view to at most `goal`.
    pub(crate) fn budget_at(&self, goal: Tokens) -> Budget {
        let instructions = self.state.transcript.instructions();
        Budget {
            limit: goal,
            trigger: goal,
            target: goal,
            forced: goal,
            cold_target: goal,
            max_result: goal.minus(instructions).share(RESULT_SHARE),
            keep_recent: self.setup.line.keep_recent,
            overhead: self.overhead + self.joins,
            instructions,
        }
    }

    /// Returns the calibration of our counter for the next request.
    pub(crate) fn calibration(&self) -> Calibration {
        let known = self.state.calibration;
        if self.hopeful {
            known.at_best(Tokens::ZERO).unwrap_or(known)
        } else {
            known
        }
    }

    /// Checks whether a request may fit although the estimate says that it does not.
    pub(crate) fn might_fit(&self, cannot_fit: &CannotFit) -> bool {
        let best = self.state.calibration.at_best(cannot_fit.minimum);
        !self.hopeful && best.is_some()
    }

    /// Plans the next request as if it fits, if that is possible. Only the server knows, and its answer
    /// corrects the estimate.
    pub(crate) fn may_fit(&mut self, cannot_fit: &CannotFit) -> bool {
        let may = self.might_fit(cannot_fit);
        self.hopeful |= may;
        may
    }

    /// Returns the size of the request that would be sent now.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.overhead + self.state.transcript.tokens()
    }

    /// Returns how many more tokens can be sent.
    #[must_use]
    pub fn room(&self) -> Tokens {
        let budget = self.budget();
        let limit = budget.map_or(Tokens::ZERO, |budget| budget.limit);
        limit.minus(self.state.transcript.tokens())
    }

    /// Sets the size of the pending request after the host has rewritten it.
    pub fn set_counted(&mut self, counted: Tokens) {
        if let Phase::Calling(calling) = &mut self.phase {
            calling.counted = counted;
            calling.not_view = Some(CacheBreak::Host);
        }
    }

    /// Sets the memory that the driver holds for the run in addition to the messages, and the most that
    /// it will hold of one more tool result.
    ///
    /// The values are valid for one input, so they are set again before each of them.
    pub fn set_held_beside(&mut self, bytes: Bytes, copy_of_result: Bytes) {
        self.state.memory.set_beside(bytes, copy_of_result);
    }

    fn interrupt(&mut self) {
        if !self.is_running() {
            return;
        }
        if self.compacting.is_some() {
            return self.stop_compacting();
        }
        self.queue.push_back(Step::Abort);
        self.finish(EndReason::Interrupted);
    }

    /// Appends an entry to the log and applies it to the state.
    ///
    /// An entry that does not match the state is a bug in the machine. It is reported and not recorded,
    /// so that the log stays valid.
    pub(crate) fn record(&mut self, mut entry: Entry) -> bool {
        if let Entry::Said { message, .. }
        | Entry::Replied { message, .. }
        | Entry::Returned { message, .. } = &mut entry
            && let Some(message) = Arc::get_mut(message)
        {
            message.shrink_to_fit();
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

    /// Adds a notice of the host for the model, between runs.
    ///
    /// Returns `false` and adds nothing while a run is in progress or tool calls have no results, since
    /// no message may be inserted between a call and its result.
    pub fn inform(&mut self, text: String) -> bool {
        if self.is_running() || self.state.batch.is_some() {
            return false;
        }
        self.open();
        self.notice(text);
        true
    }

    /// Adds a notice for the model, sent in the role of the user.
    pub(crate) fn notice(&mut self, text: String) {
        self.record(Entry::Said {
            message: Arc::new(Message::Notice { text }),
            queued: None,
        });
    }

    /// Records that a request was accepted, if it has a key.
    pub(crate) fn accept(&mut self, key: Option<String>) {
        if let Some(key) = key {
            self.record(Entry::Accepted { key });
        }
    }

    pub(crate) fn notify(&mut self, event: Event) {
        self.queue.push_back(Step::Notify(event));
    }

    pub(crate) fn warn(&mut self, text: String) {
        self.notify(Event::Warning { text });
    }

    /// Plans to remove protected messages of earlier runs so that the question of this run fits.
    /// Without it the session could not continue. Returns `None` if there is nothing to remove.
    pub(crate) fn give_up_the_past(&self, why: Trigger) -> Option<Plan> {
        let means = self.means();
        let mut draft =
            Draft::new(&self.state.transcript, self.setup.line.keep_recent).with_means(&means);
        draft.give_up(self.asked_at);
        draft.credit("give_up");
        draft.into_plan(why)
    }

    /// Returns the run's usage of its limits.
    #[must_use]
    pub fn tracker(&self) -> ExecutionTracker {
        let tally = &self.state.tally;
        let limits = Arc::clone(&self.setup.limits);
        ExecutionTracker {
            turns: tally.turns,
            tokens_used: tally.tokens(limits.count_tokens),
            cost_accumulated: tally.cost,
            tool_calls: tally.tool_calls.saturating_add(tally.spent.tool_calls),
            memory: self.state.memory(),
            started_at: Duration::ZERO,
            limits,
        }
    }
}
