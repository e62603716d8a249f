//! The rules that compare items: pairs of tool calls and outputs, and reasoning with the items behind it:
//! OR1 to OR4, V3 and V4. Rules that depend on the server's own records are not included.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plimsoll_wire::__internals::openai_responses::items;
use serde_json::Value;

use super::validate::{ResponsesCheck, TABLE};
use crate::rules::fault::Fault;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{entries, role, text};

/// A call, and whether an item answers it.
struct CallItem<'m> {
    at: usize,
    id: &'m str,
    /// The type of the call.
    kind: &'static str,
    answered: bool,
    /// The number of the model's turn.
    batch: usize,
}

/// Pairs calls and outputs by their ids, in any order.
pub(super) fn calls(check: &mut ResponsesCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let mut calls: Vec<CallItem<'_>> = Vec::new();
    // The open calls by id and type of output, oldest first.
    let mut open: BTreeMap<(&str, &str), VecDeque<usize>> = BTreeMap::new();
    // The number of the model's newest turn.
    let mut batch = 0;
    let mut ids = BTreeSet::new();
    let mut is_after_model = false;
    for (at, item) in entries(request, "input").iter().enumerate() {
        let kind = items::kind(item);
        let is_model = is_models(item);
        batch += usize::from(is_model && !is_after_model);
        is_after_model = is_model;
        let mut pairs = items::PAIRS.iter().copied();
        let Some((call, output)) = pairs.find(|(call, output)| [*call, *output].contains(&kind))
        else {
            continue;
        };
        let place = format!("input[{at}].call_id");
        let id = call_id(item);
        if call == kind {
            // A search on the server's side needs no output, and has no id.
            let Some(id) = id else { continue };
            let is_callers = matches!(kind, "function_call" | "custom_tool_call");
            if is_callers && !ids.insert(id) {
                check.report("duplicate-call", place, &[&id]);
            }
            let pair = (id, paired_output(output));
            open.entry(pair).or_default().push_back(calls.len());
            calls.push(CallItem {
                at,
                id,
                kind: call,
                answered: false,
                batch,
            });
            continue;
        }
        let id = id.unwrap_or_default();
        // An output without a call that has the server's id: the server's own search.
        if id.is_empty() && text(item, "execution") == "server" {
            continue;
        }
        let Some(waiting) = open.get_mut(&(id, paired_output(output))) else {
            check.report("no-call", place, &[&spoken(call), &id]);
            continue;
        };
        match waiting.pop_front().and_then(|call| calls.get_mut(call)) {
            Some(call) => call.answered = true,
            None => check.report("second-result", place, &[&id]),
        }
    }
    let answered = calls.iter().filter(|call| call.answered);
    let begun: BTreeSet<usize> = answered.map(|call| call.batch).collect();
    for call in calls.iter().filter(|call| !call.answered) {
        let place = format!("input[{}]", call.at);
        check.report("open-call", place.clone(), &[&spoken(call.kind), &call.id]);
        if begun.contains(&call.batch) {
            check.report("part-of-batch", place, &[]);
        }
    }
}

/// Returns the name of a call's type in errors.
fn spoken(kind: &str) -> String {
    kind.replace('_', " ")
}

/// Returns the type by which an output is paired with its call. Codex answers calls of a local shell as
/// those of a function, and the API accepts that.
fn paired_output(output: &'static str) -> &'static str {
    match output {
        "local_shell_call_output" => "function_call_output",
        other => other,
    }
}

/// Judges whether an item of the model follows reasoning: OR3.
pub(super) fn reasoning(check: &mut ResponsesCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    // From the end, so that the items behind each item are known.
    let mut followed = false;
    let mut lone = Vec::new();
    for (at, item) in entries(request, "input").iter().enumerate().rev() {
        if items::kind(item) != "reasoning" {
            followed = is_models(item);
        } else if !followed {
            lone.push((at, text(item, "id")));
        }
    }
    for (at, id) in lone.into_iter().rev() {
        check.report("lone-reasoning", format!("input[{at}]"), &[&id]);
    }
}

/// Returns the items that follow reasoning: their ids, each with the id of the reasoning. Only the
/// server that created the items has this information; the ids alone do not contain it.
#[must_use]
pub fn tied(items: &[Value]) -> BTreeMap<String, String> {
    let mut ties = BTreeMap::new();
    let mut reasoning: Option<&str> = None;
    for item in items {
        let id = text(item, "id");
        match items::kind(item) {
            _ if !is_models(item) => reasoning = None,
            "reasoning" => reasoning = Some(id),
            kind if items::is_tied(kind) && !id.is_empty() => {
                ties.extend(reasoning.map(|of| (id.to_owned(), of.to_owned())));
            }
            _ => {}
        }
    }
    ties
}

/// Judges OR4: returns a fault for the first item that is sent with its id but without the reasoning
/// that it belongs to. `tie` returns the id of the reasoning for the id of an item.
#[must_use]
pub fn untied(request: &Value, mut tie: impl FnMut(&str) -> Option<String>) -> Option<Fault> {
    let mut reasoned = false;
    entries(request, "input")
        .iter()
        .enumerate()
        .find_map(|(at, item)| {
            let kind = items::kind(item);
            if !is_models(item) || kind == "reasoning" {
                reasoned = kind == "reasoning";
                return None;
            }
            let id = text(item, "id");
            let of = tie(id).filter(|_| !reasoned && items::is_tied(kind))?;
            let place = format!("input[{at}]");
            Some(TABLE.fault("without-reasoning", place, &[&id, &kind, &of]))
        })
}

/// Returns `true` if the model produced the item.
fn is_models(item: &Value) -> bool {
    match items::kind(item) {
        "message" => role(item) == "assistant",
        kind => !items::is_clients(kind),
    }
}

fn call_id(item: &Value) -> Option<&str> {
    let id = |key: &str| item.get(key).and_then(Value::as_str);
    // In an older format, a local shell's call uses its own id.
    let is_shell = || items::kind(item).starts_with("local_shell_call");
    id("call_id").or_else(|| id("id").filter(|_| is_shell()))
}
