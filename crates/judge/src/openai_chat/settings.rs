//! Whether everything of a request besides its messages is what OpenAI itself accepts: known keys,
//! limits, tools, formats. Part of the validator; it judges and repairs nothing. Not for servers
//! that copy the API: they ignore what they do not know.
//!
//! The server's words are its own: tidy:allow-file(function call)

use plimsoll_wire::__internals::openai_chat::{CUSTOM, reasons};
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::openai_chat::{Reach, reach, takes_temperature};
use serde_json::Value;

use super::validate::Check;
use super::validate::STRICT;
use crate::fault::{Rule, key_place};

/// The most replies to one request.
const MAX_CHOICES: f64 = 128.0;
/// The most tools of one request.
const MAX_TOOLS: usize = 128;
/// What is said of a model that this API does not serve.
pub(super) const ELSEWHERE: &str =
    "This model is only supported in v1/responses and not in v1/chat/completions.";
/// The keys that a request may have.
const KEYS: [&str; 37] = [
    "model",
    "messages",
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Judges a request's settings, where the server is as strict as that.
pub(super) fn check(check: &mut Check<'_>, request: &Value) {
    if !is_strict(check.dialect) {
        return;
    }
    let Some(keys) = request.as_object() else {
        return;
    };
    for key in keys.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        let words = format!("Unknown parameter: '{key}'.");
        check.fault(Rule::Shape, key_place(key), words);
    }
    limits(check, request);
    thinking(check, request);
    delivery(check, request);
    tools(check, request);
    format(check, request);
}

fn is_strict(dialect: &Dialect) -> bool {
    dialect.name == STRICT
}

fn limits(check: &mut Check<'_>, request: &Value) {
    let model = request.get("model").and_then(Value::as_str);
    let given = request
        .get("max_tokens")
        .is_some_and(|limit| !limit.is_null());
    if given && model.is_some_and(reasons) {
        let words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                     'max_completion_tokens' instead.";
        check.fault(Rule::Shape, "max_tokens".into(), words);
    }
    for (key, least, most) in [
        ("max_tokens", 1.0, f64::INFINITY),
        ("max_completion_tokens", 1.0, f64::INFINITY),
        ("n", 1.0, MAX_CHOICES),
        ("temperature", 0.0, 2.0),
        ("top_p", 0.0, 1.0),
        ("frequency_penalty", -2.0, 2.0),
        ("presence_penalty", -2.0, 2.0),
    ] {
        range(check, request, key, least, most);
    }
}

