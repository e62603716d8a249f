//! [`render`]: a transcript as the body of a Converse request. Deterministic: an older request, up to the
//! end of its messages, is a byte prefix of a newer one with the same tools.

use std::collections::BTreeSet;

use plimsoll_context::{Breakpoint, Message};
use serde_json::{Value, json};

use super::settings::{budget, by_budget, settings};
use super::write::{CACHE_POINT, ConverseParts, ConverseWriter, began_with_reasoning};
use super::{ConverseProfile, Maker};
use crate::compose::{Composer, RequestRenderer};
use crate::object::{Object, array};
use crate::request::{EncodedRequest, Note, RenderInput, ToolChoice};
use crate::tools;
use crate::tools::legal_name;

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
        let mut notes = std::mem::take(&mut composer.normalizer.notes);
        let plan = input.cache.filter(|_| self.cache_points);
        let breakpoints = plan.map_or(&[][..], |plan| &plan.breakpoints);

        let mut head = Object::new();
        if let Some(system) = composer.normalizer.system_text() {
            let text = Object::new().text("text", &system).end();
            let mark = breakpoints.contains(&Breakpoint::System);
            let blocks = std::iter::once(text.as_str()).chain(mark.then_some(CACHE_POINT));
            head = head.raw("system", &array(blocks));
        }
        if let Some(config) = tool_config(input, messages, breakpoints, &mut notes) {
            head = head.raw("toolConfig", &config);
        }
        let settings = settings(input, budget, self, &mut notes);
        let (head, end) = ((head, "messages"), composer.end(input.context));
        let marks = (breakpoints, "");
        EncodedRequest {
            notes,
            ..composer.request(head, end, marks, &ConverseWriter(self), &settings)
        }
    }
}

/// Returns the tools.
///
/// The API has no choice `none`, and requires tools if the messages contain calls (BR5). In that case
/// only the names of the called tools are declared.
fn tool_config(
    input: &RenderInput<'_>,
    messages: &[&Message],
    breakpoints: &[Breakpoint],
    notes: &mut Vec<Note>,
) -> Option<String> {
    let specs = match input.tool_choice {
        ToolChoice::None => &[],
        _ => input.tools,
    };
    let tools = tools::named(specs, legal_name, notes);
    let tools = tools.iter().map(|(name, tool)| {
        let schema = tools::typed(&tool.schema);
        declaration(tools::described(name, &tool.description), &schema)
    });
    let mut tools: Vec<String> = tools.collect();
    if tools.is_empty() {
        let schema = json!({"type": "object"});
        let calls = messages.iter().flat_map(|message| message.calls());
        let called: BTreeSet<_> = calls.map(|call| legal_name(&call.name)).collect();
        tools = { called.iter() }
            .map(|name| declaration(tools::described(name, ""), &schema))
            .collect();
    }
    let choice = match &input.tool_choice {
        _ if tools.is_empty() => return None,
        ToolChoice::Auto | ToolChoice::None => None,
        ToolChoice::Required => Some(json!({"any": {}})),
        ToolChoice::Tool(name) => Some(json!({"tool": {"name": legal_name(name)}})),
    };
    if breakpoints.contains(&Breakpoint::Tools) {
        tools.push(CACHE_POINT.to_owned());
    }
    let config = Object::new().raw("tools", &array(tools.iter().map(String::as_str)));
    Some(match choice {
        Some(choice) => config.value("toolChoice", choice).end(),
        None => config.end(),
    })
}

fn declaration(tool: Object, schema: &Value) -> String {
    let schema = Object::new().value("json", schema).end();
    let spec = tool.raw("inputSchema", &schema).end();
    Object::new().raw("toolSpec", &spec).end()
}
