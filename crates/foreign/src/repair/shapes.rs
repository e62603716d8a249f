//! The fix-ups `shapes` and `empty`: values have the JSON type and the keys that the protocol requires, and
//! no text or message is empty where the provider refuses that.

use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::__internals::{list, set, text, unset};
use plimsoll_wire::openai_chat::NoContent;
use plimsoll_wire::{Target, prompt_texts};
use serde_json::{Value, json};

use super::piece::{self, kind};
use super::{Patient, shapes_chat, shapes_messages, shapes_responses};
use crate::unit::{Role, Unit};

/// Converts values of the wrong JSON type, adds missing keys, and removes entries and parts that the protocol
/// does not have.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    match patient.target {
        Target::Chat(dialect) => shapes_chat::fix(patient, dialect),
        Target::Responses(profile) => shapes_responses::fix(patient, profile),
        Target::Messages(_) => shapes_messages::fix(patient),
    }
}

/// Gives each unit the value that the API requires, or removes it if there is none.
pub(super) fn reshape(
    patient: &mut Patient<'_, '_>,
    required: impl Fn(&Unit<'_>) -> Option<Value>,
) {
    patient.each(|unit| match required(unit) {
        None => {
            unit.remove();
            Some("left it out: this API has no such entry")
        }
        Some(new) if new == *unit.value() => None,
        Some(new) => {
            *unit.edit() = new;
            Some("wrote it in the form that the API requires")
        }
    });
}

/// Removes texts, lists and messages without content.
pub(super) fn empty(patient: &mut Patient<'_, '_>) {
    let target = patient.target;
    patient.each(|unit| {
        match target {
            Target::Chat(dialect) => silent_message(unit, dialect.no_content),
            Target::Responses(_) => silent_item(unit),
            Target::Messages(_) => blank_block(unit),
        }?;
        Some(match unit.is_left() {
            true => "removed what says nothing from its content",
            false => "it says nothing; dropped it",
        })
    });
}

/// Adds an opening message if nothing is left of the chat.
pub(super) fn open(patient: &mut Patient<'_, '_>) {
    if patient.first_of_list().is_none() {
        let end = patient.chat.units.len();
        let message = piece::user(patient.protocol(), prompt_texts::OPENING);
        let done = "put in an opening message: nothing was left";
        patient.insert(end, Role::User, message, done);
    }
}

/// Removes a message without content, or gives it the empty content that the server accepts. `None` if it stays.
pub(super) fn silent_message(unit: &mut Unit<'_>, no_content: NoContent) -> Option<()> {
    let value = unit.value();
    let content = value.get("content");
    let is_silent = match (piece::role(unit), content) {
        ("assistant", None | Some(Value::Null)) => true,
        ("assistant", Some(Value::String(text))) => text.is_empty(),
        (_, content) => content.is_some_and(|content| *content == json!([])),
    };
    if !is_silent {
        return None;
    }
    let has_calls = !list(value, "tool_calls").is_empty();
    let says_more = value.get("refusal").is_some_and(Value::is_string)
        || value.get("audio").is_some_and(Value::is_object);
    match piece::role(unit) {
        "tool" => set(unit.edit(), "content", ""),
        "assistant" if has_calls || says_more => {
            let is_right = match content {
                None => no_content != NoContent::Empty,
                Some(Value::Null) => no_content == NoContent::Null,
                Some(Value::String(_)) => has_calls && no_content != NoContent::Omit,
                Some(_) => false,
            };
            match no_content {
                _ if is_right => return None,
                NoContent::Null => set(unit.edit(), "content", Value::Null),
                NoContent::Empty if has_calls => set(unit.edit(), "content", ""),
                NoContent::Empty => set(unit.edit(), "content", " "),
                NoContent::Omit => unset(unit.edit(), &["content"]),
            }
        }
        _ => unit.remove(),
    }
    Some(())
}

fn silent_item(unit: &mut Unit<'_>) -> Option<()> {
    let is_empty = |key: &str| unit.value().get(key).is_some_and(|list| *list == json!([]));
    match items::kind(unit.value()) {
        "message" if is_empty("content") => unit.remove(),
        "function_call_output" | "custom_tool_call_output" if is_empty("output") => {
            set(unit.edit(), "output", "");
        }
        _ => return None,
    }
    Some(())
}

fn is_blank(block: &Value) -> bool {
    kind(block) == "text" && text(block, "text").trim().is_empty()
}

/// Removes a blank text, or the blank texts in a result or a system prompt.
fn blank_block(unit: &mut Unit<'_>) -> Option<()> {
    let list = match unit.value() {
        block if is_blank(block) => {
            unit.remove();
            return Some(());
        }
        Value::Array(_) => "",
        block if kind(block) == "tool_result" => "/content",
        _ => return None,
    };
    let blocks = unit.value().pointer(list)?.as_array()?;
    if !blocks.iter().any(is_blank) {
        return None;
    }
    let value = unit.edit();
    let blocks = value.pointer_mut(list)?.as_array_mut()?;
    blocks.retain(|block| !is_blank(block));
    match (blocks.is_empty(), list) {
        (false, _) => {}
        (true, "") => unit.remove(),
        (true, _) => unset(value, &["content"]),
    }
    Some(())
}
