//! [`render`]: a transcript as the body of a Messages request. Deterministic. It repairs nothing but the
//! order within a batch: if other messages separate a batch, the body does, too, and the crate `mock`
//! reports it.

use std::borrow::Cow;

use plimsoll_context::{Breakpoint, CacheRetention, MAX_BREAKPOINTS, Message, Opaque, ToolSpec};
use serde_json::{Map, Value, json};

use super::MessagesProfile;
use super::pause::{self, ServerCalls};
use super::read_block::unmarked;
use super::settings::Settings;
use super::thinking::{self, LoopBegan, Trace, is_thinking};
use super::write::{MessagesParts, MessagesWriter, RULES, block_json, own, says};
use crate::compose::{Composer, RequestRenderer, cache_control};
use crate::object::Object;
use crate::prompt_texts;
use crate::request::{EncodedRequest, LeftOut, Note, RenderInput};
use crate::tools::{EncodedTools, legal_name, marked, object_schema};
use crate::turns::{Block, Content, Role, Turn};

/// The beta header for files by id.
pub const FILES: &str = "files-api-2025-04-14";
/// The beta header for context editing, if the extra keys of a request contain it.
pub const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";

impl RequestRenderer for MessagesProfile {
    fn encode_tools(&self, tools: &[ToolSpec]) -> EncodedTools {
        EncodedTools::new(tools, legal_name, |name, tool| {
            Object::new()
                .text("name", name)
                .text("description", &tool.description)
                .value("input_schema", object_schema(&tool.schema, false))
                .end()
        })
    }

    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest {
        let tools = match (input.tools, input.hosted_tools) {
            ([], []) => Cow::Owned(self.encode_tools(&called(messages))),
            _ => EncodedTools::of(input, self),
        };
        // A paused turn is sent back unchanged, and no message may follow it.
        let server_calls = ServerCalls::of(messages);
        let paused = pause::is_paused(messages);
        let waiting = paused || server_calls.is_waiting(messages);
        let context = input.context.filter(|_| !waiting);
        let input = &RenderInput {
            context,
            ..input.clone()
        };
        let mut trace = Trace::new(input, &tools, self);
        let mut without = thinking::judge(input.model, &mut trace, messages, self);
        let mut settings = Settings::of(input, self, LoopBegan::of(messages, &without));
        if !settings.thinks && !self.unasked_thinking {
            leave_out_all(&mut without, messages);
        }
        let unanswered = server_calls.unanswered(messages);
        let mut parts = MessagesParts {
            without: &without,
            unanswered: &unanswered,
            files: false,
        };
        let mut composer = Composer::new(RULES, input.system);
        for message in messages {
            composer.message(message, &mut parts, &MessagesWriter);
        }
        let files = parts.files;
        let mut end = composer.end(input.context);
        if !paused {
            last_word(&mut end, self, &settings);
        }
        let mut notes = std::mem::take(&mut composer.normalizer.notes);
        let hosted = hosted(input.hosted_tools, &mut notes);
        notes.extend(&tools.notes);
        notes.append(&mut settings.notes);

        let breakpoints = input.cache.map_or(&[][..], |plan| &plan.breakpoints);
        let breakpoints = newest(breakpoints);
        let tools = if hosted.is_empty() {
            Cow::Borrowed(tools.list.as_str())
        } else {
            let all = [&tools.list].into_iter().chain(&hosted);
            let all = all.filter(|tools| !tools.is_empty());
            Cow::Owned(all.map(String::as_str).collect::<Vec<_>>().join(","))
        };
        let head = head(input, breakpoints, &tools, &composer.normalizer.system);
        let marks = (breakpoints, cache_control(retention(input)));
        let head = (head, "messages");
        EncodedRequest {
            notes,
            prefix: trace.prefix(input.model, input.context, messages),
            betas: betas(input, files),
            ..composer.request(head, end, marks, &MessagesWriter, &settings.keys)
        }
    }
}

/// Leaves out all thinking if any is left. Then a longer transcript has the same beginning.
fn leave_out_all(without: &mut [Option<LeftOut>], messages: &[&Message]) {
    let mut judged = messages.iter().zip(without.iter());
    let is_left = judged
        .any(|(message, without)| without.is_none() && message.parts().iter().any(is_thinking));
    if is_left {
        for without in without {
            without.get_or_insert(LeftOut::UnaskedThinking);
        }
    }
}

