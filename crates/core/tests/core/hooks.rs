//! Hooks: their order among the events, the effect of each veto, and isolation. No hook can block
//! or break a run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_agent::{
    Answer, Decision, EndReason, Event, Failure, HookPoint, Permission, PermissionRule,
    Permissions, Question, SessionEvent,
};
use plimsoll_context::{ContextStrategy, Message, Part, Tokens, ToolSpec};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, Error, Gate, Hook, HookContext, HookInput, Messages, Remote, Tool,
    ToolContext, ToolDecision, ToolError, ToolOutput, UserMessage, Window, schema_of, tool,
};
use serde_json::{Value, json};

use crate::{Nothing, go, id};

/// What was called and seen, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn has(&self, text: &str) -> usize {
        self.lines()
            .iter()
            .filter(|line| line.contains(text))
            .count()
    }

    /// Notes every event but the deltas.
    fn watch(&self, event: &Event) {
        let text = match event {
            Event::AgentStart { .. } => "AgentStart".to_owned(),
            Event::AgentEnd { outcome, .. } => format!("AgentEnd {}", outcome.reason.word()),
            Event::TurnStart { turn, cause, .. } => {
                let cause = serde_json::to_value(cause).unwrap();
                format!("TurnStart {turn} {}", cause.as_str().unwrap())
            }
            Event::TurnEnd { turn, .. } => format!("TurnEnd {turn}"),
            Event::ToolCall { phase, name, .. } => format!("tool {name} {phase:?}"),
            Event::ToolUpdate { name, text, .. } => format!("update {name} {text}"),
            Event::Message { kind, phase, .. } => format!("message {kind:?} {phase:?}"),
            Event::PlanApplied(applied) => {
                let edits = applied.plan.edits.len();
                format!("PlanApplied {} {edits}", applied.is_compaction)
            }
            Event::InputRejected { why } => format!("InputRejected {why}"),
            Event::LimitReached { .. } => "LimitReached".to_owned(),
            Event::Warning { text } => format!("Warning {text}"),
            _ => return,
        };
        self.note(text);
    }

    /// An agent all of whose hooks and events are noted.
    fn agent(&self, provider: &ScriptedProvider) -> AgentBuilder {
        let note = || self.clone();
        let seen = note();
        let builder = Agent::builder(provider.clone())
            .observer(move |SessionEvent { event, .. }: &SessionEvent| seen.watch(event));
        let d = note();
        let builder = builder.before_task(move |state| {
            d.note(format!("> before_task {}", state.session_id));
            true
        });
        let d = note();
        let builder = builder.after_task(move |_, output| {
            d.note(format!("> after_task {}", output.reason.word()));
        });
        // Some of them give back futures, as they may.
        let d = note();
        let builder = builder.before_loop(move |messages, run| {
            let d = d.clone();
            async move {
                tokio::task::yield_now().await;
                d.note(format!("> before_loop {run} of {}", messages.len()));
                true
            }
        });
        let d = note();
        let builder = builder.after_loop(move |messages, usage| {
            assert!(usage.output > Tokens(0));
            d.note(format!("> after_loop {}", messages.len()));
        });
        let d = note();
        let builder = builder.before_turn(move |messages, turn| {
            d.note(format!("> before_turn {turn} of {}", messages.len()));
            true
        });
        let d = note();
        let builder = builder.after_turn(move |_, usage| {
            let d = d.clone();
            async move {
                assert!(usage.output > Tokens(0));
                d.note("> after_turn");
            }
        });
        let d = note();
        let builder = builder.on_error(move |text| d.note(format!("> on_error {text}")));
        let d = note();
        let builder = builder.before_tool_execution(move |name, call, arguments| {
            d.note(format!("> before_tool {name} {call} {arguments}"));
            true
        });
        let d = note();
        let builder = builder.after_tool_execution(move |name, call, is_error| {
            d.note(format!("> after_tool {name} {call} {is_error}"));
        });
        let d = note();
        let builder = builder.before_tool_execution_update(move |name, _, text| {
            d.note(format!("> before_update {name} {text}"));
            true
        });
        let d = note();
        let builder = builder.after_tool_execution_update(move |name, _, text| {
            let d = d.clone();
            async move { d.note(format!("> after_update {name} {text}")) }
        });
        let d = note();
        let builder = builder.before_compaction_start(move |_, messages| {
            d.note(format!("> before_compaction {messages}"));
            true
        });
        let d = note();
        let builder = builder.after_compaction_end(move |before, after, from, to| {
            assert!(to < from);
            d.note(format!("> after_compaction {before} {after}"));
        });
        let d = note();
        builder.on_evict(move |_, evicted| d.note(format!("> on_evict {}", evicted.len())))
    }
}

