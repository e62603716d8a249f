//! Turns that the provider paused because a tool of its own was still at work: such a turn is sent
//! back as it stands and goes on. A call of such a tool that nobody answered, and that the turn does
//! not go on from, is refused (AM1). Decides nothing about the caller's tools; `ids.rs` knows those.

use std::collections::BTreeSet;

use plimsoll_context::{Message, Opaque, Part};
use serde_json::Value;

use super::shape::ORIGIN;

/// Whether the last message is a turn that was paused: it ends with a call of the provider's own tool.
pub(super) fn is_paused(messages: &[&Message]) -> bool {
    let Some(Message::Assistant { parts }) = messages.last() else {
        return false;
    };
    match parts.last() {
        Some(Part::Opaque(opaque)) => matches!(block(opaque), Some(Block::Call(_))),
        _ => false,
    }
}

/// The ids of calls of the provider's own tools that stay without a result, but those that a paused
/// turn goes on from.
pub(super) fn unanswered(messages: &[&Message]) -> BTreeSet<String> {
    let paused = is_paused(messages);
    let last = messages.len().saturating_sub(1);
    let mut open = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        for part in message.parts() {
            let Part::Opaque(opaque) = part else {
                continue;
            };
            match block(opaque) {
                Some(Block::Call(_)) if paused && index == last => {}
                Some(Block::Call(id)) => {
                    open.insert(id);
                }
                Some(Block::Result(id)) => {
                    open.remove(&id);
                }
                None => {}
            }
        }
    }
    open
}

/// The id of the call that a block is, where it is one of the provider's own tools.
pub(super) fn call(opaque: &Opaque) -> Option<String> {
    match block(opaque) {
        Some(Block::Call(id)) => Some(id),
        _ => None,
    }
}

/// Whether a block of a request calls a tool of the provider's own.
pub(super) fn calls_server(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use")
}

/// What a block has to do with the provider's own tools.
enum Block {
    Call(String),
    Result(String),
}

fn block(opaque: &Opaque) -> Option<Block> {
    // Most blocks are something else: looked at only as far as that takes.
    if opaque.origin != ORIGIN || !opaque.data.contains("_tool_") {
        return None;
    }
    let value: Value = serde_json::from_str(&opaque.data).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = text("type");
    if calls_server(kind) {
        Some(Block::Call(text("id").to_owned()))
    } else if kind.ends_with("_tool_result") {
        Some(Block::Result(text("tool_use_id").to_owned()))
    } else {
        None
    }
}
