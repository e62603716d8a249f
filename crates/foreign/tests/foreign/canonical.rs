//! Repairs that are no cases of a file: of long histories, of every dialect, and to the byte.

use plimsoll_foreign::{Chat, Reasoning, RepairedRequest, Target, repair_request};
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::{anthropic, openai_responses};
use serde_json::{Value, json};

use crate::judged::repaired;

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn chat(name: &str) -> Target {
    Target::Chat(Dialect::named(name).unwrap())
}

fn claude(model: &str) -> Target {
    Target::Messages(anthropic::MessagesProfile::of_model(model))
}

fn responses() -> Target {
    Target::Responses(openai_responses::ResponsesProfile::openai())
}

fn told(repaired: &RepairedRequest) -> Vec<String> {
    repaired.repairs.iter().map(ToString::to_string).collect()
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}})
}

fn asks(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": format!("r{id}")})
}

fn item_call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"})
}

fn block(kind: &str, id: &str) -> Value {
    match kind {
        "use" => json!({"type": "tool_use", "id": id, "name": "read", "input": {}}),
        "result" => json!({"type": "tool_result", "tool_use_id": id, "content": "r"}),
        "think" => json!({"type": "thinking", "thinking": id, "signature": "EqQB"}),
        _ => json!({"type": "text", "text": id}),
    }
}

/// A message in tiny notation: `a:use 1,use 2`.
fn message(notation: &str) -> Value {
    let (role, blocks) = notation.split_once(':').unwrap();
    let role = if role == "a" { "assistant" } else { "user" };
    let blocks = blocks.split(',').filter(|block| !block.is_empty());
    let blocks: Vec<Value> = blocks
        .map(|one| {
            let (kind, id) = one.split_once(' ').unwrap_or((one, ""));
            block(kind, id)
        })
        .collect();
    json!({"role": role, "content": blocks})
}

/// Providers pair results by their ids, in whatever order they come.
#[test]
fn results_of_a_batch_may_stand_in_any_order() {
    let request = json!({"model": "m", "messages": [user("q"), asks(&["1", "2", "3"]), tool("3"),
        tool("1"), tool("2"), user("?")]});
    for name in Dialect::names() {
        if ["mistral", "deepseek", "kimi", "lmstudio"].contains(&name) {
            continue;
        }
        let text = request.to_string();
        let fixed = repair_request(&text, &chat(name), Reasoning::Keep).unwrap();
        assert_eq!(told(&fixed), [""; 0], "{name}");
        assert_eq!(fixed.request, text);
    }
}

/// All faults are repaired at once: time grows as the history does, not as its square.
#[test]
fn a_long_history_takes_its_length() {
    let exchanges = (0..6_000).flat_map(|index| {
        let id = format!("call_{index}");
        [user("q"), asks(&[&id]), tool(&id)]
    });
    let mut messages: Vec<Value> = exchanges.collect();
    messages.push(user("?"));
    let request = json!({"messages": messages}).to_string();
    let fixed = repaired(&request, &chat("mistral"));
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    // A word stands between each result and what the user said then.
    assert_eq!(after["messages"].as_array().unwrap().len(), 24_001);
    assert!(fixed.repairs.len() >= 18_000);
}

