//! Bounds of streamed replies of Messages, and their pieces cut anywhere. Other streams are cases in
//! `tests/cases/streams`.

use plimsoll_context::{Delta, Reply, StopReason};
use plimsoll_testkit::messages::tool_call as call;
use plimsoll_wire::anthropic::{MAX_REPLY, MessagesStreamState, read_reply};
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
