//! The settings of a request besides its messages, without those that the server or the model does not accept.

use serde_json::{Value, json};

use super::dialect::{CacheMarks, Dialect, ErrorStyle};
use super::model_support::takes_temperature;
use crate::object::Settings;
use crate::request::{LeftOut, Note, RenderInput};
use crate::tools;

/// The keys of the body that are not settings.
const NOT_SETTINGS: [&str; 3] = ["model", "messages", "tools"];

pub(super) fn settings(
    input: &RenderInput<'_>,
    has_tools: bool,
    dialect: &Dialect,
    notes: &mut Vec<Note>,
) -> Settings {
    let mut settings = Settings::default();
    if has_tools {
        tools::choose(&mut settings, input, dialect.parallel_calls);
    }
    let output = if dialect.completion_tokens_key {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    settings.set(output, input.max_output.map(Value::from));
    if takes(input, dialect) {
        settings.set("temperature", input.temperature.map(Value::from));
    } else {
        notes.push(Note::setting(LeftOut::Temperature));
    }
    let seed = if dialect.random_seed_key {
        "random_seed"
    } else {
        "seed"
    };
    settings.set(seed, input.seed.map(Value::from));
    settings.set("stream", Value::Bool(true));
    if dialect.asks_for_usage {
        settings.set("stream_options", json!({"include_usage": true}));
    }
    let key = input.cache.and_then(|plan| plan.key.as_deref());
    if let Some(key) = key.filter(|_| dialect.cache == CacheMarks::Key) {
        settings.set("prompt_cache_key", Value::from(key));
    }
    settings.set_all(input.extra, &NOT_SETTINGS);
    settings
}

/// Returns `false` if the request sets a temperature that the model refuses on every server.
fn takes(input: &RenderInput<'_>, dialect: &Dialect) -> bool {
    let effort = input.extra.and_then(|extra| extra.get("reasoning_effort"));
    let effort = effort.and_then(Value::as_str);
    let judges = matches!(dialect.voice, ErrorStyle::OpenAi | ErrorStyle::Kimi);
    let refused = |temperature| judges && !takes_temperature(input.model, effort, temperature);
    !input.temperature.is_some_and(refused)
}
