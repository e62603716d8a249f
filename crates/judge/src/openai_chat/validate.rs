//! [`validate`]: every rule of Chat Completions that a request breaks, judged as the server of a
//! [`Dialect`] judges it, in its own words. Used by mock servers and property tests; it repairs
//! nothing. Never panics, whatever the JSON is.
//!
//! Judged here: OC1 to OC8, V3, V4 and T1 to T5 of the rules and, by `settings.rs`, what OpenAI
//! itself takes besides messages. OC9 is about prices, and T6 is about what a server ignores:
//! neither can refuse a request. V1, V2 and V5 to V11 need more than one request to judge; so does
//! V4's rule for thinking, because reasoning is not signed on this wire and a step may lack it from
//! the start.
//!
//! The servers' words are theirs: tidy:allow-file(conversation)

use plimsoll_wire::__internals::MAX_CHAT_ID;
use plimsoll_wire::__internals::openai_chat::AUDIO;
use plimsoll_wire::__internals::openai_chat::CUSTOM;
use plimsoll_wire::__internals::openai_responses::is_name;
use plimsoll_wire::__internals::{is_json_object, json_kind};
use plimsoll_wire::CallIdForm;
use plimsoll_wire::openai_chat::{
    Arguments, CallIds, CallNames, Dialect, EchoReasoning, NoContent, ParallelCalls, Prefill,
    SameRole, SystemPlace, UserAfterTool, UserMessage, Voice,
};
use serde_json::{Value, json};

use super::echo;
use super::pairing;
use super::settings;
use crate::fault::{Fault, Rule, note};

/// Keys of an assistant message that Mistral does not know, and refuses.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];
/// Keys of a request that it does not know.
const UNKNOWN: [&str; 1] = ["seed"];
/// What it says of them.
const FORBIDDEN: &str = "Extra inputs are not permitted";

/// What the server that is judged most strictly is called.
pub(super) const STRICT: &str = "openai";
/// The kinds of parts that it has.
const KINDS: [&str; 6] = [
    "text",
    "image_url",
    "input_audio",
    "refusal",
    "audio",
    "file",
];
/// The longest name of a tool.
const MAX_NAME: usize = 64;

/// The rules that a request breaks, in message order within each group of rules; empty for a
/// valid one. A bare array of messages is judged as a request's `messages`.
#[must_use]
pub fn validate(request: &Value, dialect: &Dialect) -> Vec<Fault> {
    let messages = match request {
        Value::Array(messages) => Some(messages),
        _ => request.get("messages").and_then(Value::as_array),
    };
    let mut check = Check {
        dialect,
        faults: Vec::new(),
    };
    match messages {
        None => {
            let words = "Missing required parameter: 'messages'.";
            check.fault(Rule::Shape, "messages".into(), words);
        }
        Some(messages) if messages.is_empty() => {
            let words = "Invalid 'messages': empty array. Expected an array with minimum length \
                         1, but got an empty array instead.";
            check.fault(Rule::Shape, "messages".into(), words);
        }
        Some(messages) => {
            for (index, message) in messages.iter().enumerate() {
                check.message(index, message);
            }
            echo::check(&mut check, messages);
            pairing::check(&mut check, messages);
            check.order(messages);
        }
    }
    check.forbidden("", request, &UNKNOWN);
    settings::check(&mut check, request);
    check.faults
}

/// The status and the body with which the server of the dialect refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault, dialect: &Dialect) -> (u16, Value) {
    let words = &fault.words;
    let template = matches!(
        fault.rule,
        Rule::Oc4 | Rule::Oc8 | Rule::T1 | Rule::T2 | Rule::T3 | Rule::T4 | Rule::T5
    );
    match dialect.voice {
        Voice::Template if template => {
            let message = match fault.rule {
                Rule::Oc4 | Rule::Oc8 => words.clone(),
                _ => format!("Jinja Exception: {words}"),
            };
            let error = json!({"code": 500, "message": message, "type": "server_error"});
            (500, json!({"error": error}))
        }
        Voice::Mistral if words == FORBIDDEN => {
            let place = fault.place.split(['.', '[', ']']);
            let place = place.filter(|part| !part.is_empty());
            let place = place.map(|part| part.parse().map_or(json!(part), |at: usize| json!(at)));
            let place: Vec<Value> = std::iter::once(json!("body")).chain(place).collect();
            let detail = json!([{"type": "extra_forbidden", "loc": place, "msg": words}]);
            let body = json!({
                "object": "error", "message": {"detail": detail}, "type": "invalid_request_error",
                "param": null, "code": null
            });
            (422, body)
        }
        Voice::Mistral => {
            let (kind, code) = match fault.rule {
                Rule::Oc7 if words.starts_with("Tool call id") => ("invalid_function_call", "3280"),
                _ => ("invalid_request_message_order", "3230"),
            };
            let body = json!({
                "object": "error", "message": words, "type": kind, "param": null, "code": code
            });
            (400, body)
        }
        Voice::OpenAi | Voice::DeepSeek | Voice::Kimi | Voice::Template => {
            let error = json!({
                "message": words,
                "type": "invalid_request_error",
                "param": fault.place,
                "code": code(words),
            });
            let status = if words == settings::ELSEWHERE {
                404
            } else {
                400
            };
            (status, json!({"error": error}))
        }
    }
}

