//! The fix-ups `thinking`, `reasoning` and `settings`: thinking that the provider would refuse leaves, in Messages
//! from the beginning of its tool loop on, reasoning that a server of Chat Completions requires is there, and a
//! request asks for thinking only if its current tool loop began with it.

use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::__internals::{list, set, text, unset};
use plimsoll_wire::anthropic::MessagesProfile;
use plimsoll_wire::openai_chat::{EchoReasoning, EmptyReasoning};
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use plimsoll_wire::{Protocol, Target};
use serde_json::Value;

use super::piece::{is_models, kind, role};
use super::shapes_responses::is_stored;
use super::{Patient, Reasoning};
use crate::chat::Chat;
use crate::unit::{Change, Role, Unit};

const GONE: &str = "left out its thinking";

/// Removes thinking without a signature, after a change that it is bound to, or that the request did not ask
/// for.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    match patient.target {
        Target::Chat(_) if patient.reasoning == Reasoning::Drop => patient.each(|unit| {
            let keys = ["reasoning_content", "reasoning"];
            let is_there = keys.iter().any(|key| unit.value().get(*key).is_some());
            is_there.then(|| {
                let value = unit.edit();
                unset(value, &keys);
                GONE
            })
        }),
        Target::Chat(_) => {}
        Target::Responses(profile) => items_without(patient, profile),
        Target::Messages(profile) => blocks_without(patient, profile),
    }
}

/// Removes reasoning that no item follows, or that no server can read. Items behind it lose the id by which
/// the server would require the reasoning. With all reasoning, a compaction leaves, which is encrypted like it.
fn items_without(patient: &mut Patient<'_, '_>, profile: &ResponsesProfile) {
    let is_kept = is_stored(patient) || profile.reasoning != ReasoningItems::Encrypted;
    let is_reasoning = |unit: &Unit<'_>| kind(unit.value()) == "reasoning";
    let is_models = |unit: &Unit<'_>| !unit.is_beside() && is_models(Protocol::Responses, unit);
    let mut is_without = false;
    for at in 0..patient.chat.units.len() {
        let rest = patient.chat.units.iter().skip(at);
        let mut rest = rest.filter(|unit| unit.is_left());
        let Some(unit) = patient.left(at) else {
            continue;
        };
        let item = unit.value();
        let drops = patient.reasoning == Reasoning::Drop;
        if drops && kind(item) == "compaction" {
            patient.remove(at, "left out its encrypted compaction");
        } else if is_reasoning(unit) {
            let next = rest.find(|unit| !is_reasoning(unit));
            let why = if drops {
                GONE
            } else if !next.is_some_and(is_models) {
                "left out its thinking: no item follows it"
            } else if !is_kept && !items::is_encrypted(item) {
                "left out its thinking: its content is missing"
            } else {
                is_without = false;
                continue;
            };
            is_without = true;
            patient.remove(at, why);
        } else if !is_models(unit) {
            is_without = false;
        } else if is_without && items::is_tied(items::kind(item)) && item.get("id").is_some() {
            let done = "left out its id, which belongs to its thinking";
            patient.edit(at, done, |value| unset(value, &["id"]));
        }
    }
}

/// Removes thinking that the API would refuse, and all thinking from the beginning of its tool loop on.
fn blocks_without(patient: &mut Patient<'_, '_>, profile: &MessagesProfile) {
    let units = &patient.chat.units;
    let loops = ToolLoops::of(units);
    let asks = thinks(patient.chat) && !begins_without(patient.chat);
    let is_unasked = patient.is_request && !profile.unasked_thinking && !asks;
    let current = loops.start.filter(|_| is_unasked);
    let change = first_change(units).filter(|_| profile.binds_prefix);
    let is_refused = |at: usize, unit: &Unit<'_>| {
        patient.reasoning == Reasoning::Drop
            || !is_signed(unit.value())
            || is_last_of_turn(units, at)
            || current.is_some_and(|start| at >= start)
            || change.is_some_and(|change| at > change)
    };
    let mut thinking = units.iter().enumerate();
    let first = thinking.find(|(at, unit)| is_thinking(unit) && is_refused(*at, unit));
    let Some((first, _)) = first else {
        return;
    };
    let mut begins = loops.begins.into_iter();
    let begin = begins.rfind(|begin| *begin <= first).unwrap_or_default();
    for at in begin..patient.chat.units.len() {
        if patient.left(at).is_some_and(is_thinking) {
            patient.remove(at, GONE);
        }
    }
}

