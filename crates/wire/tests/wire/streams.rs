//! Replies as servers send them, in events or whole, and the reply that is read from them: the cases in
//! `tests/cases/streams`.
//!
//! `- ` is the text of one event (the `data:` field), `whole` a reply that was not streamed, and `quoted` one
//! that contains line breaks. The outcome has each new piece, and then the parts of the reply, the reason for
//! its end, its usage and its model. A refusal has its meaning for a client.

use std::path::{Path, PathBuf};

use plimsoll_context::Reply;
use plimsoll_testkit::cases::{self, Case};
use plimsoll_wire::openai_chat::{MAX_PARTS, MAX_REPLY};
use plimsoll_wire::overflow::classify;
use plimsoll_wire::{StreamDecoder, WireError, anthropic, openai_chat, openai_responses};
use proptest::prelude::*;
use proptest::sample::Index;

const PROTOCOLS: [&str; 3] = ["chat", "messages", "responses"];

#[test]
fn each_stream_is_read_as_its_reply() {
    for protocol in PROTOCOLS {
        cases::check(&file(protocol), |case| read(decoder(protocol), case));
    }
}

fn file(protocol: &str) -> PathBuf {
    let file = format!("tests/cases/streams/{protocol}.txt");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Returns the events of each case with events.
fn recorded(protocol: &str) -> Vec<Vec<String>> {
    let cases = cases::read(&file(protocol));
    let events = cases.iter().map(|case| case.all("-").map(str::to_owned));
    let events = events.map(Iterator::collect::<Vec<_>>);
    events.filter(|events| !events.is_empty()).collect()
}

#[test]
fn a_cut_stream_is_cut_wherever_it_is_cut() {
    for protocol in PROTOCOLS {
        for events in recorded(protocol) {
            let mut decoder = decoder(protocol);
            for event in &events {
                let is_cut = matches!(decoder.finish(), Err(WireError::Cut { .. }));
                assert_eq!(is_cut, !decoder.has_ended(), "{events:?}");
                if decoder.push(event).is_err() {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_reply_is_bounded() {
    let megabyte = "x".repeat(1024 * 1024);
    let too_large = WireError::TooLarge { limit: MAX_REPLY };
    let too_many = WireError::TooManyParts { limit: MAX_PARTS };
    let begun = r#"{"type":"message_start","message":{"model":"m","content":[]}}"#;
    let block =
        r#"{"type":"content_block_start","index":N,"content_block":{"type":"text","text":""}}"#;
    let first = block.replace('N', "0");
    for (protocol, opening, event, expected) in [
        (
            "chat",
            vec![],
            r#"{"choices":[{"delta":{"content":"MB"}}]}"#,
            &too_large,
        ),
        (
            "chat",
            vec![],
            r#"{"choices":[{"delta":{"tool_calls":[{"index":N,"id":"N","function":{"name":"f"}}]}}]}"#,
            &too_many,
        ),
        (
            "messages",
            vec![begun, first.as_str()],
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"MB"}}"#,
            &too_large,
        ),
        ("messages", vec![begun], block, &too_many),
        (
            "responses",
            vec![],
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m","delta":"MB"}"#,
            &too_large,
        ),
        (
            "responses",
            vec![],
            r#"{"type":"response.output_item.added","output_index":N,"item":{"type":"message","id":"N","content":[]}}"#,
            &too_many,
        ),
    ] {
        let mut decoder = decoder(protocol);
        for event in opening {
            decoder.push(event).unwrap();
        }
        let refused = (0..=MAX_PARTS).find_map(|number| {
            let event = event.replace("MB", &megabyte);
            decoder.push(&event.replace('N', &number.to_string())).err()
        });
        assert_eq!(refused.as_ref(), Some(expected), "{protocol} {event}");
    }
}

proptest! {
    /// Events are dropped, sent twice, exchanged, cut and filled with other bytes.
    #[test]
    fn no_damage_to_a_stream_breaks_anything(
        which in any::<Index>(),
        edits in proptest::collection::vec((any::<Index>(), any::<Index>(), 0_u8..5), 0..6),
        text in ".{0,60}",
    ) {
        for protocol in PROTOCOLS {
            let mut events = which.get(&recorded(protocol)).clone();
            for (at, within, how) in &edits {
                let at = at.index(events.len());
                let mut bytes = events[at].clone().into_bytes();
                let within = within.index(bytes.len().max(1));
                match how {
                    0 if events.len() > 1 => drop(events.remove(at)),
                    1 => events.insert(at, events[at].clone()),
                    2 => events.swap(at, 0),
                    3 => bytes.truncate(within),
                    _ => bytes.insert(within.min(bytes.len()), b"{}[]\",:"[within % 7]),
                }
                if *how > 2 {
                    events[at] = String::from_utf8_lossy(&bytes).into_owned();
                }
            }
            let mut decoder = decoder(protocol);
            for event in &events {
                let _ = decoder.push(event);
                let _ = decoder.partial();
            }
            let _ = decoder.push(&text);
            let _ = decoder.finish();
            let _ = self::decoder(protocol).read_whole(&text);
            let _ = self::decoder(protocol).read_whole(&events[0]);
        }
    }
}

fn decoder(protocol: &str) -> Box<dyn StreamDecoder> {
    match protocol {
        "chat" => Box::new(openai_chat::ChatStreamState::new()),
        "messages" => Box::new(anthropic::MessagesStreamState::new()),
        _ => Box::new(openai_responses::ResponsesStreamState::new()),
    }
}

/// Returns the pieces and the reply of a case. An error ends the stream, and what had arrived is shown.
fn read(mut decoder: Box<dyn StreamDecoder>, case: &Case) -> Vec<String> {
    let quoted = case
        .get("quoted")
        .map(|text| cases::json(text).as_str().unwrap().to_owned());
    if let Some(body) = case.get("whole").or(quoted.as_deref()) {
        return match decoder.read_whole(body) {
            Ok(reply) => reply_lines(&reply),
            Err(error) => vec![told(&error)],
        };
    }
    let mut lines = Vec::new();
    for event in case.all("-") {
        match decoder.push(event) {
            Ok(deltas) => lines.extend(
                deltas
                    .iter()
                    .map(|delta| format!("piece {}", serde_json::to_string(delta).unwrap())),
            ),
            Err(error) => {
                lines.push(told(&error));
                lines.extend(reply_lines(&decoder.partial()));
                return lines;
            }
        }
    }
    match decoder.finish() {
        Ok(reply) => lines.extend(reply_lines(&reply)),
        Err(WireError::Cut { partial }) => {
            lines.push("cut".to_owned());
            lines.extend(reply_lines(&partial));
        }
        Err(error) => lines.push(told(&error)),
    }
    lines
}

fn reply_lines(reply: &Reply) -> Vec<String> {
    let parts = reply.parts.iter();
    let parts = parts.map(|part| format!("part {}", serde_json::to_string(part).unwrap()));
    let usage = reply
        .usage
        .map(|usage| format!("usage {}", serde_json::to_string(&usage).unwrap()));
    let model = reply.model.as_ref().map(|model| format!("model {model}"));
    let stop = format!("stop {}", serde_json::to_string(&reply.stop).unwrap());
    parts.chain([stop]).chain(usage).chain(model).collect()
}

fn told(error: &WireError) -> String {
    match error {
        WireError::Provider { body } => format!("refused {:?} {body}", classify(None, body)),
        error => format!("error {error}"),
    }
}
