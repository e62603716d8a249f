//! Replies of OpenAI Responses, whole and streamed.

use plimsoll_context::{
    CallId, Delta, Opaque, Part, Reply, StopReason, Thinking, Tokens, ToolCall, Usage,
};
use plimsoll_testkit::messages::tool_call;
use plimsoll_wire::openai_responses::{ResponsesStreamState, read_reply};
use plimsoll_wire::overflow::{Verdict, classify};
use plimsoll_wire::{StreamDecoder, WireError};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Key order, number form and escapes that a re-serialised item would lose.
const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA\u002b/==","summary":[{"type":"summary_text","text":"First."},{"type":"summary_text","text":"Then."}],"x":1.50}"#;

fn push(events: &[Value]) -> (ResponsesStreamState, Vec<Delta>) {
    let mut state = ResponsesStreamState::new();
    let mut deltas = Vec::new();
    for event in events {
        deltas.extend(state.push(&event.to_string()).unwrap());
    }
    (state, deltas)
}

fn created() -> Value {
    json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1",
        "object": "response", "model": "gpt-5-2025-08-07", "status": "in_progress", "error": null,
        "instructions": "rate limit", "output": [], "usage": null}})
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn text(index: u64, more: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0,
        "item_id": "msg_1", "delta": more, "logprobs": [], "obfuscation": "x"})
}

fn arguments(index: u64, more: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index,
        "item_id": "fc_1", "delta": more})
}

fn thought(part: u64, more: &str) -> Value {
    json!({"type": "response.reasoning_summary_text.delta", "output_index": 0,
        "summary_index": part, "item_id": "rs_1", "delta": more})
}

fn message(words: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": words, "annotations": []}]})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": name,
        "arguments": arguments, "status": "completed"})
}

fn usage() -> Value {
    json!({"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 800},
        "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 1050})
}

fn completed(output: Vec<Value>) -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "object": "response",
        "model": "gpt-5-2025-08-07", "status": "completed", "error": null,
        "incomplete_details": null, "output": output, "usage": usage()}})
}

fn ended(status: &str, reason: &str) -> Value {
    json!({"type": format!("response.{status}"), "response": {"id": "resp_1", "status": status,
        "error": null, "incomplete_details": {"reason": reason}, "output": []}})
}

fn opaque(data: &str) -> Opaque {
    Opaque {
        origin: "openai-responses".into(),
        data: data.into(),
    }
}

fn thinking() -> Part {
    Part::Thinking(Thinking {
        text: "First.\n\nThen.".into(),
        opaque: Some(opaque(REASONING)),
    })
}

