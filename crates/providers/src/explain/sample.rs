//! The example: a question, an answer that thinks and calls two tools at once, and their results.
//! Replies are read as a server would send them, so that what is opaque in them is real.

use std::sync::Arc;

use plimsoll_agent::{Expects, Request, Sampling, ThinkingLevel, ToolChoice};
use plimsoll_context::{Breakpoint, CachePlan, CallId, Message, Reply, Tokens, ToolSpec};
use plimsoll_wire::openai_responses::{Profile, ReasoningItems};
use plimsoll_wire::{anthropic, openai_chat, openai_responses};
use serde_json::{Value, json};

const SYSTEM: &str = "Be brief.";
const QUESTION: &str = "What do a.txt and b.txt say?";
const THOUGHT: &str = "I read both at once.";
/// As long as what it stands for begins.
const OPAQUE: &str = "ZXhhbXBsZQ==";
const RESULTS: [(&str, &str); 2] = [
    ("call_0a1b2c3d", "The sea is calm."),
    ("call_4e5f6a7b", "Land!"),
];

/// A request with the question only.
pub(super) fn question(level: Option<ThinkingLevel>) -> Request {
    request(level, vec![Message::user(QUESTION)])
}

/// The example for Chat Completions.
pub(super) fn of_chat(level: ThinkingLevel) -> Request {
    let calls: Vec<Value> = calls(|id, arguments| {
        json!({ "id": id, "type": "function",
            "function": { "name": "read", "arguments": arguments.to_string() } })
    });
    let reply = json!({ "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "reasoning_content": THOUGHT, "tool_calls": calls,
    } }] });
    with(
        Some(level),
        openai_chat::read_reply(&reply.to_string()).ok(),
    )
}

/// The example for Responses.
pub(super) fn of_responses(level: ThinkingLevel, profile: &Profile) -> Request {
    let mut output = Vec::new();
    let summary = json!([{ "type": "summary_text", "text": THOUGHT }]);
    match profile.reasoning {
        ReasoningItems::None => {}
        ReasoningItems::Encrypted => output.push(json!({ "type": "reasoning", "id": "rs_0a1b2c",
            "summary": summary, "encrypted_content": OPAQUE })),
        ReasoningItems::Plain => output.push(json!({ "type": "reasoning", "id": "rs_0a1b2c",
            "summary": [], "content": [{ "type": "reasoning_text", "text": THOUGHT }] })),
    }
    output.extend(calls(|id, arguments| {
        json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "read",
            "arguments": arguments.to_string(), "status": "completed" })
    }));
    let reply = json!({ "id": "resp_0a1b2c", "object": "response", "status": "completed",
        "output": output });
    with(
        Some(level),
        openai_responses::read_reply(&reply.to_string()).ok(),
    )
}

/// The example for Messages; its answer is bound by `bind` to the request that it answers.
pub(super) fn of_messages(
    level: ThinkingLevel,
    profile: &anthropic::Profile,
    bind: impl FnOnce(Reply) -> Reply,
) -> Request {
    let mut content = Vec::new();
    if profile.thinking != anthropic::ThinkingStyle::None && level != ThinkingLevel::Off {
        content.push(json!({ "type": "thinking", "thinking": THOUGHT, "signature": OPAQUE }));
    }
    content.extend(calls(
        |id, arguments| json!({ "type": "tool_use", "id": id, "name": "read", "input": arguments }),
    ));
    let reply = json!({ "id": "msg_0a1b2c", "type": "message", "role": "assistant",
        "model": "claude", "content": content, "stop_reason": "tool_use",
        "usage": { "input_tokens": 1, "output_tokens": 1 } });
    let reply = anthropic::read_reply(&reply.to_string()).ok();
    with(Some(level), reply.map(bind))
}

/// The example with that answer.
fn with(level: Option<ThinkingLevel>, reply: Option<Reply>) -> Request {
    let mut messages = vec![Message::user(QUESTION)];
    if let Some(reply) = reply {
        messages.push(Message::Assistant { parts: reply.parts });
        let results = RESULTS.iter();
        messages.extend(results.map(|(id, said)| Message::result(CallId((*id).to_owned()), *said)));
    }
    request(level, messages)
}

fn calls(call: impl Fn(&str, Value) -> Value) -> Vec<Value> {
    let paths = RESULTS.iter().zip(["a.txt", "b.txt"]);
    let calls = paths.map(|((id, _), path)| call(id, json!({ "path": path })));
    calls.collect()
}

fn request(level: Option<ThinkingLevel>, messages: Vec<Message>) -> Request {
    let read = ToolSpec {
        name: "read".into(),
        description: "Reads a file.".into(),
        schema: json!({ "type": "object", "properties": { "path": { "type": "string" } },
            "required": ["path"] }),
    };
    let last = messages.len().saturating_sub(1);
    Request {
        system: SYSTEM.into(),
        hosted_tools: Arc::default(),
        tools: vec![read].into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        dynamic_context: None,
        tool_choice: ToolChoice::Auto,
        format: None,
        max_output: None,
        sampling: Sampling {
            thinking: level,
            ..Sampling::default()
        },
        counted: Tokens::ZERO,
        cache: CachePlan {
            breakpoints: vec![Breakpoint::System, Breakpoint::Message(last)],
            key: Some("session".into()),
            ..CachePlan::default()
        },
        expects: Expects::default(),
    }
}
