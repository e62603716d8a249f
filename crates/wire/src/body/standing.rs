//! Messages of an imported history that no policy knows to keep: what stands for others in the
//! provider's own form, what loads tools, and what a person said if clients speak in the user's role.

use plimsoll_context::{Message, Opaque, Part};
use serde_json::Value;

use crate::canonical::Target;
use crate::{anthropic, openai_chat, openai_responses};

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
    let origin = match target {
        Target::Chat(_) => openai_chat::ORIGIN,
        Target::Responses(_) => openai_responses::ORIGIN,
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

/// What a person said first and last, where the first and the last in the user's place are items of
/// the client's.
fn persons(messages: &[Message]) -> Vec<usize> {
    let is_clients = |part: &Part| matches!(part, Part::Opaque(opaque) if openai_responses::is_clients(&kind(opaque)));
    let users: Vec<(usize, bool)> = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message.is_user())
        .map(|(index, message)| (index, !message.parts().iter().all(is_clients)))
        .collect();
    let mut standing = Vec::new();
    for (end, persons) in [
        (users.first(), users.iter().find(|(_, persons)| *persons)),
        (users.last(), users.iter().rfind(|(_, persons)| *persons)),
    ] {
        if end != persons {
            standing.extend(persons.map(|(index, _)| *index));
        }
    }
    standing
}

fn kind(opaque: &Opaque) -> String {
    let block: Value = serde_json::from_str(&opaque.data).unwrap_or_default();
    let kind = block.get("type").and_then(Value::as_str);
    kind.unwrap_or_default().to_owned()
}