#[test]
fn reasoning_text_and_parallel_calls_come_in_their_order() {
    let mut state = ResponsesStreamState::new();
    let mut deltas = Vec::new();
    let mut take = |event: &str| deltas.extend(state.push(event).unwrap());
    take(&created().to_string());
    take(&added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})).to_string());
    take(r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}"#);
    for event in [thought(0, "Fir"), thought(0, "st."), thought(1, "Then.")] {
        take(&event.to_string());
    }
    // The bytes of the item are kept as they are, spaces and all.
    take(&format!(
        r#"{{"type":"response.output_item.done", "output_index":0, "item": {REASONING} }}"#
    ));
    take(&added(1, message("")).to_string());
    take(
        r#"{"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}"#,
    );
    take(&text(1, "Both").to_string());
    take(&text(1, ".").to_string());
    take(
        r#"{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"Both."}"#,
    );
    take(&done(1, message("Both.")).to_string());
    // Pieces of two calls may come mixed.
    take(&added(2, call("a", "read", "")).to_string());
    take(&added(3, call("b", "list", "")).to_string());
    take(&arguments(2, "{\"p\"").to_string());
    take(&arguments(3, "{").to_string());
    take(&arguments(2, ": 1}").to_string());
    take(&arguments(3, "}").to_string());
    take(
        r#"{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"p\": 1}"}"#,
    );
    take(&done(2, call("a", "read", "{\"p\": 1}")).to_string());
    take(&done(3, call("b", "list", "{}")).to_string());
    assert!(!state.has_ended());
    let all = vec![
        serde_json::from_str(REASONING).unwrap(),
        message("Both."),
        call("a", "read", "{\"p\": 1}"),
        call("b", "list", "{}"),
    ];
    let last = state.push(&completed(all).to_string()).unwrap();
    assert_eq!(last, [], "nothing is told twice");
    assert!(state.has_ended());

    let id = |id: &str| CallId(id.into());
    let words = |text: &str| Delta::Thinking { text: text.into() };
    let more = |call: &str, text: &str| Delta::CallArguments {
        call: id(call),
        text: text.into(),
    };
    assert_eq!(
        deltas,
        [
            words("Fir"),
            words("st."),
            words("\n\nThen."),
            Delta::Text {
                text: "Both".into()
            },
            Delta::Text { text: ".".into() },
            Delta::CallStarted {
                call: id("a"),
                name: "read".into()
            },
            Delta::CallStarted {
                call: id("b"),
                name: "list".into()
            },
            more("a", "{\"p\""),
            more("b", "{"),
            more("a", ": 1}"),
            more("b", "}"),
        ]
    );
    let expected = Reply {
        parts: vec![
            thinking(),
            Part::text("Both."),
            tool_call("a", "read", "{\"p\": 1}"),
            tool_call("b", "list", "{}"),
        ],
        stop: StopReason::ToolCalls,
        usage: Some(Usage {
            input: Tokens(200),
            output: Tokens(50),
            reasoning: Tokens(30),
            cache_read: Tokens(800),
            cache_write: Tokens(0),
            ..Usage::default()
        }),
        model: Some("gpt-5-2025-08-07".into()),
    };
    assert_eq!(state.finish().unwrap(), expected);
    // The same in one piece.
    let whole = format!(
        r#"{{"id":"resp_1","object":"response","model":"gpt-5-2025-08-07","status":"completed",
        "error":null,"usage":{},"output":[{REASONING},{},{},{}]}}"#,
        usage(),
        message("Both."),
        call("a", "read", "{\"p\": 1}"),
        call("b", "list", "{}"),
    );
    assert_eq!(read_reply(&whole).unwrap(), expected);
}

#[test]
fn what_a_server_leaves_out_of_the_stream_is_taken_from_its_end() {
    let bare = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let rows: Vec<(&str, Vec<Value>)> = vec![
        ("nothing but the end", vec![]),
        ("only what begins", vec![added(1, call("a", "f", ""))]),
        (
            "the item without its encrypted content",
            vec![done(0, bare.clone()), done(1, call("a", "f", "{\"x\":1}"))],
        ),
        (
            "arguments in one piece",
            vec![
                added(1, call("a", "f", "")),
                json!({"type": "response.function_call_arguments.done", "output_index": 1,
                    "arguments": "{\"x\":1}"}),
            ],
        ),
        (
            "no places at all",
            vec![
                json!({"type": "response.output_item.added", "item": bare}),
                json!({"type": "response.reasoning_summary_text.delta", "delta": "First."}),
            ],
        ),
    ];
    for (what, events) in rows {
        let (mut state, mut deltas) = push(&events);
        let end = completed(vec![
            serde_json::from_str(REASONING).unwrap(),
            call("a", "f", "{\"x\":1}"),
        ]);
        deltas.extend(state.push(&end.to_string()).unwrap());
        let reply = state.finish().unwrap();
        let [Part::Thinking(thinking), second] = reply.parts.as_slice() else {
            panic!("{what}: {:?}", reply.parts);
        };
        assert!(
            thinking.opaque.as_ref().unwrap().data.contains("gAAA"),
            "{what}"
        );
        assert_eq!(*second, tool_call("a", "f", "{\"x\":1}"), "{what}");
        let told: String = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::CallArguments { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(told, "{\"x\":1}", "{what}");
        let begun = deltas
            .iter()
            .filter(|delta| matches!(delta, Delta::CallStarted { .. }));
        assert_eq!(begun.count(), 1, "{what}");
    }
}

/// Events as servers send them that say no place, or 0 for every item.
fn placed(place: Option<u64>, mut events: Vec<Value>) -> Vec<Value> {
    for event in &mut events {
        if event.get("item").is_some() || event.get("item_id").is_some() {
            match place {
                Some(place) => event["output_index"] = place.into(),
                None => drop(event.as_object_mut().unwrap().remove("output_index")),
            }
        }
    }
    events
}

fn of(item: &str, more: &str, kind: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "item_id": item, "delta": more})
}

fn called(item: &str, id: &str, arguments: &str) -> Value {
    let mut call = call(id, "read", arguments);
    call["id"] = item.into();
    call
}

