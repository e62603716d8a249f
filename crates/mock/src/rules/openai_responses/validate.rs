//! [`validate`]: every rule of OpenAI Responses that a request breaks, judged as the server of a
//! [`ResponsesProfile`] judges it, in its own words. Used by mock servers and property tests. Never
//! panics, whatever the JSON is.
//!
//! `rules/openai_responses.txt` names the rules. Only the server knows which items belong to which reasoning
//! (OR4), so [`untied`](super::untied) judges that for a server. V1, V2 and V5 to V11 need more than one
//! request to judge. So does V4's rule for thinking, because a step may lack reasoning from the start.

use std::sync::LazyLock;

use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::{Value, json};

use super::pairs;
use super::schema::{unfit_for_strict, unfit_for_tool};
use crate::rules::fault::{Fault, key_place};
use crate::rules::json_path::JsonPath;
use crate::rules::openai_chat::error_body;
use crate::rules::table::{self, Table, text};

pub(super) type ResponsesCheck<'p> = table::Check<'p, ResponsesProfile>;

/// The rules.
pub(crate) static TABLE: LazyLock<Table<ResponsesProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/openai_responses.txt"),
        &[("item", |_, _, kind| {
            kind.and_then(Value::as_str).is_some_and(items::is_item)
        })],
        &[
            ("calls", pairs::calls),
            ("reasoning", pairs::reasoning),
            ("parameters", parameters),
            ("schema", schema),
        ],
    )
});

/// Returns the rules that a request breaks, items first and in their order within each group of rules.
/// Empty for a valid request. A bare array of items is judged as a request's `input`.
#[must_use]
pub fn validate(request: &Value, profile: &ResponsesProfile) -> Vec<Fault> {
    let bare = || json!({"input": request, "store": false});
    let bare = request.is_array().then(bare);
    let (group, request) = match &bare {
        Some(items) => ("items", items),
        None => ("request", request),
    };
    ResponsesCheck::new(&TABLE, profile, request).faults(group, JsonPath::Named(""))
}

/// Returns the rules that a request for a token count breaks. Empty for a valid one. The server stores
/// nothing.
#[must_use]
pub fn validate_count(request: &Value, profile: &ResponsesProfile) -> Vec<Fault> {
    let keys = request.as_object().into_iter().flatten();
    let unknown = keys.filter(|(key, _)| !TABLE.has("count-keys", key));
    let unknown = unknown.map(|(key, _)| TABLE.fault("unknown-key", key_place(key), &[key]));
    unknown.chain(validate(request, profile)).collect()
}

/// Returns the status and the body with which the server refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault) -> (u16, Value) {
    let words = &fault.words;
    // Pairs are searched for in the whole input.
    let param = match fault.rule {
        "OR1" | "OR2" | "OR3" | "OR4" | "V3" | "V4" => Some("input"),
        _ if words.starts_with("Conversation") => None,
        _ => Some(fault.place.as_str()),
    };
    let is_missing = words.starts_with("Item with id") || words.starts_with("Conversation");
    let (kind, code) = ("invalid_request_error", TABLE.code(words));
    let body = error_body(kind, param, code, words);
    (if is_missing { 404 } else { 400 }, body)
}

/// Judges the schema of a function's arguments.
fn parameters(check: &mut ResponsesCheck<'_>, place: &JsonPath<'_>, tool: &Value) {
    let parameters = tool.get("parameters").unwrap_or(&Value::Null);
    let strict = tool.get("strict") == Some(&Value::Bool(true));
    let unfit =
        unfit_for_tool(parameters).or_else(|| unfit_for_strict(parameters).filter(|_| strict));
    if let Some(why) = unfit {
        let place = place.key("parameters");
        check.report("function-schema", place, &[&text(tool, "name"), &why]);
    }
}

/// Judges the schema of an answer in strict mode.
fn schema(check: &mut ResponsesCheck<'_>, place: &JsonPath<'_>, format: &Value) {
    if let Some(why) = format.get("schema").and_then(unfit_for_strict) {
        let place = place.key("schema");
        check.report("format-schema", place, &[&text(format, "name"), &why]);
    }
}
