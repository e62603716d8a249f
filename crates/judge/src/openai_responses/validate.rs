//! [`validate`]: every rule of OpenAI Responses that a request breaks, judged as the server of a
//! [`Profile`] judges it, in its own words. Used by mock servers and property tests; it repairs
//! nothing. Never panics, whatever the JSON is.
//!
//! Judged here: OR1 to OR6, V3 and V4 of the rules, and the shape of items and settings. Which item
//! came of reasoning only its server knows (OR4): [`untied`](super::untied) judges that for one. V1, V2 and V5 to V11 need more than one request to
//! judge; so does V4's rule for thinking, because a step may lack reasoning from the start.
//!
//! The server's words are its own: tidy:allow-file(conversation)

use plimsoll_wire::__internals::MAX_ID;
use plimsoll_wire::__internals::json_kind;
use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::__internals::openai_responses::{fits, is_name};
use plimsoll_wire::openai_responses::{Profile, ReasoningItems};
use serde_json::{Value, json};

use super::pairing;
use super::settings::{self, list, too_long};
use crate::fault::{Fault, Rule, note};

/// What the content of anybody's message but the model's may hold.
const INPUT_PARTS: [&str; 4] = ["input_text", "input_image", "input_file", "input_audio"];
/// What the content of the model's may hold.
const OUTPUT_PARTS: [&str; 2] = ["output_text", "refusal"];
/// Whose messages there are.
const ROLES: [&str; 4] = ["assistant", "system", "developer", "user"];

/// The rules that a request breaks, items first and in their order within each group of rules;
/// empty for a valid one. A bare array of items is judged as a request's `input`.
#[must_use]
pub fn validate(request: &Value, profile: &Profile) -> Vec<Fault> {
    let input = match request {
        Value::Array(_) => Some(request),
        _ => request.get("input"),
    };
    let mut check = Check {
        profile,
        stored: request.get("store") != Some(&Value::Bool(false)) && request.is_object(),
        faults: Vec::new(),
    };
    match input {
        Some(Value::String(_)) => {}
        Some(Value::Array(items)) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                check.item(&format!("input[{index}]"), item);
            }
            pairing::check(&mut check, items);
        }
        None | Some(Value::Null | Value::Array(_)) => {
            let words = "One of \"input\" or \"previous_response_id\" or 'prompt' or \
                         'conversation_id' must be provided.";
            check.fault(Rule::Shape, "input".into(), words);
        }
        Some(other) => {
            let words = format!(
                "Invalid type for 'input': expected one of a string or array of objects, but got \
                 {} instead.",
                an(json_kind(other))
            );
            check.fault(Rule::Shape, "input".into(), words);
        }
    }
    if !request.is_array() {
        settings::check(&mut check, request);
    }
    check.faults
}

/// The status and the body with which the server refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault) -> (u16, Value) {
    let words = &fault.words;
    let begins = |with: &str| words.starts_with(with);
    let has = |part: &str| words.contains(part);
    let code = if has("could not be verified") {
        Some("invalid_encrypted_content")
    } else if has("string too long") {
        Some("string_above_max_length")
    } else if has("empty string") {
        Some("empty_string")
    } else if has("integer below minimum value") {
        Some("integer_below_min_value")
    } else if begins("Missing required parameter") {
        Some("missing_required_parameter")
    } else if begins("Unsupported parameter") {
        Some("unsupported_parameter")
    } else if begins("Unsupported value") {
        Some("unsupported_value")
    } else if begins("Unknown parameter") {
        Some("unknown_parameter")
    } else if begins("Invalid type") {
        Some("invalid_type")
    } else if begins("Invalid schema for function") {
        Some("invalid_function_parameters")
    } else if begins("Invalid schema") {
        Some("invalid_json_schema")
    } else if begins("Invalid value") || begins("Invalid 'input") {
        Some("invalid_value")
    } else {
        None
    };
    // Pairs are looked for in the whole input.
    let paired = matches!(
        fault.rule,
        Rule::Or1 | Rule::Or2 | Rule::Or3 | Rule::Or4 | Rule::V3 | Rule::V4
    );
    let param = if paired {
        "input"
    } else {
        fault.place.as_str()
    };
    let status = if begins("Item with id") { 404 } else { 400 };
    let error = json!({
        "message": words,
        "type": "invalid_request_error",
        "param": param,
        "code": code,
    });
    (status, json!({ "error": error }))
}

