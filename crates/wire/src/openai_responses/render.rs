//! [`render`]: a transcript as the body of a Responses request. Deterministic. It repairs nothing: if other
//! messages separate a call from its result, the body does, too, and the crate `mock` reports it.

use plimsoll_context::{Message, ToolSpec};

use super::ResponsesProfile;
use super::items;
use super::settings::settings;
use super::write::{InputWriter, RULES, ResponsesParts};
use crate::compose::{Composer, RequestRenderer};
use crate::object::Object;
use crate::request::{EncodedRequest, LeftOut, Note, RenderInput};
use crate::server_rules::ServerRules;
use crate::tools::{EncodedTools, legal_name, object_schema};

/// Encodes the tools of a request.
fn encode_tools(tools: &[ToolSpec]) -> EncodedTools {
    EncodedTools::new(tools, legal_name, |name, tool| {
        // By default, the API holds all tools to their schemas, and requires every optional key.
        Object::of("function")
            .text("name", name)
            .text("description", &tool.description)
            .value("parameters", object_schema(&tool.schema, true))
            .value("strict", false)
            .end()
    })
}

impl RequestRenderer for ResponsesProfile {
    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest {
        let writer = InputWriter(self);
        let rules = ServerRules {
            images: self.images,
            ..RULES
        };
        let mut composer = Composer::new(rules, None);
        for message in messages {
            composer.message(message, &mut ResponsesParts::new(self), &writer);
        }
        let notes = &mut composer.normalizer.notes;
        let mut head = Object::new()
            .text("model", input.model)
            .optional("instructions", input.system);
        let tools = encode_tools(input.tools);
        notes.extend(&tools.notes);
        let mut all = vec![tools.list.as_str()];
        for tool in input.hosted_tools {
            match items::own(tool) {
                Some((_, json)) => all.push(json),
                None => notes.push(Note::setting(LeftOut::ForeignBlock)),
            }
        }
        let has_tools = all.iter().any(|tools| !tools.is_empty());
        if has_tools {
            head = head.list("tools", all);
        }
        let settings = settings(input, has_tools, self, notes);
        composer.request(
            (head, "input"),
            input.context,
            (&[], ""),
            &writer,
            &settings,
        )
    }
}
