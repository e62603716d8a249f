//! The example: a question, a reply that thinks and calls two tools at once, and their results. The
//! reply is decoded from a server's format, so its opaque parts are in the real form.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use plimsoll_agent::{Expects, Request, Sampling, ThinkingLevel, ToolChoice};
use plimsoll_context::{Breakpoint, CachePlan, Message, Part, Reply, Tokens, ToolSpec};
use serde_json::json;

const SYSTEM: &str = "Be brief.";
const TOOL: &str = "read";
const QUESTION: &str = "What do a.txt and b.txt say?";
const RESULTS: [&str; 2] = ["The sea is calm.", "Land!"];

/// The parsed file. Empty if it cannot be parsed, which the tests of the example exclude.
static REPLIES: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| toml::from_str(include_str!("../../data/samples.toml")).unwrap_or_default());

/// A request with the question only.
pub(super) fn question(level: Option<ThinkingLevel>) -> Request {
    request(level, vec![Message::user(QUESTION)])
}

/// The reply of this name in the file, in a server's format.
pub(super) fn reply(name: &str) -> &'static str {
    REPLIES.get(name).map_or("", String::as_str)
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
        .map(|(id, text)| Message::result(id, text))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reply_of_the_file_calls_the_tool_twice() {
        assert_eq!(REPLIES.len(), 10);
        for (name, reply) in REPLIES.iter() {
            assert!(serde_json::from_str::<serde_json::Value>(reply).is_ok());
            assert_eq!(reply.matches(r#""read""#).count(), 2, "{name}");
        }
    }
}
