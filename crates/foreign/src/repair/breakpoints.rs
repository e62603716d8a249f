//! The fix-up `breakpoints`: a request of Messages has no more breakpoints of the prompt cache than Anthropic accepts.

use plimsoll_context::MAX_BREAKPOINTS;
use plimsoll_wire::__internals::anthropic::MARK;
use plimsoll_wire::__internals::unset;
use plimsoll_wire::Target;
use serde_json::Value;

use super::Patient;
use super::piece::parts;
use crate::unit::Unit;

/// Removes the first breakpoints of messages beyond the maximum. Those of tools and of the system prompt count, and
/// stay if possible: a compaction never removes their blocks.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    if !matches!(patient.target, Target::Messages(_)) {
        return;
    }
    let tools = patient.chat.key_value("tools");
    let own = patient.chat.key_value(MARK);
    let marked = patient.parts().filter(|(.., part)| is_marked(part));
    let mut marked: Vec<(usize, String)> = marked.map(|(at, place, _)| (at, place)).collect();
    marked.sort_by_key(|(at, _)| patient.left(*at).is_some_and(Unit::is_beside));
    let of_tools = parts(&tools).filter(|(_, tool)| is_marked(tool)).count();
    let count = marked.len() + of_tools + usize::from(!own.is_null());
    let excess = count.saturating_sub(MAX_BREAKPOINTS);
    for (at, place) in marked.into_iter().take(excess) {
        let done = "removed a breakpoint of the cache: the API accepts four";
        patient.edit_part(at, &place, done, |block| unset(block, &[MARK]));
    }
}

fn is_marked(block: &Value) -> bool {
    block.get(MARK).is_some_and(|mark| !mark.is_null())
}
