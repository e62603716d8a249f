//! The driver: the provider's requests, the caller's results and the contents of the log.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_agent::{EndReason, Entry, Event, Failure, LimitKind, Repetition, SessionEvent};
use plimsoll_context::{ContextStrategy, Tokens};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, Error, Lease, MemoryStore, RetryConfig, SessionId, SessionStore,
    StoreError, ToolError, Window, tool,
};
use serde_json::{Value, json};

use crate::{Nothing, go, roles};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say back.
    text: String,
}

fn agent(provider: &ScriptedProvider) -> AgentBuilder {
    let echo = |input: Echo| async move { Ok::<_, ToolError>(input.text) };
    Agent::builder(provider.clone()).tool(tool("echo", "Says it back.", echo).idempotent())
}

#[tokio::test]
async fn a_tool_runs_and_the_answer_comes_back() {
    let provider = ScriptedProvider::new([
        Turn::call("echo", json!({"text": "ahoy"})),
        Turn::say("It said ahoy."),
    ]);
    let output = agent(&provider)
        .system("Be brief.")
        .build()
        .unwrap()
        .run("Say ahoy.")
        .await
        .unwrap();
    assert_eq!(output.text, "It said ahoy.");
    assert_eq!((output.turns, output.tool_calls), (2, 1));
    assert!(output.reason.is_answer());
    let requests = provider.requests();
    assert_eq!(roles(&requests[1]), ["system", "user", "assistant", "tool"]);
    assert_eq!(requests[1]["messages"][3]["content"], "ahoy");
    assert!(output.tokens_used.output > Tokens(0));
}

#[tokio::test]
async fn parallel_calls_overlap_and_answer_in_call_order() {
    let calls = [("slow", json!({})), ("fast", json!({}))];
    let provider = ScriptedProvider::new([Turn::calls(calls), Turn::say("ok")]);
    // `slow` can only end once `fast` has: they must run at once.
    let (sent, got) = tokio::sync::oneshot::channel::<()>();
    let (sent, got) = (
        Arc::new(Mutex::new(Some(sent))),
        Arc::new(Mutex::new(Some(got))),
    );
    let slow = move |_: Nothing| {
        let got = got.lock().unwrap().take();
        async move {
            got.unwrap().await.unwrap();
            Ok::<_, ToolError>("slow")
        }
    };
    let fast = move |_: Nothing| {
        let sent = sent.lock().unwrap().take();
        async move {
            sent.unwrap().send(()).unwrap();
            Ok::<_, ToolError>("fast")
        }
    };
    go(Agent::builder(provider.clone())
        .tool(tool("slow", "", slow))
        .tool(tool("fast", "", fast))
        .max_parallel_tools(2))
    .await;
    let last = &provider.requests()[1]["messages"];
    assert_eq!(
        (&last[2]["content"], &last[3]["content"]),
        (&json!("slow"), &json!("fast"))
    );
}

#[tokio::test]
async fn a_broken_tool_is_an_error_result() {
    let calls = [
        ("panics", json!({})),
        ("hangs", json!({})),
        ("echo", json!({"txt": 1})),
        ("nope", json!({})),
        ("fails", json!({})),
    ];
    let provider = ScriptedProvider::new([Turn::calls(calls), Turn::say("ok")]);
    let panics = |_: Nothing| async move {
        if true {
            panic!("out of rum");
        }
        Ok::<_, ToolError>("")
    };
    let hangs = |_: Nothing| async move {
        std::future::pending::<()>().await;
        Ok::<_, ToolError>("")
    };
    go(agent(&provider)
        .tool(tool("panics", "", panics))
        .tool(tool("hangs", "", hangs).timeout(Duration::from_millis(5)))
        .tool(tool("fails", "", |_: Nothing| async {
            Err::<String, _>(ToolError::new("no such port"))
        }))
        .max_parallel_tools(8))
    .await;
    let request = &provider.requests()[1];
    let text = |index: usize| request["messages"][index]["content"].as_str().unwrap();
    assert!(text(2).contains("out of rum"), "{}", text(2));
    assert!(
        text(3).contains("did not end within 0.005 s"),
        "{}",
        text(3)
    );
    assert!(text(4).contains("`text` is missing"), "{}", text(4));
    assert!(text(5).contains("there is no tool `nope`"), "{}", text(5));
    assert!(text(6).contains("no such port"), "{}", text(6));
}

