//! Compaction through the driver: hooks, summaries by another model, pins and recall. The
//! state machine and the tools that recall have their own tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{
    EndReason, Entry, Event, Failure, MAX_PINS, PinError, Request, SessionEvent, State,
};
use plimsoll_context::{Chars4, ContextStrategy, Delta, Edit, Message, Reply, Seq, Tokens, Usage};
use plimsoll_core::recall::LogMessages;
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, Error, EvictedMessage, HOOK_TIMEOUT, Lease, MemoryStore, Provider,
    RetryConfig, SessionStore, StoreError, ToolError, Window, tool,
};
use serde_json::{Value, json};

use crate::{Nothing, Panics, go, id};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: usize,
}

const TURNS: usize = 20;

/// What the tool returns: about 1,000 tokens, and which one it is at both ends and in the middle.
fn result(n: usize) -> String {
    let line = format!("row of result {n}: all is well here\n");
    let half = line.repeat(50);
    format!("BEGIN-{n}\n{half}MIDDLE-{n}\n{half}END-{n}")
}

fn script() -> ScriptedProvider {
    let calls = (0..TURNS).map(|n| Turn::call("fetch", json!({ "n": n })));
    ScriptedProvider::new(calls).then_always(Turn::say("done"))
}

/// An agent whose view is at its trigger at 6,000 tokens.
fn agent(provider: impl Provider + 'static, strategy: &str) -> AgentBuilder {
    let fetch = |input: Number| async move { Ok::<_, ToolError>(result(input.n)) };
    let max_tokens = Some(Tokens(6_000));
    Agent::builder(provider)
        .tool(tool("fetch", "Fetches.", fetch).idempotent())
        .context_strategy(ContextStrategy::named(strategy, max_tokens).unwrap())
        .window(Window::Known(Tokens(32_000)))
}

const NAMES: [&str; 4] = ["sliding_window", "evict", "summarize", "extract"];

fn good_summary(fact: &str) -> String {
    format!(
        "## Goal\n- fetch all rows\n## Constraints\n- none\n## Decisions\n- {fact}\n\
         ## Files\n- none were read\n## Errors\n- none\n## Open work\n- the rest\n\
         ## Next step\n- fetch the next one"
    )
}

fn summariser(fact: &str) -> ScriptedProvider {
    ScriptedProvider::new([]).then_always(Turn::say(good_summary(fact)))
}

/// Everything an observer sees.
#[derive(Clone, Default)]
struct EventRecorder(Arc<Mutex<Vec<Event>>>);

impl EventRecorder {
    fn observer(&self) -> impl Fn(&SessionEvent) + Send + Sync + 'static {
        let seen = Arc::clone(&self.0);
        move |told| seen.lock().unwrap().push(told.event.clone())
    }

    fn warnings(&self) -> Vec<String> {
        let warning = |event: &Event| match event {
            Event::Warning { text } => Some(text.clone()),
            _ => None,
        };
        self.0.lock().unwrap().iter().filter_map(warning).collect()
    }

    fn summaries(&self) -> Vec<Option<String>> {
        let ended = |event: &Event| match event {
            Event::SummaryEnded { failure, .. } => Some(failure.clone()),
            _ => None,
        };
        self.0.lock().unwrap().iter().filter_map(ended).collect()
    }

    fn compactions(&self) -> Vec<(usize, usize, Tokens, Tokens)> {
        let ended = |event: &Event| match event {
            Event::PlanApplied(applied) if applied.is_compaction => Some((
                applied.messages_before,
                applied.messages_after,
                applied.tokens_before,
                applied.tokens_after,
            )),
            _ => None,
        };
        self.0.lock().unwrap().iter().filter_map(ended).collect()
    }
}

fn contents(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    let content = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    messages.iter().map(content).collect()
}

/// A provider that looks into the log whenever it is called: every missing result is there.
struct Looks {
    inner: ScriptedProvider,
    store: Arc<MemoryStore>,
    seen: Mutex<BTreeSet<usize>>,
    missed: Arc<AtomicUsize>,
}

