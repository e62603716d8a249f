//! Successful calls: requests, replies and their timing.

use std::sync::Mutex;

use plimsoll_agent::ThinkingLevel;
use plimsoll_context::{CallId, Delta, Message, Part, StopReason, Tokens, ToolCall, Usage};
use plimsoll_core::{Agent, Provider};
use plimsoll_providers::{ModelRef, Secret, VENDORS};
use plimsoll_testkit::Warnings;
use serde_json::json;

use super::mocked::{Fake, Turn};
use super::{KEY, builder, call, chat, request};

const HI: &str = r#"{"id":"1","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

#[tokio::test]
async fn what_every_dialect_sends_is_accepted() {
    for vendor in VENDORS.iter() {
        let script = [Turn::events([HI, STOP, "[DONE]"])];
        let fake = Fake::new(vendor.dialect, script).await;
        let model = format!("{}/m", vendor.name);
        let (reply, _) = call(&chat(&model, &fake)).await;
        let reply = reply.unwrap_or_else(|failure| panic!("{model}: {failure}"));
        assert_eq!(reply.parts, [Part::text("hi")]);
        assert_eq!(reply.model.as_deref(), Some("m-1"));
    }
}

#[tokio::test]
async fn a_session_that_grows_is_sent_whole_and_with_its_length() {
    let script = (0..4).map(|_| Turn::events([HI, STOP, "[DONE]"]));
    let fake = Fake::new("openai", script).await;
    let chat = chat("openai/gpt-x", &fake);
    let mut request = request();
    let mut said: Vec<String> = Vec::new();
    for turn in 0..4 {
        said.push(format!("{turn} says {}", "a lot ".repeat(20_000)));
        let message = Message::user(said[turn].as_str());
        request.messages.push(message.into());
        chat.call(&request, &|_| {}).await.unwrap();
        let asked = fake.asked().remove(turn);
        assert_eq!(asked.headers["content-length"], asked.bytes.to_string());
        assert!(!asked.headers.contains_key("transfer-encoding"));
        let messages = asked.body["messages"].as_array().unwrap();
        let texts = messages.iter().filter_map(|one| one["content"].as_str());
        let texts: Vec<&str> = texts.filter(|text| text.contains("says")).collect();
        assert_eq!(texts, said);
    }
}

#[tokio::test]
async fn a_request_carries_what_was_asked_for() {
    let fake = Fake::new("openai", [Turn::events([HI, STOP, "[DONE]"])]).await;
    let extra = json!({"service_tier": "flex"}).as_object().unwrap().clone();
    let chat = builder("openai/gpt-x", &fake)
        .header("x-team", Secret::new("blue"))
        .extra(extra)
        .build_with(&|_| None)
        .unwrap();
    call(&chat).await.0.unwrap();
    let asked = fake.asked().remove(0);
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(asked.headers["content-type"], "application/json");
    assert_eq!(asked.headers["x-team"], "blue");
    assert!(asked.headers["user-agent"].starts_with("plimsoll/"));
    let body = asked.body;
    assert_eq!(body["model"], "gpt-x");
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(body["max_completion_tokens"], 500);
    assert_eq!(body["temperature"], 0.7);
    assert_eq!(body["seed"], 7);
    assert_eq!(body["service_tier"], "flex");
    assert_eq!(body["tools"][0]["function"]["name"], "read");
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"], "Be brief.");
    let last = messages.last().unwrap().to_string();
    assert!(last.contains("It is late."), "after the history: {last}");
}

/// The server refuses tools beside thinking, and a temperature, as OpenAI's does.
/// A level that is not sent is reported, and one that is sent is not.
#[tokio::test]
async fn a_thinking_level_without_effect_is_reported() {
    for (model, level, is_idle) in [
        ("openai/gpt-4o", ThinkingLevel::High, true),
        ("openai/gpt-5.2", ThinkingLevel::High, false),
        ("openai-compatible/qwen3", ThinkingLevel::Low, true),
    ] {
        let fake = Fake::new("openai", []).await;
        let mut sampling = request().sampling;
        sampling.thinking = Some(level);
        let notes = chat(model, &fake).sampling_notes(&sampling);
        let text = format!("thinking_level has no effect: {model} is not known to take one");
        assert_eq!(
            notes.iter().any(|note| note.contains(&text)),
            is_idle,
            "{model}: {notes:?}"
        );
    }
}

