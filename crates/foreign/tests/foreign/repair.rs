//! Damage as users of the providers report it.

use plimsoll_foreign::{Reasoning, RepairedRequest, repair_request};
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::openai_responses::ResponsesProfile;
use plimsoll_wire::{Target, anthropic};
use serde_json::{Value, json};

use crate::judged::repaired;

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn asks(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let calls: Vec<Value> = ids.iter().map(call).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": format!("r{id}")})
}

/// The messages in short: who, and which calls. `x` is a result that was added.
fn shape(repaired: &RepairedRequest) -> String {
    let request: Value = serde_json::from_str(&repaired.request).unwrap();
    let one = |message: &Value| {
        let role = &message["role"].as_str().unwrap()[..1];
        match message["tool_call_id"].as_str() {
            Some(id) if message["content"].to_string().contains("aborted") => format!("x{id}"),
            Some(id) => format!("t{id}"),
            None => {
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                let ids: String = calls.filter_map(|call| call["id"].as_str()).collect();
                format!("{role}{ids}")
            }
        }
    };
    let messages = request["messages"].as_array().unwrap();
    messages.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn calls_and_results_of_chats() {
    for (messages, expected) in [
        // A run was killed while its tools ran.
        (
            json!([user("q"), asks(&["1", "2"]), tool("1")]),
            "u a12 t1 x2",
        ),
        (json!([user("q"), asks(&["1"]), user("stop")]), "u a1 x1 u"),
        // The user typed while a tool ran.
        (
            json!([user("q"), asks(&["1"]), user("wait"), tool("1")]),
            "u a1 t1 u",
        ),
        // Half of a history was cut off.
        (json!([tool("0"), user("q")]), "u"),
        // Two calls of one message have the same id; both results stay.
        (
            json!([user("q"), asks(&["1", "1"]), tool("1"), tool("1")]),
            "u a11_2 t1 t1_2",
        ),
        // A result was recorded twice.
        (
            json!([user("q"), asks(&["1"]), tool("1"), tool("1")]),
            "u a1 t1",
        ),
        // Results in another order are no damage.
        (
            json!([user("q"), asks(&["1", "2"]), tool("2"), tool("1")]),
            "u a12 t2 t1",
        ),
        // An id is used again in a later message.
        (
            json!([user("q"), asks(&["1"]), tool("1"), asks(&["1"]), tool("1")]),
            "u a1 t1 a1 t1",
        ),
    ] {
        let text = json!({"messages": messages}).to_string();
        let repaired = repaired(&text, &Dialect::openai().into());
        assert_eq!(shape(&repaired), expected, "{:?}", repaired.repairs);
    }
}

/// The example of docs/repair.md.
#[test]
fn the_example_of_the_documentation() {
    let request = json!({"model": "claude-opus-4-6", "max_tokens": 4096, "messages": [
        {"role": "user", "content": "Which port does the server use?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Two files may say.", "signature": "EqQBCkYIBBgC"},
            {"type": "tool_use", "id": "toolu_01", "name": "read", "input": {"path": "server.toml"}},
            {"type": "tool_use", "id": "toolu_02", "name": "read", "input": {"path": "README.md"}}]},
        {"role": "user", "content": [
            {"type": "text", "text": "Are you still there?"},
            {"type": "tool_result", "tool_use_id": "toolu_01", "content": "port = 8431"}]},
        {"role": "assistant", "content": [{"type": "text", "text": ""}]}]});
    let target = anthropic::MessagesProfile::of_model("claude-opus-4-6").into();
    let repaired = repaired(&request.to_string(), &target);
    let after: Value = serde_json::from_str(&repaired.request).unwrap();
    let blocks: Vec<&str> = after["messages"][2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(blocks, ["tool_result", "tool_result", "text"]);
    assert_eq!(after["messages"].as_array().unwrap().len(), 3);
    assert_eq!(
        after["messages"][1], request["messages"][1],
        "the thinking stays"
    );
    let told: Vec<String> = repaired.repairs.iter().map(ToString::to_string).collect();
    assert_eq!(
        told[0],
        "messages[1]: call `toolu_02` has no result; closed it as aborted (unanswered)"
    );
    assert!(
        told.contains(&"messages[2]: moved this result to its call `toolu_01` (order)".to_owned()),
        "{told:?}"
    );
}

