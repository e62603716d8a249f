//! A chat from a file or standard input, on any of the three protocols.

use std::borrow::Cow;
use std::sync::Arc;

use plimsoll::config::token_counter;
use plimsoll::foreign::{self, Chat, Reasoning, Target};
use plimsoll::tokens::TokenCounter;
use plimsoll::wire::WireError;
use serde_json::json;

use crate::error::CliError;
use crate::input::InputChat;
use crate::repair;

/// The error for an empty input.
const EMPTY: &str = "the input is empty; give a chat as JSON: {\"messages\": [...]}, {\"input\": [...]} or a bare array";

/// Returns the counter with this name, which the arguments have checked.
pub(crate) fn counter(name: &str) -> Result<Arc<dyn TokenCounter>, CliError> {
    let counter = token_counter(name);
    counter.ok_or_else(|| CliError::usage(format!("there is no counter `{name}`")))
}

/// Reads a chat without repairing it, or takes that of a log. Returns it with the rules that apply, as
/// [`repair::target`] chooses them.
pub(crate) fn read<'a>(
    input: &'a mut InputChat,
    model: Option<&str>,
    protocol: Option<&str>,
) -> Result<(Chat<'a>, Target), CliError> {
    if let Some((chat, target)) = input.log.take() {
        let request = json!({ chat.protocol.list(): [] });
        let target = repair::target(model, protocol, &request, Some(&target))?;
        return Ok((chat, target));
    }
    if input.text.trim().is_empty() {
        return Err(CliError::failed(EMPTY));
    }
    let value = foreign::parse(&input.text).map_err(unread)?;
    let target = repair::target(model, protocol, &value, None)?;
    let chat = Chat::of_value(&input.text, value, target.protocol()).map_err(unread)?;
    Ok((chat, target))
}

/// Ends a chat that was changed, or comes from a log, with a line break. Another one is returned byte for byte.
pub(crate) fn ended(json: Cow<'_, str>, is_repaired: bool) -> String {
    let is_changed = is_repaired || matches!(json, Cow::Owned(_));
    let mut json = json.into_owned();
    if is_changed && !json.ends_with('\n') {
        json.push('\n');
    }
    json
}

/// Returns the treatment of reasoning that `--drop-thinking` asks for.
pub(crate) fn reasoning(drops: bool) -> Reasoning {
    match drops {
        true => Reasoning::Drop,
        false => Reasoning::Keep,
    }
}

/// Converts an error to the message that a chat cannot be read.
pub(crate) fn unread(error: WireError) -> CliError {
    match error {
        WireError::NotJson { reason } => CliError::failed(format!(
            "the input is not valid JSON ({reason}); give a chat as {{\"messages\": [...]}}, {{\"input\": [...]}} or a bare array of messages"
        )),
        error => CliError::failed(error),
    }
}
