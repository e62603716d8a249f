//! Names and ids of earlier tool calls as Chat Completions of OpenAI takes them: a model makes names
//! up, and other providers' ids are longer. Not of Responses and Messages; their own tests have that.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use plimsoll_context::{CallId, Message, Part, ToolCall, ToolSpec};
use plimsoll_wire::openai_chat::{
    Dialect, LeftOut, RenderInput, ToolChoice, refusal, render, validate,
};
use plimsoll_wire::overflow::{Verdict, classify};
use serde_json::{Value, json};

fn called(name: &str, id: &str) -> Vec<Message> {
    let call = ToolCall {
        id: CallId(id.into()),
        name: name.into(),
        arguments: "{}".into(),
        opaque: None,
    };
    vec![
        Message::user("q"),
        Message::Assistant {
            parts: vec![Part::ToolCall(call)],
        },
        Message::result(CallId(id.into()), "there is no such tool"),
    ]
}

fn request(messages: &[Message], dialect: &Dialect) -> (Value, Vec<LeftOut>) {
    let input = RenderInput {
        model: "m",
        ..RenderInput::default()
    };
    let rendered = render(&input, messages, dialect).unwrap();
    let notes = rendered.notes.iter().map(|note| note.what).collect();
    (serde_json::from_slice(&rendered.body).unwrap(), notes)
}

#[test]
fn a_name_that_the_model_made_up_goes_back_as_one_that_is_taken() {
    for (name, sent) in [
        ("functions.read", "functions_read"),
        ("läs fil", "l_s_fil"),
        ("", "_"),
        ("read-file_2", "read-file_2"),
    ] {
        for dialect in ["openai", "openrouter"] {
            let dialect = Dialect::named(dialect).unwrap();
            let (request, notes) = request(&called(name, "call_1"), &dialect);
            let call = &request["messages"][1]["tool_calls"][0];
            assert_eq!(call["function"]["name"], sent);
            assert_eq!(notes.contains(&LeftOut::Name), name != sent);
            assert_eq!(validate(&request, &dialect), []);
        }
        // Who does not mind gets what the model wrote.
        let llama = Dialect::named("llama.cpp").unwrap();
        let (request, _) = request(&called(name, "call_1"), &llama);
        assert_eq!(
            request["messages"][1]["tool_calls"][0]["function"]["name"],
            name
        );
    }
    let long = "x".repeat(70);
    let (request, _) = request(&called(&long, "call_1"), &Dialect::openai());
    let sent = request["messages"][1]["tool_calls"][0]["function"]["name"].as_str();
    assert_eq!(sent.unwrap().len(), 64);
}

#[test]
fn an_id_of_another_provider_that_is_too_long_becomes_a_short_one() {
    let long = "ws_689e2d4880a0819d98acca37694989b00b15d90494fc6b87";
    let forty = "ws_689e2d4880a0819d98acca37694989b00b15d";
    for (id, kept) in [("call_1", true), (forty, true), (long, false)] {
        let (request, _) = request(&called("f", id), &Dialect::openai());
        let sent = request["messages"][1]["tool_calls"][0]["id"]
            .as_str()
            .unwrap();
        assert_eq!((sent == id, sent.len() <= 40), (kept, true), "{sent}");
        assert_eq!(request["messages"][2]["tool_call_id"], sent);
        assert_eq!(validate(&request, &Dialect::openai()), []);
    }
}

/// Where it is declared and where it is demanded a tool is named as in calls of it.
#[test]
fn a_declared_tool_has_the_name_that_its_calls_have() {
    let tool = ToolSpec {
        name: "läs fil".into(),
        description: String::new(),
        schema: json!({"type": "object"}),
    };
    let input = RenderInput {
        model: "m",
        tools: &[tool],
        tool_choice: ToolChoice::Tool("läs fil".into()),
        ..RenderInput::default()
    };
    let openai = Dialect::openai();
    let rendered = render(&input, &called("läs fil", "call_1"), &openai).unwrap();
    let request: Value = serde_json::from_slice(&rendered.body).unwrap();
    for place in ["/tools/0", "/tool_choice", "/messages/1/tool_calls/0"] {
        let name = request.pointer(&format!("{place}/function/name"));
        assert_eq!(name, Some(&json!("l_s_fil")), "{place}");
    }
    assert_eq!(validate(&request, &openai), []);
}

#[test]
fn what_is_not_taken_is_refused_in_its_words() {
    let long = "x".repeat(51);
    let body = |name: &str, id: &str| {
        json!({"model": "m", "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": id, "content": "r"},
        ]})
    };
    for (request, words, code) in [
        (
            body("functions.read", "a"),
            "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. \
             Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
            "invalid_value",
        ),
        (
            body("f", &long),
            "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with \
             maximum length 40, but got a string with length 51 instead.",
            "string_above_max_length",
        ),
    ] {
        let openai = Dialect::openai();
        let fault = validate(&request, &openai).remove(0);
        assert_eq!(fault.words, words);
        let (status, body) = refusal(&fault, &openai);
        assert_eq!((status, &body["error"]["code"]), (400, &json!(code)));
        // Not a context that is too long.
        assert_eq!(classify(Some(400), &body.to_string()), Verdict::Invalid);
        assert_eq!(validate(&request, &Dialect::named("vllm").unwrap()), []);
    }
}
