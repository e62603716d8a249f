//! Bedrock's Converse: the requests to models of several makers, and the decoded event streams.

use plimsoll_agent::{Failure, ThinkingLevel, ToolChoice};
use plimsoll_context::{
    CallId, Delta, Image, Message, Part, Source, StopReason, Tokens, ToolResult, Usage,
};
use plimsoll_core::Provider;
use serde_json::{Value, json};

use super::eventstream::{event, exception, reply, stream};
use super::fake::FakeAnswer;
use super::{
    CONVERSE, KEY, answered, builder, call, hasty, provider, request, request_of, server, text_of,
    tool_call,
};

const MISTRAL: &str = "bedrock/mistral.mistral-large-2407-v1:0";
const NOVA: &str = "bedrock/us.amazon.nova-2-lite-v1:0";

fn usage() -> Value {
    json!({"inputTokens": 20, "outputTokens": 50, "cacheReadInputTokens": 950,
        "cacheWriteInputTokens": 30, "totalTokens": 1050})
}

fn says(text: &str) -> FakeAnswer {
    stream(reply(&[json!({"text": text})], "end_turn", &usage()))
}

fn asks(id: &str, at: u64) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": "look", "input": {"at": at}}})
}

fn signed(text: &str) -> Value {
    json!({"reasoningContent": {"reasoningText": {"text": text, "signature": "c2ln"}}})
}

#[tokio::test]
async fn a_request_carries_what_was_asked_for() {
    let fake = server(CONVERSE, [says("hi there")]).await;
    let (reply, deltas) = call(&provider(CONVERSE, &fake), &request()).await;
    let reply = reply.unwrap();
    assert_eq!(reply.parts, [Part::text("hi there")]);
    assert_eq!(reply.stop, StopReason::Stop);
    let expected = Usage {
        input: Tokens(20),
        output: Tokens(50),
        reasoning: Tokens(0),
        cache_read: Tokens(950),
        cache_write: Tokens(30),
        ..Usage::default()
    };
    assert_eq!(reply.usage, Some(expected));
    assert_eq!(text_of(&deltas), "hi there");
    assert_eq!(deltas.len(), 2);

    let asked = fake.asked().remove(0);
    assert_eq!(
        asked.path,
        "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    );
    assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
    let body = asked.body;
    assert_eq!(body["system"], json!([{"text": "Be brief."}]));
    assert_eq!(
        body["inferenceConfig"],
        json!({"maxTokens": 6000, "temperature": 0.5})
    );
    assert!(body.get("additionalModelRequestFields").is_none());
    let tools = &body["toolConfig"]["tools"];
    assert_eq!(tools[0]["toolSpec"]["name"], "look", "sorted");
    assert!(body["toolConfig"].get("toolChoice").is_none());
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"text": "read a and b"}]},
            {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "call_1", "name": "read", "input": {"path": "a"}}},
                {"toolUse": {"toolUseId": "call_2", "name": "read", "input": {"path": "b"}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "call_1", "content": [{"text": "A"}]}},
                {"toolResult": {"toolUseId": "call_2",
                    "content": [{"text": "error: no such file"}], "status": "error"}},
                {"text": "It is late."},
            ]},
        ])
    );
}

#[tokio::test]
async fn pieces_arrive_while_the_rest_is_still_being_written() {
    let frames = reply(&[json!({"text": "first second"})], "end_turn", &usage());
    let (answer, open) = stream(frames).gate(2);
    let fake = server(CONVERSE, [answer]).await;
    let open = std::sync::Mutex::new(Some(open));
    let sink = |delta: Delta| {
        if let (Delta::Text { text }, Some(open)) = (delta, open.lock().unwrap().take()) {
            assert_eq!(text, "first ");
            open.send(()).unwrap();
        }
    };
    let reply = provider(CONVERSE, &fake).call(&request(), &sink).await;
    assert_eq!(reply.unwrap().parts, [Part::text("first second")]);
}

