//! The provider of Anthropic Messages against a strict server that signs and verifies thinking:
//! single calls, refusals, and whole runs with tools, thinking and parallel calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_agent::{Event, Failure, SessionEvent, ThinkingLevel};
use plimsoll_context::{
    Breakpoint, CachePlan, CallId, Delta, Part, Reply, StopReason, Tokens, ToolCall, Usage,
};
use plimsoll_core::{Agent, Provider, ToolError, Window, new_session_id, tool};
use plimsoll_mock::{Call, Mock};
use plimsoll_providers::{ModelClient, ModelRef, Secret, known_window};
use serde_json::{Value, json};

use super::mocked::{Fake, Turn};
use super::{KEY, request};

/// Thinks by a budget, signs only the block.
const BUDGET: &str = "claude-sonnet-4-5";
/// Thinks as it sees fit, binds thinking to what stands before it.
const BOUND: &str = "claude-opus-5-5";
const STOP: &str = r#"{"type":"message_stop"}"#;

fn provider(model: &str, fake: &Fake) -> ModelClient {
    ModelClient::builder(format!("anthropic/{model}").as_str())
        .base_url(&fake.address)
        .key(Secret::new(KEY))
        .build_with(&|_| None)
        .unwrap()
}

async fn call(provider: &ModelClient) -> (Result<Reply, Failure>, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    // What was used is in the reply too.
    let sink = |delta| {
        if !matches!(delta, Delta::Used { .. }) {
            deltas.lock().unwrap().push(delta);
        }
    };
    let mut request = request();
    request.cache = CachePlan {
        breakpoints: vec![Breakpoint::System, Breakpoint::Message(3)],
        key: Some("session-1".into()),
        ..CachePlan::default()
    };
    let reply = provider.call(&request, &sink).await;
    (reply, deltas.into_inner().unwrap())
}

/// Events with their names, as the API sends them.
fn named(events: &[Value]) -> Turn {
    Turn::events(events.to_vec())
}

/// A reply made of blocks, in the events of the API.
fn stream(blocks: &[Value], reason: &str) -> Turn {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
            "role": "assistant", "model": "claude-x-20990101", "content": [], "stop_reason": null,
            "usage": {"input_tokens": 20, "cache_creation_input_tokens": 30,
                "cache_read_input_tokens": 950, "output_tokens": 1}}}),
        json!({"type": "ping"}),
    ];
    for (index, block) in blocks.iter().enumerate() {
        let delta =
            |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let mut begun = block.clone();
        let mut pieces = Vec::new();
        match block["type"].as_str().unwrap() {
            "thinking" => {
                begun["thinking"] = "".into();
                begun["signature"] = "".into();
                for piece in block["thinking"].as_str().unwrap().split_inclusive(' ') {
                    pieces.push(delta(json!({"type": "thinking_delta", "thinking": piece})));
                }
                let signature = &block["signature"];
                pieces.push(delta(
                    json!({"type": "signature_delta", "signature": signature}),
                ));
            }
            "text" => {
                begun["text"] = "".into();
                for piece in block["text"].as_str().unwrap().split_inclusive(' ') {
                    pieces.push(delta(json!({"type": "text_delta", "text": piece})));
                }
            }
            "tool_use" => {
                begun["input"] = json!({});
                for piece in block["input"].to_string().split_inclusive(':') {
                    let piece = json!({"type": "input_json_delta", "partial_json": piece});
                    pieces.push(delta(piece));
                }
            }
            _ => {}
        }
        let start = json!({"type": "content_block_start", "index": index, "content_block": begun});
        events.push(start);
        events.append(&mut pieces);
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "usage": {"output_tokens": 50},
        "delta": {"stop_reason": reason, "stop_sequence": null}}),
    );
    events.push(json!({"type": "message_stop"}));
    named(&events)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn asks(id: &str, at: u64) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": {"at": at}})
}

/// A reply that says so much.
pub(super) fn answer_of(said: &str) -> Turn {
    stream(&[text(said)], "end_turn")
}

/// The script has ended, and nothing more is expected.
fn over(_: &Value) -> Turn {
    Turn::body(500, "the script has ended")
}

