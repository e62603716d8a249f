//! Whether tool calls and their outputs answer each other, and reasoning stands with what came of
//! it: OR1 to OR4, V3 and V4. Part of the validator; it judges and repairs nothing.
//!
//! The server's words are its own: tidy:allow-file(function call)

use serde_json::Value;

use super::items;
use super::profile::ReasoningItems;
use super::validate::Check;
use crate::fault::Rule;

/// Judges the items of an input.
pub(super) fn check(check: &mut Check<'_>, list: &[Value]) {
    calls(check, list);
    reasoning(check, list);
}

/// A call, and the item that answers it.
struct Asked<'m> {
    at: usize,
    id: &'m str,
    /// How it is spoken of, and what its output is called.
    spoken: &'static str,
    output: &'static str,
    answered: Option<usize>,
    /// Which run of the model's items it is of.
    batch: usize,
}

fn calls(check: &mut Check<'_>, list: &[Value]) {
    let mut asked: Vec<Asked<'_>> = Vec::new();
    let mut batch = 0;
    // Where the newest batch begins.
    let mut newest = 0;
    let mut said_by_model = false;
    for (at, item) in list.iter().enumerate() {
        let kind = items::kind(item);
        let model = is_models(item);
        if model && !said_by_model {
            batch += 1;
            newest = asked.len();
        }
        said_by_model = model;
        if let Some((_, spoken, output)) = items::PAIRS.iter().find(|(call, ..)| *call == kind) {
            let Some(id) = call_id(item) else {
                // A search on the server's side waits for nobody.
                continue;
            };
            let same = asked.get(newest..).unwrap_or_default();
            if same.iter().any(|one| one.id == id) {
                let words = "two calls of one turn have the same id";
                check.fault(Rule::V3, format!("input[{at}].call_id"), words);
            }
            asked.push(Asked {
                at,
                id,
                spoken,
                output,
                answered: None,
                batch,
            });
        } else if let Some((_, spoken, output)) =
            items::PAIRS.iter().find(|(.., output)| *output == kind)
        {
            let id = call_id(item).unwrap_or_default();
            // Nobody asked, and the server has an id for it: its own search.
            if id.is_empty() && item.get("execution").and_then(Value::as_str) == Some("server") {
                continue;
            }
            let place = format!("input[{at}].call_id");
            match found(&asked, newest, id, output) {
                Found::Open(found) => {
                    // A batch is answered in the order of its calls.
                    let after = asked.get(found + 1..).unwrap_or_default();
                    let of = asked.get(found).map(|one| one.batch);
                    let late = |one: &Asked<'_>| Some(one.batch) == of && one.answered.is_some();
                    if after.iter().any(late) {
                        let words = "the results of a batch must stand in the order of its calls";
                        check.fault(Rule::V3, place, words);
                    }
                    if let Some(one) = asked.get_mut(found) {
                        one.answered = Some(at);
                    }
                }
                Found::Answered => {
                    let words = format!("tool call {id} has more than one result");
                    check.fault(Rule::V3, place, words);
                }
                Found::Nowhere => {
                    let words =
                        format!("No tool call found for {spoken} output with call_id {id}.");
                    check.fault(Rule::Or2, place, words);
                }
            }
        } else if !model && kind == "message" {
            let newest = asked.get(newest..).unwrap_or_default();
            let waits = |one: &Asked<'_>| {
                one.answered.is_none() && is_answered_later(list, at, one.id, one.output)
            };
            if newest.iter().any(waits) {
                let words = "nothing may stand between a tool call and its result";
                check.fault(Rule::V3, format!("input[{at}]"), words);
            }
        }
    }
    for one in asked.iter().filter(|one| one.answered.is_none()) {
        let words = format!("No tool output found for {} {}.", one.spoken, one.id);
        check.fault(Rule::Or1, format!("input[{}]", one.at), words);
        let whole = |other: &&Asked<'_>| other.batch == one.batch && other.answered.is_some();
        if asked.iter().any(|other| whole(&other)) {
            let words = "a batch of tool calls must be answered whole or not be there";
            check.fault(Rule::V4, format!("input[{}]", one.at), words);
        }
    }
}

/// The call that an output answers.
enum Found {
    /// One that waits for it.
    Open(usize),
    /// Only such as have theirs.
    Answered,
    /// None.
    Nowhere,
}

/// Looks among the newest calls first, which is where it is in nearly all requests.
fn found(asked: &[Asked<'_>], newest: usize, id: &str, output: &str) -> Found {
    let matches = |one: &Asked<'_>| one.id == id && one.output == output;
    let open = |one: &Asked<'_>| matches(one) && one.answered.is_none();
    let (before, last) = asked.split_at(newest.min(asked.len()));
    if let Some(at) = last.iter().position(open) {
        return Found::Open(before.len() + at);
    }
    if let Some(at) = before.iter().rposition(open) {
        return Found::Open(at);
    }
    match asked.iter().any(matches) {
        true => Found::Answered,
        false => Found::Nowhere,
    }
}

fn is_answered_later(list: &[Value], from: usize, id: &str, output: &str) -> bool {
    let mut later = list.iter().skip(from);
    later.any(|item| items::kind(item) == output && call_id(item) == Some(id))
}

/// OR3 and OR4: both ways of the same tie.
fn reasoning(check: &mut Check<'_>, list: &[Value]) {
    let encrypted = check.profile.reasoning == ReasoningItems::Encrypted;
    let mut reasoned = false;
    for (at, item) in list.iter().enumerate() {
        let kind = items::kind(item);
        if !is_models(item) {
            reasoned = false;
            continue;
        }
        if kind == "reasoning" {
            reasoned = true;
            let next = list
                .iter()
                .skip(at + 1)
                .find(|next| items::kind(next) != "reasoning");
            if !next.is_some_and(is_models) {
                let words = format!(
                    "Item '{}' of type 'reasoning' was provided without its required following \
                     item.",
                    id(item)
                );
                check.fault(Rule::Or3, format!("input[{at}]"), words);
            }
            continue;
        }
        let tied = matches!(kind, "message" | "function_call" | "custom_tool_call");
        let id = id(item);
        if encrypted && tied && !reasoned && !id.is_empty() {
            let number = id.split_once('_').map_or(id, |(_, number)| number);
            let words = format!(
                "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: \
                 'rs_{number}'."
            );
            check.fault(Rule::Or4, format!("input[{at}]"), words);
        }
    }
}

/// Whether the model said it.
fn is_models(item: &Value) -> bool {
    match items::kind(item) {
        "message" => item.get("role").and_then(Value::as_str) == Some("assistant"),
        kind => !items::is_clients(kind),
    }
}

fn call_id(item: &Value) -> Option<&str> {
    let id = item.get("call_id").and_then(Value::as_str);
    // A local shell's calls went by their own ids first.
    id.or_else(|| {
        let shell = items::kind(item).starts_with("local_shell_call");
        shell.then(|| item.get("id")?.as_str()).flatten()
    })
}

fn id(item: &Value) -> &str {
    item.get("id").and_then(Value::as_str).unwrap_or_default()
}