/// llama.cpp and what copies it say no place; some shims say 0 for every item.
#[test]
fn items_without_a_place_of_their_own_are_told_apart_by_their_ids() {
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}]});
    let said = message("Let me look.");
    let begun = |item: &Value| {
        let mut item = item.clone();
        for key in ["content", "arguments"] {
            if let Some(value) = item.get_mut(key) {
                *value = if key == "content" {
                    json!([])
                } else {
                    "".into()
                };
            }
        }
        added(0, item)
    };
    let (one, two) = ("{\"p\":\"a\"}", "{\"p\":\"b\"}");
    // As llama.cpp names them: calls have no id of their own besides that of the call.
    let mut bare = [called("", "fc_1", one), called("", "fc_2", two)];
    for call in &mut bare {
        call.as_object_mut().unwrap().remove("id");
    }
    let named = [called("fc_1", "c1", one), called("fc_2", "c2", two)];
    for calls in [bare, named] {
        let [first, second] = &calls;
        let all = [&thought, &said, first, second].map(Clone::clone);
        let arguments = "function_call_arguments";
        let pieces = [
            vec![begun(&thought), of("rs_1", "hm", "reasoning_text")],
            vec![begun(&said), of("msg_1", "Let me look.", "output_text")],
            vec![begun(first), of("fc_1", one, arguments)],
            vec![begun(second), of("fc_2", &two[..4], arguments)],
            vec![of("fc_2", &two[4..], arguments)],
        ]
        .concat();
        let ends: Vec<Value> = all.iter().map(|item| done(0, item.clone())).collect();
        // Each item ends before the next begins, all end together, or none is said to end.
        let mut each = pieces.clone();
        for (at, end) in [2, 5, 8, 12].into_iter().zip(&ends) {
            each.insert(at, end.clone());
        }
        let together = [pieces.clone(), ends.clone()].concat();
        for events in [each, together, pieces, ends] {
            for place in [None, Some(0)] {
                for output in [all.to_vec(), vec![]] {
                    let mut events = placed(place, events.clone());
                    events.push(completed(output.clone()));
                    let unsaid = output.is_empty()
                        && !events
                            .iter()
                            .any(|event| event["type"] == "response.output_item.done");
                    let (state, deltas) = push(&events);
                    let reply = state.finish().unwrap();
                    let what = format!("{place:?} {} {events:#?}", output.len());
                    let calls: Vec<String> = calls
                        .iter()
                        .map(|call| call["call_id"].as_str().unwrap().to_owned())
                        .collect();
                    let [Part::Thinking(thinking), rest @ ..] = reply.parts.as_slice() else {
                        panic!("{what} {:?}", reply.parts);
                    };
                    assert_eq!(thinking.text, "hm", "{what}");
                    assert_eq!(thinking.opaque.is_none(), unsaid, "{what}");
                    let expected = [
                        Part::text("Let me look."),
                        tool_call(&calls[0], "read", one),
                        tool_call(&calls[1], "read", two),
                    ];
                    assert_eq!(rest, expected, "{what}");
                    let told = |call: &str| -> String {
                        let told = deltas.iter().filter_map(|delta| match delta {
                            Delta::CallArguments { call: id, text } if id.0 == call => {
                                Some(text.as_str())
                            }
                            _ => None,
                        });
                        told.collect()
                    };
                    assert_eq!(
                        (told(&calls[0]), told(&calls[1])),
                        (one.into(), two.into()),
                        "{what}"
                    );
                    let words: String = deltas
                        .iter()
                        .filter_map(|delta| match delta {
                            Delta::Text { text } | Delta::Thinking { text } => Some(text.as_str()),
                            _ => None,
                        })
                        .collect();
                    assert_eq!(words, "hmLet me look.", "{what}");
                    let begun = deltas
                        .iter()
                        .filter(|delta| matches!(delta, Delta::CallStarted { .. }));
                    assert_eq!(begun.count(), 2, "{what}");
                }
            }
        }
    }
}

