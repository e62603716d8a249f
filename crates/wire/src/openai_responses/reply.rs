//! A Response object: its output items as parts, its stop reason, and its errors. `stream.rs` reads it,
//! whole or in events.

use std::collections::BTreeSet;

use plimsoll_context::{CallId, Opaque, Part, StopReason, ToolCall};
use serde_json::{Value, json};

use super::items;
use crate::call_ids::fnv1a;
use crate::error::WireError;
use crate::object::Object;
use crate::raw::{RawObject, parse};

/// The keys of a message that a transcript represents, or that must not be sent back.
pub(super) const OF_MESSAGE: [&str; 5] = ["type", "role", "content", "id", "status"];

/// Returns the status of a response. The default is a complete one.
pub(super) fn status(response: &RawObject<'_>) -> String {
    Some(response.text("status"))
        .filter(|status| !status.is_empty())
        .unwrap_or_else(|| "completed".to_owned())
}

/// Returns the stop reason. `None` if the model has not stopped.
pub(super) fn stop(response: &RawObject<'_>) -> Option<StopReason> {
    match status(response).as_str() {
        "completed" => Some(StopReason::Stop),
        "incomplete" => {
            let details = response.given("incomplete_details").map(parse::<Value>);
            let details = details.and_then(Result::ok).unwrap_or_default();
            Some(match text(details.get("reason")) {
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
pub(super) fn refuse_error(response: &RawObject<'_>, body: &str) -> Result<(), WireError> {
    // The rest of the response repeats the request and is not part of the error.
    let only = |error: &str| Object::new().raw("error", error).end();
    let bare = response.given("output").is_none()
        && response.given("id").is_none()
        && ["message", "detail"]
            .iter()
            .any(|key| response.given(key).is_some());
    let body = if let Some(error) = response.given("error") {
        only(error)
    } else if status(response) == "failed" {
        let words = "the response failed, and nothing says why";
        only(&json!({"message": words, "type": "server_error"}).to_string())
    } else if bare || response.text("object") == "error" {
        body.to_owned()
    } else {
        return Ok(());
    };
    Err(WireError::Provider { body })
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
        "function_call" | "custom_tool_call" => vec![Part::ToolCall(tool_call(item))],
        // Neither an item without a type nor one that only the client sends may come back, nor a call without its
        // output: nobody runs these tools.
        "" | "item_reference" | "function_call_output" | "custom_tool_call_output" => Vec::new(),
        _ if items::is_paired(item) => Vec::new(),
        kind if items::is_clients(kind) && !items::is_output(kind) => Vec::new(),
        // Such a block belongs into the content of a message.
        kind if items::is_content(kind) => part_text(item).map(Part::text).into_iter().collect(),
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
pub(super) fn tool_call(item: &Value) -> ToolCall {
    let get = |key: &str| text(item.get(key)).unwrap_or_default();
    let (input, own) = match items::kind(item) {
        // The type of a custom call is kept: its tool takes free text.
        "custom_tool_call" => ("input", ""),
        _ => ("arguments", "type"),
    };
    let call_id = match get("call_id") {
        "" => get("id"),
        id => id,
    };
    let arguments = match item.get(input) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        // Some servers send the object itself.
        Some(other) => other.to_string(),
    };
    // Some servers send empty arguments for a tool without parameters. Arguments that were cut stay as
    // they are.
    let is_whole = get("status") != "incomplete" && input == "arguments";
    let arguments = if is_whole && arguments.trim().is_empty() {
        "{}".to_owned()
    } else {
        arguments
    };
    ToolCall {
        id: CallId(call_id.to_owned()),
        name: get("name").to_owned(),
        arguments,
        opaque: extra_keys(item, &[own, "id", "call_id", "name", input, "status"]),
    }
}

/// Returns the additional keys of an item, which must be sent back with it.
fn extra_keys(item: &Value, known: &[&str]) -> Option<Opaque> {
    let mut extra = item.as_object()?.clone();
    extra.retain(|key, value| !known.contains(&key.as_str()) && !value.is_null());
    (!extra.is_empty()).then(|| items::opaque(&Value::Object(extra).to_string()))
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

#[cfg(test)]
mod tests {
    use plimsoll_context::Message;

    use super::*;
    use crate::RenderInput;
    use crate::openai_responses::{ResponsesProfile, render};

    #[test]
    fn an_item_that_only_a_client_sends_or_answers_is_not_sent_back() {
        for kind in [
            "function_call_output",
            "custom_tool_call_output",
            "item_reference",
            "",
        ] {
            let item = json!({ "type": kind, "id": "rs_1" });
            assert_eq!(output_parts(&item, &item.to_string()), [], "{kind}");
        }
        for kind in ["additional_tools", "compaction_trigger"] {
            let item = json!({ "type": kind, "tools": [] });
            assert_eq!(output_parts(&item, &item.to_string()), [], "{kind}");
        }
        for kind in ["computer_call", "shell_call", "apply_patch_call_output"] {
            let item = json!({ "type": kind, "id": "cu_1", "call_id": "call_1" });
            assert_eq!(output_parts(&item, &item.to_string()), [], "{kind}");
        }
        let unnamed = json!({ "type": "computer_call", "call_id": "" });
        assert_eq!(output_parts(&unnamed, &unnamed.to_string()), []);
        let shell = json!({ "type": "local_shell_call", "id": "lsh_1" });
        assert_eq!(output_parts(&shell, &shell.to_string()), []);
        let search = json!({ "type": "tool_search_call", "call_id": null, "execution": "server" });
        assert_eq!(output_parts(&search, &search.to_string()).len(), 1);
        let item = json!({ "type": "output_text", "text": "Hello", "content": [] });
        assert_eq!(
            output_parts(&item, &item.to_string()),
            [Part::text("Hello")]
        );
        let item = json!({ "type": "web_search_call", "id": "ws_1" });
        assert_eq!(output_parts(&item, &item.to_string()).len(), 1);
    }

    #[test]
    fn an_id_that_the_server_would_refuse_is_left_out_of_an_item() {
        let item = |id: &str| json!({ "type": "web_search_call", "id": id }).to_string();
        let sent = |id: &str| items::with_own_id("web_search_call", &item(id)).into_owned();
        assert_eq!(sent("ws_1"), item("ws_1"));
        for id in [format!("ws_{:065}", 1), "rs_1".to_owned(), String::new()] {
            assert_eq!(sent(&id), r#"{"type":"web_search_call"}"#, "{id}");
        }
    }

    #[test]
    fn reasoning_before_a_message_that_says_nothing_is_left_out() {
        let reasoning = json!({ "type": "reasoning", "summary": [], "encrypted_content": "gA" });
        let reasoning = items::thinking(&reasoning, &reasoning.to_string());
        let keys = items::opaque(r#"{"phase":"commentary"}"#);
        let sent = |text: &str| {
            let parts = [
                Part::Thinking(reasoning.clone()),
                Part::Opaque(keys.clone()),
            ];
            let parts = parts.into_iter().chain([Part::text(text)]).collect();
            let messages = [Message::user("q"), Message::Assistant { parts }];
            let body = render(
                &RenderInput::default(),
                &messages,
                &ResponsesProfile::openai(),
            );
            String::from_utf8(body.unwrap().body).unwrap()
        };
        assert!(sent("So.").contains("gA"));
        assert!(!sent("").contains("gA"));
    }
}