/// A tool that says how far it is and returns as much text as it is asked for.
struct Fetch(ToolSpec);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Size {
    /// Words.
    #[serde(rename = "words")]
    _words: usize,
}

fn fetch() -> Fetch {
    Fetch(ToolSpec {
        name: "fetch".into(),
        description: "Fetches words.".into(),
        schema: schema_of::<Size>(),
    })
}

#[async_trait::async_trait]
impl Tool for Fetch {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        cx.update("half");
        let words = arguments["words"].as_u64().unwrap();
        Ok("lorem ipsum "
            .repeat(usize::try_from(words).unwrap())
            .into())
    }
}

fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| {
            format!(
                "{}: {}",
                message["role"].as_str().unwrap(),
                message["content"]
            )
        })
        .collect()
}

/// R23: every hook and every event of a run with tools, a compaction, a steer and a follow-up.
#[tokio::test]
async fn all_hooks_and_events_in_their_order() {
    let diary = Diary::default();
    let provider = ScriptedProvider::new([
        Turn::call("fetch", json!({"words": 300})),
        Turn::call("fetch", json!({"words": 300})),
        Turn::say("Half."),
        Turn::say("All."),
    ]);
    let steers = Arc::new(AtomicUsize::new(0));
    let follows = Arc::new(AtomicUsize::new(0));
    let agent = diary
        .agent(&provider)
        .tool(fetch())
        .window(Window::Known(Tokens(2_000)))
        .context_strategy(ContextStrategy::SlidingWindow {
            max_tokens: Some(Tokens(160)),
        })
        .get_steering_messages({
            let (steers, diary) = (Arc::clone(&steers), diary.clone());
            move || {
                // Behind the result of the second call.
                let now = steers.fetch_add(1, Ordering::SeqCst);
                if now == 3 {
                    diary.note("> steers");
                    return vec!["Faster.".to_owned()];
                }
                Vec::new()
            }
        })
        .get_follow_up_messages({
            let (follows, diary) = (Arc::clone(&follows), diary.clone());
            move || {
                let first = follows.fetch_add(1, Ordering::SeqCst) == 0;
                diary.note("> follow_ups");
                async move {
                    if first {
                        vec![vec![Part::text("And the rest?")]]
                    } else {
                        Vec::new()
                    }
                }
            }
        })
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = session.run("Fetch.").await.unwrap();
    assert_eq!(output.text, "All.");
    let expected = [
        "> before_task s",
        "> before_loop 1 of 0",
        "AgentStart",
        "> before_turn 1 of 1",
        "TurnStart 1 user",
        "> before_tool fetch call_1_0 {\"words\":300}",
        "tool fetch Start",
        "> before_update fetch half",
        "update fetch half",
        "> after_update fetch half",
        "tool fetch Success",
        "> after_tool fetch call_1_0 false",
        "TurnEnd 1",
        "> after_turn",
        "> before_turn 2 of 3",
        "TurnStart 2 tool_results",
        "PlanApplied false 1",
        "> on_evict 1",
        "> before_tool fetch call_2_0 {\"words\":300}",
        "tool fetch Start",
        "> before_update fetch half",
        "update fetch half",
        "> after_update fetch half",
        "> steers",
        "message Steer Queued",
        "tool fetch Success",
        "> after_tool fetch call_2_0 false",
        "TurnEnd 2",
        "> after_turn",
        "> before_turn 3 of 5",
        "TurnStart 3 steer",
        "message Steer Delivered",
        "PlanApplied false 1",
        "> on_evict 1",
        "TurnEnd 3",
        "> after_turn",
        "> follow_ups",
        "message FollowUp Queued",
        "message FollowUp Delivered",
        "> before_turn 4 of 8",
        "TurnStart 4 follow_up",
        "> before_compaction 8",
        "PlanApplied true 1",
        "> after_compaction 8 5",
        "> on_evict 4",
        "TurnEnd 4",
        "> after_turn",
        "> follow_ups",
        "AgentEnd answered",
        "> after_loop 6",
        "> after_task answered",
    ];
    // An observer has a thread of its own: its events have their order, and the hooks have theirs.
    for of_hooks in [true, false] {
        let is = |line: &&str| line.starts_with("> ") == of_hooks;
        let lines = diary.lines();
        let got = lines.iter().map(String::as_str).filter(is);
        let expected: Vec<_> = expected.into_iter().filter(is).collect();
        similar(&got.map(str::to_owned).collect::<Vec<_>>(), &expected);
    }
    let last = provider.requests().pop().unwrap();
    let said = texts(&last);
    assert_eq!(
        said.iter().filter(|text| text.contains("Faster.")).count(),
        1
    );
    assert_eq!(said.last().unwrap(), "user: \"And the rest?\"");
    // The first run of the session is over: before_task is not asked again.
    assert_eq!(diary.has("> before_task"), 1);
}

