//! The [`WireForm`] of OpenAI Responses.

use std::collections::BTreeSet;

use plimsoll_context::{Message, Part};
use plimsoll_wire::__internals::RawObject;
use plimsoll_wire::__internals::anthropic::At;
use plimsoll_wire::__internals::openai_responses::items::{PAIRS, is_clients, is_output};
use plimsoll_wire::WireError;
use plimsoll_wire::openai_responses::{self, FORMAT, ORIGIN, ResponsesProfile};
use plimsoll_wire::{EncodedRequest, RenderInput};
use serde_json::Value;

use super::form::{FormFacts, OwnBlock, Rewritten, WireForm};
use super::lenient::{self, IdOwner, IdPlace, Notes};
use super::opaque::{block_of, finding, kind, text};
use super::patch::restored;
use super::repair::Finding;
use crate::fault::{Fault, Rule};
use crate::openai_responses::{unfit, validate};

/// The properties of OpenAI Responses.
static FACTS: FormFacts = FormFacts {
    origin: ORIGIN,
    document: &FORMAT,
    system_key: None,
    instructions_key: Some("instructions"),
    opens_with_thinking: false,
    open: Rule::Or1,
    orphan: Rule::Or2,
    moved: Rule::V3,
    empty: Rule::Shape,
};

impl WireForm for ResponsesProfile {
    fn facts(&self) -> &'static FormFacts {
        &FACTS
    }

    fn validate(&self, request: &Value) -> Vec<Fault> {
        validate(request, self)
    }

    /// Returns the person's first or last message, if the first or last message in the user's role
    /// consists of the client's items.
    fn persons(&self, messages: &[Message]) -> Vec<usize> {
        let is_clients = |part: &Part| match part {
            Part::Opaque(opaque) => {
                let block: Value = serde_json::from_str(&opaque.data).unwrap_or_default();
                is_clients(kind(&block))
            }
            _ => false,
        };
        let users = messages.iter().enumerate();
        let users = users.filter(|(_, message)| message.is_user());
        let users: Vec<(usize, bool)> = users
            .map(|(index, message)| (index, !message.parts().iter().all(is_clients)))
            .collect();
        let mut persons = Vec::new();
        for (end, person) in [
            (users.first(), users.iter().find(|(_, person)| *person)),
            (users.last(), users.iter().rfind(|(_, person)| *person)),
        ] {
            if end != person {
                persons.extend(person.map(|(index, _)| *index));
            }
        }
        persons
    }

    fn render(&self, messages: &[Message], model: &str) -> Result<EncodedRequest, WireError> {
        let input = RenderInput {
            model,
            ..RenderInput::default()
        };
        openai_responses::render(&input, messages, self)
    }

    fn stands_for(&self, turn: &Rewritten<'_>) -> Vec<String> {
        match turn.is_unblamed {
            // The remaining parts were valid.
            true => restored(turn.units, turn.raws),
            false => turn.raws.to_vec(),
        }
    }

    fn unfit(&self, block: &OwnBlock<'_>, stored: bool) -> Option<(Rule, String)> {
        match (block.role(), block.kind()) {
            // Reasoning is judged with the item that follows it. A block without a type belongs to the
            // message beside it.
            ("assistant", "" | "reasoning") => return None,
            // Only content can be in a result; other parts are left out anyway.
            ("tool", kind) if !kind.starts_with("input_") => return None,
            _ => {}
        }
        let fault = unfit(&block.json, block.role(), stored, self);
        fault.map(|fault| (fault.rule, fault.words)).or_else(|| {
            let id = block.json.get("call_id").and_then(Value::as_str)?;
            let mut calls = block.message.calls();
            calls.any(|call| call.id.0 == id).then(|| {
                let words = "two calls of one turn have the same id";
                (Rule::V3, words.to_owned())
            })
        })
    }

    fn parted(&self, messages: &[Message], removed: &BTreeSet<At>) -> Vec<(At, Finding)> {
        of_clients(messages, removed)
    }

    fn converted(&self, raw: &str, place: &str, notes: &mut Notes) -> Option<String> {
        lenient::responses::item(raw, place, notes)
    }

    fn pairs(&self, entry: &RawObject<'_>) -> Vec<(IdOwner, Option<String>)> {
        let kind = lenient::text(entry.get("type")).unwrap_or_default();
        let what = match kind.as_str() {
            "function_call" | "custom_tool_call" => IdOwner::Call,
            "function_call_output" | "custom_tool_call_output" => IdOwner::Result,
            _ => return Vec::new(),
        };
        vec![(what, lenient::text(entry.get("call_id")))]
    }

    fn id_place(&self, _: IdOwner) -> IdPlace {
        IdPlace::Entry("call_id")
    }
}

