//! Tool results without text: each API gets them in a form that it accepts, and every call has a
//! result.

use plimsoll_context::{CallId, Message, Part, ToolCall, ToolResult};
use plimsoll_mock::rules as judge;
use plimsoll_wire::RenderInput;
use plimsoll_wire::{anthropic, openai_chat, openai_responses};
use serde_json::{Value, json};

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

#[test]
fn a_result_without_text_is_valid_on_responses() {
    for profile in [
        openai_responses::ResponsesProfile::openai(),
        openai_responses::ResponsesProfile::plain(),
        openai_responses::ResponsesProfile::compatible(),
    ] {
        for messages in histories() {
            let input = RenderInput {
                model: "gpt-5",
                ..Default::default()
            };
            let body = openai_responses::render(&input, &messages, &profile)
                .unwrap()
                .body;
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(
                judge::openai_responses::validate(&body, &profile),
                [],
                "{body}"
            );
            assert!(body["input"][2].get("output").is_some(), "{body}");
        }
    }
}

/// Blank text blocks are refused; a result without content is not.
#[test]
fn a_result_without_text_has_no_text_block_on_messages() {
    let profile = anthropic::MessagesProfile::of_model("claude-sonnet-4-5");
    for messages in histories() {
        let input = RenderInput {
            model: "claude-sonnet-4-5",
            ..Default::default()
        };
        let body = anthropic::render(&input, &messages, &profile).unwrap().body;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(judge::anthropic::validate(&body, &profile), [], "{body}");
        let wanted = json!({ "type": "tool_result", "tool_use_id": "call_abc1" });
        assert_eq!(body["messages"][2]["content"][0], wanted);
    }
}
