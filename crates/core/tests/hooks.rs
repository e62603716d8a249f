//! Hooks from outside: in which order they are called among the events, what a no of each stops, and
//! that none of them can hold up or break a run.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_agent::{EndReason, Event, Failure, MessagePhase, ToolPhase};
use plimsoll_context::ToolSpec;
use plimsoll_context::{ContextStrategy, Part, Tokens};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, Remote, SessionId, Tool, ToolContext, ToolError, ToolOutput, Window,
    schema_of, tool,
};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// What was called and seen, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn has(&self, text: &str) -> usize {
        self.lines()
            .iter()
            .filter(|line| line.contains(text))
            .count()
    }

    /// Notes every event but the deltas.
    fn watch(&self, event: &Event) {
        let text = match event {
            Event::AgentStart { run, .. } => format!("AgentStart {run}"),
            Event::AgentEnd { outcome } => format!("AgentEnd {}", outcome.reason.word()),
            Event::TurnStart { turn, cause, .. } => {
                let cause = serde_json::to_value(cause).unwrap();
                format!("TurnStart {turn} {}", cause.as_str().unwrap())
            }
            Event::TurnEnd { turn, .. } => format!("TurnEnd {turn}"),
            Event::ToolCall { phase, name, .. } => format!("tool {name} {phase:?}"),
            Event::ToolUpdate { name, text, .. } => format!("update {name} {text}"),
            Event::Message { kind, phase, .. } => format!("message {kind:?} {phase:?}"),
            Event::CompactionStarted { .. } => "CompactionStarted".to_owned(),
            Event::CompactionEnded { .. } => "CompactionEnded".to_owned(),
            Event::InputRejected { why } => format!("InputRejected {why}"),
            Event::LimitReached { .. } => "LimitReached".to_owned(),
            Event::Warning { text } => format!("Warning {text}"),
            _ => return,
        };
        self.note(text);
    }

    /// An agent all of whose hooks and events are noted.
    fn agent(&self, provider: &ScriptedProvider) -> AgentBuilder {
        let note = || self.clone();
        let seen = note();
        let builder =
            Agent::builder(provider.clone()).observer(move |event: &Event| seen.watch(event));
        let d = note();
        let builder = builder.before_task(move |state| {
            d.note(format!("> before_task {}", state.session_id));
            true
        });
        let d = note();
        let builder = builder.after_task(move |_, output| {
            d.note(format!("> after_task {}", output.reason.word()));
        });
        // Some of them give back futures, as they may.
        let d = note();
        let builder = builder.before_loop(move |messages, run| {
            let d = d.clone();
            async move {
                tokio::task::yield_now().await;
                d.note(format!("> before_loop {run} of {}", messages.len()));
                true
            }
        });
        let d = note();
        let builder = builder.after_loop(move |messages, usage| {
            assert!(usage.output > Tokens(0));
            d.note(format!("> after_loop {}", messages.len()));
        });
        let d = note();
        let builder = builder.before_turn(move |messages, turn| {
            d.note(format!("> before_turn {turn} of {}", messages.len()));
            true
        });
        let d = note();
        let builder = builder.after_turn(move |_, usage| {
            let d = d.clone();
            async move {
                assert!(usage.output > Tokens(0));
                d.note("> after_turn");
            }
        });
        let d = note();
        let builder = builder.on_error(move |text| d.note(format!("> on_error {text}")));
        let d = note();
        let builder = builder.before_tool_execution(move |name, call, arguments| {
            d.note(format!("> before_tool {name} {call} {arguments}"));
            true
        });
        let d = note();
        let builder = builder.after_tool_execution(move |name, call, is_error| {
            d.note(format!("> after_tool {name} {call} {is_error}"));
        });
        let d = note();
        let builder = builder.before_tool_execution_update(move |name, _, text| {
            d.note(format!("> before_update {name} {text}"));
            true
        });
        let d = note();
        let builder = builder.after_tool_execution_update(move |name, _, text| {
            let d = d.clone();
            async move { d.note(format!("> after_update {name} {text}")) }
        });
        let d = note();
        let builder = builder.before_compaction_start(move |_, messages| {
            d.note(format!("> before_compaction {messages}"));
            true
        });
        let d = note();
        let builder = builder.after_compaction_end(move |before, after, from, to| {
            assert!(to < from);
            d.note(format!("> after_compaction {before} {after}"));
        });
        let d = note();
        builder.on_evict(move |_, evicted| d.note(format!("> on_evict {}", evicted.items.len())))
    }
}

