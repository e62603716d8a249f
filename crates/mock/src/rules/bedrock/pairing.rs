//! Checks whether tool calls and results answer each other: BR2 to BR4, V3 and V4. Part of the
//! validator.

use std::collections::BTreeSet;

use serde_json::Value;

use super::validate::{ConverseCheck, content, is_call, is_result, role, text};

/// Judges a list of messages.
pub(super) fn check(check: &mut ConverseCheck<'_>, messages: &[Value]) {
    let mut call_ids: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let result_ids = ids(message, "toolResult");
        answers(check, index, &call_ids, &result_ids);
        alone(check, index, message, result_ids.len());
        call_ids = match role(message) {
            "assistant" => ids(message, "toolUse"),
            _ => Vec::new(),
        };
        if call_ids.iter().collect::<BTreeSet<_>>().len() < call_ids.len() {
            let place = format!("messages.{index}.content");
            check.report("duplicate-call", place, &[]);
        }
    }
    if !call_ids.is_empty() {
        answers(check, messages.len(), &call_ids, &[]);
    }
}

/// Judges the results of one message and the calls of the message before it: BR2, BR3, V3 and V4.
fn answers(check: &mut ConverseCheck<'_>, index: usize, call_ids: &[&str], result_ids: &[&str]) {
    let place = format!("messages.{index}.content");
    let open = call_ids
        .iter()
        .copied()
        .filter(|id| !result_ids.contains(id));
    let open: Vec<&str> = open.collect();
    if result_ids.len() > call_ids.len() {
        check.report("too-many-results", place, &[]);
    } else if !open.is_empty() {
        check.report("missing-results", place.clone(), &[&open.join(", ")]);
        if open.len() < call_ids.len() {
            check.report("part-of-batch", place, &[]);
        }
    } else if call_ids != result_ids {
        check.report("order", place, &[]);
    }
}

/// Judges BR4. A breakpoint is not content and may be anywhere.
fn alone(check: &mut ConverseCheck<'_>, index: usize, message: &Value, results: usize) {
    let blocks = content(message).iter();
    let content_blocks = blocks.filter(|block| block.get("cachePoint").is_none());
    if results > 0 && content_blocks.count() > results && !check.profile.mixed_turn {
        let place = format!("messages.{index}.content");
        check.report("mixed", place, &[]);
    }
}

fn ids<'m>(message: &'m Value, key: &str) -> Vec<&'m str> {
    let blocks = content(message).iter();
    let blocks = blocks.filter(|block| is_call(block) || is_result(block));
    let of = blocks.filter_map(|block| block.get(key));
    of.map(|block| text(block, "toolUseId")).collect()
}
