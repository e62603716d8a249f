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
use crate::tools::{EncodedTools, legal_name, marked};

impl RequestRenderer for Dialect {
    fn encode_tools(&self, tools: &[ToolSpec]) -> EncodedTools {
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
        let tools = EncodedTools::of(input, self);
        notes.extend(&tools.notes);
        let has_tools = !tools.list.is_empty();

        let mut head = Object::new().text("model", input.model);
        if has_tools && marks.contains(&Breakpoint::Tools) {
            head = head.list("tools", [marked(&tools.list, mark).as_str()]);
        } else if has_tools {
            head = head.list("tools", [tools.list.as_str()]);
        }
        let settings = settings(input, has_tools, self, &mut notes);
        let (head, end) = ((head, "messages"), composer.end(input.context));
        EncodedRequest {
            notes,
            ..composer.request(head, end, (marks, mark), &ChatWriter(self), &settings)
        }
    }
}
