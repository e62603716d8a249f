//! Streams as servers send them, and the assembled reply. The input is the text of each `data:`
//! field of the server-sent events.

use plimsoll_context::{CallId, Delta, Part, Reply, StopReason, Thinking, Tokens, ToolCall, Usage};
use plimsoll_wire::openai_chat::{ChatStreamState, MAX_PARTS, MAX_REPLY, read_reply};
use plimsoll_wire::{StreamDecoder, WireError};
use proptest::prelude::*;
use serde_json::{Value, json};

fn chunk(delta: Value) -> String {
    json!({"id": "r1", "model": "m", "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    .to_string()
}

fn end(reason: &str) -> String {
    json!({"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

fn piece(call: Value) -> String {
    chunk(json!({"tool_calls": [call]}))
}

/// Id, name and arguments of a call.
type CallParts = (String, String, String);

fn run<S: AsRef<str>>(chunks: &[S]) -> Result<(Reply, Vec<Delta>), WireError> {
    let mut state = ChatStreamState::new();
    let mut deltas = Vec::new();
    for chunk in chunks {
        deltas.extend(state.push(chunk.as_ref())?);
    }
    Ok((state.finish()?, deltas))
}

fn calls(reply: &Reply) -> Vec<CallParts> {
    let call = |part: &Part| match part {
        Part::ToolCall(ToolCall {
            id,
            name,
            arguments,
            ..
        }) => Some((id.0.clone(), name.clone(), arguments.clone())),
        _ => None,
    };
    reply.parts.iter().filter_map(call).collect()
}

fn call(id: &str, name: &str, arguments: &str) -> CallParts {
    (id.into(), name.into(), arguments.into())
}

#[test]
fn text_reasoning_and_usage() {
    let (reply, deltas) = run(&[
        chunk(json!({"role": "assistant", "content": "", "reasoning_content": ""})),
        chunk(json!({"reasoning_content": "hm", "reasoning": "hm"})),
        chunk(json!({"reasoning": "m"})),
        chunk(json!({"content": "Hel"})),
        chunk(json!({"content": "lo", "tool_calls": null})),
        end("stop"),
        json!({"id": "r1", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5,
            "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 8},
            "completion_tokens_details": {"reasoning_tokens": 3}}})
        .to_string(),
        "[DONE]".into(),
        "anything after the end".into(),
    ])
    .unwrap();
    assert_eq!(
        reply,
        Reply {
            parts: vec![
                Part::Thinking(Thinking {
                    text: "hmm".into(),
                    opaque: None
                }),
                Part::text("Hello"),
            ],
            stop: StopReason::Stop,
            usage: Some(Usage {
                input: Tokens(2),
                output: Tokens(5),
                reasoning: Tokens(3),
                cache_read: Tokens(8),
                cache_write: Tokens(0),
                ..Usage::default()
            }),
            model: Some("m".into()),
        }
    );
    let text = |text: &str| Delta::Text { text: text.into() };
    let thinking = |text: &str| Delta::Thinking { text: text.into() };
    assert_eq!(
        deltas,
        [thinking("hm"), thinking("m"), text("Hel"), text("lo")]
    );
}

#[test]
fn tool_calls_as_openai_streams_them() {
    let (reply, deltas) = run(&[
        piece(json!({"index": 0, "id": "c1", "type": "function",
            "function": {"name": "read", "arguments": ""}})),
        piece(json!({"index": 0, "function": {"arguments": "{\"a\""}})),
        piece(json!({"index": 0, "function": {"arguments": ": 1}"}})),
        piece(json!({"index": 1, "id": "c2", "function": {"name": "list", "arguments": "{}"}})),
        end("tool_calls"),
    ])
    .unwrap();
    assert_eq!(
        calls(&reply),
        [call("c1", "read", "{\"a\": 1}"), call("c2", "list", "{}")]
    );
    assert_eq!(reply.stop, StopReason::ToolCalls);
    let id = |id: &str| CallId(id.into());
    assert_eq!(
        deltas,
        [
            Delta::CallStarted {
                call: id("c1"),
                name: "read".into()
            },
            Delta::CallArguments {
                call: id("c1"),
                text: "{\"a\"".into()
            },
            Delta::CallArguments {
                call: id("c1"),
                text: ": 1}".into()
            },
            Delta::CallStarted {
                call: id("c2"),
                name: "list".into()
            },
            Delta::CallArguments {
                call: id("c2"),
                text: "{}".into()
            },
        ]
    );
}

#[test]
fn tool_calls_as_others_stream_them() {
    let function = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let rows: Vec<(&str, Vec<String>, Vec<CallParts>)> = vec![
        (
            "no index; the id says whose piece it is",
            vec![
                piece(json!({"id": "a", "function": function("f", json!("{\"x\":"))})),
                piece(json!({"id": "b", "function": function("g", json!("{"))})),
                piece(json!({"id": "a", "function": {"arguments": "1}"}})),
                piece(json!({"id": "b", "function": {"arguments": "}"}})),
            ],
            vec![call("a", "f", "{\"x\":1}"), call("b", "g", "{}")],
        ),
        (
            "neither index nor id after the first piece",
            vec![
                piece(json!({"id": "a", "function": {"name": "f"}})),
                piece(json!({"function": {"arguments": "{\"x\":"}})),
                piece(json!({"id": "", "function": {"name": "f", "arguments": "1}"}})),
            ],
            vec![call("a", "f", "{\"x\":1}")],
        ),
        (
            "whole calls in one chunk, all with index 0",
            vec![chunk(json!({"tool_calls": [
                {"index": 0, "id": "a", "function": function("f", json!("{\"x\":1}"))},
                {"index": 0, "id": "b", "function": function("f", json!("{\"x\":2}"))},
            ]}))],
            vec![call("a", "f", "{\"x\":1}"), call("b", "f", "{\"x\":2}")],
        ),
        (
            "arguments as an object",
            vec![piece(json!({"index": 0, "id": "a",
                "function": function("f", json!({"b": 1, "a": [2]}))}))],
            vec![call("a", "f", "{\"b\":1,\"a\":[2]}")],
        ),
        (
            "all arguments once more at the end",
            vec![
                piece(json!({"index": 0, "id": "a", "function": function("f", json!("{\"x\""))})),
                piece(json!({"index": 0, "function": {"arguments": ":1}"}})),
                piece(
                    json!({"index": 0, "id": "a", "function": function("f", json!("{\"x\":1}"))}),
                ),
            ],
            vec![call("a", "f", "{\"x\":1}")],
        ),
        (
            "arguments accumulated in each piece",
            vec![
                piece(json!({"index": 0, "id": "a", "function": function("f", json!("{\"x\""))})),
                piece(json!({"index": 0, "id": "a", "function": function("f", json!("{\"x\":1"))})),
                piece(
                    json!({"index": 0, "id": "a", "function": function("f", json!("{\"x\":1}"))}),
                ),
            ],
            vec![call("a", "f", "{\"x\":1}")],
        ),
        (
            "an empty object first",
            vec![
                piece(json!({"index": 0, "id": "a", "function": function("f", json!("{}"))})),
                piece(json!({"index": 0, "function": {"arguments": "{\"x\":1}"}})),
            ],
            vec![call("a", "f", "{\"x\":1}")],
        ),
        (
            "no arguments at all",
            vec![piece(
                json!({"index": 0, "id": "a", "function": {"name": "f"}}),
            )],
            vec![call("a", "f", "{}")],
        ),
        (
            "the same id twice",
            vec![
                piece(json!({"index": 0, "id": "a", "function": function("f", json!("{}"))})),
                piece(json!({"index": 1, "id": "a", "function": function("g", json!("{}"))})),
            ],
            vec![call("a", "f", "{}"), call("a_", "g", "{}")],
        ),
        (
            "the older form",
            vec![
                chunk(json!({"function_call": {"name": "f", "arguments": ""}, "id": "x"})),
                chunk(json!({"function_call": {"arguments": "{\"x\":1}"}})),
            ],
            vec![call("", "f", "{\"x\":1}")],
        ),
        (
            "a brace inside a text is no accumulation",
            vec![
                piece(
                    json!({"index": 0, "id": "a", "function": function("f", json!("{\"x\":\""))}),
                ),
                piece(json!({"index": 0, "function": {"arguments": "{"}})),
                piece(json!({"index": 0, "function": {"arguments": "{"}})),
                piece(json!({"index": 0, "function": {"arguments": "\"}"}})),
            ],
            vec![call("a", "f", "{\"x\":\"{{\"}")],
        ),
    ];
    let rows = rows.into_iter().chain(rows_of_calls_alike());
    for (what, mut chunks, expected) in rows {
        // `stop` is what many of them say of such a turn.
        chunks.push(end("stop"));
        let (reply, _) = run(&chunks).unwrap();
        let mut got = calls(&reply);
        if expected.iter().any(|(id, ..)| id.is_empty()) {
            got.iter_mut().for_each(|(id, ..)| id.clear());
        }
        assert_eq!(got, expected, "{what}");
        assert_eq!(reply.stop, StopReason::ToolCalls, "{what}");
    }
}

/// Pieces that could be taken for another call's, or for what was there already.
fn rows_of_calls_alike() -> Vec<(&'static str, Vec<String>, Vec<CallParts>)> {
    let named = |name: &str, arguments: &str| {
        piece(json!({"function": {"name": name, "arguments": arguments}}))
    };
    let more = |arguments: &str| piece(json!({"function": {"arguments": arguments}}));
    let indexed =
        |arguments: &str| piece(json!({"index": 0, "function": {"arguments": arguments}}));
    let first = |arguments: &str| {
        piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}))
    };
    vec![
        (
            "an object in an object, whose key is the same",
            vec![first("{\"filter\":"), indexed("{\"filter\":1}}")],
            vec![call("a", "f", "{\"filter\":{\"filter\":1}}")],
        ),
        (
            "the same in small pieces",
            vec![
                first("{\"a\""),
                indexed(":"),
                indexed("{\"a\":"),
                indexed("{\"a\":"),
                indexed("1}}}"),
            ],
            vec![call("a", "f", "{\"a\":{\"a\":{\"a\":1}}}")],
        ),
        (
            "neither index nor id, and the second call's name comes before its arguments",
            vec![
                named("f", ""),
                more("{\"a\":1}"),
                named("f", ""),
                more("{\"a\":"),
                more("2}"),
            ],
            vec![call("", "f", "{\"a\":1}"), call("", "f", "{\"a\":2}")],
        ),
        (
            "the name in every piece, the last one empty",
            vec![named("f", "{\"a\":"), named("f", "1}"), named("f", "")],
            vec![call("", "f", "{\"a\":1}")],
        ),
    ]
}

#[test]
fn odd_shapes_do_not_cost_a_reply() {
    let said = |odd: Value| {
        let mut whole = json!({"id": "r", "choices": [{"index": 0, "delta": {"content": "x"}}]});
        for (key, value) in odd.as_object().unwrap() {
            whole[key] = value.clone();
        }
        whole.to_string()
    };
    for odd in [
        json!({"usage": []}),
        json!({"usage": "x"}),
        json!({"usage": {"prompt_tokens": 1, "prompt_tokens_details": []}}),
        json!({"usage": {"prompt_tokens": 1, "prompt_tokens_details": 0}}),
        json!({"usage": {"prompt_tokens": 1, "completion_tokens_details": "x"}}),
        json!({"id": 7, "model": {}}),
        json!({"error": ""}),
        json!({"error": {}}),
        json!({"choices": [{"index": null, "delta": {"role": 1, "content": "x", "refusal": []}}]}),
        json!({"choices": [{"delta": {"content": "x"}, "finish_reason": {"type": "stop"}}]}),
        json!({"choices": {"delta": {"content": "x", "tool_calls": "none"}}}),
    ] {
        let (reply, _) = run(&[said(odd.clone()), end("stop")]).unwrap();
        assert_eq!(reply.parts, [Part::text("x")], "{odd}");
    }
    for odd in [
        json!([{"index": "0", "id": "a", "function": {"name": "f", "arguments": "{}"}}]),
        json!([{"index": -1, "id": "a", "function": {"name": "f", "arguments": "{}"}}]),
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}),
    ] {
        let (reply, _) = run(&[chunk(json!({"tool_calls": odd})), end("stop")]).unwrap();
        assert_eq!(calls(&reply), [call("a", "f", "{}")], "{odd}");
    }
    let numbered = json!([{"index": 0, "id": 7, "function": {"name": "f", "arguments": "{}"}}]);
    let (reply, _) = run(&[chunk(json!({"tool_calls": numbered})), end("stop")]).unwrap();
    assert_eq!(calls(&reply), [call("7", "f", "{}")]);
}