/// Some servers name an item otherwise in every event; then its place says which it is.
#[test]
fn ids_that_change_from_event_to_event_do_not_make_new_items() {
    let mut events = vec![
        added(0, called("x1", "c1", "")),
        added(1, called("x2", "c2", "")),
    ];
    events.push(
        json!({"type": "response.function_call_arguments.delta", "output_index": 0,
        "item_id": "x3", "delta": "{}"}),
    );
    events.push(
        json!({"type": "response.function_call_arguments.delta", "output_index": 1,
        "item_id": "x4", "delta": "{}"}),
    );
    events.push(done(0, called("x5", "c1", "{}")));
    events.push(done(1, called("x6", "c2", "{}")));
    events.push(completed(vec![
        called("x7", "c1", "{}"),
        called("x8", "c2", "{}"),
    ]));
    let (state, _) = push(&events);
    let calls = [tool_call("c1", "read", "{}"), tool_call("c2", "read", "{}")];
    assert_eq!(state.finish().unwrap().parts, calls);
}

#[test]
fn what_else_a_response_may_hold() {
    let rows: Vec<(Value, Vec<Part>)> = vec![
        (
            json!({"type": "message", "role": "assistant", "phase": "commentary",
                "content": [{"type": "output_text", "text": "I look."}]}),
            vec![
                Part::Opaque(opaque(r#"{"phase":"commentary"}"#)),
                Part::text("I look."),
            ],
        ),
        (
            json!({"type": "message", "role": "assistant",
                "content": [{"type": "refusal", "refusal": "No."}]}),
            vec![Part::text("No.")],
        ),
        (
            json!({"type": "message", "role": "assistant", "content": "x"}),
            vec![Part::text("x")],
        ),
        (
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
            vec![Part::Opaque(opaque(
                r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#,
            ))],
        ),
        (
            json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "patch",
                "input": "*** Begin"}),
            vec![Part::ToolCall(ToolCall {
                id: CallId("a".into()),
                name: "patch".into(),
                arguments: "*** Begin".into(),
                opaque: Some(opaque(r#"{"type":"custom_tool_call"}"#)),
            })],
        ),
        (
            json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "",
                "namespace": "crm"}),
            vec![Part::ToolCall(ToolCall {
                id: CallId("a".into()),
                name: "f".into(),
                arguments: "{}".into(),
                opaque: Some(opaque(r#"{"namespace":"crm"}"#)),
            })],
        ),
        (
            json!({"type": "reasoning", "id": "rs_1", "summary": [],
                "content": [{"type": "reasoning_text", "text": "hm"}]}),
            vec![Part::Thinking(Thinking {
                text: "hm".into(),
                opaque: Some(opaque(
                    r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}"#,
                )),
            })],
        ),
    ];
    for (item, parts) in rows {
        let (state, _) = push(&[created(), done(0, item.clone()), completed(vec![])]);
        assert_eq!(state.finish().unwrap().parts, parts, "{item}");
        let whole = json!({"status": "completed", "output": [item]}).to_string();
        assert_eq!(read_reply(&whole).unwrap().parts, parts);
    }
}

#[test]
fn ids_are_unique_in_a_reply() {
    let output = [call("a", "f", "{}"), call("a", "f", "{}")];
    let whole = json!({"id": "resp_1", "output": output}).to_string();
    let reply = read_reply(&whole).unwrap();
    assert_eq!(reply.parts[1], tool_call("a_", "f", "{}"));
    let nameless = json!({"id": "resp_1", "output": [
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"type": "function_call", "name": "f", "arguments": {"x": 1}},
    ]});
    let reply = read_reply(&nameless.to_string()).unwrap();
    let [Part::ToolCall(one), Part::ToolCall(other)] = reply.parts.as_slice() else {
        panic!("{:?}", reply.parts);
    };
    assert!(!one.id.0.is_empty() && one.id != other.id);
    assert_eq!(other.arguments, "{\"x\":1}");
}

