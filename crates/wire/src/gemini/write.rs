//! The contents of a Gemini request: the parts that only this protocol has, and how a turn is written.

use std::borrow::Cow;

use plimsoll_context::{Opaque, Part, Source, ToolCall};
use serde_json::{Map, Value};

use super::{GeminiProfile, ORIGIN};
use crate::block_list::BlockWriter;
use crate::call_ids::CallIdForm;
use crate::normalize::{Converted, Native};
use crate::object::Object;
use crate::raw::{self, quoted};
use crate::request::LeftOut;
use crate::server_rules::ServerRules;
use crate::tools::MAX_NAME;
use crate::turns::{AnsweredCall, Block, Content, Role, TurnCall};

/// The key of a thought signature.
const SIGNATURE: &str = "thoughtSignature";
/// A signature that the API accepts for calls of other providers, which have none.
const UNSIGNED: &str = r#""thoughtSignature":"skip_thought_signature_validator""#;
/// The prefix of ids for calls to which the API gave none. Such ids are not sent.
const NO_ID: &str = "call#";
/// The media types by file extension: the API requires one for an address.
const ENDINGS: [(&str, &str); 7] = [
    (".png", "image/png"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".webp", "image/webp"),
    (".pdf", "application/pdf"),
    (".mp4", "video/mp4"),
    (".mp3", "audio/mpeg"),
];
/// The provider's own parts that are sent back unchanged.
const OWN_PARTS: [&str; 2] = ["executableCode", "codeExecutionResult"];

/// The requirements of the API for the messages of a request.
pub(super) const RULES: ServerRules = ServerRules {
    ids: CallIdForm::Visible,
    results_apart: true,
    ..ServerRules::BLOCKS
};

/// Converts the parts of messages.
#[derive(Debug)]
pub(super) struct GeminiParts;

impl Native for GeminiParts {
    fn part(&mut self, part: &Part, role: Role, _: usize) -> Converted {
        let source = match part {
            Part::Image(image) => &image.source,
            Part::File(file) => &file.source,
            Part::Opaque(opaque) if role == Role::Assistant && is_own(opaque) => {
                return Ok(Some(Content::Json(opaque.data.clone())));
            }
            Part::Opaque(_) => return Err(LeftOut::ForeignBlock),
            // No text of thoughts is sent back.
            Part::Thinking(thinking) if thinking.opaque.is_some() => {
                return Err(LeftOut::ForeignThinking);
            }
            _ => return Ok(None),
        };
        let (key, kind, at, value) = match source {
            Source::Data { media_type, base64 } => {
                ("inlineData", media_type.as_str(), "data", base64)
            }
            Source::Url { url } => {
                let kind = media_type(url).ok_or(LeftOut::Attachment)?;
                ("fileData", kind, "fileUri", url)
            }
        };
        let data = Object::new().text("mimeType", kind).text(at, value).end();
        Ok(Some(Content::Json(Object::new().raw(key, &data).end())))
    }

    fn call(&mut self, call: &ToolCall) -> (bool, String, Option<String>) {
        (false, members_of_call(call.opaque.as_ref()), None)
    }
}

/// Returns `true` for a part of the provider that is sent back.
fn is_own(opaque: &Opaque) -> bool {
    let part: Option<Map<String, Value>> = raw::own(opaque, ORIGIN);
    part.is_some_and(|part| OWN_PARTS.iter().any(|key| part.contains_key(*key)))
}

/// Writes for a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct GeminiWriter<'p>(pub(super) &'p GeminiProfile);

impl BlockWriter for GeminiWriter<'_> {
    const ASSISTANT: &'static str = "model";
    const LIST: &'static str = "parts";

    /// The first call of a turn must be signed.
    fn call(&self, call: &TurnCall, is_first: bool) -> String {
        let function = function(&call.id, &call.name).raw("args", &call.arguments);
        let is_first = is_first && self.0.signatures_required;
        let members = match call.members.as_str() {
            "" if is_first => UNSIGNED,
            members => members,
        };
        let part = Object::new().raw("functionCall", &function.end());
        part.members(members).end()
    }

    fn result(&self, answer: &AnsweredCall, blocks: &[Block]) -> String {
        let key = if answer.is_error { "error" } else { "output" };
        let response = Object::new().text(key, &answer.text(blocks)).end();
        let function = function(&answer.id, &answer.name).raw("response", &response);
        Object::new().raw("functionResponse", &function.end()).end()
    }
}

/// Begins a call or a result with its id and the name of the tool.
fn function(id: &str, name: &str) -> Object {
    let function = Object::new().optional("id", is_given(id).then_some(id));
    function.text("name", &declared(name))
}

/// Returns a call's signature in the form that is stored in the call (GM3).
pub(super) fn kept_by_call(signature: &str) -> Opaque {
    raw::opaque(ORIGIN, Object::new().text(SIGNATURE, signature).end())
}

/// Returns the members of a part with the signature stored in a call. Empty if there is none.
fn members_of_call(kept: Option<&Opaque>) -> String {
    let keys: Option<Map<String, Value>> = kept.and_then(|kept| raw::own(kept, ORIGIN));
    let signature = keys.as_ref().and_then(|keys| keys.get(SIGNATURE)?.as_str());
    let signature = signature.map(|signature| format!(r#""{SIGNATURE}":{}"#, quoted(signature)));
    signature.unwrap_or_default()
}

/// Returns the id of the call with this number, for a call without an id of the API.
pub(super) fn own_id(name: &str, number: usize) -> String {
    format!("{NO_ID}{name}#{number}")
}

/// Returns `true` if the API, or another provider, gave a call its id.
fn is_given(id: &str) -> bool {
    let own = id.strip_prefix(NO_ID).and_then(|id| id.rsplit_once('#'));
    let own = own.is_some_and(|(_, number)| number.parse::<usize>().is_ok());
    !id.is_empty() && !own
}

/// Returns a tool's name that begins with a letter or `_`. Other illegal characters must have been
/// replaced before.
pub(super) fn declared(name: &str) -> Cow<'_, str> {
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => Cow::Borrowed(name),
        _ => Cow::Owned(format!("_{name}").chars().take(MAX_NAME).collect()),
    }
}

fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.to_ascii_lowercase();
    let found = ENDINGS.iter().find(|(ending, _)| path.ends_with(ending));
    found.map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_with_a_letter() {
        for (name, sent) in [
            ("read_file", "read_file"),
            ("7zip", "_7zip"),
            ("-", "_-"),
            ("_hm", "_hm"),
            ("", "_"),
        ] {
            assert_eq!(declared(name), sent);
        }
        assert_eq!(declared(&"7".repeat(64)).len(), MAX_NAME);
    }

    #[test]
    fn ids_of_our_own_are_not_sent() {
        assert!(!is_given(&own_id("a#b", 3)) && !is_given(""));
        assert!(is_given("call#read#x") && is_given("call_1"));
    }
    #[test]
    fn a_signature_is_stored_in_its_call() {
        let kept = kept_by_call("a/b+c==");
        let members = members_of_call(Some(&kept));
        assert_eq!(members, r#""thoughtSignature":"a/b+c==""#);
        let foreign = Opaque {
            origin: "anthropic".into(),
            ..kept
        };
        assert_eq!(members_of_call(Some(&foreign)), "");
    }
}