#[test]
fn a_reply_in_two_choices_without_numbers_is_one() {
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let body = json!({"id": "r", "choices": [
        {"finish_reason": "tool_calls", "message": {"content": "I'll look"}},
        {"finish_reason": "tool_calls", "message": {"tool_calls": [call]}}]});
    let reply = read_reply(&body.to_string()).unwrap();
    assert_eq!(reply.parts[0], Part::text("I'll look"));
    assert_eq!(calls(&reply), [self::call("a", "f", "{}")]);
    assert_eq!(reply.stop, StopReason::ToolCalls);
    // Those that are numbered are others.
    let body = json!({"id": "r", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"content": "one"}},
        {"index": 1, "finish_reason": "tool_calls", "message": {"tool_calls": [call]}}]});
    let reply = read_reply(&body.to_string()).unwrap();
    assert_eq!(reply.parts, [Part::text("one")]);
}

/// Some servers name the tool in every piece; what was there is not read again each time.
#[test]
fn many_pieces_with_a_name_take_no_longer_than_others() {
    let mut state = ChatStreamState::new();
    state
        .push(&piece(
            json!({"index": 0, "function": {"name": "f", "arguments": "{\"x\":\""}}),
        ))
        .unwrap();
    let more = piece(
        json!({"index": 0, "function": {"name": "f", "arguments": "abcdefghij".repeat(100)}}),
    );
    // A parse of all of it at each piece would be 25 thousand million bytes.
    for _ in 0..7_000 {
        state.push(&more).unwrap();
    }
    state
        .push(&piece(
            json!({"index": 0, "function": {"arguments": "\"}"}}),
        ))
        .unwrap();
    state.push(&end("tool_calls")).unwrap();
    let reply = state.finish().unwrap();
    assert_eq!(calls(&reply)[0].2.len(), 7_000_000 + 8);
}

