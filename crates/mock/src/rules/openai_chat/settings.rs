//! Judges the settings of a request to OpenAI: known keys, limits, tools, formats. Part of the
//! validator. Servers that copy the API are not judged, because they ignore unknown settings.

use plimsoll_wire::__internals::openai_chat::CUSTOM;
use plimsoll_wire::openai_chat::{Reach, reach, takes_temperature};
use serde_json::Value;

use super::validate::{ChatCheck, STRICT, TABLE};
use crate::rules::fault::{Rule, key_place};
use crate::rules::json_path::JsonPath;
use crate::rules::table::{entries, kind_of, text};

/// The error for a model that this API does not serve.
pub(super) const ELSEWHERE: &str =
    "This model is only supported in v1/responses and not in v1/chat/completions.";

/// Judges a request's settings if the server is OpenAI's own.
pub(super) fn check(check: &mut ChatCheck<'_>, request: &Value) {
    let Some(keys) = request.as_object().filter(|_| check.profile.name == STRICT) else {
        return;
    };
    for key in keys.keys().filter(|key| !TABLE.has("keys", key)) {
        check.report("unknown-key", key_place(key), &[&key]);
    }
    check.judge("limits", "", &JsonPath::Named(""), request);
    thinking(check, request);
    check.judge("tools", "", &JsonPath::Named(""), request);
    chosen(check, request);
    let format = request.get("response_format");
    if let Some(format) = format.filter(|format| !format.is_null()) {
        check.judge("format", "", &JsonPath::Named("response_format"), format);
        if text(format, "type") == "json_object" && !mentions_json(request) {
            check.report("no-json", "messages", &[]);
        }
    }
    let metadata = request.get("metadata").and_then(Value::as_object);
    for (key, value) in metadata.into_iter().flatten() {
        if !value.is_string() {
            check.report("metadata", "metadata", &[&key, &kind_of(Some(value))]);
        }
    }
}

/// Returns `true` if a text of the messages contains the word JSON.
fn mentions_json(request: &Value) -> bool {
    let texts = entries(request, "messages").iter();
    let mut texts = texts.filter_map(|message| message.get("content"));
    texts.any(|content| content.to_string().to_lowercase().contains("json"))
}

/// Judges the settings that depend on the model's reasoning.
fn thinking(check: &mut ChatCheck<'_>, request: &Value) {
    let Some(model) = request.get("model").and_then(Value::as_str) else {
        return;
    };
    let effort = request.get("reasoning_effort").and_then(Value::as_str);
    let temperature = request.get("temperature").and_then(Value::as_f64);
    if let Some(value) = temperature.filter(|value| !takes_temperature(model, effort, *value)) {
        check.report("temperature", "temperature", &[&value]);
    }
    let tools = !entries(request, "tools").is_empty();
    let refusal = match (reach(model), effort) {
        (Reach::Nothing, _) => {
            check.fault(Rule::Shape, "model", ELSEWHERE);
            return;
        }
        (_, _) if !tools => return,
        (Reach::NoTools, _) => "tools-elsewhere",
        (Reach::ToolsUnasked, Some(effort)) if effort != "none" => "tools-elsewhere",
        (Reach::ToolsAtNone, effort) if effort != Some("none") => "tools-without-effort",
        _ => return,
    };
    check.report(refusal, "reasoning_effort", &[&model]);
}

/// Judges the tool choice: it must name one of the tools.
fn chosen(check: &mut ChatCheck<'_>, request: &Value) {
    let Some(tools) = request.get("tools").and_then(Value::as_array) else {
        return;
    };
    let choice = request.get("tool_choice").unwrap_or(&Value::Null);
    for key in ["function", CUSTOM] {
        let name = |of: &Value| of.get(key)?.get("name")?.as_str().map(str::to_owned);
        if let Some(name) = name(choice).filter(|chosen| {
            let mut names = tools.iter().filter_map(name);
            !names.any(|name| name == *chosen)
        }) {
            check.report("choice", "tool_choice", &[&name]);
        }
    }
}
