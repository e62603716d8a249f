//! [`render`]: a view of a transcript as the bytes of a Responses request. Deterministic: the
//! same view gives the same bytes. Chooses nothing and repairs nothing; a view that parts a call
//! from its result is rendered parted, and `validate.rs` says so.

use std::borrow::Cow;
use std::collections::BTreeSet;

use plimsoll_context::{Message, ToolSpec};
use serde_json::{Value, json};

use super::ids;
use super::items;
use super::profile::{CacheKey, Profile, ReasoningItems, Sampling, Strict, Summaries};
use super::schema;
use super::shape::Shaper;
use super::types::{Reasoning, Request, Tool};
use crate::error::WireError;
use crate::openai_chat::ParallelCalls;
use crate::request::{Delivery, Effort, LeftOut, Note, RenderInput, Rendered, ToolChoice};

/// The smallest output limit that OpenAI accepts.
pub const MIN_OUTPUT: u64 = 16;
/// What is asked for where nothing is stored, so that reasoning can go back.
pub(super) const ENCRYPTED: &str = "reasoning.encrypted_content";
/// What an answer under a schema is called.
const ANSWER: &str = "answer";

/// Renders a view.
///
/// # Errors
///
/// None in practice: only a value that is no JSON could fail.
pub fn render<'a>(
    input: &RenderInput<'a>,
    messages: impl IntoIterator<Item = &'a Message>,
    profile: &Profile,
) -> Result<Rendered, WireError> {
    let (request, notes, from) = built(input, messages, profile);
    let body = serde_json::to_vec(&request).map_err(|error| WireError::not_json(&error))?;
    Ok(Rendered {
        body,
        notes,
        from,
        ..Rendered::default()
    })
}

/// Renders a view into the request's types, for those who change it before it is sent.
pub fn request<'a>(
    input: &RenderInput<'a>,
    messages: impl IntoIterator<Item = &'a Message>,
    profile: &Profile,
) -> (Request<'a>, Vec<Note>) {
    let (request, notes, _) = built(input, messages, profile);
    (request, notes)
}

fn built<'a>(
    input: &RenderInput<'a>,
    messages: impl IntoIterator<Item = &'a Message>,
    profile: &Profile,
) -> (Request<'a>, Vec<Note>, Vec<Vec<usize>>) {
    let mut shaper = Shaper::new(profile);
    for message in messages {
        shaper.message(message);
    }
    let mut from = shaper.from();
    let (items, mut notes) = shaper.finish(input.context);
    from.resize(items.len(), Vec::new());
    let mut request = Request {
        model: input.model.into(),
        instructions: input.system.map(Cow::Borrowed),
        tools: tools(input, profile, &mut notes),
        input: items,
        ..Request::default()
    };
    settings(&mut request, input, profile, &mut notes);
    (request, notes, from)
}

