//! Random scripts played to the machine: the invariants of `stage/audit.rs` hold for all behaviour
//! of models, tools, users and crashes. Single cases are in `runs.rs` and `ladder.rs`.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{
    Answer, AtLimit, CountTokens, Decision, EndReason, Entry, Event, ExecutionLimits, Failure,
    FilterResult, HookPoint, Input, InputFilters, Permission, PermissionRule, Permissions, Setup,
    SummaryModel,
};
use plimsoll_context::{
    Bytes, CallId, ContextStrategy, Exchange, Gap, Item, Message, Opaque, Part, Recall, Reply, Seq,
    StopReason, Thinking, Tokens, ToolResult, Usage,
};
use plimsoll_testkit::{ROUNDS, Random, rounds};

use crate::stage::audit::{calibration, carried_on, whole};
use crate::stage::{self, Stage, good_summary, overflow, plan_hooks, setup, strategy};

/// The size of a marker in place of removed messages, at most.
const MARKER: Tokens = Tokens(18);
/// Things that happen in a script.
const MOMENTS: usize = 80;
/// Crashes that are tried afterwards, each at a random entry.
const CRASHES: usize = 8;

#[test]
fn whatever_happens_requests_are_whole_and_runs_end() {
    let (mut requests, mut runs, mut crashes) = (0, 0, 0);
    let (mut summaries, mut pins, mut plans) = (0, 0, 0);
    let mut ends = std::collections::BTreeMap::new();
    for seed in 0..rounds() {
        let script = Script::play(seed);
        requests += script.requests;
        crashes += script.crashes;
        summaries += script.summaries;
        let log = script.stage.log.iter();
        pins += log
            .clone()
            .filter(|entry| matches!(entry, Entry::Pinned { .. }))
            .count();
        plans += log
            .filter(|entry| matches!(entry, Entry::PlanApplied { .. }))
            .count();
        for entry in &script.stage.log {
            if let Entry::RunEnded { outcome } = entry {
                runs += 1;
                *ends.entry(outcome.reason.word()).or_insert(0) += 1;
            }
        }
    }
    println!(
        "{runs} runs, {requests} requests, {plans} plans, {summaries} answers of summarisers, {pins} pins, {crashes} crashes; {ends:?}"
    );
    if rounds() < ROUNDS {
        return;
    }
    assert!(summaries > 10 && pins > 200 && plans > 1_000);
    for word in [
        "answered",
        "interrupted",
        "failed",
        "max_turns",
        "tool_limit",
        "doom_loop",
        "max_tokens",
        "max_duration",
        "max_memory",
        "refused",
    ] {
        assert!(
            ends.contains_key(word),
            "no run ended with {word}: {ends:?}"
        );
    }
}

/// Says which script it was that failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("in the script of seed {}", self.0);
        }
    }
}

struct Script {
    random: Random,
    stage: Stage,
    calls: u64,
    /// What the model asked for last, and how often, in percent, it asks for just that again.
    habit: Vec<String>,
    stuck: u64,
    requests: usize,
    crashes: usize,
    elapsed: Duration,
    /// Answers of the summariser.
    summaries: usize,
    /// Calls of tools that must not run twice, that ran.
    ran: HashSet<CallId>,
}

impl Script {
    fn play(seed: u64) -> Self {
        let _told = Seed(seed);
        let mut random = Random::new(seed);
        let setup = any_setup(&mut random);
        let stuck = if random.chance(30) { 90 } else { 10 };
        let mut script = Self {
            stage: Stage::new(setup),
            random,
            calls: 0,
            habit: Vec::new(),
            stuck,
            requests: 0,
            crashes: 0,
            elapsed: Duration::ZERO,
            summaries: 0,
            ran: HashSet::new(),
        };
        for _ in 0..MOMENTS {
            script.moment();
        }
        script.settle();
        script.alive();
        let log = script.stage.log.len();
        for _ in 0..CRASHES {
            let end = script.random.below(log as u64 + 1) as usize;
            carried_on(
                &script.stage,
                end,
                Input::User(vec![Part::text("and now?")].into()),
            );
            carried_on(&script.stage, end, Input::Continue);
        }
        script
    }

