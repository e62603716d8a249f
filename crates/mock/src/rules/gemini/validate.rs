//! [`validate`]: every rule of `generateContent` that a request breaks, judged as the API judges it for
//! the model of a [`GeminiProfile`], in its own words. Used by fakes and property tests. Never
//! panics, whatever the JSON is.
//!
//! `rules/gemini.txt` names the rules. The API accepts keys in two spellings (`functionCall`,
//! `function_call`). The rules have the second one, which its errors have.

use std::sync::LazyLock;

use plimsoll_wire::gemini::GeminiProfile;
use serde_json::{Value, json};

use super::pairing;
use crate::rules::fault::Fault;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{self, Table, entries, text};

/// The keys whose values are the client's own, and keep their spelling.
const OWN: [&str; 3] = ["args", "response", "parameters"];

pub(super) type GeminiCheck<'p> = table::Check<'p, GeminiProfile>;

/// The rules.
pub(crate) static TABLE: LazyLock<Table<GeminiProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/gemini.txt"),
        &[
            ("lettered", |_, _, name| {
                let name = name.and_then(Value::as_str).unwrap_or_default();
                name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            }),
            ("typed", |_, tool, _| {
                tool.as_object().is_some_and(|tool| !tool.is_empty())
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
    let request = snake_case(request);
    GeminiCheck::new(&TABLE, profile, &request).faults("request", JsonPath::Named(""))
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

/// Returns a request with its keys in the spelling of the API's own errors.
pub(crate) fn snake_case(value: &Value) -> Value {
    let snake = |camel: &str| {
        camel.chars().fold(String::new(), |snake, letter| {
            let dash = if letter.is_ascii_uppercase() { "_" } else { "" };
            snake + dash + &letter.to_ascii_lowercase().to_string()
        })
    };
    match value {
        Value::Array(list) => list.iter().map(snake_case).collect(),
        Value::Object(keys) => {
            let keys = keys.iter().map(|(key, value)| match key.as_str() {
                key if OWN.contains(&key) => (key.to_owned(), value.clone()),
                key => (snake(key), snake_case(value)),
            });
            keys.collect()
        }
        other => other.clone(),
    }
}

pub(super) fn parts(content: &Value) -> &[Value] {
    entries(content, "parts")
}

pub(super) fn call(part: &Value) -> Option<&Value> {
    part.get("function_call").filter(|call| call.is_object())
}

pub(super) fn response(part: &Value) -> Option<&Value> {
    let response = part.get("function_response");
    response.filter(|response| response.is_object())
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
