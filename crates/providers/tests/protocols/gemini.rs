//! Gemini and Vertex: requests, replies and their timing. A thought signature is sent back in the
//! part in which it arrived.

use plimsoll_agent::{Failure, ThinkingLevel, ToolChoice};
use plimsoll_context::{
    CallId, Delta, File, Image, Message, Opaque, Part, Source, StopReason, Tokens, ToolResult,
    Usage,
};
use plimsoll_core::Provider;
use plimsoll_providers::ProviderError;
use serde_json::{Value, json};

use super::fake::FakeAnswer;
use super::{
    GEMINI, KEY, answered, builder, call, knowing, provider, request, request_of, server, text_of,
};

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}}],
        "modelVersion": "gemini-x-2099"})
}

/// The last frame: an end and the usage.
fn end(reason: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": reason}],
        "usageMetadata": {"promptTokenCount": 1000, "cachedContentTokenCount": 900,
            "candidatesTokenCount": 40, "thoughtsTokenCount": 60, "totalTokenCount": 1100}})
}

fn events(frames: &[Value]) -> FakeAnswer {
    let frames: Vec<String> = frames.iter().map(Value::to_string).collect();
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    FakeAnswer::events(&frames)
}

fn says(text: &str) -> Value {
    parts(json!([{"text": text}]))
}

#[tokio::test]
async fn a_request_carries_what_was_asked_for() {
    let fake = server(GEMINI, [events(&[says("hi "), says("there"), end("STOP")])]).await;
    let (reply, deltas) = call(&provider(GEMINI, &fake), &request()).await;
    let reply = reply.unwrap();
    assert_eq!(reply.parts, [Part::text("hi there")]);
    assert_eq!(reply.stop, StopReason::Stop);
    assert_eq!(reply.model.as_deref(), Some("gemini-x-2099"));
    let usage = Usage {
        input: Tokens(100),
        output: Tokens(100),
        reasoning: Tokens(60),
        cache_read: Tokens(900),
        cache_write: Tokens(0),
        ..Usage::default()
    };
    assert_eq!(reply.usage, Some(usage));
    let pieces = ["hi ", "there"].map(|text| Delta::Text { text: text.into() });
    assert_eq!(deltas, pieces);

    let asked = fake.asked().remove(0);
    assert_eq!(
        asked.path,
        "/v1beta/models/gemini-3-pro-preview:streamGenerateContent"
    );
    assert_eq!(asked.query, "alt=sse");
    assert_eq!(asked.headers["x-goog-api-key"], KEY);
    assert!(!asked.headers.contains_key("accept-encoding"));
    let agent = asked.headers["user-agent"].to_str().unwrap();
    assert!(agent.starts_with("plimsoll/"));
    let body = asked.body;
    assert_eq!(
        body["systemInstruction"]["parts"],
        json!([{"text": "Be brief."}])
    );
    assert_eq!(
        body["generationConfig"],
        json!({"temperature": 0.5, "maxOutputTokens": 6000, "seed": 7})
    );
    assert!(body.get("toolConfig").is_none(), "it may call");
    let tools = &body["tools"][0]["functionDeclarations"];
    assert_eq!(tools[0]["name"], "look", "sorted");
    assert_eq!(tools[1]["parametersJsonSchema"]["type"], "object");
    let skip = "skip_thought_signature_validator";
    assert_eq!(
        body["contents"],
        json!([
            {"role": "user", "parts": [{"text": "read a and b"}]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "call_1", "name": "read", "args": {"path": "a"}},
                    "thoughtSignature": skip},
                {"functionCall": {"id": "call_2", "name": "read", "args": {"path": "b"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "id": "call_1",
                    "response": {"output": "A"}}},
                {"functionResponse": {"name": "read", "id": "call_2",
                    "response": {"error": "error: no such file"}}},
            ]},
            {"role": "user", "parts": [{"text": "It is late."}]},
        ])
    );
}

