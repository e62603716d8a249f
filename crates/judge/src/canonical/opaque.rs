//! Repairs the provider's own blocks.
//!
//! Removes blocks that the provider would refuse at any place, calls of its own tools that have lost
//! their results, and results that have lost their calls. Tool calls that the host runs are the same in
//! every protocol; `plimsoll_context::repair` repairs them.

use std::collections::BTreeSet;

use plimsoll_context::{Message, Opaque, Part};
use plimsoll_wire::__internals::anthropic::At;
use serde_json::Value;

use super::form::{OwnBlock, WireForm};
use super::repair::Finding;
use super::{Form, Target};
use crate::fault::Rule;
pub(super) use crate::table::{kind, text};

/// Removes the blocks that cannot stay. The number of messages stays the same.
pub(super) fn clean(messages: &mut [Message], target: &Target, stored: bool) -> Vec<Finding> {
    let form = target.form();
    let mut out = unfit(messages, form, stored);
    let removed: BTreeSet<At> = out.iter().map(|(at, _)| *at).collect();
    out.extend(form.parted(messages, &removed));
    out.sort_by_key(|(at, _)| *at);
    let removed: BTreeSet<At> = out.iter().map(|(at, _)| *at).collect();
    let touched: BTreeSet<usize> = removed.iter().map(|(index, _)| *index).collect();
    for index in touched {
        let mut at = 0;
        if let Some(parts) = messages.get_mut(index).and_then(parts_of) {
            parts.retain(|_| {
                at += 1;
                !removed.contains(&(index, at - 1))
            });
        }
    }
    out.into_iter().map(|(_, finding)| finding).collect()
}

/// Returns the blocks that the provider would refuse at any place.
fn unfit(messages: &[Message], form: &dyn WireForm, stored: bool) -> Vec<(At, Finding)> {
    let mut out = Vec::new();
    for (at, message, opaque) in blocks(messages) {
        let Some(json) = block_of(opaque, form.facts().origin) else {
            continue;
        };
        let block = OwnBlock {
            opaque,
            json,
            message,
        };
        if let Some((rule, words)) = form.unfit(&block, stored) {
            let why = "it cannot stand there";
            out.push((at, finding(at, rule, block.kind(), why, Some(words))));
        }
    }
    out
}

/// Returns all provider-specific blocks and their messages.
fn blocks(messages: &[Message]) -> impl Iterator<Item = (At, &Message, &Opaque)> {
    messages.iter().enumerate().flat_map(|(index, message)| {
        let parts = message.parts().iter().enumerate();
        parts.filter_map(move |(at, part)| match part {
            Part::Opaque(opaque) => Some(((index, at), message, opaque)),
            _ => None,
        })
    })
}

/// Returns the JSON object of a block of this origin; others are left out anyway.
pub(super) fn block_of(opaque: &Opaque, origin: &str) -> Option<Value> {
    let block: Value = (opaque.origin == origin)
        .then(|| serde_json::from_str(&opaque.data).ok())
        .flatten()?;
    block.is_object().then_some(block)
}

fn parts_of(message: &mut Message) -> Option<&mut Vec<Part>> {
    match message {
        Message::System { parts } | Message::User { parts } | Message::Assistant { parts } => {
            Some(parts)
        }
        Message::ToolResult(result) => Some(&mut result.parts),
        Message::Notice { .. } | Message::Summary { .. } => None,
    }
}

pub(super) fn finding(at: At, rule: Rule, kind: &str, why: &str, words: Option<String>) -> Finding {
    Finding {
        at: at.0,
        rule: Some(rule),
        done: format!("left out its block `{kind}`: {why}"),
        words,
    }
}
