//! Tool calls: concurrency, retries, progress reports, denials, and calls that are no longer
//! needed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{Answer, Cost, Entry, Event, Question, SessionEvent, Spend};
use plimsoll_context::{Money, Part, Tokens, ToolSpec, Usage};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, Gate, MemoryStore, Secret, SessionId, SessionStore, TOOL_UPDATES, Tool,
    ToolContext, ToolError, ToolOutput, schema_of, tool,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{Nothing, go};

type Work = dyn Fn(ToolContext) -> futures_util::future::BoxFuture<'static, Result<ToolOutput, ToolError>>
    + Send
    + Sync;

/// A tool that does what it is given.
struct ScriptedTool {
    spec: ToolSpec,
    idempotent: bool,
    timeout: Duration,
    work: Box<Work>,
}

fn does<F>(name: &str, work: impl Fn(ToolContext) -> F + Send + Sync + 'static) -> ScriptedTool
where
    F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    ScriptedTool {
        spec: ToolSpec {
            name: name.into(),
            description: "Does it.".into(),
            schema: schema_of::<Nothing>(),
        },
        idempotent: false,
        timeout: Duration::from_secs(600),
        work: Box::new(move |cx| Box::pin(work(cx))),
    }
}

#[async_trait]
impl Tool for ScriptedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn idempotent(&self) -> bool {
        self.idempotent
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    async fn call(&self, _arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        (self.work)(cx).await
    }
}

fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

fn once(name: &str) -> ScriptedProvider {
    ScriptedProvider::new([Turn::call(name, json!({})), Turn::say("ok")])
}

/// S21: attempts of an idempotent tool are 1 + retries, of any other 1; each is cancelled.
#[tokio::test(start_paused = true)]
async fn only_what_is_idempotent_is_called_again() {
    for (idempotent, retries, attempts) in [
        (true, None, 4),
        (true, Some(0), 1),
        (true, Some(1), 2),
        (false, None, 1),
        (false, Some(9), 1),
    ] {
        let provider = once("slow");
        let (called, cancelled) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (calls, ends) = (Arc::clone(&called), Arc::clone(&cancelled));
        let mut slow = does("slow", move |cx| {
            calls.fetch_add(1, Ordering::SeqCst);
            let ends = Arc::clone(&ends);
            tokio::spawn(async move {
                cx.cancel.cancelled().await;
                ends.fetch_add(1, Ordering::SeqCst);
            });
            std::future::pending()
        });
        slow.idempotent = idempotent;
        slow.timeout = Duration::from_secs(7);
        let mut builder = Agent::builder(provider.clone()).tool(slow);
        if let Some(retries) = retries {
            builder = builder.configure(|it| it.driver.tool_retries = retries);
        }
        let before = Instant::now();
        let output = builder.build().unwrap().run("go").await.unwrap();
        assert_eq!((output.text.as_str(), output.tool_calls), ("ok", 1));
        assert_eq!(called.load(Ordering::SeqCst), attempts);
        tokio::task::yield_now().await;
        assert_eq!(cancelled.load(Ordering::SeqCst), attempts);
        let took = Duration::from_secs(7) * u32::try_from(attempts).unwrap();
        assert!(before.elapsed() >= took && before.elapsed() < took + Duration::from_secs(1));
        let said = results(&provider.requests()[1]);
        assert!(said[0].contains("did not end within 7 s"), "{said:?}");
    }
}

