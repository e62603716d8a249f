//! The fix-ups `roles` and `last`: the order of roles that the server requires, and a last message that it
//! answers.

use std::mem;

use plimsoll_wire::__internals::anthropic::goes_on_from;
use plimsoll_wire::openai_chat::{Dialect, ErrorStyle};
use plimsoll_wire::{Target, prompt_texts};
use serde_json::{Value, json};

use super::Patient;
use super::piece::{kind, list, role, set, text, unset, user};
use super::thinking::mode;
use crate::protocol::Protocol;
use crate::unit::{Role, Unit};

/// Inserts or joins messages between which the server would refuse the order of roles.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    match patient.target {
        Target::Responses(_) => {}
        Target::Messages(_) => {
            let first = patient.first_of_list();
            let is_answer = |unit: &Unit<'_>| unit.role == Role::Assistant;
            if patient.chat.units.get(first).is_some_and(is_answer) {
                open(patient, first);
            }
        }
        Target::Chat(dialect) => {
            if dialect.system_first {
                systems_first(patient);
            }
            if !dialect.parallel_calls {
                one_call_each(patient);
            }
            neighbors(patient, dialect);
            let is_user = |unit: &Unit<'_>| unit.is_left() && role(unit) == "user";
            if dialect.needs_user && !patient.chat.units.iter().any(is_user) {
                let is_system = |unit: &Unit<'_>| is_system(role(unit));
                let systems = patient
                    .chat
                    .units
                    .iter()
                    .take_while(|unit| is_system(unit) || !unit.is_left());
                let first = systems.count();
                open(patient, first);
            }
        }
    }
}

fn is_system(role: &str) -> bool {
    matches!(role, "system" | "developer")
}

/// Inserts the first message of the user.
fn open(patient: &mut Patient<'_, '_>, at: usize) {
    patient.note(at, "put a short message of the user's before it");
    insert_user(patient, at, prompt_texts::OPENING);
}

fn insert_user(patient: &mut Patient<'_, '_>, at: usize, text: &str) {
    let protocol = patient.protocol();
    let role = match protocol {
        Protocol::Messages => Role::User,
        Protocol::Chat | Protocol::Responses => Role::Own,
    };
    let turn = patient.chat.new_turn();
    let at = at.min(patient.chat.units.len());
    let unit = Unit::inserted(role, turn, user(protocol, text));
    patient.chat.units.insert(at, unit);
}

/// Joins the system messages at the beginning, and moves later ones into the user's role.
fn systems_first(patient: &mut Patient<'_, '_>) {
    let mut first = None;
    let mut is_beginning = true;
    for at in 0..patient.chat.units.len() {
        let Some(unit) = patient.chat.units.get(at).filter(|unit| unit.is_left()) else {
            continue;
        };
        if !is_system(role(unit)) {
            is_beginning = false;
            continue;
        }
        let content = unit.value().get("content").cloned().unwrap_or_default();
        match (is_beginning, first) {
            (true, None) => first = Some(at),
            (true, Some(first)) => {
                join(&mut patient.chat.units, first, at);
                patient.note(at, "joined it with the system message before it");
            }
            (false, _) => {
                let frame = Value::from(prompt_texts::LATER_SYSTEM);
                if let Some(unit) = patient.chat.units.get_mut(at) {
                    let value = unit.edit();
                    set(value, "role", "user".into());
                    set(value, "content", joined(&frame, &content));
                }
                patient.note(
                    at,
                    "moved it into the user's role: the server accepts one system message",
                );
            }
        }
    }
}

