//! [`render`]: a view of a transcript as the bytes of a Messages request. Deterministic: the same
//! view gives the same bytes. Repairs nothing but the order within one batch; a view that parts a
//! batch is rendered parted, and `validate.rs` says so.

use std::collections::BTreeSet;

use plimsoll_context::{Breakpoint, CacheRetention, Message, Opaque, ToolSpec};
use serde_json::Value;

use super::loops;
use super::pause;
use super::profile::{Profile, UnaskedThinking};
use super::settings::{self, Settings};
use super::shape::{MARK, ORIGIN, Shaper, legal_name, newest, says};
use super::turn::{Block, Role, Ttl, Turn, What, blocks, marked};
use crate::error::WireError;
use crate::frames;
use crate::object::{Object, array};
use crate::openai_chat::Prefill;
use crate::raw::RawObject;
use crate::request::{LeftOut, Note, RenderInput, Rendered};

/// Files by id.
pub(super) const FILES: &str = "files-api-2025-04-14";
/// Context editing, where somebody asks for it in further keys.
pub(super) const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";

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
    let messages: Vec<&'a Message> = messages.into_iter().collect();
    let mut tools: Vec<&ToolSpec> = input.tools.iter().collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let given = tools.len();
    let renamed = tools.iter().any(|tool| legal_name(&tool.name) != tool.name);
    let renamed = renamed.then_some(LeftOut::Name);
    let mut names = BTreeSet::new();
    tools.retain(|tool| names.insert(legal_name(&tool.name)));
    let repeated = (tools.len() < given).then_some(LeftOut::RepeatedTool);
    // What was paused goes back as it stands: nothing is said after it.
    let paused = pause::is_paused(&messages);
    let waiting = paused || pause::is_waiting(&messages);
    let context = input.context.filter(|_| !waiting);
    let input = &RenderInput {
        context,
        ..input.clone()
    };
    let mut verdict = loops::judge(input, &tools, &messages, profile);
    let shape = |without: &[Option<LeftOut>]| {
        let mut shaper = Shaper::new(input, without, pause::unanswered(&messages));
        // Leading system messages follow the prompt, which carries the breakpoint.
        if let Some(system) = input.system.filter(|system| says(system)) {
            shaper.system(system);
        }
        for message in &messages {
            shaper.message(message);
        }
        shaper.finish(input.context)
    };
    let mut shaped = shape(&verdict.without);
    let began = |turns: &[Turn<'_>]| match paused {
        true => settings::paused_loop_began(turns),
        false => settings::loop_began(turns),
    };
    let mut settings = Settings::of(input, profile, began(&shaped.turns));
    // Whether the model thinks is known only now.
    if !settings.thinks
        && profile.unasked_thinking == UnaskedThinking::Refused
        && loops::forget(&mut verdict.without, &messages)
    {
        shaped = shape(&verdict.without);
        settings = Settings::of(input, profile, began(&shaped.turns));
    }
    let hosted = hosted(input.hosted_tools, &mut shaped.notes);
    if !paused {
        last_word(&mut shaped.turns, profile, &settings);
    }
    shaped
        .notes
        .extend(renamed.into_iter().chain(repeated).map(Note::setting));
    shaped.notes.extend(settings.notes.iter().cloned());

    let managed = settings
        .keys
        .iter()
        .any(|(key, _)| key == "context_management");
    let needs = [(shaped.files, FILES), (managed, CONTEXT_MANAGEMENT)];
    let needed = needs.into_iter().filter(|(needed, _)| *needed);
    let mut betas: Vec<&'static str> = needed.map(|(_, beta)| beta).collect();
    let announced = input.hosted_tools.iter().filter_map(beta_of);
    for beta in announced {
        if !betas.contains(&beta) {
            betas.push(beta);
        }
    }

    let mut body = Object::new().text("model", input.model);
    if !tools.is_empty() || !hosted.is_empty() {
        body = body.raw("tools", &tools_json(&tools, hosted, input)?);
    }
    if !shaped.system.is_empty() {
        body = body.raw("system", &blocks(&shaped.system));
    }
    let turns: Vec<String> = shaped.turns.iter().map(Turn::json).collect();
    let turns = array(turns.iter().map(String::as_str));
    body = body.raw("messages", &turns);
    for (key, value) in &settings.keys {
        body = body.value(key, value);
    }
    let from = shaped.turns.into_iter().map(|turn| turn.from);
    Ok(Rendered {
        body: body.end().into_bytes(),
        notes: shaped.notes,
        from: from.collect(),
        prefix: verdict.prefix,
        betas,
    })
}