#[async_trait]
impl Provider for Looks {
    fn model(&self) -> &str {
        "scripted/looks"
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let texts: Vec<String> = request.messages.iter().map(|m| m.text()).collect();
        let whole = |n: &usize| texts.contains(&result(*n));
        let missing: Vec<usize> = {
            let mut seen = self.seen.lock().unwrap();
            seen.extend((0..TURNS).filter(whole));
            seen.iter().copied().filter(|n| !whole(n)).collect()
        };
        let store = self.store.as_ref();
        let log = LogMessages::read(store, &id()).await.unwrap();
        let mut evicted = Vec::new();
        for recalled in log.evicted() {
            let item = store.recall(&id(), &recalled.to_string()).await.unwrap();
            evicted.push(item.text());
        }
        for n in missing {
            self.missed.fetch_add(1, Ordering::SeqCst);
            assert!(evicted.contains(&result(n)), "result {n} is nowhere");
        }
        self.inner.call(request, deltas).await
    }
}

#[tokio::test]
async fn what_a_request_lacks_can_be_recalled_before_it_is_sent() {
    for name in NAMES {
        let store = Arc::new(MemoryStore::default());
        let missed = Arc::new(AtomicUsize::new(0));
        let provider = Looks {
            inner: script(),
            store: Arc::clone(&store),
            seen: Mutex::default(),
            missed: Arc::clone(&missed),
        };
        let agent = agent(provider, name)
            .store(store)
            .summarizer(Arc::new(summariser("all is well")))
            .build()
            .unwrap();
        let output = agent.session(id()).await.unwrap().run("go").await.unwrap();
        assert!(output.reason.is_answer(), "{name}: {:?}", output.reason);
        assert!(output.plans > 0, "{name}");
        assert!(missed.load(Ordering::SeqCst) > 0, "{name}");
    }
}

/// The messages of a log as they were first said, and for each plan the numbers that its edits name.
fn said_and_planned(log: &[Entry]) -> (BTreeMap<Seq, Arc<Message>>, Vec<BTreeSet<Seq>>) {
    let mut said = BTreeMap::new();
    let mut planned = Vec::new();
    let mut state = State::new(Arc::new(Chars4));
    for entry in log {
        let next = state.transcript().next_seq();
        state.absorb(entry).unwrap();
        let items = state.transcript().items().iter();
        let new = items.filter(|item| item.seq >= next);
        said.extend(new.map(|item| (item.seq, Arc::clone(&item.message))));
        let Entry::PlanApplied { plan } = entry else {
            continue;
        };
        let ranges = plan.edits.iter().flat_map(|edit| match edit {
            Edit::Shrink { seq, .. } => vec![(*seq, *seq)],
            Edit::Drop { first, last, .. } => vec![(*first, *last)],
            Edit::Summarize { covers, .. } => covers
                .iter()
                .map(|range| (range.first, range.last))
                .collect(),
        });
        let numbers = ranges.flat_map(|(first, last)| (first.0..=last.0).map(Seq));
        planned.push(numbers.collect());
    }
    (said, planned)
}

