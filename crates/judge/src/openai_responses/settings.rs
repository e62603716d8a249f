//! Whether everything of a request besides its input is what the API accepts: limits, efforts,
//! tools, formats. Part of the validator; it judges and repairs nothing.

use plimsoll_wire::__internals::MAX_ID;
use plimsoll_wire::__internals::openai_responses::is_name;
use plimsoll_wire::__internals::openai_responses::{
    ENCRYPTED, TOOLS, unfit_for_strict, unfit_for_tool,
};
use plimsoll_wire::Effort;
use plimsoll_wire::openai_responses::MIN_OUTPUT;
use plimsoll_wire::openai_responses::{Profile, ReasoningItems, Sampling};
use serde_json::Value;

use super::validate::Check;
use crate::fault::Rule;

/// Judges a request's settings.
pub(super) fn check(check: &mut Check<'_>, request: &Value) {
    let model = request.get("model").and_then(Value::as_str);
    if model.is_none_or(str::is_empty) {
        missing(check, "model");
    }
    limits(check, request);
    reasoning(check, request, model.unwrap_or_default());
    tools(check, request);
    format(check, request);
}

fn limits(check: &mut Check<'_>, request: &Value) {
    if let Some(limit) = number(request, "max_output_tokens")
        && limit < MIN_OUTPUT as f64
    {
        let words = format!(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= \
             {MIN_OUTPUT}, but got {limit} instead."
        );
        check.fault(Rule::Shape, "max_output_tokens".into(), words);
    }
    if let Some(key) = request.get("prompt_cache_key").and_then(Value::as_str) {
        let length = key.chars().count();
        if length > MAX_ID {
            let words = too_long("prompt_cache_key", length);
            check.fault(Rule::Shape, "prompt_cache_key".into(), words);
        }
    }
    // Who does not think is sampled as it likes.
    let effort = request.get("reasoning").and_then(|one| one.get("effort"));
    let thinks = effort.and_then(Value::as_str) != Some(Effort::None.name());
    for key in ["temperature", "top_p"] {
        let refused = check.profile.sampling == Sampling::Refused && thinks;
        if refused && number(request, key).is_some() {
            unsupported(check, key);
        }
    }
    for key in [
        "stop",
        "seed",
        "messages",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
    ] {
        if request.get(key).is_some() {
            let words = match key {
                "messages" => "Unsupported parameter: 'messages'. In the Responses API, this \
                               parameter has moved to 'input'. Try again with the new parameter."
                    .to_owned(),
                "response_format" => "Unsupported parameter: 'response_format'. In the Responses \
                                      API, this parameter has moved to 'text.format'. Try again \
                                      with the new parameter."
                    .to_owned(),
                "max_tokens" | "max_completion_tokens" => format!(
                    "Unsupported parameter: '{key}'. In the Responses API, this parameter has \
                     moved to 'max_output_tokens'. Try again with the new parameter."
                ),
                _ => format!("Unknown parameter: '{key}'."),
            };
            check.fault(Rule::Shape, key.into(), words);
        }
    }
}

fn reasoning(check: &mut Check<'_>, request: &Value, model: &str) {
    let profile: &Profile = check.profile;
    let include = request.get("include").and_then(Value::as_array);
    let encrypted = include.is_some_and(|list| list.iter().any(|one| one == ENCRYPTED));
    if encrypted && profile.reasoning == ReasoningItems::None {
        let words = "Encrypted content is not supported with this model.";
        check.fault(Rule::Shape, "include".into(), words);
    }
    let Some(effort) = request.get("reasoning").and_then(|one| one.get("effort")) else {
        return;
    };
    let Some(effort) = effort.as_str() else {
        return;
    };
    if profile.efforts.is_empty() {
        unsupported(check, "reasoning.effort");
    } else if !profile.efforts.iter().any(|known| known.name() == effort) {
        let supported = list(profile.efforts.iter().map(|effort| effort.name()));
        let known = Effort::ALL.iter().any(|known| known.name() == effort);
        let words = if known {
            format!(
                "Unsupported value: '{effort}' is not supported with the '{model}' model. \
                 Supported values are: {supported}."
            )
        } else {
            let all = list(Effort::ALL.iter().map(|effort| effort.name()));
            format!("Invalid value: '{effort}'. Supported values are: {all}.")
        };
        check.fault(Rule::Shape, "reasoning.effort".into(), words);
    }
}