fn similar(got: &[String], expected: &[&str]) {
    let got = got.join("\n");
    let expected = expected.join("\n");
    assert!(got == expected, "got:\n{got}\n\nexpected:\n{expected}");
}

fn plain(diary: &Diary, provider: &ScriptedProvider) -> AgentBuilder {
    let seen = diary.clone();
    let ran = diary.clone();
    let look = move |_: Nothing| {
        ran.note("ran");
        async { Ok::<_, ToolError>("a line") }
    };
    Agent::builder(provider.clone())
        .tool(tool("look", "Looks.", look))
        .observer(move |SessionEvent { event, .. }: &SessionEvent| seen.watch(event))
}

fn two_turns() -> ScriptedProvider {
    ScriptedProvider::new([Turn::call("look", json!({})), Turn::say("Land!")])
}

/// A no stops exactly what it is asked about, and says so.
#[tokio::test]
async fn a_no_stops_exactly_that() {
    let refused = |by: &str| EndReason::Refused {
        by: by.to_owned(),
        why: format!("{by} refused"),
    };
    // Before a session's first run: nothing is begun; the next is asked about, until one is let in.
    let (diary, provider) = (Diary::default(), two_turns());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let agent = plain(&diary, &provider)
        .before_task(move |_| counted.fetch_add(1, Ordering::SeqCst) > 0)
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = session.run("go").await.unwrap();
    assert_eq!(output.reason, refused("before_task"));
    assert!(
        output.text.contains("before_task refused"),
        "{}",
        output.text
    );
    assert_eq!((diary.has("AgentStart"), provider.requests().len()), (0, 0));
    assert!(session.run("go").await.unwrap().reason.is_answer());
    assert!(session.run("go").await.is_err(), "the script is over");
    assert_eq!(asked.load(Ordering::SeqCst), 2);

    // Before a run.
    let (diary, provider) = (Diary::default(), two_turns());
    let agent = plain(&diary, &provider)
        .before_loop(|_, run| async move { run != 1 })
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    assert_eq!(
        session.run("go").await.unwrap().reason,
        refused("before_loop")
    );
    assert_eq!((diary.has("AgentStart"), provider.requests().len()), (0, 0));
    assert!(session.run("go").await.unwrap().reason.is_answer());

    // Before a turn: the one before it stands, and the run can be carried on.
    let (diary, provider) = (Diary::default(), two_turns());
    let asked = Arc::new(AtomicUsize::new(0));
    let agent = plain(&diary, &provider)
        .before_turn(move |messages, turn| {
            let first = asked.fetch_add(1, Ordering::SeqCst) < 2;
            assert_eq!(messages.len() as u64, if first { turn * 2 - 1 } else { 3 });
            asked.load(Ordering::SeqCst) != 2
        })
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = session.run("go").await.unwrap();
    assert_eq!((&output.reason, output.turns), (&refused("before_turn"), 1));
    assert_eq!((diary.has("TurnStart"), diary.has("TurnEnd")), (1, 1));
    assert_eq!(session.carry_on().await.unwrap().text, "Land!");

    // Before a tool call: skipped, which the model and the host are told.
    let (diary, provider) = (Diary::default(), two_turns());
    let agent = plain(&diary, &provider)
        .before_tool_execution(|name, _, arguments| {
            assert_eq!((name.as_str(), arguments), ("look", json!({})));
            false
        })
        .after_tool_execution(|_, _, _| -> () { panic!("it has not run") })
        .build()
        .unwrap();
    let output = agent.run("go").await.unwrap();
    assert_eq!((output.text.as_str(), output.tool_calls), ("Land!", 0));
    assert_eq!((diary.has("ran"), diary.has("tool look Skipped")), (0, 1));
    assert_eq!(diary.has("Warning"), 0);
    let said = texts(&provider.requests()[1]);
    assert!(
        said[2].contains("`look` was skipped: before_tool_execution refused"),
        "{said:?}"
    );

    // Before an update: kept back, and the result is there all the same.
    let provider = ScriptedProvider::new([
        Turn::call("fetch", json!({"words": 1})),
        Turn::say("Got it."),
    ]);
    let diary = Diary::default();
    let agent = plain(&diary, &provider)
        .tool(fetch())
        .before_tool_execution_update(|_, _, _| async { false })
        .after_tool_execution_update(|_, _, _| -> () { panic!("it was not told") })
        .build()
        .unwrap();
    assert_eq!(agent.run("go").await.unwrap().text, "Got it.");
    assert_eq!((diary.has("update"), diary.has("Success")), (0, 1));
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Panics,
    PanicsLater,
    Hangs,
    HangsLater,
}

