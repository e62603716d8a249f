//! Replies as servers send them, in events or whole, and the reply that is read from them: the cases in
//! `tests/cases/streams`.
//!
//! `- ` is the text of one event (the `data:` field), `whole` a reply that was not streamed, and `quoted` one
//! that contains line breaks. The outcome has each new piece, and then the parts of the reply, the reason for
//! its end, its usage and its model. A refusal has its meaning for a client.

use std::path::Path;

use plimsoll_context::Reply;
use plimsoll_testkit::cases::{self, Case};
use plimsoll_wire::overflow::classify;
use plimsoll_wire::{StreamDecoder, WireError, anthropic, openai_chat, openai_responses};

#[test]
fn each_stream_is_read_as_its_reply() {
    for protocol in ["chat", "messages", "responses"] {
        let file = format!("tests/cases/streams/{protocol}.txt");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        cases::check(&file, |case| read(decoder(protocol), case));
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
