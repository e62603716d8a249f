//! Signed and hidden thinking keeps its bytes. What each protocol cannot represent are the cases `read back`
//! in `tests/cases/rendered`.

use plimsoll_context::{Message, Part};
use plimsoll_wire::anthropic;
use plimsoll_wire::{RenderInput, StreamDecoder};

fn says(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::Assistant {
        parts: parts.into_iter().collect(),
    }
}

fn text(body: Vec<u8>) -> String {
    String::from_utf8(body).unwrap()
}

fn q() -> Message {
    Message::user("q")
}

fn r() -> Message {
    Message::user("r")
}

/// Thinking that nobody may read, and signed thinking, keep every byte through a stream, a
/// transcript and a request.
#[test]
fn signed_and_hidden_thinking_keeps_its_bytes() {
    let signature = "EqQBCgIYAhIM/1+gh==";
    let hidden = r#"{"type":"redacted_thinking", "data":"EmwKAhgBEgy3va3p+/zix=\u003d"}"#;
    let events = [
        r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1}}}"#
            .to_owned(),
        format!(r#"{{"type":"content_block_start","index":0,"content_block":{hidden}}}"#),
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}"#.to_owned(),
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"h \"m\""}}"#.to_owned(),
        format!(r#"{{"type":"content_block_delta","index":1,"delta":{{"type":"signature_delta","signature":"{signature}"}}}}"#),
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"x"}}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    let mut state = anthropic::MessagesStreamState::new();
    for event in &events {
        state.push(event).unwrap();
    }
    let profile = anthropic::MessagesProfile::of_model("claude-opus-5-5");
    let input = RenderInput {
        model: "claude-opus-5-5",
        ..Default::default()
    };
    let asked = anthropic::render(&input, &[q()], &profile).unwrap();
    let reply = asked.prefix.bind(state.finish().unwrap());
    let said = [q(), says(reply.parts), r()];
    let rendered = anthropic::render(&input, &said, &profile).unwrap();
    assert_eq!(rendered.notes, []);
    let body = text(rendered.body);
    assert!(body.contains(hidden), "{body}");
    let thought =
        format!(r#"{{"type":"thinking","thinking":"h \"m\"","signature":"{signature}"}}"#);
    assert!(body.contains(&thought), "{body}");
}