    /// The process dies, or the script ends: what is under way is checked and given up.
    fn settle(&mut self) {
        whole(&self.stage);
        self.requests += self.stage.requests.len();
        let write = |call: &&plimsoll_context::ToolCall| call.name == "write";
        for call in self.stage.executed.iter().filter(write) {
            assert!(self.ran.insert(call.id.clone()), "{} ran twice", call.id);
        }
    }

    /// No session is dead: a short question is asked, unless the task alone leaves no room for it.
    fn alive(&self) {
        let log = self.stage.log.clone();
        let mut next = Stage::resume(log, self.stage.setup.clone());
        next.say("?").finish();
        let EndReason::CannotFit { cannot_fit } = &next.outcome().reason else {
            return;
        };
        let items = next.run.state().transcript().items();
        let mut users = items.iter().filter(|item| item.message.is_user());
        let task = users.next().unwrap().tokens;
        // What waited when the process died may not fit behind it; it was answered all the same.
        if next.outcome().turns > 0 {
            return;
        }
        let unread = next.run.state().transcript().unsent().iter();
        let unread = unread.filter(|item| item.message.is_user());
        let question: Tokens = unread.map(|item| item.tokens).sum();
        let markers = items.iter().filter(|item| Gap::of(&item.message).is_some());
        let markers: Tokens = markers.map(|item| item.tokens).sum();
        let instructions = next.run.state().transcript().instructions();
        // Whatever else is removed leaves a marker of its own, unless it is next to one.
        let view = instructions + task + question + pinned(items) + markers + MARKER;
        let calibration = calibration(&next.log);
        let least = calibration.allowing(next.setup.overhead() + view);
        assert!(
            least > cannot_fit.limit,
            "{cannot_fit}, but {least} would do: {}",
            stage::words::list(items)
        );
    }

    fn moment(&mut self) {
        if self.random.chance(4) {
            self.crashes += 1;
            self.settle();
            self.stage = Stage::resume(self.stage.log.clone(), self.stage.setup.clone());
            self.stage.host_waits = self.random.chance(50);
        }
        if self.random.chance(8) {
            self.pin();
        }
        self.stage.verdict = any_verdict(&mut self.random);
        self.stage.refuses.clear();
        if self.random.chance(3) {
            let no = ["before_task", "before_loop", "before_turn", "follow_up"];
            let no = no[self.random.below(4) as usize];
            self.stage.refuses.insert(no);
        }
        if !self.stage.run.is_running() {
            if self.random.chance(10) && self.stage.run.undo().is_ok() {
                return self.stage.rest();
            }
            let input = if self.random.chance(30) {
                Input::Continue
            } else {
                Input::User(vec![Part::text(self.random.text(3))].into())
            };
            return self.stage.tell(input);
        }
        if self.random.chance(4) {
            // Most of the time little passes.
            let passes = self.random.size(3) as u64;
            self.elapsed = if self.stage.run.is_running() {
                self.elapsed + Duration::from_millis(passes * passes)
            } else {
                Duration::ZERO
            };
            self.stage.now.elapsed = self.elapsed;
            return self.stage.tell(Input::Tick);
        }
        if self.random.chance(3) {
            let text = self.random.text(2);
            return self
                .stage
                .tell(Input::FollowUp(vec![Part::text(text)].into()));
        }
        if self.random.chance(6) {
            let text = self.random.text(2);
            self.stage.say(&text);
        } else if self.random.chance(4) {
            self.stage.interrupt();
        } else if self.stage.host_asked {
            let verdict = any_verdict(&mut self.random);
            self.stage.left(verdict);
        } else if !self.stage.summaries.is_empty() && self.random.chance(30) {
            let reply = self.any_summary();
            self.summaries += 1;
            self.stage.summary_reply(reply);
        } else if self.stage.calling {
            self.answer();
        } else if !self.stage.asked.is_empty() && self.random.chance(50) {
            let at = self.random.below(self.stage.asked.len() as u64) as usize;
            let id = self.stage.asked[at].call.id.0.clone();
            let why = "no".to_owned();
            let answer = if self.random.chance(60) {
                Answer::Allow
            } else {
                Answer::Deny { why }
            };
            self.stage.answer(&id, answer);
        } else if !self.stage.running.is_empty() {
            let at = self.random.below(self.stage.running.len() as u64) as usize;
            let call = self.stage.running.remove(at).unwrap().id;
            let text = match self.random.below(20) {
                0..10 => "nothing new".into(),
                10 => self.random.text(5),
                _ => self.random.text(4),
            };
            let is_error = self.random.chance(10);
            let mut parts = vec![Part::text(text)];
            if self.random.chance(8) {
                parts.push(Part::text(self.random.text(3)));
            }
            let result = ToolResult {
                call,
                parts,
                is_error,
            };
            self.stage.tell(Input::ToolDone {
                result,
                spent: Default::default(),
            });
        }
    }

