//! [`Run`]: the machine. Tell it an [`Input`], then poll it until it says `Wait` or `Finish`, and
//! do what each [`Step`] says. It decides; it calls nobody.

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
use crate::opening::Deciding;
use crate::outcome::EndReason;
use crate::request::ToolChoice;
use crate::setup::Setup;
use crate::spend::Spend;
use crate::state::{FoldError, State};
use crate::step::{Input, Leaving, Step};
use crate::tracker::ExecutionTracker;
use crate::waste::Unanswered;

/// One session's machine: it runs one run after another over the same log.
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
    /// The tools that requests declare now.
    pub(crate) specs: Arc<[ToolSpec]>,
    /// What requests carry besides the view now.
    pub(crate) overhead: Tokens,
    /// What is added to that once a plan has been applied.
    pub(crate) joins: Tokens,
    /// A tool that joins with the first plan has been called before that, as in another client.
    pub(crate) called_before: bool,
    /// Lowered by the ladder where a provider allows less.
    pub(crate) max_output: Option<Tokens>,
    /// A limit of the answer is named also where none was asked for.
    pub(crate) names_limit: bool,
    pub(crate) state: State,
    pub(crate) phase: Phase,
    pub(crate) queue: VecDeque<Step>,
    /// Set once the model has been asked to finish: why the run will end.
    pub(crate) finalizing: Option<EndReason>,
    /// Empty answers in a row.
    pub(crate) empty_replies: u32,
    /// The first message of this run has this number or a later one.
    pub(crate) asked_at: Seq,
    /// Whether markers may offer recall: no longer once the archive has failed.
    pub(crate) recall: Recall,
    /// It has, in this run, and that was said.
    pub(crate) archive_failed: bool,
    /// A summary in the making, and one that is made.
    pub(crate) digest: Option<Digest>,
    pub(crate) ready: Option<Ready>,
    /// The next plan is made without a model's summary: one has just failed.
    pub(crate) summary_failed: bool,
    /// Failures of the summariser in a row, in this run.
    pub(crate) summary_failures: u32,
    /// The provider was asked what a request weighs.
    pub(crate) measured: bool,
    /// The host does not want the plan for the next request.
    pub(crate) vetoed: bool,
    /// The estimate of what the provider counts leaves no room, so the next request is planned with the
    /// least that it may count.
    pub(crate) hopeful: bool,
    /// It was said that the provider's reports are too low.
    pub(crate) told_low: bool,
    /// Rules of the host that are said as soon as no call is open.
    pub(crate) rules: Vec<String>,
    /// How long ago the provider was last called, where that is known.
    pub(crate) idle: Option<Duration>,
    /// How long the run has taken.
    pub(crate) elapsed: Duration,
    /// A turn has begun, and its request is not answered.
    pub(crate) in_turn: bool,
    /// What the next turn answers.
    pub(crate) cause: TurnTrigger,
    /// Why the newest answer is not whole, if it is not.
    pub(crate) cut_off: Option<StopReason>,
    /// The server takes no request that says that no tool may be called.
    pub(crate) tool_choice_refused: bool,
    /// A turn whose call is answered, and whose tools may be running.
    pub(crate) turn_end: Option<Answered>,
    /// The run was let in and told.
    pub(crate) opened: bool,
    /// Why a filter rejected what was said last.
    pub(crate) rejected: Option<String>,
    /// What the last request carried that no log tells of.
    pub(crate) aside: Aside,
    /// What calls under way have used so far.
    pub(crate) metered: HashMap<CallId, Spend>,
    /// What model calls under way have used so far without a reply.
    pub(crate) unanswered: Unanswered,
    /// A plan that somebody has asked for.
    pub(crate) compacting: Option<Compacting>,
    /// The last of them that was applied.
    pub(crate) compaction: Option<Compaction>,
    /// The key of the message that the next input says.
    pub(crate) key: Option<String>,
}

/// What is under way.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Nothing.
    Idle,
    /// A request is due.
    Ready,
    /// A model call.
    Calling(Calling),
    /// Tool calls.
    Working(Working),
    /// A summary, which the next plan waits for.
    Summarizing,
    /// The weight of a request, which the next plan waits for.
    Measuring {
        /// By our counter.
        counted: Tokens,
    },
    /// A plan that the host has not yet let pass.
    Leaving(Box<(Leaving, Next)>),
    /// Something else that the host has not yet let pass.
    Deciding(Deciding),
}

/// A turn whose call is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) turn: u64,
    pub(crate) stop: StopReason,
    pub(crate) usage: Option<Usage>,
}

/// A model call, as far as it matters if it is refused or misses the cache.
#[derive(Debug, Clone)]
pub(crate) struct Calling {
    /// The request's weight by our counter.
    pub(crate) counted: Tokens,
    /// The tokens of the answer that it asked for, at most.
    pub(crate) max_output: Option<Tokens>,
    /// How often it was refused as too long before.
    pub(crate) rung: u32,
    /// Whether it said that no tool may be called.
    pub(crate) tool_choice: ToolChoice,
    /// Why it may miss the cache though the view is as it was.
    pub(crate) not_view: Option<CacheBreak>,
}

/// The tool calls that this process has in its hands.
#[derive(Debug, Default)]
pub(crate) struct Working {
    /// Those that may run and have not begun, in call order.
    pub(crate) ready: VecDeque<Prepared>,
    /// Those that somebody is asked about.
    pub(crate) asking: HashMap<CallId, Prepared>,
    /// Those that somebody has allowed.
    pub(crate) allowed: VecDeque<Prepared>,
    /// Those that run.
    pub(crate) running: HashMap<CallId, Prepared>,
}

