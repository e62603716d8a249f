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
use serde_json::Value;

use super::pairing;
use super::settings;
use crate::rules::fault::{Fault, Rule};
use crate::rules::json_path::JsonPath;
use crate::rules::openai_chat::error_body;
use crate::rules::table::{self, Table, kind_of, text};

/// The maximum length of an item's id.
const MAX_ITEM_ID: usize = 64;
/// The rules for single values.
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
            check.report("no-input", "input", &[]);
        }
        Some(other) => {
            check.report("input-type", "input", &[&kind_of(Some(other))]);
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
    let body = error_body(
        "invalid_request_error",
        Some(param),
        TABLE.code(words),
        words,
    );
    (status, body)
}

pub(super) type ResponsesCheck<'p> = table::Check<'p, ResponsesProfile>;

impl ResponsesCheck<'_> {
    /// Applies the rules that concern one item alone.
    fn item(&mut self, place: &JsonPath<'_>, item: &Value) {
        if !item.is_object() {
            self.report("item-type", *place, &[&kind_of(Some(item))]);
            return;
        }
        match items::kind(item) {
            "" => {
                self.report("missing-type", place.key("type"), &[]);
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
                self.report("id-prefix", *place, &[&id, &prefix]);
            }
            _ => {
                let length = id.chars().count();
                if length > MAX_ITEM_ID && kind != "reasoning" {
                    self.report("id-length", *place, &[&length]);
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
        self.report("unknown-value", place, &[&name, &list(known)]);
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
