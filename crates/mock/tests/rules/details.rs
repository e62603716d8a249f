//! Parts and keys of messages besides content and calls: OpenRouter's reasoning details, audio stored by
//! OpenAI, and Mistral's prefix.

use plimsoll_context::{CallId, Message, Part, Reply};
use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::{ChatStreamState, Dialect, read_reply, render};
use plimsoll_wire::{RenderInput, StreamDecoder};
use serde_json::{Value, json};

use crate::{named, user};

fn streamed(deltas: &[Value]) -> Reply {
    let mut state = ChatStreamState::new();
    for delta in deltas {
        let chunk = json!({"id": "r", "choices": [{"index": 0, "delta": delta}]});
        state.push(&chunk.to_string()).unwrap();
    }
    let end = json!({"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    state.push(&end.to_string()).unwrap();
    state.finish().unwrap()
}

fn sent(reply: Reply, dialect: &str) -> Value {
    let result = Message::result(CallId("a".into()), "r");
    let view = [
        Message::user("q"),
        Message::Assistant { parts: reply.parts },
        result,
    ];
    let dialect = Dialect::named(dialect).unwrap();
    let rendered = render(&RenderInput::default(), &view, &dialect).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    body["messages"][1].clone()
}

#[test]
fn openrouters_details_of_reasoning_go_back_to_it() {
    let call = json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let text = |text: &str| json!({"type": "reasoning.text", "text": text, "format": "google-gemini-v1", "index": 0});
    let signed = json!({"type": "reasoning.text", "text": "", "signature": "S", "index": 0});
    let hidden = json!({"type": "reasoning.encrypted", "data": "E", "id": "a", "index": 1});
    let reply = streamed(&[
        json!({"reasoning": "Let me ", "reasoning_details": [text("Let me ")]}),
        json!({"reasoning": "see.", "reasoning_details": [text("see.")]}),
        json!({"reasoning_details": [signed, hidden]}),
        json!({"tool_calls": [call]}),
    ]);
    let whole = json!([
        {"type": "reasoning.text", "text": "Let me see.", "format": "google-gemini-v1", "index": 0,
            "signature": "S"},
        hidden]);
    assert_eq!(
        sent(reply.clone(), "openrouter")["reasoning_details"],
        whole
    );
    // Nobody else reads them.
    assert_eq!(sent(reply, "openai").get("reasoning_details"), None);
    // A whole reply has the same.
    let message = json!({"content": null, "reasoning_details": whole, "tool_calls": [call]});
    let body = json!({"id": "r", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]});
    let reply = read_reply(&body.to_string()).unwrap();
    assert_eq!(reply.parts[0], plimsoll_thinking("Let me see."));
    assert_eq!(sent(reply, "openrouter")["reasoning_details"], whole);
    // Of what came to nothing there is nothing to give back.
    let reply = streamed(&[json!({"reasoning_details": [text("hm")]})]);
    assert_eq!(reply.parts, [plimsoll_thinking("hm")]);
}

fn plimsoll_thinking(text: &str) -> Part {
    Part::Thinking(plimsoll_context::Thinking {
        text: text.into(),
        opaque: None,
    })
}

#[test]
fn a_message_of_audio_only_is_kept() {
    let request = json!({"model": "gpt-audio", "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "audio": {"id": "audio_1"}},
        {"role": "user", "content": "r"}]});
    let target = Target::Chat(Dialect::openai());
    let text = request.to_string();
    let repaired = repair_request(&text, &target, Reasoning::Keep).unwrap();
    assert_eq!((repaired.repairs, repaired.request), (vec![], text));
    // It stays where something else is repaired.
    let mut broken = request.clone();
    broken["messages"][2] = json!({"role": "tool", "tool_call_id": "z", "content": "r"});
    let repaired = repair_request(&broken.to_string(), &target, Reasoning::Keep).unwrap();
    let after: Value = serde_json::from_str(&repaired.request).unwrap();
    assert_eq!(after["messages"][1], request["messages"][1]);
}

/// OpenAI refuses a part of this kind; it becomes a text, and the rest stays.
#[test]
fn an_unknown_part_is_repaired_into_a_text() {
    let parts = json!([{"type": "text", "text": "q"}, {"type": "video_url"}]);
    let request = json!({"model": "gpt-5", "messages": [{"role": "user", "content": parts}]});
    let target = Target::Chat(Dialect::openai());
    let repaired = repair_request(&request.to_string(), &target, Reasoning::Keep).unwrap();
    assert!(
        repaired.request.contains(r#"{"type":"text","text":"q"}"#)
            && !repaired.request.contains(r#"{"type":"video_url"}"#),
        "{}",
        repaired.request
    );
}

#[test]
fn repair_leaves_a_prefix_of_mistral_at_the_end() {
    let prefix = json!({"role": "assistant", "content": "It is", "prefix": true});
    let target = Target::Chat(named("mistral"));
    let given = json!({"model": "m", "messages": [user("q"), prefix.clone()]}).to_string();
    let same = repair_request(&given, &target, Reasoning::Keep).unwrap();
    assert_eq!((same.repairs, same.request), (vec![], given));
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "done"});
    let given = json!({"model": "m", "messages": [user("q"), calls, result, prefix.clone()]});
    let fixed = repair_request(&given.to_string(), &target, Reasoning::Keep).unwrap();
    assert!(!fixed.repairs.is_empty(), "its id is no id of Mistral's");
    let fixed: Value = serde_json::from_str(&fixed.request).unwrap();
    assert_eq!(fixed["messages"][3], prefix);
    assert_eq!(fixed["messages"].as_array().unwrap().len(), 4);
}
