//! Events of several sessions of one agent: each names its session and its run.

use std::sync::{Arc, Mutex};

use plimsoll_agent::{Event, SessionEvent};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, MemoryStore};
use plimsoll_testkit::session_id as id;
use serde_json::json;

/// Everything that an observer sees.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<SessionEvent>>>);

impl Seen {
    fn observer(&self) -> impl Fn(&SessionEvent) + Send + Sync + 'static {
        let seen = Arc::clone(&self.0);
        move |event| seen.lock().unwrap().push(event.clone())
    }

    /// The session and the run of each event that is such.
    fn of(&self, is: impl Fn(&Event) -> bool) -> Vec<(String, u64)> {
        let seen = self.0.lock().unwrap();
        let of = seen.iter().filter(|seen| is(&seen.event));
        of.map(|seen| (seen.session.to_string(), seen.run))
            .collect()
    }
}

#[tokio::test]
async fn two_sessions_of_one_agent_are_told_apart() {
    let seen = Seen::default();
    let provider = ScriptedProvider::new([]).then_always(Turn::say("Aye."));
    let store = Arc::new(MemoryStore::default());
    let agent = Agent::builder(provider)
        .store(store)
        .observer(seen.observer())
        .build()
        .unwrap();
    let mut east = agent.session(id("east")).await.unwrap();
    let mut west = agent.session(id("west")).await.unwrap();
    east.run("Go.").await.unwrap();
    west.run("Go.").await.unwrap();
    east.run("On.").await.unwrap();
    drop(east);
    let mut again = agent.session(id("east")).await.unwrap();
    again.run("And on.").await.unwrap();
    let runs = [("east", 1), ("west", 1), ("east", 2), ("east", 3)];
    let runs = runs.map(|(session, run)| (session.to_owned(), run));
    assert_eq!(seen.of(|e| matches!(e, Event::AgentStart { .. })), runs);
    assert_eq!(seen.of(|e| matches!(e, Event::Delta(_))), runs);
    assert_eq!(seen.of(|e| matches!(e, Event::AgentEnd { .. })), runs);
}

#[tokio::test]
async fn events_of_a_sub_agent_name_its_session_and_reach_its_own_observers() {
    let (seen, own) = (Seen::default(), Seen::default());
    let scout = Agent::builder(ScriptedProvider::new([Turn::say("Land.")]))
        .observer(own.observer())
        .build()
        .unwrap();
    let call = Turn::call("scout", json!({"task": "Look."}));
    let agent = Agent::builder(ScriptedProvider::new([call, Turn::say("Land!")]))
        .tool(scout.as_tool("scout", "Looks."))
        .observer(seen.observer())
        .build()
        .unwrap();
    let mut session = agent.session(id("ship")).await.unwrap();
    session.run("Go.").await.unwrap();
    let outer = seen.of(|e| matches!(e, Event::SubAgent { .. }));
    assert!(!outer.is_empty());
    assert!(outer.iter().all(|of| *of == ("ship".to_owned(), 1)));
    let inner: Vec<(String, u64)> = seen
        .0
        .lock()
        .unwrap()
        .iter()
        .fold(Vec::new(), |mut all, e| {
            if let Event::SubAgent { event, .. } = &e.event {
                all.push((event.session.to_string(), event.run));
            }
            all
        });
    assert_eq!(inner, own.of(|_| true));
    assert!(
        inner
            .iter()
            .all(|(name, run)| name.starts_with("ship.scout") && *run == 1)
    );
}