#[test]
fn an_empty_chat_gets_an_opening_message() {
    for target in [
        Target::from(Dialect::openai()),
        anthropic::MessagesProfile::of_model("claude-opus-4-6").into(),
    ] {
        let repaired = repaired(r#"{"messages": []}"#, &target);
        assert_eq!(repaired.repairs.len(), 1);
    }
}

/// OpenAI refuses an empty list as a content; a message of nothing else leaves.
#[test]
fn no_empty_list_is_left() {
    let [chat, responses, claude] = ["openai", "openai-responses", "anthropic"]
        .map(|name| Target::of_protocol(name, None).unwrap());
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let block = json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    let blank = json!({"type": "text", "text": " "});
    for (list, target, expected) in [
        (
            json!([user("q"), {"role": "user", "content": []}, {"role": "system", "content": []},
                {"role": "assistant", "content": [], "tool_calls": asks(&["1"])["tool_calls"]},
                {"role": "tool", "tool_call_id": "1", "content": []}]),
            chat,
            json!([user("q"), asks(&["1"]), {"role": "tool", "tool_call_id": "1", "content": ""}]),
        ),
        (
            json!([user("q"), {"type": "message", "role": "user", "content": []}, call,
                {"type": "function_call_output", "call_id": "c", "output": []}]),
            responses,
            json!([user("q"), call, {"type": "function_call_output", "call_id": "c", "output": ""}]),
        ),
        (
            json!([user("q"), {"role": "user", "content": []}, {"role": "assistant", "content": [block]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": [blank]}]}]),
            claude,
            json!([user("q"), {"role": "assistant", "content": [block]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}]),
        ),
    ] {
        let request = json!({"model": "m", "max_tokens": 9, target.list(): list});
        let repaired = repaired(&request.to_string(), &target);
        let mut after: Value = serde_json::from_str(&repaired.request).unwrap();
        // The order of the keys does not count.
        assert_eq!(
            after[target.list()].take(),
            expected,
            "{:?}",
            repaired.repairs
        );
    }
}

#[test]
fn the_oldest_images_beyond_the_limit_become_notes() {
    let data = "A".repeat(4_500_000);
    let url = format!("data:image/png;base64,{data}");
    let image = |protocol: usize| match protocol {
        0 => json!({"type": "image_url", "image_url": {"url": url}}),
        1 => json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        _ => json!({"type": "image", "source":
            {"type": "base64", "media_type": "image/png", "data": data}}),
    };
    let targets = [
        Target::from(Dialect::openai()),
        ResponsesProfile::openai().into(),
        anthropic::MessagesProfile::of_model("claude-opus-4-6").into(),
    ];
    for (protocol, target) in targets.into_iter().enumerate() {
        let message = json!({"role": "user", "content": [image(protocol), image(protocol)]});
        let list = vec![message; 3];
        let text = json!({"model": "m", "max_tokens": 9, target.list(): list}).to_string();
        let repaired = repaired(&text, &target);
        assert_eq!(repaired.request.matches("An image stood here.").count(), 2);
        let told: Vec<String> = repaired.repairs.iter().map(ToString::to_string).collect();
        let place = target.list();
        let expected =
            format!("{place}[0]: too many bytes: put a note in the place of 2 images (images)");
        assert_eq!(told, [expected]);
    }
}

/// Servers that number calls per turn use the same ids all over. The work grows with the number of calls.
#[test]
fn many_calls_with_one_id_are_repaired_at_once() {
    let target = Target::of_protocol("openai-responses", None).unwrap();
    let mut input = vec![user("q")];
    for _ in 0..4_000 {
        input.push(
            json!({"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{}"}),
        );
        input.push(json!({"type": "function_call_output", "call_id": "call_0", "output": "r"}));
    }
    let calls: Vec<Value> = (0..4_000)
        .map(|at| json!({"type": "function_call", "call_id": format!("c{at}"), "name": "f", "arguments": "{}"}))
        .collect();
    input.extend(calls);
    let text = json!({"model": "m", "input": input}).to_string();
    let begin = std::time::Instant::now();
    let repaired =
        plimsoll_foreign::repair_request(&text, &target, plimsoll_foreign::Reasoning::Keep);
    let repaired = repaired.unwrap();
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    assert_eq!(repaired.repairs.len(), 2 * 3_999 + 4_000);
    assert!(repaired.request.contains("\"call_0_4000\""));
}

#[test]
fn a_text_that_was_cut_within_a_character_is_readable() {
    let request = r#"{"model":"m","messages":[{"role":"user","content":"a \ud83d b"}]}"#;
    let target = Target::Chat(Dialect::default());
    let repaired = repair_request(request, &target, Reasoning::Keep).unwrap();
    assert_eq!(repaired.request, request.replace("ud83d", "ufffd"));
    let [repair] = repaired.repairs.as_slice() else {
        panic!("{:?}", repaired.repairs);
    };
    assert!(repair.to_string().contains("half a character"), "{repair}");
}