#[tokio::test]
async fn events_stream_live_and_in_order() {
    let provider =
        ScriptedProvider::new([Turn::call("echo", json!({"text": "a"})), Turn::say("done")]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let observer = move |SessionEvent { event, .. }: &SessionEvent| {
        sink.lock()
            .unwrap()
            .push(serde_json::to_value(event).unwrap()["event"].clone())
    };
    go(agent(&provider).observer(observer)).await;
    let expected = json!([
        "agent_start",
        "turn_start",
        "delta",
        "tool_call",
        "tool_call",
        "step",
        "turn_end",
        "turn_start",
        "delta",
        "turn_end",
        "agent_end"
    ]);
    assert_eq!(Value::Array(seen.lock().unwrap().clone()), expected);
}

#[tokio::test(start_paused = true)]
async fn retries_wait_as_long_as_the_provider_asks() {
    let limited = Failure::RateLimited {
        retry_after_ms: Some(7_000),
        message: "slow down".into(),
    };
    let cut = Failure::Transient {
        status: None,
        retry_after_ms: None,
        message: "cut".into(),
    };
    let provider = ScriptedProvider::new([Turn::Fail(limited), Turn::Fail(cut), Turn::say("ok")]);
    let waits = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&waits);
    let observer = move |SessionEvent { event, .. }: &SessionEvent| {
        if let Event::Retrying { wait_ms, .. } = event {
            told.lock().unwrap().push(*wait_ms);
        }
    };
    let before = tokio::time::Instant::now();
    let output = go(agent(&provider).observer(observer)).await;
    assert_eq!(output.text, "ok");
    let elapsed = u64::try_from(before.elapsed().as_millis()).unwrap();
    let waits = waits.lock().unwrap().clone();
    // The provider asked for 7 s; the second wait is the backoff's 2 s, give or take 20 %.
    let [asked, own] = waits[..] else {
        panic!("{waits:?}")
    };
    assert!((7_000..=8_400).contains(&asked), "{asked}");
    assert!((1_600..=2_400).contains(&own), "{own}");
    // Each sleep ends up to a millisecond late.
    let told = asked + own;
    assert!((told..=told + 5).contains(&elapsed), "{elapsed}, {told}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_ends_the_run_and_leaves_a_session_that_carries_on() {
    let refused = Failure::Auth {
        message: "bad key".into(),
    };
    let provider = ScriptedProvider::new([
        Turn::call("echo", json!({"text": "a"})),
        Turn::Fail(refused),
        Turn::say("ok now"),
    ]);
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
    let agent = agent(&provider).store(Arc::clone(&store)).build().unwrap();
    let id = SessionId::new("s").unwrap();
    let mut session = agent.session(id.clone()).await.unwrap();
    // Not to be taken for an answer; what was spent and the session are known all the same.
    let error = session.run("go").await.unwrap_err();
    assert_eq!(error.to_string(), "the provider refused the key: bad key");
    let output = error.into_output().unwrap();
    assert!(matches!(output.reason, EndReason::Failed { .. }));
    assert_eq!(output.session_id, id);
    assert_eq!(output.turns, 1, "what was spent is told on failure too");
    assert!(matches!(
        agent.session(id.clone()).await,
        Err(Error::Store(StoreError::Busy { .. }))
    ));
    drop(session);
    let mut session = agent.session(id).await.unwrap();
    let output = session.carry_on().await.unwrap();
    assert_eq!(output.text, "ok now");
    let requests = provider.requests();
    assert_eq!(
        requests[2]["messages"], requests[1]["messages"],
        "the very same view"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_killed_keeps_its_name_in_the_steps() {
    let provider = ScriptedProvider::new([Turn::call("hangs", json!({})), Turn::say("ok now")]);
    let hangs = |_: Nothing| async move {
        std::future::pending::<()>().await;
        Ok::<_, ToolError>("")
    };
    let agent = agent(&provider)
        .tool(tool("hangs", "", hangs))
        .build()
        .unwrap();
    let id = SessionId::new("s").unwrap();
    let mut session = agent.session(id.clone()).await.unwrap();
    let killed = tokio::time::timeout(Duration::from_secs(1), session.run("go")).await;
    assert!(killed.is_err());
    drop(session);
    let mut session = agent.session(id).await.unwrap();
    let output = session.carry_on().await.unwrap();
    assert_eq!(output.text, "ok now");
    let names: Vec<&str> = output.steps.iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["hangs"]);
}

#[tokio::test]
async fn interrupt_while_the_model_hangs_and_steer_while_a_tool_runs() {
    let provider = ScriptedProvider::new([
        Turn::Hang,
        Turn::call("wait", json!({})),
        Turn::say("I see."),
    ]);
    let (started, mut starts) = tokio::sync::mpsc::channel::<()>(1);
    let release = Arc::new(tokio::sync::Notify::new());
    let held = Arc::clone(&release);
    let wait = move |_: Nothing| {
        let (started, held) = (started.clone(), Arc::clone(&held));
        async move {
            started.send(()).await.unwrap();
            held.notified().await;
            Ok::<_, ToolError>("waited")
        }
    };
    let agent = agent(&provider)
        .tool(tool("wait", "", wait))
        .build()
        .unwrap();
    let mut session = agent.session(SessionId::new("s").unwrap()).await.unwrap();
    let remote = session.remote();
    let watched = provider.clone();
    let (output, ()) = tokio::join!(session.run("first"), async {
        while watched.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        remote.interrupt().await;
    });
    assert_eq!(output.unwrap().reason, EndReason::Interrupted);
    let (output, ()) = tokio::join!(session.run("second"), async {
        starts.recv().await.unwrap();
        remote.steer("look left").await;
        release.notify_one();
    });
    assert_eq!(output.unwrap().text, "I see.");
    let last = &provider.requests()[2];
    assert_eq!(roles(last), ["user", "user", "assistant", "tool", "user"]);
    assert_eq!(last["messages"][4]["content"], "look left");
}

#[tokio::test]
async fn dropping_a_run_leaves_a_whole_session() {
    let provider = ScriptedProvider::new([Turn::call("hang", json!({})), Turn::say("back")]);
    let hang = |_: Nothing| async move {
        std::future::pending::<()>().await;
        Ok::<_, ToolError>("")
    };
    let agent = agent(&provider)
        .tool(tool("hang", "", hang))
        .build()
        .unwrap();
    let mut session = agent.session(SessionId::new("s").unwrap()).await.unwrap();
    let _ = tokio::time::timeout(Duration::from_millis(20), session.run("go")).await;
    let output = session.run("again").await.unwrap();
    assert_eq!(output.text, "back");
    let last = &provider.requests()[1];
    assert_eq!(roles(last), ["user", "assistant", "tool", "user"]);
    assert!(
        last["messages"][2]["content"]
            .as_str()
            .unwrap()
            .contains("effects are not known")
    );
}

#[tokio::test]
async fn the_window_is_discovered_and_never_overflows() {
    let big = "word ".repeat(2_000);
    let provider = ScriptedProvider::new((0..12).map(|_| Turn::call("echo", json!({"text": "x"}))))
        .then_always(Turn::say("done"))
        .with_window(Tokens(4_096));
    let said = big.clone();
    let long = move |_: Echo| {
        let said = said.clone();
        async move { Ok::<_, ToolError>(said) }
    };
    let output = go(Agent::builder(provider.clone()).tool(tool("echo", "Long.", long))).await;
    assert!(output.reason.is_answer(), "{:?}", output.reason);
    assert!(output.plans > 0);
    for request in provider.requests() {
        assert!(provider.weigh(&request) < Tokens(4_096));
        assert_eq!(request["messages"][0]["content"], "go", "the task stays");
    }
    assert_eq!(provider.requests().len(), 13, "no request was refused");
}

#[tokio::test]
async fn an_unknown_window_is_learned_from_a_refusal() {
    let provider = ScriptedProvider::new([]).with_window(Tokens(4_096));
    let provider = provider.then_always(Turn::call("long", json!({})));
    let long = |_: Nothing| async { Ok::<_, ToolError>("word ".repeat(1_500)) };
    for strategy in [ContextStrategy::default(), ContextStrategy::Unlimited {}] {
        let agent = Agent::builder(provider.clone())
            .tool(tool("long", "Long.", long))
            .context_strategy(strategy)
            .window(Window::Unknown)
            .max_turns(10)
            .build()
            .unwrap();
        let before = provider.requests().len();
        let output = agent.run("go").await.unwrap();
        assert_eq!(
            output.reason,
            EndReason::Limit {
                kind: LimitKind::MaxTurns,
                used: 10,
                limit: 10
            }
        );
        assert_eq!(output.turns, 10, "{strategy:?}");
        let requests = provider.requests().split_off(before);
        assert!(requests.len() > 10, "some were refused");
        for pair in requests.windows(2) {
            assert_ne!(
                pair[0]["messages"], pair[1]["messages"],
                "never the same request twice"
            );
        }
    }
}

#[tokio::test]
async fn the_same_call_again_and_again_is_told_then_refused_then_ended() {
    let provider = ScriptedProvider::new([]).then_always(Turn::call("echo", json!({"text": "x"})));
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let echo = move |input: Echo| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, ToolError>(input.text) }
    };
    let output = go(Agent::builder(provider.clone())
        .tool(tool("echo", "Says it back.", echo))
        .max_identical_tool_calls(3))
    .await;
    assert_eq!(
        output.reason,
        EndReason::DoomLoop {
            times: 5,
            kind: Repetition::Identical
        }
    );
    assert!(
        output.text.contains("the work is not done"),
        "{}",
        output.text
    );
    assert_eq!(ran.load(Ordering::SeqCst), 2);
    let requests = provider.requests();
    assert_eq!(requests.len(), 5);
    let nudge = &requests[2]["messages"][5];
    assert_eq!(
        nudge["role"], "user",
        "after the results, never between call and result"
    );
    assert!(
        nudge["content"]
            .as_str()
            .unwrap()
            .contains("made these calls before")
    );
    for (request, at) in [(3, 7), (4, 9)] {
        let refused = requests[request]["messages"][at]["content"]
            .as_str()
            .unwrap();
        assert!(refused.starts_with("not run"), "{refused}");
    }
}