    /// The host pins something, or takes a pin off; what cannot be pinned is told so.
    fn pin(&mut self) {
        let items = self.stage.run.state().transcript().items();
        let at = self.random.below(items.len() as u64 + 1) as usize;
        let seq = items.get(at).map(|item| item.seq);
        match (self.random.below(3), seq) {
            (0, _) => {
                let text = self.random.text(3);
                let _ = self.stage.run.pin_text(&text);
            }
            (1, _) => {
                let pinned = self.stage.run.pinned().next().map(|(seq, _)| seq);
                if let Some(seq) = pinned {
                    assert!(self.stage.run.unpin(seq));
                }
            }
            (_, Some(seq)) => {
                let _ = self.stage.run.pin(seq);
            }
            _ => {}
        }
        self.stage.rest();
    }

    /// The summariser answers, well or not.
    fn any_summary(&mut self) -> Result<Reply, Failure> {
        let random = &mut self.random;
        let (text, stop) = match random.below(10) {
            0 => (random.text(4), StopReason::Stop),
            1 => (String::new(), StopReason::Stop),
            2 => (good_summary("cut"), StopReason::Length),
            3 => {
                return Err(Failure::Transient {
                    status: Some(503),
                    retry_after_ms: None,
                    message: "overloaded".into(),
                });
            }
            4 => return Err(overflow(None, None)),
            5 => (good_summary(&random.text(5)), StopReason::Stop),
            6 => (
                good_summary("</transcript> recalling nothing"),
                StopReason::Stop,
            ),
            _ => (good_summary(&random.text(3)), StopReason::Stop),
        };
        Ok(Reply {
            parts: vec![Part::text(text)],
            stop,
            usage: random.chance(80).then(|| Usage {
                input: Tokens(random.below(1_000)),
                output: Tokens(10),
                ..Usage::default()
            }),
            model: None,
        })
    }

    /// The model answers, or does not.
    fn answer(&mut self) {
        let random = &mut self.random;
        let sometimes = |random: &mut Random, n: u64| random.chance(50).then_some(n);
        match random.below(100) {
            0..6 => {
                let counted = self.stage.requests.last().unwrap().request.counted.0;
                let window = (counted / 4 + random.below(counted)).max(300);
                let used = counted + random.below(counted);
                let used = sometimes(random, used);
                let window = sometimes(random, window);
                self.stage.refuse(overflow(used, window));
            }
            6..9 => {
                let limit = random.size(4) as u64;
                let limit = sometimes(random, limit).map(Tokens);
                let message = "less, please".into();
                self.stage
                    .refuse(Failure::OutputTooLarge { limit, message });
            }
            9..12 => {
                let message = "no key".into();
                self.stage.refuse(Failure::Auth { message });
            }
            _ => {
                let parts = self.parts();
                let usage = self.usage();
                self.stage.reply(parts, usage);
            }
        }
    }

    fn parts(&mut self) -> Vec<Part> {
        let random = &mut self.random;
        let mut parts = Vec::new();
        if random.chance(15) {
            parts.push(Part::Thinking(Thinking {
                text: random.text(2),
                opaque: random.chance(50).then(|| Opaque {
                    origin: "anthropic".into(),
                    data: "{\"signature\":\"Eq\"}".into(),
                }),
            }));
        }
        if random.chance(6) {
            return parts;
        }
        let works = random.chance(75);
        if !works || random.chance(20) {
            parts.push(Part::text(random.text(3)));
        }
        if works {
            // Sometimes it is stuck.
            if !random.chance(self.stuck) {
                self.habit = (0..1 + random.below(4)).map(|_| any_call(random)).collect();
            }
            for call in &self.habit {
                self.calls += 1;
                parts.push(stage::words::call(&format!("call_{}:{call}", self.calls)));
            }
        }
        parts
    }

