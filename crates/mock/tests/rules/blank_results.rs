//! Tool results without text in every dialect of Chat Completions. Those of the other APIs are cases in
//! `tests/cases/rendered`.

use plimsoll_context::{CallId, Message, Part, ToolCall, ToolResult};
use plimsoll_mock::rules as judge;
use plimsoll_wire::RenderInput;
use plimsoll_wire::openai_chat;
use serde_json::Value;

use crate::every_dialect;

/// A question, a call, and its result without text, in every form of that.
fn histories() -> Vec<Vec<Message>> {
    let blank = [
        vec![],
        vec![Part::text("")],
        vec![Part::text(" \n")],
        vec![Part::text(""), Part::text(" ")],
    ];
    let mut histories = Vec::new();
    for parts in blank {
        let call = Part::ToolCall(ToolCall {
            id: CallId("call_abc1".into()),
            name: "read".into(),
            arguments: "{}".into(),
            opaque: None,
        });
        let result = ToolResult {
            call: CallId("call_abc1".into()),
            parts,
            is_error: false,
        };
        histories.push(vec![
            Message::user("look"),
            Message::Assistant { parts: vec![call] },
            Message::ToolResult(result),
        ]);
    }
    histories
}

#[test]
fn a_result_without_text_is_valid_in_every_dialect_of_chat() {
    for dialect in every_dialect::dialects() {
        for messages in histories() {
            let input = RenderInput {
                model: "m",
                ..Default::default()
            };
            let body = openai_chat::render(&input, &messages, &dialect)
                .unwrap()
                .body;
            let body: Value = serde_json::from_slice(&body).unwrap();
            let faults = judge::openai_chat::validate(&body, &dialect);
            assert_eq!(faults, [], "{} {body}", dialect.name);
        }
    }
}
