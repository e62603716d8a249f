//! The provider of Anthropic Messages against a strict server that signs and verifies thinking: the window, and
//! whole runs with tools, thinking and parallel calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_agent::{Event, SessionEvent, ThinkingLevel};
use plimsoll_context::Tokens;
use plimsoll_core::{Agent, Provider, ToolError, Window, new_session_id, tool};
use plimsoll_mock::Call;
use plimsoll_providers::{ModelBook, ModelClient, ModelRef, Secret};
use serde_json::{Value, json};

use super::KEY;
use super::mocked::{Fake, Turn};

/// Thinks by a budget, signs only the block.
const BUDGET: &str = "claude-sonnet-4-5";
/// Thinks as it sees fit, binds thinking to what stands before it.
const BOUND: &str = "claude-opus-5-5";

fn provider(model: &str, fake: &Fake) -> ModelClient {
    ModelClient::builder(format!("anthropic/{model}").as_str())
        .base_url(&fake.address)
        .key(Secret::new(KEY))
        .build_with(&|_| None)
        .unwrap()
}

/// The script has ended, and nothing more is expected.
fn over(_: &Value) -> Turn {
    Turn::body(500, "the script has ended")
}

#[tokio::test]
async fn the_window_is_the_servers_word_else_what_is_published() {
    let entry = json!({"type": "model", "id": BUDGET, "max_input_tokens": 1_000_000});
    let fake = Fake::messages([], over).await;
    let fake = fake.page(&format!("/v1/models/{BUDGET}"), 200, entry);
    assert_eq!(
        provider(BUDGET, &fake).window().await,
        Some(Tokens(1_000_000))
    );
    let silent = Fake::messages([], over).await;
    assert_eq!(provider(BUDGET, &silent).window().await, None);
    // llama.cpp speaks Messages too, and has no entry for its model.
    let local = Fake::messages([], over).await;
    let props = json!({"default_generation_settings": {"n_ctx": 4096}, "total_slots": 2});
    let local = local.page("/props", 200, props);
    let provider = self::provider("qwen3", &local);
    assert_eq!(provider.window().await, Some(Tokens(4096)));
    assert_eq!(local.paths(), ["/v1/models/qwen3", "/props"]);
    let known = |name: &str| {
        let model = ModelRef::parse(name).unwrap();
        ModelBook::built_in().facts(&model).window.unwrap().value
    };
    assert_eq!(known("anthropic/claude-sonnet-4-5"), Tokens(200_000));
    assert_eq!(known("anthropic/claude-opus-5"), Tokens(1_000_000));
}

#[tokio::test]
async fn without_a_key_it_is_said_which_one_is_missing() {
    let model: ModelRef = "anthropic/claude-opus-5".parse().unwrap();
    let error = ModelClient::builder(model.clone()).build_with(&|_| None);
    let error = error.err().unwrap().to_string();
    assert!(error.contains("set ANTHROPIC_API_KEY"), "{error}");
    let key = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| KEY.to_owned());
    let provider = ModelClient::builder(model).build_with(&key).unwrap();
    let endpoint = provider.endpoint();
    assert_eq!(endpoint, "https://api.anthropic.com/v1 claude-opus-5");
}