#[tokio::test]
async fn a_request_carries_what_was_asked_for() {
    let fake = Fake::messages([stream(&[text("hi there")], "end_turn")], over).await;
    let (reply, deltas) = call(&provider(BUDGET, &fake)).await;
    let reply = reply.unwrap();
    assert_eq!(reply.parts, [Part::text("hi there")]);
    assert_eq!(reply.stop, StopReason::Stop);
    assert_eq!(reply.model.as_deref(), Some("claude-x-20990101"));
    let usage = Usage {
        input: Tokens(20),
        output: Tokens(50),
        reasoning: Tokens(0),
        cache_read: Tokens(950),
        cache_write: Tokens(30),
        ..Usage::default()
    };
    assert_eq!(reply.usage, Some(usage));
    let pieces = ["hi ", "there"].map(|text| Delta::Text { text: text.into() });
    assert_eq!(deltas, pieces);
    let asked = fake.asked().remove(0);
    assert_eq!(asked.path, "/v1/messages");
    assert_eq!(asked.headers["x-api-key"], KEY);
    assert_eq!(asked.headers["anthropic-version"], "2023-06-01");
    assert!(!asked.headers.contains_key("authorization"));
    assert!(!asked.headers.contains_key("anthropic-beta"));
    let body = asked.body;
    assert_eq!(body["model"], BUDGET);
    assert_eq!(
        (&body["stream"], &body["max_tokens"]),
        (&json!(true), &json!(500))
    );
    assert_eq!(body["temperature"], 0.7);
    assert_eq!(body.get("seed"), None);
    assert_eq!(body["system"][0]["text"], "Be brief.");
    assert_eq!(
        body["system"][0]["cache_control"],
        json!({"type": "ephemeral"})
    );
    assert_eq!(body["tools"][0]["input_schema"], json!({"type": "object"}));
    let last = &body["messages"][2]["content"];
    assert_eq!(last[0]["tool_use_id"], "call_1");
    assert_eq!(
        (&last[1]["is_error"], &last[1]["content"]),
        (&json!(true), &json!("no such file"))
    );
    assert_eq!(last[1]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(last[2], text("It is late."));
}

#[tokio::test]
async fn betas_are_named_only_where_they_are_needed() {
    let mock = Mock::messages_without_keys();
    let fake = Fake::of(mock, [stream(&[text("hi")], "end_turn")]).await;
    let extra = json!({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}});
    let provider = ModelClient::builder(format!("claude/{BUDGET}").as_str())
        .base_url(format!("{}/v1/messages", fake.address))
        .extra(extra.as_object().unwrap().clone())
        .build_with(&|_| None)
        .unwrap();
    call(&provider).await.0.unwrap();
    let asked = fake.asked().remove(0);
    assert_eq!(
        asked.headers["anthropic-beta"],
        "context-management-2025-06-27"
    );
    assert!(!asked.headers.contains_key("x-api-key"), "there is no key");
}

#[tokio::test]
async fn replies_come_in_pieces_however_they_are_cut() {
    let blocks = [
        json!({"type": "thinking", "thinking": "hm hm", "signature": "EqQB"}),
        json!({"type": "redacted_thinking", "data": "EmwK"}),
        text("Both: ä 🦀"),
        asks("toolu_1", 1),
        asks("toolu_2", 2),
    ];
    let whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": blocks, "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 2}});
    let script = [
        stream(&blocks, "tool_use"),
        stream(&blocks, "tool_use").bytewise(),
        stream(&blocks, "tool_use").hang(),
        Turn::body(200, whole.to_string()).header("content-type", "application/json"),
    ];
    let fake = Fake::messages(script, over).await;
    let provider = provider(BUDGET, &fake);
    for _ in 0..4 {
        let (reply, deltas) = call(&provider).await;
        let reply = reply.unwrap();
        assert_eq!(reply.stop, StopReason::ToolCalls);
        let [Part::Thinking(one), Part::Thinking(two), said, first, _] = reply.parts.as_slice()
        else {
            panic!("{reply:?}");
        };
        assert_eq!((one.text.as_str(), two.text.as_str()), ("hm hm", ""));
        // It remembers who thought it.
        let data: Value = serde_json::from_str(&one.opaque.as_ref().unwrap().data).unwrap();
        assert_eq!(
            (&data["model"], &data["block"]),
            (&json!(BUDGET), &blocks[0])
        );
        assert_eq!(*said, Part::text("Both: ä 🦀"));
        let call = ToolCall {
            id: CallId("toolu_1".into()),
            name: "look".into(),
            arguments: "{\"at\":1}".into(),
            opaque: None,
        };
        assert_eq!(*first, Part::ToolCall(call));
        let started = |delta: &&Delta| matches!(delta, Delta::CallStarted { .. });
        assert_eq!(deltas.iter().filter(started).count(), 2);
        assert!(matches!(&deltas[0], Delta::Thinking { .. }));
    }
}