#[tokio::test]
async fn polling_and_other_calls_are_no_loop() {
    let polls = ScriptedProvider::new([]).then_always(Turn::call("poll", json!({})));
    let count = Arc::new(AtomicUsize::new(0));
    let poll = move |_: Nothing| {
        let now = count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, ToolError>(format!("{now} %")) }
    };
    let agent = Agent::builder(polls)
        .tool(tool("poll", "", poll))
        .max_identical_tool_calls(3)
        .max_turns(12)
        .build()
        .unwrap();
    let output = agent.run("go").await.unwrap();
    assert_eq!(
        output.reason,
        EndReason::Limit {
            kind: LimitKind::MaxTurns,
            used: 12,
            limit: 12
        }
    );
    let others = (0..12).map(|n| Turn::call("echo", json!({"text": format!("{n}")})));
    let provider = ScriptedProvider::new(others).then_always(Turn::say("done"));
    let agent = agent_of(&provider, 2);
    assert!(agent.run("go").await.unwrap().reason.is_answer());
}

fn agent_of(provider: &ScriptedProvider, identical: u64) -> Agent {
    agent(provider)
        .max_identical_tool_calls(identical)
        .build()
        .unwrap()
}

/// A store on a disk that is full after some writes.
#[derive(Default)]
struct FullDisk {
    inner: MemoryStore,
    writes_left: AtomicUsize,
}