/// A3: once a plan, everything that it removes or shortens, whether the model can recall it or not.
#[tokio::test]
async fn on_evict_is_told_once_a_plan_of_what_left() {
    for (name, recall) in NAMES
        .into_iter()
        .flat_map(|name| [(name, true), (name, false)])
    {
        let store = Arc::new(MemoryStore::default());
        let calls: Arc<Mutex<Vec<Vec<EvictedMessage>>>> = Arc::default();
        let sink = Arc::clone(&calls);
        let mut builder = agent(script(), name)
            .store(Arc::clone(&store) as Arc<dyn SessionStore>)
            .summarizer(Arc::new(summariser("all is well")))
            .configure(|it| it.max_result = Some(Tokens(700)))
            .on_evict(move |state, evicted: Vec<EvictedMessage>| {
                assert_eq!(state.session_id, id());
                assert_eq!(state.extensions.get::<u32>(), Some(&7));
                let sink = Arc::clone(&sink);
                async move {
                    tokio::task::yield_now().await;
                    sink.lock().unwrap().push(evicted);
                }
            });
        if !recall {
            builder = builder.recall(false);
        }
        let agent = builder.build().unwrap();
        let mut session = agent.session(id()).await.unwrap();
        session.state_mut().extensions.insert(7_u32);
        let output = session.run("go").await.unwrap();
        assert!(output.reason.is_answer(), "{name}");
        let calls = calls.lock().unwrap().clone();
        let log = store.load(&id()).await.unwrap();
        let (said, planned) = said_and_planned(&log);
        assert_eq!(calls.len(), planned.len(), "{name}");
        assert!(output.plans < calls.len() as u64, "{name}: capping is told");
        let mut removed = BTreeSet::new();
        let mut shortened = BTreeSet::new();
        for (told, planned) in calls.iter().zip(&planned) {
            assert!(told.is_sorted_by_key(|evicted| evicted.seq), "{name}");
            assert!(!told.is_empty(), "{name}");
            for evicted in told {
                assert!(planned.contains(&evicted.seq), "{name}");
                if !shortened.contains(&evicted.seq) {
                    assert_eq!(evicted.message, said[&evicted.seq], "{name}: whole");
                }
                if evicted.removed {
                    assert!(removed.insert(evicted.seq), "{name}: removed twice");
                } else {
                    shortened.insert(evicted.seq);
                }
            }
        }
        // Pruning is enough for some here; elsewhere capped results are removed later.
        let again = shortened.intersection(&removed).count();
        assert!(again > 1 || ["evict", "extract"].contains(&name), "{name}");
        let items = session.view().transcript().items().iter();
        let left: BTreeSet<Seq> = items
            .filter(|item| !removed.contains(&item.seq))
            .map(|item| item.seq)
            .collect();
        let told: BTreeSet<Seq> = left.union(&removed).copied().collect();
        assert!(
            said.keys().eq(told.iter()),
            "{name}: nothing is lost untold"
        );
    }
}

/// S19: whatever a hook does, the run goes on and nothing is lost.
#[tokio::test(start_paused = true)]
async fn a_hook_that_breaks_or_hangs_is_a_fault_of_that_hook() {
    for hangs in [false, true] {
        let seen = EventRecorder::default();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let agent = agent(script(), "sliding_window")
            .observer(seen.observer())
            .on_evict(move |_, _| {
                let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
                async move {
                    if first && hangs {
                        std::future::pending::<()>().await;
                    }
                    assert!(!first, "out of rum");
                }
            })
            .before_compaction_start(|_, _| -> bool { panic!("out of rum") })
            .after_compaction_end(|_, _, _, _| -> () { panic!("out of rum") })
            .build()
            .unwrap();
        let before = tokio::time::Instant::now();
        let output = agent.run("go").await.unwrap();
        assert!(output.reason.is_answer(), "{:?}", output.reason);
        assert!(output.plans > 1 && calls.load(Ordering::SeqCst) > 1);
        let waited = before.elapsed();
        assert_eq!(waited >= HOOK_TIMEOUT, hangs, "{waited:?}");
        assert!(waited < HOOK_TIMEOUT * 2, "{waited:?}");
        let warnings = seen.warnings();
        let of = |name: &str| {
            warnings
                .iter()
                .filter(|text| text.starts_with(name))
                .count() as u64
        };
        assert_eq!(of("on_evict"), 1, "{warnings:?}");
        assert_eq!(of("before_compaction_start"), output.plans, "{warnings:?}");
        assert_eq!(of("after_compaction_end"), output.plans, "{warnings:?}");
    }
}

