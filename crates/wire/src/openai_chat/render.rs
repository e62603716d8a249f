//! [`render`]: a view of a transcript as the bytes of a Chat Completions request. Deterministic. It
//! repairs nothing: if other messages separate a batch, the body does, too, and the crate `mock` reports
//! it.

use plimsoll_context::{Breakpoint, Message, ToolSpec};

use super::dialect::{CacheMarks, Dialect, ToolStyle};
use super::json_turns;
use super::settings::settings;
use super::write::ChatWriter;
use crate::compose::{Composer, RequestRenderer, cache_control};
use crate::object::{Object, array};
use crate::request::{EncodedRequest, Note, RenderInput};
use crate::tools;

impl RequestRenderer for Dialect {
    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest {
        if self.tools == ToolStyle::JsonSchema {
            return json_turns::render(input, messages, self);
        }
        let mut composer = Composer::new(self.rules(), input.system);
        for message in messages {
            composer.message(message, &mut ChatWriter(self), &ChatWriter(self));
        }
        let marks = input
            .cache
            .filter(|_| self.cache == CacheMarks::Parts)
            .map_or(&[][..], |plan| &plan.breakpoints);
        let retention = input.cache.map(|plan| plan.retention).unwrap_or_default();
        let mark = cache_control(retention);
        let mut notes = std::mem::take(&mut composer.normalizer.notes);
        let cached = marks.contains(&Breakpoint::Tools).then_some(mark);
        let tools = tools(input.tools, cached, &mut notes);

        let mut head = Object::new().text("model", input.model);
        if !tools.is_empty() {
            head = head.raw("tools", &array(tools.iter().map(String::as_str)));
        }
        let settings = settings(input, !tools.is_empty(), self, &mut notes);
        let (head, end) = ((head, "messages"), composer.end(input.context));
        EncodedRequest {
            notes,
            ..composer.request(head, end, (marks, mark), &ChatWriter(self), &settings)
        }
    }
}

/// Returns the tools as JSON, the last one with a breakpoint.
fn tools(specs: &[ToolSpec], mark: Option<&str>, notes: &mut Vec<Note>) -> Vec<String> {
    let specs = tools::named(specs, tools::legal_name, notes);
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
