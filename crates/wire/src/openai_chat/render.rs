//! [`render`]: a view of a transcript as the bytes of a Chat Completions request. Deterministic:
//! the same view gives the same bytes. Chooses nothing and repairs nothing; a view that parts a
//! batch is rendered parted, and `validate.rs` says so.

use std::borrow::Cow;
use std::collections::BTreeSet;

use plimsoll_context::{Breakpoint, CacheRetention, Message, ToolSpec};
use serde_json::{Value, json};

use super::dialect::{
    CacheMarks, Dialect, NoContent, OutputKey, ParallelCalls, SeedKey, StreamUsage, SystemRole,
    Texts, ToolStyle, Voice,
};
use super::json_turns;
use super::parts::call_name;
use super::reach::takes_temperature;
use super::shape::{Piece, Role, Shaper, Turn};
use super::types::{
    ChatMessage, Content, ContentPart, Extra, Request, StreamOptions, Text, Tool, ToolFunction,
};
use crate::error::WireError;
use crate::request::{Delivery, LeftOut, Note, RenderInput, Rendered, ToolChoice};

/// Renders a view.
///
/// # Errors
///
/// None in practice: only a value that is no JSON could fail.
pub fn render<'a>(
    input: &RenderInput<'a>,
    messages: impl IntoIterator<Item = &'a Message>,
    dialect: &Dialect,
) -> Result<Rendered, WireError> {
    if dialect.tools == ToolStyle::JsonSchema {
        return json_turns::render(input, messages, dialect);
    }
    let (request, notes, from) = built(input, messages, dialect)?;
    let body = serde_json::to_vec(&request).map_err(|error| WireError::not_json(&error))?;
    Ok(Rendered {
        body,
        notes,
        from,
        ..Rendered::default()
    })
}

/// Renders a view into the request's types, for those who change it before it is sent.
///
/// # Errors
///
/// [`WireError::ToolStyle`] for a style other than [`ToolStyle::Native`]: such turns are not
/// borrowed from the view.
pub fn request<'a>(
    input: &RenderInput<'a>,
    messages: impl IntoIterator<Item = &'a Message>,
    dialect: &Dialect,
) -> Result<(Request<'a>, Vec<Note>), WireError> {
    let (request, notes, _) = built(input, messages, dialect)?;
    Ok((request, notes))
}

/// A request, what it does not hold, and which messages each of its messages says.
type Built<'a> = (Request<'a>, Vec<Note>, Vec<Vec<usize>>);

fn built<'a>(
    input: &RenderInput<'a>,
    messages: impl IntoIterator<Item = &'a Message>,
    dialect: &Dialect,
) -> Result<Built<'a>, WireError> {
    if dialect.tools == ToolStyle::JsonSchema {
        return Err(WireError::ToolStyle {
            style: "json_schema",
        });
    }
    let marks = input
        .cache
        .filter(|_| dialect.cache == CacheMarks::Parts)
        .map_or(&[][..], |plan| &plan.breakpoints);
    let kept = input.cache.map(|plan| plan.retention).unwrap_or_default();
    let mut shaper = Shaper::new(dialect, marks);
    if let Some(system) = input.system {
        shaper.system(system);
    }
    for message in messages {
        shaper.message(message);
    }
    let (mut turns, mut notes) = shaper.finish(input.context);
    let from = turns
        .iter_mut()
        .map(|turn| std::mem::take(&mut turn.from))
        .collect();
    let messages = turns.into_iter();
    let messages = messages.map(|turn| message(turn, kept, dialect));
    let (tools, of_tools) = tools(input.tools, marks, kept, dialect);
    notes.extend(of_tools);
    let mut request = Request {
        model: input.model.into(),
        tools,
        messages: messages.collect(),
        ..Request::default()
    };
    notes.extend(temperature(&mut request, input, dialect));
    settings(&mut request, input, dialect);
    Ok((request, notes, from))
}

