//! [`render`]: a transcript as the body of a Messages request. Deterministic. It repairs nothing but the
//! order within a batch: if other messages separate a batch, the body does, too, and the crate `mock`
//! reports it.

use std::borrow::Cow;

use plimsoll_context::{Breakpoint, CacheRetention, MAX_BREAKPOINTS, Message, Opaque, ToolSpec};
use serde_json::{Map, Value};

use super::MessagesProfile;
use super::pause::{self, ServerCalls};
use super::read_block::unmarked;
use super::settings::Settings;
use super::thinking::{self, Trace, is_thinking, loop_lacks_thinking};
use super::write::{MessagesParts, MessagesWriter, RULES, block_json, own, says};
use crate::compose::{Composer, RequestRenderer, cache_control};
use crate::object::Object;
use crate::request::{EncodedRequest, LeftOut, Note, RenderInput};
use crate::server_rules::ServerRules;
use crate::tools::{EncodedTools, called, legal_name, object_schema, with_mark};
use crate::turns::Block;

/// The beta header for files by id.
pub const FILES: &str = "files-api-2025-04-14";
/// The beta header for context editing, if the extra keys of a request contain it.
pub const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";

/// Encodes the tools of a request.
fn encode_tools(tools: &[ToolSpec]) -> EncodedTools {
    EncodedTools::new(tools, legal_name, |name, tool| {
        Object::new()
            .text("name", name)
            .text("description", &tool.description)
            .value("input_schema", object_schema(&tool.schema, false))
            .end()
    })
}

impl RequestRenderer for MessagesProfile {
    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest {
        let tools = match (input.tools, input.hosted_tools) {
            ([], []) => encode_tools(&called(messages)),
            _ => encode_tools(input.tools),
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
        let unpaired = server_calls.unpaired(messages);
        let lacks = loop_lacks_thinking(messages, &without, &unpaired);
        let mut settings = Settings::of(input, self, lacks);
        if !settings.thinks && !self.unasked_thinking {
            leave_out_all(&mut without, messages);
        }
        let mut parts = MessagesParts {
            without: &without,
            unpaired: &unpaired,
            files: false,
        };
        let rules = ServerRules {
            assistant_last: paused || (self.prefill && !settings.thinks),
            images: self.images,
            ..RULES
        };
        let mut composer = Composer::new(rules, input.system);
        for message in messages {
            composer.message(message, &mut parts, &MessagesWriter);
        }
        let notes = &mut composer.normalizer.notes;
        let hosted = hosted(input.hosted_tools, notes);
        notes.extend(&tools.notes);
        notes.append(&mut settings.notes);

        let breakpoints = newest(input.breakpoints());
        let all = [&tools.list].into_iter().chain(&hosted).map(String::as_str);
        let all: Vec<&str> = all.filter(|tools| !tools.is_empty()).collect();
        let head = head(input, breakpoints, &all, &composer.normalizer.system);
        let (head, marks) = (
            (head, "messages"),
            (breakpoints, cache_control(input.retention())),
        );
        EncodedRequest {
            prefix: trace.prefix(input.model, input.context, messages),
            betas: betas(input, parts.files),
            ..composer.request(head, input.context, marks, &MessagesWriter, &settings.keys)
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

/// Returns the body up to the messages.
fn head(
    input: &RenderInput<'_>,
    breakpoints: &[Breakpoint],
    tools: &[&str],
    system: &[Block],
) -> Object {
    // A longer time never follows a shorter one (AM11), because tools and system prompt come first.
    let mark = cache_control(match input.retention() {
        CacheRetention::Usual => CacheRetention::Usual,
        CacheRetention::Head | CacheRetention::Long => CacheRetention::Long,
    });
    let mark_of = |breakpoint| breakpoints.contains(&breakpoint).then_some(mark);
    let mut head = Object::new().text("model", input.model);
    if let [first @ .., last] = tools {
        let last = with_mark(last, mark_of(Breakpoint::Tools));
        head = head.list("tools", first.iter().copied().chain([&*last]));
    }
    let mut system: Vec<Cow<'_, str>> = system.iter().map(block_json).collect();
    if let Some(first) = system.first_mut() {
        // Leading system messages follow the prompt, which carries the breakpoint.
        let mark = mark_of(Breakpoint::System).filter(|_| input.system.is_some_and(says));
        if mark.is_some() {
            *first = with_mark(first, mark).into_owned().into();
        }
        head = head.list("system", system.iter().map(AsRef::as_ref));
    }
    head
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