#[tokio::test]
async fn pieces_arrive_while_the_rest_is_still_being_written() {
    let (answer, open) = events(&[says("first "), says("second"), end("STOP")]).gate(1);
    let fake = server(GEMINI, [answer]).await;
    let provider = provider(GEMINI, &fake);
    let open = std::sync::Mutex::new(Some(open));
    let sink = |delta: Delta| {
        // The rest is not sent before this has come.
        if let (Delta::Text { text }, Some(open)) = (delta, open.lock().unwrap().take()) {
            assert_eq!(text, "first ");
            open.send(()).unwrap();
        }
    };
    let request = request();
    let reply = provider.call(&request, &sink).await.unwrap();
    assert_eq!(reply.parts, [Part::text("first second")]);
}

#[tokio::test]
async fn a_stream_may_come_byte_by_byte() {
    let answer = events(&[says("grüße 🦀"), end("STOP")]).bytewise();
    let fake = server(GEMINI, [answer]).await;
    let reply = call(&provider(GEMINI, &fake), &request()).await.0.unwrap();
    assert_eq!(reply.parts, [Part::text("grüße 🦀")]);
}

#[tokio::test]
async fn parallel_calls_and_their_signature_come_back_as_they_came() {
    let calls = parts(json!([
        {"text": "Two files.", "thought": true},
        {"functionCall": {"name": "read", "args": {"path": "a", "n": 1.5}},
            "thoughtSignature": "c2lnLW9uZQ=="},
        {"functionCall": {"name": "read", "args": {"path": "b"}}},
    ]));
    let more = parts(json!([{"functionCall": {"name": "look", "args": {}}}]));
    let script = [
        events(&[calls, more, end("STOP")]),
        events(&[says("done"), end("STOP")]),
    ];
    let fake = server(GEMINI, script).await;
    let provider = provider(GEMINI, &fake);
    let begun = request_of([Message::user("go")]);
    let (reply, deltas) = call(&provider, &begun).await;
    let reply = reply.unwrap();
    assert_eq!(reply.stop, StopReason::ToolCalls);
    let ids: Vec<CallId> = reply.parts.iter().filter_map(id).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    assert_eq!(
        deltas[0],
        Delta::Thinking {
            text: "Two files.".into()
        }
    );
    assert_eq!(
        deltas[2],
        Delta::CallArguments {
            call: ids[0].clone(),
            text: r#"{"path":"a","n":1.5}"#.into()
        }
    );
    // A session is kept as JSON in between.
    let next = through_json(&answered(&begun, &reply));
    call(&provider, &next).await.0.unwrap();
    let contents = &fake.asked()[1].body["contents"];
    assert_eq!(
        contents[1],
        json!({"role": "model", "parts": [
            {"functionCall": {"name": "read", "args": {"path": "a", "n": 1.5}},
                "thoughtSignature": "c2lnLW9uZQ=="},
            {"functionCall": {"name": "read", "args": {"path": "b"}}},
            {"functionCall": {"name": "look", "args": {}}},
        ]})
    );
    let responses = contents[2]["parts"].as_array().unwrap();
    let told = |at: usize| &responses[at]["functionResponse"];
    assert_eq!(responses.len(), 3);
    assert_eq!(told(0)["response"]["output"], "result 0");
    assert_eq!(told(2)["name"], "look");
    assert!(told(2).get("id").is_none(), "it had none");
}

#[tokio::test]
async fn a_signed_text_comes_back_in_the_parts_it_came_in() {
    let frames = [
        parts(json!([{"text": "hm", "thought": true}])),
        says("One "),
        parts(json!([{"text": "two ", "thoughtSignature": "c2lnLWE="}])),
        says("three"),
        parts(json!([{"text": "", "thoughtSignature": "c2lnLWI="}])),
        end("STOP"),
    ];
    let script = [events(&frames), events(&[says("ok"), end("STOP")])];
    let fake = server(GEMINI, script).await;
    let provider = provider(GEMINI, &fake);
    let begun = request_of([Message::user("count")]);
    let (reply, deltas) = call(&provider, &begun).await;
    let reply = reply.unwrap();
    assert_eq!(reply.parts[1], Part::text("One two three"), "in one piece");
    assert_eq!(text_of(&deltas), "One two three");
    let mut next = answered(&begun, &reply);
    next.messages.push(Message::user("again").into());
    call(&provider, &through_json(&next)).await.0.unwrap();
    assert_eq!(
        fake.asked()[1].body["contents"][1]["parts"],
        json!([
            {"text": "One "},
            {"text": "two ", "thoughtSignature": "c2lnLWE="},
            {"text": "three"},
            {"text": "", "thoughtSignature": "c2lnLWI="},
        ])
    );
}

