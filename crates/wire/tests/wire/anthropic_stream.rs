//! Replies of Anthropic Messages, whole and streamed: accepted and rejected ones, and the detection
//! of cuts.

use plimsoll_context::{Delta, Opaque, Part, Reply, StopReason, Thinking, Tokens, Usage};
use plimsoll_testkit::messages::tool_call as call;
use plimsoll_wire::anthropic::{MAX_REPLY, MessagesStreamState, read_reply};
use plimsoll_wire::overflow::{Verdict, classify};
use plimsoll_wire::{StreamDecoder, WireError};
use proptest::prelude::*;
use serde_json::{Value, json};

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":900,"cache_creation":{"ephemeral_5m_input_tokens":60,"ephemeral_1h_input_tokens":40},"output_tokens":1,"service_tier":"standard"}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn end(reason: &str) -> String {
    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 75}})
    .to_string()
}

fn start(index: u64, block: Value) -> String {
    json!({"type": "content_block_start", "index": index, "content_block": block}).to_string()
}

fn delta(index: u64, kind: &str, key: &str, value: impl Into<Value>) -> String {
    let mut delta = json!({"type": kind});
    delta[key] = value.into();
    json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
}

fn stopped(index: u64) -> String {
    json!({"type": "content_block_stop", "index": index}).to_string()
}

fn feed(state: &mut MessagesStreamState, events: &[String]) -> Result<Vec<Delta>, WireError> {
    let mut deltas = Vec::new();
    for event in events {
        deltas.extend(state.push(event)?);
    }
    Ok(deltas)
}

fn all(events: &[String]) -> (Reply, Vec<Delta>) {
    let mut state = MessagesStreamState::new();
    let deltas = feed(&mut state, events).unwrap();
    (state.finish().unwrap(), deltas)
}

fn opaque(data: &str) -> Opaque {
    Opaque {
        origin: "anthropic".into(),
        data: data.into(),
    }
}

/// Thinking, redacted thinking, a text and two calls.
fn thoughtful() -> Vec<String> {
    vec![
        START.into(),
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        r#"{"type": "ping"}"#.into(),
        delta(0, "thinking_delta", "thinking", "Let me "),
        delta(0, "thinking_delta", "thinking", "see: \"é\"\n"),
        delta(
            0,
            "signature_delta",
            "signature",
            "EqQBCgIYAhIM1gbcDa9GJwZA2b3h",
        ),
        stopped(0),
        start(
            1,
            json!({"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix="}),
        ),
        stopped(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, "text_delta", "text", "Both"),
        delta(2, "text_delta", "text", " 🦀"),
        stopped(2),
        start(
            3,
            json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}),
        ),
        delta(3, "input_json_delta", "partial_json", ""),
        delta(3, "input_json_delta", "partial_json", "{\"path\": "),
        delta(3, "input_json_delta", "partial_json", "\"a\", \"n\": 1.50}"),
        stopped(3),
        start(
            4,
            json!({"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}}),
        ),
        stopped(4),
        end("tool_use"),
        STOP.into(),
    ]
}