/// Checks whether a unit is thinking of Messages.
fn is_thinking(unit: &Unit<'_>) -> bool {
    let kind = kind(unit.value());
    unit.is_left()
        && unit.role == Role::Assistant
        && matches!(kind, "thinking" | "redacted_thinking")
}

fn is_signed(block: &Value) -> bool {
    let has = |key: &str| block.get(key).is_some_and(Value::is_string);
    match kind(block) {
        "thinking" => has("thinking") && !text(block, "signature").is_empty(),
        _ => has("data"),
    }
}

/// Checks whether only thinking follows a block in its message.
fn is_last_of_turn(units: &[Unit<'_>], at: usize) -> bool {
    let turn = units.get(at).map(|unit| unit.turn);
    let rest = units.iter().skip(at + 1).filter(|unit| unit.is_left());
    let mut rest = rest.take_while(|unit| Some(unit.turn) == turn);
    rest.all(is_thinking)
}

/// The tool loops of a chat. A message of the user's without results, which would come first, begins another one.
#[derive(Default)]
struct ToolLoops {
    /// The first unit of each of these messages.
    begins: Vec<usize>,
    /// The first unit of the model's first message in the current loop. Of answers in a row, only the last counts.
    start: Option<usize>,
}

impl ToolLoops {
    fn of(units: &[Unit<'_>]) -> Self {
        let (mut loops, mut is_after_answer) = (Self::default(), false);
        let mut last = None;
        let left = units.iter().enumerate().filter(|(_, unit)| unit.is_left());
        for (at, unit) in left {
            let message = (unit.turn, unit.role);
            if last.replace(message) == Some(message) {
                continue;
            }
            let is_answer = unit.role == Role::Assistant;
            if is_answer && (is_after_answer || loops.start.is_none()) {
                loops.start = Some(at);
            } else if !is_answer && kind(unit.value()) != "tool_result" {
                loops.begins.push(at);
                loops.start = None;
            }
            is_after_answer = is_answer;
        }
        loops
    }
}

/// Returns the first unit that is not as it was.
fn first_change(units: &[Unit<'_>]) -> Option<usize> {
    let mut all = units.iter();
    let changed = all.position(|unit| unit.change() != Change::Unchanged);
    let places = units.iter().zip(units.iter().skip(1));
    let mut places = places.map(|(one, next)| one.place.is_some() && one.place > next.place);
    let moved = places.position(|is_moved| is_moved);
    changed.into_iter().chain(moved).min()
}

/// Checks whether the request asks for thinking.
pub(super) fn thinks(chat: &Chat<'_>) -> bool {
    matches!(mode(chat).as_str(), "enabled" | "adaptive")
}

/// Checks whether a request asks for thinking in a tool loop that began without it.
fn begins_without(chat: &Chat<'_>) -> bool {
    let start = ToolLoops::of(&chat.units).start;
    let start = start.and_then(|at| chat.units.get(at));
    mode(chat) == "enabled" && start.is_some_and(|unit| !is_thinking(unit))
}

/// Returns the mode of a request's thinking.
fn mode(chat: &Chat<'_>) -> String {
    kind(&chat.key_value("thinking")).to_owned()
}

/// Removes `thinking` from a request of Messages if the current tool loop began without it. Other settings are not
/// repaired.
pub(super) fn setting(patient: &mut Patient<'_, '_>) {
    if !matches!(patient.target, Target::Messages(_)) {
        return;
    }
    if begins_without(patient.chat) {
        patient.chat.remove_key("thinking");
        let done = "taken out: the current tool loop began without thinking";
        patient.note_at("thinking".to_owned(), done);
    }
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
    patient.each(|unit| {
        let is_needed = match dialect.echo_reasoning {
            EchoReasoning::Never => false,
            EchoReasoning::ToolTurns => !list(unit.value(), "tool_calls").is_empty(),
            // In exchanges without tools, the server ignores it.
            EchoReasoning::ToolExchanges | EchoReasoning::Always => true,
        };
        let own = unit
            .value()
            .get("reasoning_content")
            .and_then(Value::as_str);
        let is_missing = own.is_none_or(|own| own.len() < empty.len());
        (is_needed && is_missing && role(unit) == "assistant").then(|| {
            set(unit.edit(), "reasoning_content", empty);
            "put in an empty reasoning, which the server requires"
        })
    });
}