fn settings(request: &mut Request<'_>, input: &RenderInput<'_>, dialect: &Dialect) {
    if !request.tools.is_empty() {
        request.tool_choice = match &input.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Tool(name) => {
                let name = call_name(name, dialect);
                Some(json!({"type": "function", "function": {"name": name}}))
            }
        };
        request.parallel_tool_calls =
            (dialect.parallel_calls == ParallelCalls::OneAtATime).then_some(false);
    }
    match dialect.output_key {
        OutputKey::MaxTokens => request.max_tokens = input.max_output,
        OutputKey::MaxCompletionTokens => request.max_completion_tokens = input.max_output,
    }
    match dialect.seed_key {
        SeedKey::Seed => request.seed = input.seed,
        SeedKey::RandomSeed => {
            let seed = input
                .seed
                .map(|seed| ("random_seed".to_owned(), seed.into()));
            request.extra.extend(seed);
        }
    }
    if !input.stop.is_empty() {
        request.stop = Some(input.stop.into());
    }
    if input.delivery == Delivery::Stream {
        request.stream = Some(true);
        request.stream_options =
            (dialect.stream_usage == StreamUsage::Ask).then(|| StreamOptions {
                include_usage: true,
                extra: Extra::new(),
            });
    }
    let key = input.cache.and_then(|plan| plan.key.as_deref());
    if let Some(key) = key.filter(|_| dialect.cache == CacheMarks::Key) {
        request.extra.insert("prompt_cache_key".into(), key.into());
    }
    for (key, value) in input.extra.into_iter().flatten() {
        set(request, key, value);
    }
}

/// Sets the temperature, unless the model is one that refuses it, wherever it runs.
fn temperature(
    request: &mut Request<'_>,
    input: &RenderInput<'_>,
    dialect: &Dialect,
) -> Option<Note> {
    let asked = input.temperature?;
    let effort = input.extra.and_then(|extra| extra.get("reasoning_effort"));
    let effort = effort.and_then(Value::as_str);
    let judges = matches!(dialect.voice, Voice::OpenAi | Voice::Kimi);
    if judges && !takes_temperature(input.model, effort, asked) {
        return Some(Note::setting(LeftOut::Temperature));
    }
    request.temperature = Some(asked);
    None
}

/// Sets one further key; a key must not stand twice in a body.
fn set(request: &mut Request<'_>, key: &str, value: &Value) {
    match key {
        "tool_choice" => request.tool_choice = Some(value.clone()),
        "parallel_tool_calls" => request.parallel_tool_calls = value.as_bool(),
        "max_tokens" => request.max_tokens = value.as_u64(),
        "max_completion_tokens" => request.max_completion_tokens = value.as_u64(),
        "temperature" => request.temperature = value.as_f64(),
        "seed" => request.seed = value.as_i64(),
        "stop" => request.stop = Some(value.clone()),
        "response_format" => request.response_format = Some(value.clone()),
        "stream" => request.stream = value.as_bool(),
        "stream_options" => {
            request.stream_options = serde_json::from_value(value.clone()).ok();
        }
        // What a run is made of is not a setting.
        "model" | "messages" | "tools" => {}
        _ => {
            request.extra.insert(key.to_owned(), value.clone());
        }
    }
}