/// A tool that says how far it is and returns as much text as it is asked for.
struct Fetch(ToolSpec);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Size {
    /// Words.
    words: usize,
}

fn fetch() -> Fetch {
    Fetch(ToolSpec {
        name: "fetch".into(),
        description: "Fetches words.".into(),
        schema: schema_of::<Size>(),
    })
}

#[async_trait::async_trait]
impl Tool for Fetch {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        cx.update("half");
        let words = arguments["words"].as_u64().unwrap();
        Ok("lorem ipsum "
            .repeat(usize::try_from(words).unwrap())
            .into())
    }
}

fn id() -> SessionId {
    SessionId::new("s").unwrap()
}

fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| {
            format!(
                "{}: {}",
                message["role"].as_str().unwrap(),
                message["content"]
            )
        })
        .collect()
}

/// R23: every hook and every event of a run with tools, a compaction, a steer and a follow-up.
#[tokio::test]
async fn all_hooks_and_events_in_their_order() {
    let diary = Diary::default();
    let provider = ScriptedProvider::new([
        Turn::call("fetch", json!({"words": 300})),
        Turn::call("fetch", json!({"words": 10})),
        Turn::say("Half."),
        Turn::say("All."),
    ]);
    let steers = Arc::new(AtomicUsize::new(0));
    let follows = Arc::new(AtomicUsize::new(0));
    let agent = diary
        .agent(&provider)
        .tool(fetch())
        .window(Window::Known(Tokens(2_000)))
        .context_strategy(ContextStrategy::SlidingWindow {
            max_tokens: Some(Tokens(400)),
        })
        .get_steering_messages({
            let (steers, diary) = (Arc::clone(&steers), diary.clone());
            move || {
                // Behind the result of the second call.
                let now = steers.fetch_add(1, Ordering::SeqCst);
                if now == 3 {
                    diary.note("> steers");
                    return vec!["Faster.".to_owned()];
                }
                Vec::new()
            }
        })
        .get_follow_up_messages({
            let (follows, diary) = (Arc::clone(&follows), diary.clone());
            move || {
                let first = follows.fetch_add(1, Ordering::SeqCst) == 0;
                diary.note("> follow_ups");
                async move {
                    match first {
                        true => vec![vec![Part::text("And the rest?")]],
                        false => Vec::new(),
                    }
                }
            }
        })
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = session.run("Fetch.").await.unwrap();
    assert_eq!(output.text, "All.");
    let expected = [
        "> before_task s",
        "> before_loop 1 of 0",
        "AgentStart 1",
        "> before_turn 1 of 1",
        "TurnStart 1 user",
        "> before_tool fetch call_1_0 {\"words\":300}",
        "tool fetch Start",
        "> before_update fetch half",
        "update fetch half",
        "> after_update fetch half",
        "tool fetch Success",
        "> after_tool fetch call_1_0 false",
        "TurnEnd 1",
        "> after_turn",
        "> before_turn 2 of 3",
        "TurnStart 2 tool_results",
        "> before_compaction 3",
        "CompactionStarted",
        "CompactionEnded",
        "> after_compaction 3 3",
        "> before_tool fetch call_2_0 {\"words\":10}",
        "tool fetch Start",
        "> before_update fetch half",
        "update fetch half",
        "> after_update fetch half",
        "> steers",
        "message Steer Queued",
        "tool fetch Success",
        "> after_tool fetch call_2_0 false",
        "TurnEnd 2",
        "> after_turn",
        "> before_turn 3 of 5",
        "TurnStart 3 steer",
        "message Steer Delivered",
        "TurnEnd 3",
        "> after_turn",
        "> follow_ups",
        "message FollowUp Queued",
        "message FollowUp Delivered",
        "> before_turn 4 of 8",
        "TurnStart 4 follow_up",
        "TurnEnd 4",
        "> after_turn",
        "> follow_ups",
        "AgentEnd answered",
        "> after_loop 9",
        "> after_task answered",
    ];
    similar(&diary.lines(), &expected);
    let last = provider.requests().pop().unwrap();
    let said = texts(&last);
    assert_eq!(
        said.iter().filter(|text| text.contains("Faster.")).count(),
        1
    );
    assert_eq!(said.last().unwrap(), "user: \"And the rest?\"");
    // The first run of the session is over: before_task is not asked again.
    assert_eq!(diary.has("> before_task"), 1);
}

fn similar(got: &[String], expected: &[&str]) {
    let got = got.join("\n");
    let expected = expected.join("\n");
    assert!(got == expected, "got:\n{got}\n\nexpected:\n{expected}");
}