const WAYS: [How; 4] = [How::Panics, How::PanicsLater, How::Hangs, How::HangsLater];
/// What a hook that hangs is given.
const SHORT: Duration = Duration::from_millis(50);

/// Never comes back; the thread is lost with the process.
fn hang() {
    loop {
        std::thread::park();
    }
}

impl How {
    /// What a hook is given: one that comes back does so in time, on a slow machine too.
    fn timeout(self) -> Duration {
        match self {
            Self::Panics | Self::PanicsLater => plimsoll_core::HOOK_TIMEOUT,
            Self::Hangs | Self::HangsLater => SHORT,
        }
    }

    fn now(self) -> bool {
        match self {
            Self::Panics => panic!("out of rum"),
            Self::Hangs => hang(),
            _ => {}
        }
        true
    }

    async fn later(self) -> bool {
        match self {
            Self::PanicsLater => panic!("out of rum"),
            Self::HangsLater => std::future::pending().await,
            _ => {}
        }
        true
    }
}

/// Whatever a hook does, in a runtime of a single thread, the run ends as it would without it, says
/// which hook is at fault, and the runtime can be shut down.
#[test]
fn a_broken_hook_is_a_fault_of_that_hook() {
    type Put = fn(AgentBuilder, How) -> AgentBuilder;
    macro_rules! put {
        (asks $name:ident, $($arg:tt),*) => {
            (stringify!($name), (|builder, how| match how {
                How::Panics | How::Hangs => builder.$name(move |$($arg),*| how.now()),
                _ => builder.$name(move |$($arg),*| how.later()),
            }) as Put)
        };
        (tells $name:ident, $($arg:tt),*) => {
            (stringify!($name), (|builder, how| match how {
                How::Panics | How::Hangs => builder.$name(move |$($arg),*| { how.now(); }),
                _ => builder.$name(move |$($arg),*| async move { how.later().await; }),
            }) as Put)
        };
        (polls $name:ident) => {
            (stringify!($name), (|builder, how| match how {
                How::Panics | How::Hangs => builder.$name(move || { how.now(); Vec::<String>::new() }),
                _ => builder.$name(move || async move { how.later().await; Vec::<String>::new() }),
            }) as Put)
        };
    }
    let places = [
        put!(asks before_task, _),
        put!(tells after_task, _, _),
        put!(asks before_loop, _, _),
        put!(tells after_loop, _, _),
        put!(asks before_turn, _, _),
        put!(tells after_turn, _, _),
        put!(tells on_error, _),
        put!(tells after_tool_execution, _, _, _),
        put!(asks before_tool_execution_update, _, _, _),
        put!(tells after_tool_execution_update, _, _, _),
        put!(polls get_steering_messages),
        put!(polls get_follow_up_messages),
    ];
    for (name, put) in places {
        for how in WAYS {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            let (diary, provider) = (
                Diary::default(),
                ScriptedProvider::new([
                    Turn::Fail(Failure::Transient {
                        status: Some(500),
                        retry_after_ms: None,
                        message: "leak".into(),
                    }),
                    Turn::call("fetch", json!({"words": 1})),
                    Turn::say("Land!"),
                ]),
            );
            let builder = plain(&diary, &provider)
                .tool(fetch())
                .retry_config(plimsoll_core::RetryConfig::never())
                .hook_timeout(how.timeout());
            let agent = put(builder, how).build().unwrap();
            let output = runtime.block_on(async {
                let mut session = agent.session(id()).await.unwrap();
                let failed = session.run("go").await;
                assert!(matches!(failed, Err(Error::Failed(_))), "{name} {how:?}");
                session.carry_on().await.unwrap()
            });
            drop(runtime);
            assert_eq!(output.text, "Land!", "{name} {how:?}");
            let what = match how {
                How::Panics | How::PanicsLater => "broke down: out of rum",
                _ => "did not come back within 0.05 s",
            };
            let warned = format!("Warning {name} {what}");
            assert!(
                diary.has(&warned) > 0,
                "{name} {how:?}: {:?}",
                diary.lines()
            );
            let others = diary.has("Warning") - diary.has(&format!("Warning {name} "));
            assert_eq!(others, 0, "{name} {how:?}");
        }
    }
}