/// A call that waits for its output.
struct PendingOutput {
    at: At,
    kind: String,
    id: String,
    output: &'static str,
}

/// Finds separated calls and outputs of the provider's own tools that the client answers. An output
/// must follow the turn that called, before any other message.
fn of_clients(messages: &[Message], removed: &BTreeSet<At>) -> Vec<(At, Finding)> {
    let mut out = Vec::new();
    let mut open: Vec<PendingOutput> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if !answers(message) {
            unanswered(&mut open, &mut out);
        }
        // A tool result contains only content, neither calls nor outputs.
        if matches!(message, Message::ToolResult(_)) {
            continue;
        }
        for (at, part) in message.parts().iter().enumerate() {
            let at = (index, at);
            let opaque = match part {
                // The result of this call would come before the outputs of earlier calls.
                Part::ToolCall(_) => {
                    unanswered(&mut open, &mut out);
                    continue;
                }
                Part::Opaque(opaque) if !removed.contains(&at) => opaque,
                _ => continue,
            };
            let Some(block) = block_of(opaque, ORIGIN) else {
                continue;
            };
            let kind = kind(&block);
            let Some(id) = call_id(&block) else {
                continue;
            };
            if let Some((.., output)) = asks(&block) {
                if open.iter().any(|one| one.id == id) {
                    out.push((at, finding(at, Rule::V3, kind, "its id is taken", None)));
                } else {
                    open.push(PendingOutput {
                        at,
                        kind: kind.to_owned(),
                        id: id.to_owned(),
                        output,
                    });
                }
            } else if is_output(kind) {
                let call = open
                    .iter()
                    .position(|one| one.id == id && one.output == kind);
                if let Some(call) = call {
                    open.remove(call);
                } else {
                    let why = "no call before it waits for it";
                    out.push((at, finding(at, Rule::Or2, kind, why, None)));
                }
            }
        }
    }
    unanswered(&mut open, &mut out);
    out
}

/// Returns `true` if a message only answers calls.
fn answers(message: &Message) -> bool {
    let is_answer = |part: &Part| match part {
        Part::Opaque(opaque) => {
            block_of(opaque, ORIGIN).is_some_and(|block| is_output(kind(&block)))
        }
        _ => false,
    };
    match message {
        Message::ToolResult(_) => true,
        Message::User { parts } => parts.iter().all(is_answer),
        _ => false,
    }
}

fn unanswered(open: &mut Vec<PendingOutput>, out: &mut Vec<(At, Finding)>) {
    for one in open.drain(..) {
        let why = "it has no output";
        out.push((one.at, finding(one.at, Rule::Or1, &one.kind, why, None)));
    }
}

/// Returns the pair of call and output types that an item opens.
fn asks(block: &Value) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let kind = kind(block);
    PAIRS.iter().find(|(call, ..)| *call == kind)
}

/// Returns the id that a call and its output share. `None` for a search on the server's side, which
/// needs no output.
fn call_id(block: &Value) -> Option<&str> {
    let id = block.get("call_id").and_then(Value::as_str);
    // In an older format, a local shell's call uses its own id.
    let shell = kind(block).starts_with("local_shell_call");
    let own = || block.get("id").and_then(Value::as_str).filter(|_| shell);
    match id.or_else(own) {
        None if !is_output(kind(block)) || text(block, "execution") == "server" => None,
        Some("") if text(block, "execution") == "server" => None,
        id => Some(id.unwrap_or_default()),
    }
}