    fn usage(&mut self) -> Option<Usage> {
        let counted = self.stage.requests.last().unwrap().request.counted.0;
        let percent = 80 + self.random.below(50);
        let cached = self.random.below(counted / 2 + 1);
        let processed = counted * percent / 100;
        self.random.chance(80).then(|| Usage {
            input: Tokens(processed.saturating_sub(cached)),
            cache_read: Tokens(cached.min(processed)),
            output: Tokens(10),
            ..Usage::default()
        })
    }
}

fn any_verdict(random: &mut Random) -> Decision {
    match random.below(10) {
        1 if random.chance(40) => Decision::No { why: "no".into() },
        _ => Decision::Go,
    }
}

/// A tool and arguments.
fn any_call(random: &mut Random) -> String {
    let tool = match random.below(20) {
        0 => "nothing",
        1 => "Read",
        2 => "wirte",
        3 => "bash_command",
        4..10 => "read",
        10..16 => "write",
        _ => "bash",
    };
    let arguments = match random.below(30) {
        0 => "{\"path\": ".to_owned(),
        1 => String::new(),
        2 => {
            serde_json::json!(serde_json::json!({ "path": random.text(2) }).to_string()).to_string()
        }
        3 => "{\"path\": \"the same\"}".to_owned(),
        _ => serde_json::json!({ "path": random.text(3) }).to_string(),
    };
    format!("{tool}:{arguments}")
}

fn any_permissions(random: &mut Random) -> Permissions {
    let rules = [
        PermissionRule::new("bash", Permission::Allow),
        PermissionRule::new("write", Permission::Ask).with_argument("path=*x*"),
        PermissionRule::new("*", Permission::Deny).with_argument("*🦀*"),
    ];
    Permissions::new(rules.into_iter().filter(|_| random.chance(15)))
}

fn any_hooks(random: &mut Random) -> BTreeSet<HookPoint> {
    use HookPoint::{
        AfterLoop, AfterTask, AfterToolExecution, AfterTurn, BeforeLoop, BeforeTask,
        BeforeToolExecution, BeforeTurn, FollowUp, OnError,
    };
    let all = [
        BeforeTask,
        BeforeLoop,
        BeforeTurn,
        BeforeToolExecution,
        AfterToolExecution,
        AfterTurn,
        FollowUp,
        OnError,
        AfterLoop,
        AfterTask,
    ];
    let mut hooks: BTreeSet<HookPoint> = all.into_iter().filter(|_| random.chance(20)).collect();
    if random.chance(60) {
        hooks.extend(plan_hooks());
    }
    hooks
}

fn any_filters(random: &mut Random) -> InputFilters {
    let mut filters = InputFilters::default();
    if random.chance(20) {
        filters.push(Arc::new(|text: &str| match text.len() % 7 {
            0 => FilterResult::Reject("seven".into()),
            1 => FilterResult::Warn("one".into()),
            _ => FilterResult::Pass,
        }));
    }
    filters
}

fn any_setup(random: &mut Random) -> Setup {
    let explicit = random
        .chance(40)
        .then(|| Tokens(600 + random.size(4) as u64));
    let names = ContextStrategy::NAMES;
    let name = if random.chance(60) {
        "summarize"
    } else {
        names[random.below(names.len() as u64) as usize]
    };
    let window = random.chance(70).then(|| 1_000 + random.size(5) as u64);
    let setup = strategy(ContextStrategy::named(name, explicit).unwrap(), window);
    Setup {
        summary_model: random.chance(80).then(|| SummaryModel {
            model: "test/short".into(),
            window: random
                .chance(80)
                .then(|| Tokens(500 + random.size(5) as u64)),
            prompt: SummaryModel::PROMPT.into(),
            sheet: None,
        }),
        recall: Recall::None,
        limits: Arc::new(ExecutionLimits {
            max_turns: Some(1 + random.below(12)),
            max_tool_calls: random.chance(40).then(|| random.below(8)),
            at_limit: Some(
                [AtLimit::Finalize, AtLimit::Stop, AtLimit::Rollback][random.below(3) as usize],
            ),
            max_total_tokens: random
                .chance(30)
                .then(|| Tokens(1_000 + random.size(5) as u64)),
            count_tokens: Some(if random.chance(50) {
                CountTokens::Processed
            } else {
                CountTokens::Growth
            }),
            max_duration: random.chance(30).then(|| Duration::from_secs(100)),
            max_memory: random
                .chance(20)
                .then(|| Bytes(1_000 + random.size(5) as u64)),
            max_identical_tool_calls: random.chance(30).then(|| 1 + random.below(3)),
            ..ExecutionLimits::default()
        }),
        hooks: any_hooks(random),
        permissions: any_permissions(random).into(),
        input_filters: any_filters(random),
        max_parallel_tools: 1 + random.below(4) as usize,
        max_output: random.chance(30).then(|| Tokens(random.size(4) as u64)),
        ..setup
    }
    .with_recall(random)
}

