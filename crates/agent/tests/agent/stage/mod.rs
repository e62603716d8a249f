//! A stage for the machine: plays the provider, the tools, the gate and the store without async,
//! and records and checks the steps. Unlike a driver, it persists nothing and has no clock.

pub(crate) mod audit;
pub(crate) mod words;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{
    Answer, AtLimit, Decision, Entry, Event, EvictedMessage, ExecutionLimits, Failure, HookInput,
    HookPoint, Input, KnownTool, Now, Outcome, Question, Request, Run, Setup, Spend, Step,
    SummaryModel, TargetOf,
};
use plimsoll_context::{
    CallId, Chars4, ContextStrategy, Message, MessageList, Part, Policy, Reply, SessionPruneConfig,
    StopReason, SummaryConfig, Tokens, ToolCall, ToolResult, ToolSpec, Usage, ViewLimits,
};

/// Steps after which a run that has not ended never will.
const STEPS: usize = 100_000;

/// A machine under way, and everything that came out of it.
pub(crate) struct Stage {
    pub(crate) run: Run,
    /// The facts that go with each input.
    pub(crate) now: Now,
    pub(crate) setup: Setup,
    pub(crate) log: Vec<Entry>,
    /// How many entries the log had when this machine was made.
    pub(crate) born: usize,
    pub(crate) events: Vec<Event>,
    pub(crate) requests: Vec<SentRequest>,
    pub(crate) executed: Vec<ToolCall>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) aborts: usize,
    /// The most calls that ran at once.
    pub(crate) at_once: usize,
    pub(crate) calling: bool,
    again: bool,
    vetoed: bool,
    pub(crate) running: VecDeque<ToolCall>,
    pub(crate) asked: VecDeque<Question>,
    /// Calls for summaries that wait for an answer, at most one.
    pub(crate) summaries: VecDeque<Request>,
    /// Calls for summaries that were answered.
    pub(crate) asked_for: Vec<Request>,
    /// What the host says to every plan, unless it takes its time.
    pub(crate) verdict: Decision,
    /// Whether the host takes its time; then `left` says what it says.
    pub(crate) host_waits: bool,
    /// Whether it is asked just now.
    pub(crate) host_asked: bool,
    /// How often the host was asked about a plan, and what it was told that plans have affected.
    pub(crate) leaving: usize,
    pub(crate) gone: Vec<Vec<EvictedMessage>>,
    /// The host's hooks that were asked or told, in order.
    pub(crate) moments: Vec<HookInput>,
    /// The same among the events.
    pub(crate) story: Vec<Notification>,
    /// Those that say no, by name.
    pub(crate) refuses: BTreeSet<&'static str>,
}

/// What somebody outside was told or asked.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Notification {
    Event(Event),
    HookEvent(HookPoint),
}

/// A request as it went out, and what was known then.
pub(crate) struct SentRequest {
    pub(crate) request: Request,
    pub(crate) line: ViewLimits,
    /// How many entries the log had.
    pub(crate) at: usize,
    /// Whether it answers a refusal.
    pub(crate) again: bool,
    /// Whether the host wanted the view left as it is for it.
    pub(crate) vetoed: bool,
}

/// A setup with the tools `read` (idempotent), `write` (not) and `bash` (asks first).
pub(crate) fn setup() -> Setup {
    let prune = SessionPruneConfig::default();
    let policy = ContextStrategy::default().policy(Some(prune), SummaryConfig::default());
    Setup {
        system: "Be brief.".into(),
        tools: vec![
            tool("read", true, false),
            tool("write", false, false),
            tool("bash", false, true),
        ],
        line: ViewLimits {
            window: Some(Tokens(10_000)),
            ..ViewLimits::default()
        },
        recovery: Policy::recovery(prune, Some(SummaryConfig::default())),
        max_parallel_tools: 3,
        ..Setup::new("test/one", Arc::new(Chars4), policy)
    }
}

/// The hooks of a host that is asked about plans and told what they affect.
pub(crate) fn plan_hooks() -> BTreeSet<HookPoint> {
    [HookPoint::BeforeCompactionStart, HookPoint::OnEvict].into()
}

pub(crate) fn tool(name: &str, idempotent: bool, asks: bool) -> KnownTool {
    KnownTool {
        spec: ToolSpec {
            name: name.into(),
            description: format!("{name} something"),
            schema: serde_json::json!({ "type": "object" }),
        },
        idempotent,
        asks,
        edits_files: false,
        target: TargetOf::default(),
    }
}

