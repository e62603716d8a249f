//! When a session's log is read and when a checkpoint is stored: a long session is opened without reading
//! all of it, and a checkpoint that cannot be stored never fails a run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll_agent::{Checkpoint, Entry};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, Branch, CHECKPOINT_EVERY, Fork, JournaledRun, Lease, LocalJournal, MemoryStore,
    ParallelOptions, PickFirst, ResumePoint, SessionId, SessionStore, StoreError,
    agent_loop_parallel,
};
use plimsoll_testkit::session_id as id;

/// A store that counts what is asked of it.
#[derive(Default)]
struct Counting {
    inner: MemoryStore,
    /// Number of logs that were read completely.
    loads: AtomicUsize,
    /// Number of entries that checkpoints were stored of.
    saved: Mutex<Vec<u64>>,
    is_full: AtomicBool,
}

#[async_trait]
impl SessionStore for Counting {
    plimsoll_testkit::forward_store!(inner: acquire, append, list);
    async fn load(&self, session: &SessionId) -> Result<Vec<Entry>, StoreError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.inner.load(session).await
    }
    async fn resume(&self, session: &SessionId) -> Result<ResumePoint, StoreError> {
        self.inner.resume(session).await
    }
    async fn save_checkpoint(
        &self,
        lease: &Lease,
        checkpoint: &Checkpoint,
    ) -> Result<(), StoreError> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(StoreError::Full {
                path: "here".to_owned(),
            });
        }
        self.saved.lock().unwrap().push(checkpoint.entries);
        self.inner.save_checkpoint(lease, checkpoint).await
    }
    async fn fork(&self, lease: &Lease, of: &Fork, own: &[Entry]) -> Result<(), StoreError> {
        self.inner.fork(lease, of, own).await
    }
}

impl Counting {
    fn loads(&self) -> usize {
        self.loads.swap(0, Ordering::SeqCst)
    }

    fn saved(&self) -> Vec<u64> {
        std::mem::take(&mut *self.saved.lock().unwrap())
    }

    async fn entries(&self, session: &str) -> u64 {
        self.inner.load(&id(session)).await.unwrap().len() as u64
    }
}

fn agent(store: &Arc<Counting>, turns: usize) -> (Agent, ScriptedProvider) {
    let model = ScriptedProvider::new((0..turns).map(|turn| Turn::say(format!("answer {turn}"))));
    let store = Arc::clone(store) as Arc<dyn SessionStore>;
    let agent = Agent::builder(model.clone()).store(store).build().unwrap();
    (agent, model)
}

/// Runs tasks until the log is long enough for a checkpoint and one run more.
async fn long(store: &Arc<Counting>) -> u64 {
    let (agent, _) = agent(store, 1_000);
    let mut session = agent.session(id("s")).await.unwrap();
    while store.entries("s").await <= CHECKPOINT_EVERY {
        session.run("What now?").await.unwrap();
    }
    session.run("And then?").await.unwrap();
    store.entries("s").await
}

#[tokio::test]
async fn a_long_session_is_opened_switched_and_forked_without_reading_all_of_it() {
    let store = Arc::new(Counting::default());
    let entries = long(&store).await;
    let saved = store.saved();
    assert_eq!(saved.len(), 1, "one in so many entries");
    assert!(saved[0] >= CHECKPOINT_EVERY && saved[0] < entries);
    assert_eq!(store.loads(), 0, "a new session has no log to read");

    let (agent, model) = agent(&store, 9);
    let mut session = agent.session(id("s")).await.unwrap();
    assert_eq!(session.run("Go on").await.unwrap().text, "answer 0");
    session.switch(&agent).await.unwrap();
    session.run("And on").await.unwrap();
    let mut fork = agent.fork(&id("s"), None, id("f")).await.unwrap();
    fork.run("Elsewhere").await.unwrap();
    drop(fork);
    drop(agent.session(id("f")).await.unwrap());
    assert_eq!(store.loads(), 0);
    // Every message is still in view.
    let requests = model.requests();
    let messages = requests[0]["messages"].as_array().unwrap();
    let text = |at: usize| messages[at]["content"].as_str().unwrap();
    assert_eq!(text(0), "What now?");
    assert_eq!(text(messages.len() - 1), "Go on");
    let sent = requests[0].to_string();
    assert_eq!(sent.matches("What now?").count() * 2 + 3, messages.len());

    // What needs old entries reads them.
    assert!(session.undo().await.is_ok());
    assert_eq!(store.loads(), 1);
    drop(session);
    // An entry that only the checkpoint's part of the log has.
    drop(agent.fork(&id("s"), Some(5), id("early")).await.unwrap());
    assert_eq!(store.loads(), 1);
    assert!(store.saved().is_empty(), "so few new entries");
}

