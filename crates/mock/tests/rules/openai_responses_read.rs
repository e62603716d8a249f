//! Requests of OpenAI Responses: reading them.

use plimsoll_context::{CallId, Message, Opaque, Part, Thinking, ToolCall};
use plimsoll_wire::WireError;
use plimsoll_wire::openai_responses::read;

fn own(data: &str) -> Opaque {
    Opaque {
        origin: "openai-responses".into(),
        data: data.into(),
    }
}

fn assistant(parts: Vec<Part>) -> Message {
    Message::Assistant { parts }
}

#[test]
fn a_request_is_read_as_it_stands() {
    let text = r#"{"model":"gpt-5","instructions":"Be brief.","max_output_tokens":1.50,
        "tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true},
            {"type":"web_search", "x":1.50}],
        "input":[
            {"role":"user","content":"hi"},
            {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]},
            {"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[
                {"type":"output_text","text":"a","annotations":[]},
                {"type":"refusal", "refusal":"no"}]},
            {"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","status":"completed"},
            {"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"r"}]},
            {"role":"assistant","content":"b"},
            {"role":"assistant","content":"c"},
            {"role":"assistant","content":"d","phase":"final_answer"},
            {"type":"mcp_approval_response","approval_request_id":"m","approve":true}
        ]}"#;
    let chat = read(text).unwrap();
    assert_eq!(chat.messages[0], Message::system("Be brief."));
    assert_eq!(chat.tools.len(), 1);
    assert_eq!(
        chat.hosted_tools,
        [own(r#"{"type":"web_search", "x":1.50}"#)]
    );
    let reasoning =
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]}"#;
    let approval = r#"{"type":"mcp_approval_response","approval_request_id":"m","approve":true}"#;
    assert_eq!(
        chat.messages[1..],
        [
            Message::user("hi"),
            assistant(vec![
                Part::Thinking(Thinking {
                    text: "hm".into(),
                    opaque: Some(own(reasoning)),
                }),
                Part::text("a"),
                Part::Opaque(own(r#"{"type":"refusal", "refusal":"no"}"#)),
                Part::ToolCall(ToolCall {
                    id: CallId("c".into()),
                    name: "f".into(),
                    arguments: "{}".into(),
                    opaque: Some(own(r#"{"id":"fc_1"}"#)),
                }),
            ]),
            Message::result(CallId("c".into()), "r"),
            Message::assistant("b"),
            assistant(vec![
                Part::text("c"),
                Part::Opaque(own(r#"{"phase":"final_answer"}"#)),
                Part::text("d"),
            ]),
            Message::User {
                parts: vec![Part::Opaque(own(approval))],
            },
        ]
    );
    let entries = chat.spans.iter().map(|span| span.entries.clone());
    assert_eq!(entries.take(3).collect::<Vec<_>>(), [0..0, 0..1, 1..4]);
    let said = read(r#"{"input":"hi"}"#).unwrap();
    assert_eq!(said.messages, [Message::user("hi")]);
}

#[test]
fn an_invalid_request_is_refused_with_its_place() {
    for (text, place) in [
        ("5", "the list"),
        (r#"{"messages":[]}"#, "input"),
        (r#"{"input":5}"#, "input"),
        (r#"{"input":[5]}"#, "input[0]"),
        (r#"[{}]"#, "[0].type"),
        (
            r#"{"input":[{"role":"tool","content":""}]}"#,
            "input[0].role",
        ),
        (r#"{"input":[{"role":"user"}]}"#, "input[0].content"),
        (
            r#"{"input":[{"role":"user","content":[{}]}]}"#,
            "input[0].content[0].type",
        ),
        (
            r#"{"input":[{"type":"function_call"}]}"#,
            "input[0].arguments",
        ),
        (
            r#"{"input":[{"type":"function_call_output","output":"x"}]}"#,
            "input[0].call_id",
        ),
        (
            r#"{"input":[],"tools":[{"type":"function"}]}"#,
            "tools[0].name",
        ),
        (r#"{"input":"x","instructions":5}"#, "instructions"),
    ] {
        match read(text) {
            Err(WireError::Expected { place: got, .. }) => assert_eq!(got, place, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in ["", "{", r#"{"input":[{]}"#] {
        assert!(
            matches!(read(text), Err(WireError::NotJson { .. })),
            "{text}"
        );
    }
}