#[tokio::test]
async fn failures_are_told_apart() {
    let error = |kind: &str, message: &str| {
        json!({"type": "error", "error": {"type": kind, "message": message},
            "request_id": "req_1"})
    };
    let half = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "text", "text": "ha"}});
    let busy = error("overloaded_error", "Overloaded");
    let long = "prompt is too long: 213462 tokens > 200000 maximum";
    let output = "input length and `max_tokens` exceed context limit: 198214 + 8192 > 200000, \
                  decrease input length or `max_tokens` and try again";
    let refused = |status: u16, error: Value| Turn::body(status, error.to_string());
    let script = [
        named(&[half.clone(), busy.clone()]),
        refused(529, busy.clone()),
        named(std::slice::from_ref(&half)),
        named(std::slice::from_ref(&half)).cut(),
        refused(429, error("rate_limit_error", "slow down")).header("retry-after", "7"),
        refused(400, error("invalid_request_error", long)),
        named(&[half.clone(), error("invalid_request_error", long)]),
        refused(400, error("invalid_request_error", output)),
        refused(
            413,
            error("request_too_large", "Request exceeds the maximum size"),
        ),
        refused(401, error("authentication_error", "invalid x-api-key")),
        refused(404, error("not_found_error", "model: claude-9")),
        refused(
            400,
            error(
                "invalid_request_error",
                "messages.1.content.0: Invalid `signature` in `thinking` block",
            ),
        ),
        refused(500, error("api_error", "Internal server error")),
    ];
    let fake = Fake::messages(script, over).await;
    let provider = provider(BUDGET, &fake);
    let failure = async || call(&provider).await.0.unwrap_err();
    for _ in 0..4 {
        let failure = failure().await;
        assert!(matches!(failure, Failure::Transient { .. }), "{failure:?}");
    }
    let limited = failure().await;
    let Failure::RateLimited { retry_after_ms, .. } = limited else {
        panic!("{limited:?}");
    };
    assert_eq!(retry_after_ms, Some(7_000));
    for _ in 0..2 {
        let over = Failure::Overflow {
            used: Some(Tokens(213_462)),
            window: Some(Tokens(200_000)),
            message: long.into(),
        };
        assert_eq!(failure().await, over);
    }
    let limit = failure().await;
    assert!(
        matches!(
            limit,
            Failure::Overflow {
                used: Some(Tokens(198_214)),
                window: Some(Tokens(200_000)),
                ..
            }
        ),
        "{limit:?}"
    );
    assert!(matches!(failure().await, Failure::BodyTooLarge { .. }));
    assert!(matches!(failure().await, Failure::Auth { .. }));
    for _ in 0..2 {
        let refused = failure().await;
        assert!(matches!(refused, Failure::Refused { .. }), "{refused:?}");
    }
    assert!(matches!(failure().await, Failure::Transient { .. }));
    // The window ended inside the reply, and the API says so.
    let ended = Fake::messages(
        [stream(&[text("ha")], "model_context_window_exceeded")],
        over,
    );
    let ended = ended.await;
    let provider = self::provider(BUDGET, &ended);
    assert_eq!(call(&provider).await.0.unwrap().stop, StopReason::Window);
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
    let known = |name: &str| known_window(&ModelRef::parse(name).unwrap());
    assert_eq!(known("anthropic/claude-sonnet-4-5"), Some(Tokens(200_000)));
    assert_eq!(known("anthropic/claude-opus-5"), Some(Tokens(1_000_000)));
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
async fn the_end_mark_alone_ends_a_reply() {
    let fake = Fake::messages([], |_: &Value| {
        let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#;
        Turn::events([start, STOP]).hang()
    });
    let fake = fake.await;
    let (reply, _) = call(&provider(BUDGET, &fake)).await;
    assert_eq!(reply.unwrap().parts, [Part::text("hi")]);
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