/// The code of what a field may not have, or of a field that may not be there.
fn code(words: &str) -> Option<&'static str> {
    const CODES: [(&str, &str); 13] = [
        ("string too long", "string_above_max_length"),
        ("array too long", "array_above_max_length"),
        ("empty array", "empty_array"),
        ("does not match pattern", "invalid_value"),
        ("integer below minimum", "integer_below_min_value"),
        ("integer above maximum", "integer_above_max_value"),
        ("decimal below minimum", "decimal_below_min_value"),
        ("decimal above maximum", "decimal_above_max_value"),
        ("Missing required parameter", "missing_required_parameter"),
        ("Unsupported parameter", "unsupported_parameter"),
        ("Unsupported value", "unsupported_value"),
        ("Unknown parameter", "unknown_parameter"),
        ("Invalid value: '", "invalid_value"),
    ];
    let said = CODES.iter().find(|(part, _)| words.contains(part));
    said.map(|(_, code)| *code)
}

fn too_long(place: &str, most: usize, length: usize) -> String {
    format!(
        "Invalid '{place}': string too long. Expected a string with maximum length {most}, but got \
         a string with length {length} instead."
    )
}

/// The faults found so far.
pub(super) struct Check<'d> {
    pub(super) dialect: &'d Dialect,
    faults: Vec<Fault>,
}