#[tokio::test]
async fn what_a_model_of_openais_refuses_is_not_sent_to_it() {
    for (model, level, effort, temperature) in [
        ("openai/gpt-4o", ThinkingLevel::High, None, true),
        ("openai/o3", ThinkingLevel::Off, Some("low"), false),
        ("openai/gpt-5", ThinkingLevel::Off, Some("minimal"), false),
        ("openai/gpt-5.2", ThinkingLevel::High, Some("high"), false),
        ("openai/gpt-5.4", ThinkingLevel::Off, None, false),
        ("openai/gpt-5.4-mini", ThinkingLevel::High, None, false),
        ("openai/gpt-5.5", ThinkingLevel::Off, Some("none"), true),
        (
            "openai/gpt-5.6-terra",
            ThinkingLevel::Off,
            Some("none"),
            true,
        ),
        (
            "openai/gpt-5.6-terra",
            ThinkingLevel::High,
            Some("none"),
            true,
        ),
        (
            "openai/gpt-6-sol",
            ThinkingLevel::Medium,
            Some("none"),
            true,
        ),
    ] {
        let fake = Fake::new("openai", [Turn::events([HI, STOP, "[DONE]"])]).await;
        let mut asks = request();
        asks.sampling.thinking = Some(level);
        let reply = chat(model, &fake).call(&asks, &|_| {}).await;
        reply.unwrap_or_else(|failure| panic!("{model}: {failure}"));
        let body = fake.asked().remove(0).body;
        assert_eq!(body["reasoning_effort"].as_str(), effort, "{model}");
        assert_eq!(body["temperature"].is_number(), temperature, "{model}");
    }
    // What is said by hand is sent, and refused in its words with a cure.
    let fake = Fake::new("openai", [Turn::events([HI, STOP, "[DONE]"])]).await;
    let extra = json!({"reasoning_effort": "high"})
        .as_object()
        .unwrap()
        .clone();
    let said = builder("openai/gpt-5.6", &fake).extra(extra);
    let failure = call(&said.build_with(&|_| None).unwrap())
        .await
        .0
        .unwrap_err();
    let cure = "use openai-responses/gpt-5.6";
    assert!(failure.to_string().contains(cure), "{failure}");
}

#[tokio::test]
async fn thinking_is_turned_off_in_the_words_of_each_server() {
    let disabled = json!({"type": "disabled"});
    let template = json!({"enable_thinking": false});
    for (model, key, value, warned) in [
        ("deepseek/deepseek-v4-flash", "thinking", &disabled, false),
        ("kimi/kimi-k2.6", "thinking", &disabled, false),
        ("ollama/qwen3", "reasoning_effort", &json!("none"), false),
        (
            "groq/qwen/qwen3-32b",
            "reasoning_effort",
            &json!("none"),
            false,
        ),
        ("llama.cpp/m", "chat_template_kwargs", &template, false),
        ("vllm/m", "chat_template_kwargs", &template, false),
        ("openrouter/a/b", "reasoning_effort", &json!("none"), false),
        ("xai/grok-4.5", "reasoning_effort", &json!("low"), true),
        (
            "openai-compatible/m",
            "reasoning_effort",
            &json!(null),
            true,
        ),
        ("openai/gpt-4o", "reasoning_effort", &json!(null), false),
    ] {
        let dialect = model.parse::<ModelRef>().unwrap().vendor().dialect;
        let turn = || Turn::events([HI, STOP, "[DONE]"]);
        let fake = Fake::new(dialect, [turn(), turn()]).await;
        for level in [Some(ThinkingLevel::Off), None] {
            let warnings = Warnings::default();
            let agent = Agent::builder(chat(model, &fake)).observer(warnings.observer());
            let agent = match level {
                Some(level) => agent.thinking_level(level),
                None => agent,
            };
            agent.build().unwrap().run("go").await.unwrap();
            let warnings = warnings.all();
            let said = warnings.iter().any(|text| text.contains("thinking"));
            assert_eq!(said, warned && level.is_some(), "{model}: {warnings:?}");
        }
        let bodies: Vec<_> = fake.asked().into_iter().map(|asked| asked.body).collect();
        let calls: Vec<_> = bodies.iter().filter(|body| body.is_object()).collect();
        assert_eq!(&calls[0][key], value, "{model}");
        assert_eq!(calls[1].get(key), None, "{model}");
    }
}