#[tokio::test]
async fn before_says_no_and_after_is_told_the_numbers() {
    // Every second plan is refused; a trigger below the limit leaves room for that.
    let seen = EventRecorder::default();
    let (asked, told) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(Mutex::new(Vec::new())),
    );
    let (asks, tells) = (Arc::clone(&asked), Arc::clone(&told));
    let provider = script();
    let fetch = |input: Number| async move { Ok::<_, ToolError>(result(input.n)) };
    let output = go(Agent::builder(provider.clone())
        .tool(tool("fetch", "Fetches.", fetch))
        .window(Window::Known(Tokens(12_000)))
        .observer(seen.observer())
        .before_compaction_start(move |tokens, messages| {
            let mut asked = asks.lock().unwrap();
            asked.push((tokens, messages));
            asked.len() % 2 == 0
        })
        .after_compaction_end(move |before, after, tokens_before, tokens_after| {
            let numbers = (before, after, tokens_before, tokens_after);
            tells.lock().unwrap().push(numbers);
        }))
    .await;
    assert!(output.reason.is_answer(), "{:?}", output.reason);
    let (asked, told) = (asked.lock().unwrap().clone(), told.lock().unwrap().clone());
    assert!(asked.len() > 2);
    assert_eq!(told.len() as u64, output.plans);
    assert_eq!(told.len(), asked.len() / 2);
    assert_eq!(told, seen.compactions());
    for ((tokens, messages), told) in asked.iter().skip(1).step_by(2).zip(&told) {
        assert_eq!((*messages, *tokens), (told.0, told.2));
        assert!(told.3 < told.2 && told.1 <= told.0, "{told:?}");
    }
    let vetoes = seen.warnings();
    assert_eq!(vetoes.len(), asked.len() - told.len(), "{vetoes:?}");
}

#[tokio::test]
async fn a_host_that_always_says_no_gets_a_typed_end() {
    let provider = script();
    let agent = agent(provider.clone(), "evict")
        .window(Window::Known(Tokens(12_000)))
        .before_compaction_start(|_, _| false)
        .build()
        .unwrap();
    let Err(Error::Failed(output)) = agent.run("go").await else {
        panic!("no answer");
    };
    let EndReason::CannotFit { cannot_fit } = output.reason else {
        panic!("{:?}", output.reason);
    };
    assert!(cannot_fit.minimum > cannot_fit.limit);
    // The window less the answer, by our counter, which the provider's usage has corrected.
    let near = Tokens(8_500)..Tokens(9_500);
    assert!(near.contains(&cannot_fit.limit), "{cannot_fit}");
    assert_eq!(output.plans, 0);
    assert!(provider.requests().len() > 2);
}

/// The names of the tools that a request declares.
fn declared(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| match tool["name"].as_str() {
        Some(name) => name,
        None => tool["function"]["name"].as_str().unwrap(),
    });
    names.collect()
}

#[tokio::test]
async fn a_tool_of_the_hosts_keeps_its_name_from_those_that_recall() {
    let offered = async |name: &'static str, both: bool| {
        let provider = script();
        let own = |_: Nothing| async move { Ok::<_, ToolError>(String::new()) };
        let mut agent = agent(provider.clone(), "evict").tool(tool(name, "", own));
        if both {
            agent = agent.configure(|it| it.get_tool_response = true);
        }
        agent.build().unwrap().run("go").await.unwrap();
        let requests = provider.requests();
        let names = declared(requests.last().unwrap()).into_iter();
        let names = names.filter(|name| *name != "fetch");
        names.map(str::to_owned).collect::<Vec<String>>()
    };
    for name in ["recall", "recall_search"] {
        assert_eq!(offered(name, false).await, [name]);
        assert_eq!(offered(name, true).await, [name]);
    }
    let name = "get_tool_response";
    assert_eq!(offered(name, true).await, [name]);
    let all = [name, "recall", "recall_search"];
    assert_eq!(offered(name, false).await, all);
    let all = [name, "own", "recall", "recall_search"];
    assert_eq!(offered("own", true).await, all);
}

/// The tools that recall are declared from the first request on, so that a plan does not change the
/// beginning of a request.
#[tokio::test]
async fn tools_that_recall_are_always_declared() {
    const ALL: [&str; 3] = ["fetch", "recall", "recall_search"];
    for strategy in NAMES {
        let recalls = [
            Turn::call("recall", json!({ "id": "m2" })),
            Turn::say("done"),
        ];
        let calls = (0..TURNS).map(|n| Turn::call("fetch", json!({ "n": n })));
        let provider = ScriptedProvider::new(calls.chain(recalls));
        let seen = EventRecorder::default();
        let agent = agent(provider.clone(), strategy)
            .summarizer(Arc::new(summariser("none")))
            .observer(seen.observer())
            .max_turns(100)
            .build()
            .unwrap();
        let mut session = agent.session(id()).await.unwrap();
        let output = session.run("go").await.unwrap();
        assert!(output.reason.is_answer(), "{output:?}");
        assert_eq!(session.window_use().tool_count, 3);
        let requests = provider.requests();
        assert!(requests.iter().all(|request| declared(request) == ALL));
        let first = seen.compactions()[0];
        assert!(first.3 < first.2 && first.3 <= Tokens(6_000), "{first:?}");
        let recalled = contents(requests.last().unwrap());
        assert!(recalled.last().unwrap().contains("m2"), "{recalled:?}");
        assert!(seen.warnings().is_empty(), "{:?}", seen.warnings());
    }
}

