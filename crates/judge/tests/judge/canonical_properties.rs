//! Properties of every damaged request, on each protocol: after the repair it is valid, repairing
//! is idempotent, and every change is reported.

use plimsoll_judge::canonical::Rules;
use plimsoll_context::{CallId, Message, Opaque, Part, Thinking, ToolCall, ToolResult};
use plimsoll_judge::canonical::{Reasoning, Target, canonical, repair_request};
use plimsoll_wire::RenderInput;
use plimsoll_wire::openai_chat;
use plimsoll_wire::{anthropic, openai_responses};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::targets::{chats, claudes, responses};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z日🦀\"\\\\]{1,6}",
        1 => Just(String::new()),
        1 => Just(" \n".to_owned()),
    ]
}

/// Few, so that they meet; of all forms.
fn id() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just("a"),
        4 => Just("b"),
        2 => Just("D681PevKs"),
        1 => Just("x.y:z"),
        1 => Just(""),
        1 => Just("call_0123456789012345678901234567890123456789012345678901234567890123456789"),
    ]
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!("{\"a\": 1.50}")),
        1 => Just(json!("{\"a\":")),
        1 => Just(json!("")),
        1 => Just(json!({"a": 1})),
    ]
}

fn chat_message() -> impl Strategy<Value = Value> {
    let call = (id(), arguments()).prop_map(|(id, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}, "index": 0})
    });
    let content = prop_oneof![
        4 => text().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => text().prop_map(|text| json!([{"type": "text", "text": text}])),
        1 => text().prop_map(|text| json!([{"type": "text", "text": text}, {"type": "text", "text": "t"}])),
    ];
    let image = json!({"type": "image_url", "image_url": {"url": "https://x/y.png"}});
    let asks = (
        content,
        proptest::collection::vec(call, 0..3),
        proptest::option::of(text()),
        any::<bool>(),
    )
        .prop_map(|(content, calls, reasoning, extra)| {
            let mut message = json!({"role": "assistant", "content": content});
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            if let Some(reasoning) = reasoning {
                message["reasoning_content"] = reasoning.into();
            }
            if extra {
                message["annotations"] = json!([]);
            }
            message
        });
    let tool = (id(), text(), 0_u8..6).prop_map({
        let image = image.clone();
        move |(id, text, kind)| match kind {
            0 => {
                json!({"role": "tool", "tool_call_id": id, "content": [{"type": "text", "text": text}, image]})
            }
            _ => json!({"role": "tool", "tool_call_id": id, "content": text, "name": "f"}),
        }
    });
    prop_oneof![
        4 => text().prop_map(|text| json!({"role": "user", "content": text, "name": "ann"})),
        1 => text().prop_map(move |text| json!({"role": "user", "content": [{"type": "text", "text": text}, image]})),
        1 => text().prop_map(|text| json!({"role": "system", "content": text})),
        6 => asks,
        6 => tool,
        1 => Just(json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}})),
        1 => Just(json!({"role": "function", "name": "f", "content": "r"})),
        1 => Just(json!({"role": "assistant", "content": null, "refusal": "no"})),
        1 => prop_oneof![Just(json!(7)), Just(json!({"content": "who?"})), Just(json!({"role": "user", "content": [{"text": "?"}]}))],
    ]
}

