//! The [`WireForm`] of Anthropic Messages.

use std::collections::BTreeSet;

use plimsoll_context::Message;
use plimsoll_wire::__internals::RawObject;
use plimsoll_wire::__internals::anthropic::{At, parted};
use plimsoll_wire::WireError;
use plimsoll_wire::anthropic::{self, FORMAT, MessagesProfile, ORIGIN};
use plimsoll_wire::{EncodedRequest, RenderInput};
use serde_json::{Value, json};

use super::form::{FormFacts, OwnBlock, Rewritten, WireForm};
use super::lenient::{self, IdOwner, IdPlace, Notes, list, object, text};
use super::opaque::finding;
use super::patch::with_mark_of;
use super::repair::Finding;
use super::Target;
use crate::anthropic::{thinks, unfit, validate};
use crate::fault::{Fault, Rule};

/// The properties of Anthropic Messages.
static FACTS: FormFacts = FormFacts {
    origin: ORIGIN,
    document: &FORMAT,
    system_key: Some("system"),
    instructions_key: None,
    opens_with_thinking: true,
    open: Rule::Am1,
    orphan: Rule::Am2,
    moved: Rule::Am3,
    empty: Rule::Am6,
};

impl WireForm for MessagesProfile {
    fn facts(&self) -> &'static FormFacts {
        &FACTS
    }

    fn validate(&self, request: &Value) -> Vec<Fault> {
        validate(request, self)
    }

    fn binds_thinking(&self) -> bool {
        self.binds_prefix
    }

    fn wrap(&self, request: &mut Value) {
        if request.is_array() {
            *request = json!({"messages": request.take()});
        }
    }

    fn required_setting(&self) -> Option<(&'static str, Value)> {
        Some(("max_tokens", self.default_output.into()))
    }

    /// A history may end with the beginning of an answer or with thinking. A request follows the
    /// model's profile, and must not end with the beginning of an answer if it enables thinking.
    fn adapted(&self, request: &Value) -> Option<Target> {
        let is_history = request.get("model").is_none();
        let profile = Self {
            prefill: is_history || self.prefill && !thinks(request),
            unasked_thinking: is_history || self.unasked_thinking,
            ..self.clone()
        };
        Some(profile.into())
    }

    /// Keeps thinking that no request asked for, because the validator checks that.
    fn render(&self, messages: &[Message], model: &str) -> Result<EncodedRequest, WireError> {
        let profile = Self {
            unasked_thinking: true,
            ..self.clone()
        };
        let input = RenderInput {
            model,
            ..RenderInput::default()
        };
        anthropic::render(&input, messages, &profile)
    }

    fn stands_for(&self, turn: &Rewritten<'_>) -> Vec<String> {
        let raws = turn.raws.iter();
        raws.map(|raw| with_mark_of(turn.units, raw)).collect()
    }

    fn unfit(&self, block: &OwnBlock<'_>, _: bool) -> Option<(Rule, String)> {
        match (block.role(), block.kind()) {
            ("system", _) => None,
            (_, "tool_use" | "tool_result" | "thinking" | "redacted_thinking") => {
                let words = "a call, a result or thinking that is none of the transcript's";
                Some((Rule::Shape, words.to_owned()))
            }
            (role, _) => {
                let fault = unfit(&block.json, role, self);
                fault.map(|fault| (fault.rule, fault.words))
            }
        }
    }

    /// Returns the parted calls and results. A result is in the same message as its call or in a later
    /// one.
    fn parted(&self, messages: &[Message], removed: &BTreeSet<At>) -> Vec<(At, Finding)> {
        let parted = parted(messages, |at| removed.contains(&at));
        let unanswered = parted.calls.iter().map(|(at, kind, _)| {
            let why = "it has no result";
            (*at, finding(*at, Rule::Am1, kind, why, None))
        });
        let unasked = parted.results.iter().map(|(at, kind)| {
            let why = "nothing asked for it";
            (*at, finding(*at, Rule::Am2, kind, why, None))
        });
        unanswered.chain(unasked).collect()
    }

    fn converted(&self, raw: &str, place: &str, notes: &mut Notes) -> Option<String> {
        lenient::messages::message(raw, place, notes)
    }

    fn converted_system(&self, request: &RawObject<'_>, notes: &mut Notes) -> Option<String> {
        let system = request.get("system").filter(|system| *system != "null")?;
        lenient::messages::system(system, notes)
    }

    fn pairs(&self, entry: &RawObject<'_>) -> Vec<(IdOwner, Option<String>)> {
        let blocks = entry.get("content").and_then(list).unwrap_or_default();
        let blocks = blocks.into_iter().filter_map(object);
        let pairs = blocks.filter_map(|block| match block.get("type") {
            Some("\"tool_use\"") => Some((IdOwner::Call, text(block.get("id")))),
            Some("\"tool_result\"") => Some((IdOwner::Result, text(block.get("tool_use_id")))),
            _ => None,
        });
        pairs.collect()
    }

    fn id_place(&self, _: IdOwner) -> IdPlace {
        IdPlace::List("content", |kind| match kind {
            Some("\"tool_use\"") => Some("id"),
            Some("\"tool_result\"") => Some("tool_use_id"),
            _ => None,
        })
    }
}
