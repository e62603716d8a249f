//! [`validate`]: every rule of `generateContent` that a request breaks, judged as the API judges it for
//! the model of a [`GeminiProfile`], in its own words. Used by fakes and property tests. Never
//! panics, whatever the JSON is.
//!
//! `rules/gemini.txt` names the rules. The API accepts keys in two spellings (`functionCall`,
//! `function_call`), so both are read.

use std::sync::LazyLock;

use plimsoll_wire::gemini::GeminiProfile;
use serde_json::{Value, json};

use super::pairing;
use crate::rules::fault::Fault;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{self, Table, entries, text};

/// The kinds of a part. A part needs one of these keys.
const DATA: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
/// The settings that a request with cached content must not have.
const CACHED: [&str; 2] = ["systemInstruction", "toolConfig"];
/// The maximum length of a tool's name.
const MAX_NAME: usize = 64;

pub(super) type GeminiCheck<'p> = table::Check<'p, GeminiProfile>;

/// The rules.
pub(crate) static TABLE: LazyLock<Table<GeminiProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/gemini.txt"),
        &[
            ("initialized", |_, part, _| is_initialized(part)),
            ("name", |_, _, name| {
                name.and_then(Value::as_str).is_some_and(is_name)
            }),
            ("typed", |_, tool, _| {
                tool.as_object().is_some_and(|tool| !tool.is_empty())
            }),
            ("cached-besides", |_, request, _| {
                let cached = field(request, "cachedContent").is_some_and(Value::is_string);
                let is_set = |key: &&str| field(request, key).is_some_and(|value| !value.is_null());
                cached && (!entries(request, "tools").is_empty() || CACHED.iter().any(is_set))
            }),
        ],
        &[
            ("pairing", pairing::pairing),
            ("signatures", pairing::signatures),
        ],
    )
});

/// Returns the rules that a request breaks, in the order of contents within each group of rules. Empty
/// for a valid request.
#[must_use]
pub fn validate(request: &Value, profile: &GeminiProfile) -> Vec<Fault> {
    GeminiCheck::new(&TABLE, profile, request).faults("request", JsonPath::Named(""))
}

/// Returns the status and the body with which the API refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault) -> (u16, Value) {
    let error = json!({
        "code": 400,
        "message": fault.words,
        "status": "INVALID_ARGUMENT",
    });
    (400, json!({ "error": error }))
}

/// Returns the value of a key in either spelling.
pub(crate) fn field<'v>(value: &'v Value, camel: &str) -> Option<&'v Value> {
    let snake = || {
        camel.chars().fold(String::new(), |snake, letter| {
            let dash = if letter.is_ascii_uppercase() { "_" } else { "" };
            snake + dash + &letter.to_ascii_lowercase().to_string()
        })
    };
    value.get(camel).or_else(|| value.get(snake()))
}

pub(super) fn parts(content: &Value) -> &[Value] {
    entries(content, "parts")
}

pub(super) fn call(part: &Value) -> Option<&Value> {
    field(part, "functionCall").filter(|call| call.is_object())
}

pub(super) fn response(part: &Value) -> Option<&Value> {
    field(part, "functionResponse").filter(|response| response.is_object())
}

pub(super) fn signature(part: &Value) -> &str {
    let signature = field(part, "thoughtSignature");
    signature.and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn calls(content: &Value) -> Vec<&Value> {
    parts(content).iter().filter_map(call).collect()
}

pub(super) fn responses(content: &Value) -> Vec<&Value> {
    parts(content).iter().filter_map(response).collect()
}

pub(super) fn is_model(content: &Value) -> bool {
    text(content, "role") == "model"
}

/// Returns `true` if a part has data. An empty text only counts with a signature, because streams send
/// such parts.
fn is_initialized(part: &Value) -> bool {
    let is_data = |key: &&str| match field(part, key) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty() || !signature(part).is_empty(),
        Some(_) => true,
    };
    DATA.iter().any(is_data)
}

fn is_name(name: &str) -> bool {
    let first = name.bytes().next().unwrap_or_default();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (first.is_ascii_alphabetic() || first == b'_')
        && name.len() <= MAX_NAME
        && name.bytes().all(legal)
}