impl Run {
    /// A machine that carries on where a log ends; an empty log begins a session.
    ///
    /// # Errors
    /// Where the log is damaged or newer than this version.
    pub fn resume(log: &[Entry], setup: Setup) -> Result<Self, FoldError> {
        let mut state = State::new(Arc::clone(&setup.counter));
        state.doom_loop = DoomLoopTracker::new(setup.limits.loop_history());
        log.iter().try_for_each(|entry| state.absorb(entry))?;
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
        Ok(run)
    }

    /// What the log so far amounts to.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether a run is under way.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    /// What the next run is given.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Gives the next run another setup, between two runs, and gives back the one before. The view is
    /// weighed as before: the counter stays.
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

    /// Whether the tools that join with the first plan are declared.
    pub(crate) fn has_planned(&self) -> bool {
        self.state.planned || self.called_before
    }

    /// Notes which tools the setup has and the view calls for.
    pub(crate) fn set_tools(&mut self) {
        let joining: Vec<&str> = self
            .setup
            .joining()
            .map(|tool| tool.spec.name.as_str())
            .collect();
        let items = self.state.transcript.items().iter();
        // A provider may refuse a request with a call of a tool that is not declared.
        self.called_before = !joining.is_empty()
            && items
                .flat_map(|item| item.message.calls())
                .any(|call| joining.contains(&call.name.as_str()));
        self.declare();
    }

    /// Declares the tools that belong to the next request.
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

    /// Returns what a plan costs and saves. Tools that join with it make the provider write the head
    /// again as well.
    pub(crate) fn price_of_plan(&self, plan: &Plan, line: &Budget) -> Price {
        let head = (self.joins > Tokens::ZERO).then_some(self.overhead + self.joins);
        let (view, sheet) = (&self.state.transcript, self.setup.sheet.as_ref());
        price_with_head(plan, view, head, line, sheet, &self.outlook())
    }

    /// Sets what belongs after the history of each request from now on.
    pub fn set_dynamic_context(&mut self, context: Option<Arc<str>>) {
        self.setup.dynamic_context = context;
        self.overhead = self.setup.overhead_after(self.has_planned());
    }

    /// Says how long ago the provider was last called: its prompt cache may be cold by now, and a
    /// plan cost nothing. It is a fact of the moment, so it is told anew before each input.
    pub fn set_idle(&mut self, idle: Option<Duration>) {
        self.idle = idle;
    }

    /// Says that the next input is a message with this key: [`Entry::Accepted`] precedes it in the log.
    pub fn set_key(&mut self, key: Option<String>) {
        self.key = key;
    }

    /// Takes an input. What it leads to comes from [`Run::poll`].
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

    /// The next thing to do.
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

    /// Where the view must stop, as far as it is known by now.
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

    /// Returns the budget for a plan that brings the view to at most `goal`, whatever it weighs.
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

    /// Returns what the provider's tokens are in ours, for the next request.
    pub(crate) fn calibration(&self) -> Calibration {
        let known = self.state.calibration;
        if self.hopeful {
            known.at_best(Tokens::ZERO).unwrap_or(known)
        } else {
            known
        }
    }

    /// Checks whether a request that the estimate leaves no room for may fit all the same.
    pub(crate) fn might_fit(&self, cannot_fit: &CannotFit) -> bool {
        let best = self.state.calibration.at_best(cannot_fit.minimum);
        !self.hopeful && best.is_some()
    }

    /// Plans the next request as if it did. Only the server can tell, and its answer corrects the
    /// estimate.
    pub(crate) fn may_fit(&mut self, cannot_fit: &CannotFit) -> bool {
        let may = self.might_fit(cannot_fit);
        self.hopeful |= may;
        may
    }

    /// The weight of what would be sent now.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.overhead + self.state.transcript.tokens()
    }

    /// How much more may be sent than would be sent now.
    #[must_use]
    pub fn room(&self) -> Tokens {
        let budget = self.budget();
        let limit = budget.map_or(Tokens::ZERO, |budget| budget.limit);
        limit.minus(self.state.transcript.tokens())
    }

    /// Says what the request that was asked for weighs as it is sent, where the host has rewritten it.
    pub fn set_counted(&mut self, counted: Tokens) {
        if let Phase::Calling(calling) = &mut self.phase {
            calling.counted = counted;
            calling.not_view = Some(CacheBreak::Host);
        }
    }

    /// Says how much the driver holds for the run besides its messages, and how much it will hold of one
    /// more tool result at most. It is a fact of the moment, so it is told anew before each input.
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

    /// Appends an entry to the log and takes it in. An entry that does not match the state is a
    /// fault of the machine: it is reported and not recorded, so that the log stays whole.
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

    /// Says something to the model in the host's name, between runs. Returns `false`, and says nothing,
    /// while a run is under way or tool calls wait for their results: nothing may stand between the two.
    pub fn inform(&mut self, text: String) -> bool {
        if self.is_running() || self.state.batch.is_some() {
            return false;
        }
        self.open();
        self.notice(text);
        true
    }

    /// Says something to the model in the user's place.
    pub(crate) fn notice(&mut self, text: String) {
        self.record(Entry::Said {
            message: Arc::new(Message::Notice { text }),
            queued: None,
        });
    }

    /// Notes that a request was taken, if it has a key.
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

    /// Makes room for this run's own question where it does not fit beside what is protected from
    /// earlier runs: the session would be dead otherwise. `None` where there is nothing to give up.
    pub(crate) fn give_up_the_past(&self, why: Trigger) -> Option<Plan> {
        let means = self.means();
        let mut draft =
            Draft::new(&self.state.transcript, self.setup.line.keep_recent).with_means(&means);
        draft.give_up(self.asked_at);
        draft.credit("give_up");
        draft.into_plan(why)
    }

    /// What the run has used of its limits.
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
