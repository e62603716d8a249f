//! Parts of an assistant's message besides content and calls: OpenRouter's reasoning details, and
//! audio stored by OpenAI.

use plimsoll_context::{CallId, Message, Part, Reply};
use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_mock::rules::openai_chat::validate;
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::{ChatStreamState, Dialect, read_reply, render};
use plimsoll_wire::{RenderInput, StreamDecoder};
use serde_json::{Value, json};

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
fn what_was_only_heard_is_a_message() {
    let request = json!({"model": "gpt-audio", "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "audio": {"id": "audio_1"}},
        {"role": "user", "content": "r"}]});
    assert_eq!(validate(&request, &Dialect::openai()), []);
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

/// What OpenAI refuses of parts and of the choice of a tool; others may have more.
#[test]
fn parts_and_tools_that_are_none() {
    let openai = Dialect::openai();
    let told = |request: &Value, dialect: &Dialect| -> Vec<String> {
        let faults = validate(request, dialect);
        faults.iter().map(ToString::to_string).collect()
    };
    let content =
        |part: Value| json!({"model": "gpt-5", "messages": [{"role": "user", "content": [part]}]});
    let video = content(json!({"type": "video_url", "video_url": {"url": "https://a"}}));
    assert_eq!(
        told(&video, &openai),
        [
            "messages[0].content[0]: Invalid value: 'video_url'. Supported values are: 'text', \
          'image_url', 'input_audio', 'refusal', 'audio', and 'file'. (shape)"
        ]
    );
    assert_eq!(told(&video, &Dialect::named("vllm").unwrap()), [""; 0]);
    for (part, key) in [
        (json!({"type": "image_url"}), "image_url.url"),
        (
            json!({"type": "image_url", "image_url": {"detail": "low"}}),
            "image_url.url",
        ),
        (json!({"type": "text", "text": null}), "text"),
    ] {
        let place = format!("messages[0].content[0].{key}");
        assert_eq!(
            told(&content(part), &openai),
            [format!(
                "{place}: Missing required parameter: '{place}'. (shape)"
            )]
        );
    }
    for part in [
        json!({"type": "image_url", "image_url": {"url": "https://a"}}),
        json!({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}),
        json!({"type": "file", "file": {"file_id": "f"}}),
    ] {
        assert_eq!(told(&content(part), &openai), [""; 0]);
    }
    // What is refused so becomes a text, and the rest stays.
    let parts = json!([{"type": "text", "text": "q"}, {"type": "video_url"}]);
    let request = json!({"model": "gpt-5", "messages": [{"role": "user", "content": parts}]});
    let target = Target::Chat(openai.clone());
    let repaired = repair_request(&request.to_string(), &target, Reasoning::Keep).unwrap();
    assert!(
        repaired.request.contains(r#"{"type":"text","text":"q"}"#)
            && !repaired.request.contains(r#"{"type":"video_url"}"#),
        "{}",
        repaired.request
    );
    let choice = |name: &str| {
        json!({"model": "gpt-5", "messages": [{"role": "user", "content": "q"}],
            "tools": [{"type": "function", "function": {"name": "f"}}],
            "tool_choice": {"type": "function", "function": {"name": name}}})
    };
    assert_eq!(told(&choice("f"), &openai), [""; 0]);
    assert_eq!(
        told(&choice("g"), &openai),
        ["tool_choice: Tool choice 'g' not found in 'tools' parameter. (shape)"]
    );
}
