//! The stream of a run: its own events only, its end, its output, and readers that are slow or leave.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use plimsoll_agent::{EndReason, Entry, Event, ToolPhase};
use plimsoll_context::{Delta, Part};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, Error, Lease, MAX_WAITING_EVENTS, MemoryStore, Provider, RunStream, SessionStore,
    StoreError, ToolError, tool,
};
use plimsoll_testkit::{ComputedProvider, reply, session_id as id};
use serde_json::json;
use tokio::sync::Notify;

use crate::Nothing;

/// The events up to the end of the run.
async fn all(run: &mut RunStream<'_>) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    events
}

/// The text of the answer, piece by piece.
fn text_of(events: &[Event]) -> String {
    let text = events.iter().filter_map(|event| match event {
        Event::Delta(Delta::Text { text }) => Some(text.as_str()),
        _ => None,
    });
    text.collect()
}

fn ends(event: Option<&Event>) -> bool {
    matches!(event, Some(Event::AgentEnd { .. }))
}

#[tokio::test]
async fn two_runs_of_one_agent_have_their_own_events() {
    let echo = ScriptedProvider::new([Turn::say("one"), Turn::say("two")]);
    let agent = Agent::builder(echo).build().unwrap();
    let mut east = agent.session(id("east")).await.unwrap();
    let mut west = agent.session(id("west")).await.unwrap();
    let (mut east, mut west) = (east.start("Go."), west.start("Go."));
    let (of_east, of_west) = tokio::join!(all(&mut east), all(&mut west));
    for (run, events) in [(east, of_east), (west, of_west)] {
        assert!(matches!(events.first(), Some(Event::AgentStart { .. })));
        assert!(ends(events.last()));
        let output = run.output().await.unwrap();
        assert_eq!(text_of(&events), output.text);
    }
}

#[tokio::test]
async fn a_session_streams_one_run_after_another() {
    let provider = ScriptedProvider::new([Turn::say("Land!"), Turn::say("An island.")]);
    let agent = Agent::builder(provider).build().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    for answer in ["Land!", "An island."] {
        // As a `Stream` as well.
        let mut run = session.start("What do you see?");
        let events: Vec<Event> = run.by_ref().collect().await;
        let starts = events
            .iter()
            .filter(|e| matches!(e, Event::AgentStart { .. }));
        assert_eq!((starts.count(), text_of(&events).as_str()), (1, answer));
        assert!(run.next().await.is_none());
        assert_eq!(run.output().await.unwrap().text, answer);
    }
}

#[tokio::test]
async fn a_run_is_steered_while_its_events_are_read() {
    // The tool waits until the run was steered.
    let steered = Arc::new(Notify::new());
    let is_steered = Arc::clone(&steered);
    let look = tool("look", "Looks.", move |_: Nothing| {
        let is_steered = Arc::clone(&is_steered);
        async move {
            is_steered.notified().await;
            Ok::<_, ToolError>("fog".to_owned())
        }
    });
    let provider = ScriptedProvider::new([Turn::call("look", json!({})), Turn::say("Aye.")]);
    let agent = Agent::builder(provider.clone()).tool(look).build().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let mut run = session.start("Go.");
    let remote = run.remote();
    while let Some(event) = run.next().await {
        if let Event::ToolCall {
            phase: ToolPhase::Start,
            ..
        } = event
        {
            assert!(remote.steer("Mind the rocks.").await);
            steered.notify_one();
        }
    }
    run.output().await.unwrap();
    let last = format!("{:?}", provider.requests().last().unwrap());
    assert!(last.contains("Mind the rocks."), "{last}");
}

#[tokio::test]
async fn a_run_is_interrupted_and_its_end_is_read() {
    let agent = Agent::builder(ScriptedProvider::new([Turn::Hang]))
        .build()
        .unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let mut run = session.start("Go.");
    while let Some(event) = run.next().await {
        if matches!(event, Event::TurnStart { .. }) {
            run.remote().interrupt().await;
        }
    }
    assert_eq!(run.output().await.unwrap().reason, EndReason::Interrupted);
}

