//! The fix-ups `roles` and `last`: the order of roles that the server requires, and a last message that it
//! answers.

use std::mem;

use plimsoll_wire::__internals::anthropic::goes_on_from;
use plimsoll_wire::__internals::{list, set, text, unset};
use plimsoll_wire::openai_chat::{Dialect, ErrorStyle};
use plimsoll_wire::{Target, prompt_texts};
use serde_json::{Value, json};

use super::Patient;
use super::piece::{kind, role, user};
use super::shapes::silent_message;
use super::thinking::thinks;
use crate::unit::{Role, Unit};

/// Inserts or joins messages between which the server would refuse the order of roles.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    match patient.target {
        Target::Responses(_) => {}
        Target::Messages(_) => {
            let first = patient.first_of_list().unwrap_or_default();
            let is_answer = |unit: &Unit<'_>| unit.role == Role::Assistant;
            if patient.left(first).is_some_and(is_answer) {
                open(patient, first);
            }
        }
        Target::Chat(dialect) => {
            if !dialect.parallel_calls {
                one_call_each(patient, dialect);
            }
            neighbors(patient, dialect);
            let units = &patient.chat.units;
            let is_user = |unit: &Unit<'_>| unit.is_left() && role(unit) == "user";
            if dialect.needs_user && !units.iter().any(is_user) {
                let is_before = |unit: &&Unit<'_>| !unit.is_left() || is_system(unit);
                let systems = units.iter().take_while(is_before).count();
                open(patient, systems);
            }
        }
    }
}

fn is_system(unit: &Unit<'_>) -> bool {
    matches!(role(unit), "system" | "developer")
}

/// Inserts the first message of the user.
fn open(patient: &mut Patient<'_, '_>, at: usize) {
    let message = user(patient.protocol(), prompt_texts::OPENING);
    let done = "put a short message of the user's before it";
    patient.insert(at, Role::User, message, done);
}

/// Moves a system message that is not at the beginning into the user's role.
fn move_system(patient: &mut Patient<'_, '_>, at: usize) {
    let Some(unit) = patient.left(at).filter(|unit| is_system(unit)) else {
        return;
    };
    let frame = Value::from(prompt_texts::LATER_SYSTEM);
    let content = joined(&frame, unit.value().get("content").unwrap_or(&Value::Null));
    let done = "moved it into the user's role: the server accepts one system message";
    patient.edit(at, done, |value| {
        set(value, "role", "user");
        set(value, "content", content);
    });
}

/// Joins the content and the calls of a message to an earlier one, and removes it.
fn join(patient: &mut Patient<'_, '_>, to: usize, from: usize) {
    let second = patient.left(from).map(|unit| unit.value().clone());
    let second = second.unwrap_or_default();
    patient.remove(from, "joined it with the message before it");
    let Some(first) = patient.chat.units.get_mut(to) else {
        return;
    };
    let content = joined(&said(first.value()), &said(&second));
    let calls = [first.value(), &second].map(|message| list(message, "tool_calls"));
    let calls = calls.concat();
    let first = first.edit();
    set(first, "content", content);
    unset(first, &["refusal"]);
    if !calls.is_empty() {
        set(first, "tool_calls", calls);
    }
}

/// Returns the content of a message, with its refusal as a part.
fn said(message: &Value) -> Value {
    let content = message.get("content").cloned().unwrap_or_default();
    match message.get("refusal").filter(|refusal| refusal.is_string()) {
        Some(refusal) => joined(&content, &json!([{"type": "refusal", "refusal": refusal}])),
        None => content,
    }
}

