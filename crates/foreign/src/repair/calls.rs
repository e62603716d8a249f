//! The fix-ups `ids`, `orphans`, `unanswered`, `order` and `hosted`: every call has an id of its own and one
//! result, directly behind its turn, and every result has a call.

use std::collections::HashSet;
use std::mem;
use std::ops::Range;

use plimsoll_wire::__internals::anthropic::{OpenCalls, calls_server, named_caller};
use plimsoll_wire::__internals::{is_word, text};
use plimsoll_wire::{CallIdForm, CallIdMap, Protocol, Target};

use super::Patient;
use super::pairs::{Call, pair};
use super::piece::{closing, is_models, kind, result, set_call_id, set_result_id};
use crate::chat::Chat;
use crate::unit::{Role, Unit};

/// Gives every call an id, drops results without a call, closes calls without a result, and moves results
/// that do not stand directly behind the turn of their call. Responses does not require the latter, but a plan would
/// separate the two.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    let protocol = patient.protocol();
    let (mut calls, orphans) = pair(patient.chat);
    patient.fix = "ids";
    rename(patient, &mut calls);
    patient.fix = "orphans";
    let has_stored = has_stored_calls(patient.chat);
    for at in orphans {
        let id = patient.left(at).and_then(|unit| result(protocol, unit));
        let id = id.flatten().unwrap_or_default();
        let is_known = || calls.iter().any(|call| call.id.as_ref() == Some(&id));
        if has_stored && accepts(patient.target, &id) && !is_known() {
            continue;
        }
        let named = match id.as_str() {
            "" => String::new(),
            id => format!(" `{id}`"),
        };
        let why = format!("this result answers no open call{named}; dropped it");
        patient.remove(at, why);
    }
    arrange(patient, &calls);
    if protocol == Protocol::Messages {
        patient.fix = "hosted";
        hosted(patient);
    }
}

/// Checks whether a request of Responses continues items that the server has stored, which may be calls.
fn has_stored_calls(chat: &Chat<'_>) -> bool {
    let mut continued = ["previous_response_id", "conversation"].iter();
    let mut units = chat.units.iter().filter(|unit| unit.is_left());
    chat.protocol == Protocol::Responses
        && (continued.any(|key| !chat.key_value(key).is_null())
            || units.any(|unit| kind(unit.value()) == "item_reference"))
}

/// Gives ids to calls without one, to the second of two calls with one id, and to calls whose id has a form
/// that the server refuses, together with their results.
fn rename(patient: &mut Patient<'_, '_>, calls: &mut [Call]) {
    let (protocol, target) = (patient.protocol(), patient.target);
    let is_log = patient.chat.is_log();
    let mut ids = CallIdMap::new(match target {
        Target::Chat(dialect) => dialect.call_ids,
        Target::Responses(_) => CallIdForm::Visible,
        Target::Messages(_) => CallIdForm::Word,
    });
    let mut taken: HashSet<String> = HashSet::new();
    let mut message = None;
    for call in calls {
        if protocol == Protocol::Chat && message.replace(call.unit) != Some(call.unit) {
            // There, an id may be used again in another message.
            taken.clear();
        }
        let own = call.id.take();
        let number = || format!("call_{}_{}", call.unit, call.nth);
        let new = ids.call(&own.clone().unwrap_or_else(number)).into_owned();
        // An agent whose log it is writes the ids in the provider's form.
        let kept = own.filter(|id| !taken.contains(id) && (is_log || accepts(target, id)));
        let id = kept.unwrap_or_else(|| {
            patient.edit(call.unit, format!("gave a call the id `{new}`"), |value| {
                set_call_id(protocol, value, call.nth, &new);
            });
            new
        });
        if let Some(at) = call.result
            && let Some(unit) = patient.left(at)
            && result(protocol, unit) != Some(Some(id.clone()))
        {
            let done = format!("gave the result of a call the id `{id}`");
            patient.edit(at, done, |value| set_result_id(protocol, value, &id));
        }
        taken.insert(id.clone());
        call.id = Some(id);
    }
}

