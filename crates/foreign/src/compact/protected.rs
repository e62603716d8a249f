//! Messages of an imported history that must stay and that no policy recognizes.
//!
//! These are the provider's own compaction, messages that load tools, and messages of a person if
//! clients also write in the user's role.

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
    if matches!(target, Target::Responses(_)) {
        standing.extend(persons(messages));
    }
    standing.sort_unstable();
    standing.dedup();
    standing
}

/// Returns the first and the last message of a person in a Responses history, if items of the client stand
/// before or behind it in the user's role.
fn persons(messages: &[Message]) -> Vec<usize> {
    let is_clients = |part: &Part| match part {
        Part::Opaque(opaque) => items::is_clients(&kind(opaque)),
        _ => false,
    };
    let users = messages.iter().enumerate();
    let users = users.filter(|(_, message)| message.is_user());
    let users: Vec<(usize, bool)> = users
        .map(|(index, message)| (index, !message.parts().iter().all(is_clients)))
        .collect();
    let mut persons = Vec::new();
    for (end, person) in [
        (users.first(), users.iter().find(|(_, person)| *person)),
        (users.last(), users.iter().rfind(|(_, person)| *person)),
    ] {
        if end != person {
            persons.extend(person.map(|(index, _)| *index));
        }
    }
    persons
}

fn kind(opaque: &Opaque) -> String {
    let block: Value = serde_json::from_str(&opaque.data).unwrap_or_default();
    let kind = block.get("type").and_then(Value::as_str);
    kind.unwrap_or_default().to_owned()
}