/// A model that thinks, where it may, and calls tools for so many turns, then answers.
fn thinker(turns: usize) -> impl Fn(&Value) -> Turn + Send + Sync {
    move |request: &Value| {
        let asked = request.to_string();
        let turn = asked.matches("\"role\":\"assistant\"").count();
        // Summaries take turns away; the ids of the calls say how far it is.
        let last = (0..1_000)
            .rev()
            .find(|at| asked.contains(&format!("toolu_{at}_0")));
        let turn = last.map_or(turn, |last| last + 1);
        let mut said = Turn {
            think: Some(format!("I am at {turn}. \"ä\"")),
            redacted: turn % 4 == 0,
            ..Turn::default()
        };
        if turn >= turns {
            said.say = Some("All seen.".into());
            return said;
        }
        if turn % 3 == 0 {
            said.say = Some("I look.".into());
        }
        for call in 0..=turn % 3 {
            let id = format!("toolu_{turn}_{call}");
            let look = Call::new("look", json!({ "at": call }));
            said.call.push(Call {
                id: Some(id),
                ..look
            });
        }
        said
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    /// What at.
    at: u64,
}

#[tokio::test]
async fn a_run_of_thirty_turns_is_valid_at_every_request() {
    const TURNS: usize = 30;
    for model in [BUDGET, BOUND, "claude-opus-4-6"] {
        let fake = Fake::messages([], thinker(TURNS - 1)).await;
        let look =
            |input: Look| async move { Ok::<_, ToolError>(format!("{} is there", input.at)) };
        let agent = Agent::builder(provider(model, &fake))
            .tool(tool("look", "Looks.", look).idempotent())
            .system("Be brief. ".repeat(1_000))
            .thinking_level(ThinkingLevel::Medium)
            .max_tokens(Tokens(4_000))
            .window(Window::Known(Tokens(200_000)))
            .build()
            .unwrap();
        let output = agent.run("Look at everything.").await.unwrap();
        assert_eq!(output.text, "All seen.");
        assert_eq!(output.turns, TURNS as u64);
        let asked = fake.asked();
        assert_eq!(asked.len(), TURNS, "none was refused");
        let last = &asked[TURNS - 1].body;
        let thoughts = last
            .to_string()
            .matches("\"signature\":\"simulated-")
            .count();
        assert_eq!(thoughts, TURNS - 1, "{model}: all thinking went back");
        let marks = last.to_string().matches("cache_control").count();
        assert!((2..=4).contains(&marks), "{marks}");
        match model {
            BUDGET => assert_eq!(last["thinking"]["budget_tokens"], 2_999),
            _ => assert_eq!(last["output_config"]["effort"], "medium"),
        }
    }
}

#[tokio::test]
async fn a_run_whose_window_is_small_stays_valid() {
    const TURNS: usize = 30;
    for model in [BUDGET, BOUND] {
        let model_of = thinker(TURNS - 1);
        let refused = AtomicBool::new(false);
        let then = move |request: &Value| {
            let far = request.to_string().contains("toolu_12_0");
            if far && !refused.swap(true, Ordering::SeqCst) {
                let long = json!({"type": "error", "error": {"type": "invalid_request_error",
                    "message": "prompt is too long: 9000 tokens > 8000 maximum"}});
                return Turn::body(400, long.to_string());
            }
            model_of(request)
        };
        let fake = Fake::messages([], then).await;
        let look = |input: Look| async move {
            let there = "is there and there. ".repeat(60);
            Ok::<_, ToolError>(format!("{} {there}", input.at))
        };
        let agent = Agent::builder(provider(model, &fake))
            .tool(tool("look", "Looks.", look).idempotent())
            .thinking_level(ThinkingLevel::Low)
            .max_tokens(Tokens(1_500))
            .window(Window::Known(Tokens(8_000)))
            .build()
            .unwrap();
        let output = agent.run(&"Look at everything. ".repeat(20)).await.unwrap();
        assert_eq!(output.text, "All seen.", "{output:?}");
        assert!(output.plans >= 2, "{model}: it was compacted: {output:?}");
        assert_eq!(
            fake.asked().len(),
            TURNS + 1,
            "one overflow and no other refusal"
        );
    }
}

#[tokio::test]
async fn thinking_whose_signature_is_refused_is_left_out_from_then_on() {
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}});
    let turn = |number: usize, thought: Option<&str>| Turn {
        think: thought.map(str::to_owned),
        call: vec![Call {
            id: Some(format!("toolu_{number}")),
            ..Call::new("look", json!({ "at": number }))
        }],
        ..Turn::default()
    };
    for model in [BUDGET, BOUND, "claude-opus-4-6"] {
        let script = [
            turn(0, Some("I look.")),
            turn(1, Some("I look on.")),
            Turn::body(400, refusal.to_string()),
            turn(2, None),
            Turn::say("Done."),
            turn(3, Some("I look again.")),
            Turn::say("Done again."),
        ];
        let fake = Fake::messages(script, over).await;
        let look =
            |input: Look| async move { Ok::<_, ToolError>(format!("{} is there", input.at)) };
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&warnings);
        let agent = Agent::builder(provider(model, &fake))
            .tool(tool("look", "Looks.", look).idempotent())
            .thinking_level(ThinkingLevel::Medium)
            .max_tokens(Tokens(4_000))
            .window(Window::Known(Tokens(200_000)))
            .observer(move |SessionEvent { event, .. }: &SessionEvent| {
                if let Event::Warning { text } = event {
                    hears.lock().unwrap().push(text.clone());
                }
            })
            .build()
            .unwrap();
        let mut session = agent.session(new_session_id()).await.unwrap();
        let output = session.run("Look at everything.").await.unwrap();
        assert_eq!(output.text, "Done.", "{model}");
        let output = session.run("Once more.").await.unwrap();
        assert_eq!(output.text, "Done again.", "{model}");
        let asked = fake.asked();
        let thoughts = asked.iter().map(|asked| {
            let body = asked.body.to_string();
            body.matches("\"signature\":").count()
        });
        // The same once more without any, and none of it ever again.
        assert_eq!(
            thoughts.collect::<Vec<_>>(),
            [0, 1, 2, 0, 0, 0, 1],
            "{model}"
        );
        let warnings = warnings.lock().unwrap();
        let told = warnings.iter();
        let told = told.filter(|text| text.contains("--drop-thinking"));
        assert_eq!(told.count(), 1, "{model}: {warnings:?}");
    }
}
