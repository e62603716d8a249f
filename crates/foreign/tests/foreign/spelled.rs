//! Requests that are spelled wrongly: the content stays, only parts that say nothing are removed.

use plimsoll_wire::Target;
use plimsoll_wire::anthropic::MessagesProfile;
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::{Value, json};

use crate::judged::repaired;

fn targets() -> [Target; 3] {
    [
        Dialect::openai().into(),
        ResponsesProfile::openai().into(),
        MessagesProfile::of_model("claude-sonnet-4-5").into(),
    ]
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

/// The list that a list is repaired to.
#[track_caller]
fn list(list: Value, target: &Target) -> Value {
    let request = json!({"model": "m", "max_tokens": 100, target.protocol().list(): list});
    let repaired = repaired(&request.to_string(), target);
    let mut after: Value = serde_json::from_str(&repaired.request).unwrap();
    after[target.protocol().list()].take()
}

/// The texts of a content.
fn said(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("|")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

/// Returns the texts in the result of a tool after the repair.
#[track_caller]
fn returned(content: &Value, target: &Target) -> String {
    let call = match target {
        Target::Chat(_) => json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
        Target::Responses(_) => {
            json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})
        }
        Target::Messages(_) => json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "c", "name": "f", "input": {}}]}),
    };
    let result = match target {
        Target::Chat(_) => json!({"role": "tool", "tool_call_id": "c", "content": content}),
        Target::Responses(_) => {
            json!({"type": "function_call_output", "call_id": "c", "output": content})
        }
        Target::Messages(_) => {
            user(json!([{"type": "tool_result", "tool_use_id": "c", "content": content}]))
        }
    };
    let list = list(json!([user(json!("q")), call, result]), target);
    said(match target {
        Target::Chat(_) => &list[2]["content"],
        Target::Responses(_) => &list[2]["output"],
        Target::Messages(_) => &list[2]["content"][0]["content"],
    })
}

#[test]
fn one_odd_part_does_not_cost_the_message() {
    let part = |text: Value| json!({"type": "text", "text": text});
    for (content, text) in [
        (
            json!([{"text": "important"}, part(json!("too"))]),
            "important|too",
        ),
        (
            json!([part(json!(null)), part(json!("important"))]),
            "important",
        ),
        (json!([null, "important"]), "important"),
        (json!([part(json!(8431))]), "8431"),
        (json!([8431, part(json!("x"))]), "8431|x"),
        (part(json!("important")), "important"),
        (json!({"port": 8431}), r#"{"port":8431}"#),
        (
            json!({"type": "question", "q": "?"}),
            r#"{"type":"question","q":"?"}"#,
        ),
        (json!(8431), "8431"),
    ] {
        for target in targets() {
            let list = list(json!([user(content.clone())]), &target);
            assert_eq!(said(&list[0]["content"]), text, "{content} {target:?}");
        }
    }
}

#[test]
fn what_a_tool_returned_stays_whatever_it_looks_like() {
    for content in [
        json!({"port": 8431}),
        json!({"type": "success", "rows": [1, 2, 3]}),
        json!({"type": "error", "error": {"message": "no such row"}}),
        json!({"type": "text", "value": 8431}),
        json!({"type": "file", "name": "a.txt", "size": 3}),
        json!({"type": "image", "width": 640}),
        json!({"type": "document", "title": "t"}),
        json!({"type": "reasoning", "because": "x"}),
        json!({"type": "tool_use", "id": "x", "name": "g", "input": {}}),
        json!({"type": "resource", "resource": {"uri": "file:///a", "text": "important"}}),
    ] {
        for target in targets() {
            let text = content.to_string();
            assert_eq!(returned(&content, &target), text, "{target:?}");
            let two = json!([content, {"type": "text", "text": "and"}]);
            assert_eq!(returned(&two, &target), format!("{text}|and"), "{target:?}");
        }
    }
    // Bytes are not written out as a text.
    for content in [
        json!([{"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}}]),
        json!([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]),
        json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]),
    ] {
        for target in targets() {
            let text = returned(&content, &target);
            assert!(
                !text.is_empty() && !text.contains("AAAA"),
                "{text} {target:?}"
            );
        }
    }
}

#[test]
fn an_answer_of_an_unknown_form_stays_and_a_thought_is_not_said_aloud() {
    for target in targets() {
        let answered = |content: Value| {
            let answer = json!({"role": "assistant", "content": content});
            list(json!([user(json!("q")), answer, user(json!("r"))]), &target)
        };
        // In Messages, a block that no model writes is no answer.
        if !matches!(target, Target::Messages(_)) {
            let answer = json!({"type": "answer", "a": 42});
            let list = answered(answer.clone());
            assert_eq!(said(&list[1]["content"]), answer.to_string());
        }
        let list = answered(json!({"type": "reasoning", "text": "secret"}));
        assert!(!list.to_string().contains("secret"), "{list}");
    }
}

#[test]
fn arguments_are_what_they_say() {
    let [chat, responses, claude] = targets();
    let q = user(json!("q"));
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": {"x": 1}});
    let result = json!({"type": "function_call_output", "call_id": "a", "output": "r"});
    let after = list(json!([q, call, result]), &responses);
    assert_eq!(after[1]["arguments"], r#"{"x":1}"#);
    let call = json!({"role": "assistant", "content": "keep me", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": 5}}]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "r"});
    let after = list(json!([q, call, result]), &chat);
    assert_eq!(after[1]["content"], "keep me");
    assert_eq!(after[1]["tool_calls"][0]["function"]["arguments"], "5");
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "f", "input": "{\"x\":1}"}]});
    let result = user(json!([{"type": "tool_result", "tool_use_id": "a", "content": "r"}]));
    let after = list(json!([q, call, result]), &claude);
    assert_eq!(after[1]["content"][0]["input"], json!({"x": 1}));
}