fn settings<'a>(
    request: &mut Request<'a>,
    input: &RenderInput<'a>,
    profile: &Profile,
    notes: &mut Vec<Note>,
) {
    if !request.tools.is_empty() {
        request.tool_choice = match &input.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Tool(name) => Some(json!({"type": "function", "name": ids::name(name)})),
        };
        request.parallel_tool_calls =
            (profile.parallel_calls == ParallelCalls::OneAtATime).then_some(false);
    }
    request.max_output_tokens = input.max_output.map(|limit| limit.max(MIN_OUTPUT));
    let effort = input.effort.and_then(|asked| profile.effort(asked));
    if input.effort.is_some() && effort.is_none() {
        notes.push(Note::setting(LeftOut::Effort));
    }
    let summary = profile.summaries == Summaries::Auto && profile.reasoning != ReasoningItems::None;
    if effort.is_some() || summary {
        request.reasoning = Some(Reasoning {
            effort: effort.map(|effort| effort.name().into()),
            summary: summary.then(|| "auto".into()),
        });
    }
    request.text = input.format.map(|schema| {
        let strict = schema::unfit_for_strict(schema).is_none();
        let format =
            json!({"type": "json_schema", "name": ANSWER, "schema": schema, "strict": strict});
        json!({ "format": format })
    });
    match profile.sampling {
        Sampling::Accepted => request.temperature = input.temperature,
        // Who does not think takes one.
        Sampling::Refused if effort == Some(Effort::None) => {
            request.temperature = input.temperature;
        }
        Sampling::Refused if input.temperature.is_some() => {
            notes.push(Note::setting(LeftOut::Temperature));
        }
        Sampling::Refused => {}
    }
    if profile.cache == CacheKey::Sent {
        let key = input.cache.and_then(|plan| plan.key.as_deref());
        request.prompt_cache_key = key.map(Cow::Borrowed);
    }
    // Otherwise the server keeps everything that is said to it.
    request.store = Some(false);
    if profile.reasoning == ReasoningItems::Encrypted {
        request.include.push(ENCRYPTED.into());
    }
    if input.delivery == Delivery::Stream {
        request.stream = Some(true);
    }
    for (key, value) in input.extra.into_iter().flatten() {
        set(request, key, value);
    }
}

/// Sets one further key; a key must not stand twice in a body.
fn set(request: &mut Request<'_>, key: &str, value: &Value) {
    match key {
        "tool_choice" => request.tool_choice = Some(value.clone()),
        "parallel_tool_calls" => request.parallel_tool_calls = value.as_bool(),
        "max_output_tokens" => request.max_output_tokens = value.as_u64(),
        "temperature" => request.temperature = value.as_f64(),
        "text" => request.text = Some(value.clone()),
        "store" => request.store = value.as_bool(),
        "stream" => request.stream = value.as_bool(),
        "prompt_cache_key" => {
            request.prompt_cache_key = value.as_str().map(|key| Cow::Owned(key.to_owned()));
        }
        "include" => {
            let list = value.as_array().into_iter().flatten();
            for one in list.filter_map(Value::as_str) {
                if !request.include.iter().any(|known| known == one) {
                    request.include.push(Cow::Owned(one.to_owned()));
                }
            }
        }
        "reasoning" => {
            // It may hold keys that this crate does not know.
            request.reasoning = None;
            request.extra.insert(key.to_owned(), value.clone());
        }
        // What a run is made of is not a setting.
        "model" | "instructions" | "input" | "tools" => {}
        _ => {
            request.extra.insert(key.to_owned(), value.clone());
        }
    }
}

fn tools<'a>(input: &RenderInput<'a>, profile: &Profile, notes: &mut Vec<Note>) -> Vec<Tool<'a>> {
    let mut specs: Vec<&ToolSpec> = input.tools.iter().collect();
    specs.sort_by(|one, other| one.name.cmp(&other.name));
    let mut tools: Vec<Tool<'a>> = Vec::with_capacity(specs.len());
    let mut names = BTreeSet::new();
    let mut renamed = Vec::new();
    for spec in specs {
        // A tool is named as calls of it are; of two that are named alike the first counts.
        let name = ids::name(&spec.name);
        if !names.insert(name.clone()) {
            renamed.push(Note::setting(LeftOut::RepeatedTool));
            continue;
        }
        if name != spec.name {
            renamed.push(Note::setting(LeftOut::Name));
        }
        let parameters = schema::object(&spec.schema);
        let fits = || schema::unfit_for_strict(&parameters).is_none();
        let strict = profile.strict == Strict::WhereItFits && fits();
        tools.push(Tool::Function {
            kind: "function".into(),
            name,
            description: Cow::Borrowed(&spec.description),
            parameters,
            strict,
        });
    }
    renamed.dedup();
    notes.append(&mut renamed);
    for block in input.hosted_tools {
        match items::own(block) {
            Some((_, raw)) => tools.push(Tool::Raw(raw)),
            None => notes.push(Note::setting(LeftOut::ForeignBlock)),
        }
    }
    tools
}
