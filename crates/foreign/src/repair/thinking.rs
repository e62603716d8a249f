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
use crate::chat::Chat;
use crate::protocol::Protocol;
use crate::unit::{Change, Role, Unit};

/// Removes thinking without a signature, after a change that it is bound to, or that the request did not ask
/// for.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    match patient.target {
        Target::Chat(_) if patient.reasoning == Reasoning::Drop => patient.each(without_reasoning),
        Target::Chat(_) => {}
        Target::Responses(profile) => items_without(patient, profile),
        Target::Messages(profile) => blocks_without(patient, profile),
    }
}

fn without_reasoning(unit: &mut Unit<'_>) -> Option<String> {
    let keys = ["reasoning_content", "reasoning"];
    if keys.iter().all(|key| unit.value().get(*key).is_none()) {
        return None;
    }
    let value = unit.edit();
    keys.iter().for_each(|key| unset(value, key));
    Some("left out its thinking".to_owned())
}

/// Removes reasoning that no item follows, or that no server can read. Items behind it lose the id by which
/// the server would require the reasoning.
fn items_without(patient: &mut Patient<'_, '_>, profile: &ResponsesProfile) {
    let is_stored = is_stored(patient);
    let before = patient.repairs.len();
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
    // Reported in the order of the chat.
    if let Some(removed) = patient.repairs.get_mut(before..) {
        removed.reverse();
    }
    let mut is_without = false;
    for at in 0..patient.chat.units.len() {
        let Some(unit) = patient.chat.units.get_mut(at) else {
            continue;
        };
        let item = unit.value();
        if kind(item) == "reasoning" {
            is_without = !unit.is_left();
        } else if unit.is_left() && !is_models(Protocol::Responses, unit) {
            is_without = false;
        } else if is_without
            && unit.is_left()
            && items::is_tied(items::kind(item))
            && item.get("id").is_some()
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

/// Checks whether a unit is thinking of Messages.
pub(crate) fn is_thinking(unit: &Unit<'_>) -> bool {
    let kind = kind(unit.value());
    unit.is_left()
        && unit.role == Role::Assistant
        && matches!(kind, "thinking" | "redacted_thinking")
}

/// Checks whether a unit is thinking of Messages or a reasoning item of Responses.
pub(crate) fn is_reasoning(unit: &Unit<'_>) -> bool {
    matches!(
        kind(unit.value()),
        "thinking" | "redacted_thinking" | "reasoning"
    )
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
pub(crate) fn loops(units: &[Unit<'_>]) -> Vec<usize> {
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
    matches!(mode(patient.chat).as_str(), "enabled" | "adaptive")
}

/// Returns the mode of a request's thinking.
pub(crate) fn mode(chat: &Chat<'_>) -> String {
    let thinking = chat.key("thinking");
    let thinking = thinking.and_then(|raw| serde_json::from_str(raw).ok());
    let thinking: Value = thinking.unwrap_or_default();
    kind(&thinking).to_owned()
}

/// A unit with its index.
type Placed<'u> = (usize, &'u Unit<'u>);

/// Returns the units of the messages that are written.
fn messages<'u>(units: &'u [Unit<'u>]) -> Vec<Placed<'u>> {
    let units = units.iter().enumerate();
    let units = units.filter(|(_, unit)| unit.is_left() && !unit.is_beside());
    units.collect()
}

fn is_same_message((_, one): &Placed<'_>, (_, next): &Placed<'_>) -> bool {
    (one.turn, one.role) == (next.turn, next.role)
}

fn is_result((_, unit): &Placed<'_>) -> bool {
    unit.role == Role::User && kind(unit.value()) == "tool_result"
}

/// Returns the first unit of the model's first message in the current tool loop.
pub(crate) fn start_of_loop(units: &[Unit<'_>]) -> Option<usize> {
    let units = messages(units);
    let turns = units.chunk_by(is_same_message);
    let role = |turn: &&[Placed<'_>]| turn.first().map(|(_, unit)| unit.role);
    let mut rest = turns.rev().peekable();
    let mut start = rest.next_if(|turn| role(turn) == Some(Role::Assistant));
    while let Some(turn) = rest.next() {
        let has_results = turn.iter().any(is_result);
        if role(&turn) != Some(Role::User) || !has_results {
            break;
        }
        match rest.next() {
            Some(turn) if role(&turn) == Some(Role::Assistant) => start = Some(turn),
            _ => break,
        }
    }
    Some(start?.first()?.0)
}

/// Returns the thinking in the last message that is not of results, if it is the model's.
fn unasked(units: &[Unit<'_>]) -> Vec<usize> {
    let units = messages(units);
    let mut turns = units.chunk_by(is_same_message).rev();
    let last = turns.find(|turn| !turn.iter().any(is_result));
    let thinking = last.unwrap_or_default().iter();
    let thinking = thinking.filter(|(_, unit)| is_thinking(unit));
    thinking.map(|(at, _)| *at).collect()
}

/// Adds the reasoning that a server requires back with calls, empty if there is none.
pub(super) fn echo(patient: &mut Patient<'_, '_>) {
    let Target::Chat(dialect) = patient.target else {
        return;
    };
    let empty = match dialect.empty_reasoning {
        EmptyReasoning::Omit => return,
        EmptyReasoning::Space => " ",
        EmptyReasoning::Empty => "",
    };
    let has_calls = |unit: &Unit<'_>| !list(unit.value(), "tool_calls").is_empty();
    let mut exchange_calls = Vec::new();
    let mut number = 0;
    for unit in patient.chat.units.iter().filter(|unit| unit.is_left()) {
        number += usize::from(piece::role(unit) == "user");
        if has_calls(unit) {
            exchange_calls.push(number);
        }
    }
    let mut number = 0;
    patient.each(|unit| {
        number += usize::from(piece::role(unit) == "user");
        let is_needed = match dialect.echo_reasoning {
            EchoReasoning::Never => false,
            EchoReasoning::ToolTurns => has_calls(unit),
            EchoReasoning::ToolExchanges => exchange_calls.binary_search(&number).is_ok(),
            EchoReasoning::Always => true,
        };
        let is_there = match unit.value().get("reasoning_content") {
            Some(Value::String(text)) => !text.is_empty() || empty.is_empty(),
            _ => false,
        };
        if !is_needed || is_there || piece::role(unit) != "assistant" {
            return None;
        }
        set(unit.edit(), "reasoning_content", empty.into());
        Some("put in an empty reasoning, which the server requires".to_owned())
    });
}
