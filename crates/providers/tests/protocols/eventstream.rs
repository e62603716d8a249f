//! Events in AWS's framing `application/vnd.amazon.eventstream`, for the fake of Bedrock.

use serde_json::{Value, json};

use super::fake::FakeAnswer;

/// The type of a header's value that is a string.
const STRING: u8 = 7;

/// One event with its name.
pub(crate) fn event(name: &str, payload: &Value) -> Vec<u8> {
    framed(
        &[
            (":event-type", name),
            (":content-type", "application/json"),
            (":message-type", "event"),
        ],
        &payload.to_string(),
    )
}

/// An exception in the middle of a stream.
pub(crate) fn exception(kind: &str, message: &str) -> Vec<u8> {
    framed(
        &[
            (":exception-type", kind),
            (":content-type", "application/json"),
            (":message-type", "exception"),
        ],
        &json!({"message": message}).to_string(),
    )
}

/// An answer of these frames.
pub(crate) fn stream(frames: Vec<Vec<u8>>) -> FakeAnswer {
    FakeAnswer::bytes(frames).header("content-type", "application/vnd.amazon.eventstream")
}

/// A reply made of blocks (`text`, `toolUse`, `reasoningContent`), in the events of the API.
pub(crate) fn reply(blocks: &[Value], reason: &str, usage: &Value) -> Vec<Vec<u8>> {
    let mut frames = vec![event("messageStart", &json!({"role": "assistant"}))];
    for (index, block) in blocks.iter().enumerate() {
        let delta = |delta: Value| {
            let payload = json!({"contentBlockIndex": index, "delta": delta});
            event("contentBlockDelta", &payload)
        };
        if let Some(text) = block["text"].as_str() {
            for piece in text.split_inclusive(' ') {
                frames.push(delta(json!({"text": piece})));
            }
        } else if let Some(call) = block.get("toolUse") {
            let start = json!({"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}});
            let start = json!({"contentBlockIndex": index, "start": start});
            frames.push(event("contentBlockStart", &start));
            for piece in call["input"].to_string().split_inclusive(':') {
                frames.push(delta(json!({"toolUse": {"input": piece}})));
            }
        } else if let Some(reasoning) = block.get("reasoningContent") {
            for (from, to) in [
                ("/reasoningText/text", "text"),
                ("/reasoningText/signature", "signature"),
                ("/redactedContent", "redactedContent"),
            ] {
                if let Some(said) = reasoning.pointer(from) {
                    frames.push(delta(json!({"reasoningContent": {to: said}})));
                }
            }
        }
        frames.push(event(
            "contentBlockStop",
            &json!({"contentBlockIndex": index}),
        ));
    }
    frames.push(event("messageStop", &json!({"stopReason": reason})));
    frames.push(event(
        "metadata",
        &json!({"usage": usage, "metrics": {"latencyMs": 1}}),
    ));
    frames
}

fn framed(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap());
        head.extend(name.bytes());
        head.push(STRING);
        head.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        head.extend(value.bytes());
    }
    let total = 12 + head.len() + payload.len() + 4;
    let mut frame = Vec::with_capacity(total);
    frame.extend(u32::try_from(total).unwrap().to_be_bytes());
    frame.extend(u32::try_from(head.len()).unwrap().to_be_bytes());
    frame.extend(crc32(&frame).to_be_bytes());
    frame.extend(head);
    frame.extend(payload.bytes());
    frame.extend(crc32(&frame).to_be_bytes());
    frame
}

/// The sum of ISO 3309, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}
