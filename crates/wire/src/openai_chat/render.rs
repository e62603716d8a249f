//! [`render`]: a view of a transcript as the bytes of a Chat Completions request. Deterministic. It
//! repairs nothing: if other messages separate a batch, the body does, too, and `validate.rs` reports
//! it.

use plimsoll_context::{Breakpoint, Message, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::dialect::{CacheMarks, Dialect, ErrorStyle, ToolStyle};
use super::json_turns;
use super::model_support::takes_temperature;
use super::parts::call_name;
use super::write::ChatWriter;
use crate::chunks::BodyChunks;
use crate::compose::{Composer, History, RequestRenderer, WrittenMessages, cache_control};
use crate::object::{Object, Settings, array};
use crate::request::{Delivery, EncodedRequest, LeftOut, Note, RenderInput};
use crate::tools;

/// The keys behind the messages, in their order. Everything that may change from turn to turn is here, so
/// that an older request, up to the end of its messages, is a byte prefix of a newer one.
const ORDER: [&str; 10] = [
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "seed",
    "stop",
    "response_format",
    "stream",
    "stream_options",
];

/// Additional content of a stream.
#[derive(Debug, Serialize, Deserialize)]
struct StreamOptions {
    /// Whether a last chunk contains the usage.
    #[serde(default)]
    include_usage: bool,
    /// All other keys.
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Renders messages alone. The body is a list.
pub fn render_list(messages: &[Message], dialect: &Dialect) -> EncodedRequest {
    let mut composer = Composer::new(dialect.rules());
    for message in messages {
        composer.message(message, &mut ChatWriter(dialect), &ChatWriter(dialect));
    }
    let notes = std::mem::take(&mut composer.normalizer.notes);
    let (body, from) = composer.into_list(&ChatWriter(dialect));
    EncodedRequest {
        body,
        notes,
        from,
        ..EncodedRequest::default()
    }
}

impl RequestRenderer for Dialect {
    fn render(
        &self,
        written: &mut WrittenMessages,
        input: &RenderInput<'_>,
        messages: &dyn History,
    ) -> EncodedRequest<BodyChunks> {
        if self.tools == ToolStyle::JsonSchema {
            return json_turns::render(input, messages.since(0), self);
        }
        let composer = written.composer(self.rules(), input.system);
        for message in messages.since(composer.messages) {
            composer.message(message, &mut ChatWriter(self), &ChatWriter(self));
        }
        let marks = input
            .cache
            .filter(|_| self.cache == CacheMarks::Parts)
            .map_or(&[][..], |plan| &plan.breakpoints);
        let retention = input.cache.map(|plan| plan.retention).unwrap_or_default();
        let mark = cache_control(retention);
        let mut notes = composer.normalizer.notes.clone();
        let cached = marks.contains(&Breakpoint::Tools).then_some(mark);
        let tools = tools(input.tools, cached, self, &mut notes);

        let mut head = Object::new().text("model", input.model);
        if !tools.is_empty() {
            head = head.raw("tools", &array(tools.iter().map(String::as_str)));
        }
        let settings = settings(input, !tools.is_empty(), self, &mut notes);
        let (head, end) = (head.open_list("messages"), composer.end(input.context));
        EncodedRequest {
            body: composer.body(head, &end, (marks, mark), &ChatWriter(self), &settings),
            notes,
            ..EncodedRequest::default()
        }
    }
}

fn settings(
    input: &RenderInput<'_>,
    has_tools: bool,
    dialect: &Dialect,
    notes: &mut Vec<Note>,
) -> Settings {
    let mut settings = Settings::new(&ORDER);
    if has_tools {
        let named = |name: &str| {
            let name = call_name(name, dialect);
            json!({"type": "function", "function": {"name": name}})
        };
        tools::choose(&mut settings, input, dialect.parallel_calls, named);
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
    if !input.stop.is_empty() {
        settings.set("stop", Value::from(input.stop));
    }
    if input.delivery == Delivery::Stream {
        settings.set("stream", Value::Bool(true));
        if dialect.asks_for_usage {
            settings.set("stream_options", json!({"include_usage": true}));
        }
    }
    let key = input.cache.and_then(|plan| plan.key.as_deref());
    if let Some(key) = key.filter(|_| dialect.cache == CacheMarks::Key) {
        settings.set("prompt_cache_key", Value::from(key));
    }
    for (key, value) in input.extra.into_iter().flatten() {
        set(&mut settings, key, value);
    }
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

/// Sets one additional key of the body. A value of the wrong type removes a known key.
fn set(settings: &mut Settings, key: &str, value: &Value) {
    let value = match key {
        // The messages and the tools are not settings.
        "model" | "messages" | "tools" => return,
        "parallel_tool_calls" | "stream" => value.as_bool().map(Value::from),
        "max_tokens" | "max_completion_tokens" => value.as_u64().map(Value::from),
        "temperature" => value.as_f64().map(Value::from),
        "seed" => value.as_i64().map(Value::from),
        "stream_options" => {
            let options: Result<StreamOptions, _> = serde_json::from_value(value.clone());
            options.ok().and_then(|one| serde_json::to_value(one).ok())
        }
        _ => Some(value.clone()),
    };
    settings.set(key, value);
}

/// Returns the tools as JSON, the last one with a breakpoint.
fn tools(
    specs: &[ToolSpec],
    mark: Option<&str>,
    dialect: &Dialect,
    notes: &mut Vec<Note>,
) -> Vec<String> {
    // Tools have the same names as in calls.
    let specs = tools::named(specs, |name| call_name(name, dialect), notes);
    let last = specs.len().saturating_sub(1);
    let specs = specs.into_iter().enumerate();
    let tools = specs.map(|(n, (name, spec))| {
        let function = Object::new()
            .text("name", &name)
            .text("description", &spec.description)
            .value("parameters", &spec.schema);
        let tool = Object::of("function").raw("function", &function.end());
        match mark.filter(|_| n == last) {
            Some(mark) => tool.raw("cache_control", mark).end(),
            None => tool.end(),
        }
    });
    tools.collect()
}
