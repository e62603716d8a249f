//! Requested plans between two runs, through the driver: the effects on the provider, recall,
//! the hooks and a reopened session. The state machine has its own tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use plimsoll_agent::{Entry, Failure, Request, State};
use plimsoll_context::{ContextStrategy, Delta, Reply, Tokens};
use plimsoll_core::recall::LogMessages;
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, MemoryStore, Provider, Session, SessionId, SessionStore, ToolError,
    Window, tool,
};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: usize,
}

const CALLS: usize = 10;

fn script() -> ScriptedProvider {
    let calls = (0..CALLS).map(|n| Turn::call("fetch", json!({ "n": n })));
    ScriptedProvider::new(calls).then_always(Turn::say("done"))
}

/// An agent whose view is at its trigger at 20,000 tokens, and at its target well below what the
/// script makes of it.
fn agent(provider: impl Provider + 'static, strategy: &str, store: &MemoryStore) -> AgentBuilder {
    let fetch = |input: Number| async move {
        let line = format!("row of result {}: all is well here\n", input.n);
        Ok::<_, ToolError>(line.repeat(150))
    };
    let max_tokens = Some(Tokens(20_000));
    Agent::builder(provider)
        .tool(tool("fetch", "Fetches.", fetch).idempotent())
        .context_strategy(ContextStrategy::named(strategy, max_tokens).unwrap())
        .window(Window::Known(Tokens(64_000)))
        .store(Arc::new(store.clone()))
}

async fn session(agent: &Agent) -> Session {
    let mut session = agent.session(SessionId::new("s").unwrap()).await.unwrap();
    session.run("Fetch all rows.").await.unwrap();
    let now = session.window_use();
    assert!(
        now.target.unwrap() < now.used && now.used < now.trigger.unwrap(),
        "{now:?}"
    );
    session
}

/// One that never answers.
struct Mute(Arc<AtomicUsize>);

#[async_trait]
impl Provider for Mute {
    fn model(&self) -> &str {
        "test/mute"
    }

    async fn call(&self, _: &Request, _: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, Failure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

#[tokio::test]
async fn what_leaves_can_be_recalled_is_told_and_gone_from_the_next_request() {
    let (store, provider) = (MemoryStore::default(), script());
    let told = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&told);
    let agent = agent(provider.clone(), "sliding_window", &store)
        .after_compaction_end(move |before: usize, after: usize, _: Tokens, _: Tokens| {
            counts.store(before - after, Ordering::SeqCst);
        })
        .build()
        .unwrap();
    let mut session = session(&agent).await;
    let before = session.view().transcript().items().len();
    let done = session.compact(Some("the rows")).await.unwrap().unwrap();
    assert_eq!(done.messages_before, before);
    let left = done.messages_before - done.messages_after;
    assert!(left > 0 && done.tokens_after <= session.window_use().target.unwrap());
    assert_eq!(told.load(Ordering::SeqCst), left);
    // A marker stands for the messages that were removed.
    let log = LogMessages::read(&store, session.id()).await.unwrap();
    assert_eq!(log.evicted().count(), left + 1);
    assert_eq!(
        session.compact(None).await.unwrap(),
        None,
        "there is nothing to compact any more"
    );
    assert_eq!(
        provider.requests().len(),
        CALLS + 1,
        "no model was called for it"
    );
    session.run("And now?").await.unwrap();
    let last = provider.requests().pop().unwrap().to_string();
    assert!(!last.contains("row of result 0:") && last.contains("row of result 9:"));
    // It is in the log: who opens it again has the same view.
    let log = store.load(session.id()).await.unwrap();
    let state = State::fold(Arc::clone(session.view().transcript().counter()), &log).unwrap();
    let texts = |state: &State| -> Vec<String> {
        let items = state.transcript().items().iter();
        items.map(|item| item.message.text()).collect()
    };
    assert_eq!(texts(&state), texts(session.view()));
    let plans = log
        .iter()
        .filter(|entry| matches!(entry, Entry::PlanApplied { .. }));
    assert_eq!(plans.count(), 1);
}

#[tokio::test]
async fn a_hook_can_refuse_it() {
    let store = MemoryStore::default();
    let refuses = Arc::new(AtomicBool::new(true));
    let says = Arc::clone(&refuses);
    let agent = agent(script(), "sliding_window", &store)
        .before_compaction_start(move |_: Tokens, _: usize| !says.load(Ordering::SeqCst))
        .build()
        .unwrap();
    let mut session = session(&agent).await;
    let used = session.window_use().used;
    assert_eq!(session.compact(None).await.unwrap(), None);
    assert_eq!(session.window_use().used, used);
    refuses.store(false, Ordering::SeqCst);
    assert!(session.compact(None).await.unwrap().is_some());
}

#[tokio::test]
async fn one_that_is_dropped_leaves_the_view_as_it_was_and_the_session_goes_on() {
    let (store, provider) = (MemoryStore::default(), script());
    let calls = Arc::new(AtomicUsize::new(0));
    let agent = agent(provider.clone(), "summarize", &store)
        .summarizer(Arc::new(Mute(Arc::clone(&calls))))
        .build()
        .unwrap();
    let mut session = session(&agent).await;
    let used = session.window_use().used;
    tokio::select! {
        biased;
        _ = session.compact(None) => panic!("nobody writes its summary"),
        () = async {
            while calls.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    assert_eq!(session.window_use().used, used);
    assert_eq!(session.run("And now?").await.unwrap().text, "done");
    let log = store.load(session.id()).await.unwrap();
    let failed = |entry: &&Entry| {
        matches!(
            entry,
            Entry::Summarized {
                failure: Some(_),
                ..
            }
        )
    };
    assert_eq!(
        log.iter().filter(failed).count(),
        1,
        "what it may have used is counted"
    );
}
