//! The messages of Anthropic Messages as the entries of a list.

use plimsoll_context::Message;

use super::read;
use super::write::{MessagesParts, MessagesWriter, RULES};
use crate::compose::TurnWriter;
use crate::document::DocumentFormat;
use crate::normalize::Normalizer;
use crate::prompt_texts;
use crate::server_rules::ServerRules;

/// The messages of Anthropic Messages.
pub static FORMAT: DocumentFormat = DocumentFormat {
    key: "messages",
    system: Some("system"),
    has_items: false,
    read_system: read::system,
    read_entries: read::messages,
    read_tools: read::tools,
    write: |messages| Ok(messages.iter().map(|message| written(message)).collect()),
};

/// Writes a message by itself. A system message is a later one, in the user's role.
fn written(message: &Message) -> Vec<String> {
    let later;
    let message = match message {
        Message::System { .. } => {
            let text = message.text();
            later = Message::user(format!("{}\n\n{text}", prompt_texts::LATER_SYSTEM));
            &later
        }
        other => other,
    };
    let mut normalizer = Normalizer::new(ServerRules {
        user_first: false,
        ..RULES
    });
    normalizer.message(message, &mut MessagesParts::default());
    normalizer.open.end_batch();
    let turns = normalizer.open.turns.iter();
    turns.map(|turn| MessagesWriter.json(turn)).collect()
}
