//! Messages of an imported history that must stay and that no policy recognizes.
//!
//! These are the provider's own compaction, and messages that load tools.

use plimsoll_context::{Message, Opaque, Part};
use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::{Target, anthropic, openai_chat};
use serde_json::Value;

/// The type of a block that replaces all messages before it.
const COMPACTION: &str = "compaction";
/// Items and blocks that load tools, or request loading. Without them, the model would no longer see
/// these tools.
const TOOL_LOADING: [&str; 4] = [
    "tool_reference",
    "tool_search_tool_result",
    "tool_search_call",
    "tool_search_output",
];

/// Returns the messages that must stay.
pub(super) fn of(messages: &[Message], target: &Target) -> Vec<usize> {
    let origin = match target {
        Target::Chat(_) => openai_chat::ORIGIN,
        Target::Responses(_) => items::ORIGIN,
        Target::Messages(_) => anthropic::ORIGIN,
    };
    let mut standing = Vec::new();
    let mut compaction = None;
    for (index, message) in messages.iter().enumerate() {
        for part in message.parts() {
            match part {
                Part::Opaque(opaque) if opaque.origin == origin => match kind(opaque).as_str() {
                    COMPACTION => compaction = Some(index),
                    kind if TOOL_LOADING.contains(&kind) => standing.push(index),
                    _ => {}
                },
                _ => {}
            }
        }
    }
    standing.extend(compaction);
    standing.sort_unstable();
    standing.dedup();
    standing
}

fn kind(opaque: &Opaque) -> String {
    let block: Value = serde_json::from_str(&opaque.data).unwrap_or_default();
    let kind = block.get("type").and_then(Value::as_str);
    kind.unwrap_or_default().to_owned()
}