#[tokio::test]
async fn a_dropped_run_is_cancelled_and_the_session_goes_on() {
    let provider = ScriptedProvider::new([Turn::Hang, Turn::say("Home.")]);
    let agent = Agent::builder(provider).build().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let mut run = session.start("Go.");
    while !matches!(run.next().await, Some(Event::TurnStart { .. })) {}
    drop(run);
    // The end of the dropped run is not an event of the next one.
    let mut run = session.start("And back.");
    let events = all(&mut run).await;
    assert!(matches!(events.first(), Some(Event::AgentStart { .. })));
    let ended = events
        .iter()
        .filter(|e| matches!(e, Event::AgentEnd { .. }));
    assert_eq!(ended.count(), 1);
    assert_eq!(run.output().await.unwrap().text, "Home.");
}

/// A store whose writes take a moment, like those to a disk.
#[derive(Default)]
struct Disk(MemoryStore);

#[async_trait]
impl SessionStore for Disk {
    plimsoll_testkit::forward_store!(0: acquire, read, list);
    async fn append(&self, lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        tokio::task::yield_now().await;
        self.0.append(lease, entries).await
    }
}

#[tokio::test]
async fn a_reader_may_leave_after_every_event() {
    let look = |_: Nothing| async { Ok::<_, ToolError>("fog".to_owned()) };
    let script = || [Turn::call("look", json!({})), Turn::say("Fog.")];
    for left_after in 1.. {
        let provider = ScriptedProvider::new(script()).then_always(Turn::say("Home."));
        let builder = Agent::builder(provider).store(Arc::new(Disk::default()));
        let agent = builder.tool(tool("look", "Looks.", look)).build().unwrap();
        let mut session = agent.session(id("s")).await.unwrap();
        let mut run = session.start("Go.");
        let mut last = None;
        for _ in 0..left_after {
            last = run.next().await;
        }
        drop(run);
        let next = session.run("And back.").await;
        assert_eq!(next.unwrap().reason, EndReason::Answered, "{last:?}");
        if last.is_none() {
            return;
        }
    }
}

#[tokio::test]
async fn the_end_of_a_run_is_its_last_event() {
    let agent = Agent::builder(ScriptedProvider::new([Turn::say("Land!")]))
        .after_loop(|_, _| -> () { panic!("out of rum") })
        .build()
        .unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let mut run = session.start("Go.");
    let events = all(&mut run).await;
    let warned = |event: &Event| matches!(event, Event::Warning { .. });
    assert!(events.iter().any(warned), "{events:?}");
    assert!(ends(events.last()), "{events:?}");
    run.output().await.unwrap();
}

#[tokio::test]
async fn a_run_that_cannot_begin_has_no_events() {
    let agent = Agent::builder(ScriptedProvider::new([])).build().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let mut run = session.start("  ");
    assert!(run.next().await.is_none());
    assert!(matches!(run.output().await, Err(Error::EmptyTask)));
}

/// A model that sends all pieces of its answer at once.
fn flood(pieces: usize) -> impl Provider {
    ComputedProvider::new("flood", move |_, deltas| {
        let text = || "a wave ".to_owned();
        for _ in 0..pieces {
            deltas(Delta::Text { text: text() });
        }
        Ok(reply(vec![Part::text(text().repeat(pieces))]))
    })
}

#[tokio::test]
async fn a_burst_of_text_is_read_as_a_whole() {
    let agent = Agent::builder(flood(5_000)).build().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let mut run = session.start("Go.");
    let events = all(&mut run).await;
    assert!(events.len() <= MAX_WAITING_EVENTS, "{}", events.len());
    assert_eq!((run.dropped(), ends(events.last())), (0, true));
    let output = run.output().await.unwrap();
    assert!(text_of(&events).trim() == output.text, "text was lost");
}

#[tokio::test]
async fn a_full_queue_drops_events_but_never_the_end() {
    let agent = Agent::builder(flood(20_000)).build().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let mut run = session.start("Go.");
    let events = all(&mut run).await;
    assert!(run.dropped() > 0);
    assert!(ends(events.last()));
    let output = run.output().await.unwrap();
    assert_eq!(output.text.split(' ').count(), 40_000);
}
