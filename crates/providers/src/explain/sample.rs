//! The example: a question, a reply that thinks and calls two tools at once, and their results. The
//! reply is decoded from a server's format, so its opaque parts are in the real form.

use std::sync::Arc;

use plimsoll_agent::{Expects, Request, Sampling, ThinkingLevel, ToolChoice};
use plimsoll_context::{Breakpoint, CachePlan, Message, Part, Reply, Tokens, ToolSpec};
use serde_json::json;

use crate::protocol::SampleReply;

const SYSTEM: &str = "Be brief.";
const TOOL: &str = "read";
const QUESTION: &str = "What do a.txt and b.txt say?";
const THOUGHT: &str = "I read both at once.";
/// A placeholder for encrypted content, in valid base64.
const OPAQUE: &str = "ZXhhbXBsZQ==";
const RESULTS: [(&str, &str); 2] = [
    ("call_0a1b2c3d", "The sea is calm."),
    ("call_4e5f6a7b", "Land!"),
];

/// A request with the question only.
pub(super) fn question(level: Option<ThinkingLevel>) -> Request {
    request(level, vec![Message::user(QUESTION)])
}

/// The content of the model's reply.
pub(super) fn reply() -> SampleReply {
    let calls = RESULTS.iter().zip(["a.txt", "b.txt"]);
    SampleReply {
        thought: THOUGHT,
        opaque: OPAQUE,
        calls: calls
            .map(|((id, _), path)| (*id, json!({ "path": path })))
            .collect(),
        tool: TOOL,
    }
}

/// A request with the question, that reply and the results of its calls.
pub(super) fn answered(level: ThinkingLevel, reply: Reply) -> Request {
    let mut messages = vec![Message::user(QUESTION)];
    let calls = reply.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.id.clone()),
        _ => None,
    });
    let results = calls.zip(RESULTS);
    let results: Vec<Message> = results
        .map(|(id, (_, text))| Message::result(id, text))
        .collect();
    messages.push(Message::Assistant { parts: reply.parts });
    messages.extend(results);
    request(Some(level), messages)
}

fn request(level: Option<ThinkingLevel>, messages: Vec<Message>) -> Request {
    let read = ToolSpec {
        name: TOOL.into(),
        description: "Reads a file.".into(),
        schema: json!({ "type": "object", "properties": { "path": { "type": "string" } },
            "required": ["path"] }),
    };
    let last = messages.len().saturating_sub(1);
    Request {
        system: SYSTEM.into(),
        hosted_tools: Arc::default(),
        tools: vec![read].into(),
        messages: messages.into_iter().collect(),
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
