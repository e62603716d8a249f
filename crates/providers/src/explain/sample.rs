//! The example: a question, and a tool that helps to answer it.

use std::sync::Arc;

use plimsoll_agent::{Expects, Request, Sampling, ThinkingLevel, ToolChoice};
use plimsoll_context::{Breakpoint, CachePlan, Message, Tokens, ToolSpec};
use serde_json::json;

/// Creates the request of the example.
pub(super) fn question(level: Option<ThinkingLevel>) -> Request {
    request(level, vec![Message::user("What do a.txt and b.txt say?")])
}

/// Creates a request with these messages.
pub(super) fn request(level: Option<ThinkingLevel>, messages: Vec<Message>) -> Request {
    let read = ToolSpec {
        name: "read".into(),
        description: "Reads a file.".into(),
        schema: json!({ "type": "object", "properties": { "path": { "type": "string" } },
            "required": ["path"] }),
    };
    let last = messages.len().saturating_sub(1);
    Request {
        system: "Be brief.".into(),
        hosted_tools: Arc::default(),
        tools: vec![read].into(),
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        dynamic_context: None,
        tool_choice: ToolChoice::Auto,
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