#[test]
fn a_stream_is_put_together() {
    let (reply, deltas) = all(&thoughtful());
    let thought = r#"{"type":"thinking","thinking":"Let me see: \"é\"\n","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}"#;
    let redacted = r#"{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix="}"#;
    assert_eq!(
        reply.parts,
        [
            Part::Thinking(Thinking {
                text: "Let me see: \"é\"\n".into(),
                opaque: Some(opaque(thought)),
            }),
            Part::Thinking(Thinking {
                text: String::new(),
                opaque: Some(opaque(redacted)),
            }),
            Part::text("Both 🦀"),
            call("toolu_1", "read", "{\"path\": \"a\", \"n\": 1.50}"),
            call("toolu_2", "list", "{}"),
        ]
    );
    assert_eq!(reply.stop, StopReason::ToolCalls);
    assert_eq!(reply.model.as_deref(), Some("claude-sonnet-4-5-20250929"));
    let usage = Usage {
        input: Tokens(25),
        output: Tokens(75),
        reasoning: Tokens(0),
        cache_read: Tokens(900),
        cache_write: Tokens(100),
        cache_write_longer: Tokens(40),
    };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(usage.processed(), Tokens(1_025));
    let texts: Vec<String> = deltas
        .into_iter()
        .map(|delta| match delta {
            Delta::Text { text } => format!("t {text}"),
            Delta::Thinking { text } => format!("h {text}"),
            Delta::CallStarted { call, name } => format!("c {call} {name}"),
            Delta::CallArguments { call, text } => format!("a {call} {text}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        texts,
        [
            "h Let me ",
            "h see: \"é\"\n",
            "t Both",
            "t  🦀",
            "c toolu_1 read",
            "a toolu_1 {\"path\": ",
            "a toolu_1 \"a\", \"n\": 1.50}",
            "c toolu_2 list",
        ]
    );
}

#[test]
fn a_whole_reply_keeps_its_bytes() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[
        {"signature": "EqQB","type":"thinking","thinking":"hm"},
        {"type":"text","text":"Both","citations":null},
        {"type":"tool_use","id":"toolu_1","name":"read","input":{"n": 1.50,  "a":[]},"caller":{"type":"direct"}}
        ],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":7}}"#;
    let reply = read_reply(body).unwrap();
    let mut read = call("toolu_1", "read", r#"{"n": 1.50,  "a":[]}"#);
    if let Part::ToolCall(call) = &mut read {
        call.opaque = Some(opaque(r#"{"caller":{"type":"direct"}}"#));
    }
    assert_eq!(
        reply.parts,
        [
            Part::Thinking(Thinking {
                text: "hm".into(),
                opaque: Some(opaque(
                    r#"{"signature": "EqQB","type":"thinking","thinking":"hm"}"#
                )),
            }),
            Part::text("Both"),
            read,
        ]
    );
    assert_eq!(reply.stop, StopReason::ToolCalls);
    assert_eq!(reply.usage.unwrap().total_tokens(), Tokens(12));
}

#[test]
fn the_providers_own_blocks_and_citations_are_passed_through() {
    let citation = json!({"type": "web_search_result_location", "url": "https://x",
        "encrypted_index": "Eo8B", "cited_text": "so"});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "url": "https://x", "encrypted_content": "Eo"}]});
    let events = [
        START.into(),
        start(
            0,
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        ),
        delta(0, "input_json_delta", "partial_json", "{\"query\": "),
        delta(0, "input_json_delta", "partial_json", "\"q\"}"),
        stopped(0),
        start(1, found.clone()),
        stopped(1),
        start(2, json!({"type": "text", "text": "", "citations": []})),
        delta(2, "text_delta", "text", "It is so"),
        delta(2, "citations_delta", "citation", citation.clone()),
        stopped(2),
        end("pause_turn"),
        STOP.into(),
    ];
    let (reply, _) = all(&events);
    let call = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "q"}}"#;
    let cited = json!({"type": "text", "text": "It is so", "citations": [citation]});
    assert_eq!(
        reply.parts,
        [
            Part::Opaque(opaque(call)),
            Part::Opaque(opaque(&found.to_string())),
            Part::text("It is so"),
            Part::Opaque(opaque(&cited.to_string())),
        ]
    );
    assert_eq!(reply.stop, StopReason::Paused, "it is not over");
}

#[test]
fn every_reason_to_stop() {
    for (reason, stop) in [
        ("end_turn", StopReason::Stop),
        ("stop_sequence", StopReason::Stop),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Window),
        ("refusal", StopReason::ContentFilter),
        ("pause_turn", StopReason::Paused),
        ("compaction", StopReason::Paused),
        ("something_new", StopReason::Other),
        // Nothing was called after all.
        ("tool_use", StopReason::Stop),
    ] {
        let text = start(0, json!({"type": "text", "text": "x"}));
        let (reply, _) = all(&[START.into(), text, end(reason), STOP.into()]);
        assert_eq!(reply.stop, stop, "{reason}");
    }
}

#[test]
fn servers_that_differ_are_understood() {
    let text = start(0, json!({"type": "text", "text": "hi"}));
    let call = start(
        0,
        json!({"type": "tool_use", "id": "a", "name": "read", "input": {"x": 1}}),
    );
    for (events, parts) in [
        // The end mark alone, or the reason alone, ends a reply.
        (
            vec![START.into(), text.clone(), STOP.into()],
            [Part::text("hi")],
        ),
        (
            vec![START.into(), text.clone(), end("end_turn")],
            [Part::text("hi")],
        ),
        // Another wire's end mark, empty fields and unknown events mean nothing.
        (
            vec![
                START.into(),
                text,
                "[DONE]".into(),
                " ".into(),
                r#"{"type":"new_event","x":1}"#.into(),
                end("end_turn"),
                STOP.into(),
                "not even JSON".into(),
            ],
            [Part::text("hi")],
        ),
        // Arguments in one piece, and a turn that calls and says it has ended.
        (
            vec![START.into(), call, end("end_turn"), STOP.into()],
            [self::call("a", "read", "{\"x\":1}")],
        ),
    ] {
        assert_eq!(all(&events).0.parts, parts);
    }
    // What nobody signed cannot go back, and is shown all the same.
    let unsigned = [
        START.into(),
        start(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, "thinking_delta", "thinking", "hm"),
        end("end_turn"),
    ];
    let thinking = Part::Thinking(Thinking {
        text: "hm".into(),
        opaque: None,
    });
    assert_eq!(all(&unsigned).0.parts, [thinking]);
}

