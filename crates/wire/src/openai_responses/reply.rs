//! A Response object: its output items as parts, its stop reason, and its errors. `stream.rs` reads it,
//! whole or in events.

use std::collections::BTreeSet;

use plimsoll_context::{CallId, Part, StopReason, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::items;
use super::read::extra_keys;
use crate::call_ids::fnv1a;
use crate::error::WireError;

/// The keys of a message that a transcript represents, or that must not be sent back.
pub(super) const OF_MESSAGE: [&str; 5] = ["type", "role", "content", "id", "status"];

/// A Response object, its output in raw pieces.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    pub(super) id: Option<Value>,
    pub(super) object: Option<Value>,
    pub(super) model: Option<Value>,
    pub(super) status: Option<Value>,
    pub(super) error: Option<Value>,
    pub(super) incomplete_details: Option<Value>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    pub(super) usage: Option<Value>,
    /// The message of errors without a wrapper.
    pub(super) message: Option<Value>,
    pub(super) detail: Option<Value>,
}

impl Response<'_> {
    pub(super) fn status(&self) -> &str {
        text(self.status.as_ref()).unwrap_or("completed")
    }

    pub(super) fn model(&self) -> Option<String> {
        let model = text(self.model.as_ref());
        model.filter(|model| !model.is_empty()).map(str::to_owned)
    }

    /// Returns the stop reason. `None` if the model has not stopped.
    pub(super) fn stop(&self) -> Option<StopReason> {
        match self.status() {
            "completed" => Some(StopReason::Stop),
            "incomplete" => {
                let details = self.incomplete_details.as_ref();
                let reason = details.and_then(|details| details.get("reason")?.as_str());
                Some(match reason {
                    Some("max_output_tokens" | "max_tokens" | "length") => StopReason::Length,
                    Some("model_context_window_exceeded") => StopReason::Window,
                    Some("content_filter") => StopReason::ContentFilter,
                    _ => StopReason::Other,
                })
            }
            "in_progress" | "queued" => None,
            _ => Some(StopReason::Other),
        }
    }

    /// Returns an error if the response contains one. Some servers report errors with status 200.
    pub(super) fn refuse_error(&self, body: &str) -> Result<(), WireError> {
        let error = self.error.as_ref().filter(|error| !error.is_null());
        if let Some(error) = error {
            // The rest of the response repeats the request and is not part of the error.
            let body = json!({ "error": error }).to_string();
            return Err(WireError::Provider { body });
        }
        if self.status() == "failed" {
            let error = json!({"message": "the response failed, and nothing says why",
                "type": "server_error"});
            let body = json!({ "error": error }).to_string();
            return Err(WireError::Provider { body });
        }
        let bare = self.output.is_none()
            && self.id.is_none()
            && (self.message.is_some() || self.detail.is_some());
        if bare || text(self.object.as_ref()) == Some("error") {
            return Err(WireError::Provider { body: body.into() });
        }
        Ok(())
    }
}

/// Returns the parts of an output item, in their order.
pub(super) fn output_parts(item: &Value, raw: &str) -> Vec<Part> {
    match items::kind(item) {
        "message" => {
            // Some servers send the text itself.
            let whole = text(item.get("content"));
            let content = item.get("content").and_then(Value::as_array);
            let texts = content.into_iter().flatten().filter_map(part_text);
            let texts = whole.into_iter().chain(texts);
            let texts = texts.filter(|text| !text.is_empty()).map(Part::text);
            with_extra_keys(item, texts.collect())
        }
        "reasoning" => vec![Part::Thinking(items::thinking(item, raw))],
        "function_call" => vec![Part::ToolCall(tool_call(item, "arguments"))],
        "custom_tool_call" => vec![Part::ToolCall(tool_call(item, "input"))],
        // An item without a type cannot be sent back.
        "" => Vec::new(),
        _ => vec![Part::Opaque(items::opaque(raw))],
    }
}

/// Returns the texts of a message, preceded by the additional keys that must be sent back.
pub(super) fn with_extra_keys(item: &Value, texts: Vec<Part>) -> Vec<Part> {
    if texts.is_empty() {
        return texts;
    }
    let extra = extra_keys(item, &OF_MESSAGE).map(Part::Opaque);
    extra.into_iter().chain(texts).collect()
}

/// Reads a tool call of a reply. The item's id is dropped, because the server has not stored the item.
pub(super) fn tool_call(item: &Value, arguments: &str) -> ToolCall {
    let get = |key: &str| text(item.get(key)).unwrap_or_default();
    let own = match arguments {
        "input" => "",
        _ => "type",
    };
    let call_id = match get("call_id") {
        "" => get("id"),
        id => id,
    };
    let known = [own, "id", "call_id", "name", arguments, "status"];
    let arguments_text = match item.get(arguments) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        // Some servers send the object itself.
        Some(other) => other.to_string(),
    };
    let complete = get("status") != "incomplete" && arguments == "arguments";
    ToolCall {
        id: CallId(call_id.to_owned()),
        name: get("name").to_owned(),
        // Some servers send empty arguments for a tool without parameters. Arguments that were cut stay
        // as they are.
        arguments: if arguments_text.trim().is_empty() && complete {
            "{}".to_owned()
        } else {
            arguments_text
        },
        opaque: extra_keys(item, &known),
    }
}

/// Returns the text of one part of a message's content, or of a refusal.
fn part_text(part: &Value) -> Option<&str> {
    text(part.get("text")).or_else(|| text(part.get("refusal")))
}

/// Makes the ids of calls unique in their message. Missing ids are derived from the response's id, so
/// that equal responses have equal ids.
pub(super) fn unique_ids(parts: &mut [Part], response: &str) {
    let mut taken = BTreeSet::new();
    let mut number = 0;
    for part in parts {
        if let Part::ToolCall(call) = part {
            if call.id.0.is_empty() {
                call.id.0 = format!("call_{:016x}", fnv1a(response.as_bytes(), number));
            }
            while !taken.insert(call.id.0.clone()) {
                call.id.0.push('_');
            }
            number += 1;
        }
    }
}

pub(super) fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str)
}