/// One that ends at last has its result, whatever came before; other failures are not tried again.
#[tokio::test(start_paused = true)]
async fn a_retry_that_ends_is_the_result() {
    let provider = ScriptedProvider::new([
        Turn::calls([("third", json!({})), ("fails", json!({}))]),
        Turn::say("ok"),
    ]);
    let tries = Arc::new(AtomicUsize::new(0));
    let mut third = does("third", {
        let tries = Arc::clone(&tries);
        move |_| {
            let number = tries.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                if number < 3 {
                    std::future::pending::<()>().await;
                }
                Ok(format!("try {number}").into())
            }
        }
    });
    third.idempotent = true;
    third.timeout = Duration::from_secs(1);
    let failures = Arc::new(AtomicUsize::new(0));
    let mut fails = does("fails", {
        let failures = Arc::clone(&failures);
        move |_| {
            failures.fetch_add(1, Ordering::SeqCst);
            async { Err(ToolError::new("no such port")) }
        }
    });
    fails.idempotent = true;
    let agent = Agent::builder(provider.clone()).tool(third).tool(fails);
    agent.build().unwrap().run("go").await.unwrap();
    assert_eq!(results(&provider.requests()[1]), ["try 3", "no such port"]);
    assert_eq!(failures.load(Ordering::SeqCst), 1);
}

/// S4: results in call order, never more at once than allowed, as quick as that allows.
#[tokio::test(start_paused = true)]
async fn never_more_at_once_and_in_call_order() {
    for (at_once, took) in [(1, 140), (2, 80), (3, 80)] {
        let provider = ScriptedProvider::new([
            Turn::calls([("a", json!({})), ("b", json!({})), ("c", json!({}))]),
            Turn::say("ok"),
        ]);
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut builder = Agent::builder(provider.clone()).max_parallel_tools(at_once);
        for (name, millis) in [("a", 80), ("b", 20), ("c", 40)] {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            builder = builder.tool(does(name, move |_| {
                let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(name.into())
                }
            }));
        }
        let before = Instant::now();
        builder.build().unwrap().run("go").await.unwrap();
        let took = Duration::from_millis(took);
        assert!(
            before.elapsed() >= took && before.elapsed() < took + Duration::from_millis(15),
            "{at_once}"
        );
        assert_eq!(most.load(Ordering::SeqCst), at_once);
        assert_eq!(results(&provider.requests()[1]), ["a", "b", "c"]);
    }
}

struct Updates(Arc<Mutex<Vec<String>>>);

