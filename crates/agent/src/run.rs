//! [`Run`]: the machine. Tell it an [`Input`], then poll it until it says `Wait` or `Finish`, and
//! do what each [`Step`] says. It decides; it calls nobody.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use plimsoll_context::{CallId, CannotFit, Line, Message, Part, Plan, Tokens, ToolSpec};

use crate::entry::{Entry, LOG_FORMAT};
use crate::event::Event;
use crate::outcome::{EndReason, Outcome};
use crate::setup::Setup;
use crate::state::{FoldError, State};
use crate::step::{Input, Step};

/// Messages that wait to steer a run, at most; a further one is refused with a warning.
pub const MAX_STEERS: usize = 64;

/// One session's machine: it runs one run after another over the same log.
///
/// ```
/// # use std::sync::Arc;
/// # use plimsoll_agent::{Input, Run, Setup, Step, ExecutionLimits, Sampling};
/// # use plimsoll_context::{Chars4, ContextStrategy, Line, Part, Reply, SessionPruneConfig, StopReason};
/// # let prune = SessionPruneConfig::default();
/// # let setup = Setup { model: "test/test".into(), system: "".into(), dynamic_context: None,
/// #   tools: vec![], counter: Arc::new(Chars4), line: Line::default(),
/// #   policy: ContextStrategy::default().policy(prune), prune, limits: ExecutionLimits::default(),
/// #   max_parallel_tools: 1, max_output: None, sampling: Sampling::default() };
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
    pub(crate) specs: Arc<[ToolSpec]>,
    pub(crate) overhead: Tokens,
    /// Lowered by the ladder where a provider allows less.
    pub(crate) max_output: Option<Tokens>,
    pub(crate) state: State,
    pub(crate) phase: Phase,
    pub(crate) queue: VecDeque<Step>,
    pub(crate) steers: VecDeque<Vec<Part>>,
    /// Set once the model has been asked to finish: why the run will end.
    pub(crate) finalizing: Option<EndReason>,
    /// Empty answers in a row.
    pub(crate) empty_replies: u32,
    opened: bool,
}

/// What is under way.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Nothing.
    Idle,
    /// A request is due.
    Ready,
    /// A model call; `counted` is its request's weight, `rung` how often it was refused as too long.
    Calling { counted: Tokens, rung: u32 },
    /// Tool calls.
    Working(Working),
}

/// The tool calls that this process has in its hands.
#[derive(Debug, Default)]
pub(crate) struct Working {
    pub(crate) running: HashSet<CallId>,
    pub(crate) asking: HashSet<CallId>,
    pub(crate) allowed: HashSet<CallId>,
}

impl Run {
    /// A machine that carries on where a log ends; an empty log begins a session.
    ///
    /// # Errors
    /// Where the log is damaged or newer than this version.
    pub fn resume(log: &[Entry], setup: Setup) -> Result<Self, FoldError> {
        let state = State::fold(Arc::clone(&setup.counter), log)?;
        Ok(Self::with_state(state, setup, !log.is_empty()))
    }

