//! The items of Responses as the entries of a list.

use super::read;
use super::write::{InputWriter, RULES, ResponsesParts};
use super::{ReasoningItems, ResponsesProfile};
use crate::compose::TurnWriter;
use crate::document::{DocumentFormat, NewEntries};
use crate::normalize::Normalizer;
use plimsoll_context::Message;

/// The items of Responses.
pub static FORMAT: DocumentFormat = DocumentFormat {
    key: "input",
    system: Some("instructions"),
    has_items: true,
    read_system: read::instructions,
    read_entries: read::messages,
    read_tools: read::tools,
    write,
};

/// Writes messages together, because the kind of a result depends on its call.
fn write(messages: &[&Message]) -> NewEntries {
    // No reasoning is left out. The caller decides which may be sent.
    let profile = ResponsesProfile {
        reasoning: ReasoningItems::Plain,
        ..ResponsesProfile::openai()
    };
    let mut normalizer = Normalizer::new(RULES);
    let items = messages.iter().map(|message| {
        normalizer.message(message, &mut ResponsesParts::new(&profile));
        let turns = normalizer.open.turns.drain(..);
        let items = turns.map(|turn| InputWriter(&profile).json(&turn));
        items.collect()
    });
    Ok(items.collect())
}