#[tokio::test]
async fn tools_stay_where_none_may_be_called() {
    let fake = server(GEMINI, [events(&[says("ok"), end("STOP")])]).await;
    let mut request = request();
    request.tool_choice = ToolChoice::None;
    call(&provider(GEMINI, &fake), &request).await.0.unwrap();
    let body = &fake.asked()[0].body;
    assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "NONE");
    assert_eq!(
        body["tools"][0]["functionDeclarations"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn a_level_of_thinking_becomes_what_the_model_takes() {
    use ThinkingLevel::{High, Low, Medium, Minimal, Off};
    let budget = |budget: u64| json!({"thinkingBudget": budget, "includeThoughts": true});
    let level = |level: &str| json!({"thinkingLevel": level, "includeThoughts": true});
    // The API refuses to include the thoughts of a model that does not think.
    let silent = |key: &str, value: Value| json!({ key: value });
    for (model, thinking, max, sent) in [
        (
            "gemini-3-pro-preview",
            Off,
            6_000,
            silent("thinkingLevel", json!("LOW")),
        ),
        (
            "gemini-3-flash-preview",
            Off,
            6_000,
            silent("thinkingLevel", json!("MINIMAL")),
        ),
        (
            "gemini-2.5-flash",
            Off,
            6_000,
            silent("thinkingBudget", json!(0)),
        ),
        (
            "gemini-2.5-pro",
            Off,
            6_000,
            silent("thinkingBudget", json!(512)),
        ),
        ("gemini-2.0-flash", Off, 6_000, Value::Null),
        ("gemini-3-pro-preview", Minimal, 6_000, level("LOW")),
        ("gemini-3-pro-preview", Medium, 6_000, level("HIGH")),
        ("gemini-3.1-pro-preview", Medium, 6_000, level("MEDIUM")),
        ("gemini-3-flash-preview", Minimal, 6_000, level("MINIMAL")),
        ("gemini-2.5-flash", Low, 6_000, budget(2_048)),
        // It never takes more than half of what may be written.
        ("gemini-2.5-flash", High, 6_000, budget(3_000)),
        ("gemini-2.5-pro", High, 100_000, budget(24_576)),
        ("gemini-2.5-flash", High, 600, Value::Null),
        ("gemini-2.0-flash", High, 6_000, Value::Null),
        ("gemini-2.5-flash-image", High, 6_000, Value::Null),
        ("gemini-flash-latest", Low, 6_000, budget(2_048)),
        ("gemma-3-27b-it", High, 6_000, Value::Null),
        // Nothing is read out of a name.
        (
            "gemini-2.5-flash-high",
            Off,
            6_000,
            silent("thinkingBudget", json!(0)),
        ),
    ] {
        let model = format!("gemini/{model}");
        let fake = server(&model, [events(&[says("ok"), end("STOP")])]).await;
        let mut request = request();
        request.sampling.thinking = Some(thinking);
        request.max_output = Some(Tokens(max));
        call(&provider(&model, &fake), &request).await.0.unwrap();
        let asked = fake.asked().remove(0);
        assert_eq!(
            asked.body["generationConfig"]["thinkingConfig"], sent,
            "{model} {thinking:?}"
        );
        let name = model.split_once('/').unwrap().1;
        assert!(asked.path.contains(&format!("/{name}:")), "{}", asked.path);
    }
}

#[tokio::test]
async fn a_model_that_is_said_to_think_gets_a_budget() {
    let model = "gemini/learnlm-9";
    let script = || [events(&[says("ok"), end("STOP")])];
    let mut request = request();
    request.sampling.thinking = Some(ThinkingLevel::Low);
    for (row, sent) in [
        ("thinking = true", json!(2_048)),
        ("window = 9000", Value::Null),
    ] {
        let fake = server(model, script()).await;
        call(&knowing(model, row, &fake), &request).await.0.unwrap();
        let config = &fake.asked()[0].body["generationConfig"]["thinkingConfig"];
        assert_eq!(config["thinkingBudget"], sent, "{row}");
    }
}

#[tokio::test]
async fn images_follow_the_results_that_they_came_with() {
    let data = |kind: &str| Source::Data {
        media_type: kind.into(),
        base64: "aGk=".into(),
    };
    let image = Part::Image(Image {
        source: data("image/png"),
        size: None,
        detail: None,
    });
    let file = |source| Part::File(File { name: None, source });
    let messages = [
        Message::User {
            parts: vec![
                Part::text("look"),
                file(data("application/pdf")),
                file(Source::Url {
                    url: "gs://bucket/a.pdf?x=1".into(),
                }),
                file(Source::Url {
                    url: "file-123".into(),
                }),
            ],
        },
        Message::Assistant {
            parts: vec![super::tool_call("c1", "look", "{}")],
        },
        Message::ToolResult(ToolResult {
            call: CallId("c1".into()),
            parts: vec![image],
            is_error: false,
        }),
    ];
    let fake = server(GEMINI, [events(&[says("ok"), end("STOP")])]).await;
    call(&provider(GEMINI, &fake), &request_of(messages))
        .await
        .0
        .unwrap();
    let contents = &fake.asked()[0].body["contents"];
    let first = contents[0]["parts"].as_array().unwrap();
    assert_eq!(first[1]["inlineData"]["mimeType"], "application/pdf");
    assert_eq!(first[2]["fileData"]["fileUri"], "gs://bucket/a.pdf?x=1");
    assert!(first[3]["text"].is_string(), "a note: {}", first[3]);
    assert_eq!(contents[2]["parts"].as_array().unwrap().len(), 1);
    assert_eq!(contents[3]["parts"][1]["inlineData"]["data"], "aGk=");
}

#[tokio::test]
async fn what_ended_a_reply_is_told() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let usage_first = json!({"usageMetadata": {"promptTokenCount": 7}});
    for (name, frames, parts, stop) in [
        (
            "length",
            vec![says("so"), end("MAX_TOKENS")],
            1,
            StopReason::Length,
        ),
        (
            "safety",
            vec![says("so"), end("SAFETY")],
            1,
            StopReason::ContentFilter,
        ),
        ("blocked", vec![blocked], 0, StopReason::ContentFilter),
        ("other", vec![end("LANGUAGE")], 0, StopReason::Other),
        // Usage before anything is said.
        (
            "usage first",
            vec![usage_first, says("so"), end("STOP")],
            1,
            StopReason::Stop,
        ),
    ] {
        let fake = server(GEMINI, [events(&frames)]).await;
        let reply = call(&provider(GEMINI, &fake), &request()).await.0;
        let reply = reply.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        assert_eq!((reply.parts.len(), reply.stop), (parts, stop), "{name}");
    }
    let fake = server(GEMINI, [events(&[end("MALFORMED_FUNCTION_CALL")])]).await;
    let failure = call(&provider(GEMINI, &fake), &request())
        .await
        .0
        .unwrap_err();
    assert!(matches!(failure, Failure::Garbled { .. }), "{failure:?}");
    assert!(failure.is_retryable());
}

#[tokio::test]
async fn foreign_blocks_and_broken_arguments_are_no_faults() {
    let foreign = Part::Opaque(Opaque {
        origin: "anthropic".into(),
        data: "{}".into(),
    });
    let messages = [
        Message::Assistant {
            parts: vec![Part::text("I speak first")],
        },
        Message::Assistant {
            parts: vec![
                foreign,
                Part::text(" "),
                super::tool_call("c1", "mcp.files/read it", "not JSON"),
            ],
        },
        Message::result(CallId("c1".into()), "  "),
        Message::Notice {
            text: "Soon over.".into(),
        },
        Message::system("Later."),
        Message::Assistant { parts: vec![] },
        Message::Summary {
            text: "All of it.".into(),
        },
        Message::assistant("and last"),
    ];
    for model in ["gemini/gemini-3.6-flash", "gemini/gemini-2.5-pro", GEMINI] {
        let fake = server(model, [events(&[says("ok"), end("STOP")])]).await;
        let mut request = request_of(messages.clone());
        request.dynamic_context = None;
        request.tools = [].into();
        call(&provider(model, &fake), &request).await.0.unwrap();
        let contents = &fake.asked()[0].body["contents"];
        let call = &contents[1]["parts"][1]["functionCall"];
        assert_eq!(call["name"], "mcp_files_read_it");
        assert_eq!(call["args"], json!({"malformed_arguments": "not JSON"}));
    }
}

#[tokio::test]
async fn vertex_is_asked_with_a_token_below_the_project() {
    let model = "vertex/gemini-2.5-flash";
    let fake = server(model, [events(&[says("ok"), end("STOP")])]).await;
    let base = format!("{}/v1/projects/p/locations/l", fake.address);
    let vertex = builder(model, &fake).base_url(base);
    let vertex = vertex.build_with(&|_| None).unwrap();
    call(&vertex, &request()).await.0.unwrap();
    let asked = fake.asked().remove(0);
    assert_eq!(
        asked.path,
        "/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-flash:streamGenerateContent"
    );
    assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
    let claude = builder("vertex/claude-opus-4-6", &fake);
    assert!(matches!(
        claude.build_with(&|_| None),
        Err(ProviderError::NotServed { .. })
    ));
}

#[tokio::test]
async fn further_keys_and_headers_are_sent_where_they_can_be() {
    let fake = server(GEMINI, [events(&[says("ok"), end("STOP")])]).await;
    let extra = json!({"safetySettings": [], "generationConfig": {"topP": 0.5},
        "tools": [{"googleSearch": {}}]})
    .as_object()
    .unwrap()
    .clone();
    let gemini = builder(GEMINI, &fake)
        .base_url(format!("{}/proxy/v1beta?tenant=7", fake.address))
        .header("x-team", plimsoll_providers::Secret::new("blue"))
        .extra(extra);
    let gemini = gemini.build_with(&|_| None).unwrap();
    call(&gemini, &request()).await.0.unwrap();
    let asked = fake.asked().remove(0);
    assert!(asked.path.starts_with("/proxy/v1beta/models/"));
    assert_eq!(asked.query, "tenant=7&alt=sse");
    assert_eq!(asked.headers["x-team"], "blue");
    assert_eq!(asked.body["safetySettings"], json!([]));
    let config = &asked.body["generationConfig"];
    assert_eq!((&config["topP"], &config["seed"]), (&json!(0.5), &json!(7)));
    assert_eq!(asked.body["tools"][1], json!({"googleSearch": {}}));
}

#[tokio::test]
async fn the_server_tells_the_window() {
    let fake = server(GEMINI, []).await;
    let entry = json!({"name": "models/gemini-3-pro-preview", "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536});
    let fake = fake.page("/v1beta/models/gemini-3-pro-preview", 200, entry);
    let window = provider(GEMINI, &fake).window().await;
    assert_eq!(window, Some(Tokens(1_048_576)));
}

fn id(part: &Part) -> Option<CallId> {
    match part {
        Part::ToolCall(call) => Some(call.id.clone()),
        _ => None,
    }
}

/// As a session stores it.
fn through_json(request: &plimsoll_agent::Request) -> plimsoll_agent::Request {
    let messages = request.messages.iter().map(|message| {
        let json = serde_json::to_string(&**message).unwrap();
        serde_json::from_str::<Message>(&json).unwrap()
    });
    plimsoll_agent::Request {
        messages: messages.collect(),
        ..request.clone()
    }
}
