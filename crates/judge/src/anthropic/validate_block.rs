//! What can be judged of one block alone: AM5, AM6, AM10's form, and the shape that the wire's types
//! prescribe. Part of the validator; it judges and repairs nothing.

use plimsoll_wire::__internals::anthropic::{FAMILIES, MCP_TOOLSET, family_of};
use plimsoll_wire::__internals::is_word;
use serde_json::Value;

use super::validate::{Check, kind, text as text_of};
use crate::fault::Rule;

/// What a tool's name may be, as the API says it.
const NAME: &str = "^[a-zA-Z0-9_-]{1,128}$";
const MAX_NAME: usize = 128;

/// Judges a block of a message.
pub(super) fn check(check: &mut Check<'_>, place: &str, role: &str, block: &Value) {
    match (role, kind(block)) {
        (_, "") => required(check, place, "type"),
        (_, "text") => text(check, place, "messages", block),
        ("user", "image") => media(check, place, "image", block),
        ("user", "document") => media(check, place, "document", block),
        ("user", "tool_result") => result(check, place, block),
        ("assistant", "tool_use") => call(check, place, block),
        ("assistant", "thinking") => {
            string(check, place, "thinking.thinking", block.get("thinking"));
            string(check, place, "thinking.signature", block.get("signature"));
            if block.get("signature").and_then(Value::as_str) == Some("") {
                let words = format!("{place}: Invalid `signature` in `thinking` block");
                check.fault(Rule::Am10, place, words);
            }
        }
        ("assistant", "redacted_thinking") => {
            string(check, place, "redacted_thinking.data", block.get("data"));
        }
        (_, "thinking" | "redacted_thinking" | "tool_use") => {
            let kind = kind(block);
            let words = format!("{place}: `{kind}` blocks can only be in `assistant` messages");
            check.fault(Rule::Shape, place, words);
        }
        (_, "tool_result") => {
            let words = format!("{place}: `tool_result` blocks can only be in `user` messages");
            check.fault(Rule::Shape, place, words);
        }
        (_, "image" | "document") => {
            let words = format!("{place}: media can only be in `user` messages");
            check.fault(Rule::Shape, place, words);
        }
        // Of the provider's own tools, and passed through.
        (_, "search_result" | "container_upload" | "compaction") => {}
        (_, kind) if kind.ends_with("_tool_use") || kind.ends_with("_tool_result") => {}
        (_, kind) => {
            let words = format!(
                "{place}: Input tag '{kind}' found using 'type' does not match any of the \
                 expected tags"
            );
            check.fault(Rule::Shape, place, words);
        }
    }
}

/// AM6.
pub(super) fn text(check: &mut Check<'_>, place: &str, whose: &str, block: &Value) {
    match block.get("text") {
        Some(Value::String(text)) if text.is_empty() => {
            let words = format!("{whose}: text content blocks must be non-empty");
            check.fault(Rule::Am6, place, words);
        }
        Some(Value::String(text)) if text.trim().is_empty() => {
            let words = format!("{whose}: text content blocks must contain non-whitespace text");
            check.fault(Rule::Am6, place, words);
        }
        Some(Value::String(_)) => {}
        _ => required(check, place, "text.text"),
    }
}

/// Judges a tool's definition.
pub(super) fn tool(check: &mut Check<'_>, place: &str, tool: &Value) {
    if !matches!(kind(tool), "" | "custom") {
        return hosted(check, place, tool);
    }
    name(check, &format!("{place}.custom.name"), tool);
    let schema = tool.get("input_schema");
    if schema.and_then(|schema| schema.get("type")) != Some(&Value::from("object")) {
        let words = format!("{place}.custom.input_schema.type: Field required");
        check.fault(Rule::Shape, place, words);
    }
}

fn call(check: &mut Check<'_>, place: &str, block: &Value) {
    id(check, &format!("{place}.tool_use.id"), block.get("id"));
    name(check, &format!("{place}.tool_use.name"), block);
    if !block.get("input").is_some_and(Value::is_object) {
        let words = format!("{place}.tool_use.input: Input should be a valid dictionary");
        check.fault(Rule::Shape, place, words);
    }
}

