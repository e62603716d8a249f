//! Requests of other clients, and the messages that are read from them: the cases in `tests/cases/reads.txt`.
//!
//! `protocol` is that of the request, `body` its text. The outcome has the entries that each message was read from
//! and the message, and the tools; or the error with its place.

use std::path::Path;

use plimsoll_context::Message;
use plimsoll_testkit::cases;
use plimsoll_wire::{anthropic, openai_chat, openai_responses};
use serde_json::json;

#[test]
fn each_request_is_read_as_its_messages() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/reads.txt");
    cases::check(&file, |case| {
        let body = case.get("body").unwrap();
        let read = match case.get("protocol").unwrap() {
            "chat" => openai_chat::read(body),
            "messages" => anthropic::read(body),
            _ => openai_responses::read(body),
        };
        let document = match read {
            Ok(document) => document,
            Err(error) => return vec![format!("error {error}")],
        };
        let messages = document.messages.iter().zip(&document.spans);
        let messages = messages.map(|(message, span)| {
            let entries = &span.entries;
            format!("{}..{} {}", entries.start, entries.end, json!(message))
        });
        let tools = document.tools.iter();
        let tools = tools.map(|tool| format!("tool {}", json!(tool)));
        let hosted = document.hosted_tools.iter();
        let hosted = hosted.map(|tool| format!("hosted {}", json!(tool)));
        messages.chain(tools).chain(hosted).collect()
    });
}

#[test]
fn an_assistant_message_without_content_has_no_entry() {
    let silent = Message::assistant("");
    for format in [&openai_chat::FORMAT, &openai_responses::FORMAT] {
        assert_eq!((format.write)(&[&silent]).unwrap(), [[""; 0]]);
    }
}
