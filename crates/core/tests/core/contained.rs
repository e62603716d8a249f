//! A panic in a host's stage or token counter does not end the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_context::{Budget, Cap, Draft, Evict, Policy, Stage, TokenCounter, Tokens, Trigger};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, AgentBuilder, ToolError, Window, tool};
use plimsoll_testkit::Warnings;
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A model that reads eight pages, and all warnings.
fn agent() -> (AgentBuilder, Warnings) {
    let calls = (0..8).map(|_| Turn::call("read", json!({})));
    let provider = ScriptedProvider::new(calls.chain([Turn::say("All is read.")]));
    let read = |_: Nothing| async { Ok::<_, ToolError>("a line of a page\n".repeat(100)) };
    let warnings = Warnings::default();
    let builder = Agent::builder(provider)
        .tool(tool("read", "Reads a page.", read))
        .window(Window::Known(Tokens(4_000)))
        .observer(warnings.observer());
    (builder, warnings)
}

#[derive(Debug)]
struct Breaks(Arc<AtomicUsize>);

impl Stage for Breaks {
    fn name(&self) -> &str {
        "breaks"
    }

    fn propose(&self, _: &mut Draft<'_>, _: &Budget, _: Trigger) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("out of rum");
    }
}

#[tokio::test]
async fn a_stage_that_panics_is_left_out() {
    let (builder, warnings) = agent();
    let asked = Arc::new(AtomicUsize::new(0));
    let policy = Policy::new(vec![
        Arc::new(Cap::Arrivals),
        Arc::new(Breaks(Arc::clone(&asked))),
        Arc::new(Evict::Oldest),
    ]);
    let output = builder
        .policy(policy)
        .build()
        .unwrap()
        .run("Read all.")
        .await
        .unwrap();
    assert_eq!(output.text, "All is read.");
    assert!(output.plans > 0, "the other stages do their work");
    assert!(asked.load(Ordering::Relaxed) > 1);
    assert_eq!(
        warnings.all(),
        ["breaks broke down: out of rum; the plan is made without it"]
    );
}

#[derive(Debug)]
struct Miscounts;

impl TokenCounter for Miscounts {
    fn name(&self) -> &str {
        "miscounts"
    }

    fn text(&self, text: &str) -> Tokens {
        assert!(!text.contains("page"), "not this one");
        Tokens(text.len() as u64 / 4)
    }
}

#[tokio::test]
async fn what_a_counter_cannot_count_is_estimated() {
    let (builder, warnings) = agent();
    let agent = builder.counter(Arc::new(Miscounts)).build().unwrap();
    let output = agent.run("Read all.").await.unwrap();
    assert_eq!(output.text, "All is read.");
    assert!(output.plans > 0, "what was estimated counts");
    assert_eq!(
        warnings.all(),
        ["miscounts broke down: not this one; texts that it cannot count are estimated"]
    );
}

#[tokio::test]
async fn a_history_limit_that_cannot_be_kept_is_reported_once() {
    for (limit, reports) in [(2, 1), (5, 0)] {
        let (builder, warnings) = agent();
        let agent = builder.max_history_messages(limit).build().unwrap();
        agent.run("Read all.").await.unwrap();
        let warnings = warnings.all();
        let said = |text: &&String| text.contains("max_history_messages is 2, but");
        assert_eq!(
            warnings.iter().filter(said).count(),
            reports,
            "{warnings:?}"
        );
    }
}
