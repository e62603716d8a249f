//! [`render`]: a transcript as the body of a Converse request. Deterministic: an older request, up to the
//! end of its messages, is a byte prefix of a newer one with the same tools.

use plimsoll_context::{Breakpoint, Message, ToolSpec};

use super::settings::{budget, by_budget, settings};
use super::write::{CACHE_POINT, ConverseParts, ConverseWriter, began_with_reasoning};
use super::{ConverseProfile, Maker};
use crate::compose::{Composer, RequestRenderer};
use crate::object::Object;
use crate::request::{EncodedRequest, RenderInput, ToolChoice};
use crate::tools::{EncodedTools, called, described, legal_name, object_schema};

/// Encodes the tools of a request.
fn encode_tools(tools: &[ToolSpec]) -> EncodedTools {
    EncodedTools::new(tools, legal_name, |name, tool| {
        let schema = object_schema(&tool.schema, false);
        let schema = Object::new().value("json", schema).end();
        let spec = described(name, &tool.description).raw("inputSchema", &schema);
        Object::new().raw("toolSpec", &spec.end()).end()
    })
}

impl RequestRenderer for ConverseProfile {
    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest {
        let budget = match &self.maker {
            Maker::Anthropic(claude) => budget(input, claude)
                .filter(|_| by_budget(claude) && began_with_reasoning(messages, input.model)),
            _ => None,
        };
        // A Claude accepts its reasoning only while it thinks.
        let replays = budget.is_some() || !matches!(self.maker, Maker::Anthropic(_));
        let mut parts = ConverseParts::new(replays.then_some(input.model));
        let mut composer = Composer::new(self.rules(), input.system);
        for message in messages {
            composer.message(message, &mut parts, &ConverseWriter(self));
        }
        let has_marks = self.cache_points;
        let breakpoints = if has_marks { input.breakpoints() } else { &[] };

        let mut head = Object::new();
        if let Some(system) = composer.normalizer.system_text() {
            let text = Object::new().text("text", &system).end();
            let mark = breakpoints.contains(&Breakpoint::System);
            let blocks = std::iter::once(text.as_str()).chain(mark.then_some(CACHE_POINT));
            head = head.list("system", blocks);
        }
        // The API has no choice `none`, and requires tools if the messages contain calls (BR5).
        let tools = match input.tool_choice {
            ToolChoice::Auto if !input.tools.is_empty() => encode_tools(input.tools),
            _ => encode_tools(&called(messages)),
        };
        let notes = &mut composer.normalizer.notes;
        notes.extend(&tools.notes);
        if !tools.list.is_empty() {
            let mark = breakpoints.contains(&Breakpoint::Tools);
            let all = [tools.list.as_str()].into_iter();
            let all = all.chain(mark.then_some(CACHE_POINT));
            head = head.raw("toolConfig", &Object::new().list("tools", all).end());
        }
        let settings = settings(input, budget, self, notes);
        let (head, marks) = ((head, "messages"), (breakpoints, ""));
        composer.request(head, input.context, marks, &ConverseWriter(self), &settings)
    }
}