#[tokio::test]
async fn no_key_no_header() {
    let fake = Fake::new("ollama", [Turn::events([HI, STOP])]).await;
    let chat = builder("ollama/m", &fake).key(Secret::new(""));
    call(&chat.build_with(&|_| None).unwrap()).await.0.unwrap();
    assert!(!fake.asked()[0].headers.contains_key("authorization"));
}

#[tokio::test]
async fn tool_calls_come_in_pieces_and_usage_after_the_end() {
    let events = [
        r#"{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"hm"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"pa"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"th\":\"ä\"}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"list","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050,"prompt_tokens_details":{"cached_tokens":800},"completion_tokens_details":{"reasoning_tokens":30}}}"#,
        "[DONE]",
    ];
    // However slowly the bytes come.
    let script = [Turn::events(events), Turn::events(events).bytewise()];
    let fake = Fake::new("openai", script).await;
    let chat = chat("openai/m", &fake);
    for _ in 0..2 {
        let (reply, deltas) = call(&chat).await;
        let reply = reply.unwrap();
        assert_eq!(reply.stop, StopReason::ToolCalls);
        let calls: Vec<_> = reply
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::ToolCall(ToolCall {
                    id,
                    name,
                    arguments,
                    ..
                }) => Some((id.0.as_str(), name.as_str(), arguments.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(
            calls,
            [("a", "read", "{\"path\":\"ä\"}"), ("b", "list", "{}")]
        );
        let usage = Usage {
            input: Tokens(200),
            output: Tokens(50),
            reasoning: Tokens(30),
            cache_read: Tokens(800),
            cache_write: Tokens(0),
            ..Usage::default()
        };
        assert_eq!(reply.usage, Some(usage));
        let started = deltas.iter().filter_map(|delta| match delta {
            Delta::CallStarted { call, name } => Some((call.clone(), name.as_str())),
            _ => None,
        });
        let a = (CallId("a".into()), "read");
        let b = (CallId("b".into()), "list");
        assert_eq!(started.collect::<Vec<_>>(), [a, b]);
        assert_eq!(deltas[0], Delta::Thinking { text: "hm".into() });
    }
}

#[tokio::test]
async fn each_piece_is_handed_on_before_the_next_one_is_sent() {
    // The server sends the second piece only after the first one was seen.
    let (answer, open) = Turn::events([HI, HI, STOP, "[DONE]"]).gated(1);
    let fake = Fake::new("openai", [answer]).await;
    let open = Mutex::new(Some(open));
    let sink = |delta| {
        assert_eq!(delta, Delta::Text { text: "hi".into() });
        if let Some(open) = open.lock().unwrap().take() {
            open.open();
        }
    };
    let reply = chat("openai/m", &fake).call(&request(), &sink).await;
    assert_eq!(reply.unwrap().parts, [Part::text("hihi")]);
}

#[tokio::test]
async fn servers_that_do_not_quite_stream_are_understood() {
    let whole = r#"{"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    let script = [
        Turn::events([HI, STOP]),
        Turn::events([HI, "[DONE]"]),
        Turn::events([HI, STOP, "[DONE]"]).hang(),
        Turn::events([HI, STOP, "[DONE]"]).cut(),
        Turn::body(200, whole).header("content-type", "application/json"),
        Turn::body(200, whole),
        Turn::body(200, format!("data: {HI}\ndata: {STOP}\n")),
    ];
    let count = script.len();
    let fake = Fake::new("openai", script).await;
    let chat = chat("openai/m", &fake);
    for at in 0..count {
        let (reply, deltas) = call(&chat).await;
        let reply = reply.unwrap_or_else(|failure| panic!("{at}: {failure}"));
        assert_eq!(reply.parts, [Part::text("hi")], "{at}");
        assert_eq!(deltas, [Delta::Text { text: "hi".into() }], "{at}");
    }
}

#[tokio::test]
async fn a_dropped_call_ends_the_connection() {
    let (answer, mut open) = Turn::events([HI, STOP]).gated(1);
    let fake = Fake::new("openai", [answer]).await;
    let chat = chat("openai/m", &fake);
    let request = request();
    let (seen, mut first) = tokio::sync::mpsc::unbounded_channel();
    let sink = move |delta| seen.send(delta).unwrap();
    tokio::select! {
        _ = chat.call(&request, &sink) => panic!("the gate is closed"),
        Some(_) = first.recv() => {}
    }
    // The server lets go of the answer, and of the gate in it.
    open.abandoned().await;
}
