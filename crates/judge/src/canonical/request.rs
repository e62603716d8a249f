//! [`repair_request`]: repairs a request, or a history in a protocol's own form.
//!
//! The protocol's validator decides what is valid. Signatures and encrypted content can only be judged
//! by the provider.

use std::collections::BTreeSet;

use plimsoll_context::{MAX_BREAKPOINTS, Message, Part};
use plimsoll_wire::__internals::RawObject;
use plimsoll_wire::__internals::anthropic::asks;
use plimsoll_wire::WireError;

use super::lenient::LenientParse;
use super::parsed_request::ParsedRequest;
use super::patch::{marks, unmarked, without_thinking};
use super::repair::Repair;
use super::repair_attempt::{self, RepairAttempt, RepairedTurn};
use super::report;
use super::{Form, Target};
use crate::anthropic::is_unasked;
use crate::fault::{Fault, MAX_FAULTS, Rule};

/// The maximum number of rounds that remove thinking from single tool loops. After that, all thinking
/// is removed.
const STRIPS: usize = 4;

/// The maximum number of repair passes. One repair and one check are usually enough.
const PASSES: usize = 4;

/// The treatment of reasoning without a known fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// Reasoning stays.
    #[default]
    Keep,
    /// Reasoning is removed. For a request with a signature that the provider has refused.
    Drop,
}

/// A repaired request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedRequest {
    /// The request, in its original shape. If nothing was wrong, it is unchanged byte for byte.
    pub request: String,
    /// The repairs, in order. Empty if the request was valid.
    pub repairs: Vec<Repair>,
    /// The remaining faults. They concern settings, which are not repaired, and not the messages.
    pub faults: Vec<Fault>,
}

/// Repairs a request, or a bare list of its messages.
///
/// A request names its `model`. Anything else is a history, which may end with an assistant message in
/// any protocol.
///
/// # Errors
///
/// [`WireError::NotJson`], or [`WireError::Expected`] if there is no list of messages.
pub fn repair_request(
    text: &str,
    target: &Target,
    reasoning: Reasoning,
) -> Result<RepairedRequest, WireError> {
    let mut repaired = once(text, target, reasoning)?;
    for _ in 1..PASSES {
        if repaired.repairs.is_empty() {
            break;
        }
        // One turn may be read as two after the repair, one of them without content.
        let again = once(&repaired.request, target, Reasoning::Keep)?;
        if again.repairs.is_empty() {
            break;
        }
        repaired.request = again.request;
        repaired.faults = again.faults;
        repaired.repairs.extend(again.repairs);
    }
    Ok(repaired)
}

fn once(text: &str, target: &Target, reasoning: Reasoning) -> Result<RepairedRequest, WireError> {
    let untouched = LenientParse::untouched(text);
    let mut as_it_came = ParsedRequest::read(&untouched, target);
    if let Ok(request) = &mut as_it_came
        && request.is_accepted()
        && (reasoning == Reasoning::Keep || thinking(&request.document.messages).is_empty())
    {
        let messages = std::mem::take(&mut request.document.messages);
        if repair_attempt::is_whole(request, messages) {
            return Ok(RepairedRequest {
                request: text.to_owned(),
                repairs: Vec::new(),
                faults: Vec::new(),
            });
        }
        as_it_came = ParsedRequest::read(&untouched, target);
    }
    let lenient = LenientParse::of(text, target);
    let mut request = match as_it_came {
        Ok(request) if lenient.repairs.is_empty() => request,
        _ => ParsedRequest::read(&lenient, target)?,
    };
    let messages = std::mem::take(&mut request.document.messages);
    let thought = Thought::of(&messages);
    let stripped = match reasoning {
        Reasoning::Keep => BTreeSet::new(),
        Reasoning::Drop => thought.messages.clone(),
    };
    let target = &request.target;
    let read = || Ok(ParsedRequest::read(&lenient, target)?.document.messages);
    let mut attempt = RepairAttempt::new(&request, &read, messages, stripped)?;
    for round in 0..=STRIPS {
        let more = match round {
            STRIPS => thought.messages.clone(),
            _ => must_go(&attempt, target, &thought),
        };
        if more.is_subset(&attempt.stripped) {
            break;
        }
        let stripped = attempt.stripped.union(&more).copied().collect();
        attempt = RepairAttempt::new(&request, &read, read()?, stripped)?;
    }
    let mut repairs = report::all_repairs(&attempt, reasoning);
    let mut request = std::mem::take(&mut attempt.text);
    for change in [remove_thinking, fewer_marks, no_marks] {
        if let Some((repaired, repair)) = change(&request, &attempt.faults) {
            attempt.faults = repair_attempt::judge(&repaired, target);
            request = repaired;
            repairs.push(repair);
        }
    }
    attempt.faults.truncate(MAX_FAULTS);
    if repairs.is_empty() {
        text.clone_into(&mut request);
    }
    Ok(RepairedRequest {
        request,
        repairs,
        faults: attempt.faults,
    })
}

/// The thinking in the original request.
struct Thought {
    /// The messages with thinking.
    messages: BTreeSet<usize>,
    /// The number of the tool loop of each message.
    loops: Vec<usize>,
}

impl Thought {
    fn of(messages: &[Message]) -> Self {
        Self {
            messages: thinking(messages),
            loops: loops(messages),
        }
    }
}

