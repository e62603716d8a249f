//! Converts a session's view to a chat in OpenAI's format.

use std::sync::Arc;

use plimsoll::machine::{Entry, State};
use plimsoll::wire::RenderInput;
use plimsoll::wire::openai_chat::{self, Dialect};
use serde_json::Value;

use crate::error::CliError;

/// Returns the model and the system prompt of a log's last run.
pub(crate) fn started(log: &[Entry]) -> (String, Arc<str>) {
    let last = log.iter().rev().find_map(|entry| match entry {
        Entry::RunStarted { model, system, .. } => Some((model.clone(), Arc::clone(system))),
        _ => None,
    });
    last.unwrap_or_default()
}

/// Converts a view to a chat in OpenAI's format.
pub(crate) fn openai(model: &str, system: &str, state: &State) -> Result<Value, CliError> {
    let items = state.transcript().items().iter();
    let messages = items.map(|item| item.message.as_ref());
    let input = RenderInput {
        model,
        system: Some(system).filter(|text| !text.is_empty()),
        ..RenderInput::default()
    };
    let rendered = openai_chat::render(&input, messages, &Dialect::openai())?;
    let mut body: Value = serde_json::from_slice(&rendered.body)?;
    let messages = body.get_mut("messages").map(Value::take);
    Ok(serde_json::json!({ "messages": messages }))
}