/// Joins the content, the calls and the reasoning of a message to an earlier one, and removes it.
fn join(units: &mut [Unit<'_>], to: usize, from: usize) {
    let Some(second) = units.get_mut(from) else {
        return;
    };
    let value = second.value().clone();
    second.remove();
    let Some(first) = units.get_mut(to) else {
        return;
    };
    let content = joined(&said(first.value()), &said(&value));
    let calls: Vec<Value> = list(first.value(), "tool_calls")
        .iter()
        .chain(list(&value, "tool_calls"))
        .cloned()
        .collect();
    let first = first.edit();
    set(first, "content", content);
    unset(first, "refusal");
    if !calls.is_empty() {
        set(first, "tool_calls", calls.into());
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
    match (one, other) {
        (Value::Null, content) | (content, Value::Null) => content.clone(),
        (Value::String(one), Value::String(other)) => format!("{one}\n\n{other}").into(),
        (one, other) => {
            let parts = |content: &Value| match content {
                Value::Array(parts) => parts.clone(),
                Value::String(text) => vec![json!({"type": "text", "text": text})],
                _ => Vec::new(),
            };
            [parts(one), parts(other)].concat().into()
        }
    }
}

/// Gives each call a message of its own, directly before its result.
fn one_call_each(patient: &mut Patient<'_, '_>) {
    let is_batch = |unit: &Unit<'_>| unit.is_left() && list(unit.value(), "tool_calls").len() > 1;
    if !patient.chat.units.iter().any(is_batch) {
        return;
    }
    let old = mem::take(&mut patient.chat.units);
    let mut waiting: Vec<Value> = Vec::new();
    let mut split = Vec::new();
    for mut unit in old {
        if is_batch(&unit) {
            split.push(patient.chat.units.len());
            waiting = list(unit.value(), "tool_calls").to_vec();
            let first = waiting.remove(0);
            set(unit.edit(), "tool_calls", vec![first].into());
            patient.chat.units.push(unit);
            continue;
        }
        if unit.is_left() && role(&unit) == "tool" {
            let id = text(unit.value(), "tool_call_id");
            if let Some(at) = waiting.iter().position(|call| text(call, "id") == id) {
                let call = waiting.remove(at);
                let value = json!({"role": "assistant", "content": null, "tool_calls": [call]});
                let turn = unit.turn;
                patient
                    .chat
                    .units
                    .push(Unit::inserted(Role::Own, turn, value));
            }
        }
        patient.chat.units.push(unit);
    }
    for at in split {
        patient.note(at, "gave each of its calls a message of its own");
    }
}

/// Joins neighbors of one role, and separates those that must not follow each other.
fn neighbors(patient: &mut Patient<'_, '_>, dialect: &Dialect) {
    let is_mistral = dialect.voice == ErrorStyle::Mistral;
    let mut last: Option<usize> = None;
    let mut only_systems = true;
    let mut at = 0;
    while at < patient.chat.units.len() {
        let Some(unit) = patient.chat.units.get(at).filter(|unit| unit.is_left()) else {
            at += 1;
            continue;
        };
        let own = role(unit).to_owned();
        let previous = last.and_then(|last| patient.chat.units.get(last));
        let previous_role = previous
            .map(|unit| role(unit).to_owned())
            .unwrap_or_default();
        let has_calls = previous.is_some_and(|unit| !list(unit.value(), "tool_calls").is_empty());
        let is_twice = own == previous_role
            && (own == "assistant" && !has_calls || own == "user" && !is_mistral);
        if own == "user" && previous_role == "tool" && !dialect.user_after_tool {
            patient.note(at, "put a short message of the model's before it");
            let turn = patient.chat.new_turn();
            let bridge = json!({"role": "assistant", "content": prompt_texts::BRIDGE});
            patient
                .chat
                .units
                .insert(at, Unit::inserted(Role::Own, turn, bridge));
            at += 1;
        } else if let (true, true, Some(last)) = (is_twice, dialect.merges_roles, last) {
            join(&mut patient.chat.units, last, at);
            patient.note(at, "joined it with the message before it");
            at += 1;
            continue;
        } else if own == "assistant" && only_systems && dialect.merges_roles && !is_mistral {
            open(patient, at);
            at += 1;
        }
        only_systems &= is_system(&own);
        last = Some(at);
        at += 1;
    }
}

/// Adds a short message of the user's behind an answer that the server would not continue, and removes the
/// white space at the end of one that it does. A log is continued with a message of the user.
pub(super) fn last(patient: &mut Patient<'_, '_>) {
    if patient.chat.is_log() {
        return;
    }
    let Some(at) = patient
        .chat
        .units
        .iter()
        .rposition(|unit| unit.is_left() && !unit.is_beside())
    else {
        return;
    };
    let Some(unit) = patient.chat.units.get(at) else {
        return;
    };
    let is_refused = match patient.target {
        Target::Responses(_) => return,
        _ if role(unit) != "assistant" => return,
        Target::Chat(dialect) => {
            let is_prefix = unit.value().get("prefix") == Some(&Value::Bool(true));
            !(dialect.prefill || dialect.voice == ErrorStyle::Mistral && is_prefix)
        }
        Target::Messages(_) if goes_on_from(kind(unit.value())) => return,
        Target::Messages(profile) => {
            !profile.prefill || matches!(mode(patient.chat).as_str(), "enabled" | "adaptive")
        }
    };
    if is_refused && patient.is_request {
        let end = patient.chat.units.len();
        insert_user(patient, end, prompt_texts::GO_ON);
        patient.note(end, "put a short message of the user's at the end");
        return;
    }
    if !matches!(patient.target, Target::Messages(_)) {
        return;
    }
    let text = text(unit.value(), "text");
    let trimmed = text.trim_end().to_owned();
    if trimmed.len() < text.len()
        && let Some(unit) = patient.chat.units.get_mut(at)
    {
        set(unit.edit(), "text", trimmed.into());
        patient.note(at, "removed the white space at its end");
    }
}
