//! [`render`]: a transcript as the body of a `generateContent` request. Deterministic: an older request,
//! up to the end of its contents, is a byte prefix of a newer one.

use std::borrow::Cow;

use plimsoll_context::{Message, ToolSpec};
use serde_json::Value;

use super::GeminiProfile;
use super::settings::settings;
use super::write::{GeminiParts, GeminiWriter, RULES, declared};
use crate::compose::{Composer, RequestRenderer};
use crate::object::Object;
use crate::request::{EncodedRequest, RenderInput};
use crate::server_rules::ServerRules;
use crate::tools::{EncodedTools, described, legal_name, object_schema};

/// Encodes the tools of a request. The declarations are one tool.
fn encode_tools(tools: &[ToolSpec]) -> EncodedTools {
    let name = |name| match legal_name(name) {
        Cow::Borrowed(name) => declared(name),
        Cow::Owned(name) => declared(&name).into_owned().into(),
    };
    let mut tools = EncodedTools::new(tools, name, |name, tool| {
        let schema = object_schema(&tool.schema, false);
        described(name, &tool.description)
            .value("parametersJsonSchema", schema)
            .end()
    });
    if !tools.list.is_empty() {
        let list = Object::new().list("functionDeclarations", [tools.list.as_str()]);
        tools.list = list.end();
    }
    tools
}

impl RequestRenderer for GeminiProfile {
    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest {
        let rules = ServerRules {
            images: self.images,
            ..RULES
        };
        let mut composer = Composer::new(rules, input.system);
        for message in messages {
            composer.message(message, &mut GeminiParts, &GeminiWriter(self));
        }
        let mut head = Object::new();
        if let Some(system) = composer.normalizer.system_text() {
            let part = Object::new().text("text", &system).end();
            let parts = Object::new().list("parts", [part.as_str()]);
            head = head.raw("systemInstruction", &parts.end());
        }
        let notes = &mut composer.normalizer.notes;
        let tools = encode_tools(input.tools);
        notes.extend(&tools.notes);
        let callable = !tools.list.is_empty();
        let own = input.extra.and_then(|extra| extra.get("tools"));
        let own = own.and_then(Value::as_array).into_iter().flatten();
        let own: Vec<String> = own.map(Value::to_string).collect();
        if callable || !own.is_empty() {
            let own = own.iter().map(String::as_str);
            head = head.list("tools", std::iter::once(tools.list.as_str()).chain(own));
        }
        let settings = settings(input, callable, self, notes);
        let (head, writer) = ((head, "contents"), GeminiWriter(self));
        composer.request(head, input.context, (&[], ""), &writer, &settings)
    }
}
