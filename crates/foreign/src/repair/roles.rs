//! The fix-ups `roles` and `last`: the order of roles that the API requires, and a last message that it answers.

use plimsoll_wire::__internals::anthropic::goes_on_from;
use plimsoll_wire::openai_chat::ErrorStyle;
use plimsoll_wire::{Target, prompt_texts};
use serde_json::{Value, json};

use super::Patient;
use super::piece::{kind, role, set, text, user};
use super::thinking::thinks;
use crate::unit::{Role, Unit};

/// Inserts messages between which the API would refuse the order of roles.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    match patient.target {
        Target::Messages(_) => {
            let first = patient.first_of_list().unwrap_or_default();
            let is_answer = |unit: &Unit<'_>| unit.role == Role::Assistant;
            if patient.left(first).is_some_and(is_answer) {
                let message = user(patient.protocol(), prompt_texts::OPENING);
                let done = "put a short message of the user's before it";
                patient.insert(first, Role::User, message, done);
            }
        }
        Target::Chat(dialect) if !dialect.user_after_tool => bridges(patient),
        Target::Chat(_) | Target::Responses(_) => {}
    }
}

/// Inserts a short answer between the result of a tool and a message of the user.
fn bridges(patient: &mut Patient<'_, '_>) {
    let units = patient.chat.units.iter().enumerate();
    let left = units.filter(|(_, unit)| unit.is_left());
    let roles: Vec<(usize, bool, bool)> = left
        .map(|(at, unit)| (at, role(unit) == "tool", role(unit) == "user"))
        .collect();
    for pair in roles.windows(2).rev() {
        if let [(_, true, _), (at, _, true)] = *pair {
            let bridge = json!({"role": "assistant", "content": prompt_texts::BRIDGE});
            let done = "put a short message of the model's before it";
            patient.insert(at, Role::Assistant, bridge, done);
        }
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
