//! The settings of a request besides its items, without those that the model does not accept.

use serde_json::Value;

use super::{ReasoningItems, ResponsesProfile};
use crate::object::{Settings, some_members};
use crate::request::{Effort, LeftOut, Note, RenderInput};
use crate::tools;

/// The smallest output limit that OpenAI accepts.
pub const MIN_OUTPUT: u64 = 16;
/// The value of `include` for reasoning that can be sent back, needed because the server stores
/// nothing.
pub const ENCRYPTED: &str = "reasoning.encrypted_content";

/// The keys of the body that are not settings, and `include`, whose values are sent together.
const NOT_SETTINGS: [&str; 5] = ["model", "instructions", "input", "tools", "include"];

pub(super) fn settings(
    input: &RenderInput<'_>,
    has_tools: bool,
    profile: &ResponsesProfile,
    notes: &mut Vec<Note>,
) -> Settings {
    let mut settings = Settings::default();
    if has_tools {
        tools::choose(&mut settings, input, profile.parallel_calls);
    }
    let limit = input.max_output.map(|limit| limit.max(MIN_OUTPUT));
    settings.set("max_output_tokens", limit.map(Value::from));
    let effort = input
        .effort
        .and_then(|effort| effort.nearest(&profile.efforts));
    if input.effort.is_some() && effort.is_none() {
        notes.push(Note::setting(LeftOut::Effort));
    }
    let summary = profile.summaries && profile.reasoning != ReasoningItems::None;
    let reasoning = some_members([
        ("effort", effort.map(|effort| effort.name().into())),
        ("summary", summary.then(|| "auto".into())),
    ]);
    settings.set("reasoning", reasoning.map(Value::from));
    // A model that does not reason accepts a temperature.
    if profile.sampling || effort == Some(Effort::None) {
        settings.set("temperature", input.temperature.map(Value::from));
    } else if input.temperature.is_some() {
        notes.push(Note::setting(LeftOut::Temperature));
    }
    let key = input.cache.and_then(|plan| plan.key.as_deref());
    let key = key.filter(|_| profile.cache_key);
    settings.set("prompt_cache_key", key.map(Value::from));
    // By default, the server stores everything.
    settings.set("store", Value::Bool(false));
    let mut include: Vec<&str> = Vec::new();
    if profile.reasoning == ReasoningItems::Encrypted {
        include.push(ENCRYPTED);
    }
    let requested = input.extra.and_then(|extra| extra.get("include"));
    let requested = requested.and_then(Value::as_array).into_iter().flatten();
    for one in requested.filter_map(Value::as_str) {
        if !include.contains(&one) {
            include.push(one);
        }
    }
    settings.set(
        "include",
        (!include.is_empty()).then(|| Value::from(include)),
    );
    settings.set("stream", Value::Bool(true));
    settings.set_all(input.extra, &NOT_SETTINGS);
    settings
}
