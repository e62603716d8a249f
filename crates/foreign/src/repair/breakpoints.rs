//! The fix-up `breakpoints`: a request of Messages has no more breakpoints of the prompt cache than Anthropic accepts.

use plimsoll_context::MAX_BREAKPOINTS;
use plimsoll_wire::__internals::anthropic::MARK;
use plimsoll_wire::Target;
use serde_json::Value;

use super::Patient;
use super::piece::{parts, unset};
use crate::unit::Unit;

/// Removes the first breakpoints of messages beyond the maximum. Those of tools and of the system prompt count, and
/// stay if possible: a compaction never removes their blocks.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    if !matches!(patient.target, Target::Messages(_)) {
        return;
    }
    let key = |name: &str| {
        patient
            .chat
            .key(name)
            .and_then(|raw| serde_json::from_str(raw).ok())
    };
    let tools: Value = key("tools").unwrap_or_default();
    let own: Value = key(MARK).unwrap_or_default();
    let units = { patient.chat.units.iter() }.enumerate();
    let left = units.filter(|(_, unit)| unit.is_left());
    let marks = left.map(|(at, unit)| (at, marks(unit.value())));
    let mut marks: Vec<(usize, Vec<String>)> = marks.collect();
    marks.sort_by_key(|(at, _)| patient.left(*at).is_some_and(Unit::is_beside));
    let count: usize = marks.iter().map(|(_, marks)| marks.len()).sum();
    let count = count + self::marks(&tools).len() + usize::from(!own.is_null());
    let mut excess = count.saturating_sub(MAX_BREAKPOINTS);
    for (at, marks) in marks {
        let gone: Vec<String> = marks.into_iter().take(excess).collect();
        excess -= gone.len();
        if !gone.is_empty() {
            let done = "removed a breakpoint of the cache: the API accepts four";
            patient.edit(at, done, |value| {
                for place in gone {
                    if let Some(block) = value.pointer_mut(&place) {
                        unset(block, MARK);
                    }
                }
            });
        }
    }
}

/// Returns the places of the marked blocks in a value, in the order in which the API reads them.
fn marks(value: &Value) -> Vec<String> {
    let marked = parts(value).filter(|(_, block)| is_marked(block));
    marked.map(|(place, _)| place).collect()
}

fn is_marked(block: &Value) -> bool {
    block.get(MARK).is_some_and(|mark| !mark.is_null())
}
