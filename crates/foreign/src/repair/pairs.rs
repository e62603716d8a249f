//! The fix-up `pairs`: every call has one result, directly behind it, and every result has a call.

use std::collections::{HashMap, HashSet};
use std::mem;

use super::Patient;
use super::ids::{Call, pairs};
use super::piece::{closing, is_models, kind, result, text};
use crate::protocol::Protocol;
use crate::unit::{Change, Role, Unit};
use plimsoll_wire::__internals::anthropic::{OpenCalls, calls_server, named_caller};

/// Removes results without a call, closes calls without a result, and moves results that do not stand
/// directly behind their call, if the protocol requires that.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    let protocol = patient.protocol();
    let found = pairs(patient.chat);
    patient.fix = "orphans";
    for at in found.orphans {
        let id = patient
            .chat
            .units
            .get(at)
            .and_then(|unit| result(protocol, unit));
        let id = id.flatten().unwrap_or_default();
        patient.note(
            at,
            format!("this result answers no open call `{id}`; dropped it"),
        );
        if let Some(unit) = patient.chat.units.get_mut(at) {
            unit.remove();
        }
    }
    patient.fix = "unanswered";
    close(patient, &found.calls);
    patient.fix = "order";
    if protocol != Protocol::Responses {
        order(patient, &found.calls);
    }
    if protocol == Protocol::Messages {
        patient.fix = "hosted";
        of_servers(patient);
    }
}

/// Adds a result to each call without one, behind the results of its turn.
fn close(patient: &mut Patient<'_, '_>, all: &[Call]) {
    let protocol = patient.protocol();
    let mut open: HashMap<usize, Vec<&Call>> = HashMap::new();
    for call in all.iter().filter(|call| call.result.is_none()) {
        open.entry(call.unit).or_default().push(call);
    }
    if open.is_empty() {
        return;
    }
    let turns = turns(patient);
    let mut behind: HashMap<usize, Vec<Unit<'_>>> = HashMap::new();
    let mut units: Vec<&usize> = open.keys().collect();
    units.sort_unstable();
    let units: Vec<usize> = units.into_iter().copied().collect();
    for at in units {
        let Some(value) = patient.chat.units.get(at).map(|unit| unit.value().clone()) else {
            continue;
        };
        let (after, turn) = turns.end(patient, at);
        for call in open.remove(&at).unwrap_or_default() {
            let id = call.id.clone().unwrap_or_default();
            let Some(result) = closing(protocol, &value, &id) else {
                patient.note(at, format!("call `{id}` has no result; dropped it"));
                if let Some(unit) = patient.chat.units.get_mut(at) {
                    unit.remove();
                }
                continue;
            };
            patient.note(
                at,
                format!("call `{id}` has no result; closed it as aborted"),
            );
            let role = match protocol {
                Protocol::Messages => Role::User,
                Protocol::Chat | Protocol::Responses => Role::Own,
            };
            // Results of one message are in one message.
            let added = behind.entry(after).or_default();
            let turn = turn.or_else(|| added.last().map(|unit| unit.turn));
            let turn = turn.unwrap_or_else(|| patient.chat.new_turn());
            added.push(Unit::inserted(role, turn, result));
        }
    }
    let old = mem::take(&mut patient.chat.units);
    for (at, unit) in old.into_iter().enumerate() {
        patient.chat.units.push(unit);
        patient
            .chat
            .units
            .extend(behind.remove(&at).unwrap_or_default());
    }
}

/// The number of the message of each unit. Items of the model that follow each other are one.
struct Turns(Vec<usize>);

fn turns(patient: &Patient<'_, '_>) -> Turns {
    let protocol = patient.protocol();
    let (mut number, mut last) = (0, None);
    let units = patient.chat.units.iter().enumerate();
    let numbers = units.map(|(at, unit)| {
        let key = match protocol {
            Protocol::Chat => (at, false),
            Protocol::Messages => (unit.turn, unit.role == Role::Own),
            Protocol::Responses if is_models(protocol, unit) => (usize::MAX, true),
            Protocol::Responses => (at, false),
        };
        if unit.is_left() && last.replace(key).is_some_and(|last| last != key) {
            number += 1;
        }
        number
    });
    Turns(numbers.collect())
}

impl Turns {
    /// Returns the last unit of the results that directly follow the turn of a unit, or of the turn itself;
    /// and the turn of these results in Messages.
    fn end(&self, patient: &Patient<'_, '_>, unit: usize) -> (usize, Option<usize>) {
        let protocol = patient.protocol();
        let number = self.0.get(unit).copied().unwrap_or_default();
        let next = self.0.partition_point(|turn| *turn <= number);
        let mut end = (next.max(1) - 1, None);
        let rest = patient.chat.units.get(next..).unwrap_or_default();
        let answer = rest
            .iter()
            .find(|unit| unit.is_left())
            .map(|unit| (unit.turn, unit.role));
        for (at, unit) in rest.iter().enumerate() {
            if !unit.is_left() {
                continue;
            }
            let is_answer = match protocol {
                Protocol::Messages => {
                    unit.role == Role::User && answer == Some((unit.turn, unit.role))
                }
                Protocol::Chat | Protocol::Responses => true,
            };
            if !is_answer {
                break;
            }
            if protocol == Protocol::Messages && end.1.is_none() {
                end.1 = Some(unit.turn);
            }
            if result(protocol, unit).is_none() {
                break;
            }
            end.0 = next + at;
        }
        end
    }
}

