//! [`validate`]: every rule of Chat Completions that a request breaks, judged as the server of a
//! [`Dialect`] judges it, in its own words. Used by mock servers and property tests. Never panics,
//! whatever the JSON is.
//!
//! `rules/openai_chat.txt` names the rules. OC9 (prices) and T6 (ignored fields) are no reason to refuse a
//! request. V1, V2 and V5 to V11 need more than one request to judge. So does V4's rule for thinking,
//! because this protocol does not sign reasoning and a step may lack it from the start. Servers that copy
//! OpenAI's API ignore unknown settings, so settings are only judged for OpenAI itself.

use std::sync::LazyLock;

use plimsoll_wire::openai_chat::{Dialect, ErrorStyle};
use serde_json::{Map, Value, json};

use super::{conditions, pairing};
use crate::rules::fault::{Fault, key_place};
use crate::rules::json_path::JsonPath;
use crate::rules::table::{self, Table, kind_of};

/// Mistral's error for unknown keys.
const FORBIDDEN: &str = "Extra inputs are not permitted";
/// The beginning of the error for a model that this API does not serve.
const ELSEWHERE: &str = "This model is only supported in v1/responses";

pub(super) type ChatCheck<'d> = table::Check<'d, Dialect>;

/// The rules.
pub(crate) static TABLE: LazyLock<Table<Dialect>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/openai_chat.txt"),
        &conditions::ALL,
        &[
            ("pairing", pairing::pairing),
            ("keys", keys),
            ("metadata", metadata),
        ],
    )
});

/// Returns the rules that a request breaks, in message order within each group of rules. Empty for a
/// valid request. A bare array of messages is judged as a request's `messages`.
#[must_use]
pub fn validate(request: &Value, dialect: &Dialect) -> Vec<Fault> {
    let bare = request.is_array().then(|| json!({ "messages": request }));
    let request = bare.as_ref().unwrap_or(request);
    ChatCheck::new(&TABLE, dialect, request).faults("request", JsonPath::Named(""))
}

/// Reports the keys that OpenAI does not know.
fn keys(check: &mut ChatCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let keys = request.as_object().into_iter().flat_map(Map::keys);
    for key in keys.filter(|key| !TABLE.has("keys", key)) {
        check.report("unknown-key", key_place(key), &[key]);
    }
}

/// Reports values of the metadata that are no texts.
fn metadata(check: &mut ChatCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let metadata = request.get("metadata").and_then(Value::as_object);
    let metadata = metadata.into_iter().flatten();
    for (key, value) in metadata.filter(|(_, value)| !value.is_string()) {
        check.report("metadata", "metadata", &[key, &kind_of(Some(value))]);
    }
}

/// Returns the status and the body with which the server of the dialect refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault, dialect: &Dialect) -> (u16, Value) {
    let (rule, words) = (fault.rule, &fault.words);
    let is_template = rule.starts_with('T');
    match dialect.voice {
        ErrorStyle::Template if is_template || matches!(rule, "OC4" | "OC8") => {
            let message = if is_template {
                format!("Jinja Exception: {words}")
            } else {
                words.clone()
            };
            let error = json!({"code": 500, "message": message, "type": "server_error"});
            (500, json!({ "error": error }))
        }
        ErrorStyle::Mistral if words == FORBIDDEN => {
            let place = fault.place.split(['.', '[', ']']);
            let place = place.filter(|part| !part.is_empty());
            let place = place.map(|part| part.parse().map_or(json!(part), |at: usize| json!(at)));
            let place: Vec<Value> = std::iter::once(json!("body")).chain(place).collect();
            let detail = json!([{"type": "extra_forbidden", "loc": place, "msg": words}]);
            let message = json!({ "detail": detail });
            (422, mistral_error("invalid_request_error", message, None))
        }
        ErrorStyle::Mistral => {
            let (kind, code) = if rule == "OC7" && words.starts_with("Tool call id") {
                ("invalid_function_call", "3280")
            } else {
                ("invalid_request_message_order", "3230")
            };
            (400, mistral_error(kind, words.as_str().into(), Some(code)))
        }
        ErrorStyle::OpenAi | ErrorStyle::DeepSeek | ErrorStyle::Kimi | ErrorStyle::Template => {
            let is_elsewhere = words.starts_with(ELSEWHERE);
            let kind = "invalid_request_error";
            let body = error_body(kind, Some(&fault.place), TABLE.code(words), words);
            (if is_elsewhere { 404 } else { 400 }, body)
        }
    }
}

fn mistral_error(kind: &str, message: Value, code: Option<&str>) -> Value {
    json!({"object": "error", "message": message, "type": kind, "param": null, "code": code})
}

/// Returns the body of an error in OpenAI's format.
pub(crate) fn error_body(
    kind: &str,
    param: Option<&str>,
    code: Option<&str>,
    message: &str,
) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}
