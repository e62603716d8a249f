//! The [`WireForm`] of Chat Completions.

use plimsoll_context::Message;
use plimsoll_wire::__internals::RawObject;
use plimsoll_wire::__internals::openai_chat::{message_keys, render_list};
use plimsoll_wire::openai_chat::{Dialect, ErrorStyle, FORMAT, ORIGIN, ToolStyle};
use plimsoll_wire::{EncodedRequest, WireError};
use serde_json::Value;

use super::form::{FormFacts, OwnBlock, Rewritten, WireForm};
use super::lenient::{self, IdOwner, IdPlace, Notes, list, object, text};
use super::patch::patched;
use super::Target;
use crate::fault::{Fault, Rule};
use crate::openai_chat::{is_prefix, unfit, validate};
use crate::table::entries;

/// The properties of Chat Completions.
static FACTS: FormFacts = FormFacts {
    origin: ORIGIN,
    document: &FORMAT,
    system_key: None,
    instructions_key: None,
    opens_with_thinking: false,
    open: Rule::Oc1,
    orphan: Rule::Oc2,
    moved: Rule::Oc3,
    empty: Rule::Oc5,
};

impl WireForm for Dialect {
    fn facts(&self) -> &'static FormFacts {
        &FACTS
    }

    fn validate(&self, request: &Value) -> Vec<Fault> {
        validate(request, self)
    }

    /// A history may end with the beginning of an answer. So may a request to Mistral that sets
    /// `prefix`.
    fn adapted(&self, request: &Value) -> Option<Target> {
        let continues = || {
            let last = entries(request, "messages").last();
            self.voice == ErrorStyle::Mistral && last.is_some_and(is_prefix)
        };
        let dialect = || Self {
            prefill: true,
            ..self.clone()
        };
        (request.get("model").is_none() || continues()).then(|| dialect().into())
    }

    fn is_legacy(&self, message: &Value) -> bool {
        let calls = message.get("function_call");
        calls.is_some_and(|call| !call.is_null())
            || message.get("role").is_some_and(|role| role == "function")
    }

    /// Writing turns as JSON is a property of a model, not of the protocol.
    fn render(&self, messages: &[Message], _: &str) -> Result<EncodedRequest, WireError> {
        let dialect = Self {
            tools: ToolStyle::Native,
            ..self.clone()
        };
        Ok(render_list(messages, &dialect))
    }

    fn stands_for(&self, turn: &Rewritten<'_>) -> Vec<String> {
        match (turn.raws, turn.units) {
            ([raw], [unit]) if turn.is_only => {
                let before = unit.raws.first();
                let patched = before.map(|before| patched(before, raw));
                patched.into_iter().collect()
            }
            (raws, _) => raws.to_vec(),
        }
    }

    fn unfit(&self, block: &OwnBlock<'_>, _: bool) -> Option<(Rule, String)> {
        let is_keys = || message_keys(block.opaque).is_some();
        if block.role() == "assistant" && is_keys() {
            return None;
        }
        unfit(&block.json, self).map(|fault| (fault.rule, fault.words))
    }

    fn converted(&self, raw: &str, place: &str, notes: &mut Notes) -> Option<String> {
        lenient::chat::message(raw, place, notes)
    }

    fn pairs(&self, entry: &RawObject<'_>) -> Vec<(IdOwner, Option<String>)> {
        let calls = entry.get("tool_calls").and_then(list).unwrap_or_default();
        let calls = calls.into_iter().filter_map(object);
        let mut all: Vec<_> = calls
            .map(|call| (IdOwner::Call, text(call.get("id"))))
            .collect();
        if entry.get("role") == Some("\"tool\"") {
            all.push((IdOwner::Result, text(entry.get("tool_call_id"))));
        }
        all
    }

    fn id_place(&self, first: IdOwner) -> IdPlace {
        match first {
            IdOwner::Result => IdPlace::Entry("tool_call_id"),
            IdOwner::Call => IdPlace::List("tool_calls", |_| Some("id")),
        }
    }
}
