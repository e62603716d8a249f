//! Messages of an imported history that no policy knows to keep: what stands for others in the
//! provider's own form, what loads tools, and what a person said if clients speak in the user's role.

use plimsoll_context::{Message, Opaque, Part};
use serde_json::Value;

use crate::canonical::Target;

/// A block that stands for all that came before it.
const COMPACTION: &str = "compaction";
/// Items and blocks that load tools, or ask for them: without them the model would not see these
/// tools any more.
const TOOL_LOADING: [&str; 4] = [
    "tool_reference",
    "tool_search_tool_result",
    "tool_search_call",
    "tool_search_output",
];

/// Returns the messages that must stay.
pub(super) fn of(messages: &[Message], target: &Target) -> Vec<usize> {
    let form = target.form();
    let origin = form.origin();
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
    standing.extend(form.persons(messages));
    standing.sort_unstable();
    standing.dedup();
    standing
}

fn kind(opaque: &Opaque) -> String {
    let block: Value = serde_json::from_str(&opaque.data).unwrap_or_default();
    let kind = block.get("type").and_then(Value::as_str);
    kind.unwrap_or_default().to_owned()
}