/// Returns two contents as one.
fn joined(one: &Value, other: &Value) -> Value {
    let parts = |content: &Value| match content {
        Value::Array(parts) => parts.clone(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    match (one, other) {
        (Value::Null, content) | (content, Value::Null) => content.clone(),
        (Value::String(one), Value::String(other)) => format!("{one}\n\n{other}").into(),
        (one, other) => [parts(one), parts(other)].concat().into(),
    }
}

/// Gives each call a message of its own, directly before its result.
fn one_call_each(patient: &mut Patient<'_, '_>, dialect: &Dialect) {
    let mut waiting: Vec<Value> = Vec::new();
    // The message that has all of them. It keeps the call that is answered first.
    let mut whole = None;
    for unit in mem::take(&mut patient.chat.units) {
        let calls = list(unit.value(), "tool_calls");
        if unit.is_left() && calls.len() > 1 {
            (waiting, whole) = (calls.to_vec(), Some(patient.chat.units.len()));
        }
        let id = text(unit.value(), "tool_call_id");
        let is_result = unit.is_left() && role(&unit) == "tool";
        let mut calls = waiting.iter();
        let call = calls.position(|call| is_result && text(call, "id") == id);
        if let Some(call) = call.map(|call| vec![waiting.remove(call)]) {
            let done = "gave each of its calls a message of its own";
            if let Some(whole) = whole.take() {
                patient.edit(whole, done, |value| set(value, "tool_calls", call));
            } else {
                let value = json!({"role": "assistant", "content": null, "tool_calls": call});
                let mut unit = Unit::inserted(Role::Own, unit.turn, value);
                silent_message(&mut unit, dialect.no_content);
                patient.chat.units.push(unit);
            }
        }
        patient.chat.units.push(unit);
    }
}

/// Joins neighbors of one role, separates those that must not follow each other, and leaves one system message if the
/// server accepts no more.
fn neighbors(patient: &mut Patient<'_, '_>, dialect: &Dialect) {
    let is_mistral = dialect.voice == ErrorStyle::Mistral;
    let mut last: Option<usize> = None;
    let mut only_systems = true;
    let mut at = 0;
    while at < patient.chat.units.len() {
        if dialect.system_first && !only_systems {
            move_system(patient, at);
        }
        let Some(unit) = patient.left(at) else {
            at += 1;
            continue;
        };
        let before = last.and_then(|last| patient.left(last));
        let (own, previous) = (role(unit), before.map_or("", role));
        let has_calls = before.is_some_and(|unit| !list(unit.value(), "tool_calls").is_empty());
        let is_twice =
            own == previous && (own == "assistant" && !has_calls || own == "user" && !is_mistral);
        let are_systems = dialect.system_first && is_system(unit) && before.is_some_and(is_system);
        let joins = is_twice && dialect.merges_roles || are_systems;
        let is_first_answer = own == "assistant" && only_systems;
        let needs_bridge = own == "user" && previous == "tool" && !dialect.user_after_tool;
        only_systems &= is_system(unit);
        if needs_bridge {
            let bridge = json!({"role": "assistant", "content": prompt_texts::BRIDGE});
            let done = "put a short message of the model's before it";
            patient.insert(at, Role::Assistant, bridge, done);
            at += 1;
        } else if let (true, Some(last)) = (joins, last) {
            join(patient, last, at);
            at += 1;
            continue;
        } else if is_first_answer && dialect.merges_roles && !is_mistral {
            open(patient, at);
            at += 1;
        }
        last = Some(at);
        at += 1;
    }
}

/// Adds a short message of the user's behind an answer that the server would not continue, and removes the
/// white space at the end of one that it does. A log is continued with a message of the user.
pub(super) fn last(patient: &mut Patient<'_, '_>) {
    let mut units = patient.chat.units.iter();
    let at = units.rposition(|unit| unit.is_left() && !unit.is_beside());
    let Some((at, unit)) = at.and_then(|at| Some((at, patient.left(at)?))) else {
        return;
    };
    if patient.chat.is_log() || role(unit) != "assistant" {
        return;
    }
    let is_refused = match patient.target {
        Target::Responses(_) => return,
        Target::Chat(dialect) => {
            let is_prefix = unit.value().get("prefix") == Some(&Value::Bool(true));
            !(dialect.prefill || dialect.voice == ErrorStyle::Mistral && is_prefix)
        }
        Target::Messages(_) if goes_on_from(kind(unit.value())) => return,
        Target::Messages(profile) => !profile.prefill || thinks(patient.chat),
    };
    let words = text(unit.value(), "text");
    let trimmed = words.trim_end().to_owned();
    let is_trimmed = trimmed.len() < words.len() && matches!(patient.target, Target::Messages(_));
    if is_refused && patient.is_request {
        let end = patient.chat.units.len();
        let message = user(patient.protocol(), prompt_texts::GO_ON);
        let done = "put a short message of the user's at the end";
        patient.insert(end, Role::User, message, done);
    } else if is_trimmed {
        let done = "removed the white space at its end";
        patient.edit(at, done, |value| set(value, "text", trimmed));
    }
}