#[test]
fn a_call_without_an_id_gets_one_that_is_stable_and_unique() {
    let chunks = [
        piece(json!({"index": 0, "function": {"name": "f", "arguments": "{}"}})),
        piece(json!({"index": 1, "function": {"name": "f", "arguments": "{}"}})),
        end("tool_calls"),
    ];
    let (one, _) = run(&chunks).unwrap();
    let (other, _) = run(&chunks).unwrap();
    assert_eq!(one, other);
    let ids: Vec<_> = calls(&one).into_iter().map(|(id, ..)| id).collect();
    assert!(
        ids.iter().all(|id| id.starts_with("call_")) && ids[0] != ids[1],
        "{ids:?}"
    );
}

#[test]
fn what_a_call_carries_besides_goes_back_with_it() {
    let (reply, _) = run(&[
        piece(json!({"index": 0, "id": "a", "type": "function",
            "function": {"name": "f", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "s=="}}})),
        end("tool_calls"),
    ])
    .unwrap();
    let Some(Part::ToolCall(call)) = reply.parts.first() else {
        panic!("{reply:?}");
    };
    let opaque = call.opaque.as_ref().unwrap();
    assert_eq!(
        (opaque.origin.as_str(), opaque.data.as_str()),
        (
            "openai-chat",
            r#"{"extra_content":{"google":{"thought_signature":"s=="}}}"#
        )
    );
}