#[tokio::test]
async fn parallel_runs_store_checkpoints_too() {
    let store = Arc::new(Counting::default());
    let (of_session, _) = agent(&store, 0);
    let mut session = of_session.session(id("s")).await.unwrap();
    while store.entries("s").await <= CHECKPOINT_EVERY {
        let (branch, _) = agent(&store, 1);
        let branches = vec![Branch::new(branch)];
        let options = ParallelOptions::default();
        let asked = agent_loop_parallel(
            &mut session,
            "Now?",
            branches,
            &PickFirst::Configured,
            options,
        );
        asked.await.unwrap();
    }
    let found = store.resume(&id("s")).await.unwrap();
    assert!(found.checkpoint.is_some(), "of the session itself");
}

#[tokio::test]
async fn a_checkpoint_that_cannot_be_stored_or_read_changes_nothing() {
    let store = Arc::new(Counting::default());
    store.is_full.store(true, Ordering::SeqCst);
    let entries = long(&store).await;
    assert!(store.saved().is_empty());
    store.is_full.store(false, Ordering::SeqCst);

    // The next run of another process stores it, since it had to read everything.
    let (agent, _) = agent(&store, 9);
    let mut session = agent.session(id("s")).await.unwrap();
    session.run("Go on").await.unwrap();
    let items = session.view().transcript().items().len();
    drop(session);
    let saved = store.saved();
    assert!(saved.len() == 1 && saved[0] > entries);

    for state in ["", "{}", "{\"version\":0}"] {
        let lease = store.acquire(&id("s")).await.unwrap();
        let unusable = Checkpoint {
            entries: saved[0],
            state: state.to_owned(),
        };
        store
            .inner
            .save_checkpoint(&lease, &unusable)
            .await
            .unwrap();
        drop(lease);
        let session = agent.session(id("s")).await.unwrap();
        assert_eq!(session.view().transcript().items().len(), items);
        assert_eq!(store.loads(), 1, "the whole log is read instead");
    }
}

#[tokio::test]
async fn a_request_is_known_by_its_key_behind_a_checkpoint() {
    let store = Arc::new(Counting::default());
    let (first, _) = agent(&store, 1_000);
    let request = |key: &str| JournaledRun {
        key: key.to_owned(),
        message: "What now?".into(),
        config: Default::default(),
    };
    let mut session = first.session_to_journal(id("s")).await.unwrap();
    let mut runs = 0;
    while store.entries("s").await <= CHECKPOINT_EVERY {
        let request = request(&runs.to_string());
        let output = session.run_journaled(&request, &LocalJournal).await;
        output.unwrap();
        runs += 1;
    }
    drop(session);
    assert_eq!(store.saved().len(), 1);
    let entries = store.entries("s").await;
    let (agent, model) = agent(&store, 1);
    let mut session = agent.session_to_journal(id("s")).await.unwrap();
    let output = session.run_journaled(&request("3"), &LocalJournal).await;
    assert_eq!(output.unwrap().text, "answer 3");
    assert!(model.requests().is_empty(), "it ran long ago");
    assert_eq!(store.entries("s").await, entries);
}