/// Returns the messages with thinking.
pub(crate) fn thinking(messages: &[Message]) -> BTreeSet<usize> {
    let thinks = |message: &Message| {
        let mut parts = message.parts().iter();
        parts.any(|part| matches!(part, Part::Thinking(_)))
    };
    let all = messages.iter().enumerate();
    all.filter_map(|(index, message)| thinks(message).then_some(index))
        .collect()
}

/// Returns the messages whose thinking cannot stay, always for whole tool loops (V4):
///
/// - thinking with a refused signature,
/// - thinking of the current loop, if the request asks for none (AM9),
/// - all thinking behind the first change, if the model's thinking is bound to everything before it
///   (AM10).
fn must_go(attempt: &RepairAttempt<'_, '_>, target: &Target, thought: &Thought) -> BTreeSet<usize> {
    let loop_of = |index: usize| thought.loops.get(index).copied();
    let thinking = &thought.messages;
    let mut removed_loops: BTreeSet<usize> = BTreeSet::new();
    for fault in attempt
        .faults
        .iter()
        .chain(attempt.turns.iter().filter_map(RepairedTurn::fault))
    {
        if fault.rule != Rule::Am10 && !is_unasked(fault) {
            continue;
        }
        let turns = attempt.turn_of(fault);
        let from = turns.map(|turn| attempt.from(turn)).unwrap_or_default();
        let origins = from.iter().filter_map(|at| attempt.origin(*at));
        removed_loops.extend(origins.filter_map(loop_of));
    }
    if target.form().binds_thinking()
        && let Some(change) = first_change(attempt)
    {
        let behind = thinking
            .iter()
            .filter(|index| **index > change || change == 0);
        removed_loops.extend(behind.filter_map(|index| loop_of(*index)));
    }
    let thinks = thinking.iter().copied();
    thinks
        .filter(|index| loop_of(*index).is_some_and(|of| removed_loops.contains(&of)))
        .collect()
}

/// Returns the number of the tool loop of each message. A loop begins with a user message, a summary or
/// a system message.
pub(crate) fn loops(messages: &[Message]) -> Vec<usize> {
    let (mut number, mut is_after_question) = (0, true);
    let mut loops = Vec::with_capacity(messages.len());
    for message in messages {
        let asks = asks(message);
        if asks && !is_after_question {
            number += 1;
        }
        is_after_question = asks;
        loops.push(number);
    }
    loops
}

/// Returns the first message of the request that has changed, or `None` if none has.
fn first_change(attempt: &RepairAttempt<'_, '_>) -> Option<usize> {
    if attempt.system || attempt.request.is_lacking {
        return Some(0);
    }
    let found = first_rewritten(attempt).into_iter();
    found.chain(attempt.request.changed).min()
}

fn first_rewritten(attempt: &RepairAttempt<'_, '_>) -> Option<usize> {
    let mut unit = 0;
    let mut last = 0;
    for turn in 0..attempt.turns.len() {
        let kept = attempt.kept(turn);
        let from = attempt.from(turn).iter();
        let mut origins = from.filter_map(|at| attempt.origin(*at));
        let first = origins.next();
        // A turn between others that was not necessary is not there.
        if attempt.from(turn).is_empty() && kept.is_some() {
            continue;
        }
        match kept {
            Some(units) if units.first() == Some(&unit) => unit += units.len(),
            _ => return Some(first.map_or(last, |first| first.min(last + 1))),
        }
        last = origins.next_back().or(first).unwrap_or(last);
    }
    None
}

/// Applies AM9: removes the setting `thinking` if the current tool loop began without thinking.
fn remove_thinking(request: &str, faults: &[Fault]) -> Option<(String, Repair)> {
    let fault = faults.iter().find(|fault| fault.rule == Rule::Am9)?;
    let repaired = without_thinking(request)?;
    let done = "taken out: the tool loop under way began without thinking";
    let repair = Repair::new("thinking", done).because(Some(fault));
    Some((repaired, repair))
}

/// Applies AM11: keeps the newest breakpoints, because they cover the older ones.
fn fewer_marks(request: &str, faults: &[Fault]) -> Option<(String, Repair)> {
    let fault = faults.iter().find(|fault| fault.rule == Rule::Am11)?;
    let object: RawObject<'_> = serde_json::from_str(request).ok()?;
    let before = ["tools", "system"].iter();
    let before: usize = before.filter_map(|key| object.get(key)).map(marks).sum();
    let mut keep = MAX_BREAKPOINTS.saturating_sub(before);
    let messages = object.get("messages")?;
    let repaired = unmarked(messages, &mut keep);
    if repaired == messages {
        return None;
    }
    let done = "took out breakpoints of the cache; the newest stay";
    let repair = Repair::new("messages", done).because(Some(fault));
    Some((object.with(&[("messages", Some(repaired))]), repair))
}

/// Applies AM11: without any breakpoints, the request is valid but expensive.
fn no_marks(request: &str, faults: &[Fault]) -> Option<(String, Repair)> {
    let fault = faults.iter().find(|fault| fault.rule == Rule::Am11)?;
    let object: Option<RawObject<'_>> = serde_json::from_str(request).ok();
    let done = "took out all breakpoints of the cache";
    let repair = Repair::new("messages", done).because(Some(fault));
    let Some(object) = object else {
        return Some((unmarked(request, &mut 0), repair));
    };
    let mut changes = Vec::new();
    for key in ["tools", "system", "messages"] {
        if let Some(list) = object.get(key) {
            changes.push((key, Some(unmarked(list, &mut 0))));
        }
    }
    Some((object.with(&changes), repair))
}
