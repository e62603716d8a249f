//! Runs that are dropped in the middle of a write to the log.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use plimsoll_agent::Entry;
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, Error, Lease, LogEntry, MemoryStore, Session, SessionId, SessionInfo, SessionStore,
    StoreError, ToolError, tool,
};
use serde_json::{Value, json};

use crate::Nothing;

/// A store that pauses before and after each write. It records the entries of the writes that have
/// begun.
#[derive(Default)]
struct SlowDisk(MemoryStore, Mutex<Vec<Entry>>);

#[async_trait::async_trait]
impl SessionStore for SlowDisk {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.0.acquire(session).await
    }
    async fn read(
        &self,
        session: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LogEntry>, StoreError> {
        self.0.read(session, after, limit).await
    }
    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        self.1.lock().unwrap().extend_from_slice(entries);
        tokio::task::yield_now().await;
        self.0.append(lease, entries).await?;
        tokio::task::yield_now().await;
        Ok(())
    }
    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        self.0.list().await
    }
}

fn texts_of_user(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_session_goes_on_wherever_its_run_was_dropped() {
    let id = SessionId::new("s").unwrap();
    let mut drops = 0;
    loop {
        let provider = ScriptedProvider::new([]).then_always(Turn::say("done"));
        let ping = |_: Nothing| async move { Ok::<_, ToolError>("pong") };
        let store: Arc<dyn SessionStore> = Arc::new(SlowDisk::default());
        let calls =
            ScriptedProvider::new([Turn::call("ping", json!({}))]).then_always(Turn::say("done"));
        let agent = |provider: &ScriptedProvider| {
            let builder = Agent::builder(provider.clone()).store(Arc::clone(&store));
            builder.tool(tool("ping", "", ping)).build().unwrap()
        };
        let mut session = agent(&calls).session(id.clone()).await.unwrap();
        drops += 1;
        let has_ended = dropped_after(drops, &mut session).await;
        session.switch(&agent(&provider)).await.unwrap();
        session.run("go on").await.unwrap();
        drop(session);
        // Opened again, the session is what it was in memory: nothing is lost, nothing doubled.
        let mut session = agent(&provider).session(id.clone()).await.unwrap();
        session.run("and again").await.unwrap();
        let [before, after] = <[Value; 2]>::try_from(provider.requests()).unwrap();
        let kept = before["messages"].as_array().unwrap();
        assert_eq!(&after["messages"].as_array().unwrap()[..kept.len()], kept);
        assert_eq!(texts_of_user(&before), ["go", "go on"], "{drops} polls");
        assert_eq!(texts_of_user(&after), ["go", "go on", "and again"]);
        if has_ended {
            break;
        }
    }
    assert!(drops >= 8, "{drops} places");
}

/// Polls a run at most `polls` times, and drops it. Returns whether it has ended.
async fn dropped_after(polls: usize, session: &mut Session) -> bool {
    let mut run = pin!(session.run("go"));
    for _ in 0..polls {
        if poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx).is_ready())).await {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

fn agent(store: &Arc<SlowDisk>) -> Agent {
    let ping = |_: Nothing| async move { Ok::<_, ToolError>("pong") };
    let model =
        ScriptedProvider::new([Turn::call("ping", json!({}))]).then_always(Turn::say("done"));
    let store = Arc::clone(store) as Arc<dyn SessionStore>;
    let builder = Agent::builder(model).store(store);
    builder.tool(tool("ping", "", ping)).build().unwrap()
}

#[tokio::test]
async fn a_write_that_has_begun_ends_although_its_session_is_dropped() {
    let id = SessionId::new("s").unwrap();
    for polls in 1.. {
        let store = Arc::new(SlowDisk::default());
        let mut session = agent(&store).session(id.clone()).await.unwrap();
        let has_ended = dropped_after(polls, &mut session).await;
        drop(session);
        // Nobody else may write before it has ended.
        while let Err(StoreError::Busy { .. }) = store.acquire(&id).await {
            tokio::task::yield_now().await;
        }
        let begun = store.1.lock().unwrap().clone();
        assert_eq!(store.load(&id).await.unwrap(), begun, "{polls} polls");
        if has_ended {
            break;
        }
    }
}

#[tokio::test]
async fn a_session_that_is_closed_has_a_complete_log_and_opens_again_at_once() {
    let id = SessionId::new("s").unwrap();
    for polls in 1.. {
        let store = Arc::new(SlowDisk::default());
        let mut session = agent(&store).session(id.clone()).await.unwrap();
        let has_ended = dropped_after(polls, &mut session).await;
        session.close().await.unwrap();
        store.acquire(&id).await.unwrap();
        let log = store.load(&id).await.unwrap();
        assert_eq!(log, *store.1.lock().unwrap(), "{polls} polls");
        let last = log.last();
        assert!(matches!(last, Some(Entry::RunEnded { .. })), "{last:?}");
        if has_ended {
            break;
        }
    }
}

/// Whether the entries were written is unknown, so the log is read again.
#[test]
fn a_session_whose_runtime_ended_in_a_write_is_opened_again() {
    let id = SessionId::new("s").unwrap();
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let mut cut_short = 0;
    for polls in 1.. {
        let store = Arc::new(SlowDisk::default());
        let first = runtime();
        let session = first.block_on(agent(&store).session(id.clone()));
        let mut session = session.unwrap();
        let has_ended = first.block_on(dropped_after(polls, &mut session));
        drop(first);
        let second = runtime();
        if let Err(error) = second.block_on(session.run("go on")) {
            cut_short += 1;
            assert!(error.is_passing(), "{error}");
            let again = second.block_on(session.run("go on"));
            assert_eq!(again.unwrap_err(), Error::Stale);
            drop(session);
            let opened = second.block_on(agent(&store).session(id.clone()));
            session = opened.unwrap();
        }
        let output = second.block_on(session.run("go on")).unwrap();
        assert_eq!(output.text, "done", "{polls} polls: {output:?}");
        if has_ended {
            break;
        }
    }
    assert!(cut_short > 0);
}