/// What guards lets nothing through when it is broken.
#[tokio::test]
async fn a_broken_guard_denies() {
    for how in WAYS {
        let (diary, provider) = (Diary::default(), two_turns());
        let builder = plain(&diary, &provider).hook_timeout(how.timeout());
        let agent = match how {
            How::Panics | How::Hangs => builder.before_tool_execution(move |_, _, _| how.now()),
            _ => builder.before_tool_execution(move |_, _, _| how.later()),
        };
        let output = agent.build().unwrap().run("go").await.unwrap();
        assert_eq!(
            (output.text.as_str(), output.tool_calls),
            ("Land!", 0),
            "{how:?}"
        );
        assert_eq!(
            (diary.has("ran"), diary.has("tool look Error")),
            (0, 1),
            "{how:?}"
        );
        assert_eq!(diary.has("Warning before_tool_execution"), 1, "{how:?}");
        let said = texts(&provider.requests()[1]);
        assert!(said[2].contains("`look` was not allowed"), "{said:?}");
    }
}

/// A hook whose calls hang is not called for ever: each would hold a thread.
#[tokio::test]
async fn what_hangs_is_left_alone_after_a_while() {
    let calls: Vec<Turn> = (0..70).map(|_| Turn::call("look", json!({}))).collect();
    let provider = ScriptedProvider::new(calls.into_iter().chain([Turn::say("Land!")]));
    let diary = Diary::default();
    let called = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&called);
    let agent = plain(&diary, &provider)
        .max_turns(100)
        .hook_timeout(Duration::from_millis(20))
        .after_turn(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            hang();
        })
        .build()
        .unwrap();
    assert_eq!(agent.run("go").await.unwrap().text, "Land!");
    assert_eq!(called.load(Ordering::SeqCst), plimsoll_core::MAX_HOOK_CALLS);
    assert_eq!(
        diary.has("earlier calls of it have not come back"),
        71 - plimsoll_core::MAX_HOOK_CALLS
    );
}