fn tools<'a>(
    specs: &'a [ToolSpec],
    marks: &[Breakpoint],
    kept: CacheRetention,
    dialect: &Dialect,
) -> (Vec<Tool<'a>>, Vec<Note>) {
    let mut specs: Vec<&ToolSpec> = specs.iter().collect();
    specs.sort_by(|one, other| one.name.cmp(&other.name));
    let mut tools: Vec<Tool<'a>> = Vec::with_capacity(specs.len());
    let mut notes: Vec<Note> = Vec::new();
    let mut names: BTreeSet<Cow<'a, str>> = BTreeSet::new();
    for spec in specs {
        let function = function(spec, dialect);
        let renamed = (function.name != spec.name).then_some(LeftOut::Name);
        let repeated = !names.insert(function.name.clone());
        let what = if repeated {
            Some(LeftOut::RepeatedTool)
        } else {
            renamed
        };
        notes.extend(what.map(Note::setting));
        if !repeated {
            tools.push(Tool {
                kind: "function".into(),
                function,
                extra: Extra::new(),
            });
        }
    }
    notes.dedup();
    if let Some(last) = tools.last_mut()
        && marks.contains(&Breakpoint::Tools)
    {
        mark(&mut last.extra, kept);
    }
    (tools, notes)
}

/// Sets a breakpoint. Where only the head is to be kept longer, all is kept as usual: which breakpoint
/// is of the head is not known any more where the text of a message is marked.
fn mark(extra: &mut Extra, kept: CacheRetention) {
    let mark = match kept {
        CacheRetention::Long => json!({"type": "ephemeral", "ttl": "1h"}),
        CacheRetention::Usual | CacheRetention::Head => json!({"type": "ephemeral"}),
    };
    extra.insert("cache_control".into(), mark);
}

/// A tool is named as calls of it are.
fn function<'a>(spec: &'a ToolSpec, dialect: &Dialect) -> ToolFunction<'a> {
    ToolFunction {
        name: call_name(&spec.name, dialect),
        description: Cow::Borrowed(&spec.description),
        parameters: Cow::Borrowed(&spec.schema),
        extra: Extra::new(),
    }
}

fn message<'a>(turn: Turn<'a>, kept: CacheRetention, dialect: &Dialect) -> ChatMessage<'a> {
    let role = match turn.role {
        Role::System => match dialect.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
        },
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let silent = turn.pieces.is_empty();
    let content = if silent && !(turn.calls.is_empty() && turn.extra.is_empty()) {
        match dialect.no_content {
            NoContent::Null => Some(Content::Null),
            NoContent::Empty => Some(Content::Text("".into())),
            NoContent::Omit => None,
        }
    } else if turn.cached {
        Some(marked(content(turn.pieces, dialect), kept))
    } else {
        Some(content(turn.pieces, dialect))
    };
    ChatMessage {
        role: role.into(),
        content,
        reasoning_content: turn.reasoning,
        tool_calls: turn.calls,
        tool_call_id: turn.answers,
        extra: turn.extra,
    }
}

/// The same content with a breakpoint behind its last text.
fn marked(content: Content<'_>, kept: CacheRetention) -> Content<'_> {
    let mut parts = match content {
        Content::Null => return Content::Null,
        Content::Text(text) => vec![ContentPart {
            kind: "text".into(),
            text: Some(text),
            ..ContentPart::default()
        }],
        Content::Parts(parts) => parts,
    };
    let last = parts.iter_mut().rev().find(|part| part.text.is_some());
    if let Some(last) = last {
        mark(&mut last.extra, kept);
    }
    Content::Parts(parts)
}

fn content<'a>(mut pieces: Vec<Piece<'a>>, dialect: &Dialect) -> Content<'a> {
    let all_text = pieces.iter().all(|piece| matches!(piece, Piece::Text(_)));
    if all_text && (pieces.len() <= 1 || dialect.texts == Texts::Joined) {
        let mut texts = pieces.drain(..).filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Block(_) => None,
        });
        let mut joined: Text<'a> = texts.next().unwrap_or_default();
        for text in texts {
            let joined = joined.to_mut();
            joined.push('\n');
            joined.push_str(&text);
        }
        return Content::Text(joined);
    }
    let part = |piece| match piece {
        Piece::Text(text) => ContentPart {
            kind: "text".into(),
            text: Some(text),
            ..ContentPart::default()
        },
        Piece::Block(block) => *block,
    };
    Content::Parts(pieces.into_iter().map(part).collect())
}