#[test]
fn why_a_model_stopped() {
    for (end, stop) in [
        (completed(vec![message("x")]), StopReason::Stop),
        (completed(vec![call("a", "f", "{}")]), StopReason::ToolCalls),
        (ended("incomplete", "max_output_tokens"), StopReason::Length),
        (
            ended("incomplete", "content_filter"),
            StopReason::ContentFilter,
        ),
        (ended("incomplete", "whim"), StopReason::Other),
        (ended("cancelled", ""), StopReason::Other),
        (json!({"type": "response.completed"}), StopReason::Stop),
    ] {
        let (state, _) = push(&[created(), end.clone()]);
        assert_eq!(state.finish().unwrap().stop, stop, "{end}");
        if let Some(response) = end.get("response") {
            assert_eq!(read_reply(&response.to_string()).unwrap().stop, stop);
        }
    }
    // What was cut at the limit stays cut.
    let (state, _) = push(&[
        added(0, call("a", "f", "")),
        arguments(0, "{\"x\":"),
        ended("incomplete", "max_output_tokens"),
    ]);
    let reply = state.finish().unwrap();
    assert_eq!(reply.parts, [tool_call("a", "f", "{\"x\":")]);
    assert_eq!(reply.stop, StopReason::Length);
    // A server that only marks the end.
    let mut state = ResponsesStreamState::new();
    state.push(&text(0, "x").to_string()).unwrap();
    state.push("[DONE]").unwrap();
    assert_eq!(state.finish().unwrap().parts, [Part::text("x")]);
}

#[test]
fn a_cut_stream_is_told_with_what_had_come() {
    let (state, _) = push(&[
        created(),
        thought(0, "hm"),
        text(1, "half"),
        added(2, call("a", "f", "")),
        arguments(2, "{"),
    ]);
    let partial = state.partial();
    let Err(WireError::Cut { partial: cut }) = state.finish() else {
        panic!("it was cut");
    };
    assert_eq!(*cut, partial);
    // Reasoning without its content is of no use to the provider: it is not given back.
    let half = Part::Thinking(Thinking {
        text: "hm".into(),
        opaque: None,
    });
    assert_eq!(
        cut.parts,
        [half, Part::text("half"), tool_call("a", "f", "{")]
    );
    assert!(matches!(
        ResponsesStreamState::new().finish(),
        Err(WireError::Cut { .. })
    ));
}

#[test]
fn errors_are_understood_wherever_they_stand() {
    let failed = |code: &str, message: &str| {
        json!({"type": "response.failed", "response": {"id": "resp_1", "status": "failed",
            "instructions": "too many requests", "output": [],
            "error": {"code": code, "message": message}}})
    };
    let over = "Your input exceeds the context window of this model. Please adjust your input and \
                try again.";
    let error = |code: &str, message: &str| {
        json!({"type": "error", "code": code, "message": message, "param": null,
            "sequence_number": 3})
    };
    let overflow = classify(
        Some(400),
        &json!({"error": {"code": "context_length_exceeded"}}).to_string(),
    );
    assert!(matches!(overflow, Verdict::Overflow(_)));
    for (event, verdict) in [
        (failed("context_length_exceeded", over), overflow),
        (error("context_length_exceeded", over), overflow),
        (
            failed("server_error", "The server had an error."),
            Verdict::Transient,
        ),
        (
            failed("rate_limit_exceeded", "Rate limit reached for gpt-5"),
            Verdict::RateLimited,
        ),
        (error("server_error", "Overloaded"), Verdict::Transient),
        (
            failed("invalid_prompt", "Invalid prompt: it was flagged."),
            Verdict::Invalid,
        ),
        (
            json!({"type": "error", "error": {"type": "invalid_request_error",
                "code": "invalid_encrypted_content", "param": null,
                "message": "The encrypted content gAAA... could not be verified."}}),
            Verdict::Invalid,
        ),
        (
            failed("image_too_large", "The image is too large."),
            Verdict::Invalid,
        ),
        (
            json!({"error": {"message": "Insufficient credits", "code": 402}}),
            Verdict::QuotaExceeded,
        ),
        (json!({"type": "response.failed"}), Verdict::Transient),
        (
            json!({"type": "response.failed", "response": {"status": "failed"}}),
            Verdict::Transient,
        ),
    ] {
        let (mut state, _) = push(&[created(), text(0, "half")]);
        let Err(WireError::Provider { body }) = state.push(&event.to_string()) else {
            panic!("{event}");
        };
        assert_eq!(classify(None, &body), verdict, "{body}");
        assert_eq!(state.partial().parts, [Part::text("half")]);
        if let Some(whole) = event.get("response").or(event.get("error").map(|_| &event)) {
            let whole = read_reply(&whole.to_string());
            assert!(
                matches!(whole, Err(WireError::Provider { .. })),
                "{whole:?}"
            );
        }
    }
    let output_limit = "Invalid 'max_output_tokens': integer above maximum value. Expected a value \
                        <= 128000, but got 200000 instead.";
    let body = json!({"error": {"message": output_limit, "type": "invalid_request_error",
        "param": "max_output_tokens", "code": "integer_above_max_value"}});
    assert!(matches!(
        classify(Some(400), &body.to_string()),
        Verdict::OutputTooLarge {
            limit: Tokens(128_000),
            ..
        }
    ));
}