/// A model that follows a marker.
struct Follows {
    inner: ScriptedProvider,
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Provider for Follows {
    fn model(&self) -> &str {
        "scripted/follows"
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let reply = self.inner.call(request, deltas).await?;
        let says_done = reply
            .parts
            .iter()
            .any(|part| part.as_text() == Some("done"));
        let mut asked = self.asked.lock().unwrap();
        let texts = request.messages.iter().map(|m| m.text());
        let mut marked = texts.filter_map(|text| {
            let rest = text.split("recall m").nth(1)?.to_owned();
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            Some(format!("m{digits}"))
        });
        let next = marked.rfind(|id| !asked.contains(id));
        let (Some(id), true) = (next, says_done && asked.len() < 4) else {
            return Ok(reply);
        };
        asked.push(id.clone());
        Ok(Reply {
            parts: vec![plimsoll_context::Part::ToolCall(
                plimsoll_context::ToolCall {
                    id: plimsoll_context::CallId(format!("recall_{id}")),
                    name: "recall".into(),
                    arguments: json!({ "id": id, "limit": 32_000 }).to_string(),
                    opaque: None,
                },
            )],
            ..reply
        })
    }
}

#[tokio::test]
async fn a_model_that_follows_a_marker_gets_the_exact_bytes() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let provider = Follows {
        inner: script(),
        asked: Arc::clone(&asked),
    };
    let store = Arc::new(MemoryStore::default());
    let agent = agent(provider, "evict")
        .store(Arc::clone(&store) as Arc<dyn SessionStore>)
        .max_turns(100)
        .configure(|it| it.max_result = Some(Tokens(3_000)))
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = session.run("go").await.unwrap();
    assert!(output.reason.is_answer(), "{:?}", output.reason);
    let asked = asked.lock().unwrap().clone();
    assert!(!asked.is_empty(), "nothing was marked");
    let log = store.load(&id()).await.unwrap();
    for id in asked {
        let call = plimsoll_context::CallId(format!("recall_{id}"));
        let back = log.iter().find_map(|entry| match entry {
            Entry::ToolResult { message, .. } => match message.as_ref() {
                Message::ToolResult(result) if result.call == call => Some(message.text()),
                _ => None,
            },
            _ => None,
        });
        let back = back.unwrap();
        assert!(
            (0..TURNS).any(|n| back.contains(&result(n))),
            "{id}: {back}"
        );
    }
}

// Summaries by another model.

#[tokio::test]
async fn another_model_writes_the_summaries_and_its_use_is_counted() {
    let (provider, short) = (script(), summariser("FACT-OF-THE-SUMMARY"));
    let seen = EventRecorder::default();
    let agent = agent(provider.clone(), "summarize")
        .summarizer(Arc::new(short.clone()))
        .observer(seen.observer())
        .build()
        .unwrap();
    let output = agent.run("the task, word for word").await.unwrap();
    assert!(output.reason.is_answer());
    let asked = short.requests();
    assert!(asked.len() > 1 && asked.len() <= TURNS);
    assert_eq!(seen.summaries(), vec![None; asked.len()]);
    for request in &asked {
        assert!(request.get("tools").is_none(), "{request}");
        assert_eq!(request["messages"].as_array().unwrap().len(), 2);
    }
    assert!(
        contents(&asked[1])[1].contains("FACT-OF-THE-SUMMARY"),
        "it is told of the first"
    );
    let requests = provider.requests();
    let last = contents(requests.last().unwrap());
    assert_eq!(last[0], "the task, word for word");
    assert_eq!(
        last.iter()
            .filter(|text| text.contains("FACT-OF-THE-SUMMARY"))
            .count(),
        1
    );
    let own: Tokens = requests.iter().map(|request| provider.weigh(request)).sum();
    let its: Tokens = asked.iter().map(|request| short.weigh(request)).sum();
    assert_eq!(output.tokens_used.input, own + its);
}