impl Updates {
    fn watched(builder: AgentBuilder) -> (AgentBuilder, Self) {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&seen);
        let watch = move |SessionEvent { event, .. }: &SessionEvent| match event {
            Event::ToolUpdate { name, text, .. } => {
                sink.lock().unwrap().push(format!("{name} {text}"))
            }
            Event::ToolCall { name, phase, .. } => {
                sink.lock().unwrap().push(format!("{name} {phase:?}"))
            }
            _ => {}
        };
        (builder.observer(watch), Self(seen))
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// What a tool says while it runs is told before its result, in order, and never afterwards; a flood
/// loses what nobody could have read, and holds nothing up.
#[tokio::test]
async fn updates_are_told_live_and_bounded() {
    let provider = ScriptedProvider::new([
        Turn::call("steps", json!({})),
        Turn::call("flood", json!({})),
        Turn::say("ok"),
    ]);
    let late: Arc<Mutex<Option<ToolContext>>> = Arc::default();
    let kept = Arc::clone(&late);
    let steps = does("steps", move |cx| {
        let kept = Arc::clone(&kept);
        async move {
            for step in 1..=3 {
                cx.update(format!("step {step}"));
                tokio::task::yield_now().await;
            }
            *kept.lock().unwrap() = Some(cx);
            Ok("done".into())
        }
    });
    let flood = does("flood", move |cx| {
        if let Some(late) = late.lock().unwrap().take() {
            late.update("still there");
        }
        async move {
            cx.update("x".repeat(1_000_000));
            for number in 0..TOOL_UPDATES * 10 {
                cx.update(format!("{number}"));
            }
            Ok("flooded".into())
        }
    });
    let (builder, seen) =
        Updates::watched(Agent::builder(provider.clone()).tool(steps).tool(flood));
    let output = builder.build().unwrap().run("go").await.unwrap();
    assert_eq!(output.text, "ok");
    let all = seen.all();
    let expected = [
        "steps Start",
        "steps step 1",
        "steps step 2",
        "steps step 3",
        "steps Success",
    ];
    assert_eq!(all[..5], expected);
    assert!(!all.iter().any(|text| text.contains("still there")));
    let flood = &all[5..];
    assert_eq!(
        (flood[0].as_str(), flood.last().unwrap().as_str()),
        ("flood Start", "flood Success")
    );
    assert!(
        flood.len() <= TOOL_UPDATES + 2 && flood.len() > TOOL_UPDATES / 2,
        "{}",
        flood.len()
    );
    assert!(flood[1].len() < 5_000, "{}", flood[1].len());
}

/// What a tool spends counts for the run, whatever becomes of the call.
#[tokio::test(start_paused = true)]
async fn what_tools_spend_counts() {
    let usage = Usage {
        input: Tokens(1_000),
        output: Tokens(100),
        ..Usage::default()
    };
    let spend = Spend {
        usage,
        cost: Cost::of(Some(Money(5))),
        turns: 1,
        tool_calls: 2,
        ..Spend::default()
    };
    let names = ["returns", "fails", "panics", "hangs"];
    let calls = names.map(|name| (name, json!({})));
    let provider = ScriptedProvider::new([Turn::calls(calls), Turn::say("ok")]);
    let mut builder = Agent::builder(provider.clone()).max_parallel_tools(4);
    for name in names {
        let mut spends = does(name, move |cx| async move {
            cx.reservation.spend(&spend);
            match name {
                "returns" => Ok("".into()),
                "fails" => Err(ToolError::new("no such port")),
                "panics" => panic!("out of rum"),
                _ => std::future::pending().await,
            }
        });
        spends.timeout = Duration::from_secs(1);
        builder = builder.tool(spends);
    }
    let output = builder.build().unwrap().run("go").await.unwrap();
    let own = provider.requests().len() as u64;
    assert_eq!(
        (output.turns, own),
        (2, 2),
        "the turns of a run are its own"
    );
    assert!(
        output.tokens_used.input >= Tokens(4_000),
        "{:?}",
        output.tokens_used
    );
    assert!(output.tokens_used.output >= Tokens(400));
    assert_eq!(output.cost.known, Money(20));
}

/// What a dropped run leaves behind is cancelled and dropped.
#[tokio::test]
async fn a_dropped_run_cancels_its_tools() {
    struct DropFlag(Arc<AtomicUsize>);
    impl Drop for DropFlag {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (gone, begun) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(tokio::sync::Notify::new()),
    );
    let (drops, begins) = (Arc::clone(&gone), Arc::clone(&begun));
    let token: Arc<Mutex<Option<tokio_util::sync::CancellationToken>>> = Arc::default();
    let kept = Arc::clone(&token);
    let mut hang = does("hang", move |cx| {
        *kept.lock().unwrap() = Some(cx.cancel.clone());
        let guard = DropFlag(Arc::clone(&drops));
        let begins = Arc::clone(&begins);
        async move {
            let _guard = guard;
            begins.notify_one();
            std::future::pending().await
        }
    });
    hang.idempotent = true;
    let agent = Agent::builder(once("hang")).tool(hang).build().unwrap();
    tokio::select! {
        _ = agent.run("go") => panic!("it hangs"),
        () = begun.notified() => {}
    }
    let token = token.lock().unwrap().take().unwrap();
    token.cancelled().await;
    while gone.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
}

enum ApprovalReply {
    Silent,
    Panics,
    Allows,
}

#[async_trait]
impl Gate for ApprovalReply {
    async fn decide(&self, _: &Question) -> Answer {
        match self {
            Self::Silent => std::future::pending().await,
            Self::Panics => panic!("out of rum"),
            Self::Allows => Answer::Allow,
        }
    }
}

/// Silence denies, and so does a gate that is broken; the model is told why.
#[tokio::test(start_paused = true)]
async fn silence_denies() {
    for (gate, ran, says) in [
        (None, 0, "there is nobody to ask"),
        (
            Some(ApprovalReply::Silent),
            0,
            "there was no answer in time",
        ),
        (
            Some(ApprovalReply::Panics),
            0,
            "that should decide failed: out of rum",
        ),
        (Some(ApprovalReply::Allows), 1, "done"),
    ] {
        let provider = once("rm");
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let rm = move |_: Nothing| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, ToolError>("done") }
        };
        let builder = Agent::builder(provider.clone())
            .tool(tool("rm", "Removes.", rm).asks())
            .configure(|it| it.driver.gate_timeout = Some(Duration::from_secs(60)));
        let builder = match gate {
            Some(gate) => builder.gate(gate),
            None => builder,
        };
        let agent = builder.build().unwrap();
        let before = Instant::now();
        agent.run("go").await.unwrap();
        assert!(before.elapsed() <= Duration::from_secs(61));
        assert_eq!(runs.load(Ordering::SeqCst), ran);
        let said = results(&provider.requests()[1]);
        assert!(said[0].contains(says), "{said:?}");
    }
}

