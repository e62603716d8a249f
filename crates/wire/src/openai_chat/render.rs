//! [`render`]: a view of a transcript as the bytes of a Chat Completions request. Deterministic. It
//! repairs nothing: if other messages separate a batch, the body does, too, and the crate `mock` reports
//! it.

use plimsoll_context::{Breakpoint, Message, ToolSpec};

use super::dialect::{CacheMarks, Dialect, ToolStyle};
use super::json_turns;
use super::settings::settings;
use super::write::ChatWriter;
use crate::compose::{Composer, RequestRenderer, cache_control};
use crate::object::Object;
use crate::request::{EncodedRequest, RenderInput};
use crate::tools::{EncodedTools, legal_name, with_mark};

/// Encodes the tools of a request.
fn encode_tools(tools: &[ToolSpec]) -> EncodedTools {
    EncodedTools::new(tools, legal_name, |name, tool| {
        let function = Object::new()
            .text("name", name)
            .text("description", &tool.description)
            .value("parameters", &tool.schema);
        Object::of("function")
            .raw("function", &function.end())
            .end()
    })
}

impl RequestRenderer for Dialect {
    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest {
        if self.tools == ToolStyle::JsonSchema {
            return json_turns::render(input, messages, self);
        }
        let mut composer = Composer::new(self.rules(), input.system);
        for message in messages {
            composer.message(message, &mut ChatWriter(self), &ChatWriter(self));
        }
        let has_marks = self.cache == CacheMarks::Parts;
        let breakpoints = if has_marks { input.breakpoints() } else { &[] };
        let mark = cache_control(input.retention());
        let notes = &mut composer.normalizer.notes;
        let tools = encode_tools(input.tools);
        notes.extend(&tools.notes);
        let has_tools = !tools.list.is_empty();

        let mut head = Object::new().text("model", input.model);
        if has_tools {
            let is_marked = breakpoints.contains(&Breakpoint::Tools);
            head = head.list(
                "tools",
                [&*with_mark(&tools.list, is_marked.then_some(mark))],
            );
        }
        let settings = settings(input, has_tools, self, notes);
        let (head, marks) = ((head, "messages"), (breakpoints, mark));
        composer.request(head, input.context, marks, &ChatWriter(self), &settings)
    }
}
