//! [`render`]: a transcript as the body of a Converse request. Deterministic: an older request, up to the
//! end of its messages, is a byte prefix of a newer one with the same tools.

use std::borrow::Cow;
use std::collections::BTreeSet;

use plimsoll_context::{Breakpoint, Message, ToolSpec};
use serde_json::{Value, json};

use super::settings::{budget, by_budget, settings};
use super::write::{CACHE_POINT, ConverseParts, ConverseWriter, began_with_reasoning};
use super::{ConverseProfile, Maker};
use crate::compose::{Composer, RequestRenderer};
use crate::object::Object;
use crate::request::{EncodedRequest, RenderInput, ToolChoice};
use crate::tools::{EncodedTools, described, legal_name, object_schema};

impl RequestRenderer for ConverseProfile {
    fn encode_tools(&self, tools: &[ToolSpec]) -> EncodedTools {
        EncodedTools::new(tools, legal_name, |name, tool| {
            let schema = object_schema(&tool.schema, false);
            declaration(described(name, &tool.description), &schema)
        })
    }

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
        let tools = match input.tool_choice {
            ToolChoice::None => Cow::default(),
            _ => EncodedTools::of(input, self),
        };
        let notes = &mut composer.normalizer.notes;
        notes.extend(&tools.notes);
        let mark = breakpoints.contains(&Breakpoint::Tools);
        if let Some(config) = tool_config(&tools, &input.tool_choice, messages, mark) {
            head = head.raw("toolConfig", &config);
        }
        let settings = settings(input, budget, self, notes);
        let (head, marks) = ((head, "messages"), (breakpoints, ""));
        composer.request(head, input.context, marks, &ConverseWriter(self), &settings)
    }
}

/// Returns the tools.
///
/// The API has no choice `none`, and requires tools if the messages contain calls (BR5). In that case
/// only the names of the called tools are declared.
fn tool_config(
    tools: &EncodedTools,
    choice: &ToolChoice,
    messages: &[&Message],
    has_breakpoint: bool,
) -> Option<String> {
    let called: String;
    let list = if tools.list.is_empty() {
        let schema = json!({"type": "object"});
        let calls = messages.iter().flat_map(|message| message.calls());
        let names: BTreeSet<_> = calls.map(|call| legal_name(&call.name)).collect();
        let names = names.iter();
        let names = names.map(|name| declaration(described(name, ""), &schema));
        called = names.collect::<Vec<_>>().join(",");
        &called
    } else {
        &tools.list
    };
    let choice = match choice {
        _ if list.is_empty() => return None,
        ToolChoice::Auto | ToolChoice::None => None,
        ToolChoice::Required => Some(json!({"any": {}})),
        ToolChoice::Tool(name) => Some(json!({"tool": {"name": legal_name(name)}})),
    };
    let mark = has_breakpoint.then_some(CACHE_POINT);
    let config = Object::new().list("tools", [list.as_str()].into_iter().chain(mark));
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