/// A hook may steer its own run, however full the inbox is, also from a thread that blocks, and on a
/// runtime of a single thread.
#[test]
fn a_hook_may_steer_its_own_run() {
    const ALL: usize = plimsoll_core::INBOX + 10;
    for blocks in [true, false] {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let (diary, provider) = (
            Diary::default(),
            two_turns().then_always(Turn::say("Land!")),
        );
        let remote: Arc<Mutex<Option<Remote>>> = Arc::default();
        let own = Arc::clone(&remote);
        let turns = AtomicUsize::new(0);
        let steer = move || {
            let first = match turns.fetch_add(1, Ordering::SeqCst) {
                0 => 0..ALL,
                _ => 0..0,
            };
            let remote = own.lock().unwrap().clone().unwrap();
            async move {
                for number in first {
                    assert!(remote.steer(format!("more {number}")).await);
                }
            }
        };
        let builder = plain(&diary, &provider);
        let agent = if blocks {
            builder.after_turn(move |_, _| {
                tokio::runtime::Handle::current().block_on(steer());
            })
        } else {
            builder.after_turn(move |_, _| steer())
        };
        let agent = agent.build().unwrap();
        let output = runtime.block_on(async {
            let mut session = agent.session(id()).await.unwrap();
            *remote.lock().unwrap() = Some(session.remote());
            session.run("go").await.unwrap()
        });
        assert_eq!(output.text, "Land!", "{blocks}");
        let ends = diary.has("Steer Delivered") + diary.has("Steer Undelivered");
        assert_eq!(diary.has("Steer Queued"), ends, "{blocks}");
        // Those beyond what may wait have waited in the inbox for the request after the next.
        assert_eq!(ends, ALL, "{blocks}");
        assert_eq!(output.turns, 3, "{blocks}");
        assert_eq!(diary.has("Warning"), 0, "{blocks}");
        let last = provider.requests()[1].clone();
        assert!(
            texts(&last).iter().any(|text| text.contains("more 63")),
            "{blocks}"
        );
    }
}

/// Async hooks see the same arguments; what they attach is theirs.
#[tokio::test]
async fn what_hooks_are_told() {
    let diary = Diary::default();
    let provider = ScriptedProvider::new([
        Turn::call("look", json!({})),
        Turn::say("Land!"),
        Turn::say("More land!"),
    ]);
    let (a, b, c, d) = (diary.clone(), diary.clone(), diary.clone(), diary.clone());
    let agent = plain(&diary, &provider)
        .before_task(move |state| {
            a.note(format!("> {:?}", state.extensions.get::<u8>()));
            true
        })
        .after_turn(move |messages, usage| {
            let b = b.clone();
            async move {
                b.note(format!(
                    "> {} {}",
                    messages.len(),
                    usage.total_tokens() > Tokens(0)
                ))
            }
        })
        .after_loop(move |messages, usage| {
            c.note(format!("> {} {}", messages.len(), usage.output > Tokens(0)))
        })
        .after_task(move |state, output| d.note(format!("> {} {}", state.session_id, output.text)))
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    session.state_mut().extensions.insert(7_u8);
    session.run("go").await.unwrap();
    session.run("And?").await.unwrap();
    let told: Vec<String> = diary
        .lines()
        .into_iter()
        .filter(|line| line.starts_with('>'))
        .collect();
    assert_eq!(
        told,
        [
            "> Some(7)",
            "> 3 true",
            "> 4 true",
            "> 4 true",
            "> s Land!",
            "> 6 true",
            "> 2 true",
            "> s More land!"
        ]
    );
}