#[test]
fn reasons_to_stop() {
    for (reason, expected) in [
        ("stop", StopReason::Stop),
        ("length", StopReason::Length),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Window),
        ("content_filter", StopReason::ContentFilter),
        ("tool_calls", StopReason::Stop),
        ("abort", StopReason::Other),
    ] {
        let (reply, _) = run(&[chunk(json!({"content": "x"})), end(reason)]).unwrap();
        assert_eq!(reply.stop, expected, "{reason}");
    }
    // A call that the output limit cut is not run: its arguments stay as they are.
    let (reply, _) = run(&[
        piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}})),
        end("length"),
    ])
    .unwrap();
    assert_eq!(
        (reply.stop, calls(&reply)),
        (StopReason::Length, vec![call("a", "f", "")])
    );
}

#[test]
fn usage_wherever_it_stands() {
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 2});
    let choice = json!({"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage});
    for last in [
        json!({"choices": [], "usage": usage}),
        json!({"choices": null, "usage": usage}),
        json!({"choices": [], "x_groq": {"usage": usage}}),
        json!({"choices": [choice]}),
    ] {
        let (reply, _) = run(&[
            chunk(json!({"content": "x"})),
            end("stop"),
            last.to_string(),
            json!({"choices": [], "usage": null}).to_string(),
        ])
        .unwrap();
        assert_eq!(reply.usage.unwrap().total_tokens(), Tokens(9), "{last}");
    }
}

#[test]
fn parts_in_place_of_a_text() {
    let (reply, _) = run(&[
        chunk(json!({"content": [{"type": "thinking",
            "thinking": [{"type": "text", "text": "hm"}]}]})),
        chunk(json!({"content": [{"type": "text", "text": "hi"}]})),
        end("stop"),
    ])
    .unwrap();
    let thinking = Part::Thinking(Thinking {
        text: "hm".into(),
        opaque: None,
    });
    assert_eq!(reply.parts, [thinking, Part::text("hi")]);
}

#[test]
fn a_cut_stream_keeps_what_had_arrived() {
    let cut = run(&[chunk(json!({"content": "Hel"}))]).unwrap_err();
    let WireError::Cut { partial } = cut else {
        panic!("{cut:?}");
    };
    assert_eq!(partial.parts, [Part::text("Hel")]);
    assert!(matches!(run::<&str>(&[]), Err(WireError::Cut { .. })));
    // Either sign of an end suffices.
    assert!(run(&[chunk(json!({"content": "x"})), "[DONE]".into()]).is_ok());
    assert!(run(&[chunk(json!({"content": "x"})), end("stop")]).is_ok());
}

#[test]
fn errors_in_the_stream() {
    for error in [
        r#"{"error":{"message":"overloaded","code":502}}"#,
        r#"{"error":"out of memory"}"#,
        r#"{"object":"error","message":"boom","type":"BadRequestError","code":400}"#,
        r#"{"detail":"boom"}"#,
        r#"{"id":"r","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"x"}}]}"#,
    ] {
        let mut state = ChatStreamState::new();
        state.push(&chunk(json!({"content": "Hel"}))).unwrap();
        let expected = WireError::Provider { body: error.into() };
        assert_eq!(state.push(error), Err(expected.clone()), "{error}");
        assert_eq!(state.partial().parts, [Part::text("Hel")]);
        assert_eq!(read_reply(error), Err(expected), "{error}");
    }
    let mut state = ChatStreamState::new();
    assert!(matches!(
        state.push("{\"id\":"),
        Err(WireError::NotJson { .. })
    ));
    assert_eq!(state.push("  "), Ok(Vec::new()));
    // No error: Azure's first chunk, and an explicit null.
    assert_eq!(
        state.push(r#"{"choices":[],"prompt_filter_results":[],"error":null}"#),
        Ok(vec![])
    );
}

#[test]
fn a_reply_has_a_bound() {
    let mut state = ChatStreamState::new();
    let big = chunk(json!({"content": "x".repeat(1024 * 1024)}));
    let mut pushed = 0;
    let error = loop {
        match state.push(&big) {
            Ok(_) => pushed += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, WireError::TooLarge { limit: MAX_REPLY });
    assert_eq!(pushed, MAX_REPLY.0 / (1024 * 1024));
}

#[test]
fn the_calls_of_a_reply_have_a_bound() {
    let mut state = ChatStreamState::new();
    let error = (0..).find_map(|index| {
        let call = json!({"index": index, "id": index.to_string(), "function": {"name": "f"}});
        state.push(&piece(call)).err().map(|error| (index, error))
    });
    let limit = MAX_PARTS;
    assert_eq!(error, Some((1024, WireError::TooManyParts { limit })));
    let (_, error) = error.unwrap();
    assert!(!error.to_string().contains("bytes"), "{error}");
}

#[test]
fn whole_replies() {
    let reply = read_reply(
        &json!({"id": "r1", "model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": null, "reasoning_content": "hm",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                    {"id": "b", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
                ]}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}})
        .to_string(),
    )
    .unwrap();
    assert_eq!(
        calls(&reply),
        [call("a", "f", "{}"), call("b", "f", "{\"x\":1}")]
    );
    assert_eq!(reply.parts.len(), 3);
    assert_eq!(reply.usage.unwrap().total_tokens(), Tokens(7));

    let refused = json!({"choices": [{"message": {"content": null, "refusal": "I can't."},
        "finish_reason": "stop"}]});
    assert_eq!(
        read_reply(&refused.to_string()).unwrap().parts,
        [Part::text("I can't.")]
    );
    assert!(matches!(
        read_reply("{\"choices\":[]}"),
        Err(WireError::Expected { .. })
    ));
    assert!(matches!(
        read_reply("<html>"),
        Err(WireError::NotJson { .. })
    ));
}

proptest! {
    /// However the arguments are cut into pieces, and with or without ids and indexes after the
    /// first piece, the reply is the same; cut short anywhere, it is an error that keeps a part.
    #[test]
    fn cutting_changes_nothing(
        values in proptest::collection::vec("[a-z{}\"\\\\ 🦀]{0,12}", 1..4),
        cuts in proptest::collection::vec(1_usize..8, 0..8),
        text in "[a-z ]{0,10}",
        bare in any::<bool>(),
        keep in 0_usize..40,
    ) {
        let mut chunks = vec![chunk(json!({"content": text}))];
        let mut expected = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let arguments = json!({"v": value}).to_string();
            let id = format!("c{index}");
            let mut rest: Vec<char> = arguments.chars().collect();
            chunks.push(piece(json!({"index": index, "id": id, "function": {"name": "f"}})));
            for cut in cuts.iter().chain([&1000]) {
                let tail = rest.split_off((*cut).min(rest.len()));
                let text: String = rest.iter().collect();
                chunks.push(if bare {
                    piece(json!({"function": {"arguments": text}}))
                } else {
                    piece(json!({"index": index, "function": {"arguments": text}}))
                });
                rest = tail;
            }
            expected.push(call(&id, "f", &arguments));
        }
        let cut = keep.min(chunks.len());
        let partial = run(&chunks[..cut]);
        let is_cut = matches!(partial, Err(WireError::Cut { .. }));
        prop_assert!(is_cut);
        chunks.push(end("tool_calls"));
        let (reply, deltas) = run(&chunks).unwrap();
        prop_assert_eq!(calls(&reply), expected);
        let streamed: String = deltas.iter().filter_map(|delta| match delta {
            Delta::CallArguments { text, .. } => Some(text.as_str()),
            _ => None,
        }).collect();
        let whole: String = calls(&reply).into_iter().map(|call| call.2).collect();
        prop_assert_eq!(streamed, whole);
    }

    #[test]
    fn no_chunk_breaks_it(chunks in proptest::collection::vec(".{0,60}", 0..6)) {
        let mut state = ChatStreamState::new();
        for chunk in &chunks {
            let _ = state.push(chunk);
        }
        let _ = state.finish();
    }
}
