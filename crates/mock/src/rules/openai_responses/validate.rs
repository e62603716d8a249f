//! [`validate`]: every rule of OpenAI Responses that a request breaks, judged as the server of a
//! [`ResponsesProfile`] judges it, in its own words. Used by mock servers and property tests. Never
//! panics, whatever the JSON is.
//!
//! `rules/openai_responses.txt` names the rules. Only the server knows which items belong to which reasoning
//! (OR4), so [`untied`](super::untied) judges that for a server. V1, V2 and V5 to V11 need more than one
//! request to judge. So does V4's rule for thinking, because a step may lack reasoning from the start.

use std::sync::LazyLock;

use plimsoll_wire::__internals::is_legal_name;
use plimsoll_wire::__internals::openai_responses::{ENCRYPTED, items};
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use serde_json::{Value, json};

use super::pairs;
use super::schema::{unfit_for_strict, unfit_for_tool};
use crate::rules::fault::{Fault, key_place};
use crate::rules::json_path::JsonPath;
use crate::rules::openai_chat::error_body;
use crate::rules::table::{self, Table, entries, text};

pub(super) type ResponsesCheck<'p> = table::Check<'p, ResponsesProfile>;

/// The rules.
pub(crate) static TABLE: LazyLock<Table<ResponsesProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/openai_responses.txt"),
        &[
            ("stored", |check, _, _| is_stored(check)),
            // The server has not stored the item, and its content is missing.
            ("forgotten", |check, item, _| {
                let kept = is_stored(check) || check.profile.reasoning != ReasoningItems::Encrypted;
                !kept && !items::is_encrypted(item)
            }),
            ("name", |_, _, name| {
                name.and_then(Value::as_str).is_some_and(is_legal_name)
            }),
            ("item", |_, _, kind| {
                kind.and_then(Value::as_str).is_some_and(items::is_item)
            }),
            ("one-image", |_, part, _| {
                has_one(part, &["image_url", "file_id"])
            }),
            ("one-file", |_, part, _| {
                has_one(part, &["file_id", "file_data", "file_url"])
            }),
            ("encrypted", |_, request, _| {
                let mut include = entries(request, "include").iter();
                include.any(|one| one == ENCRYPTED)
            }),
            ("no-efforts", |check, _, _| check.profile.efforts.is_empty()),
            ("accepted", |check, _, effort| {
                let mut efforts = check.profile.efforts.iter();
                efforts.any(|known| effort.is_some_and(|effort| effort == known.name()))
            }),
            // An MCP tool is named by its server.
            ("unknown-server", |_, request, choice| {
                is_unknown(request, choice, "server_label")
            }),
            ("unknown-tool", |_, request, choice| {
                is_unknown(request, choice, "name")
            }),
        ],
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
        "OR1" | "OR2" | "OR3" | "OR4" | "V3" | "V4" => "input",
        _ => fault.place.as_str(),
    };
    let is_missing = words.starts_with("Item with id");
    let (kind, code) = ("invalid_request_error", TABLE.code(words));
    let body = error_body(kind, Some(param), code, words);
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

/// Checks whether the server stores the requests that it receives.
fn is_stored(check: &ResponsesCheck<'_>) -> bool {
    check.request.get("store") != Some(&Value::Bool(false)) && check.request.is_object()
}

/// Checks whether a choice of tools has a name that no tool has under this key.
fn is_unknown(request: &Value, choice: Option<&Value>, key: &str) -> bool {
    let name = |value: &Value| value.get(key)?.as_str().map(str::to_owned);
    let chosen = choice.and_then(name);
    let mut tools = entries(request, "tools").iter();
    chosen.is_some() && !tools.any(|tool| name(tool) == chosen)
}

fn has_one(part: &Value, keys: &[&str]) -> bool {
    let is_text = |key: &&&str| part.get(**key).is_some_and(Value::is_string);
    keys.iter().filter(is_text).count() == 1
}