fn item() -> impl Strategy<Value = Value> {
    let own = |prefix: &'static str| {
        prop_oneof![
            3 => Just(None),
            1 => Just(Some(format!("{prefix}_1"))),
            1 => Just(Some("other_1".to_owned())),
        ]
    };
    let call = (id(), own("fc")).prop_map(|(id, own)| {
        let mut call =
            json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
        if let Some(own) = own {
            call["id"] = own.into();
        }
        call
    });
    let said = (text(), own("msg")).prop_map(|(text, own)| {
        let mut said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]});
        if let Some(own) = own {
            said["id"] = own.into();
        }
        said
    });
    let reasoning = any::<bool>().prop_map(|encrypted| {
        let mut item = json!({"type": "reasoning", "id": "rs_1", "summary": []});
        if encrypted {
            item["encrypted_content"] = "gAAA".into();
        }
        item
    });
    prop_oneof![
        4 => text().prop_map(|text| json!({"role": "user", "content": text})),
        1 => text().prop_map(|text| json!({"type": "message", "role": "developer", "content": text})),
        3 => said,
        5 => call,
        5 => (id(), text()).prop_map(|(id, text)| json!({"type": "function_call_output", "call_id": id, "output": text})),
        3 => reasoning,
        1 => id().prop_map(|id| json!({"type": "custom_tool_call", "call_id": id, "name": "g", "input": "x"})),
        1 => id().prop_map(|id| json!({"type": "custom_tool_call_output", "call_id": id, "output": "x"})),
        1 => id().prop_map(|id| json!({"type": "computer_call", "id": "cu_1", "call_id": id, "action": {}})),
        1 => id().prop_map(|id| json!({"type": "computer_call_output", "call_id": id, "output": {}})),
        1 => Just(json!({"type": "web_search_call", "id": "ws_1", "status": "completed"})),
        1 => Just(json!({"type": "compaction", "id": "cmp_1"})),
        1 => Just(json!({"type": "item_reference", "id": "msg_1"})),
        1 => prop_oneof![Just(json!(7)), Just(json!({"type": "frob"})), Just(json!({"type": "function_call"}))],
    ]
}

