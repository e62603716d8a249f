//! [`validate`]: every rule of Chat Completions that a request breaks, judged as the server of a
//! [`Dialect`] judges it, in its own words. Used by mock servers and property tests. Never panics,
//! whatever the JSON is.
//!
//! Judged here: OC1 to OC8, V3, V4 and T1 to T5 of the rules and, in `settings.rs`, OpenAI's own
//! settings. OC9 (prices) and T6 (ignored fields) are no reason to refuse a request. V1, V2 and V5 to
//! V11 need more than one request to judge. So does V4's rule for thinking, because this protocol does
//! not sign reasoning and a step may lack it from the start.

use std::sync::LazyLock;

use plimsoll_wire::__internals::openai_chat::{AUDIO, CUSTOM, reasons};
use plimsoll_wire::__internals::{is_json_object, is_legal_name};
use plimsoll_wire::CallIdForm;
use plimsoll_wire::openai_chat::{Dialect, EchoReasoning, ErrorStyle, NoContent};
use serde_json::{Value, json};

use super::echo;
use super::pairing;
use super::settings;
use crate::rules::fault::{Fault, Rule};
use crate::rules::json_path::JsonPath;
pub(super) use crate::rules::table::role;
use crate::rules::table::{self, Table, entries, text};

/// Mistral's error for unknown keys.
const FORBIDDEN: &str = "Extra inputs are not permitted";
/// The name of the server with the strictest rules.
pub(super) const STRICT: &str = "openai";

/// The rules for single values.
pub(crate) static TABLE: LazyLock<Table<Dialect>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/openai_chat.txt"),
        &[
            ("strict", |check, _, _| check.profile.name == STRICT),
            ("mistral", |check, _, _| {
                check.profile.voice == ErrorStyle::Mistral
            }),
            // Whether an assistant message may be empty is another rule.
            ("silence", |_, message, content| {
                content.is_none_or(Value::is_null)
                    && matches!(role(message), "assistant" | "function")
            }),
            ("silent", |check, message, content| {
                is_silent(check.profile, message, content)
            }),
            ("parallel", |check, message, _| {
                check.profile.parallel_calls || calls(message).len() < 2
            }),
            // A server that is configured to receive reasoning accepts it.
            ("no-reasoning", |check, _, _| {
                check.profile.voice == ErrorStyle::Mistral
                    && check.profile.echo_reasoning == EchoReasoning::Never
            }),
            ("address", |_, part, _| has_address(part)),
            // OpenRouter forwards requests to OpenAI, among others.
            ("as-openai", |check, _, _| {
                [STRICT, "openrouter"].contains(&check.profile.name.as_str())
            }),
            ("id", |check, _, id| {
                let accepts = |id| CallIdForm::NineAlphanumeric.accepts(id);
                check.profile.call_ids != CallIdForm::NineAlphanumeric
                    || id.and_then(Value::as_str).is_none_or(accepts)
            }),
            // Other servers only know `function` tools.
            ("custom", |check, call, _| {
                text(call, "type") == CUSTOM && !check.profile.object_arguments
            }),
            ("name", |_, _, name| {
                name.and_then(Value::as_str).is_some_and(is_legal_name)
            }),
            ("arguments", |check, _, arguments| {
                !check.profile.object_arguments
                    || arguments
                        .and_then(Value::as_str)
                        .is_some_and(is_json_object)
            }),
            ("reasons", |_, request, _| {
                let model = request.get("model").and_then(Value::as_str);
                model.is_some_and(reasons)
            }),
            ("tools", |_, request, _| {
                request.get("tools").is_some_and(Value::is_array)
            }),
        ],
    )
});

/// Returns the rules that a request breaks, in message order within each group of rules. Empty for a
/// valid request. A bare array of messages is judged as a request's `messages`.
#[must_use]
pub fn validate(request: &Value, dialect: &Dialect) -> Vec<Fault> {
    let messages = match request {
        Value::Array(messages) => Some(messages),
        _ => request.get("messages").and_then(Value::as_array),
    };
    let mut check = ChatCheck::new(dialect, &TABLE);
    match messages {
        None => {
            check.report("no-messages", "messages", &[]);
        }
        Some(messages) if messages.is_empty() => {
            check.report("no-message", "messages", &[]);
        }
        Some(messages) => {
            for (index, message) in messages.iter().enumerate() {
                let place = JsonPath::Named("messages");
                check.judge("message", "", &place.entry(index), message);
            }
            echo::check(&mut check, messages);
            pairing::check(&mut check, messages);
            check.order(messages);
        }
    }
    check.judge("request", "", &JsonPath::Named(""), request);
    settings::check(&mut check, request);
    check.faults
}