/// What depends on how the model thinks.
fn thinking(check: &mut Check<'_>, request: &Value) {
    let Some(model) = request.get("model").and_then(Value::as_str) else {
        return;
    };
    let effort = request.get("reasoning_effort").and_then(Value::as_str);
    let temperature = request.get("temperature").and_then(Value::as_f64);
    if let Some(given) = temperature.filter(|given| !takes_temperature(model, effort, *given)) {
        let words = format!(
            "Unsupported value: 'temperature' does not support {given} with this model. Only the \
             default (1) value is supported."
        );
        check.fault(Rule::Shape, "temperature".into(), words);
    }
    let tools = request.get("tools").and_then(Value::as_array);
    let tools = tools.is_some_and(|tools| !tools.is_empty());
    let apart = format!(
        "Function tools with reasoning_effort are not supported for {model} in \
         /v1/chat/completions."
    );
    let words = match (reach(model), effort) {
        (Reach::Nothing, _) => {
            check.fault(Rule::Shape, "model".into(), ELSEWHERE);
            return;
        }
        (_, _) if !tools => return,
        (Reach::NoTools, _) => format!("{apart} Please use /v1/responses instead."),
        (Reach::ToolsUnasked, Some(effort)) if effort != "none" => {
            format!("{apart} Please use /v1/responses instead.")
        }
        (Reach::ToolsAtNone, effort) if effort != Some("none") => format!(
            "{apart} To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        ),
        _ => return,
    };
    check.fault(Rule::Shape, "reasoning_effort".into(), words);
}

/// A number that has a least and a most.
fn range(check: &mut Check<'_>, request: &Value, key: &str, least: f64, most: f64) {
    let Some(given) = request.get(key).and_then(Value::as_f64) else {
        return;
    };
    let whole = matches!(key, "n" | "max_tokens" | "max_completion_tokens");
    let kind = if whole { "integer" } else { "decimal" };
    let beyond = if given < least {
        format!("below minimum value. Expected a value >= {least}")
    } else if given > most {
        format!("above maximum value. Expected a value <= {most}")
    } else {
        return;
    };
    let words = format!("Invalid '{key}': {kind} {beyond}, but got {given} instead.");
    check.fault(Rule::Shape, key.to_owned(), words);
}

fn delivery(check: &mut Check<'_>, request: &Value) {
    let asked = request
        .get("stream_options")
        .is_some_and(|one| !one.is_null());
    if asked && request.get("stream") != Some(&Value::Bool(true)) {
        let words = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        check.fault(Rule::Shape, "stream_options".into(), words);
    }
}

fn tools(check: &mut Check<'_>, request: &Value) {
    let tools = request.get("tools").and_then(Value::as_array);
    for key in ["tool_choice", "parallel_tool_calls"] {
        if tools.is_none() && request.get(key).is_some_and(|one| !one.is_null()) {
            let words = format!(
                "Invalid value for '{key}': '{key}' is only allowed when 'tools' are specified."
            );
            check.fault(Rule::Shape, key.to_owned(), words);
        }
    }
    let Some(tools) = tools else {
        return;
    };
    if tools.is_empty() {
        let words = "Invalid 'tools': empty array. Expected an array with minimum length 1, but \
                     got an empty array instead.";
        check.fault(Rule::Shape, "tools".into(), words);
    }
    if tools.len() > MAX_TOOLS {
        let words = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {MAX_TOOLS}, \
             but got an array with length {} instead.",
            tools.len()
        );
        check.fault(Rule::Shape, "tools".into(), words);
    }
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tools[{index}]");
        match tool.get("type").and_then(Value::as_str) {
            None => missing(check, format!("{place}.type")),
            Some("function") => {
                let place = format!("{place}.function");
                let Some(function) = tool.get("function") else {
                    missing(check, place);
                    continue;
                };
                named(check, &place, function);
            }
            Some(_) => {}
        }
    }
    chosen(check, request, tools);
}

/// The tool that is asked for is one of them.
fn chosen(check: &mut Check<'_>, request: &Value, tools: &[Value]) {
    let choice = request.get("tool_choice").unwrap_or(&Value::Null);
    for key in ["function", CUSTOM] {
        let name = |of: &Value| of.get(key)?.get("name")?.as_str().map(str::to_owned);
        if let Some(name) = name(choice).filter(|asked| {
            let mut names = tools.iter().filter_map(name);
            !names.any(|name| name == *asked)
        }) {
            let words = format!("Tool choice '{name}' not found in 'tools' parameter.");
            check.fault(Rule::Shape, "tool_choice".into(), words);
        }
    }
}

fn format(check: &mut Check<'_>, request: &Value) {
    let Some(format) = request.get("response_format").filter(|one| !one.is_null()) else {
        return;
    };
    match format.get("type").and_then(Value::as_str) {
        None => missing(check, "response_format.type".into()),
        Some("text" | "json_object") => {}
        Some("json_schema") => {
            let place = "response_format.json_schema";
            let Some(schema) = format.get("json_schema") else {
                missing(check, place.into());
                return;
            };
            named(check, place, schema);
            if schema.get("schema").is_none() {
                missing(check, format!("{place}.schema"));
            }
        }
        Some(other) => {
            let words = format!(
                "Invalid value: '{other}'. Supported values are: 'json_object', 'json_schema', and \
                 'text'."
            );
            check.fault(Rule::Shape, "response_format.type".into(), words);
        }
    }
}

/// A tool or a schema has a name.
fn named(check: &mut Check<'_>, place: &str, of: &Value) {
    let place = format!("{place}.name");
    match of.get("name").and_then(Value::as_str) {
        None => missing(check, place),
        Some(name) => check.name(place, name),
    }
}

fn missing(check: &mut Check<'_>, place: String) {
    let words = format!("Missing required parameter: '{place}'.");
    check.fault(Rule::Shape, place, words);
}
