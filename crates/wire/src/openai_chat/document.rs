//! The messages of Chat Completions as the entries of a list.

use std::sync::LazyLock;

use plimsoll_context::Message;
use serde_json::Value;

use super::dialect::Dialect;
use super::read;
use crate::compose::render;
use crate::document::DocumentFormat;
use crate::error::WireError;

/// The messages of Chat Completions.
pub static FORMAT: DocumentFormat = DocumentFormat {
    key: "messages",
    system: None,
    has_items: false,
    read_system: |_| Ok(None),
    read_entries: read::messages,
    read_tools: read::tools,
    write: |messages| messages.iter().copied().map(written).collect(),
};

/// Writes the message in the dialect with the most features. A message without content has no entry.
fn written(message: &Message) -> Result<Vec<String>, WireError> {
    static DIALECT: LazyLock<Dialect> = LazyLock::new(Dialect::openai);
    let body = render(&crate::RenderInput::default(), [message], &*DIALECT)?.body;
    let mut body: Value =
        serde_json::from_slice(&body).map_err(|error| WireError::not_json(&error))?;
    let first = body.get_mut("messages").and_then(|list| list.get_mut(0));
    Ok(first
        .map(|message| message.to_string())
        .into_iter()
        .collect())
}
