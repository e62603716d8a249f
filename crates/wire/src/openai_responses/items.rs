//! The kinds of items and their authors. Reading, rendering and judging share these lists.

use std::borrow::Cow;

use plimsoll_context::{Opaque, Thinking};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::raw::{self, RawObject};

/// The origin of blocks that are sent back on this protocol.
pub const ORIGIN: &str = "openai-responses";

/// The items that may be in the input besides messages.
pub const KINDS: [&str; 31] = [
    "message",
    "file_search_call",
    "computer_call",
    "computer_call_output",
    "web_search_call",
    "function_call",
    "function_call_output",
    "tool_search_call",
    "tool_search_output",
    "reasoning",
    "compaction",
    "image_generation_call",
    "code_interpreter_call",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "custom_tool_call",
    "custom_tool_call_output",
    "program",
    "program_output",
    "item_reference",
    "additional_tools",
    "configuration_update",
    "compaction_trigger",
];

/// The client's items besides messages and outputs.
const CLIENTS: [&str; 4] = [
    "mcp_approval_response",
    "additional_tools",
    "configuration_update",
    "compaction_trigger",
];

/// The client's items that instruct the model: its tools, and its settings.
const INSTRUCTIONS: [&str; 2] = ["additional_tools", "configuration_update"];

/// The calls that need an output of the client, and the types of their outputs.
pub const PAIRS: [(&str, &str); 7] = [
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("computer_call", "computer_call_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("shell_call", "shell_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
    ("tool_search_call", "tool_search_output"),
];

/// The prefixes of item ids.
pub const PREFIXES: [(&str, &str); 5] = [
    ("message", "msg"),
    ("function_call", "fc"),
    ("custom_tool_call", "ctc"),
    ("reasoning", "rs"),
    ("web_search_call", "ws"),
];

/// Returns the JSON of an item without an id that belongs to items of another type, which the server would refuse.
pub(super) fn with_own_id<'j>(kind: &str, json: &'j str) -> Cow<'j, str> {
    let item: RawObject<'_> = serde_json::from_str(json).unwrap_or_default();
    let prefix = PREFIXES.iter().find(|(of, _)| *of == kind);
    let id = item.text("id");
    let is_other = prefix.is_some_and(|(_, prefix)| !id.starts_with(prefix));
    match item.get("id") {
        Some(_) if is_other => item.with(&[("id", None)]).into(),
        _ => json.into(),
    }
}

/// Returns an item's type. A message may leave it out.
pub fn kind(item: &Value) -> &str {
    match item.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if item.get("role").is_some() => "message",
        None => "",
    }
}

/// Returns `true` if the server ties an item of this type to the reasoning before it.
pub fn is_tied(kind: &str) -> bool {
    matches!(kind, "message" | "function_call" | "custom_tool_call")
}

/// Returns `true` if this type of item exists.
pub fn is_item(kind: &str) -> bool {
    KINDS.contains(&kind)
}

/// Returns `true` for an item of the client's that instructs the model, as a developer message does.
pub fn is_instruction(kind: &str) -> bool {
    INSTRUCTIONS.contains(&kind)
}

/// Returns `true` for an output that the client sends.
pub fn is_output(kind: &str) -> bool {
    PAIRS.iter().any(|(_, output)| *output == kind)
}

/// Returns `true` if items of this type come from the client. All others come from the model, except
/// messages.
pub fn is_clients(kind: &str) -> bool {
    CLIENTS.contains(&kind) || is_output(kind)
}

/// Returns `true` if a block of this type belongs in the content of a message and is not an item.
pub fn is_content(kind: &str) -> bool {
    is_heard(kind) || is_said(kind)
}

/// Returns `true` if such a block belongs in the model's input.
pub fn is_heard(kind: &str) -> bool {
    kind.starts_with("input_")
}

/// Returns `true` if such a block belongs in the model's output.
pub fn is_said(kind: &str) -> bool {
    matches!(kind, "output_text" | "refusal")
}

/// Returns the readable text of a reasoning item.
pub fn reasoning_text(item: &Value) -> String {
    let texts = |key: &str| {
        let list = item.get(key).and_then(Value::as_array);
        let list = list.map(Vec::as_slice).unwrap_or_default();
        let texts = list.iter().filter_map(|part| part.get("text")?.as_str());
        texts.collect::<Vec<_>>().join("\n\n")
    };
    let summary = texts("summary");
    if summary.is_empty() {
        texts("content")
    } else {
        summary
    }
}

/// Returns the reasoning of an item, with the original item.
pub fn thinking(item: &Value, raw: &str) -> Thinking {
    Thinking {
        text: reasoning_text(item),
        opaque: Some(opaque(raw)),
    }
}

/// Returns `true` if a reasoning item has the form that OpenAI accepts. Other servers use other ids.
pub fn is_reasoning(item: &Value) -> bool {
    let id = item.get("id");
    let named = id.is_none_or(|id| id.as_str().is_some_and(|id| id.starts_with("rs")));
    named && item.get("summary").is_some_and(Value::is_array)
}

/// Returns `true` if a server that has stored nothing can read a reasoning item.
pub fn is_encrypted(item: &Value) -> bool {
    let content = item.get("encrypted_content").and_then(Value::as_str);
    content.is_some_and(|content| !content.is_empty())
}

/// Returns an item as a block of this origin.
pub fn opaque(raw: &str) -> Opaque {
    raw::opaque(ORIGIN, raw)
}

/// Returns the block of this protocol in an opaque part: its type, which may be empty, and its bytes.
/// `None` for a block of another protocol, and for data that is not a JSON object.
pub fn own(opaque: &Opaque) -> Option<(String, &RawValue)> {
    #[derive(Deserialize)]
    struct TypedItem {
        #[serde(rename = "type", default)]
        kind: Option<String>,
    }
    let raw: &RawValue = raw::own(opaque, ORIGIN)?;
    // Serde would also accept other values, but only an object has keys.
    if !raw.get().starts_with('{') {
        return None;
    }
    let typed: TypedItem = serde_json::from_str(raw.get()).ok()?;
    Some((typed.kind.unwrap_or_default(), raw))
}