    /// The same from a state that is folded already; `opened` says whether its log has entries.
    fn with_state(state: State, setup: Setup, opened: bool) -> Self {
        Self {
            specs: setup.tools.iter().map(|tool| tool.spec.clone()).collect(),
            overhead: setup.overhead(),
            max_output: setup.max_output,
            setup,
            state,
            phase: Phase::Idle,
            queue: VecDeque::new(),
            steers: VecDeque::new(),
            finalizing: None,
            empty_replies: 0,
            opened,
        }
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

    /// Sets what belongs after the history of each request from now on.
    pub fn set_dynamic_context(&mut self, context: Option<Arc<str>>) {
        self.setup.dynamic_context = context;
        self.overhead = self.setup.overhead();
    }

    /// Takes an input. What it leads to comes from [`Run::poll`].
    pub fn handle(&mut self, input: Input) {
        match input {
            Input::User(parts) if self.is_running() => self.steer(parts),
            Input::User(parts) => self.start(parts),
            Input::Continue => self.carry_on(),
            Input::Reply(reply) => self.replied(*reply),
            Input::ToolDone(result) => self.tool_done(result),
            Input::Answer { call, answer } => self.answered(&call, answer),
            Input::Interrupt => self.interrupt(),
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Step {
        if self.queue.is_empty() {
            match self.phase {
                Phase::Ready => self.request(),
                Phase::Working(_) => self.work(),
                Phase::Idle | Phase::Calling { .. } => {}
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

    /// The weight of what would be sent now.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.overhead + self.state.transcript.tokens()
    }

    fn start(&mut self, parts: Vec<Part>) {
        self.close_calls("not run: the session was carried on with a new message");
        self.begin();
        self.record(Entry::Said {
            message: Arc::new(Message::User { parts }),
        });
        self.phase = Phase::Ready;
    }

    fn carry_on(&mut self) {
        if self.is_running() {
            return;
        }
        self.begin();
        if self.state.batch.is_some() {
            self.settle_unknown_calls();
            self.phase = Phase::Working(Working::default());
        } else {
            self.phase = Phase::Ready;
        }
    }

    fn begin(&mut self) {
        if !self.opened {
            self.record(Entry::Opened { format: LOG_FORMAT });
            self.opened = true;
        }
        self.finalizing = None;
        self.empty_replies = 0;
        self.max_output = self.setup.max_output;
        let run = self.state.runs + 1;
        let model = self.setup.model.clone();
        self.record(Entry::Started {
            run,
            model: model.clone(),
            system: Arc::clone(&self.setup.system),
            tools: self
                .setup
                .tools
                .iter()
                .map(|tool| tool.spec.name.clone())
                .collect(),
        });
        self.notify(Event::AgentStart { run, model });
    }

    fn steer(&mut self, parts: Vec<Part>) {
        if self.steers.len() < MAX_STEERS {
            self.steers.push_back(parts);
        } else {
            self.warn(format!(
                "{MAX_STEERS} messages wait already; this one was not taken"
            ));
        }
    }

    fn interrupt(&mut self) {
        if !self.is_running() {
            return;
        }
        self.queue.push_back(Step::Abort);
        self.finish(EndReason::Interrupted);
    }

    /// Appends an entry to the log and takes it in. An entry that does not match the state is a
    /// fault of the machine: it is reported and not recorded, so that the log stays whole.
    pub(crate) fn record(&mut self, entry: Entry) -> bool {
        match self.state.absorb(&entry) {
            Ok(()) => self.queue.push_back(Step::Record(entry)),
            Err(error) => {
                self.warn(format!("an entry was not recorded: {error}"));
                return false;
            }
        }
        true
    }

    pub(crate) fn notify(&mut self, event: Event) {
        self.queue.push_back(Step::Notify(event));
    }

    pub(crate) fn warn(&mut self, text: String) {
        self.notify(Event::Warning { text });
    }

    /// Applies a plan as a recorded entry.
    pub(crate) fn apply(&mut self, plan: Plan) -> bool {
        let before = self.tokens();
        if !self.record(Entry::Planned { plan: plan.clone() }) {
            return false;
        }
        let after = self.tokens();
        self.notify(Event::CompactionEnded {
            plan,
            tokens_before: before,
            tokens_after: after,
        });
        true
    }

    /// Ends the run. Calls without a result get one, so that the view stays one that a provider
    /// accepts.
    pub(crate) fn finish(&mut self, reason: EndReason) {
        self.close_calls(match reason {
            EndReason::Interrupted => "not run: the run was interrupted",
            _ => "not run: the run ended",
        });
        let tally = self.state.tally;
        let outcome = Outcome {
            text: self.closing_text(&reason),
            reason,
            turns: tally.turns,
            tool_calls: tally.tool_calls,
            plans: tally.plans,
            freed: tally.freed,
            usage: tally.usage,
        };
        self.record(Entry::Ended {
            outcome: outcome.clone(),
        });
        self.notify(Event::AgentEnd {
            outcome: outcome.clone(),
        });
        self.queue.push_back(Step::Finish(outcome));
        self.phase = Phase::Idle;
        for _ in 0..self.steers.len() {
            self.warn("a message arrived after the run had ended and was not delivered".to_owned());
        }
        self.steers.clear();
    }

    pub(crate) fn cannot_fit(&mut self, cannot_fit: CannotFit) {
        self.finish(EndReason::CannotFit { cannot_fit });
    }
}
