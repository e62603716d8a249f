//! The messages of Chat Completions as the entries of a list.

use std::sync::LazyLock;

use plimsoll_context::Message;

use super::dialect::Dialect;
use super::read;
use super::write::ChatWriter;
use crate::compose::TurnWriter;
use crate::document::DocumentFormat;
use crate::normalize::Normalizer;

/// The messages of Chat Completions.
pub static FORMAT: DocumentFormat = DocumentFormat {
    key: "messages",
    system: None,
    has_items: false,
    read_system: |_| Ok(None),
    read_entries: read::messages,
    read_tools: read::tools,
    write: |messages| Ok(messages.iter().map(|message| written(message)).collect()),
};

/// Writes a message in the dialect with the most features. A message without content has no entry.
fn written(message: &Message) -> Vec<String> {
    static DIALECT: LazyLock<Dialect> = LazyLock::new(Dialect::openai);
    let mut normalizer = Normalizer::new(DIALECT.rules());
    normalizer.message(message, &mut ChatWriter(&DIALECT));
    let turns = normalizer.open.turns.iter();
    turns.map(|turn| ChatWriter(&DIALECT).json(turn)).collect()
}
