//! The fix-ups `shapes` and `empty`: values have the JSON type and the keys that the protocol requires, and
//! no text or message is empty where the provider refuses that.

use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::openai_chat::NoContent;
use plimsoll_wire::{Target, prompt_texts};
use serde_json::{Value, json};

use super::piece::{self, kind, list, list_mut, set, text, unset};
use super::{Patient, shapes_chat, shapes_messages, shapes_responses};
use crate::unit::{Role, Unit};

/// Converts values of the wrong JSON type, adds missing keys, and removes entries and parts that the protocol
/// does not have.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    match patient.target {
        Target::Chat(dialect) => patient.each(|unit| {
            let new = shapes_chat::message(unit.value().clone(), dialect);
            reshape(unit, new)
        }),
        Target::Responses(profile) => shapes_responses::fix(patient, profile),
        Target::Messages(profile) => shapes_messages::fix(patient, profile),
    }
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
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let keys = changed.map(|(key, _)| key).chain(gone);
    let keys: Vec<&str> = keys.map(String::as_str).collect();
    format!("changed {}", keys.join(", "))
}

/// The treatment of a unit without content, or with an empty part.
enum Silence {
    Removed,
    Edited,
}

/// Removes texts, lists and messages without content. A chat that is empty then gets an opening message.
pub(super) fn empty(patient: &mut Patient<'_, '_>) {
    let target = patient.target;
    patient.each(|unit| {
        let silence = match target {
            Target::Chat(dialect) => silent_message(unit, dialect.no_content),
            Target::Responses(_) => silent_item(unit),
            Target::Messages(_) if unit.is_beside() => blank_system(unit),
            Target::Messages(_) => blank_block(unit),
        };
        match silence? {
            Silence::Removed => {
                unit.remove();
                Some("it says nothing; dropped it")
            }
            Silence::Edited => Some("removed what says nothing from its content"),
        }
    });
    if patient.first_of_list().is_none() {
        let end = patient.chat.units.len();
        let message = piece::user(patient.protocol(), prompt_texts::OPENING);
        patient.insert(
            end,
            Role::User,
            message,
            "put in an opening message: nothing was left",
        );
    }
}

fn silent_message(unit: &mut Unit<'_>, no_content: NoContent) -> Option<Silence> {
    let value = unit.value();
    let content = value.get("content");
    let is_list = content.is_some_and(|content| *content == json!([]));
    match piece::role(unit) {
        "assistant" => {}
        "tool" if is_list => {
            set(unit.edit(), "content", "");
            return Some(Silence::Edited);
        }
        _ => return is_list.then_some(Silence::Removed),
    }
    let is_silent = match content {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => is_list,
    };
    if !is_silent {
        return None;
    }
    let has_calls = !list(value, "tool_calls").is_empty()
        || value.get("function_call").is_some_and(Value::is_object);
    let says_more = value.get("refusal").is_some_and(Value::is_string)
        || value.get("audio").is_some_and(Value::is_object);
    if !has_calls && !says_more {
        return Some(Silence::Removed);
    }
    let is_right = match content {
        None => no_content != NoContent::Empty,
        Some(Value::Null) => no_content == NoContent::Null,
        Some(Value::String(_)) => has_calls && no_content != NoContent::Omit,
        Some(_) => false,
    };
    if is_right {
        return None;
    }
    let value = unit.edit();
    match no_content {
        NoContent::Null => set(value, "content", Value::Null),
        NoContent::Empty => set(value, "content", if has_calls { "" } else { " " }),
        NoContent::Omit => unset(value, "content"),
    }
    Some(Silence::Edited)
}

fn silent_item(unit: &mut Unit<'_>) -> Option<Silence> {
    let is_empty = |key: &str| unit.value().get(key).is_some_and(|list| *list == json!([]));
    match items::kind(unit.value()) {
        "message" => is_empty("content").then_some(Silence::Removed),
        "function_call_output" | "custom_tool_call_output" if is_empty("output") => {
            set(unit.edit(), "output", "");
            Some(Silence::Edited)
        }
        _ => None,
    }
}

fn is_blank(block: &Value) -> bool {
    kind(block) == "text" && text(block, "text").trim().is_empty()
}

fn blank_system(unit: &mut Unit<'_>) -> Option<Silence> {
    if !unit.value().as_array()?.iter().any(is_blank) {
        return None;
    }
    let blocks = unit.edit().as_array_mut()?;
    blocks.retain(|block| !is_blank(block));
    Some(match blocks.is_empty() {
        true => Silence::Removed,
        false => Silence::Edited,
    })
}

fn blank_block(unit: &mut Unit<'_>) -> Option<Silence> {
    if is_blank(unit.value()) {
        return Some(Silence::Removed);
    }
    let is_result = kind(unit.value()) == "tool_result";
    if !is_result || !list(unit.value(), "content").iter().any(is_blank) {
        return None;
    }
    let value = unit.edit();
    let blocks = list_mut(value, "content")?;
    blocks.retain(|block| !is_blank(block));
    if blocks.is_empty() {
        unset(value, "content");
    }
    Some(Silence::Edited)
}
