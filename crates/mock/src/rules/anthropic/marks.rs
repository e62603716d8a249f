//! The places of breakpoints: AM11.

use plimsoll_context::MAX_BREAKPOINTS;
use plimsoll_wire::__internals::anthropic::MARK;
use serde_json::Value;

use super::validate::MessagesCheck;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{content, entries, kind, text};

/// Judges all breakpoints of a request.
pub(super) fn marks<'c>(check: &mut MessagesCheck<'c>, _: &JsonPath<'_>, request: &'c Value) {
    let mut marks = 0;
    let mut short = false;
    for_each_block(request, |place, block| {
        let Some(mark) = block.get(MARK).filter(|mark| !mark.is_null()) else {
            return;
        };
        marks += 1;
        check.judge("mark", "", place, block);
        let ttl = text(mark, "ttl");
        if ttl == "1h" && short {
            check.report("mark-order", *place, &[]);
        }
        short |= matches!(ttl, "" | "5m");
    });
    // A breakpoint that the API sets itself counts towards the limit.
    if request.get(MARK).is_some_and(|mark| !mark.is_null()) {
        marks += 1;
    }
    if marks > MAX_BREAKPOINTS {
        check.report("too-many-marks", "the request", &[&marks]);
    }
}

/// Visits all blocks that may be marked, in the order in which they are read: tools, system, messages,
/// and blocks inside a result before the result.
fn for_each_block<'r>(request: &'r Value, mut visit: impl FnMut(&JsonPath<'_>, &'r Value)) {
    for key in ["tools", "system"] {
        for (index, block) in entries(request, key).iter().enumerate() {
            visit(&JsonPath::Dotted(key).entry(index), block);
        }
    }
    for (index, message) in entries(request, "messages").iter().enumerate() {
        let messages = JsonPath::Dotted("messages");
        let message_place = messages.entry(index);
        let content_place = message_place.key("content");
        for (at, block) in content(message).iter().enumerate() {
            let place = content_place.entry(at);
            if kind(block) == "tool_result" {
                for (at, inner) in content(block).iter().enumerate() {
                    visit(&place.key("content").entry(at), inner);
                }
            }
            visit(&place, block);
        }
    }
}
