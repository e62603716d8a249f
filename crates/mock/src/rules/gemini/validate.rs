//! [`validate`]: every rule of `generateContent` that a request breaks, judged as the API judges it for
//! the model of a [`GeminiProfile`], in its own words. Used by fakes and property tests. Never
//! panics, whatever the JSON is.
//!
//! Judged here: GM1 to GM5, V3 and V4 of the rules. The API accepts keys in two spellings
//! (`functionCall`, `function_call`), so both are read.

use std::sync::LazyLock;

use plimsoll_wire::gemini::GeminiProfile;
use serde_json::{Value, json};

use super::pairing;
use crate::rules::fault::Fault;
use crate::rules::json_path::JsonPath;
pub(super) use crate::rules::table::text;
use crate::rules::table::{self, Table, entries};

/// The kinds of a part. A part needs one of these keys.
const DATA: [(&str, &str); 9] = [
    ("text", "text"),
    ("inlineData", "inline_data"),
    ("fileData", "file_data"),
    ("functionCall", "function_call"),
    ("functionResponse", "function_response"),
    ("executableCode", "executable_code"),
    ("codeExecutionResult", "code_execution_result"),
    ("toolCall", "tool_call"),
    ("toolResponse", "tool_response"),
];
/// The maximum length of a tool's name.
const MAX_NAME: usize = 64;

/// The rules for single values.
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
                let is_set = |camel: &str, snake: &str| {
                    field(request, camel, snake).is_some_and(|value| !value.is_null())
                };
                let cached = field(request, "cachedContent", "cached_content");
                cached.is_some_and(Value::is_string)
                    && (!entries(request, "tools").is_empty()
                        || is_set("systemInstruction", "system_instruction")
                        || is_set("toolConfig", "tool_config"))
            }),
        ],
    )
});

/// Returns the rules that a request breaks, in the order of contents within each group of rules. Empty
/// for a valid request.
#[must_use]
pub fn validate(request: &Value, profile: &GeminiProfile) -> Vec<Fault> {
    let mut check = GeminiCheck::new(profile, &TABLE);
    check.judge("request", "", &JsonPath::Named(""), request);
    let contents = entries(request, "contents");
    pairing::check(&mut check, contents);
    check.last(contents);
    check.faults
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

pub(super) type GeminiCheck<'p> = table::Check<'p, GeminiProfile>;

impl GeminiCheck<'_> {
    /// Judges the last content: it must not be the model's, unless the model accepts a prefill.
    fn last(&mut self, contents: &[Value]) {
        let refused = !self.profile.prefill;
        let Some(last) = contents.last().filter(|_| refused) else {
            return;
        };
        // Contents with tool calls are judged with their responses.
        if is_model(last) && calls(last).is_empty() {
            let place = format!("contents[{}]", contents.len().saturating_sub(1));
            self.report("model-last", place, &[]);
        }
    }
}

/// Returns the value of a key in either spelling.
pub(super) fn field<'v>(value: &'v Value, camel: &str, snake: &str) -> Option<&'v Value> {
    value.get(camel).or_else(|| value.get(snake))
}

pub(super) fn parts(content: &Value) -> &[Value] {
    entries(content, "parts")
}

pub(super) fn call(part: &Value) -> Option<&Value> {
    field(part, "functionCall", "function_call").filter(|call| call.is_object())
}

pub(super) fn response(part: &Value) -> Option<&Value> {
    field(part, "functionResponse", "function_response").filter(|response| response.is_object())
}

pub(super) fn signature(part: &Value) -> &str {
    let signature = field(part, "thoughtSignature", "thought_signature");
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
    DATA.iter()
        .any(|(camel, snake)| match field(part, camel, snake) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty() || !signature(part).is_empty(),
            Some(_) => true,
        })
}

fn is_name(name: &str) -> bool {
    let first = name.bytes().next().unwrap_or_default();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (first.is_ascii_alphabetic() || first == b'_')
        && name.len() <= MAX_NAME
        && name.bytes().all(legal)
}
