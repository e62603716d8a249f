//! The conditions of `rules/openai_chat.txt` that are code.

use plimsoll_wire::__internals::openai_chat::{AUDIO, CUSTOM, reasons};
use plimsoll_wire::__internals::{is_json_object, is_legal_name};
use plimsoll_wire::CallIdForm;
use plimsoll_wire::openai_chat::{Dialect, NoContent, Reach, reach, takes_temperature};
use serde_json::Value;

use crate::rules::table::{Flag, entries, role, text};

/// All conditions by name.
pub(super) const ALL: [(&str, Flag<Dialect>); 15] = [
    // Whether an assistant message may be empty is another rule.
    ("silence", |_, message, content| {
        content.is_none_or(Value::is_null) && matches!(role(message), "assistant" | "function")
    }),
    ("silent", |check, message, content| {
        is_silent(check.profile, message, content)
    }),
    ("address", |_, part, _| has_address(part)),
    ("nine", |_, _, id| {
        let id = id.and_then(Value::as_str);
        id.is_some_and(|id| CallIdForm::NineAlphanumeric.accepts(id))
    }),
    // Other servers only know `function` tools.
    ("custom", |check, call, _| {
        text(call, "type") == CUSTOM && !check.profile.object_arguments
    }),
    ("name", |_, _, name| {
        name.and_then(Value::as_str).is_some_and(is_legal_name)
    }),
    ("object-text", |_, _, arguments| {
        let arguments = arguments.and_then(Value::as_str);
        arguments.is_some_and(is_json_object)
    }),
    ("reasons", |_, request, _| reasons(text(request, "model"))),
    ("fixed-temperature", |_, request, temperature| {
        let model = request.get("model").and_then(Value::as_str);
        let values = model.zip(temperature.and_then(Value::as_f64));
        values.is_some_and(|(model, value)| !takes_temperature(model, effort(request), value))
    }),
    ("elsewhere", |_, request, _| {
        reach(text(request, "model")) == Reach::Nothing
    }),
    ("no-tools", |_, request, _| {
        match reach(text(request, "model")) {
            Reach::NoTools => has_tools(request),
            Reach::ToolsUnasked => {
                has_tools(request) && effort(request).is_some_and(|effort| effort != "none")
            }
            _ => false,
        }
    }),
    ("tools-at-none", |_, request, _| {
        let reach = reach(text(request, "model"));
        reach == Reach::ToolsAtNone && has_tools(request) && effort(request) != Some("none")
    }),
    ("unknown-function", |_, request, choice| {
        is_unknown(request, choice, "function")
    }),
    ("unknown-custom", |_, request, choice| {
        is_unknown(request, choice, CUSTOM)
    }),
    ("mentions-json", |_, request, _| {
        let messages = entries(request, "messages").iter();
        let mut contents = messages.filter_map(|message| message.get("content"));
        contents.any(|content| content.to_string().to_lowercase().contains("json"))
    }),
];

fn effort(request: &Value) -> Option<&str> {
    request.get("reasoning_effort").and_then(Value::as_str)
}

fn has_tools(request: &Value) -> bool {
    !entries(request, "tools").is_empty()
}

/// Returns `true` if a choice of tools names a tool of this kind that the request does not have.
fn is_unknown(request: &Value, choice: Option<&Value>, kind: &str) -> bool {
    let name = |of: &Value| of.get(kind)?.get("name")?.as_str().map(str::to_owned);
    let chosen = choice.and_then(name);
    let tools = request.get("tools").and_then(Value::as_array);
    tools.is_some_and(|tools| {
        let mut tools = tools.iter();
        chosen.is_some() && !tools.any(|tool| name(tool) == chosen)
    })
}

/// Returns `true` if an assistant message has neither content nor calls: OC5.
fn is_silent(dialect: &Dialect, message: &Value, content: Option<&Value>) -> bool {
    let has_calls = || {
        !entries(message, "tool_calls").is_empty()
            || message.get("function_call").is_some_and(Value::is_object)
    };
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
