//! Whether everything of a request besides its messages is what OpenAI itself accepts: known keys,
//! limits, tools, formats. Part of the validator; it judges and repairs nothing. Not for servers
//! that copy the API: they ignore what they do not know.
//!
//! The server's words are its own: tidy:allow-file(function call)

use serde_json::Value;

use super::dialect::Dialect;
use super::validate::Check;
use crate::fault::Rule;

/// What the server that is judged so strictly is called.
const STRICT: &str = "openai";
/// The most replies to one request.
const MAX_CHOICES: f64 = 128.0;
/// The most tools of one request.
const MAX_TOOLS: usize = 128;
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
        check.fault(Rule::Shape, key.clone(), words);
    }
    limits(check, request);
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

/// Whether a model of that name reasons, and so counts its reasoning as output: `o3`, `gpt-5.6` and
/// whatever comes after them, but not `gpt-4o`.
fn reasons(model: &str) -> bool {
    // Fine-tuned ones: `ft:o4-mini:org::id`.
    let model = model.strip_prefix("ft:").unwrap_or(model);
    if let Some(version) = model.strip_prefix("gpt-") {
        let digits = version.split(|one: char| !one.is_ascii_digit()).next();
        let major = digits.and_then(|digits| digits.parse::<u64>().ok());
        return major.is_some_and(|major| major >= 5);
    }
    let version = model.strip_prefix('o').unwrap_or_default();
    version.starts_with(|one: char| one.is_ascii_digit())
}
