//! Checks the places of breakpoints: AM11. Part of the validator.

use plimsoll_context::MAX_BREAKPOINTS;
use plimsoll_wire::__internals::anthropic::MARK;
use serde_json::Value;

use super::validate::{MessagesCheck, content, is_thinking, kind, text};
use crate::rules::fault::Rule;
use crate::rules::json_path::JsonPath;
use crate::rules::table::entries;

/// Judges all breakpoints of a request.
pub(super) fn check(check: &mut MessagesCheck<'_>, request: &Value) {
    let mut marks = 0;
    let mut short = false;
    for_each_block(request, |place, block| {
        let Some(mark) = block.get(MARK).filter(|mark| !mark.is_null()) else {
            return;
        };
        marks += 1;
        if text(mark, "type") != "ephemeral" {
            let words = format!("{place}.{MARK}.type: Input should be 'ephemeral'");
            check.fault(Rule::Am11, *place, words);
        }
        if is_thinking(block) {
            let kind = kind(block);
            let words = format!("{place}.{kind}.{MARK}: Extra inputs are not permitted");
            check.fault(Rule::Am11, *place, words);
        }
        if kind(block) == "text" && text(block, "text").is_empty() {
            let words = format!("{place}: {MARK} cannot be set for empty text blocks");
            check.fault(Rule::Am11, *place, words);
        }
        match text(mark, "ttl") {
            "" | "5m" => short = true,
            "1h" if short => {
                let words = format!(
                    "{place}.{MARK}.ttl: a ttl='1h' {MARK} block must not come after a ttl='5m' \
                     {MARK} block. Note that blocks are processed in the following order: \
                     `tools`, `system`, `messages`."
                );
                check.fault(Rule::Am11, *place, words);
            }
            "1h" => {}
            _ => {
                let words = format!("{place}.{MARK}.ttl: Input should be '5m' or '1h'");
                check.fault(Rule::Am11, *place, words);
            }
        }
    });
    // A breakpoint that the API sets itself counts towards the limit.
    if request.get(MARK).is_some_and(|mark| !mark.is_null()) {
        marks += 1;
    }
    if marks > MAX_BREAKPOINTS {
        let words = format!(
            "A maximum of {MAX_BREAKPOINTS} blocks with {MARK} may be provided. Found {marks}."
        );
        check.fault(Rule::Am11, "the request", words);
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
