//! The fix-ups `thinking` and `reasoning`: thinking that the provider would refuse leaves, in Messages for
//! whole tool loops, and reasoning that a server of Chat Completions requires is there.

use std::collections::BTreeSet;

use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::Target;
use plimsoll_wire::anthropic::MessagesProfile;
use plimsoll_wire::openai_chat::{EchoReasoning, EmptyReasoning};
use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::Value;

use super::piece::{self, is_models, kind, list, set, text, unset};
use super::shapes_responses::{is_forgotten, is_stored};
use super::{Patient, Reasoning};
use crate::protocol::Protocol;
use crate::unit::{Change, Role, Unit};

/// Removes thinking without a signature, after a change that it is bound to, or that the request did not ask
/// for.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    match patient.target.clone() {
        Target::Chat(_) => {
            if patient.reasoning == Reasoning::Drop {
                for at in 0..patient.chat.units.len() {
                    without_reasoning(patient, at);
                }
            }
        }
        Target::Responses(profile) => items_without(patient, &profile),
        Target::Messages(profile) => blocks_without(patient, &profile),
    }
}

fn without_reasoning(patient: &mut Patient<'_, '_>, at: usize) {
    let Some(unit) = patient.chat.units.get_mut(at) else {
        return;
    };
    let keys = ["reasoning_content", "reasoning"];
    if keys.iter().any(|key| unit.value().get(*key).is_some()) {
        let value = unit.edit();
        keys.iter().for_each(|key| unset(value, key));
        patient.note(at, "left out its thinking");
    }
}

/// Removes reasoning that no item follows, or that no server can read. Items behind it lose the id by which
/// the server would require the reasoning.
fn items_without(patient: &mut Patient<'_, '_>, profile: &ResponsesProfile) {
    let is_stored = is_stored(patient);
    let mut is_followed = false;
    for at in (0..patient.chat.units.len()).rev() {
        let Some(unit) = patient.chat.units.get_mut(at).filter(|unit| unit.is_left()) else {
            continue;
        };
        if kind(unit.value()) != "reasoning" {
            is_followed = !unit.is_beside() && is_models(Protocol::Responses, unit);
            continue;
        }
        let done = match patient.reasoning {
            Reasoning::Drop => "left out its thinking",
            Reasoning::Keep if !is_followed => "left out its thinking: no item follows it",
            Reasoning::Keep if is_forgotten(unit.value(), profile, is_stored) => {
                "left out its thinking: its content is missing"
            }
            Reasoning::Keep => continue,
        };
        unit.remove();
        patient.note(at, done);
    }
    let mut is_without = false;
    for at in 0..patient.chat.units.len() {
        let Some(unit) = patient.chat.units.get_mut(at) else {
            continue;
        };
        if kind(unit.value()) == "reasoning" {
            is_without = !unit.is_left();
        } else if unit.is_left() && !is_models(Protocol::Responses, unit) {
            is_without = false;
        } else if is_without
            && unit.is_left()
            && items::is_tied(items::kind(unit.value()))
            && unit.value().get("id").is_some()
        {
            unset(unit.edit(), "id");
            patient.note(at, "left out its id, which belongs to its thinking");
        }
    }
}

/// Removes the thinking of whole tool loops.
fn blocks_without(patient: &mut Patient<'_, '_>, profile: &MessagesProfile) {
    let loops = loops(&patient.chat.units);
    let thinking: Vec<usize> = (0..patient.chat.units.len())
        .filter(|at| patient.chat.units.get(*at).is_some_and(is_thinking))
        .collect();
    let loop_of = |at: usize| loops.get(at).copied().unwrap_or_default();
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    for at in &thinking {
        let Some(unit) = patient.chat.units.get(*at) else {
            continue;
        };
        let is_last = is_last_of_turn(&patient.chat.units, *at);
        if patient.reasoning == Reasoning::Drop || !is_signed(unit.value()) || is_last {
            gone.insert(loop_of(*at));
        }
    }
    if patient.is_request && !profile.unasked_thinking && !thinks(patient) {
        gone.extend(unasked(&patient.chat.units).into_iter().map(loop_of));
    }
    loop {
        for at in &thinking {
            if gone.contains(&loop_of(*at))
                && let Some(unit) = patient
                    .chat
                    .units
                    .get_mut(*at)
                    .filter(|unit| unit.is_left())
            {
                unit.remove();
                patient.note(*at, "left out its thinking");
            }
        }
        if !profile.binds_prefix {
            return;
        }
        let Some(change) = first_change(&patient.chat.units) else {
            return;
        };
        let behind = thinking.iter().filter(|at| **at > change);
        let behind: BTreeSet<usize> = behind.map(|at| loop_of(*at)).collect();
        if behind.is_subset(&gone) {
            return;
        }
        gone.extend(behind);
    }
}

fn is_thinking(unit: &Unit<'_>) -> bool {
    let kind = kind(unit.value());
    unit.is_left()
        && unit.role == Role::Assistant
        && matches!(kind, "thinking" | "redacted_thinking")
}

