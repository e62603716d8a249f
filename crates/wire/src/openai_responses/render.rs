//! [`render`]: a transcript as the body of a Responses request. Deterministic. It repairs nothing: if other
//! messages separate a call from its result, the body does, too, and the crate `mock` reports it.

use plimsoll_context::Message;

use super::ResponsesProfile;
use super::items;
use super::schema;
use super::settings::settings;
use super::write::{InputWriter, RULES, ResponsesParts};
use crate::compose::{Composer, RequestRenderer};
use crate::object::{Object, array};
use crate::request::{EncodedRequest, LeftOut, Note, RenderInput};
use crate::tools;
use crate::tools::legal_name;

impl RequestRenderer for ResponsesProfile {
    fn render(&self, input: &RenderInput<'_>, messages: &[&Message]) -> EncodedRequest {
        let writer = InputWriter(self);
        let mut composer = Composer::new(RULES, None);
        for message in messages {
            composer.message(message, &mut ResponsesParts::new(self), &writer);
        }
        let mut notes = std::mem::take(&mut composer.normalizer.notes);
        let mut head = Object::new().text("model", input.model);
        if let Some(system) = input.system {
            head = head.text("instructions", system);
        }
        let tools = tools(input, self, &mut notes);
        if !tools.is_empty() {
            head = head.raw("tools", &array(tools.iter().map(String::as_str)));
        }
        let settings = settings(input, !tools.is_empty(), self, &mut notes);
        let (head, end) = ((head, "input"), composer.end(input.context));
        EncodedRequest {
            notes,
            ..composer.request(head, end, (&[], ""), &writer, &settings)
        }
    }
}

fn tools(
    input: &RenderInput<'_>,
    profile: &ResponsesProfile,
    notes: &mut Vec<Note>,
) -> Vec<String> {
    let specs = tools::named(input.tools, legal_name, notes);
    let functions = specs.iter().map(|(name, spec)| {
        let parameters = schema::object(&spec.schema);
        let fits = || schema::unfit_for_strict(&parameters).is_none();
        let strict = profile.strict && fits();
        Object::of("function")
            .text("name", name)
            .text("description", &spec.description)
            .value("parameters", &parameters)
            .value("strict", strict)
            .end()
    });
    let mut tools: Vec<String> = functions.collect();
    for block in input.hosted_tools {
        match items::own(block) {
            Some((_, raw)) => tools.push(raw.get().to_owned()),
            None => notes.push(Note::setting(LeftOut::ForeignBlock)),
        }
    }
    tools
}
