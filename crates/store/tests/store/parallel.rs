//! Parallel evaluation and sub-agents over SQLite: the stored data matches the data in memory.

use std::sync::Arc;

use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, Branch, ParallelOptions, SessionId, SessionStore, TokenEfficient, agent_loop_parallel,
};
use plimsoll_store::{Durability, Options, SqliteStore};
use plimsoll_testkit::view_items as items;
use serde_json::json;

async fn open(folder: &tempfile::TempDir) -> Arc<SqliteStore> {
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    Arc::new(
        SqliteStore::open_with(folder.path(), options)
            .await
            .unwrap(),
    )
}

#[tokio::test]
async fn branches_and_sub_agents_are_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let id = SessionId::new("s").unwrap();
    let scout = ScriptedProvider::new([Turn::say("It is foggy.")]);
    let scout = Agent::builder(scout).build().unwrap();
    let north = ScriptedProvider::new([
        Turn::call("scout", json!({"task": "Look north."})),
        Turn::say("North."),
    ]);
    let north = Agent::builder(north).tool(scout.as_tool("scout", ""));
    let south = ScriptedProvider::new([Turn::say(
        "South, and a few more words than need be. ".repeat(99),
    )]);
    let south = Agent::builder(south);
    let store = open(&folder).await;
    let main = |store: &Arc<SqliteStore>| {
        let model = ScriptedProvider::new([Turn::say("Ahoy.")]);
        let store: Arc<dyn SessionStore> = store.clone();
        Agent::builder(model).store(store).build().unwrap()
    };
    let mut session = main(&store).session(id.clone()).await.unwrap();
    session.run("Hello.").await.unwrap();
    let branches = vec![
        Branch::new(south.build().unwrap()),
        Branch::new(north.build().unwrap()),
    ];
    let options = ParallelOptions::default();
    let asked = agent_loop_parallel(
        &mut session,
        "Where to?",
        branches,
        &TokenEfficient,
        options,
    );
    let outcome = asked.await.unwrap();
    assert_eq!(outcome.text, "North.");
    let before = (items(&session), session.view().usage());
    drop(session);
    drop(store);
    let store = open(&folder).await;
    let session = main(&store).session(id.clone()).await.unwrap();
    assert_eq!((items(&session), session.view().usage()), before);
    // The fork of the winner reads the same, and shares what it began with.
    let list = store.list().await.unwrap();
    let names: Vec<&str> = list.iter().map(|info| info.id.as_str()).collect();
    let winner = &outcome.results[1].session_id;
    for name in ["s", "s.b2-0", "s.b2-1", "s.b2-1.scout.3-0"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let fork = list.iter().find(|info| info.id == *winner).unwrap();
    let entries = usize::try_from(fork.fork.as_ref().unwrap().entries).unwrap();
    let (log, other) = (
        store.load(&id).await.unwrap(),
        store.load(winner).await.unwrap(),
    );
    assert_eq!(log[..entries], other[..entries]);
    // One entry is of the fork alone, and one of the session.
    assert_eq!(log[entries + 1..], other[entries + 1..]);
    let winner = main(&store).session(winner.clone()).await.unwrap();
    assert_eq!(items(&winner), before.0);
}