fn is_signed(block: &Value) -> bool {
    match kind(block) {
        "thinking" => {
            block.get("thinking").is_some_and(Value::is_string)
                && !text(block, "signature").is_empty()
        }
        _ => block.get("data").is_some_and(Value::is_string),
    }
}

/// Checks whether only thinking follows a block in its message.
fn is_last_of_turn(units: &[Unit<'_>], at: usize) -> bool {
    let turn = units.get(at).map(|unit| unit.turn);
    let rest = units.iter().skip(at + 1).filter(|unit| unit.is_left());
    let mut rest = rest.take_while(|unit| Some(unit.turn) == turn);
    rest.all(is_thinking)
}

/// Returns the number of the tool loop of each unit. A loop begins with a message that is no result.
fn loops(units: &[Unit<'_>]) -> Vec<usize> {
    let (mut number, mut is_after_question) = (0, true);
    let loops = units.iter().map(|unit| {
        if !unit.is_left() {
            return number;
        }
        let asks = unit.role != Role::Assistant && kind(unit.value()) != "tool_result";
        if asks && !is_after_question {
            number += 1;
        }
        is_after_question = asks;
        number
    });
    loops.collect()
}

/// Returns the first unit that is not as it was.
fn first_change(units: &[Unit<'_>]) -> Option<usize> {
    let changed = units
        .iter()
        .position(|unit| unit.change() != Change::Unchanged);
    let places = units.iter().zip(units.iter().skip(1));
    let mut places = places.map(|(one, next)| one.place.is_some() && one.place > next.place);
    let moved = places.position(|is_moved| is_moved);
    changed.into_iter().chain(moved).min()
}

/// Checks whether the request asks for thinking.
fn thinks(patient: &Patient<'_, '_>) -> bool {
    matches!(mode(patient).as_str(), "enabled" | "adaptive")
}

/// Returns the mode of a request's thinking.
pub(super) fn mode(patient: &Patient<'_, '_>) -> String {
    let thinking = patient
        .chat
        .key("thinking")
        .and_then(|raw| serde_json::from_str(raw).ok());
    let thinking: Value = thinking.unwrap_or_default();
    kind(&thinking).to_owned()
}

/// Returns the thinking in the last message that is not of results, if it is the model's.
fn unasked(units: &[Unit<'_>]) -> Vec<usize> {
    let left: Vec<(usize, &Unit<'_>)> = units
        .iter()
        .enumerate()
        .filter(|(_, unit)| unit.is_left() && !unit.is_beside())
        .collect();
    let same = |one: &(usize, &Unit<'_>), next: &(usize, &Unit<'_>)| {
        (one.1.turn, one.1.role) == (next.1.turn, next.1.role)
    };
    let turns: Vec<&[(usize, &Unit<'_>)]> = left.chunk_by(same).collect();
    let is_answer = |turn: &&&[(usize, &Unit<'_>)]| {
        let mut units = turn.iter();
        !units.any(|(_, unit)| unit.role == Role::User && kind(unit.value()) == "tool_result")
    };
    let last = turns
        .iter()
        .rev()
        .find(is_answer)
        .copied()
        .unwrap_or_default();
    let thinking = last.iter().filter(|(_, unit)| is_thinking(unit));
    thinking.map(|(at, _)| *at).collect()
}

/// Adds the reasoning that a server requires back with calls, empty if there is none.
pub(super) fn echo(patient: &mut Patient<'_, '_>) {
    let Target::Chat(dialect) = patient.target.clone() else {
        return;
    };
    if dialect.empty_reasoning == EmptyReasoning::Omit {
        return;
    }
    let has_calls = |unit: &Unit<'_>| !list(unit.value(), "tool_calls").is_empty();
    let mut exchange_calls = Vec::new();
    let mut number = 0;
    for unit in &patient.chat.units {
        number += usize::from(unit.is_left() && piece::role(unit) == "user");
        if unit.is_left() && has_calls(unit) {
            exchange_calls.push(number);
        }
    }
    let mut number = 0;
    for at in 0..patient.chat.units.len() {
        let Some(unit) = patient.chat.units.get_mut(at).filter(|unit| unit.is_left()) else {
            continue;
        };
        number += usize::from(piece::role(unit) == "user");
        let is_needed = match dialect.echo_reasoning {
            EchoReasoning::Never => false,
            EchoReasoning::ToolTurns => has_calls(unit),
            EchoReasoning::ToolExchanges => exchange_calls.binary_search(&number).is_ok(),
            EchoReasoning::Always => true,
        };
        if !is_needed || piece::role(unit) != "assistant" {
            continue;
        }
        let empty = match dialect.empty_reasoning {
            EmptyReasoning::Space => " ",
            EmptyReasoning::Empty | EmptyReasoning::Omit => "",
        };
        let is_there = match unit.value().get("reasoning_content") {
            Some(Value::String(text)) => !text.is_empty() || empty.is_empty(),
            _ => false,
        };
        if !is_there {
            set(unit.edit(), "reasoning_content", empty.into());
            patient.note(at, "put in an empty reasoning, which the server requires");
        }
    }
}