trait WithRecall {
    fn with_recall(self, random: &mut Random) -> Self;
}

impl WithRecall for Setup {
    fn with_recall(mut self, random: &mut Random) -> Self {
        if random.chance(60) {
            self.recall = Recall::Offered;
        }
        self
    }
}

/// What has to stay for the sake of what is pinned, the task aside.
fn pinned(items: &[Item]) -> Tokens {
    let (mut sum, mut question) = (Tokens::ZERO, Tokens::ZERO);
    for exchange in Exchange::of(items) {
        let items = &items[exchange.at];
        let is_pinned = items.iter().any(|item| item.pin.is_some());
        let is_task = items[0].message.is_user() && items[0].seq == Seq(0);
        if is_pinned && !is_task {
            sum += items.iter().map(|item| item.tokens).sum();
        }
        if items[0].message.is_user() {
            let counts = !is_pinned && !is_task;
            question = if counts {
                items[0].tokens
            } else {
                Tokens::ZERO
            };
        } else if is_pinned {
            // An answer that stays keeps its question.
            sum += std::mem::take(&mut question);
        }
    }
    sum
}

/// 1,000 turns with results of 100 KB: what is held stays within a bound that the turns do not
/// move, and so does what a turn does.
#[test]
fn a_thousand_turns_hold_a_constant_amount() {
    let mut stage = Stage::new(Setup {
        limits: Arc::new(ExecutionLimits::turns(2_000)),
        ..setup()
    });
    let window = 10_000;
    let large = "0123456789abcde\n".repeat(6_400);
    stage.say("the task");
    let mut most = 0;
    for n in 0..1_000 {
        let id = format!("c{n}");
        stage.calls(&[&format!("{id}:read")]).done(&id, &large);
        let view = stage.run.state().transcript();
        let held: usize = view
            .items()
            .iter()
            .map(|item| item.message.text().len())
            .sum();
        most = most.max(held);
        assert!(view.items().len() < 1_000, "{n}");
        // What the log and the observers keep is theirs.
        stage.log.clear();
        stage.events.clear();
        stage.requests.clear();
        stage.executed.clear();
    }
    stage.text("done");
    assert_eq!(stage.outcome().reason, EndReason::Answered);
    assert_eq!(stage.outcome().tool_calls, 1_000);
    println!("{most} bytes held at most under a window of {window} tokens");
    assert!(most < window * 4, "{most} bytes");
}

/// What is said of a run in events agrees with its log.
#[test]
fn events_agree_with_the_log() {
    for seed in 1_000..1_050 {
        let script = Script::play(seed);
        let stage = &script.stage;
        let plans = |entries: &[Entry]| -> Vec<_> {
            let plan = |entry: &Entry| match entry {
                Entry::PlanApplied { plan } => Some(plan.clone()),
                _ => None,
            };
            entries.iter().filter_map(plan).collect()
        };
        let told = stage.events.iter().filter_map(|event| match event {
            Event::PlanApplied(applied) => {
                let freed = applied.tokens_before.minus(applied.tokens_after);
                assert_eq!(freed, applied.plan.frees);
                assert_eq!(applied.is_compaction, applied.plan.is_compaction());
                Some(applied.plan.clone())
            }
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), plans(&stage.log[stage.born..]));
        for event in &stage.events {
            if let Event::Warning { text } = event {
                assert!(!text.contains("not recorded"), "{text}");
            }
        }
        let returned = stage.log[stage.born..].iter().filter(
            |entry| matches!(entry, Entry::ToolResult { message, .. } if matches!(**message, Message::ToolResult(_))),
        );
        let ends = stage.events.iter().filter(|event| {
            matches!(event, Event::ToolCall { phase, .. } if *phase != plimsoll_agent::ToolPhase::Start)
        });
        assert_eq!(ends.count(), returned.count());
    }
}
