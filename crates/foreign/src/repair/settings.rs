//! The fix-up `settings`: the settings of a Messages request fit its messages. Other settings are not
//! repaired.

use plimsoll_context::MAX_BREAKPOINTS;
use plimsoll_wire::__internals::anthropic::MARK;
use plimsoll_wire::Target;
use serde_json::Value;

use super::Patient;
use super::piece::{kind, list, list_mut, text, unset};
use super::thinking::{is_thinking, mode, start_of_loop};
use crate::unit::Unit;

/// Removes `thinking` if the current tool loop began without it, and cache breakpoints that are too many or
/// where none may be.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    if !matches!(patient.target, Target::Messages(_)) {
        return;
    }
    let start = start_of_loop(&patient.chat.units).and_then(|at| patient.chat.units.get(at));
    if mode(patient.chat) == "enabled" && start.is_some_and(|unit| !is_thinking(unit)) {
        patient.chat.set_key("thinking", None);
        let done = "taken out: the current tool loop began without thinking";
        patient.note_at("thinking".to_owned(), done);
    }
    marks(patient);
}

/// Removes breakpoints that the API refuses. Of more than it allows, the newest stay.
fn marks(patient: &mut Patient<'_, '_>) {
    let tools: Value = patient
        .chat
        .key("tools")
        .and_then(|raw| serde_json::from_str(raw).ok())
        .unwrap_or_default();
    let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
    let marked = |block: &&Value| block.get(MARK).is_some_and(|mark| !mark.is_null());
    let of_tools: Vec<&Value> = tools.iter().filter(marked).collect();
    let is_short = |block: &Value| {
        block
            .get(MARK)
            .is_some_and(|mark| matches!(text(mark, "ttl"), "" | "5m"))
    };
    let mut short = of_tools.iter().any(|tool| is_short(tool));
    let own = patient.chat.key(MARK).is_some_and(|raw| raw != "null");
    let mut all = of_tools.len() + usize::from(own);
    let mut stay = |block: &Value| {
        let Some(mark) = block.get(MARK).filter(|mark| !mark.is_null()) else {
            return true;
        };
        let ttl = text(mark, "ttl");
        let kind = kind(block);
        let is_allowed = text(mark, "type") == "ephemeral"
            && !matches!(kind, "thinking" | "redacted_thinking")
            && !(kind == "text" && text(block, "text").is_empty())
            && matches!(ttl, "" | "5m" | "1h")
            && !(ttl == "1h" && short);
        short |= is_allowed && ttl != "1h";
        all += usize::from(is_allowed);
        is_allowed
    };
    patient.each(|unit| {
        let is_whole = each(unit, &mut stay);
        let done = "took out a breakpoint of the cache that cannot be there";
        (!is_whole).then(|| done.to_owned())
    });
    let mut over = all.saturating_sub(MAX_BREAKPOINTS);
    patient.each(|unit| {
        let is_whole = each(unit, &mut |block: &Value| {
            let leaves = over > 0 && marked(&block);
            over -= usize::from(leaves);
            !leaves
        });
        let done = "took out a breakpoint of the cache; the newest stay";
        (!is_whole).then(|| done.to_owned())
    });
}

/// Removes the breakpoints of the blocks of a unit for which `stay` returns `false`. Returns `true` if all
/// stay.
fn each(unit: &mut Unit<'_>, stay: &mut dyn FnMut(&Value) -> bool) -> bool {
    let inner = match unit.value() {
        Value::Array(_) => None,
        _ => Some("content"),
    };
    let blocks = match inner {
        None => unit
            .value()
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default(),
        Some(key) => list(unit.value(), key),
    };
    let wrong: Vec<usize> = blocks
        .iter()
        .enumerate()
        .filter_map(|(at, block)| (!stay(block)).then_some(at))
        .collect();
    let is_own_wrong = inner.is_some() && !stay(unit.value());
    if wrong.is_empty() && !is_own_wrong {
        return true;
    }
    let value = unit.edit();
    if is_own_wrong {
        unset(value, MARK);
    }
    let blocks = match inner {
        None => value.as_array_mut(),
        Some(key) => list_mut(value, key),
    };
    for (at, block) in blocks.into_iter().flatten().enumerate() {
        if wrong.binary_search(&at).is_ok() {
            unset(block, MARK);
        }
    }
    false
}