#[test]
fn a_cut_stream_is_cut_wherever_it_is_cut() {
    let events = thoughtful();
    let ends = events.len() - 2;
    for at in 0..events.len() {
        let mut state = MessagesStreamState::new();
        feed(&mut state, &events[..at]).unwrap();
        assert_eq!(state.has_ended(), at > ends, "{at}");
        assert_eq!(state.is_empty(), at == 0);
        match state.finish() {
            Ok(reply) => assert_eq!((at > ends, reply.parts.len()), (true, 5)),
            Err(WireError::Cut { partial }) => {
                assert!(at <= ends, "{at}");
                assert_eq!(partial.stop, StopReason::Other);
            }
            Err(other) => panic!("{at}: {other}"),
        }
    }
    // A call that was cut by the output limit stays cut.
    let cut = [
        START.into(),
        start(
            0,
            json!({"type": "tool_use", "id": "a", "name": "read", "input": {}}),
        ),
        delta(0, "input_json_delta", "partial_json", "{\"pa"),
        end("max_tokens"),
    ];
    let (reply, _) = all(&cut);
    assert_eq!(reply.stop, StopReason::Length);
    assert_eq!(reply.parts, [call("a", "read", "{\"pa")]);
}

#[test]
fn errors_are_errors_wherever_they_come() {
    for (error, verdict) in [
        (
            r#"{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
            Verdict::Transient,
        ),
        (
            r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#,
            Verdict::Transient,
        ),
        (
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed the rate limit for your organization"}}"#,
            Verdict::RateLimited,
        ),
        (
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            Verdict::Auth,
        ),
        (
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#,
            Verdict::NotFound,
        ),
        (
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            Verdict::BodyTooLarge,
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            Verdict::QuotaExceeded,
        ),
        (
            r#"{"type":"error","error":{"type":"timeout_error","message":"Request timed out"}}"#,
            Verdict::Transient,
        ),
    ] {
        let refused = WireError::Provider { body: error.into() };
        assert_eq!(read_reply(error), Err(refused.clone()));
        let mut state = MessagesStreamState::new();
        let half = [
            START.into(),
            start(0, json!({"type": "text", "text": "hal"})),
        ];
        feed(&mut state, &half).unwrap();
        assert_eq!(state.push(error), Err(refused));
        assert_eq!(state.partial().parts, [Part::text("hal")]);
        assert_eq!(classify(None, error), verdict, "{error}");
    }
    for long in [
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 198214 + 8192 > 200000, decrease input length or `max_tokens` and try again"}}"#,
    ] {
        for status in [Some(400), None] {
            let verdict = classify(status, long);
            let is_long = matches!(
                verdict,
                Verdict::Overflow(_) | Verdict::OutputTooLarge { .. }
            );
            assert!(is_long, "{verdict:?} {long}");
        }
    }
    assert!(matches!(read_reply("{}"), Err(WireError::Expected { .. })));
    assert!(matches!(
        read_reply("<html>"),
        Err(WireError::NotJson { .. })
    ));
    let broken = MessagesStreamState::new().push("{\"type\":");
    assert!(matches!(broken, Err(WireError::NotJson { .. })));
}

#[test]
fn a_reply_is_bounded() {
    let piece = "x".repeat(1024 * 1024);
    let mut state = MessagesStreamState::new();
    state.push(START).unwrap();
    state
        .push(&start(0, json!({"type": "text", "text": ""})))
        .unwrap();
    let piece = delta(0, "text_delta", "text", piece);
    let most = MAX_REPLY.0 / (1024 * 1024);
    for _ in 1..most {
        state.push(&piece).unwrap();
    }
    assert_eq!(
        state.push(&piece).and_then(|_| state.push(&piece)),
        Err(WireError::TooLarge { limit: MAX_REPLY })
    );
    // Empty blocks cost something too.
    let mut state = MessagesStreamState::new();
    let block = start(0, json!({"type": "text", "text": ""}));
    let count = (0..10_000)
        .take_while(|_| state.push(&block).is_ok())
        .count();
    assert!(count <= 1_024, "{count}");
}