fn tools(check: &mut Check<'_>, request: &Value) {
    let tools = request.get("tools").and_then(Value::as_array);
    let tools = tools.map(Vec::as_slice).unwrap_or_default();
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tools[{index}]");
        let Some(kind) = tool.get("type").and_then(Value::as_str) else {
            missing(check, &format!("{place}.type"));
            continue;
        };
        if kind != "function" {
            hosted(check, &place, kind, tool);
            continue;
        }
        let Some(name) = tool.get("name").and_then(Value::as_str) else {
            missing(check, &format!("{place}.name"));
            continue;
        };
        check.name(&format!("{place}.name"), name);
        let Some(parameters) = tool.get("parameters").filter(|one| !one.is_null()) else {
            continue;
        };
        let strict = tool.get("strict").and_then(Value::as_bool) == Some(true);
        let unfit =
            unfit_for_tool(parameters).or_else(|| unfit_for_strict(parameters).filter(|_| strict));
        if let Some(why) = unfit {
            let words = format!("Invalid schema for function '{name}': {why}");
            check.fault(Rule::Shape, format!("{place}.parameters"), words);
        }
    }
    let Some(choice) = request.get("tool_choice") else {
        return;
    };
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
    // A tool of somebody's server is named by that server.
    let key = match text(choice, "type").as_deref() {
        Some("mcp") => "server_label",
        _ => "name",
    };
    let Some(chosen) = text(choice, key) else {
        return;
    };
    let known = |tool: &Value| text(tool, key).as_ref() == Some(&chosen);
    if !tools.iter().any(known) {
        let words = format!("Tool choice '{chosen}' not found in 'tools' parameter.");
        check.fault(Rule::Shape, "tool_choice".into(), words);
    }
}

fn format(check: &mut Check<'_>, request: &Value) {
    let Some(format) = request.get("text").and_then(|text| text.get("format")) else {
        return;
    };
    if format.get("type").and_then(Value::as_str) != Some("json_schema") {
        return;
    }
    let Some(name) = format.get("name").and_then(Value::as_str) else {
        missing(check, "text.format.name");
        return;
    };
    if !is_name(name) {
        check.name("text.format.name", name);
    }
    let Some(schema) = format.get("schema") else {
        missing(check, "text.format.schema");
        return;
    };
    let strict = format.get("strict").and_then(Value::as_bool) == Some(true);
    if let Some(why) = unfit_for_strict(schema).filter(|_| strict) {
        let words = format!("Invalid schema for response_format '{name}': {why}");
        check.fault(Rule::Shape, "text.format.schema".into(), words);
    }
}

/// A key that has to be there.
pub(super) fn missing(check: &mut Check<'_>, place: &str) {
    let words = format!("Missing required parameter: '{place}'.");
    check.fault(Rule::Shape, place.to_owned(), words);
}

fn unsupported(check: &mut Check<'_>, place: &str) {
    let words = format!("Unsupported parameter: '{place}' is not supported with this model.");
    check.fault(Rule::Shape, place.to_owned(), words);
}

/// What is said of a text with more characters than are accepted.
pub(super) fn too_long(place: &str, length: usize) -> String {
    format!(
        "Invalid '{place}': string too long. Expected a string with maximum length {MAX_ID}, but \
         got a string with length {length} instead."
    )
}

/// Names as OpenAI lists them.
pub(super) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [many @ .., last] => format!("{}, and {last}", many.join(", ")),
    }
}

fn number(request: &Value, key: &str) -> Option<f64> {
    request.get(key).and_then(Value::as_f64)
}

/// Judges a tool that is no function.
fn hosted(check: &mut Check<'_>, place: &str, kind: &str, tool: &Value) {
    let Some(known) = TOOLS.iter().find(|known| known.kind == kind) else {
        let words = format!(
            "Invalid value: '{kind}'. Supported values are: {}.",
            list(TOOLS.iter().map(|tool| tool.kind))
        );
        check.fault(Rule::Shape, format!("{place}.type"), words);
        return;
    };
    for key in known.needs {
        if tool.get(*key).is_none_or(Value::is_null) {
            missing(check, &format!("{place}.{key}"));
        }
    }
    let reached = ["server_url", "connector_id"].map(|key| tool.get(key));
    if kind == "mcp" && reached.iter().all(Option::is_none) {
        missing(check, &format!("{place}.server_url"));
    }
}