/// S9 by the exact counter: 60 turns of 6 KB under 6,000 tokens.
#[tokio::test]
async fn sixty_turns_of_six_kilobytes_stay_under_six_thousand_exact_tokens() {
    let rows = |n: usize| {
        let line =
            format!("row {n}: port 8431, src/parser_{n}.rs, 0x5f3a{n:04} says all is well\n");
        let mut text = line.repeat(6_000 / line.len() + 1);
        text.truncate(6_000);
        text
    };
    for name in ["summarize", "extract"] {
        let calls = (0..60).map(|n| Turn::call("rows", json!({ "n": n })));
        let provider = ScriptedProvider::new(calls).then_always(Turn::say("done"));
        let short = summariser("so far so good");
        let rows = move |input: Number| async move { Ok::<_, ToolError>(rows(input.n)) };
        let agent = agent(provider.clone(), name)
            .tool(tool("rows", "Rows.", rows))
            .summarizer(Arc::new(short.clone()))
            .max_turns(100)
            .build()
            .unwrap();
        let output = agent.run("the task, word for word").await.unwrap();
        assert!(output.reason.is_answer(), "{name}: {:?}", output.reason);
        let requests = provider.requests();
        assert_eq!(requests.len(), 61, "{name}");
        for request in &requests {
            assert!(provider.weigh(request) <= Tokens(6_000), "{name}");
            assert_eq!(contents(request)[0], "the task, word for word", "{name}");
        }
        let asked = short.requests().len();
        assert!(asked <= 60, "{name}: {asked}");
        assert_eq!(asked > 0, name == "summarize");
    }
}