/// Returns the status and the body with which the server of the dialect refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault, dialect: &Dialect) -> (u16, Value) {
    let words = &fault.words;
    let template = matches!(
        fault.rule,
        Rule::Oc4 | Rule::Oc8 | Rule::T1 | Rule::T2 | Rule::T3 | Rule::T4 | Rule::T5
    );
    match dialect.voice {
        ErrorStyle::Template if template => {
            let message = match fault.rule {
                Rule::Oc4 | Rule::Oc8 => words.clone(),
                _ => format!("Jinja Exception: {words}"),
            };
            let error = json!({"code": 500, "message": message, "type": "server_error"});
            (500, json!({"error": error}))
        }
        ErrorStyle::Mistral if words == FORBIDDEN => {
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
        ErrorStyle::Mistral => {
            let (kind, code) = match fault.rule {
                Rule::Oc7 if words.starts_with("Tool call id") => ("invalid_function_call", "3280"),
                _ => ("invalid_request_message_order", "3230"),
            };
            let body = json!({
                "object": "error", "message": words, "type": kind, "param": null, "code": code
            });
            (400, body)
        }
        ErrorStyle::OpenAi | ErrorStyle::DeepSeek | ErrorStyle::Kimi | ErrorStyle::Template => {
            let status = if words == settings::ELSEWHERE {
                404
            } else {
                400
            };
            let kind = "invalid_request_error";
            let body = error_body(kind, Some(&fault.place), TABLE.code(words), words);
            (status, body)
        }
    }
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

pub(super) type ChatCheck<'d> = table::Check<'d, Dialect>;

impl ChatCheck<'_> {
    /// Applies the rules about neighbours and the whole list: OC7, OC8, T1 to T4.
    fn order(&mut self, messages: &[Value]) {
        let dialect = self.profile;
        let mut previous = "";
        let mut has_calls = false;
        let mut only_systems = true;
        let is_mistral = dialect.voice == ErrorStyle::Mistral;
        for (index, message) in messages.iter().enumerate() {
            let role = role(message);
            let system = role == "system" || role == "developer";
            let twice = role == previous && (role == "user" || role == "assistant");
            let headless = role == "assistant" && only_systems;
            // Mistral accepts consecutive user messages and an assistant message at the start. Calls
            // without results are reported elsewhere.
            let out_of_turn = if is_mistral {
                twice && role == "assistant" && !has_calls
            } else {
                twice || headless
            };
            let after_tool = role == "user" && previous == "tool";
            for (is_broken, refusal) in [
                (system && index > 0 && dialect.system_first, "late-system"),
                (after_tool && !dialect.user_after_tool, "user-after-tool"),
                (out_of_turn && dialect.merges_roles, "alternate"),
            ] {
                let place = format!("messages[{index}].role");
                if is_broken && is_mistral {
                    self.unexpected(place, role, previous);
                } else if is_broken {
                    self.report(refusal, place, &[]);
                }
            }
            previous = role;
            has_calls = !calls(message).is_empty();
            only_systems &= system;
        }
        let last = messages.len().saturating_sub(1);
        if previous == "assistant"
            && !dialect.prefill
            && !(is_mistral && messages.last().is_some_and(is_prefix))
        {
            let refusal = if is_mistral { "last-role" } else { "prefill" };
            self.report(refusal, format!("messages[{last}]"), &[]);
        }
        let no_user = !messages.iter().any(|message| role(message) == "user");
        if no_user && dialect.needs_user {
            self.report("no-user", "messages", &[]);
        }
    }

    /// Reports an order that Mistral does not accept: OC7.
    pub(super) fn unexpected(&mut self, place: String, role: &str, previous: &str) {
        self.report("unexpected", place, &[&role, &previous]);
    }
}

/// Returns `true` if an assistant message has neither content nor calls: OC5.
fn is_silent(dialect: &Dialect, message: &Value, content: Option<&Value>) -> bool {
    let has_calls =
        || !calls(message).is_empty() || message.get("function_call").is_some_and(Value::is_object);
    let refused = || {
        message.get("refusal").is_some_and(Value::is_string)
            || message.get(AUDIO).is_some_and(Value::is_object)
    };
    match content {
        Some(Value::String(text)) if text.is_empty() => {
            dialect.no_content == NoContent::Omit || !has_calls()
        }
        Some(Value::Array(parts)) => parts.is_empty() && !has_calls(),
        Some(Value::Null) => dialect.no_content != NoContent::Null || !(has_calls() || refused()),
        None => dialect.no_content == NoContent::Empty || !(has_calls() || refused()),
        Some(_) => false,
    }
}

/// Returns `true` if an image has an address. Some clients give it without an object around it.
fn has_address(part: &Value) -> bool {
    let image = part.get("image_url").unwrap_or(&Value::Null);
    image.get("url").unwrap_or(image).is_string()
}

/// Returns `true` if an assistant message is to be continued, in Mistral's notation.
pub(crate) fn is_prefix(message: &Value) -> bool {
    role(message) == "assistant" && message.get("prefix") == Some(&Value::Bool(true))
}

pub(super) fn calls(message: &Value) -> &[Value] {
    entries(message, "tool_calls")
}