/// A hook with state: it redirects and refuses calls, hides keys and counts turns.
#[derive(Default)]
struct Guard {
    told: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Hook for Guard {
    async fn tool_call(&self, cx: &HookContext, tool: &str, arguments: Value) -> ToolDecision {
        assert_eq!((cx.run, tool), (1, "echo"));
        match arguments["text"].as_str().unwrap() {
            "secret" => ToolDecision::Deny {
                why: "that is private".into(),
            },
            "here" => ToolDecision::Rewrite {
                arguments: json!({"text": "there"}),
            },
            "rules" => ToolDecision::Rewrite {
                arguments: json!({"text": "forbidden"}),
            },
            "faulty" => ToolDecision::Rewrite {
                arguments: json!({"txet": 1}),
            },
            _ => ToolDecision::Allow,
        }
    }

    async fn tool_result(&self, _: &HookContext, _: &str, text: &str) -> Option<String> {
        assert!(!text.contains("broken"), "this one breaks the hook");
        text.contains("sk-123")
            .then(|| text.replace("sk-123", "[key]"))
    }

    async fn decide(&self, _: &HookContext, input: &HookInput) -> Decision {
        match input {
            HookInput::BeforeTurn { turn: 4.., .. } => Decision::No {
                why: "three turns are enough".into(),
            },
            _ => Decision::Go,
        }
    }

    async fn request(&self, _: &HookContext, messages: &Messages) -> Option<Messages> {
        let mut messages = messages.clone();
        messages.insert(0, Arc::new(Message::user("It is noon.")));
        Some(messages)
    }

    async fn messages(&self, _: &HookContext, point: HookPoint) -> Vec<UserMessage> {
        match (point, self.told.load(Ordering::SeqCst)) {
            (HookPoint::FollowUp, 0) => vec!["And then?".into()],
            _ => Vec::new(),
        }
    }

    async fn observe(&self, _: &HookContext, input: &HookInput) {
        if matches!(input, HookInput::AfterTurn { .. }) {
            self.told.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Words {
    text: String,
}

fn contents(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let contents = messages.map(|message| message["content"].as_str().unwrap_or_default());
    contents.map(str::to_owned).collect()
}

fn echo() -> impl Tool {
    tool("echo", "Says it.", |words: Words| async move {
        Ok::<_, ToolError>(words.text)
    })
}

fn echoes<const N: usize>(words: [&str; N]) -> Turn {
    Turn::calls(words.map(|text| ("echo", json!({ "text": text }))))
}

#[tokio::test]
async fn a_hook_is_a_trait_whose_return_types_say_what_it_can_do() {
    let words = [
        "plain", "secret", "here", "rules", "faulty", "sk-123", "broken",
    ];
    let provider = ScriptedProvider::new([echoes(words), Turn::say("Land!"), Turn::say("x")]);
    let denied = PermissionRule::new("echo", Permission::Deny).with_argument("text=forbidden");
    let output = go(Agent::builder(provider.clone())
        .tool(echo())
        .permissions(Permissions::new([denied]))
        .hook(Guard::default()))
    .await;
    assert_eq!((output.text.as_str(), output.turns), ("Land!", 2));
    assert_eq!(contents(&provider.requests()[0])[0], "It is noon.");
    let said = contents(&provider.requests()[1]);
    let results = &said[said.len() - words.len()..];
    assert_eq!(results[0], "plain");
    assert_eq!(
        results[1],
        "`echo` was skipped: before_tool_execution refused: that is private"
    );
    assert_eq!(results[2], "there");
    assert!(results[3].contains("the rules of this run"), "{results:?}");
    assert!(results[4].contains("`text` is missing"), "{results:?}");
    assert_eq!(results[5], "[key]");
    assert!(
        results[6].starts_with("the result was withheld") && !results[6].contains("broken\n"),
        "{results:?}"
    );
}

/// The approver sees the arguments that will run, and is not asked about what a hook denies.
#[tokio::test]
async fn the_gate_is_asked_about_rewritten_arguments() {
    #[derive(Clone, Default)]
    struct Asked(Arc<Mutex<Vec<String>>>);
    #[async_trait::async_trait]
    impl Gate for Asked {
        async fn decide(&self, question: &Question) -> Answer {
            let call = question.call.arguments.clone();
            self.0.lock().unwrap().push(call);
            Answer::Allow
        }
    }
    let provider = ScriptedProvider::new([echoes(["here", "plain", "secret"]), Turn::say("Land!")]);
    let asked = Asked::default();
    let asks = PermissionRule::new("echo", Permission::Ask);
    let guard = Guard {
        told: Arc::new(AtomicUsize::new(1)),
    };
    go(Agent::builder(provider.clone())
        .tool(echo())
        .permissions(Permissions::new([asks]))
        .gate(asked.clone())
        .hook(guard))
    .await;
    let asked = asked.0.lock().unwrap().clone();
    assert_eq!(asked, [r#"{"text":"there"}"#, r#"{"text":"plain"}"#]);
    assert!(contents(&provider.requests()[1]).contains(&"there".to_owned()));
}