#[tokio::test]
async fn arguments_come_in_pieces_once() {
    let blocks = [
        json!({"text": "both"}),
        asks("tooluse_a", 1),
        asks("tooluse_b", 2),
    ];
    let fake = server(
        CONVERSE,
        [stream(reply(&blocks, "tool_use", &usage())).bytewise()],
    )
    .await;
    let (reply, deltas) = call(&provider(CONVERSE, &fake), &request()).await;
    let reply = reply.unwrap();
    assert_eq!(reply.stop, StopReason::ToolCalls);
    assert_eq!(
        reply.parts[1..],
        [
            tool_call("tooluse_a", "look", "{\"at\":1}"),
            tool_call("tooluse_b", "look", "{\"at\":2}"),
        ]
    );
    let arguments = deltas.iter().filter_map(|delta| match delta {
        Delta::CallArguments { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(arguments.collect::<String>(), "{\"at\":1}{\"at\":2}");
}

#[tokio::test]
async fn signed_thinking_comes_back_to_the_same_model_while_it_thinks() {
    let blocks = [signed("Look twice."), asks("t_1", 1), asks("t_2", 2)];
    let script = || {
        [
            stream(reply(&blocks, "tool_use", &usage())),
            says("done"),
            says("done"),
        ]
    };
    let fake = server(CONVERSE, script()).await;
    let claude = provider(CONVERSE, &fake);
    let mut begun = request_of([Message::user("go")]);
    begun.sampling.thinking = Some(ThinkingLevel::Low);
    let (reply, deltas) = call(&claude, &begun).await;
    let reply = reply.unwrap();
    assert!(matches!(&deltas[0], Delta::Thinking { text } if text == "Look twice."));
    let mut next = answered(&begun, &reply);
    call(&claude, &next).await.0.unwrap();
    next.sampling.thinking = Some(ThinkingLevel::Off);
    call(&claude, &next).await.0.unwrap();
    let asked = fake.asked();
    for asked in &asked[..2] {
        assert_eq!(
            asked.body["additionalModelRequestFields"]["thinking"],
            json!({"type": "enabled", "budget_tokens": 2048})
        );
        let inference = &asked.body["inferenceConfig"];
        assert!(inference.get("temperature").is_none(), "only 1 is taken");
    }
    assert_eq!(
        asked[1].body["messages"][1]["content"][0],
        signed("Look twice.")
    );
    let unthinking = &asked[2].body;
    assert!(unthinking.get("additionalModelRequestFields").is_none());
    assert_eq!(
        unthinking["messages"][1]["content"],
        json!([asks("t_1", 1), asks("t_2", 2)])
    );

    // Another model gets nothing that it did not sign.
    let other = "bedrock/anthropic.claude-haiku-4-5-20251001-v1:0";
    let fake = server(other, [says("ok")]).await;
    next.sampling.thinking = Some(ThinkingLevel::Low);
    call(&provider(other, &fake), &next).await.0.unwrap();
    let body = &fake.asked()[0].body;
    assert!(body.get("additionalModelRequestFields").is_none());
    assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_budget_leaves_room_for_an_answer() {
    for (model, level, max, sent) in [
        (CONVERSE, ThinkingLevel::High, 6_000, json!(4_499)),
        (CONVERSE, ThinkingLevel::Medium, 60_000, json!(8_192)),
        (CONVERSE, ThinkingLevel::Minimal, 1_000, Value::Null),
        // It takes no budget any more.
        (
            "bedrock/global.anthropic.claude-opus-4-8-v1",
            ThinkingLevel::High,
            60_000,
            Value::Null,
        ),
    ] {
        let fake = server(model, [says("ok")]).await;
        let mut request = request_of([Message::user("go")]);
        request.sampling.thinking = Some(level);
        request.max_output = Some(Tokens(max));
        call(&provider(model, &fake), &request).await.0.unwrap();
        let body = &fake.asked()[0].body;
        let thinking = &body["additionalModelRequestFields"]["thinking"];
        assert_eq!(thinking["budget_tokens"], sent, "{model} {level:?}");
        assert_eq!(body["inferenceConfig"]["maxTokens"], max);
    }
    let fake = server(NOVA, [says("ok")]).await;
    let mut request = request_of([Message::user("go")]);
    request.sampling.thinking = Some(ThinkingLevel::High);
    call(&provider(NOVA, &fake), &request).await.0.unwrap();
    let body = &fake.asked()[0].body;
    let effort = &body["additionalModelRequestFields"]["inferenceConfig"]["reasoningConfig"];
    assert_eq!(effort["maxReasoningEffort"], "medium", "the limit stays");
    assert_eq!(body["inferenceConfig"]["maxTokens"], 6_000);
}

#[tokio::test]
async fn results_stand_alone_where_the_model_wants_it() {
    let fake = server(MISTRAL, [says("ok")]).await;
    call(&provider(MISTRAL, &fake), &request()).await.0.unwrap();
    let messages = fake.asked()[0].body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 5);
    assert_eq!(messages[2]["content"].as_array().unwrap().len(), 2);
    assert_eq!(messages[3]["role"], "assistant");
    assert_eq!(messages[4]["content"], json!([{"text": "It is late."}]));
}

#[tokio::test]
async fn tools_are_declared_as_long_as_the_history_has_calls() {
    for (tools, declared) in [(true, vec!["read"]), (false, vec!["mcp_read", "read"])] {
        let mut request = request();
        request.tool_choice = ToolChoice::None;
        if !tools {
            request.tools = [].into();
            let parts = vec![tool_call("c", "mcp.read", "[1]")];
            request.messages.push(Message::Assistant { parts }.into());
            let result = Message::result(CallId("c".into()), "");
            request.messages.push(result.into());
        }
        let fake = server(CONVERSE, [says("ok")]).await;
        call(&provider(CONVERSE, &fake), &request).await.0.unwrap();
        let tools = fake.asked()[0].body["toolConfig"]["tools"].clone();
        // Nothing of them tells how they would be called.
        assert!(!tools.to_string().contains("Does "), "{tools}");
        let names = tools.as_array().unwrap().iter();
        let names = names.map(|tool| tool["toolSpec"]["name"].as_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), declared);
    }
}

#[tokio::test]
async fn what_other_providers_left_in_a_history_is_made_legal() {
    let image = |kind: &str| {
        Part::Image(Image {
            source: Source::Data {
                media_type: kind.into(),
                base64: "aGk=".into(),
            },
            size: None,
            detail: None,
        })
    };
    let long = "x".repeat(90);
    let messages = [
        Message::assistant("I speak first"),
        Message::Assistant {
            parts: vec![
                super::thought("alone"),
                tool_call("call#read#0", "read file", "not JSON"),
                tool_call(&long, "look", ""),
            ],
        },
        Message::ToolResult(ToolResult {
            call: CallId("call#read#0".into()),
            parts: vec![image("image/png"), image("image/tiff")],
            is_error: false,
        }),
        Message::result(CallId(long.clone()), " "),
        Message::Assistant {
            parts: vec![tool_call("call#read#0", "look", "{}")],
        },
        Message::result(CallId("call#read#0".into()), "again"),
        Message::assistant("the last word"),
    ];
    for model in [CONVERSE, MISTRAL, NOVA] {
        let fake = server(model, [says("ok")]).await;
        let mut request = request_of(messages.clone());
        request.dynamic_context = None;
        call(&provider(model, &fake), &request).await.0.unwrap();
        let body = fake.asked()[0].body.to_string();
        assert!(body.contains("malformed_arguments"), "{model}");
        assert!(body.contains("\"format\":\"png\"") && !body.contains("tiff"));
    }
}

#[tokio::test]
async fn an_exception_in_the_middle_is_what_it_says() {
    let begin = || {
        let mut frames = reply(&[json!({"text": "hi"})], "end_turn", &usage());
        frames.truncate(2);
        frames
    };
    let failure = async |frame: Vec<u8>| {
        let mut frames = begin();
        frames.push(frame);
        let fake = server(CONVERSE, [stream(frames)]).await;
        call(&provider(CONVERSE, &fake), &request())
            .await
            .0
            .unwrap_err()
    };
    let throttled = "Too many tokens, please wait before trying again.";
    let throttled = failure(exception("throttlingException", throttled)).await;
    assert!(
        matches!(throttled, Failure::RateLimited { .. }),
        "{throttled:?}"
    );
    let long = "prompt is too long: 200049 tokens > 200000 maximum";
    let long = failure(exception("validationException", long)).await;
    let Failure::Overflow { used, window, .. } = long else {
        panic!("{long:?}");
    };
    assert_eq!(
        (used, window),
        (Some(Tokens(200_049)), Some(Tokens(200_000)))
    );
    let broken = failure(exception("modelStreamErrorException", "It broke.")).await;
    assert!(broken.is_retryable(), "{broken:?}");
}

#[tokio::test]
async fn a_stream_that_is_none_is_garbled_and_ends() {
    let mut bad = event("messageStart", &json!({"role": "assistant"}));
    *bad.last_mut().unwrap() ^= 1;
    for frames in [vec![bad], vec![b"HTTP/1.1 200 OK, says a proxy".to_vec()]] {
        let fake = server(CONVERSE, [stream(frames)]).await;
        let failure = call(&provider(CONVERSE, &fake), &request())
            .await
            .0
            .unwrap_err();
        assert!(matches!(failure, Failure::Garbled { .. }), "{failure:?}");
    }
}

#[tokio::test]
async fn what_ended_a_reply_is_told() {
    for (reason, stop) in [
        ("max_tokens", StopReason::Length),
        ("stop_sequence", StopReason::Stop),
        ("guardrail_intervened", StopReason::ContentFilter),
        ("model_context_window_exceeded", StopReason::Window),
        ("of_tomorrow", StopReason::Other),
    ] {
        let frames = reply(&[json!({"text": "so"})], reason, &usage());
        let fake = server(CONVERSE, [stream(frames)]).await;
        let reply = call(&provider(CONVERSE, &fake), &request())
            .await
            .0
            .unwrap();
        assert_eq!(reply.stop, stop, "{reason}");
    }
    // Usage comes last, and a reply is a reply without.
    let mut frames = reply(&[json!({"text": "so"})], "end_turn", &usage());
    frames.pop();
    let script = [stream(frames.clone()), stream(frames).then_hang()];
    let fake = server(CONVERSE, script).await;
    for _ in 0..2 {
        let reply = call(&hasty(CONVERSE, &fake), &request()).await.0.unwrap();
        assert_eq!((reply.usage, reply.stop), (None, StopReason::Stop));
    }
}

#[tokio::test]
async fn openai_counts_its_input_whole_and_keeps_its_reasoning_encrypted() {
    let model = "bedrock/openai.gpt-oss-120b-1:0";
    let counts = json!({"inputTokens": 4995, "outputTokens": 19, "cacheWriteInputTokens": 4993,
        "totalTokens": 10_007});
    let hidden = json!({"reasoningContent": {"redactedContent": "b3BhcXVl"}});
    let script = [
        stream(reply(&[hidden.clone(), asks("t", 1)], "tool_use", &counts)),
        says("ok"),
    ];
    let fake = server(model, script).await;
    let provider = provider(model, &fake);
    let begun = request_of([Message::user("go")]);
    let reply = call(&provider, &begun).await.0.unwrap();
    let usage = reply.usage.unwrap();
    assert_eq!((usage.input, usage.cache_write), (Tokens(2), Tokens(4_993)));
    call(&provider, &answered(&begun, &reply)).await.0.unwrap();
    assert_eq!(fake.asked()[1].body["messages"][1]["content"][0], hidden);
}

#[tokio::test]
async fn an_arn_is_one_segment_of_the_address() {
    let arn =
        "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-5-haiku-20241022-v1:0";
    let model = format!("bedrock/{arn}");
    let fake = server(&model, [says("ok")]).await;
    let bedrock = builder(&model, &fake).build_with(&|_| None).unwrap();
    call(&bedrock, &request()).await.0.unwrap();
    let path = &fake.asked()[0].path;
    assert!(path.starts_with("/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A%3Afoundation-model%2F"));
}

#[tokio::test]
async fn cache_points_and_further_keys_are_sent() {
    use plimsoll_context::{Breakpoint, CachePlan};
    let mut request = request();
    request.cache = CachePlan {
        breakpoints: vec![
            Breakpoint::Tools,
            Breakpoint::System,
            Breakpoint::Message(0),
            Breakpoint::Message(3),
        ],
        ..CachePlan::default()
    };
    let extra = json!({"inferenceConfig": {"topP": 0.5}, "requestMetadata": {"team": "blue"}});
    let point = json!({"cachePoint": {"type": "default"}});
    for model in [CONVERSE, MISTRAL] {
        let fake = server(model, [says("ok")]).await;
        let client = builder(model, &fake).extra(extra.as_object().unwrap().clone());
        let client = client.build_with(&|_| None).unwrap();
        call(&client, &request).await.0.unwrap();
        let body = &fake.asked()[0].body;
        assert_eq!(body["requestMetadata"]["team"], "blue");
        assert_eq!(body["inferenceConfig"]["topP"], 0.5);
        assert_eq!(body["inferenceConfig"]["maxTokens"], 6_000);
        if model == MISTRAL {
            assert!(!body.to_string().contains("cachePoint"));
            continue;
        }
        assert_eq!(body["system"][1], point);
        assert_eq!(body["toolConfig"]["tools"][2], point);
        assert_eq!(body["messages"][0]["content"][1], point);
        assert_eq!(body["messages"][2]["content"][2], point);
        assert_eq!(body["messages"][2]["content"][3]["text"], "It is late.");
    }
}