/// Closes calls without a result, and moves results that stand elsewhere to the others behind the turn of their call.
fn arrange(patient: &mut Patient<'_, '_>, calls: &[Call]) {
    let protocol = patient.protocol();
    let role = match protocol {
        Protocol::Messages => Role::User,
        Protocol::Chat | Protocol::Responses => Role::Own,
    };
    let mut home: Option<Home> = None;
    // Each with the index before which it belongs.
    let mut added: Vec<(usize, Unit<'_>)> = Vec::new();
    for call in calls {
        let Some(asked) = patient.left(call.unit) else {
            continue;
        };
        let known = home.take().filter(|home| call.unit <= home.last);
        let home = home.insert(known.unwrap_or_else(|| Home::of(patient.chat, call.unit)));
        let id = call.id.as_deref().unwrap_or_default();
        let mut unit = if let Some(at) = call.result {
            if home.results.contains(&at) {
                continue;
            }
            patient.fix = "order";
            patient.note(at, format!("moved this result to its call `{id}`"));
            let Some(unit) = patient.chat.units.get_mut(at) else {
                continue;
            };
            // Its place stays in the list as that of a removed unit.
            let gone = unit.without_content();
            mem::replace(unit, gone)
        } else {
            let closing = closing(protocol, asked.value(), id);
            patient.fix = "unanswered";
            let Some(value) = closing else {
                patient.remove(call.unit, format!("call `{id}` has no result; dropped it"));
                continue;
            };
            let done = format!("call `{id}` has no result; closed it as aborted");
            patient.note(call.unit, done);
            Unit::inserted(role, 0, value)
        };
        unit.turn = *home.turn.get_or_insert_with(|| patient.chat.new_turn());
        added.push((home.results.end, unit));
    }
    added.sort_by_key(|(before, _)| *before);
    patient.chat.insert_all(added);
}

/// The results directly behind a turn of the model. New ones are added at their end, in Messages at the beginning of
/// the user's message.
struct Home {
    /// The last unit of the turn.
    last: usize,
    results: Range<usize>,
    /// The number of the message of results, if it exists.
    turn: Option<usize>,
}

impl Home {
    /// Returns the home of the results of a call in this unit. Items of Responses that follow each other are one turn.
    fn of(chat: &Chat<'_>, call: usize) -> Self {
        let protocol = chat.protocol;
        let units = chat.units.iter().enumerate().skip(call);
        let mut units = units.filter(|(_, unit)| unit.is_left()).peekable();
        let asked = chat.units.get(call).map(|unit| unit.turn);
        let is_of_turn = |(at, unit): &(usize, &Unit<'_>)| match protocol {
            Protocol::Chat => *at == call,
            Protocol::Messages => Some(unit.turn) == asked,
            Protocol::Responses => is_models(protocol, unit),
        };
        let mut last = call;
        while let Some((at, _)) = units.next_if(is_of_turn) {
            last = at;
        }
        let next = units.peek().filter(|(_, next)| next.role == Role::User);
        let turn = next.map(|(_, next)| next.turn);
        let is_there = |unit: &Unit<'_>| protocol != Protocol::Messages || Some(unit.turn) == turn;
        let results =
            units.take_while(|(_, unit)| result(protocol, unit).is_some() && is_there(unit));
        let end = results.last().map_or(last, |(at, _)| at) + 1;
        Self {
            last,
            results: last + 1..end,
            turn,
        }
    }
}

/// Removes calls of the provider's own tools without a result, and results without such a call.
fn hosted(patient: &mut Patient<'_, '_>) {
    let mut waiting: OpenCalls<usize> = OpenCalls::default();
    let mut gone: Vec<(usize, &str)> = Vec::new();
    let mut open: Option<usize> = None;
    let units = patient.chat.units.iter().enumerate();
    for (at, unit) in units.filter(|(_, unit)| unit.is_left()) {
        let (value, is_answer) = (unit.value(), unit.role == Role::Assistant);
        let begins = open.replace(unit.turn) != Some(unit.turn);
        if begins && is_answer {
            waiting.turn();
        }
        match kind(value) {
            "tool_result" if !is_answer && begins => waiting.answered(),
            "tool_result" if !is_answer => {}
            _ if !is_answer => waiting.other_message(),
            kind if calls_server(kind) => waiting.call(text(value, "id"), at),
            "tool_use" => waiting.host_call(named_caller(value)),
            kind if !kind.ends_with("_tool_result") => waiting.other(),
            _ if waiting.result(text(value, "tool_use_id")) => {}
            _ => gone.push((at, "nothing asked for it")),
        }
    }
    gone.extend(waiting.refused().map(|(_, at)| (*at, "it has no result")));
    gone.sort_unstable();
    for (at, why) in gone {
        let block = patient.left(at).map(|unit| kind(unit.value()).to_owned());
        let block = block.unwrap_or_default();
        patient.remove(at, format!("left out its block `{block}`: {why}"));
    }
}

/// Checks whether the server accepts an id.
fn accepts(target: &Target, id: &str) -> bool {
    let longest = match target {
        Target::Chat(dialect) if dialect.call_ids != CallIdForm::Visible => {
            return dialect.call_ids.accepts(id);
        }
        Target::Messages(_) => return is_word(id),
        Target::Chat(_) => 40,
        Target::Responses(_) => 64,
    };
    !id.is_empty() && id.chars().count() <= longest
}
