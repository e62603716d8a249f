//! Messages of an imported history that must stay and that no policy recognizes.
//!
//! These are the provider's own compaction, and messages that load tools.

use plimsoll_context::{Message, Part};
use plimsoll_wire::__internals::openai_responses::items;

use super::outputs::item;

/// Items and blocks that stand for all messages before them, or that load tools or request that: without them, the
/// model would no longer see these tools.
const STANDING: [&str; 5] = [
    "compaction",
    "tool_reference",
    "tool_search_tool_result",
    "tool_search_call",
    "tool_search_output",
];

/// Returns the messages that must stay.
pub(super) fn of(messages: &[Message]) -> Vec<usize> {
    let stands = |part: &Part| match part {
        Part::Opaque(opaque) => STANDING.contains(&items::kind(&item(opaque))),
        _ => false,
    };
    let messages = messages.iter().enumerate();
    let standing = messages.filter(|(_, message)| message.parts().iter().any(stands));
    standing.map(|(index, _)| index).collect()
}
