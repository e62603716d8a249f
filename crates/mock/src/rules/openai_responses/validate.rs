//! [`validate`]: every rule of OpenAI Responses that a request breaks, judged as the server of a
//! [`ResponsesProfile`] judges it, in its own words. Used by mock servers and property tests. Never
//! panics, whatever the JSON is.
//!
//! Judged here: OR1 to OR6, V3 and V4 of the rules, and the shape of items and settings. Only the
//! server knows which items belong to which reasoning (OR4), so [`untied`](super::untied) judges that
//! for a server. V1, V2 and V5 to V11 need more than one request to judge. So does V4's rule for
//! thinking, because a step may lack reasoning from the start.

use std::sync::LazyLock;

use plimsoll_wire::__internals::is_legal_name;
use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use serde_json::{Value, json};

use super::pairing;
use super::settings;
use crate::rules::fault::{Fault, Rule};
use crate::rules::json_path::JsonPath;
use crate::rules::table::{self, Table, kind_of, text};

/// The rules for single values.
/// The maximum length of an item's id.
const MAX_ITEM_ID: usize = 64;
/// The codes of errors, by a part of their message.
const CODES_OF_PARTS: [(&str, &str); 4] = [
    ("could not be verified", "invalid_encrypted_content"),
    ("string too long", "string_above_max_length"),
    ("empty string", "empty_string"),
    ("integer below minimum value", "integer_below_min_value"),
];
/// The codes of the other errors, by the beginning of their message.
const CODES_OF_BEGINNINGS: [(&str, &str); 9] = [
    ("Missing required parameter", "missing_required_parameter"),
    ("Unsupported parameter", "unsupported_parameter"),
    ("Unsupported value", "unsupported_value"),
    ("Unknown parameter", "unknown_parameter"),
    ("Invalid type", "invalid_type"),
    ("Invalid schema for function", "invalid_function_parameters"),
    ("Invalid schema", "invalid_json_schema"),
    ("Invalid value", "invalid_value"),
    ("Invalid 'input", "invalid_value"),
];

pub(crate) static TABLE: LazyLock<Table<ResponsesProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/openai_responses.txt"),
        &[
            ("stored", |check, _, _| check.stored),
            ("plain", |check, _, _| {
                check.profile.reasoning == ReasoningItems::Plain
            }),
            // The server has not stored the item, and its content is missing.
            ("forgotten", |check, item, _| {
                let kept = check.stored || check.profile.reasoning != ReasoningItems::Encrypted;
                !kept && !items::is_encrypted(item)
            }),
            ("by-model", |_, item, _| text(item, "role") == "assistant"),
            ("name", |_, _, name| {
                let name = name.and_then(Value::as_str);
                name.is_some_and(is_legal_name)
            }),
            ("one-image", |_, part, _| {
                has_one(part, &["image_url", "file_id"])
            }),
            ("one-file", |_, part, _| {
                has_one(part, &["file_id", "file_data", "file_url"])
            }),
            // A model without reasoning accepts sampling settings.
            ("unsampled", |check, request, _| {
                let effort = request.get("reasoning").map(|one| text(one, "effort"));
                !check.profile.sampling && effort != Some("none")
            }),
            ("connector", |_, tool, _| tool.get("connector_id").is_some()),
        ],
    )
});

/// Returns the rules that a request breaks, items first and in their order within each group of rules.
/// Empty for a valid request. A bare array of items is judged as a request's `input`.
#[must_use]
pub fn validate(request: &Value, profile: &ResponsesProfile) -> Vec<Fault> {
    let input = match request {
        Value::Array(_) => Some(request),
        _ => request.get("input"),
    };
    let mut check = ResponsesCheck::new(profile, &TABLE);
    check.stored = request.get("store") != Some(&Value::Bool(false)) && request.is_object();
    match input {
        Some(Value::String(_)) => {}
        Some(Value::Array(items)) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                check.item(&JsonPath::Named("input").entry(index), item);
            }
            pairing::check(&mut check, items);
        }
        None | Some(Value::Null | Value::Array(_)) => {
            let words = "One of \"input\" or \"previous_response_id\" or 'prompt' or \
                         'conversation_id' must be provided.";
            check.fault(Rule::Shape, "input", words);
        }
        Some(other) => {
            let words = format!(
                "Invalid type for 'input': expected one of a string or array of objects, but got \
                 {} instead.",
                kind_of(Some(other))
            );
            check.fault(Rule::Shape, "input", words);
        }
    }
    if !request.is_array() {
        settings::check(&mut check, request);
    }
    check.faults
}