/// Returns the tool that messages call first, by its name only: the API requires tools beside calls.
/// One is enough, and it stays the same while messages are added.
fn called(messages: &[&Message]) -> Vec<ToolSpec> {
    let mut calls = messages.iter().flat_map(|message| message.calls());
    let tool = calls.next().map(|call| ToolSpec {
        name: legal_name(&call.name).into_owned(),
        description: String::new(),
        schema: json!({"type": "object"}),
    });
    tool.into_iter().collect()
}

/// Returns the body up to the messages.
fn head(
    input: &RenderInput<'_>,
    breakpoints: &[Breakpoint],
    tools: &str,
    system: &[Block],
) -> Object {
    // A longer time never follows a shorter one (AM11), because tools and system prompt come first.
    let mark = cache_control(match retention(input) {
        CacheRetention::Usual => CacheRetention::Usual,
        CacheRetention::Head | CacheRetention::Long => CacheRetention::Long,
    });
    let mut head = Object::new().text("model", input.model);
    if !tools.is_empty() && breakpoints.contains(&Breakpoint::Tools) {
        head = head.list("tools", [marked(tools, mark).as_str()]);
    } else if !tools.is_empty() {
        head = head.list("tools", [tools]);
    }
    let mut system: Vec<Cow<'_, str>> = system.iter().map(block_json).collect();
    if let Some(first) = system.first_mut() {
        // Leading system messages follow the prompt, which carries the breakpoint.
        if input.system.is_some_and(says) && breakpoints.contains(&Breakpoint::System) {
            *first = marked(first, mark).into();
        }
        head = head.list("system", system.iter().map(AsRef::as_ref));
    }
    head
}

fn retention(input: &RenderInput<'_>) -> CacheRetention {
    input.cache.map(|plan| plan.retention).unwrap_or_default()
}

/// Adds a user turn if the model must not continue its own text (AM8), which is also the case while it
/// thinks. If the last turn is the assistant's, trailing white space is removed (AM6).
fn last_word(turns: &mut Vec<Turn>, profile: &MessagesProfile, settings: &Settings) {
    let Some(last) = turns.last_mut() else {
        return;
    };
    if last.role != Role::Assistant {
        return;
    }
    if !profile.prefill || settings.thinks {
        turns.push(Turn::fixed(Role::User, prompt_texts::GO_ON));
    } else if let Some(Content::Text(text)) = last.blocks.last_mut().map(|last| &mut last.content) {
        text.truncate(text.trim_end().len());
    }
}

/// Returns the breakpoints that are sent. If there are too many, the last ones are used, because they
/// cover the others.
fn newest(breakpoints: &[Breakpoint]) -> &[Breakpoint] {
    let from = breakpoints.len().saturating_sub(MAX_BREAKPOINTS);
    breakpoints.get(from..).unwrap_or_default()
}

/// Returns the provider's own tools without breakpoints. Notes those of other protocols.
fn hosted(tools: &[Opaque], notes: &mut Vec<Note>) -> Vec<String> {
    let mut hosted = Vec::with_capacity(tools.len());
    for tool in tools {
        match own(tool).filter(|object| object.get("type").is_some()) {
            Some(object) => hosted.push(unmarked(&object, &tool.data)),
            None => notes.push(Note::setting(LeftOut::ForeignBlock)),
        }
    }
    hosted
}

/// Returns the values that the header `anthropic-beta` must contain.
fn betas(input: &RenderInput<'_>, files: bool) -> Vec<&'static str> {
    let manages = |extra: &Map<String, Value>| extra.contains_key("context_management");
    let managed = input.extra.is_some_and(manages);
    let mut betas: Vec<&'static str> = Vec::new();
    betas.extend(files.then_some(FILES));
    betas.extend(managed.then_some(CONTEXT_MANAGEMENT));
    for beta in input.hosted_tools.iter().filter_map(beta_of) {
        if !betas.contains(&beta) {
            betas.push(beta);
        }
    }
    betas
}

/// Returns the value of the header for one of the provider's own tools.
fn beta_of(tool: &Opaque) -> Option<&'static str> {
    let kind: String = serde_json::from_str(own(tool)?.get("type")?).ok()?;
    super::hosted::beta_of(&kind)
}