/// The first rule that a block of the provider's own breaks wherever it is put: in what the model
/// says (`assistant`) or in what anybody else does. `None` for a block that may stand there.
pub(crate) fn unfit(block: &Value, role: &str, stored: bool, profile: &Profile) -> Option<Fault> {
    let mut check = Check {
        profile,
        stored,
        faults: Vec::new(),
    };
    let kinds: &[&str] = match role {
        "assistant" => &OUTPUT_PARTS,
        _ => &INPUT_PARTS,
    };
    let kind = items::kind(block);
    if items::is_content(kind) {
        check.parts("content", std::slice::from_ref(block), kinds);
    } else if kind == "message" || items::is_clients(kind) == (role == "assistant") {
        let words = format!("an item of the kind '{kind}' is not said there");
        check.fault(Rule::Shape, "item".into(), words);
    } else {
        check.item("item", block);
    }
    check.faults.into_iter().next()
}

/// The faults found so far.
pub(super) struct Check<'p> {
    pub(super) profile: &'p Profile,
    /// Whether the server keeps what is said to it.
    stored: bool,
    faults: Vec<Fault>,
}

impl Check<'_> {
    pub(super) fn fault(&mut self, rule: Rule, place: String, words: impl Into<String>) {
        note(&mut self.faults, rule, place, words);
    }

    /// What can be judged of one item alone.
    fn item(&mut self, place: &str, item: &Value) {
        if !item.is_object() {
            let words = format!(
                "Invalid type for '{place}': expected an input item, but got {} instead.",
                an(json_kind(item))
            );
            self.fault(Rule::Shape, place.to_owned(), words);
            return;
        }
        let kind = items::kind(item);
        if !items::KINDS.contains(&kind) {
            let words = match kind {
                "" => format!("Missing required parameter: '{place}.type'."),
                kind => format!(
                    "Invalid value: '{kind}'. Supported values are: {}.",
                    list(items::KINDS.iter().copied())
                ),
            };
            self.fault(Rule::Shape, format!("{place}.type"), words);
            return;
        }
        self.id(place, kind, item);
        match kind {
            "message" => self.message(place, item),
            "function_call" => {
                self.call_id(place, item);
                self.named(place, item);
                self.string(place, item, "arguments");
            }
            "custom_tool_call" => {
                self.call_id(place, item);
                self.named(place, item);
                self.string(place, item, "input");
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.call_id(place, item);
                self.output(place, item);
            }
            "reasoning" => self.reasoning(place, item),
            "item_reference" => self.reference(place, item),
            "compaction" => self.compaction(place, item),
            _ => {}
        }
    }

    /// OR5.
    fn id(&mut self, place: &str, kind: &str, item: &Value) {
        let Some(id) = item.get("id").and_then(Value::as_str) else {
            return;
        };
        let place = format!("{place}.id");
        let prefix = items::PREFIXES.iter().find(|(of, _)| *of == kind);
        // A message that is not the model's has the id that its author gave it.
        let own = match kind {
            "message" => text(item, "role") == Some("assistant"),
            // Reasoning in the open is another server's, and so is its id.
            "reasoning" => self.profile.reasoning != ReasoningItems::Plain,
            _ => true,
        };
        match prefix {
            Some((_, prefix)) if own && !id.starts_with(prefix) => {
                let words = format!(
                    "Invalid '{place}': '{id}'. Expected an ID that begins with '{prefix}'."
                );
                self.fault(Rule::Or5, place, words);
            }
            _ => {
                let length = id.chars().count();
                if length > MAX_ID && kind != "reasoning" {
                    self.fault(Rule::Or5, place.clone(), too_long(&place, length));
                }
            }
        }
    }

    fn message(&mut self, place: &str, item: &Value) {
        let role = text(item, "role").unwrap_or_default();
        if !ROLES.contains(&role) {
            let words = format!(
                "Invalid value: '{role}'. Supported values are: {}.",
                list(ROLES.into_iter())
            );
            self.fault(Rule::Shape, format!("{place}.role"), words);
            return;
        }
        let place = format!("{place}.content");
        match item.get("content") {
            Some(Value::String(_)) => {}
            Some(Value::Array(parts)) => {
                let kinds: &[&str] = match role {
                    "assistant" => &OUTPUT_PARTS,
                    _ => &INPUT_PARTS,
                };
                self.parts(&place, parts, kinds);
            }
            None => self.missing(&place),
            Some(other) => {
                let words = format!(
                    "Invalid type for '{place}': expected one of an array of objects or string, \
                     but got {} instead.",
                    an(json_kind(other))
                );
                self.fault(Rule::Shape, place, words);
            }
        }
    }

    fn parts(&mut self, place: &str, parts: &[Value], kinds: &[&str]) {
        for (index, part) in parts.iter().enumerate() {
            let place = format!("{place}[{index}]");
            let Some(kind) = text(part, "type") else {
                self.missing(&format!("{place}.type"));
                continue;
            };
            if !kinds.contains(&kind) {
                let words = format!(
                    "Invalid value: '{kind}'. Supported values are: {}.",
                    list(kinds.iter().copied())
                );
                self.fault(Rule::Shape, format!("{place}.type"), words);
                continue;
            }
            match kind {
                "input_text" | "output_text" => self.string(&place, part, "text"),
                "refusal" => self.string(&place, part, "refusal"),
                "input_image" => self.one_of(&place, part, &["image_url", "file_id"]),
                "input_file" => {
                    self.one_of(&place, part, &["file_id", "file_data", "file_url"]);
                }
                _ => {}
            }
        }
    }

    fn output(&mut self, place: &str, item: &Value) {
        let place = format!("{place}.output");
        match item.get("output") {
            Some(Value::String(_)) => {}
            Some(Value::Array(parts)) => self.parts(&place, parts, &INPUT_PARTS),
            None => self.missing(&place),
            Some(other) => {
                let words = format!(
                    "Invalid type for '{place}': expected one of an array of objects or string, \
                     but got {} instead.",
                    an(json_kind(other))
                );
                self.fault(Rule::Shape, place, words);
            }
        }
    }

    /// OR4: an item of reasoning that nobody stored, without what is in it.
    fn reasoning(&mut self, place: &str, item: &Value) {
        let open = self.profile.reasoning == ReasoningItems::Plain;
        if !open && !item.get("summary").is_some_and(Value::is_array) {
            self.missing(&format!("{place}.summary"));
        }
        let kept = self.stored || self.profile.reasoning != ReasoningItems::Encrypted;
        if !kept && !items::is_encrypted(item) {
            let id = text(item, "id").unwrap_or_default();
            self.fault(Rule::Or4, place.to_owned(), not_stored(id));
        }
    }

    fn reference(&mut self, place: &str, item: &Value) {
        match text(item, "id") {
            None => self.missing(&format!("{place}.id")),
            Some(id) if !self.stored => {
                self.fault(Rule::Or4, place.to_owned(), not_stored(id));
            }
            Some(_) => {}
        }
    }

    /// OR6.
    fn compaction(&mut self, place: &str, item: &Value) {
        if !items::is_encrypted(item) {
            let place = format!("{place}.encrypted_content");
            let words = format!("Missing required parameter: '{place}'.");
            self.fault(Rule::Or6, place, words);
        }
    }

    fn call_id(&mut self, place: &str, item: &Value) {
        let place = format!("{place}.call_id");
        match item.get("call_id").and_then(Value::as_str) {
            None => self.missing(&place),
            Some("") => {
                let words = format!(
                    "Invalid '{place}': empty string. Expected a string with minimum length 1, \
                     but got an empty string instead."
                );
                self.fault(Rule::Or5, place, words);
            }
            Some(id) if !fits(id) => {
                let words = too_long(&place, id.chars().count());
                self.fault(Rule::Or5, place, words);
            }
            Some(_) => {}
        }
    }

    fn named(&mut self, place: &str, item: &Value) {
        match text(item, "name") {
            None => self.missing(&format!("{place}.name")),
            Some(name) => self.name(&format!("{place}.name"), name),
        }
    }

    /// The name of a tool or a format.
    pub(super) fn name(&mut self, place: &str, name: &str) {
        let length = name.chars().count();
        let words = if name.is_empty() {
            format!(
                "Invalid '{place}': empty string. Expected a string with minimum length 1, but \
                 got an empty string instead."
            )
        } else if length > MAX_ID {
            too_long(place, length)
        } else if !is_name(name) {
            format!(
                "Invalid '{place}': string does not match pattern. Expected a string that matches \
                 the pattern '^[a-zA-Z0-9_-]+$'."
            )
        } else {
            return;
        };
        self.fault(Rule::Shape, place.to_owned(), words);
    }

    fn string(&mut self, place: &str, object: &Value, key: &str) {
        let place = format!("{place}.{key}");
        match object.get(key) {
            Some(Value::String(_)) => {}
            None => self.missing(&place),
            Some(other) => {
                let words = format!(
                    "Invalid type for '{place}': expected a string, but got {} instead.",
                    an(json_kind(other))
                );
                self.fault(Rule::Shape, place, words);
            }
        }
    }

    fn one_of(&mut self, place: &str, part: &Value, keys: &[&str]) {
        let given = |key: &&&str| part.get(**key).is_some_and(Value::is_string);
        if keys.iter().filter(given).count() != 1 {
            let words = format!(
                "Invalid '{place}': exactly one of {} must be given.",
                list(keys.iter().copied())
            );
            self.fault(Rule::Shape, place.to_owned(), words);
        }
    }

    fn missing(&mut self, place: &str) {
        let words = format!("Missing required parameter: '{place}'.");
        self.fault(Rule::Shape, place.to_owned(), words);
    }
}

fn not_stored(id: &str) -> String {
    format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try \
         again with `store` set to true, or remove this item from your input."
    )
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// A kind of JSON with its article.
fn an(kind: &str) -> String {
    match kind {
        "array" | "object" => format!("an {kind}"),
        "null" => "null".to_owned(),
        kind => format!("a {kind}"),
    }
}
