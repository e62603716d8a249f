//! The fix-ups `shapes` and `empty`: values have the JSON type and the keys that the protocol requires, and
//! no text or message is empty where the provider refuses that.

use plimsoll_wire::openai_chat::NoContent;
use plimsoll_wire::{Target, prompt_texts};
use serde_json::{Value, json};

use super::piece::{self, kind, list, set, text, unset};
use super::{Patient, shapes_chat, shapes_messages, shapes_responses};
use crate::protocol::Protocol;
use crate::unit::{Role, Unit};

/// Converts values of the wrong JSON type, adds missing keys, and removes entries and parts that the protocol
/// does not have.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    match patient.target {
        Target::Chat(dialect) => shapes_chat::fix(patient, dialect),
        Target::Responses(profile) => shapes_responses::fix(patient, profile),
        Target::Messages(profile) => shapes_messages::fix(patient, profile),
    }
}

/// Removes texts and messages without content. A chat that is empty then gets an opening message.
pub(super) fn empty(patient: &mut Patient<'_, '_>) {
    let target = patient.target;
    patient.each(|unit| {
        let (edited, gone) = match target {
            Target::Chat(dialect) => silent_message(unit, dialect.no_content),
            Target::Messages(_) => blank_block(unit),
            Target::Responses(_) => (false, false),
        };
        if gone {
            unit.remove();
        }
        let done = match (gone, edited) {
            (true, _) => "it says nothing; dropped it",
            (false, true) => "removed what says nothing from its content",
            (false, false) => return None,
        };
        Some(done.to_owned())
    });
    if patient.first_of_list() == patient.chat.units.len() {
        let protocol = patient.protocol();
        let turn = patient.chat.new_turn();
        let role = match protocol {
            Protocol::Messages => Role::User,
            Protocol::Chat | Protocol::Responses => Role::Own,
        };
        let value = piece::user(protocol, prompt_texts::OPENING);
        patient.chat.units.push(Unit::inserted(role, turn, value));
        let at = patient.chat.units.len() - 1;
        patient.note(at, "put in an opening message: nothing was left");
    }
}

/// Returns whether a message of Chat Completions was edited, and whether it says nothing.
fn silent_message(unit: &mut Unit<'_>, no_content: NoContent) -> (bool, bool) {
    let value = unit.value();
    if piece::role(unit) != "assistant" {
        return (false, false);
    }
    let has_calls = !list(value, "tool_calls").is_empty()
        || value.get("function_call").is_some_and(Value::is_object);
    let says_more = value.get("refusal").is_some_and(Value::is_string)
        || value.get("audio").is_some_and(Value::is_object);
    let content = value.get("content");
    let is_silent = match content {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(parts)) => parts.is_empty(),
        Some(_) => false,
    };
    if !is_silent {
        return (false, false);
    }
    if !(has_calls || says_more) {
        return (true, true);
    }
    let is_right = match (content, no_content) {
        (Some(Value::String(_)), NoContent::Omit) => false,
        (Some(Value::String(_)), _) => has_calls,
        (Some(Value::Array(_)), _) => has_calls,
        (Some(_), NoContent::Null) => true,
        (Some(_), _) => false,
        (None, NoContent::Empty) => false,
        (None, _) => true,
    };
    if !is_right {
        let value = unit.edit();
        match no_content {
            NoContent::Null => set(value, "content", Value::Null),
            NoContent::Empty if has_calls => set(value, "content", "".into()),
            NoContent::Empty => set(value, "content", " ".into()),
            NoContent::Omit => unset(value, "content"),
        }
    }
    (!is_right, false)
}

/// Returns whether a block of Messages was edited, and whether it says nothing.
fn blank_block(unit: &mut Unit<'_>) -> (bool, bool) {
    let is_blank = |block: &Value| kind(block) == "text" && text(block, "text").trim().is_empty();
    if unit.is_beside() {
        let is_blank_text = |value: &Value| value.as_str().is_some_and(|text| text.is_empty());
        if is_blank_text(unit.value()) {
            return (false, false);
        }
        let blocks = unit
            .value()
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if !blocks.iter().any(is_blank) {
            return (false, false);
        }
        if let Some(blocks) = unit.edit().as_array_mut() {
            blocks.retain(|block| !is_blank(block));
        }
        return (true, unit.value() == &json!([]));
    }
    if is_blank(unit.value()) {
        return (true, true);
    }
    if kind(unit.value()) != "tool_result" {
        return (false, false);
    }
    let is_text = |value: &Value| value.get("content").is_some_and(Value::is_string);
    if is_text(unit.value()) || !list(unit.value(), "content").iter().any(is_blank) {
        return (false, false);
    }
    if let Some(blocks) = piece::list_mut(unit.edit(), "content") {
        blocks.retain(|block| !is_blank(block));
    }
    (true, false)
}

/// Gives a unit its new value, or removes it if there is none. Returns the action.
pub(super) fn reshape(unit: &mut Unit<'_>, new: Option<Value>) -> Option<String> {
    let Some(new) = new else {
        unit.remove();
        return Some("left it out: this API has no such entry".to_owned());
    };
    if new == *unit.value() {
        return None;
    }
    let done = difference(unit.value(), &new);
    *unit.edit() = new;
    Some(done)
}

/// Names the keys of an entry that changed.
fn difference(old: &Value, new: &Value) -> String {
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
        return "wrote it in the form that it has to have".to_owned();
    };
    let changed = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(*value));
    let changed = changed.map(|(key, _)| key.as_str());
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let keys: Vec<&str> = changed.chain(gone.map(String::as_str)).collect();
    format!("changed {}", keys.join(", "))
}