/// For programmers: see [`tool`].
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code)]
struct Documented {
    /// Where to look.
    at: String,
}

#[test]
fn a_model_reads_the_docs_of_the_fields_and_not_those_of_the_type() {
    let schema = schema_of::<Documented>();
    assert_eq!(schema.get("description"), None, "{schema}");
    assert_eq!(
        schema["properties"]["at"]["description"], "Where to look.",
        "{schema}"
    );
}

/// A key reaches neither the model nor the log nor those who watch, whichever way a tool says it.
#[tokio::test]
async fn keys_are_struck_out_of_what_tools_say() {
    const KEY: &str = "sk-SUPERSECRETKEY1234567890";
    const IN_BASE64: &str = "c2stU1VQRVJTRUNSRVRLRVkxMjM0NTY3ODkw";
    let says = does("says", |cx| async move {
        cx.update(format!("reading {KEY}"));
        Ok(format!("KEY={KEY} and {IN_BASE64}").into())
    });
    let fails = does("fails", |_| async {
        Err(ToolError::new(format!("no {KEY}")))
    });
    let model = ScriptedProvider::new([
        Turn::call("says", json!({})),
        Turn::call("fails", json!({})),
        Turn::say("ok"),
    ]);
    let told = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&told);
    let output = go(Agent::builder(model.clone())
        .tool(says)
        .tool(fails)
        .secrets([Secret::new(KEY)])
        .observer(move |SessionEvent { event, .. }: &SessionEvent| {
            let text = serde_json::to_string(event).unwrap();
            heard.lock().unwrap().push_str(&text);
        }))
    .await;
    let sent = model.requests().last().unwrap().to_string();
    assert_eq!(
        results(&model.requests()[2]),
        ["KEY=[secret] and [secret]", "no [secret]"]
    );
    let told = told.lock().unwrap();
    assert!(told.contains("reading [secret]"), "{told}");
    for text in [&sent, &*told, &format!("{output:?}")] {
        assert!(
            !text.contains("SUPERSECRET") && !text.contains(IN_BASE64),
            "{text}"
        );
    }
}

/// The log has the result byte for byte; no text is invented for it.
#[tokio::test]
async fn a_result_without_text_is_logged_as_it_is() {
    let outputs = [
        vec![],
        vec![Part::text("")],
        vec![Part::text(" \n")],
        vec![Part::text(""), Part::text(" ")],
    ];
    for parts in outputs {
        let output = parts.clone();
        let quiet = does("quiet", move |_| {
            let parts = output.clone();
            async move { Ok(ToolOutput { parts }) }
        });
        let store = Arc::new(MemoryStore::default());
        let agent = Agent::builder(once("quiet")).tool(quiet);
        let agent = agent.store(store.clone()).build().unwrap();
        let id = SessionId::new("s").unwrap();
        let mut session = agent.session(id.clone()).await.unwrap();
        assert_eq!(session.run("go").await.unwrap().text, "ok");
        let log = store.load(&id).await.unwrap();
        let logged = log.iter().find_map(|entry| match entry {
            Entry::ToolResult { message, .. } => Some(message.parts().to_vec()),
            _ => None,
        });
        assert_eq!(logged, Some(parts));
    }
}
