//! Checks whether tool calls and their outputs answer each other, and whether reasoning is followed by
//! its items: OR1 to OR4, V3 and V4. Part of the validator. Rules that depend on the server's own
//! records are not included.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_wire::__internals::openai_responses::items::{self, is_tied};
use serde_json::Value;

use super::validate::{ResponsesCheck, TABLE};
use crate::rules::fault::Fault;

/// Judges the items of an input.
pub(super) fn check(check: &mut ResponsesCheck<'_>, list: &[Value]) {
    calls(check, list);
    reasoning(check, list);
}

/// A call, and the item that answers it.
struct CallItem<'m> {
    at: usize,
    id: &'m str,
    /// The name of the call's kind in errors.
    spoken: &'static str,
    answered: bool,
    /// The number of the model's turn.
    batch: usize,
}

/// Pairs calls and outputs by their ids, in any order.
fn calls(check: &mut ResponsesCheck<'_>, list: &[Value]) {
    let mut calls: Vec<CallItem<'_>> = Vec::new();
    // The open calls by id and kind of output, oldest first.
    let mut open: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let mut batch = 0;
    // The index of the first call of the newest batch.
    let mut newest = 0;
    let mut ids = BTreeSet::new();
    let mut is_after_model = false;
    for (at, item) in list.iter().enumerate() {
        let kind = items::kind(item);
        let model = is_models(item);
        if model && !is_after_model {
            batch += 1;
            newest = calls.len();
        }
        is_after_model = model;
        if let Some((_, spoken, output)) = items::PAIRS.iter().find(|(call, ..)| *call == kind) {
            let Some(id) = call_id(item) else {
                // A search on the server's side needs no output.
                continue;
            };
            if is_of_callers_tool(kind) && !ids.insert(id) {
                check.report("duplicate-call", format!("input[{at}].call_id"), &[&id]);
            }
            let output = pairing_kind(output);
            open.entry((id, output)).or_default().push(calls.len());
            calls.push(CallItem {
                at,
                id,
                spoken,
                answered: false,
                batch,
            });
        } else if let Some((_, spoken, output)) =
            items::PAIRS.iter().find(|(.., output)| *output == kind)
        {
            let id = call_id(item).unwrap_or_default();
            // An output without a call that has the server's id: the server's own search.
            if id.is_empty() && item.get("execution").and_then(Value::as_str) == Some("server") {
                continue;
            }
            let place = format!("input[{at}].call_id");
            let Some(waiting) = open.get_mut(&(id, pairing_kind(output))) else {
                check.report("no-call", place, &[spoken, &id]);
                continue;
            };
            let call = first_of(waiting, newest).and_then(|found| calls.get_mut(found));
            match call {
                Some(call) => call.answered = true,
                None => check.report("second-result", place, &[&id]),
            }
        }
    }
    let answered = calls.iter().filter(|one| one.answered);
    let begun: BTreeSet<usize> = answered.map(|one| one.batch).collect();
    for one in calls.iter().filter(|one| !one.answered) {
        check.report(
            "open-call",
            format!("input[{}]", one.at),
            &[&one.spoken, &one.id],
        );
        if begun.contains(&one.batch) {
            check.report("part-of-batch", format!("input[{}]", one.at), &[]);
        }
    }
}

/// Returns the kind by which an output is paired with its call. Codex answers calls of a local shell as those of
/// a function, and the API accepts that.
fn pairing_kind(output: &str) -> &str {
    match output {
        "local_shell_call_output" => "function_call_output",
        other => other,
    }
}

/// Returns `true` for calls of the caller's tools. Their ids must be unique in the input.
fn is_of_callers_tool(kind: &str) -> bool {
    matches!(kind, "function_call" | "custom_tool_call")
}

/// Takes the call that an output answers: the first of the newest batch, or otherwise the last one
/// before it.
fn first_of(waiting: &mut Vec<usize>, newest: usize) -> Option<usize> {
    let at = waiting.partition_point(|call| *call < newest);
    if at < waiting.len() {
        Some(waiting.remove(at))
    } else {
        waiting.pop()
    }
}

/// Judges reasoning: OR3. The list is read from its end, so that the items behind each item are known.
fn reasoning(check: &mut ResponsesCheck<'_>, list: &[Value]) {
    // Whether the next item that is not reasoning is the model's.
    let mut followed = false;
    let mut lone = Vec::new();
    for (at, item) in list.iter().enumerate().rev() {
        if items::kind(item) != "reasoning" {
            followed = is_models(item);
        } else if !followed {
            lone.push((at, item));
        }
    }
    for (at, item) in lone.into_iter().rev() {
        check.report("lone-reasoning", format!("input[{at}]"), &[&id(item)]);
    }
}

/// Returns the items that follow reasoning: their ids, each with the id of the reasoning. Only the
/// server that created the items has this information; the ids alone do not contain it.
#[must_use]
pub fn tied(items: &[Value]) -> BTreeMap<String, String> {
    let mut ties = BTreeMap::new();
    let mut reasoning: Option<&str> = None;
    for item in items {
        match items::kind(item) {
            _ if !is_models(item) => reasoning = None,
            "reasoning" => reasoning = Some(id(item)),
            kind if is_tied(kind) && !id(item).is_empty() => {
                let of = reasoning.map(|of| (id(item).to_owned(), of.to_owned()));
                ties.extend(of);
            }
            _ => {}
        }
    }
    ties
}

/// Judges OR4: returns a fault for the first item that is sent with its id but without the reasoning
/// that it belongs to according to `ties`.
#[must_use]
pub fn untied(request: &Value, ties: &BTreeMap<String, String>) -> Option<Fault> {
    let mut reasoned = false;
    let input = request.get("input").and_then(Value::as_array)?;
    input.iter().enumerate().find_map(|(at, item)| {
        let kind = items::kind(item);
        if !is_models(item) || kind == "reasoning" {
            reasoned = kind == "reasoning";
            return None;
        }
        let id = id(item);
        let of = ties.get(id).filter(|_| !reasoned && is_tied(kind))?;
        Some(TABLE.fault(
            "without-reasoning",
            format!("input[{at}]"),
            &[&id, &kind, of],
        ))
    })
}

/// Returns `true` if the model produced the item.
fn is_models(item: &Value) -> bool {
    match items::kind(item) {
        "message" => item.get("role").and_then(Value::as_str) == Some("assistant"),
        kind => !items::is_clients(kind),
    }
}

fn call_id(item: &Value) -> Option<&str> {
    let id = item.get("call_id").and_then(Value::as_str);
    // In an older format, a local shell's call uses its own id.
    id.or_else(|| {
        let shell = items::kind(item).starts_with("local_shell_call");
        shell.then(|| item.get("id")?.as_str()).flatten()
    })
}

fn id(item: &Value) -> &str {
    item.get("id").and_then(Value::as_str).unwrap_or_default()
}
