//! Chats as users have them, read and written back.

use plimsoll_context::{CallId, Image, Message, Part, Source, Thinking};
use plimsoll_testkit::messages::tool_call as call;
use plimsoll_wire::openai_chat::read;
use serde_json::json;

#[test]
fn every_form_of_a_message() {
    let thinking = Part::Thinking(Thinking {
        text: "hm".into(),
        opaque: None,
    });
    let rows = vec![
        (
            json!({"role": "system", "content": "s"}),
            Message::system("s"),
        ),
        (
            json!({"role": "developer", "content": "s", "name": "n"}),
            Message::system("s"),
        ),
        (json!({"role": "user", "content": ""}), Message::user("")),
        (
            json!({"role": "user", "content": null}),
            Message::User { parts: vec![] },
        ),
        (
            json!({"role": "user", "content": [
                "bare", {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
                {"type": "image_url", "image_url": "https://x/y.png"},
            ]}),
            Message::User {
                parts: vec![
                    Part::text("bare"),
                    Part::text("a"),
                    Part::Image(Image {
                        source: Source::Data {
                            media_type: "image/png".into(),
                            base64: "AA".into(),
                        },
                        size: None,
                        detail: Some("low".into()),
                    }),
                    Part::Image(Image {
                        source: Source::Url {
                            url: "https://x/y.png".into(),
                        },
                        size: None,
                        detail: None,
                    }),
                ],
            },
        ),
        (
            json!({"role": "assistant", "content": "x", "reasoning_content": "hm", "x_meta": 1}),
            Message::Assistant {
                parts: vec![thinking.clone(), Part::text("x")],
            },
        ),
        (
            json!({"role": "assistant", "content": null, "reasoning": "hm", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"b\": 1.50}"}},
                {"id": "b", "function": {"name": "g", "arguments": {"z": 1, "a": 2}}},
            ]}),
            Message::Assistant {
                parts: vec![
                    thinking,
                    call("a", "f", "{\"b\": 1.50}"),
                    call("b", "g", "{\"z\":1,\"a\":2}"),
                ],
            },
        ),
        (
            json!({"role": "assistant"}),
            Message::Assistant { parts: vec![] },
        ),
        (
            json!({"role": "assistant", "content": null, "tool_calls": null, "refusal": null}),
            Message::Assistant { parts: vec![] },
        ),
        (
            json!({"role": "tool", "tool_call_id": "a", "content": "done", "x_is_error": true}),
            Message::result(CallId("a".into()), "done"),
        ),
    ];
    let list: Vec<_> = rows.iter().map(|(json, _)| json.clone()).collect();
    let text = json!(list).to_string();
    let chat = read(&text).unwrap();
    for (index, (json, expected)) in rows.into_iter().enumerate() {
        assert_eq!(chat.messages[index], expected, "{json}");
    }
}

#[test]
fn the_older_form_of_calls_finds_its_results() {
    let text = json!({"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "done"},
        {"role": "function", "name": "f", "content": "nobody asked"},
    ]})
    .to_string();
    let chat = read(&text).unwrap();
    let Message::ToolResult(result) = &chat.messages[2] else {
        panic!("{:?}", chat.messages);
    };
    assert_eq!(chat.messages[1].calls().next().unwrap().id, result.call);
    let Message::ToolResult(orphan) = &chat.messages[3] else {
        panic!("{:?}", chat.messages);
    };
    assert_ne!(orphan.call, result.call);
}

#[test]
fn an_error_names_the_place() {
    for (text, expected) in [
        (
            "",
            "not valid JSON: EOF while parsing a value at line 1 column 0",
        ),
        (
            "5",
            "the chat: expected an array of messages, or an object with `messages`, got number",
        ),
        (
            "{}",
            "messages: expected an array of messages (a chat is an object with `messages` or `input`, or such an array alone), got nothing",
        ),
        (
            r#"{"messages": {"a": 1}}"#,
            "messages: expected an array of messages, or an object with `messages`, got object",
        ),
        ("[5]", "[0]: expected an object, got number"),
        (
            r#"{"messages":[{"content":"x"}]}"#,
            "messages[0].role: expected string, got nothing",
        ),
        (
            r#"{"messages":[{"role":"robot"}]}"#,
            "messages[0].role: expected system, developer, user, assistant, tool or function, got \"robot\"",
        ),
        (
            r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":5}]}"#,
            "messages[1].content: expected string, array or null, got number",
        ),
        (
            r#"[{"role":"user","content":[{"type":"text"}]}]"#,
            "[0].content[0].text: expected string, got nothing",
        ),
        (
            r#"[{"role":"user","content":[5]}]"#,
            "[0].content[0]: expected an object, got number",
        ),
        (
            r#"[{"role":"tool","content":"x"}]"#,
            "[0].tool_call_id: expected string, got nothing",
        ),
        (
            r#"[{"role":"assistant","tool_calls":{}}]"#,
            "[0].tool_calls: expected array or null, got object",
        ),
        (
            r#"[{"role":"assistant","tool_calls":[{"id":null}]}]"#,
            "[0].tool_calls[0].id: expected string, got null",
        ),
        (
            r#"[{"role":"assistant","tool_calls":[{"id":"a"}]}]"#,
            "[0].tool_calls[0].function: expected an object, got nothing",
        ),
        (
            r#"[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":5}}]}]"#,
            "[0].tool_calls[0].function.arguments: expected string, got number",
        ),
        (
            r#"{"messages":[],"tools":5}"#,
            "tools: expected array or null, got number",
        ),
        (
            r#"{"messages":[],"tools":[{"function":{}}]}"#,
            "tools[0].function.name: expected string, got nothing",
        ),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn tools_are_read() {
    let text = r#"{"budget_tokens": 8000, "tools": [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"b": 1, "a": 2}}},
        {"name": "bare"}], "messages": []}"#;
    let chat = read(text).unwrap();
    assert_eq!(chat.tools.len(), 2);
    assert_eq!(chat.tools[0].schema.to_string(), r#"{"b":1,"a":2}"#);
}