#[test]
fn what_is_not_wrong_keeps_its_bytes() {
    let text = r#"{ "model":"gpt-5", "messages":[ {"role":"user",  "content":"q","name":"ann"},
        {"content":null,"role":"assistant","annotations":[],"tool_calls":[{"type":"function","id":"1","function":{"arguments":"{ }","name":"read"}}]},
        {"role":"tool","tool_call_id":"2","content":"orphan"} ],  "seed":1.50}"#;
    let fixed = repair_request(text, &chat("openai"), Reasoning::Keep).unwrap();
    let list = r#"[{"role":"user",  "content":"q","name":"ann"},{"content":null,"role":"assistant","annotations":[],"tool_calls":[{"type":"function","id":"1","function":{"arguments":"{ }","name":"read"}}]},"#;
    assert!(fixed.request.contains(list), "{}", fixed.request);
    assert!(fixed.request.ends_with(r#""seed":1.50}"#));
    assert_eq!(
        told(&fixed),
        [
            "messages[2]: this result answers no open call `2`; dropped it (orphans)",
            "messages[1]: call `1` has no result; closed it as aborted (unanswered)",
        ]
    );
}

/// What is too deep to be judged is not judged in silence.
#[test]
fn what_is_nested_too_deep_is_said() {
    let deep = format!("{}1{}", "[".repeat(160), "]".repeat(160));
    let text = format!(
        r#"{{"model":"c","max_tokens":9,"messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"n","input":{{"a":{deep}}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"r"}}]}}]}}"#
    );
    for target in [claude("c"), chat("openai"), responses()] {
        for error in [
            repair_request(&text, &target, Reasoning::Keep).unwrap_err(),
            Chat::read(&text, target.protocol()).unwrap_err(),
        ] {
            let said = error.to_string();
            assert!(
                said.contains("nested deeper than 127 levels at line 1 column"),
                "{said}"
            );
            assert!(said.contains("put it in as text"), "{said}");
        }
    }
}

#[test]
fn a_protocol_is_known_by_its_shape() {
    let of = |request: Value| Target::of_request(&request).protocol().name();
    for (request, protocol) in [
        (json!([user("q"), asks(&["1"])]), "openai"),
        (json!({"model": "gpt-5", "messages": [user("q")]}), "openai"),
        (
            json!({"model": "anthropic/claude-x", "messages": [user("q")]}),
            "openai",
        ),
        (
            json!({"model": "claude-opus-4-6", "messages": [user("q")]}),
            "anthropic",
        ),
        // Claude behind a server of Chat Completions.
        (
            json!({"model": "claude-opus-4-6", "messages": [user("q"), asks(&["1"])]}),
            "openai",
        ),
        (json!({"system": "s", "messages": [user("q")]}), "anthropic"),
        (json!([message("a:use 1")]), "anthropic"),
        (json!({"input": "q"}), "openai-responses"),
        (json!([user("q"), item_call("1")]), "openai-responses"),
        (
            json!([{"type": "message", "role": "user", "content": "q"}]),
            "openai-responses",
        ),
        (json!([user("q"), {"type": "mcp_call"}]), "openai-responses"),
        (
            json!([user("q"), {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]}]),
            "openai-responses",
        ),
        // Some clients have its words in a chat.
        (
            json!({"messages": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}]}),
            "openai",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}]}]),
            "openai",
        ),
        (
            json!([user("q"), {"type": "message", "role": "assistant", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "a"}]}]),
            "anthropic",
        ),
        (
            json!({"messages": [user("q")], "stop_sequences": ["x"]}),
            "anthropic",
        ),
        (
            json!({"messages": [user("q")], "tools": [{"name": "f", "input_schema": {"type": "object"}}]}),
            "anthropic",
        ),
        // A chat has breakpoints, too.
        (
            json!([{"role": "user", "content": [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]}]),
            "openai",
        ),
        (
            json!({"model": "anthropic/claude-x", "messages": [{"role": "user", "content": [
                {"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]}]}),
            "openai",
        ),
        (
            json!([{"role": "system", "content": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]}, user("q")]),
            "openai",
        ),
        (
            json!([user("q"), asks(&["1"]), {"role": "tool", "tool_call_id": "1", "content": [
                {"type": "text", "text": "r", "cache_control": {"type": "ephemeral"}}]}]),
            "openai",
        ),
    ] {
        assert_eq!(of(request.clone()), protocol, "{request}");
    }
    for name in Target::PROTOCOLS {
        assert_eq!(
            Target::of_protocol(name, None).unwrap().protocol().name(),
            name
        );
    }
    assert_eq!(Target::of_protocol("gopher", None), None);
}
