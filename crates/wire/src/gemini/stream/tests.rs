//! The parts of a reply, event by event.

use plimsoll_context::Reply;

use super::*;
use crate::decoder::StreamDecoder;

fn read(frames: &[&str]) -> Result<Reply, WireError> {
    let mut answer = GeminiStreamState::new(0);
    for frame in frames {
        answer.push(frame)?;
    }
    answer.finish()
}

fn part(part: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}}}]}}"#)
}

const END: &str = r#"{"candidates":[{"finishReason":"STOP"}]}"#;

#[test]
fn parts_keep_their_order_and_neighbours_are_one() {
    let frames = [
        part(r#"{"text":"a","thought":true},{"text":"b","thought":true}"#),
        part(r#"{"text":"c"},{"text":""},{"text":"d"}"#),
        part(r#"{"executableCode":{"code":"1"}}"#),
        part(r#"{"inlineData":{"mimeType":"image/png","data":"aGk="}}"#),
        part(r#"{"text":"e"}"#),
    ];
    let mut frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    frames.push(END);
    let reply = read(&frames).unwrap();
    assert_eq!(reply.parts.len(), 5, "{:?}", reply.parts);
    assert!(matches!(&reply.parts[0], Part::Thinking(thinking) if thinking.text == "ab"));
    assert_eq!(reply.parts[1], Part::text("cd"));
    assert!(matches!(&reply.parts[2], Part::Opaque(opaque) if opaque.origin == "gemini"));
    assert!(matches!(&reply.parts[3], Part::Image(_)));
    assert_eq!(reply.parts[4], Part::text("e"));
}

#[test]
fn a_signature_is_kept_with_its_call_and_an_empty_text_is_not_kept() {
    let frame = part(
        r#"{"text":"a","thoughtSignature":"s"},{"text":"","thought":true},{"text":"b"},
           {"functionCall":{"id":"x","name":"f"},"thoughtSignature":"t"},{"text":"","thoughtSignature":"u"}"#,
    );
    let reply = read(&[&frame, END]).unwrap();
    let [text, Part::ToolCall(call)] = reply.parts.as_slice() else {
        panic!("{reply:?}");
    };
    assert_eq!(text, &Part::text("ab"));
    assert_eq!(call.opaque, Some(kept_by_call("t")));
}

#[test]
fn the_ids_of_calls_differ_and_a_mark_of_another_protocol_ends_no_reply() {
    let call = r#"{"functionCall":{"id":"x","name":"f"}}"#;
    let twice = part(&format!("{call},{call}"));
    let reply = read(&[&twice, END, "[DONE]"]).unwrap();
    let ids: Vec<&str> = { reply.parts.iter() }
        .filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.id.0.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["x", "x_"]);
    assert_eq!(reply.stop, StopReason::ToolCalls);
    let cut = read(&[&twice, "[DONE]"]);
    assert!(matches!(cut, Err(WireError::Cut { .. })), "{cut:?}");
}

#[test]
fn usage_has_one_meaning() {
    for (json, expected) in [
        (r#"{"promptTokenCount":10}"#, Some((10, 0, 0, 0))),
        (
            r#"{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":2}"#,
            Some((6, 5, 2, 4)),
        ),
        // Thoughts without an answer, and one of the server's own tools.
        (
            r#"{"promptTokenCount":10,"thoughtsTokenCount":2,"toolUsePromptTokenCount":5}"#,
            Some((15, 2, 2, 0)),
        ),
        (
            r#"{"promptTokenCount":18446744073709551615,"toolUsePromptTokenCount":18446744073709551615,"cachedContentTokenCount":1}"#,
            Some((u64::MAX - 1, 0, 0, 1)),
        ),
        (r#"{"trafficType":"ON_DEMAND"}"#, None),
    ] {
        let usage = usage(&serde_json::from_str(json).unwrap());
        let counts = usage.map(|usage| {
            (
                usage.input.0,
                usage.output.0,
                usage.reasoning.0,
                usage.cache_read.0,
            )
        });
        assert_eq!(counts, expected, "{json}");
    }
}

proptest::proptest! {
    #[test]
    fn no_frame_is_a_panic(text in ".{0,200}", name in "[a-zA-Z]{1,16}") {
        let mut answer = GeminiStreamState::new(usize::MAX - 1);
        let _ = answer.push(&text);
        let frame = part(&format!(r#"{{"{name}":{{}},"functionCall":{{"name":3}}}}"#));
        for _ in 0..3 {
            let _ = answer.push(&frame);
        }
        let _ = answer.finish();
    }
}
