//! The kinds of items and their authors. Reading, rendering and judging share these lists.

use std::borrow::Cow;
use std::sync::LazyLock;

use plimsoll_context::{Opaque, Thinking};
use serde_json::Value;

use crate::raw::{self, RawObject};

/// The maximum length of an item's id, in characters.
pub const MAX_ID: usize = 64;
/// The origin of blocks that are sent back on this protocol.
pub const ORIGIN: &str = "openai-responses";

/// The lines of `data/items.txt`, which explains them, as words.
static ROWS: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
    let lines = include_str!("../../data/items.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_whitespace().collect())
        .collect()
});
/// The types of the items that may be in the input.
pub static KINDS: LazyLock<Vec<&str>> =
    LazyLock::new(|| ROWS.iter().filter_map(|row| row.first().copied()).collect());
/// The calls that need an output of the client, and the types of their outputs.
pub static PAIRS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| with_value("output="));
/// The prefixes of item ids.
pub static PREFIXES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| with_value("id="));

/// Returns the types that have a value for a key, and the value.
fn with_value(key: &str) -> Vec<(&'static str, &'static str)> {
    let rows = ROWS.iter().filter_map(|row| {
        let value = row.iter().find_map(|word| word.strip_prefix(key))?;
        Some((*row.first()?, value))
    });
    rows.collect()
}

/// Returns `true` if the line of a type has this word.
fn has_word(kind: &str, word: &str) -> bool {
    let row = ROWS.iter().find(|row| row.first() == Some(&kind));
    row.is_some_and(|row| row.contains(&word))
}

/// Checks whether the server accepts an id for an item of this type: it is not too long, and has the type's prefix.
pub fn accepts_id(kind: &str, id: &str) -> bool {
    let is_long = id.chars().count() > MAX_ID && kind != "reasoning";
    let mut prefixes = PREFIXES.iter().filter(|(of, _)| *of == kind);
    !is_long && prefixes.all(|(_, prefix)| id.starts_with(prefix))
}

/// Returns the JSON of an item, without an id that the server would refuse.
pub(super) fn with_own_id<'j>(kind: &str, json: &'j str) -> Cow<'j, str> {
    let item: RawObject<'_> = serde_json::from_str(json).unwrap_or_default();
    match item.get("id") {
        Some(_) if !accepts_id(kind, &item.text("id")) => item.with(&[("id", None)]).into(),
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
    has_word(kind, "instructs")
}

/// Returns `true` for an output that the client sends.
pub fn is_output(kind: &str) -> bool {
    PAIRS.iter().any(|(_, output)| *output == kind)
}

/// Returns the id by which a call and its output name each other. An older local shell uses the id of the item.
pub fn call_id(item: &Value) -> Option<&str> {
    let id = |key: &str| item.get(key)?.as_str().filter(|id| !id.is_empty());
    let is_shell = kind(item).starts_with("local_shell_call");
    id("call_id").or_else(|| id("id").filter(|_| is_shell))
}

/// Returns `true` for a call that needs an output of the client, and for such an output. The server runs some of these
/// tools itself, without an id; it takes an empty one for an id.
pub fn is_paired(item: &Value) -> bool {
    let kind = kind(item);
    let mut pairs = PAIRS.iter();
    let has_id = call_id(item).is_some() || item.get("call_id").is_some_and(Value::is_string);
    has_id && pairs.any(|(call, output)| [*call, *output].contains(&kind))
}

/// Returns `true` if items of this type come from the client. All others come from the model, except
/// messages.
pub fn is_clients(kind: &str) -> bool {
    has_word(kind, "client")
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

/// Returns the block of this protocol in an opaque part: its type, which may be empty, and its JSON.
/// `None` for a block of another protocol, and for data that is not a JSON object.
pub fn own(opaque: &Opaque) -> Option<(String, &str)> {
    let object: RawObject<'_> = raw::own(opaque, ORIGIN)?;
    Some((object.text("type"), opaque.data.trim()))
}