pub(crate) fn limits(max_turns: u64, max_tool_calls: Option<u64>, at_limit: AtLimit) -> Setup {
    Setup {
        limits: Arc::new(ExecutionLimits {
            max_turns: Some(max_turns),
            max_tool_calls,
            at_limit: Some(at_limit),
            ..ExecutionLimits::turns(max_turns)
        }),
        ..setup()
    }
}

/// The same setup under a strategy and a window.
pub(crate) fn strategy(strategy: ContextStrategy, window: Option<u64>) -> Setup {
    let setup = setup();
    let prune = SessionPruneConfig::default();
    Setup {
        line: strategy.line(ViewLimits {
            window: window.map(Tokens),
            ..setup.line
        }),
        policy: strategy.policy(None, SummaryConfig::default()),
        recovery: Policy::recovery(prune, Some(SummaryConfig::default())),
        ..setup
    }
}

/// The strategy `summarize` with a trigger, and a summariser with a window of its own.
pub(crate) fn summarizing(trigger: u64, window: u64) -> Setup {
    let max_tokens = Some(Tokens(trigger));
    Setup {
        summary_model: Some(SummaryModel {
            model: "test/short".into(),
            window: Some(Tokens(window)),
            prompt: SummaryModel::PROMPT.into(),
            sheet: None,
        }),
        ..strategy(ContextStrategy::Summarize { max_tokens }, None)
    }
}

/// What a summariser says that does its work; `fact` is in it.
pub(crate) fn good_summary(fact: &str) -> String {
    format!(
        "## Goal\n- port the parser\n## Constraints\n- never touch vendor/\n## Decisions\n- {fact}\n\
         ## Files\n- src/parser.rs was read\n## Errors\n- none\n## Open work\n- the tests\n\
         ## Next step\n- run the tests"
    )
}

