//! The pairs of tool calls and results: BR2 to BR4, V3 and V4.

use std::collections::BTreeSet;

use serde_json::Value;

use super::validate::{ConverseCheck, is_call, is_result};
use crate::rules::json_path::JsonPath;
use crate::rules::table::{content, entries, role, text};

/// Judges the results in each message by the calls of the message before it.
pub(super) fn pairing(check: &mut ConverseCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let messages = entries(request, "messages");
    let mut call_ids: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages.{index}.content");
        let result_ids = ids(message, "toolResult");
        answers(check, &place, &call_ids, &result_ids);
        // A breakpoint is not content and may be anywhere: BR4.
        let blocks = content(message).iter();
        let blocks = blocks.filter(|block| block.get("cachePoint").is_none());
        let is_alone = result_ids.is_empty() || blocks.count() <= result_ids.len();
        if !is_alone && !check.profile.mixed_turn {
            check.report("mixed", place.clone(), &[]);
        }
        call_ids = match role(message) {
            "assistant" => ids(message, "toolUse"),
            _ => Vec::new(),
        };
        if call_ids.iter().collect::<BTreeSet<_>>().len() < call_ids.len() {
            check.report("duplicate-call", place, &[]);
        }
    }
    if !call_ids.is_empty() {
        let place = format!("messages.{}.content", messages.len());
        answers(check, &place, &call_ids, &[]);
    }
}

/// Judges results by the calls before them: BR2, BR3, V3 and V4.
fn answers(check: &mut ConverseCheck<'_>, place: &str, call_ids: &[&str], result_ids: &[&str]) {
    let open = call_ids.iter().copied();
    let open: Vec<&str> = open.filter(|id| !result_ids.contains(id)).collect();
    if result_ids.len() > call_ids.len() {
        check.report("too-many-results", place, &[]);
    } else if !open.is_empty() {
        check.report("missing-results", place, &[&open.join(", ")]);
        if open.len() < call_ids.len() {
            check.report("part-of-batch", place, &[]);
        }
    } else if call_ids != result_ids {
        check.report("order", place, &[]);
    }
}

fn ids<'m>(message: &'m Value, key: &str) -> Vec<&'m str> {
    let blocks = content(message).iter();
    let blocks = blocks.filter(|block| is_call(block) || is_result(block));
    let of = blocks.filter_map(|block| block.get(key));
    of.map(|block| text(block, "toolUseId")).collect()
}