/// The assistant does not have the last word where the model refuses that (AM8), and never while it
/// thinks; where it has, no white space ends it (AM6).
fn last_word(turns: &mut Vec<Turn<'_>>, profile: &Profile, settings: &Settings) {
    let Some(last) = turns.last_mut() else {
        return;
    };
    if last.role != Role::Assistant {
        return;
    }
    if profile.prefill == Prefill::Refused || settings.thinks {
        let mut turn = Turn::new(Role::User);
        turn.blocks.push(Block::text(frames::GO_ON));
        turns.push(turn);
        return;
    }
    if let Some(Block {
        what: What::Text(text),
        ..
    }) = last.blocks.last_mut()
    {
        *text = text.trim_end().to_owned().into();
    }
}

/// The provider's own tools without breakpoints; those of other wires are told of.
fn hosted(tools: &[Opaque], notes: &mut Vec<Note>) -> Vec<String> {
    let mut hosted = Vec::with_capacity(tools.len());
    for tool in tools {
        let own = (tool.origin == ORIGIN)
            .then(|| serde_json::from_str::<RawObject<'_>>(&tool.data).ok())
            .flatten();
        match own.filter(|object| object.get("type").is_some()) {
            Some(object) if object.get(MARK).is_some() => hosted.push(object.with(&[(MARK, None)])),
            Some(_) => hosted.push(tool.data.trim().to_owned()),
            None => notes.push(Note::setting(LeftOut::ForeignBlock)),
        }
    }
    hosted
}

/// What announces one of the provider's own tools.
fn beta_of(tool: &Opaque) -> Option<&'static str> {
    let own = Some(&tool.data).filter(|_| tool.origin == ORIGIN)?;
    let tool: Value = serde_json::from_str(own).ok()?;
    super::hosted::beta_of(tool.get("type")?.as_str()?)
}

fn tools_json(
    tools: &[&ToolSpec],
    hosted: Vec<String>,
    input: &RenderInput<'_>,
) -> Result<String, WireError> {
    let marks = input.cache.map_or(&[][..], |plan| &plan.breakpoints);
    let cached = newest(marks).contains(&Breakpoint::Tools);
    let mut list = Vec::with_capacity(tools.len());
    for tool in tools {
        let schema = schema(&tool.schema)?;
        let json = Object::new()
            .text("name", &legal_name(&tool.name))
            .text("description", &tool.description)
            .raw("input_schema", &schema);
        list.push(json.end());
    }
    list.extend(hosted);
    if let (true, Some(last)) = (cached, list.last_mut()) {
        *last = marked(last, Ttl::of_head(retention(input)));
    }
    Ok(array(list.iter().map(String::as_str)))
}

/// A schema as the API takes it: an object's, and it says so.
fn schema(schema: &Value) -> Result<String, WireError> {
    let typed = match schema {
        Value::Object(keys) if keys.get("type").is_some_and(|kind| kind == "object") => {
            serde_json::to_string(schema)
        }
        Value::Object(keys) => {
            let mut typed = keys.clone();
            typed.insert("type".into(), "object".into());
            serde_json::to_string(&typed)
        }
        _ => Ok(r#"{"type":"object"}"#.to_owned()),
    };
    typed.map_err(|error| WireError::not_json(&error))
}

/// Returns how long the cache of a request is kept.
pub(super) fn retention(input: &RenderInput<'_>) -> CacheRetention {
    input.cache.map(|plan| plan.retention).unwrap_or_default()
}
