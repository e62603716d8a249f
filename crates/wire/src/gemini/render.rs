//! [`render`]: a transcript as the body of a `generateContent` request. Deterministic: an older request,
//! up to the end of its contents, is a byte prefix of a newer one.

use plimsoll_context::Message;
use serde_json::Value;

use super::GeminiProfile;
use super::settings::settings;
use super::write::{GeminiParts, GeminiWriter, RULES, declared};
use crate::compose::{Composer, RequestRenderer};
use crate::object::{Object, array};
use crate::request::{EncodedRequest, Note, RenderInput};
use crate::tools;
use crate::tools::legal_name;

impl RequestRenderer for GeminiProfile {
    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest {
        let mut composer = Composer::new(RULES, input.system);
        for message in messages {
            composer.message(message, &mut GeminiParts::default(), &GeminiWriter(self));
        }
        let mut notes = std::mem::take(&mut composer.normalizer.notes);
        let mut head = Object::new();
        if let Some(system) = composer.normalizer.system_text() {
            let part = Object::new().text("text", &system).end();
            let parts = Object::new().raw("parts", &array([part.as_str()]));
            head = head.raw("systemInstruction", &parts.end());
        }
        let declarations = declarations(input, &mut notes);
        let callable = declarations.is_some();
        let own = input.extra.and_then(|extra| extra.get("tools"));
        let own = own.and_then(Value::as_array).into_iter().flatten();
        let tools: Vec<String> = { declarations.into_iter() }
            .chain(own.map(Value::to_string))
            .collect();
        if !tools.is_empty() {
            head = head.raw("tools", &array(tools.iter().map(String::as_str)));
        }
        let settings = settings(input, callable, self, &mut notes);
        let (head, end) = ((head, "contents"), composer.end(input.context));
        EncodedRequest {
            notes,
            ..composer.request(head, end, (&[], ""), &GeminiWriter(self), &settings)
        }
    }
}

/// Returns the declarations of all tools as one tool, if there are any.
fn declarations(input: &RenderInput<'_>, notes: &mut Vec<Note>) -> Option<String> {
    let name = |name| match legal_name(name) {
        std::borrow::Cow::Borrowed(name) => declared(name),
        std::borrow::Cow::Owned(name) => declared(&name).into_owned().into(),
    };
    let tools = tools::named(input.tools, name, notes);
    let tools = tools.iter().map(|(name, tool)| {
        let schema = tools::typed(&tool.schema);
        let tool = tools::described(name, &tool.description);
        tool.value("parametersJsonSchema", schema).end()
    });
    let tools: Vec<String> = tools.collect();
    let list = array(tools.iter().map(String::as_str));
    (!tools.is_empty()).then(|| Object::new().raw("functionDeclarations", &list).end())
}
