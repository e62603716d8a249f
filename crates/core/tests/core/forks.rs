//! Forks through an agent: the requests of each branch, recall in a branch, and refused forks.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll_agent::{Entry, run_records};
use plimsoll_context::{ContextStrategy, Part, Seq, Tokens};
use plimsoll_core::recall::LogMessages;
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, Error, ForkFault, MemoryStore, RecallError, SessionStore, StoreError,
    ToolError, Window, tool,
};
use plimsoll_testkit::{ComputedProvider, reply, session_id as id};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: usize,
}

/// About 1,000 tokens, and which result it is.
fn result(branch: &str, n: usize) -> String {
    format!("row of result {n} of {branch}: all is well here\n").repeat(80)
}

/// An agent with a tool, in a store.
fn agent(
    provider: &ScriptedProvider,
    store: &Arc<dyn SessionStore>,
    branch: &'static str,
) -> AgentBuilder {
    let fetch = move |input: Number| async move { Ok::<_, ToolError>(result(branch, input.n)) };
    Agent::builder(provider.clone())
        .tool(tool("fetch", "Fetches.", fetch))
        .context_strategy(ContextStrategy::named("sliding_window", Some(Tokens(6_000))).unwrap())
        .window(Window::Known(Tokens(32_000)))
        .store(Arc::clone(store))
}

fn memory() -> Arc<dyn SessionStore> {
    Arc::new(MemoryStore::default())
}

fn fetches(range: std::ops::Range<usize>) -> ScriptedProvider {
    let calls = range.map(|n| Turn::call("fetch", json!({ "n": n })));
    ScriptedProvider::new(calls).then_always(Turn::say("done"))
}