fn result(check: &mut Check<'_>, place: &str, block: &Value) {
    id(
        check,
        &format!("{place}.tool_result.tool_use_id"),
        block.get("tool_use_id"),
    );
    let blocks = match block.get("content") {
        None | Some(Value::String(_)) => return,
        Some(Value::Array(blocks)) => blocks,
        Some(_) => {
            let words = format!("{place}.tool_result.content: Input should be a valid string");
            check.fault(Rule::Shape, place, words);
            return;
        }
    };
    let failed = block.get("is_error") == Some(&Value::Bool(true));
    for (index, inner) in blocks.iter().enumerate() {
        let place = format!("{place}.tool_result.content.{index}");
        match kind(inner) {
            "text" => text(check, &place, "messages", inner),
            _ if failed => {
                let words =
                    format!("{place}: all content must be type `text` if `is_error` is true");
                check.fault(Rule::Shape, place, words);
            }
            "image" => media(check, &place, "image", inner),
            "document" => media(check, &place, "document", inner),
            "search_result" | "tool_reference" => {}
            kind => {
                let words = format!(
                    "{place}: Input tag '{kind}' found using 'type' does not match any of the \
                     expected tags: 'document', 'image', 'search_result', 'text'"
                );
                check.fault(Rule::Shape, place, words);
            }
        }
    }
}

fn media(check: &mut Check<'_>, place: &str, kind: &str, block: &Value) {
    let source = block.get("source").unwrap_or(&Value::Null);
    let keys: &[&str] = match text_of(source, "type") {
        "base64" => &["media_type", "data"],
        "text" => &["data"],
        "url" => &["url"],
        "file" => &["file_id"],
        "content" => &[],
        _ => {
            required(check, place, &format!("{kind}.source.type"));
            return;
        }
    };
    for key in keys {
        if text_of(source, key).is_empty() {
            required(check, place, &format!("{kind}.source.{key}"));
        }
    }
    let media_type = text_of(source, "media_type");
    let image = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    if kind == "image" && text_of(source, "type") == "base64" && !image.contains(&media_type) {
        let words = format!(
            "{place}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', \
             'image/gif' or 'image/webp'"
        );
        check.fault(Rule::Shape, place, words);
    }
}

/// AM5.
fn id(check: &mut Check<'_>, place: &str, id: Option<&Value>) {
    match id {
        Some(Value::String(id)) if is_word(id) => {}
        Some(Value::String(_)) => {
            let words = format!("{place}: String should match pattern '^[a-zA-Z0-9_-]+$'");
            check.fault(Rule::Am5, place, words);
        }
        _ => check.fault(Rule::Shape, place, format!("{place}: Field required")),
    }
}

fn name(check: &mut Check<'_>, place: &str, value: &Value) {
    let name = text_of(value, "name");
    if !is_word(name) || name.len() > MAX_NAME {
        let words = format!("{place}: String should match pattern '{NAME}'");
        check.fault(Rule::Shape, place, words);
    }
}

/// AM10's form: what was signed comes back with its signature.
fn string(check: &mut Check<'_>, place: &str, key: &str, value: Option<&Value>) {
    if !value.is_some_and(Value::is_string) {
        let words = format!("{place}.{key}: Field required");
        check.fault(Rule::Am10, place, words);
    }
}

fn required(check: &mut Check<'_>, place: &str, key: &str) {
    let words = format!("{place}.{key}: Field required");
    check.fault(Rule::Shape, place, words);
}

/// Judges the definition of a tool that is not of the caller's making.
fn hosted(check: &mut Check<'_>, place: &str, tool: &Value) {
    let kind = kind(tool);
    if kind == MCP_TOOLSET {
        if text_of(tool, "mcp_server_name").is_empty() {
            let words = format!("{place}.{kind}.mcp_server_name: Field required");
            check.fault(Rule::Shape, place, words);
        }
        return;
    }
    let Some(family) = family_of(kind) else {
        let known = FAMILIES.iter().map(|family| format!("'{}_…'", family.kind));
        let known: Vec<String> = known.collect();
        let words = format!(
            "{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags: \
             'custom', 'mcp_toolset', {}",
            known.join(", ")
        );
        check.fault(Rule::Shape, place, words);
        return;
    };
    match (text_of(tool, "name"), family.name) {
        ("", _) => {
            let words = format!("{place}.{kind}.name: Field required");
            check.fault(Rule::Shape, place, words);
        }
        (given, Some(name)) if given != name => {
            let words = format!("{place}.{kind}.name: Input should be '{name}'");
            check.fault(Rule::Shape, place, words);
        }
        _ => {}
    }
}