#[test]
fn what_is_no_response_is_said() {
    for (body, place) in [
        ("[]", "the response"),
        (r#"{"id":"x"}"#, "output"),
        (r#"{"output":[5]}"#, "output[0]"),
        (r#"{"output":[],"status":"in_progress"}"#, "status"),
    ] {
        match read_reply(body) {
            Err(WireError::Expected { place: got, .. }) => assert_eq!(got, place, "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
    assert!(matches!(read_reply("{"), Err(WireError::NotJson { .. })));
    let mut state = ResponsesStreamState::new();
    assert!(matches!(state.push("{"), Err(WireError::NotJson { .. })));
    // What is not known is not an error.
    for event in [
        "",
        "  ",
        r#"{"type":"keepalive"}"#,
        r#"{"type":"response.audio.delta","delta":"AA"}"#,
    ] {
        assert_eq!(state.push(event), Ok(vec![]), "{event}");
    }
}

#[test]
fn a_reply_is_bounded() {
    let mut state = ResponsesStreamState::new();
    let mut pushed = 0;
    let error = loop {
        pushed += 1;
        assert!(pushed < 5000, "no bound");
        if let Err(error) = state.push(&added(pushed, message("")).to_string()) {
            break error;
        }
    };
    assert_eq!(error, WireError::TooManyParts { limit: 1_024 });
    assert_eq!(pushed, 1_025);
    let mut state = ResponsesStreamState::new();
    let megabyte = text(0, &"x".repeat(1 << 20)).to_string();
    let refused = (0..64).find_map(|_| state.push(&megabyte).err());
    assert!(matches!(refused, Some(WireError::TooLarge { .. })));
}

fn any_event() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec![
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
        "",
    ]);
    let items = prop::sample::select(vec![
        json!(null),
        json!(5),
        json!({}),
        message("x"),
        message(""),
        call("a", "f", "{}"),
        call("", "", ""),
        json!({"type": "reasoning", "summary": "x"}),
        json!({"type": "message", "content": {"a": 1}}),
        json!({"type": 5}),
        json!({"type": "function_call", "arguments": {"x": []}}),
    ]);
    let bits = prop_oneof![
        Just(json!(null)),
        any::<u8>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(json!({"output": [null, {"type": "message"}], "usage": {"input_tokens": -1}})),
        Just(json!({"output": {}, "status": 5})),
    ];
    (kinds, items, bits.clone(), bits, 0u64..4).prop_map(|(kind, item, delta, response, index)| {
        json!({"type": kind, "item": item, "delta": delta, "arguments": delta,
            "response": response, "output_index": index, "content_index": response})
        .to_string()
    })
}

proptest! {
    #[test]
    fn no_event_breaks_it(events in prop::collection::vec(any_event(), 0..12), text in ".{0,60}") {
        let mut state = ResponsesStreamState::new();
        for event in &events {
            let _ = state.push(event);
            let _ = state.partial();
        }
        let _ = state.push(&text);
        let _ = state.finish();
        let _ = read_reply(&text);
        for event in events {
            let _ = read_reply(&event);
        }
    }

    /// However the arguments are cut, they come whole, and the pieces told are all of them.
    #[test]
    fn pieces_are_told_once(cuts in prop::collection::vec(0usize..20, 0..5), skip in any::<bool>()) {
        let all = "{\"path\":\"a b c d\"}";
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(all.len())).collect();
        cuts.extend([0, all.len()]);
        cuts.sort_unstable();
        let mut events = vec![added(0, call("a", "f", ""))];
        events.extend(cuts.windows(2).map(|ends| arguments(0, &all[ends[0]..ends[1]])));
        if skip {
            events.truncate(events.len() / 2 + 1);
        }
        events.push(done(0, call("a", "f", all)));
        events.push(completed(vec![call("a", "f", all)]));
        let (state, deltas) = push(&events);
        let told: String = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::CallArguments { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        prop_assert_eq!(told, all);
        prop_assert_eq!(state.finish().unwrap().parts, [tool_call("a", "f", all)]);
    }
}