/// Moves results to the place directly behind the turn of their calls. In Messages they come first in the
/// next message of the user.
fn order(patient: &mut Patient<'_, '_>, before: &[Call]) {
    let protocol = patient.protocol();
    if protocol == Protocol::Chat && before.is_empty() {
        return;
    }
    let found = pairs(patient.chat);
    let turns = turns(patient);
    // The results that have to move, by the unit behind which they belong.
    let mut moved: HashMap<usize, Vec<(usize, Option<usize>)>> = HashMap::new();
    let mut taken = HashSet::new();
    let mut last_turn: Option<(usize, usize)> = None;
    for (nth, call) in found.calls.iter().enumerate() {
        let Some(at) = call.result else { continue };
        let number = turns.0.get(call.unit).copied().unwrap_or_default();
        let (end, turn) = turns.end(patient, call.unit);
        let next = turns.0.partition_point(|turn| *turn <= number);
        if (next..=end).contains(&at) {
            continue;
        }
        let turn = match (turn, last_turn) {
            (Some(turn), _) => Some(turn),
            (None, Some((of, turn))) if of == number => Some(turn),
            (None, _) => Some(patient.chat.new_turn()),
        };
        last_turn = turn.map(|turn| (number, turn));
        // A result that closes a later call stays behind it.
        let later = found.calls.iter().skip(nth + 1);
        let closed = later.filter_map(|call| call.result).filter(|at| {
            let unit = patient.chat.units.get(*at);
            (next..=end).contains(at) && unit.is_some_and(|unit| unit.change() == Change::Inserted)
        });
        let end = closed.min().map_or(end, |at| at - 1);
        moved.entry(end).or_default().push((at, turn));
        taken.insert(at);
        let id = call.id.as_deref().unwrap_or_default();
        let done = format!("moved this result to its call `{id}`");
        patient.note(at, done);
    }
    if moved.is_empty() {
        return;
    }
    let old = mem::take(&mut patient.chat.units);
    let mut old: Vec<Option<Unit<'_>>> = old.into_iter().map(Some).collect();
    for at in 0..old.len() {
        if !taken.contains(&at)
            && let Some(unit) = old.get_mut(at).and_then(Option::take)
        {
            patient.chat.units.push(unit);
        }
        for (from, turn) in moved.remove(&at).unwrap_or_default() {
            if let Some(mut unit) = old.get_mut(from).and_then(Option::take) {
                if protocol == Protocol::Messages {
                    unit.turn = turn.unwrap_or(unit.turn);
                }
                patient.chat.units.push(unit);
            }
        }
    }
}

/// Removes calls of the provider's own tools without a result, and results without such a call.
fn of_servers(patient: &mut Patient<'_, '_>) {
    let mut waiting: OpenCalls<usize> = OpenCalls::default();
    let mut gone: Vec<(usize, &str)> = Vec::new();
    let mut open: Option<usize> = None;
    for (at, unit) in patient
        .chat
        .units
        .iter()
        .enumerate()
        .filter(|(_, unit)| unit.is_left())
    {
        let value = unit.value();
        let begins = open.replace(unit.turn) != Some(unit.turn);
        if unit.role != Role::Assistant {
            if kind(value) == "tool_result" {
                if begins {
                    waiting.answered();
                }
            } else {
                waiting.other_message();
            }
            continue;
        }
        if begins {
            waiting.turn();
        }
        let kind = kind(value);
        if calls_server(kind) {
            waiting.call(text(value, "id"), at);
        } else if kind == "tool_use" {
            waiting.host_call(named_caller(value));
        } else if kind.ends_with("_tool_result") {
            if !waiting.result(text(value, "tool_use_id")) {
                gone.push((at, "nothing asked for it"));
            }
        } else {
            waiting.other();
        }
    }
    gone.extend(waiting.refused().map(|(_, at)| (*at, "it has no result")));
    gone.sort_unstable();
    for (at, why) in gone {
        let block = patient
            .chat
            .units
            .get(at)
            .map(|unit| kind(unit.value()).to_owned());
        let block = block.unwrap_or_default();
        patient.note(at, format!("left out its block `{block}`: {why}"));
        if let Some(unit) = patient.chat.units.get_mut(at) {
            unit.remove();
        }
    }
}