/// Returns the status and the body with which the server refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault) -> (u16, Value) {
    let words = &fault.words;
    let of_part = CODES_OF_PARTS.iter();
    let mut of_part = of_part.filter(|(part, _)| words.contains(part));
    let of_beginning = CODES_OF_BEGINNINGS.iter();
    let mut of_beginning = of_beginning.filter(|(begins, _)| words.starts_with(begins));
    let code = of_part.next().or_else(|| of_beginning.next());
    // Pairs are searched for in the whole input.
    let paired = matches!(
        fault.rule,
        Rule::Or1 | Rule::Or2 | Rule::Or3 | Rule::Or4 | Rule::V3 | Rule::V4
    );
    let param = if paired {
        "input"
    } else {
        fault.place.as_str()
    };
    let status = if words.starts_with("Item with id") {
        404
    } else {
        400
    };
    let error = json!({
        "message": words,
        "type": "invalid_request_error",
        "param": param,
        "code": code.map(|(_, code)| code),
    });
    (status, json!({ "error": error }))
}

pub(super) type ResponsesCheck<'p> = table::Check<'p, ResponsesProfile>;

impl ResponsesCheck<'_> {
    /// Applies the rules that concern one item alone.
    fn item(&mut self, place: &JsonPath<'_>, item: &Value) {
        if !item.is_object() {
            let words = format!(
                "Invalid type for '{place}': expected an input item, but got {} instead.",
                kind_of(Some(item))
            );
            self.fault(Rule::Shape, *place, words);
            return;
        }
        match items::kind(item) {
            "" => {
                let words = format!("Missing required parameter: '{place}.type'.");
                self.fault(Rule::Shape, place.key("type"), words);
            }
            kind if items::is_item(kind) => {
                self.id(&place.key("id"), kind, item);
                self.judge("item", kind, place, item);
            }
            kind => self.unknown(place.key("type"), kind, items::KINDS),
        }
    }

    /// Judges the id of an item: OR5.
    fn id(&mut self, place: &JsonPath<'_>, kind: &str, item: &Value) {
        let Some(id) = item.get("id").and_then(Value::as_str) else {
            return;
        };
        let prefix = items::PREFIXES.iter().find(|(of, _)| *of == kind);
        // The id of a message that is not the model's is chosen by its author.
        let own = match kind {
            "message" => text(item, "role") == "assistant",
            // Unencrypted reasoning comes from another server, and so does its id.
            "reasoning" => self.profile.reasoning != ReasoningItems::Plain,
            _ => true,
        };
        match prefix {
            Some((_, prefix)) if own && !id.starts_with(prefix) => {
                let words = format!(
                    "Invalid '{place}': '{id}'. Expected an ID that begins with '{prefix}'."
                );
                self.fault(Rule::Or5, *place, words);
            }
            _ => {
                let length = id.chars().count();
                if length > MAX_ITEM_ID && kind != "reasoning" {
                    let words = format!(
                        "Invalid '{place}': string too long. Expected a string with maximum length \
                         {MAX_ITEM_ID}, but got a string with length {length} instead."
                    );
                    self.fault(Rule::Or5, *place, words);
                }
            }
        }
    }

    /// Reports a name that the server does not know.
    pub(super) fn unknown<'n>(
        &mut self,
        place: JsonPath<'_>,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        let words = format!(
            "Invalid value: '{name}'. Supported values are: {}.",
            list(known)
        );
        self.fault(Rule::Shape, place, words);
    }
}

/// Returns names as OpenAI lists them.
pub(super) fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names = names.into_iter().map(|name| format!("'{name}'"));
    let names: Vec<String> = names.collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [many @ .., last] => format!("{}, and {last}", many.join(", ")),
    }
}

fn has_one(part: &Value, keys: &[&str]) -> bool {
    let is_text = |key: &&&str| part.get(**key).is_some_and(Value::is_string);
    keys.iter().filter(is_text).count() == 1
}
