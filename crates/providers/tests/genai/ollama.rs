//! Ollama's own API: what is sent and what comes back.

use plimsoll_agent::ThinkingLevel;
use plimsoll_context::{
    CallId, Delta, Image, Message, Part, Source, StopReason, Tokens, ToolResult, Usage,
};
use plimsoll_core::Provider;
use serde_json::{Value, json};

use super::fake::Answer;
use super::{OLLAMA, answered, call, knowing, provider, request, request_of, server, tool_call};

fn lines(lines: &[Value]) -> Answer {
    let lines = lines.iter().map(|line| format!("{line}\n").into_bytes());
    Answer::bytes(lines.collect()).header("content-type", "application/x-ndjson")
}

fn says(message: Value) -> Value {
    json!({"model": "qwen3:8b", "message": message, "done": false})
}

fn done(reason: &str) -> Value {
    json!({"model": "qwen3:8b", "message": {"role": "assistant", "content": ""}, "done": true,
        "done_reason": reason, "prompt_eval_count": 50, "prompt_eval_cached_count": 30,
        "eval_count": 20})
}

#[tokio::test]
async fn a_request_carries_what_was_asked_for() {
    let answer = lines(&[
        says(json!({"thinking": "hm"})),
        says(json!({"content": "hi "})),
        says(json!({"content": "there"})),
        done("stop"),
    ]);
    let fake = server(OLLAMA, [answer]).await;
    let mut request = request();
    request.sampling.thinking = Some(ThinkingLevel::Minimal);
    let (reply, deltas) = call(&provider(OLLAMA, &fake), &request).await;
    let reply = reply.unwrap();
    assert_eq!(reply.parts, [super::thought("hm"), Part::text("hi there")]);
    assert_eq!(reply.stop, StopReason::Stop);
    let usage = Usage {
        input: Tokens(20),
        output: Tokens(20),
        cache_read: Tokens(30),
        ..Usage::default()
    };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(deltas.len(), 3);

    let asked = fake.asked().remove(0);
    assert_eq!(asked.path, "/api/chat");
    let body = asked.body;
    assert_eq!(body["model"], "qwen3:8b");
    assert_eq!(body["stream"], true);
    assert_eq!(body["think"], "low");
    assert_eq!(
        body["options"],
        json!({"temperature": 0.5, "num_predict": 6000, "seed": 7})
    );
    assert_eq!(body["tools"][0]["function"]["name"], "look");
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "read a and b"},
            {"role": "assistant", "tool_calls": [
                {"function": {"name": "read", "arguments": {"path": "a"}}},
                {"function": {"name": "read", "arguments": {"path": "b"}}},
            ]},
            {"role": "tool", "content": "A"},
            {"role": "tool", "content": "error: no such file"},
            {"role": "user", "content": "It is late."},
        ])
    );
}

#[tokio::test]
async fn calls_without_ids_are_told_apart_and_answered_in_order() {
    let calls = says(json!({"content": "", "tool_calls": [
        {"function": {"name": "read", "arguments": {"path": "a"}}},
        {"function": {"name": "read", "arguments": {"path": "b"}}},
    ]}));
    let script = [
        lines(&[calls, done("stop")]),
        lines(&[says(json!({"content": "ok"})), done("stop")]),
    ];
    let fake = server(OLLAMA, script).await;
    let provider = provider(OLLAMA, &fake);
    let (reply, deltas) = call(&provider, &request()).await;
    let reply = reply.unwrap();
    assert_eq!(reply.stop, StopReason::ToolCalls);
    // Two were called before.
    assert_eq!(
        deltas[2],
        Delta::CallStarted {
            call: CallId("call_3".into()),
            name: "read".into()
        }
    );
    let next = answered(&request(), &reply);
    call(&provider, &next).await.0.unwrap();
    let messages = fake.asked()[1].body["messages"].clone();
    let last: Vec<&Value> = messages.as_array().unwrap().iter().rev().take(3).collect();
    assert_eq!(last[1]["content"], "result 1");
    assert_eq!(last[2]["content"], "result 0");
}