impl Check<'_> {
    pub(super) fn fault(&mut self, rule: Rule, place: String, words: impl Into<String>) {
        note(&mut self.faults, rule, place, words);
    }

    /// What can be judged of one message alone.
    fn message(&mut self, index: usize, message: &Value) {
        let place = format!("messages[{index}]");
        let role = role(message);
        let known = [
            "system",
            "developer",
            "user",
            "assistant",
            "tool",
            "function",
        ];
        if !known.contains(&role) {
            let words = format!(
                "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', \
                 'function', 'tool', and 'developer'."
            );
            self.fault(Rule::Shape, format!("{place}.role"), words);
            return;
        }
        self.content(&place, role, message);
        if role == "assistant" {
            self.calls(&place, message);
            self.silence(&place, message);
            // Whoever is configured to get it knows it.
            if self.dialect.echo_reasoning == EchoReasoning::Never {
                self.forbidden(&format!("{place}."), message, &REASONING);
            }
        }
        if role == "tool" && !message.get("tool_call_id").is_some_and(Value::is_string) {
            let words = format!("Missing required parameter: '{place}.tool_call_id'.");
            self.fault(Rule::Shape, format!("{place}.tool_call_id"), words);
        }
    }

    fn content(&mut self, place: &str, role: &str, message: &Value) {
        let place = format!("{place}.content");
        match message.get("content") {
            Some(Value::String(_)) => {}
            Some(Value::Array(parts)) => {
                for (index, part) in parts.iter().enumerate() {
                    self.part(format!("{place}[{index}]"), role, part);
                }
            }
            // Whether an assistant may be silent is another rule.
            None | Some(Value::Null) if role == "assistant" || role == "function" => {}
            other => {
                let got = other.map_or("nothing", json_kind);
                let words = format!(
                    "Invalid value for 'content': expected a string or an array, got {got}."
                );
                self.fault(Rule::Shape, place, words);
            }
        }
    }

    fn part(&mut self, place: String, role: &str, part: &Value) {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        match (role, kind) {
            (_, "") => {
                let words = format!("Missing required parameter: '{place}.type'.");
                self.fault(Rule::Shape, place, words);
            }
            ("tool", kind) if kind != "text" => {
                let words = format!(
                    "Image URLs are only allowed for messages with role 'user', but this message \
                     with role 'tool' contains a part of type '{kind}'."
                );
                self.fault(Rule::Oc3, place, words);
            }
            (_, kind) => {
                let missing = match kind {
                    "text" if !part.get("text").is_some_and(Value::is_string) => Some("text"),
                    "image_url" if !has_address(part) => Some("image_url.url"),
                    _ => None,
                };
                if let Some(key) = missing {
                    let words = format!("Missing required parameter: '{place}.{key}'.");
                    self.fault(Rule::Shape, format!("{place}.{key}"), words);
                } else if let Some(words) = unknown_kind(kind, self.dialect) {
                    self.fault(Rule::Shape, place, words);
                }
            }
        }
    }

    fn calls(&mut self, place: &str, message: &Value) {
        let calls = calls(message);
        for (index, call) in calls.iter().enumerate() {
            let place = format!("{place}.tool_calls[{index}]");
            match call.get("id").and_then(Value::as_str) {
                None => {
                    let words = format!("Missing required parameter: '{place}.id'.");
                    self.fault(Rule::Shape, format!("{place}.id"), words);
                }
                Some(id) => self.id(format!("{place}.id"), id),
            }
            let is_custom = call.get("type").is_some_and(|kind| kind == CUSTOM);
            // Others know functions alone.
            let is_custom = is_custom && self.dialect.arguments == Arguments::AnyText;
            let key = if is_custom { CUSTOM } else { "function" };
            let called = call.get(key).unwrap_or(&Value::Null);
            let place = format!("{place}.{key}");
            match called.get("name").and_then(Value::as_str) {
                None => {
                    let words = format!("Missing required parameter: '{place}.name'.");
                    self.fault(Rule::Shape, format!("{place}.name"), words);
                }
                Some(name) => self.name(format!("{place}.name"), name),
            }
            match is_custom {
                true if called.get("input").is_some_and(Value::is_string) => {}
                true => {
                    let words = format!("Missing required parameter: '{place}.input'.");
                    self.fault(Rule::Shape, format!("{place}.input"), words);
                }
                false => self.arguments(format!("{place}.arguments"), called),
            }
        }
        if calls.len() > 1 && self.dialect.parallel_calls == ParallelCalls::OneAtATime {
            let words = "This model only supports single tool-calls at once!";
            self.fault(Rule::T5, format!("{place}.tool_calls"), words);
        }
    }

    /// The name of a tool or a schema.
    pub(super) fn name(&mut self, place: String, name: &str) {
        if self.dialect.call_names == CallNames::Any || is_name(name) {
            return;
        }
        let length = name.chars().count();
        let words = match length {
            0 => format!(
                "Invalid '{place}': empty string. Expected a string with minimum length 1, but got \
                 an empty string instead."
            ),
            1..=MAX_NAME => format!(
                "Invalid '{place}': string does not match pattern. Expected a string that matches \
                 the pattern '^[a-zA-Z0-9_-]+$'."
            ),
            _ => too_long(&place, MAX_NAME, length),
        };
        self.fault(Rule::Shape, place, words);
    }

    fn id(&mut self, place: String, id: &str) {
        let length = id.chars().count();
        if self.dialect.call_ids == CallIds::UpTo40 && length > MAX_CHAT_ID {
            let words = too_long(&place, MAX_CHAT_ID, length);
            self.fault(Rule::Shape, place, words);
            return;
        }
        if self.dialect.call_ids == CallIds::NineAlphanumeric
            && !CallIdForm::NineAlphanumeric.accepts(id)
        {
            let words =
                format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.");
            self.fault(Rule::Oc7, place, words);
        }
    }

    fn arguments(&mut self, place: String, function: &Value) {
        let object_only = self.dialect.arguments == Arguments::JsonObject;
        match function.get("arguments") {
            Some(Value::String(text)) if !object_only || is_json_object(text) => {}
            Some(Value::String(_)) => {
                let words = "Failed to parse tool call arguments as JSON: \
                             [json.exception.parse_error.101] parse error";
                self.fault(Rule::Oc4, place, words);
            }
            other => {
                let got = other.map_or("nothing", json_kind);
                let words = format!(
                    "Invalid type for '{place}': expected a string, but got {got} instead."
                );
                self.fault(Rule::Oc4, place, words);
            }
        }
    }

    /// Keys that Mistral refuses because it does not know them.
    fn forbidden(&mut self, inside: &str, of: &Value, keys: &[&str]) {
        if self.dialect.voice != Voice::Mistral {
            return;
        }
        for key in keys.iter().filter(|key| of.get(**key).is_some()) {
            self.fault(Rule::Shape, format!("{inside}{key}"), FORBIDDEN);
        }
    }

    /// OC5.
    fn silence(&mut self, place: &str, message: &Value) {
        let has_calls = !calls(message).is_empty()
            || message.get("function_call").is_some_and(Value::is_object);
        let refused = message.get("refusal").is_some_and(Value::is_string)
            || message.get(AUDIO).is_some_and(Value::is_object);
        let widest = self.dialect.no_content == NoContent::Null;
        let fine = match message.get("content") {
            Some(Value::String(text)) if text.is_empty() => match self.dialect.no_content {
                NoContent::Null | NoContent::Empty => has_calls,
                NoContent::Omit => false,
            },
            Some(Value::Array(parts)) => !parts.is_empty() || has_calls,
            Some(Value::Null) => widest && (has_calls || refused),
            None => self.dialect.no_content != NoContent::Empty && (has_calls || refused),
            Some(_) => true,
        };
        if !fine {
            let words = "Invalid value for 'content': expected a string, got null.";
            self.fault(Rule::Oc5, format!("{place}.content"), words);
        }
    }

    /// What neighbours and the whole list are judged by: OC7, OC8, T1 to T4.
    fn order(&mut self, messages: &[Value]) {
        let dialect = self.dialect;
        let mut previous = "";
        let mut asked = false;
        let mut only_systems = true;
        for (index, message) in messages.iter().enumerate() {
            let place = format!("messages[{index}].role");
            let role = role(message);
            let system = role == "system" || role == "developer";
            if system && index > 0 && dialect.system == SystemPlace::First {
                if dialect.voice == Voice::Mistral {
                    self.unexpected(place.clone(), role, previous);
                } else {
                    let words = "System message must be at the beginning.";
                    self.fault(Rule::T3, place.clone(), words);
                }
            }
            if role == "user"
                && previous == "tool"
                && dialect.user_after_tool == UserAfterTool::Bridge
            {
                if dialect.voice == Voice::Mistral {
                    self.unexpected(place.clone(), role, previous);
                } else {
                    let words = "After the optional system message, conversation roles must \
                                 alternate user and assistant roles except for tool calls and \
                                 results.";
                    self.fault(Rule::T2, place.clone(), words);
                }
            }
            let twice = role == previous && (role == "user" || role == "assistant");
            let headless = role == "assistant" && only_systems;
            if dialect.voice == Voice::Mistral {
                // It takes neighbours of the user's, and an assistant who speaks first. Calls without
                // results are told of already.
                let assistant = role == "assistant" && !asked;
                if twice && assistant && dialect.same_role == SameRole::Merge {
                    self.unexpected(place, role, previous);
                }
            } else if (twice || headless) && dialect.same_role == SameRole::Merge {
                let words = "Conversation roles must alternate user/assistant/user/assistant/...";
                self.fault(Rule::T1, place, words);
            }
            previous = role;
            asked = !calls(message).is_empty();
            only_systems &= system;
        }
        let last = messages.len().saturating_sub(1);
        if previous == "assistant"
            && dialect.prefill == Prefill::Refused
            && !(dialect.voice == Voice::Mistral && messages.last().is_some_and(is_prefix))
        {
            let words = match dialect.voice {
                Voice::Mistral => {
                    "Expected last role User or Tool (or Assistant with prefix True) for serving \
                     but got assistant"
                }
                _ => "Assistant response prefill is incompatible with enable_thinking",
            };
            self.fault(Rule::Oc8, format!("messages[{last}]"), words);
        }
        let no_user = !messages.iter().any(|message| role(message) == "user");
        if no_user && dialect.user == UserMessage::Required {
            self.fault(
                Rule::T4,
                "messages".into(),
                "No user query found in messages.",
            );
        }
    }

    /// OC7: an order that Mistral does not take.
    pub(super) fn unexpected(&mut self, place: String, role: &str, previous: &str) {
        let words = format!("Unexpected role '{role}' after role '{previous}'");
        self.fault(Rule::Oc7, place, words);
    }
}

/// Whether an image says where it is; some say it without an object around it.
fn has_address(part: &Value) -> bool {
    let image = part.get("image_url").unwrap_or(&Value::Null);
    image.get("url").unwrap_or(image).is_string()
}

/// Whether a message of the assistant's is to be gone on with, as Mistral has it.
pub(crate) fn is_prefix(message: &Value) -> bool {
    role(message) == "assistant" && message.get("prefix") == Some(&Value::Bool(true))
}

pub(super) fn role(message: &Value) -> &str {
    message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(super) fn calls(message: &Value) -> &[Value] {
    message
        .get("tool_calls")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// What OpenAI says of a part of a kind that it does not have; others may have more.
pub(crate) fn unknown_kind(kind: &str, dialect: &Dialect) -> Option<String> {
    let strict = dialect.name == STRICT && !kind.is_empty() && !KINDS.contains(&kind);
    strict.then(|| {
        format!(
            "Invalid value: '{kind}'. Supported values are: 'text', 'image_url', 'input_audio', \
             'refusal', 'audio', and 'file'."
        )
    })
}