fn messages(request: &Value) -> Vec<Value> {
    request["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn branches_send_the_same_beginning_and_nothing_of_each_other() {
    let store = memory();
    let provider = fetches(0..2);
    let agent = agent(&provider, &store, "p")
        .system("Be brief.")
        .build()
        .unwrap();
    let mut session = agent.session(id("p")).await.unwrap();
    session.run("fetch two").await.unwrap();
    // The parent is held by its writer meanwhile.
    let mut fork = agent.fork(&id("p"), None, id("f")).await.unwrap();
    session.run("what of the parent?").await.unwrap();
    fork.run("what of the fork?").await.unwrap();
    session.run("and then, parent?").await.unwrap();
    fork.run("and then, fork?").await.unwrap();
    let sent: Vec<Vec<Value>> = provider.requests().iter().map(messages).collect();
    let [.., shared, parent, fork_1, parent_2, fork_2] = sent.as_slice() else {
        panic!("{}", sent.len());
    };
    assert_eq!(parent[..shared.len()], shared[..]);
    assert_eq!(
        fork_1[..shared.len()],
        shared[..],
        "the same bytes to the provider"
    );
    assert_eq!(parent.len(), fork_1.len());
    assert_eq!(parent_2[..parent.len()], parent[..]);
    assert_eq!(fork_2[..fork_1.len()], fork_1[..]);
    let text = serde_json::to_string(fork_2).unwrap();
    assert!(text.contains("what of the fork?") && !text.contains("parent?"));
    let text = serde_json::to_string(parent_2).unwrap();
    assert!(text.contains("what of the parent?") && !text.contains("fork?"));

    let log = store.load(&id("f")).await.unwrap();
    let whole = store.load(&id("p")).await.unwrap();
    let at = log
        .iter()
        .position(|entry| matches!(entry, Entry::Forked { .. }));
    let at = at.unwrap();
    assert_eq!(log[..at], whole[..at]);
    let (from, entries) = ("p".to_owned(), at as u64);
    assert_eq!(log[at], Entry::Forked { from, entries });
    let records = run_records("f", &log);
    let names: Vec<String> = records.iter().map(|it| it.id.clone()).collect();
    assert_eq!(names, ["p.default.1", "f.default.2", "f.default.3"]);
}

#[tokio::test]
async fn a_session_is_forked_at_any_entry_and_each_fork_goes_on() {
    let store = memory();
    let provider = fetches(0..3);
    let plain = agent(&provider, &store, "p").build().unwrap();
    plain
        .session(id("p"))
        .await
        .unwrap()
        .run("fetch three")
        .await
        .unwrap();
    let whole = store.load(&id("p")).await.unwrap();
    for at in 0..=whole.len() {
        for says in ["say", "go-on"] {
            // It refuses a request that a provider would refuse.
            let provider = ScriptedProvider::new([]).then_always(Turn::say("forked"));
            let agent = agent(&provider, &store, "f").build().unwrap();
            let name = format!("{says}-{at}");
            let fork = agent.fork(&id("p"), Some(at as u64), id(&name)).await;
            let mut fork = fork.unwrap();
            let output = match says {
                "say" => fork.run("something else").await,
                _ => fork.carry_on().await,
            };
            match output {
                Ok(output) => assert!(output.reason.is_answer(), "{name}: {:?}", output.reason),
                // No messages yet.
                Err(error) => assert!(says != "say" && error == Error::EmptyTask, "{error}"),
            }
            drop(fork);
            let log = store.load(&id(&name)).await.unwrap();
            assert_eq!(log[..at], whole[..at], "{name}");
        }
    }
    assert_eq!(store.load(&id("p")).await.unwrap(), whole);
}

/// What recall says of an item: its text's first line, or in one word why there is none.
async fn recalled(store: &dyn SessionStore, session: &str, seq: Seq) -> String {
    match store.recall(&id(session), seq.recall_id().as_str()).await {
        Ok(item) => item.text().lines().next().unwrap_or_default().to_owned(),
        Err(RecallError::Unknown(_)) => "unknown".to_owned(),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_fork_recalls_what_it_shares_and_its_own_but_never_the_parents() {
    let store = memory();
    let long = agent(&fetches(0..20), &store, "the parent")
        .build()
        .unwrap();
    long.session(id("p"))
        .await
        .unwrap()
        .run("go")
        .await
        .unwrap();
    let whole = store.load(&id("p")).await.unwrap();
    let at = whole.len() / 2;
    let provider = fetches(50..70);
    let other = agent(&provider, &store, "the fork").build().unwrap();
    let fork = other
        .fork(&id("p"), Some(at as u64), id("f"))
        .await
        .unwrap();
    let shared = fork.view().transcript().next_seq();
    drop(fork);
    let store = store.as_ref();
    let evicted = async |session: &str| -> Vec<Seq> {
        let log = LogMessages::read(store, &id(session)).await.unwrap();
        log.evicted().map(|id| id.0).collect()
    };
    let parents = evicted("p").await;
    let before = evicted("f").await;
    // At the fork, the view still had what later left it.
    let wanted: Vec<Seq> = before
        .iter()
        .copied()
        .filter(|seq| parents.contains(seq) && *seq < shared)
        .collect();
    assert_eq!(before, wanted);
    assert!(!wanted.is_empty() && wanted.len() < parents.len());
    for seq in parents.iter().filter(|seq| **seq >= shared) {
        assert_eq!(recalled(store, "f", *seq).await, "unknown", "{seq}");
    }

    let mut fork = other.session(id("f")).await.unwrap();
    assert!(fork.run("go on").await.unwrap().plans > 0);
    let mut theirs = 0;
    for seq in evicted("f").await {
        let text = recalled(store, "f", seq).await;
        assert_eq!(
            text.contains("the parent"),
            text.starts_with("row") && seq < shared,
            "{text}"
        );
        theirs += usize::from(text.contains("the fork"));
        if seq < shared {
            assert_eq!(text, recalled(store, "p", seq).await);
        }
    }
    assert!(theirs > 5, "what leaves the fork is its own");
    let search = async |session: &str, query: &str| {
        let mut messages = LogMessages::default();
        messages
            .search(store, &id(session), query, 50)
            .await
            .unwrap()
    };
    let hits = search("f", "row result parent").await;
    assert!(hits.iter().all(|hit| hit.id.0 < shared) && !hits.is_empty());
    let hits = search("p", "fork").await;
    assert_eq!(hits, [], "and the parent sees nothing of the fork");
}

#[tokio::test]
async fn a_fork_that_cannot_be_made_says_why_and_leaves_nothing() {
    let store = memory();
    let provider = ScriptedProvider::new([]).then_always(Turn::say("yes"));
    let agent = agent(&provider, &store, "p").build().unwrap();
    let session = agent.session(id("p")).await;
    session.unwrap().run("go").await.unwrap();
    let entries = store.load(&id("p")).await.unwrap().len() as u64;
    let _held = agent.session(id("held")).await.unwrap();
    let wanted = entries + 1;
    let table = [
        ("nobody", None, "f", Some(ForkFault::Unknown)),
        ("nobody", Some(3), "f", Some(ForkFault::Unknown)),
        (
            "p",
            Some(wanted),
            "f",
            Some(ForkFault::Beyond { wanted, entries }),
        ),
        (
            "p",
            Some(u64::MAX),
            "f",
            Some(ForkFault::Beyond {
                wanted: u64::MAX,
                entries,
            }),
        ),
        ("p", None, "p", Some(ForkFault::Taken { session: id("p") })),
        (
            "held",
            None,
            "held",
            Some(ForkFault::Taken {
                session: id("held"),
            }),
        ),
        ("p", None, "held", None),
    ];
    for (from, at, to, why) in table {
        let Err(Error::Store(error)) = agent.fork(&id(from), at, id(to)).await else {
            panic!("{from} at {at:?} as {to}");
        };
        let session = id(from);
        let wanted = match why {
            Some(why) => StoreError::CannotFork { session, why },
            None => StoreError::Busy { session: id(to) },
        };
        assert_eq!(error, wanted);
    }
    assert_eq!(store.list().await.unwrap().len(), 1);
    drop(agent.fork(&id("p"), Some(entries), id("f")).await.unwrap());
}

/// A store with the required methods only.
struct LogOnly(MemoryStore);

#[async_trait]
impl SessionStore for LogOnly {
    plimsoll_testkit::forward_store!(0: acquire, read, append, list);
}

#[tokio::test]
async fn a_store_that_only_keeps_logs_forks_by_copying() {
    let logs: Arc<dyn SessionStore> = Arc::new(LogOnly(MemoryStore::default()));
    let provider = fetches(0..2);
    let agent = agent(&provider, &logs, "p").build().unwrap();
    let mut session = agent.session(id("p")).await.unwrap();
    session.run("go").await.unwrap();
    drop(session);
    let mut fork = agent.fork(&id("p"), None, id("f")).await.unwrap();
    fork.run("and now?").await.unwrap();
    drop(fork);

    let requests = provider.requests();
    let [.., before, after] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    let (before, after) = (messages(before), messages(after));
    assert_eq!(after[..before.len()], before);
    let first = logs.recall(&id("f"), "m2").await.unwrap();
    assert_eq!(first.text(), result("p", 0));
    let again = agent.fork(&id("p"), None, id("f")).await.map(drop);
    let Err(again) = again else {
        panic!("it was forked twice");
    };
    assert!(again.to_string().contains("exists already"), "{again}");
}

#[tokio::test]
async fn a_fork_finds_the_cache_that_its_first_ancestor_has_filled() {
    let keys: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let asked = Arc::clone(&keys);
    let provider = ComputedProvider::new("test/keys", move |request, _| {
        let key = request.cache.key.as_deref().map(str::to_owned);
        asked.lock().unwrap().push(key);
        Ok(reply(vec![Part::text("yes")]))
    });
    let agent = Agent::builder(provider).store(memory()).build().unwrap();
    agent
        .session(id("a"))
        .await
        .unwrap()
        .run("go")
        .await
        .unwrap();
    for (from, to) in [("a", "b"), ("b", "c")] {
        let mut fork = agent.fork(&id(from), None, id(to)).await.unwrap();
        fork.run("go on").await.unwrap();
    }
    let mut again = agent.session(id("c")).await.unwrap();
    again.run("go on").await.unwrap();
    let keys = keys.lock().unwrap();
    assert_eq!(*keys, vec![Some("a".to_owned()); 4]);
}