#[tokio::test]
async fn images_and_texts_of_neighbours_are_one_message() {
    let image = Part::Image(Image {
        source: Source::Data {
            media_type: "image/png".into(),
            base64: "aGk=".into(),
        },
        size: None,
        detail: None,
    });
    let messages = [
        Message::user("one"),
        Message::user("two"),
        Message::Assistant {
            parts: vec![tool_call("c", "look", "{}")],
        },
        Message::ToolResult(ToolResult {
            call: CallId("c".into()),
            parts: vec![Part::text("see"), image],
            is_error: false,
        }),
    ];
    let answer = lines(&[says(json!({"content": "ok"})), done("length")]);
    let fake = server(OLLAMA, [answer]).await;
    let mut request = request_of(messages);
    request.format = Some(std::sync::Arc::new(json!({"type": "object"})));
    let reply = call(&provider(OLLAMA, &fake), &request).await.0.unwrap();
    assert_eq!(reply.stop, StopReason::Length);
    let body = &fake.asked()[0].body;
    assert_eq!(body["format"], "json");
    assert_eq!(body["messages"][1]["content"], "one\n\ntwo");
    assert_eq!(body["messages"][3]["content"], "see");
    assert_eq!(body["messages"][4]["images"], json!(["aGk="]));
}

#[tokio::test]
async fn a_loaded_model_has_a_window() {
    let fake = server(OLLAMA, []).await;
    let list = json!({"models": [{"name": "qwen3:8b", "context_length": 8192}]});
    let fake = fake.page("/api/ps", 200, list);
    assert_eq!(provider(OLLAMA, &fake).window().await, Some(Tokens(8192)));
}

#[tokio::test]
async fn a_request_without_tools_to_call_has_none() {
    let fake = server(
        OLLAMA,
        [lines(&[says(json!({"content": "ok"})), done("stop")])],
    )
    .await;
    let mut request = request();
    request.tool_choice = plimsoll_agent::ToolChoice::None;
    call(&provider(OLLAMA, &fake), &request).await.0.unwrap();
    let body = fake.asked().remove(0).body;
    assert!(body.get("tools").is_none(), "{body}");
}

#[tokio::test]
async fn only_what_is_known_to_think_is_asked_to() {
    for (name, row, think) in [
        ("qwen3:8b", "", json!("high")),
        ("gpt-oss:20b", "", json!("high")),
        ("qwen3-coder:30b", "", Value::Null),
        ("llama3.1:8b", "", Value::Null),
        ("somebody/qwen3", "", Value::Null),
        ("llama3.1:8b", "thinking = true", json!("high")),
        ("qwen3:8b", "thinking = false", Value::Null),
        ("qwen3:8b", "efforts = [\"low\"]", json!("low")),
    ] {
        let model = format!("ollama-native/{name}");
        let fake = server(
            &model,
            [lines(&[says(json!({"content": "ok"})), done("stop")])],
        )
        .await;
        let mut request = request();
        request.sampling.thinking = Some(ThinkingLevel::High);
        let provider = knowing(&model, row, &fake);
        call(&provider, &request).await.0.unwrap();
        let body = fake.asked().remove(0).body;
        assert_eq!(body["think"], think, "{name} {row}");
    }
}

#[tokio::test]
async fn what_the_user_says_of_a_model_holds_for_each_api() {
    let image = Part::Image(Image {
        source: Source::Data {
            media_type: "image/png".into(),
            base64: "aGk=".into(),
        },
        size: None,
        detail: None,
    });
    let parts = vec![Part::text("see"), image];
    for model in [OLLAMA, super::CONVERSE, super::GEMINI] {
        for (row, images) in [
            ("images = true", 1),
            ("images = false\nthinking = false", 0),
        ] {
            let fake = server(model, []).await;
            let mut request = request_of([Message::User {
                parts: parts.clone(),
            }]);
            request.sampling.thinking = Some(ThinkingLevel::High);
            let _ = call(&knowing(model, row, &fake), &request).await;
            let body = fake.asked().remove(0).body.to_string();
            assert_eq!(body.matches("aGk=").count(), images, "{model} {body}");
            let thinks = ["\"think\":\"high\"", "budget_tokens", "\"HIGH\""];
            let thinks = thinks.iter().any(|word| body.contains(word));
            assert_eq!(thinks, images == 1, "{model} {body}");
        }
    }
}

#[tokio::test]
async fn looking_loads_nothing() {
    let fake = server(OLLAMA, []).await;
    let fake = fake.page("/api/ps", 200, json!({"models": []})).page(
        "/v1/models",
        200,
        json!({"data": [{"id": "qwen3:8b"}]}),
    );
    let said = super::builder(OLLAMA, &fake)
        .connect(&|_| None)
        .await
        .unwrap();
    assert_eq!(said.answers, Some(true));
    assert_eq!((said.has_model, said.window), (Some(true), None));
    let asked = fake.asked().into_iter().map(|asked| asked.path);
    let asked: Vec<String> = asked.collect();
    assert!(!asked.contains(&"/api/generate".to_owned()), "{asked:?}");

    let fake = server(super::CONVERSE, []).await;
    let said = super::builder(super::CONVERSE, &fake).connect(&|_| None);
    assert_eq!(said.await.unwrap().answers, None);
    assert!(fake.asked().is_empty());
}
