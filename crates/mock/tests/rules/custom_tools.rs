//! Custom tools of OpenAI's Chat Completions, which take free text: their calls are read, validated
//! and written back as such, or as calls of functions if a server supports only those.

use plimsoll_context::{CallId, Message, Part, ToolResult};
use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_mock::rules::openai_chat::validate;
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::{ChatStreamState, Dialect, read, read_reply, render};
use plimsoll_wire::{RenderInput, StreamDecoder};
use serde_json::{Value, json};

fn call() -> Value {
    json!({"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls {\n"}})
}

fn history() -> Value {
    json!({"model": "gpt-5", "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "tool_calls": [call()]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"}]})
}

#[test]
fn a_history_with_them_is_valid_and_keeps_its_bytes() {
    let openai = Dialect::openai();
    assert_eq!(validate(&history(), &openai), []);
    let text = history().to_string();
    let repaired = repair_request(&text, &Target::Chat(openai.clone()), Reasoning::Keep).unwrap();
    assert_eq!((repaired.repairs, repaired.request), (vec![], text));
    for odd in [json!({"name": "sh"}), json!({"input": "ls"}), json!("ls")] {
        let mut broken = history();
        broken["messages"][1]["tool_calls"][0]["custom"] = odd;
        assert!(!validate(&broken, &openai).is_empty(), "{broken}");
        let repaired = repair_request(
            &broken.to_string(),
            &Target::Chat(openai.clone()),
            Reasoning::Keep,
        );
        let repaired: Value = serde_json::from_str(&repaired.unwrap().request).unwrap();
        assert_eq!(validate(&repaired, &openai), []);
    }
}

#[test]
fn a_custom_call_is_read_and_written_back() {
    let openai = Dialect::openai();
    let text = history().to_string();
    let chat = read(&text).unwrap();
    let sent = |dialect: &Dialect| -> Value {
        let rendered = render(&RenderInput::default(), &chat.messages, dialect).unwrap();
        serde_json::from_slice(&rendered.body).unwrap()
    };
    assert_eq!(sent(&openai)["messages"][1]["tool_calls"][0], call());
    // Where only functions are known, it is one.
    let other = Dialect::named("groq").unwrap();
    let body = sent(&other);
    assert_eq!(
        body["messages"][1]["tool_calls"][0],
        json!({"id": "c1", "type": "function",
            "function": {"name": "sh", "arguments": "{\"input\":\"ls {\\n\"}"}})
    );
    assert_eq!(validate(&body, &other), []);
}

#[test]
fn a_reply_with_them_is_read() {
    let whole = json!({"id": "r", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "tool_calls": [call()]}}]});
    let whole = read_reply(&whole.to_string()).unwrap();
    let mut state = ChatStreamState::new();
    for (custom, id) in [
        (json!({"name": "sh", "input": ""}), Some("c1")),
        (json!({"input": "ls "}), None),
        (json!({"input": "{"}), None),
        (json!({"input": "\n"}), None),
    ] {
        let mut piece = json!({"index": 0, "custom": custom});
        if let Some(id) = id {
            piece["id"] = json!(id);
            piece["type"] = json!("custom");
        }
        let chunk = json!({"id": "r", "choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]});
        state.push(&chunk.to_string()).unwrap();
    }
    let end =
        json!({"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    state.push(&end.to_string()).unwrap();
    let streamed = state.finish().unwrap();
    assert_eq!(whole.parts, streamed.parts);
    let Some(Part::ToolCall(call)) = whole.parts.first() else {
        unreachable!("no call");
    };
    assert_eq!(
        (call.name.as_str(), call.arguments.as_str()),
        ("sh", "ls {\n")
    );
    let result = Message::ToolResult(ToolResult {
        call: CallId("c1".into()),
        parts: vec![Part::text("a.txt")],
        is_error: false,
    });
    let view = [
        Message::user("q"),
        Message::Assistant { parts: whole.parts },
        result,
    ];
    let rendered = render(&RenderInput::default(), &view, &Dialect::openai()).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    assert_eq!(body["messages"], history()["messages"]);
}
