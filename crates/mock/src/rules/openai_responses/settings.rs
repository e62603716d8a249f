//! Judges the settings of a request: limits, efforts, tools, formats. Part of the validator.

use plimsoll_wire::__internals::openai_responses::{ENCRYPTED, TOOLS};
use plimsoll_wire::Effort;
use plimsoll_wire::openai_responses::ReasoningItems;
use serde_json::Value;

use super::schema::{unfit_for_strict, unfit_for_tool};
use super::validate::{ResponsesCheck, list};
use crate::rules::json_path::JsonPath;
use crate::rules::table::{entries, text};

/// Judges a request's settings.
pub(super) fn check(check: &mut ResponsesCheck<'_>, request: &Value) {
    check.judge("request", "", &JsonPath::Named(""), request);
    reasoning(check, request);
    tools(check, request);
    format(check, request);
}

fn reasoning(check: &mut ResponsesCheck<'_>, request: &Value) {
    let profile = check.profile;
    let mut include = entries(request, "include").iter();
    let encrypted = include.any(|one| one == ENCRYPTED);
    if encrypted && profile.reasoning == ReasoningItems::None {
        check.report("encrypted", "include", &[]);
    }
    let effort = request.get("reasoning").and_then(|one| one.get("effort"));
    let Some(effort) = effort.and_then(Value::as_str) else {
        return;
    };
    let is_in = |efforts: &[Effort]| efforts.iter().any(|known| known.name() == effort);
    let place = "reasoning.effort";
    if profile.efforts.is_empty() {
        check.report("effort", place, &[]);
    } else if !is_in(&Effort::ALL) {
        let known = Effort::ALL.iter().map(|effort| effort.name());
        check.unknown(JsonPath::Named(place), effort, known);
    } else if !is_in(&profile.efforts) {
        check.report(
            "effort-of-model",
            place,
            &[
                &effort,
                &text(request, "model"),
                &list(profile.efforts.iter().map(|effort| effort.name())),
            ],
        );
    }
}

fn tools(check: &mut ResponsesCheck<'_>, request: &Value) {
    let tools = entries(request, "tools");
    for (index, tool) in tools.iter().enumerate() {
        let place = JsonPath::Named("tools");
        let place = place.entry(index);
        match tool.get("type").and_then(Value::as_str) {
            None => {
                check.report("tool-type", place.key("type"), &[]);
            }
            Some(kind) if TOOLS.iter().all(|known| known.kind != kind) => {
                check.unknown(place.key("type"), kind, TOOLS.iter().map(|tool| tool.kind));
            }
            Some(kind) => {
                if check.judge("tool", kind, &place, tool) && kind == "function" {
                    parameters(check, &place.key("parameters"), tool);
                }
            }
        }
    }
    let Some(choice) = request.get("tool_choice") else {
        return;
    };
    let of = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    // An MCP tool is named by its server.
    let key = match text(choice, "type") {
        "mcp" => "server_label",
        _ => "name",
    };
    let Some(chosen) = of(choice, key) else {
        return;
    };
    let known = |tool: &Value| of(tool, key).as_ref() == Some(&chosen);
    if !tools.iter().any(known) {
        check.report("choice", "tool_choice", &[&chosen]);
    }
}

/// Judges the schema of a function's arguments.
fn parameters(check: &mut ResponsesCheck<'_>, place: &JsonPath<'_>, tool: &Value) {
    let Some(parameters) = tool.get("parameters").filter(|one| !one.is_null()) else {
        return;
    };
    let strict = tool.get("strict") == Some(&Value::Bool(true));
    let unfit =
        unfit_for_tool(parameters).or_else(|| unfit_for_strict(parameters).filter(|_| strict));
    if let Some(why) = unfit {
        check.report("function-schema", *place, &[&text(tool, "name"), &why]);
    }
}

fn format(check: &mut ResponsesCheck<'_>, request: &Value) {
    let Some(format) = request.get("text").and_then(|text| text.get("format")) else {
        return;
    };
    if text(format, "type") != "json_schema" {
        return;
    }
    check.judge("format", "", &JsonPath::Named("text.format"), format);
    let schema = format
        .get("schema")
        .filter(|_| format.get("name").is_some_and(Value::is_string));
    let strict = format.get("strict") == Some(&Value::Bool(true));
    if let Some(why) = schema.filter(|_| strict).and_then(unfit_for_strict) {
        check.report(
            "format-schema",
            "text.format.schema",
            &[&text(format, "name"), &why],
        );
    }
}