#[async_trait::async_trait]
impl SessionStore for FullDisk {
    plimsoll_testkit::forward_store!(inner: acquire, read, list);
    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        if self.writes_left.load(Ordering::SeqCst) == 0 {
            return Err(StoreError::Full {
                path: "disk".into(),
            });
        }
        self.writes_left.fetch_sub(1, Ordering::SeqCst);
        self.inner.append(lease, entries).await
    }
}

#[tokio::test]
async fn a_full_disk_ends_the_run_and_the_session_still_opens() {
    let provider = ScriptedProvider::new([]).then_always(Turn::call("echo", json!({"text": "x"})));
    let store = Arc::new(FullDisk {
        writes_left: AtomicUsize::new(3),
        ..FullDisk::default()
    });
    let shared: Arc<dyn SessionStore> = store.clone();
    let agent = agent(&provider)
        .store(shared)
        .retry_config(RetryConfig::never())
        .build()
        .unwrap();
    let id = SessionId::new("s").unwrap();
    let mut session = agent.session(id.clone()).await.unwrap();
    assert!(matches!(
        session.run("go").await,
        Err(Error::Store(StoreError::Full { .. }))
    ));
    assert!(matches!(session.run("go").await, Err(Error::Stale)));
    drop(session);
    store.writes_left.store(1_000, Ordering::SeqCst);
    let before = provider.requests().len();
    let mut session = agent.session(id).await.unwrap();
    session.run("go on").await.unwrap();
    let request = &provider.requests()[before];
    assert_eq!(
        request["messages"][0]["content"], "go",
        "what was written is there"
    );
}
