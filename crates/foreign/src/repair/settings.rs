//! The fix-up `settings`: the settings of a Messages request fit its messages. Other settings are not
//! repaired.

use plimsoll_context::MAX_BREAKPOINTS;
use plimsoll_wire::__internals::anthropic::MARK;
use plimsoll_wire::Target;
use serde_json::Value;

use super::Patient;
use super::piece::{kind, list_mut, text, unset};
use super::thinking::{is_thinking, mode, start_of_loop};
use crate::unit::Unit;

/// Removes `thinking` if the current tool loop began without it, and cache breakpoints that are too many or
/// where none may be.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    if !matches!(patient.target, Target::Messages(_)) {
        return;
    }
    let start = start_of_loop(&patient.chat.units).and_then(|at| patient.left(at));
    if mode(patient.chat) == "enabled" && start.is_some_and(|unit| !is_thinking(unit)) {
        patient.chat.set_key("thinking", None);
        let done = "taken out: the current tool loop began without thinking";
        patient.note_at("thinking".to_owned(), done);
    }
    breakpoints(patient);
}

/// Removes breakpoints that the API refuses. Of more than it allows, the newest stay.
fn breakpoints(patient: &mut Patient<'_, '_>) {
    let tools = patient.chat.key("tools").unwrap_or_default();
    let tools: Value = serde_json::from_str(tools).unwrap_or_default();
    let tools = tools.as_array().into_iter().flatten();
    let of_tools: Vec<&Value> = tools.filter_map(mark).collect();
    // A breakpoint of an hour must not follow one of five minutes.
    let mut is_short = of_tools.iter().any(|mark| text(mark, "ttl") != "1h");
    let own = patient.chat.key(MARK).is_some_and(|raw| raw != "null");
    let mut all = of_tools.len() + usize::from(own);
    let mut is_refused = |block: &Value| {
        let Some(mark) = mark(block) else {
            return false;
        };
        let ttl = text(mark, "ttl");
        let is_allowed = kind(mark) == "ephemeral"
            && !matches!(kind(block), "thinking" | "redacted_thinking")
            && !(kind(block) == "text" && text(block, "text").is_empty())
            && (matches!(ttl, "" | "5m") || ttl == "1h" && !is_short);
        is_short |= is_allowed && ttl != "1h";
        all += usize::from(is_allowed);
        !is_allowed
    };
    patient.each(|unit| {
        let is_changed = unmark(unit, &mut is_refused);
        is_changed.then_some("took out a breakpoint of the cache that cannot be there")
    });
    let mut over = all.saturating_sub(MAX_BREAKPOINTS);
    let mut is_over = |block: &Value| {
        let is_over = over > 0 && mark(block).is_some();
        over -= usize::from(is_over);
        is_over
    };
    patient.each(|unit| {
        let is_changed = unmark(unit, &mut is_over);
        is_changed.then_some("took out a breakpoint of the cache; the newest stay")
    });
}

fn mark(block: &Value) -> Option<&Value> {
    block.get(MARK).filter(|mark| !mark.is_null())
}

/// Removes the breakpoints of a unit, and of the blocks in it, that are `wrong`. Returns whether there were any.
fn unmark(unit: &mut Unit<'_>, wrong: &mut dyn FnMut(&Value) -> bool) -> bool {
    let blocks = unit
        .value()
        .as_array()
        .or_else(|| unit.value().get("content")?.as_array());
    let mut blocks = blocks.into_iter().flatten();
    if mark(unit.value()).is_none() && !blocks.any(|block| mark(block).is_some()) {
        return false;
    }
    let mut value = unit.value().clone();
    let blocks = match &mut value {
        Value::Array(blocks) => Some(blocks),
        value => list_mut(value, "content"),
    };
    let mut is_changed = false;
    for block in blocks.into_iter().flatten() {
        if wrong(block) {
            unset(block, MARK);
            is_changed = true;
        }
    }
    if wrong(&value) {
        unset(&mut value, MARK);
        is_changed = true;
    }
    if is_changed {
        *unit.edit() = value;
    }
    is_changed
}