proptest! {
    /// A reply in one piece and the same in events, cut anywhere, are the same reply.
    #[test]
    fn pieces_are_the_whole(
        texts in proptest::collection::vec(("[a-zé🦀\"\\\\\n]{1,20}", 1_usize..8), 1..4),
        arguments in "[a-z]{0,9}",
        cut in 1_usize..6,
    ) {
        let arguments = json!({ "x": arguments }).to_string();
        let mut events = vec![START.to_owned()];
        let mut blocks = Vec::new();
        for (index, (text, size)) in (0..).zip(&texts) {
            events.push(start(index, json!({"type": "text", "text": ""})));
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(*size) {
                events.push(delta(index, "text_delta", "text", piece.iter().collect::<String>()));
            }
            blocks.push(json!({"type": "text", "text": text}).to_string());
        }
        let index = texts.len() as u64;
        let call = json!({"type": "tool_use", "id": "a", "name": "read", "input": {}});
        events.push(start(index, call));
        for piece in arguments.as_bytes().chunks(cut) {
            let piece = String::from_utf8(piece.to_vec()).unwrap();
            events.push(delta(index, "input_json_delta", "partial_json", piece));
        }
        blocks.push(format!(
            r#"{{"type":"tool_use","id":"a","name":"read","input":{arguments}}}"#
        ));
        events.push(end("tool_use"));
        let whole = format!(
            r#"{{"type":"message","model":"m","content":[{}],"stop_reason":"tool_use"}}"#,
            blocks.join(", ")
        );
        let (reply, _) = all(&events);
        prop_assert_eq!(reply.parts, read_reply(&whole).unwrap().parts);
    }
}

/// The summary and what is sealed of it come after the block has begun.
#[test]
fn a_compaction_is_kept_whole() {
    let compacted = |content: Value, sealed: Value| {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta",
            "content": content, "encrypted_content": sealed}})
        .to_string()
    };
    let begun = json!({"type": "compaction", "content": null, "encrypted_content": null});
    for (pieces, block) in [
        (
            vec![compacted("All \"so far\"".into(), "Enc==".into())],
            r#"{"type":"compaction","content":"All \"so far\"","encrypted_content":"Enc=="}"#,
        ),
        (
            vec![
                compacted("All ".into(), "Enc==".into()),
                compacted("so far".into(), Value::Null),
                compacted(Value::Null, Value::Null),
            ],
            r#"{"type":"compaction","content":"All so far","encrypted_content":"Enc=="}"#,
        ),
        // It failed: the block goes back all the same, but not with a null that is refused.
        (vec![], r#"{"type":"compaction","content":null}"#),
    ] {
        let mut events = vec![START.to_owned(), start(0, begun.clone())];
        events.extend(pieces);
        events.extend([stopped(0), end("compaction"), STOP.to_owned()]);
        let (reply, deltas) = all(&events);
        assert_eq!(reply.parts, [Part::Opaque(opaque(block))]);
        assert_eq!(reply.stop, StopReason::Paused);
        assert_eq!(deltas, []);
        // The same in one piece.
        let whole = json!({"type": "message", "role": "assistant", "stop_reason": "compaction",
            "content": [serde_json::from_str::<Value>(block).unwrap()]});
        assert_eq!(read_reply(&whole.to_string()).unwrap().parts, reply.parts);
    }
}

#[test]
fn what_comes_without_its_beginning_is_not_lost() {
    let (reply, deltas) = all(&[
        START.to_owned(),
        delta(0, "thinking_delta", "thinking", "hm"),
        delta(0, "signature_delta", "signature", "EqQB"),
        delta(1, "text_delta", "text", "Hello"),
        delta(1, "text_delta", "text", "."),
        delta(2, "input_json_delta", "partial_json", "{\"a\":1}"),
        end("end_turn"),
        STOP.to_owned(),
    ]);
    let [Part::Thinking(thinking), text, Part::ToolCall(call)] = reply.parts.as_slice() else {
        panic!("{:?}", reply.parts);
    };
    assert_eq!(thinking.text, "hm");
    let block = r#"{"type":"thinking","thinking":"hm","signature":"EqQB"}"#;
    assert_eq!(thinking.opaque, Some(opaque(block)));
    assert_eq!(*text, Part::text("Hello."));
    assert_eq!(
        (call.name.as_str(), call.arguments.as_str()),
        ("", "{\"a\":1}")
    );
    let told: String = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(told, "Hello.");
}