/// R17, S11, through the driver: whatever the summariser does, and however long it takes.
#[tokio::test(start_paused = true)]
async fn a_summariser_that_fails_or_never_answers_stops_nobody() {
    let busy = || Failure::Transient {
        status: Some(503),
        retry_after_ms: None,
        message: "overloaded".into(),
    };
    let rows: Vec<(&str, Turn, &str, usize)> = vec![
        ("503", Turn::Fail(busy()), "overloaded", 3),
        ("never", Turn::Hang, "no summary within 20 s", 1),
        ("empty", Turn::say(""), "empty", 1),
        (
            "a refusal",
            Turn::say("I'm sorry, I can't do that."),
            "headings",
            1,
        ),
        (
            "50 KB",
            Turn::say("so much to say ".repeat(3_500)),
            "headings",
            1,
        ),
        ("a call", Turn::call("fetch", json!({ "n": 1 })), "tool", 1),
        (
            "its key",
            Turn::Fail(Failure::Auth {
                message: "bad key".into(),
            }),
            "bad key",
            1,
        ),
    ];
    for (name, turn, why, attempts) in rows {
        let (provider, short) = (script(), ScriptedProvider::new([]).then_always(turn));
        let seen = EventRecorder::default();
        let agent = agent(provider.clone(), "summarize")
            .summarizer(Arc::new(short.clone()))
            .configure(|it| it.driver.summary_timeout = Some(Duration::from_secs(20)))
            .retry_config(RetryConfig {
                max_attempts: 3,
                ..RetryConfig::default()
            })
            .observer(seen.observer())
            .build()
            .unwrap();
        let before = tokio::time::Instant::now();
        let output = agent.run("go").await.unwrap();
        let waited = before.elapsed();
        assert!(output.reason.is_answer(), "{name}: {:?}", output.reason);
        assert!(output.plans > 2, "{name}");
        let ended = seen.summaries();
        assert_eq!(ended.len(), 1, "{name}: {ended:?}");
        for failure in &ended {
            let failure = failure.as_deref().unwrap();
            assert!(failure.contains(why), "{name}: {failure}");
        }
        assert_eq!(short.requests().len(), ended.len() * attempts, "{name}");
        assert!(waited <= Duration::from_secs(20 + 10), "{name}: {waited:?}");
        for request in provider.requests() {
            assert!(provider.weigh(&request) <= Tokens(6_000), "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_summariser_that_panics_is_noticed_at_once() {
    let short = Panics::default();
    let seen = EventRecorder::default();
    let agent = agent(script(), "summarize")
        .summarizer(Arc::new(short.clone()))
        .observer(seen.observer())
        .build()
        .unwrap();
    let before = tokio::time::Instant::now();
    let output = agent.run("go").await.unwrap();
    assert!(output.reason.is_answer(), "{:?}", output.reason);
    assert!(
        before.elapsed() < Duration::from_millis(100),
        "nothing was waited for"
    );
    assert!(output.plans > 1, "{}", output.plans);
    let ended = seen.summaries();
    assert_eq!(ended.len(), 1, "{ended:?}");
    for failure in ended {
        assert!(failure.unwrap().contains("out of rum"));
    }
    assert_eq!(short.0.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_gets_through_while_a_summary_is_waited_for() {
    let short = ScriptedProvider::new([]).then_always(Turn::Hang);
    let store = Arc::new(MemoryStore::default());
    let agent = agent(script(), "summarize")
        .store(Arc::clone(&store) as Arc<dyn SessionStore>)
        .summarizer(Arc::new(short.clone()))
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let remote = session.remote();
    let (output, ()) = tokio::join!(session.run("go"), async {
        while short.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        remote.interrupt().await;
    });
    assert_eq!(output.unwrap().reason, EndReason::Interrupted);
    let log = store.load(&id()).await.unwrap();
    let summaries = log
        .iter()
        .filter(|entry| matches!(entry, Entry::Summarized { .. }));
    assert_eq!(summaries.count(), 1);
    drop(session);
    let mut session = agent.session(id()).await.unwrap();
    let output = session.carry_on().await.unwrap();
    assert!(output.reason.is_answer(), "{:?}", output.reason);
}

#[tokio::test]
async fn a_store_that_fails_in_a_compaction_ends_the_run_with_its_error() {
    // The log fails when a plan is written.
    let store = Arc::new(Fails {
        inner: MemoryStore::default(),
        is_full: AtomicBool::new(true),
    });
    let agent = agent(script(), "evict")
        .store(Arc::clone(&store) as Arc<dyn SessionStore>)
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let error = session.run("go").await.unwrap_err();
    assert!(
        matches!(error, Error::Store(StoreError::Full { .. })),
        "{error}"
    );
    // It is not known what was written: nothing more is, also no pin.
    assert!(matches!(
        session.pin_text("a rule").await,
        Err(Error::Stale)
    ));
    drop(session);
    store.is_full.store(false, Ordering::SeqCst);
    let mut session = agent.session(id()).await.unwrap();
    let output = session.carry_on().await.unwrap();
    assert!(output.reason.is_answer(), "{:?}", output.reason);
}

/// A disk that has no room for a plan.
struct Fails {
    inner: MemoryStore,
    is_full: AtomicBool,
}

#[async_trait]
impl SessionStore for Fails {
    plimsoll_testkit::forward_store!(inner: acquire, read, list);
    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        let is_plan = |entry: &Entry| matches!(entry, Entry::PlanApplied { .. });
        if self.is_full.load(Ordering::SeqCst) && entries.iter().any(is_plan) {
            return Err(StoreError::Full {
                path: "disk".into(),
            });
        }
        self.inner.append(lease, entries).await
    }
}

// Pins.

#[tokio::test]
async fn pins_of_the_host() {
    let provider = script();
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
    let agent = agent(provider.clone(), "summarize")
        .store(Arc::clone(&store))
        .summarizer(Arc::new(summariser("all is well")))
        .pin("Never touch vendor/.")
        .pin("Never touch vendor/.")
        .build()
        .unwrap();
    for run in 0..3 {
        let mut session = agent.session(id()).await.unwrap();
        assert_eq!(
            session.pinned().count(),
            1,
            "said once, however often it is opened"
        );
        session.run("go").await.unwrap();
        let last = contents(provider.requests().last().unwrap());
        let there = last
            .iter()
            .filter(|text| text.ends_with("Never touch vendor/."));
        assert_eq!(there.count(), 1, "run {run}");
    }
    let mut session = agent.session(id()).await.unwrap();
    let too_large = session.pin_text(&"rule ".repeat(10_000)).await.unwrap_err();
    assert!(
        matches!(too_large, Error::Pin(PinError::TooLarge { .. })),
        "{too_large}"
    );
    for n in 0..MAX_PINS - 1 {
        session.pin_text(&format!("r{n}")).await.unwrap();
    }
    let more = session.pin_text("one more").await.unwrap_err();
    assert!(matches!(more, Error::Pin(PinError::TooMany)), "{more}");
    let (seq, _) = session.pinned().next().unwrap();
    assert!(session.unpin(seq).await.unwrap());
    assert!(!session.unpin(seq).await.unwrap());
}

#[tokio::test]
async fn a_pin_that_does_not_fit_is_refused_when_the_session_is_opened() {
    let agent = agent(script(), "evict")
        .pin("rule ".repeat(10_000))
        .build()
        .unwrap();
    let error = agent.session(id()).await.err().unwrap();
    let Error::Pin(PinError::TooLarge { pinned, limit }) = error else {
        panic!("{error}");
    };
    assert!(pinned > limit && limit == Tokens(6_000), "{pinned} {limit}");
    // The session is free again.
    assert!(matches!(agent.session(id()).await, Err(Error::Pin(_))));
}

/// A crash between a call and its result; then a host that has learned a new rule.
#[tokio::test]
async fn a_rule_does_not_come_between_a_call_and_its_result() {
    let hang = |_: Nothing| async move {
        std::future::pending::<()>().await;
        Ok::<_, ToolError>("")
    };
    for (carry_on, reopen) in [(true, true), (false, true), (false, false)] {
        let provider =
            ScriptedProvider::new([Turn::call("hang", json!({}))]).then_always(Turn::say("done"));
        let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
        let make = || {
            agent(provider.clone(), "evict")
                .tool(tool("hang", "Hangs.", hang))
                .store(Arc::clone(&store))
        };
        let first = make().build().unwrap();
        let mut session = first.session(id()).await.unwrap();
        let _ = tokio::time::timeout(Duration::from_millis(20), session.run("go")).await;
        if reopen {
            drop(session);
            let second = make().pin("Be kind.").build().unwrap();
            session = second.session(id()).await.unwrap();
            let late = session.pin_text("Be brave.").await.unwrap_err();
            assert!(matches!(late, Error::Pin(PinError::Pending)), "{late}");
        } else {
            session.pin_text("Be kind.").await.unwrap();
        }
        let output = if carry_on {
            session.carry_on().await.unwrap()
        } else {
            session.run("something else").await.unwrap()
        };
        assert!(output.reason.is_answer(), "{:?}", output.reason);
        assert_eq!(session.pinned().count(), 1);
        let last = contents(provider.requests().last().unwrap());
        assert!(
            last.iter().any(|text| text.ends_with("Be kind.")),
            "{last:?}"
        );
    }
}

/// Usage of a summary whose run is dropped is not known; nothing else is lost with it.
#[tokio::test]
async fn a_run_that_is_dropped_in_a_compaction_carries_on() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&dropped);
    let provider = script();
    let agent = agent(provider.clone(), "sliding_window")
        .retry_config(RetryConfig::never())
        .on_evict(move |_, _| {
            let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
            }
        })
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let run = session.run("go");
    let watched = Arc::clone(&dropped);
    tokio::select! {
        _ = run => panic!("it hangs"),
        () = async {
            while watched.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    let before = provider.requests().len();
    session.pin_text("Be kind.").await.unwrap();
    assert_eq!(provider.requests().len(), before);
    let output = session.run("and now?").await.unwrap();
    assert!(output.reason.is_answer(), "{:?}", output.reason);
    assert_ne!(output.tokens_used, Usage::default());
}