/// Reads a log of one entry a line.
pub(crate) fn read_log(golden: &str) -> Vec<Entry> {
    let lines = golden.lines();
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

impl Stage {
    pub(crate) fn new(setup: Setup) -> Self {
        Self::resume(Vec::new(), setup)
    }

    pub(crate) fn resume(log: Vec<Entry>, setup: Setup) -> Self {
        let run = Run::resume(&log, setup.clone()).expect("the log folds");
        Self {
            run,
            now: Now::default(),
            setup,
            born: log.len(),
            log,
            events: Vec::new(),
            requests: Vec::new(),
            executed: Vec::new(),
            outcomes: Vec::new(),
            aborts: 0,
            at_once: 0,
            calling: false,
            again: false,
            vetoed: false,
            summaries: VecDeque::new(),
            asked_for: Vec::new(),
            verdict: Decision::Go,
            host_waits: false,
            host_asked: false,
            leaving: 0,
            gone: Vec::new(),
            moments: Vec::new(),
            story: Vec::new(),
            refuses: BTreeSet::new(),
            running: VecDeque::new(),
            asked: VecDeque::new(),
        }
    }

    /// Tells the machine something and does what it says until it waits or ends.
    pub(crate) fn tell(&mut self, input: Input) {
        // The host may be asked between a refusal and the request that answers it.
        match &input {
            Input::Reply(reply) => self.again = reply.is_err(),
            _ if !self.run.is_running() => {
                self.again = false;
                self.now.elapsed = Duration::ZERO;
            }
            _ => {}
        }
        self.run.handle(self.now.clone(), input);
        self.rest();
    }

    /// Does what the machine says until it waits or ends.
    pub(crate) fn rest(&mut self) {
        for _ in 0..STEPS {
            match self.run.poll() {
                Step::Record(entry) => self.log.push(entry),
                Step::Notify(event) => {
                    self.story.push(Notification::Event(event.clone()));
                    self.events.push(event);
                }
                Step::Call(request) => {
                    assert!(!self.calling, "two model calls at once");
                    self.calling = true;
                    self.requests.push(SentRequest {
                        request: *request,
                        line: self.run.line(),
                        at: self.log.len(),
                        again: self.again,
                        vetoed: std::mem::take(&mut self.vetoed),
                    });
                }
                Step::Execute(call) => {
                    let began = Entry::ToolStarted {
                        call: call.id.clone(),
                    };
                    assert!(self.log.contains(&began), "it began before it was recorded");
                    self.executed.push(call.clone());
                    self.running.push_back(call);
                    self.at_once = self.at_once.max(self.running.len());
                }
                Step::Ask(question) => self.asked.push_back(question),
                Step::Summarize(request) => {
                    assert!(self.summaries.is_empty(), "two summaries at once");
                    self.summaries.push_back(*request);
                }
                Step::Before(HookInput::BeforeCompactionStart { .. }) => {
                    assert!(!self.host_asked, "asked twice at once");
                    self.leaving += 1;
                    self.host_asked = true;
                    if !self.host_waits {
                        let input = self.verdict_as_input(self.verdict.clone());
                        self.run.handle(self.now.clone(), input);
                    }
                }
                Step::Before(moment) => {
                    let name = moment.point().name();
                    self.met(moment);
                    let decision = if self.refuses.contains(name) {
                        Decision::No {
                            why: format!("{name} says no"),
                        }
                    } else {
                        Decision::Go
                    };
                    self.run.handle(self.now.clone(), Input::Decided(decision));
                }
                Step::After(HookInput::OnEvict { evicted }) => self.gone.push(evicted),
                Step::After(moment) => self.met(moment),
                Step::Abort => {
                    self.aborts += 1;
                    self.calling = false;
                    self.running.clear();
                    self.asked.clear();
                    self.summaries.clear();
                    self.host_asked = false;
                }
                Step::Finish(outcome) => {
                    assert!(!self.calling && self.running.is_empty() && self.asked.is_empty());
                    assert!(!self.run.is_running());
                    self.outcomes.push(outcome);
                    assert!(matches!(self.run.poll(), Step::Wait), "nothing follows");
                    return;
                }
                Step::Wait => return,
            }
        }
        panic!("the machine does not come to rest");
    }

    fn met(&mut self, moment: HookInput) {
        self.story.push(Notification::HookEvent(moment.point()));
        self.moments.push(moment);
    }

    /// The host, which takes its time, has made up its mind.
    pub(crate) fn left(&mut self, verdict: Decision) -> &mut Self {
        let input = self.verdict_as_input(verdict);
        self.tell(input);
        self
    }

    fn verdict_as_input(&mut self, verdict: Decision) -> Input {
        assert!(std::mem::take(&mut self.host_asked), "nobody has asked");
        self.vetoed = matches!(verdict, Decision::No { .. });
        Input::Decided(verdict)
    }

    pub(crate) fn say(&mut self, text: &str) -> &mut Self {
        self.tell(Input::User(vec![Part::text(text)].into()));
        self
    }

    pub(crate) fn go_on(&mut self) -> &mut Self {
        self.tell(Input::Continue);
        self
    }

    pub(crate) fn interrupt(&mut self) -> &mut Self {
        self.tell(Input::Interrupt);
        self
    }

    pub(crate) fn reply(&mut self, parts: Vec<Part>, usage: Option<Usage>) -> &mut Self {
        assert!(self.calling, "nobody has called the model");
        self.calling = false;
        self.tell(Input::Reply(Box::new(Ok(Reply {
            parts,
            stop: StopReason::Stop,
            usage,
            model: None,
        }))));
        self
    }

    /// The provider pauses in the middle of the turn.
    pub(crate) fn pause(&mut self, text: &str) -> &mut Self {
        assert!(self.calling, "nobody has called the model");
        self.calling = false;
        self.tell(Input::Reply(Box::new(Ok(Reply {
            parts: vec![Part::text(text)],
            stop: StopReason::Paused,
            usage: None,
            model: None,
        }))));
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.reply(vec![Part::text(text)], None)
    }

    /// Calls as `id:tool` or `id:tool:arguments`.
    pub(crate) fn calls(&mut self, calls: &[&str]) -> &mut Self {
        self.reply(calls.iter().map(|call| words::call(call)).collect(), None)
    }

    /// The summariser answers.
    pub(crate) fn summary(&mut self, text: &str) -> &mut Self {
        self.summary_reply(Ok(Reply {
            parts: vec![Part::text(text)],
            stop: StopReason::Stop,
            usage: Some(Usage {
                input: Tokens(700),
                output: Tokens(70),
                ..Usage::default()
            }),
            model: None,
        }))
    }

    pub(crate) fn summary_reply(&mut self, reply: Result<Reply, Failure>) -> &mut Self {
        let request = self.summaries.pop_front().expect("a summary is wanted");
        self.asked_for.push(request);
        self.tell(Input::Summarized(Box::new(reply)));
        self
    }

    pub(crate) fn refuse(&mut self, failure: Failure) -> &mut Self {
        assert!(self.calling, "nobody has called the model");
        self.calling = false;
        self.tell(Input::Reply(Box::new(Err(failure))));
        self
    }

    pub(crate) fn done(&mut self, id: &str, text: &str) -> &mut Self {
        let at = self.running.iter().position(|call| call.id.0 == id);
        self.running.remove(at.expect(id));
        let result = ToolResult {
            call: CallId(id.into()),
            parts: vec![Part::text(text)],
            is_error: false,
        };
        self.tell(Input::ToolDone {
            result,
            spent: Spend::default(),
        });
        self
    }

    pub(crate) fn answer(&mut self, id: &str, answer: Answer) -> &mut Self {
        let at = self.asked.iter().position(|asked| asked.call.id.0 == id);
        self.asked.remove(at.expect(id));
        self.tell(Input::Answer {
            call: CallId(id.into()),
            answer,
        });
        self
    }

    /// One turn with one call, whose result has so many bytes; summaries that are asked for before
    /// or beside it are answered by `answer`.
    pub(crate) fn turn(&mut self, n: usize, bytes: usize, answer: &mut dyn FnMut(&mut Self)) {
        self.summaries_by(answer);
        let id = format!("c{n}");
        let call = format!("{id}:read:{{\"path\":\"src/f{n}.rs\"}}");
        self.calls(&[&call]).done(&id, &filler(n, bytes));
        self.summaries_by(answer);
    }

    pub(crate) fn summaries_by(&mut self, answer: &mut dyn FnMut(&mut Self)) {
        for _ in 0..STEPS {
            if self.summaries.is_empty() {
                return;
            }
            answer(self);
        }
        panic!("summaries without end");
    }

    /// The messages of the newest request.
    pub(crate) fn seen(&self) -> &MessageList {
        &self.requests.last().expect("a request").request.messages
    }

    /// The texts of the summaries in the newest request.
    pub(crate) fn seen_summaries(&self) -> Vec<String> {
        let summaries = self.seen().iter();
        let summaries = summaries.filter(|m| matches!(***m, Message::Summary { .. }));
        summaries.map(|message| message.text()).collect()
    }

    /// How each summary ended, from the events: its calls, and why there was none.
    pub(crate) fn summaries_ended(&self) -> Vec<(u64, Option<String>)> {
        let ended = self.events.iter().filter_map(|event| match event {
            Event::SummaryEnded { calls, failure, .. } => Some((*calls, failure.clone())),
            _ => None,
        });
        ended.collect()
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Warning { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn plans(&self) -> usize {
        let plans = self.log.iter();
        plans
            .filter(|entry| matches!(entry, Entry::PlanApplied { .. }))
            .count()
    }

    /// Plays on with the shortest answers until the run ends.
    pub(crate) fn finish(&mut self) -> &Outcome {
        for _ in 0..STEPS {
            if !self.run.is_running() {
                return self.outcomes.last().expect("a run ended");
            }
            if self.calling {
                self.text("done");
            } else if let Some(call) = self.running.front() {
                let id = call.id.0.clone();
                self.done(&id, "ok");
            } else if let Some(question) = self.asked.front() {
                let id = question.call.id.0.clone();
                self.answer(&id, Answer::Allow);
            } else if !self.summaries.is_empty() {
                self.summary("");
            } else if self.host_asked {
                self.left(Decision::Go);
            } else {
                panic!("the machine waits for nothing that is under way");
            }
        }
        panic!("the run does not end");
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        self.outcomes.last().expect("a run ended")
    }

    /// The newest request, in words.
    pub(crate) fn last_request(&self) -> String {
        words::show(&self.requests.last().expect("a request").request)
    }

    /// The names of the calls that are running, in the order in which they began.
    pub(crate) fn running(&self) -> Vec<&str> {
        self.running.iter().map(|call| call.id.0.as_str()).collect()
    }

    pub(crate) fn executed(&self) -> Vec<&str> {
        self.executed
            .iter()
            .map(|call| call.id.0.as_str())
            .collect()
    }
}

/// A refusal for length, with what the provider says of sizes.
pub(crate) fn overflow(used: Option<u64>, window: Option<u64>) -> Failure {
    Failure::Overflow {
        used: used.map(Tokens),
        window: window.map(Tokens),
        message: "too long, said the provider".into(),
    }
}

/// A text of so many bytes, in lines, that says which one it is.
pub(crate) fn filler(n: usize, bytes: usize) -> String {
    let line = format!("line of result number {n}\n");
    let mut text = line.repeat(bytes / line.len() + 1);
    text.truncate(bytes);
    text
}