fn block() -> impl Strategy<Value = Value> {
    let thinking = (text(), 0_u8..4).prop_map(|(text, kind)| match kind {
        0 => json!({"type": "thinking", "thinking": text}),
        1 => json!({"type": "thinking", "thinking": text, "signature": ""}),
        2 => json!({"type": "redacted_thinking", "data": "EmwK"}),
        _ => json!({"signature": "EqQB", "thinking": text, "type": "thinking"}),
    });
    let image = |kind: &'static str| json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": "AA=="}});
    let result = (id(), text(), 0_u8..8).prop_map(move |(id, text, kind)| {
        let content = match kind {
            0 => json!([{"type": "text", "text": text}, image("image/png")]),
            1 => json!([image("image/png"), {"type": "frob"}]),
            2 => Value::Null,
            _ => Value::from(text),
        };
        let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        if kind % 3 == 0 {
            result["is_error"] = true.into();
        }
        result
    });
    let block = prop_oneof![
        6 => text().prop_map(|text| json!({"type": "text", "text": text})),
        5 => id().prop_map(|id| json!({"type": "tool_use", "id": id, "name": "f", "input": {"a": 1.50}})),
        5 => result,
        3 => thinking,
        1 => Just(image("image/tiff")),
        1 => id().prop_map(|id| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})),
        1 => id().prop_map(|id| json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})),
        1 => Just(json!({"type": "frob"})),
        1 => Just(json!({"type": "text", "text": "c", "citations": [{"type": "x"}]})),
    ];
    (block, 0_u8..8).prop_map(|(mut block, mark)| {
        if mark == 0 {
            block["cache_control"] = json!({"type": "ephemeral"});
        } else if mark == 1 {
            block["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        }
        block
    })
}

fn claude_message() -> impl Strategy<Value = Value> {
    let role = prop_oneof![
        8 => Just("user"),
        8 => Just("assistant"),
        1 => Just("system"),
        1 => Just("narrator"),
    ];
    let content = prop_oneof![
        1 => text().prop_map(Value::from),
        6 => proptest::collection::vec(block(), 0..4).prop_map(Value::from),
    ];
    (role, content).prop_map(|(role, content)| json!({"role": role, "content": content}))
}

/// Judges what a request is repaired to.
fn judge(list: &[Value], target: &Target, request: &Value) -> Result<(), TestCaseError> {
    let text = request.to_string();
    let repaired = repair_request(&text, target, Reasoning::Keep).unwrap();
    let what = || {
        format!(
            "{target:?}\n{text}\n{}\n{:#?}",
            repaired.request, repaired.repairs
        )
    };
    prop_assert!(
        repaired.faults.is_empty(),
        "{:?}\n{}",
        repaired.faults,
        what()
    );
    if request.get("model").is_some() {
        let after: Value = serde_json::from_str(&repaired.request).unwrap();
        let faults = target.validate(&after);
        prop_assert!(faults.is_empty(), "{faults:?}\n{}", what());
    }
    prop_assert_eq!(
        repaired.repairs.is_empty(),
        repaired.request == text,
        "{}",
        what()
    );
    // What is not there any more as it was is told.
    let after: Value = serde_json::from_str(&repaired.request).unwrap();
    let key = if matches!(target, Target::Responses(_)) {
        "input"
    } else {
        "messages"
    };
    let kept = match &after {
        Value::Array(list) => list.clone(),
        after => after[key].as_array().unwrap().clone(),
    };
    let told: String = repaired
        .repairs
        .iter()
        .map(|one| format!("{one}\n"))
        .collect();
    let marks = told.contains("breakpoints of the cache");
    for (index, item) in list.iter().enumerate() {
        let place = format!("{key}[{index}]");
        // Items of one turn are told together, under the first.
        let turn = matches!(target, Target::Responses(_)) && told.contains(key);
        let same = kept.contains(item) || marks || turn;
        prop_assert!(same || told.contains(&place), "{place}\n{}", what());
    }
    let again = repair_request(&repaired.request, target, Reasoning::Keep).unwrap();
    prop_assert!(
        again.repairs.is_empty(),
        "again: {:#?}\n{}",
        again.repairs,
        what()
    );
    prop_assert_eq!(&again.request, &repaired.request);
    prop_assert_eq!(
        repair_request(&text, target, Reasoning::Keep).unwrap(),
        repaired
    );
    Ok(())
}

proptest! {
    #[test]
    fn every_damaged_chat_is_mended(
        list in proptest::collection::vec(chat_message(), 1..12),
        request in any::<bool>(),
    ) {
        for target in chats() {
            let whole = if request { json!({"model": "m", "messages": list, "temperature": 1}) } else { Value::from(list.clone()) };
            if has_something(&list) {
                judge(&list, &target, &whole)?;
            }
        }
    }

    #[test]
    fn every_damaged_history_of_responses_is_mended(
        list in proptest::collection::vec(item(), 1..12),
        stored in any::<bool>(),
    ) {
        for target in responses() {
            let whole = json!({"model": "m", "store": stored, "input": list});
            judge(&list, &target, &whole)?;
        }
    }

    #[test]
    fn every_damaged_request_to_claude_is_mended(
        list in proptest::collection::vec(claude_message(), 1..9),
        system in proptest::option::of(text()),
        thinks in any::<bool>(),
    ) {
        for target in claudes() {
            let mut whole = json!({"model": "claude", "max_tokens": 4000, "messages": list});
            if let Some(system) = &system {
                whole["system"] = json!([{"type": "text", "text": system}]);
            }
            let Target::Messages(profile) = &target else {
                continue;
            };
            if thinks
                && matches!(
                    profile.thinking,
                    anthropic::ThinkingStyle::Budget | anthropic::ThinkingStyle::Unknown
                )
            {
                whole["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
            }
            judge(&list, &target, &whole)?;
            judge(&list, &target, &json!({"messages": list}))?;
        }
    }

    #[test]
    fn nothing_that_is_read_breaks_anything(text in "[\\[\\]{}\",:a-z0-9 ]{0,60}", wire in 0_usize..3) {
        let target = [chats(), responses(), claudes()][wire][0].clone();
        let _ = repair_request(&text, &target, Reasoning::Drop);
        let _ = repair_request(&format!("{{\"messages\":[{text}],\"input\":[{text}]}}"), &target, Reasoning::Keep);
    }

    #[test]
    fn every_damaged_transcript_becomes_one_that_renders_valid(
        messages in proptest::collection::vec(any_message(), 0..12),
    ) {
        for target in chats().into_iter().chain(responses()).chain(claudes()) {
            let whole = canonical(messages.clone(), &target);
            let kept: Vec<Message> = whole.messages.into_iter().map(|(_, message)| message).collect();
            let body = match &target {
                Target::Chat(dialect) => {
                    openai_chat::render(&RenderInput { model: "m", system: Some("s"), ..Default::default() }, &kept, dialect).unwrap().body
                }
                Target::Responses(profile) => {
                    openai_responses::render(&RenderInput { model: "m", ..Default::default() }, &kept, profile).unwrap().body
                }
                Target::Messages(profile) => {
                    anthropic::render(&RenderInput { model: "m", ..Default::default() }, &kept, profile).unwrap().body
                }
            };
            let body: Value = serde_json::from_slice(&body).unwrap();
            let faults = target.validate(&body);
            prop_assert!(faults.is_empty(), "{target:?} {faults:?}\n{body}\n{kept:?}");
            let again = canonical(kept.clone(), &target);
            prop_assert!(again.repairs.is_empty(), "{:?}", again.repairs);
            let again: Vec<Message> = again.messages.into_iter().map(|(_, message)| message).collect();
            prop_assert_eq!(again, kept);
        }
    }
}

/// Whether anything is said: a chat of nothing cannot be repaired into something.
fn has_something(list: &[Value]) -> bool {
    list.iter().any(|message| {
        message["role"] == "user"
            && message["content"]
                .as_str()
                .is_some_and(|text| !text.trim().is_empty())
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let opaque = prop_oneof![
        Just((
            "anthropic",
            r#"{"type":"server_tool_use","id":"a","name":"s","input":{}}"#
        )),
        Just((
            "anthropic",
            r#"{"type":"web_search_tool_result","tool_use_id":"a","content":[]}"#
        )),
        Just((
            "anthropic",
            r#"{"type":"tool_use","id":"a","name":"s","input":{}}"#
        )),
        Just(("anthropic", r#"{"type":"thinking","thinking":"a"}"#)),
        Just((
            "openai-chat",
            r#"{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}"#
        )),
        Just(("openai-chat", r#"{"a":1}"#)),
        Just((
            "openai-responses",
            r#"{"type":"computer_call","id":"cu_1","call_id":"a"}"#
        )),
        Just((
            "openai-responses",
            r#"{"type":"computer_call_output","call_id":"a"}"#
        )),
        Just((
            "openai-responses",
            r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"g"}"#
        )),
        Just(("openai-responses", r#"{"type":"frob"}"#)),
        Just(("else", "[")),
    ]
    .prop_map(|(origin, data)| Opaque {
        origin: origin.into(),
        data: data.into(),
    });
    let thinking = (text(), proptest::option::of(opaque.clone()))
        .prop_map(|(text, opaque)| Part::Thinking(Thinking { text, opaque }));
    let part = prop_oneof![
        4 => text().prop_map(Part::text),
        1 => opaque.clone().prop_map(Part::Opaque),
    ];
    let said = prop_oneof![
        3 => part.clone(),
        1 => thinking,
        3 => (id(), arguments()).prop_map(|(id, arguments)| Part::ToolCall(ToolCall {
            id: CallId(id.into()),
            name: "f/g".into(),
            arguments: arguments.as_str().unwrap_or("[]").into(),
            opaque: None,
        })),
    ];
    let parts = |part| proptest::collection::vec(part, 0..4);
    prop_oneof![
        3 => parts(part.clone().boxed()).prop_map(|parts| Message::User { parts }),
        1 => parts(part.clone().boxed()).prop_map(|parts| Message::System { parts }),
        5 => parts(said.boxed()).prop_map(|parts| Message::Assistant { parts }),
        5 => (id(), parts(part.boxed()), any::<bool>()).prop_map(|(id, parts, is_error)| {
            Message::ToolResult(ToolResult { call: CallId(id.into()), parts, is_error })
        }),
        1 => text().prop_map(|text| Message::Summary { text }),
        1 => text().prop_map(|text| Message::Notice { text }),
    ]
}
