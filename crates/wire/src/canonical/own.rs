//! Blocks that are the provider's own: those that it would refuse wherever they stand, and calls of
//! its own tools that have lost their results or results that have lost their calls. Not the tool
//! calls that the host runs; those are every protocol's, and `plimsoll_context::repair` mends them.

use std::collections::BTreeSet;

use plimsoll_context::{Message, Opaque, Part};
use serde_json::Value;

use super::repair::Finding;
use super::target::Target;
use crate::anthropic::At;
use crate::fault::Rule;
use crate::{anthropic, openai_chat, openai_responses};

/// Takes out what cannot stay. The messages stay as many as they were.
pub(super) fn clean(messages: &mut [Message], target: &Target, stored: bool) -> Vec<Finding> {
    let mut out = unfit(messages, target, stored);
    let gone: BTreeSet<At> = out.iter().map(|(at, _)| *at).collect();
    out.extend(parted(messages, target, &gone));
    out.sort_by_key(|(at, _)| *at);
    let gone: BTreeSet<At> = out.iter().map(|(at, _)| *at).collect();
    let touched: BTreeSet<usize> = gone.iter().map(|(index, _)| *index).collect();
    for index in touched {
        let mut at = 0;
        if let Some(parts) = messages.get_mut(index).and_then(parts_of) {
            parts.retain(|_| {
                at += 1;
                !gone.contains(&(index, at - 1))
            });
        }
    }
    out.into_iter().map(|(_, finding)| finding).collect()
}

/// What the provider would refuse wherever it stands.
fn unfit(messages: &[Message], target: &Target, stored: bool) -> Vec<(At, Finding)> {
    let mut out = Vec::new();
    for (at, role, opaque) in blocks(messages) {
        let Some(block) = block_of(opaque, target) else {
            continue;
        };
        let fault = match target {
            Target::Chat(_)
                if role == "assistant" && openai_chat::message_keys(opaque).is_some() =>
            {
                None
            }
            Target::Chat(dialect) => match kind(&block) {
                "" => Some((
                    Rule::Shape,
                    "Missing required parameter: 'type'.".to_owned(),
                )),
                kind => openai_chat::unknown_kind(kind, dialect).map(|words| (Rule::Shape, words)),
            },
            Target::Messages(_) if role == "system" => None,
            Target::Messages(_) if is_paired_elsewhere(&block) => Some((
                Rule::Shape,
                "a call, a result or thinking that is none of the transcript's".to_owned(),
            )),
            Target::Messages(profile) => {
                anthropic::unfit(&block, role, profile).map(|fault| (fault.rule, fault.words))
            }
            // Where reasoning stands is judged with what came of it; and what has no kind says
            // something to the message beside it.
            Target::Responses(_)
                if role == "assistant" && matches!(kind(&block), "" | "reasoning") =>
            {
                None
            }
            // A result holds content alone, and all else of it is left out.
            Target::Responses(_) if role == "tool" && !kind(&block).starts_with("input_") => None,
            Target::Responses(profile) => openai_responses::unfit(&block, role, stored, profile)
                .map(|fault| (fault.rule, fault.words))
                .or_else(|| {
                    let id = block.get("call_id").and_then(Value::as_str)?;
                    let mut calls = messages.get(at.0)?.calls();
                    calls.any(|call| call.id.0 == id).then(|| {
                        let words = "two calls of one turn have the same id";
                        (Rule::V3, words.to_owned())
                    })
                }),
        };
        if let Some((rule, words)) = fault {
            out.push((
                at,
                finding(at, rule, kind(&block), "it cannot stand there", Some(words)),
            ));
        }
    }
    out
}

/// Calls of the provider's own tools without a result, and results without a call.
fn parted(messages: &[Message], target: &Target, gone: &BTreeSet<At>) -> Vec<(At, Finding)> {
    match target {
        Target::Chat(_) => Vec::new(),
        Target::Messages(_) => of_servers(messages, gone),
        Target::Responses(_) => of_clients(messages, target, gone),
    }
}

/// Anthropic: the result stands in the same message as the call or in a later one.
fn of_servers(messages: &[Message], gone: &BTreeSet<At>) -> Vec<(At, Finding)> {
    let parted = anthropic::parted(messages, |at| gone.contains(&at));
    let unanswered = parted.calls.iter().map(|(at, kind, _)| {
        let why = "it has no result";
        (*at, finding(*at, Rule::Am1, kind, why, None))
    });
    let unasked = parted.results.iter().map(|(at, kind)| {
        let why = "nothing asked for it";
        (*at, finding(*at, Rule::Am2, kind, why, None))
    });
    unanswered.chain(unasked).collect()
}

/// A call that waits for its output.
struct Open {
    at: At,
    kind: String,
    id: String,
    output: &'static str,
}

/// Responses: the output follows the turn that asked for it, before anybody says anything.
fn of_clients(messages: &[Message], target: &Target, gone: &BTreeSet<At>) -> Vec<(At, Finding)> {
    let mut out = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if !answers(message, target) {
            unanswered(&mut open, &mut out);
        }
        // What a result holds is content, and neither a call nor an output.
        if matches!(message, Message::ToolResult(_)) {
            continue;
        }
        for (at, part) in message.parts().iter().enumerate() {
            let at = (index, at);
            let opaque = match part {
                // Its result comes before theirs, who asked first.
                Part::ToolCall(_) => {
                    unanswered(&mut open, &mut out);
                    continue;
                }
                Part::Opaque(opaque) if !gone.contains(&at) => opaque,
                _ => continue,
            };
            let Some(block) = block_of(opaque, target) else {
                continue;
            };
            let kind = kind(&block);
            let Some(id) = call_id(&block) else {
                continue;
            };
            if let Some((.., output)) = asks(&block) {
                if open.iter().any(|one| one.id == id) {
                    out.push((at, finding(at, Rule::V3, kind, "its id is taken", None)));
                } else {
                    open.push(Open {
                        at,
                        kind: kind.to_owned(),
                        id: id.to_owned(),
                        output,
                    });
                }
            } else if is_output(&block) {
                let asked = open
                    .iter()
                    .position(|one| one.id == id && one.output == kind);
                if let Some(asked) = asked {
                    open.remove(asked);
                } else {
                    let why = "no call before it waits for it";
                    out.push((at, finding(at, Rule::Or2, kind, why, None)));
                }
            }
        }
    }
    unanswered(&mut open, &mut out);
    out
}

/// Whether a message does nothing but answer calls.
fn answers(message: &Message, target: &Target) -> bool {
    let is_answer = |part: &Part| match part {
        Part::Opaque(opaque) => block_of(opaque, target).is_some_and(|block| is_output(&block)),
        _ => false,
    };
    match message {
        Message::ToolResult(_) => true,
        Message::User { parts } => parts.iter().all(is_answer),
        _ => false,
    }
}

fn unanswered(open: &mut Vec<Open>, out: &mut Vec<(At, Finding)>) {
    for one in open.drain(..) {
        let why = "it has no output";
        out.push((one.at, finding(one.at, Rule::Or1, &one.kind, why, None)));
    }
}

/// The pair that an item opens.
fn asks(block: &Value) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let kind = kind(block);
    openai_responses::PAIRS
        .iter()
        .find(|(call, ..)| *call == kind)
}

fn is_output(block: &Value) -> bool {
    let kind = kind(block);
    openai_responses::PAIRS
        .iter()
        .any(|(.., output)| *output == kind)
}

/// By what a call and its output know each other; `None` where nobody waits: a search on the server's
/// side.
fn call_id(block: &Value) -> Option<&str> {
    let id = block.get("call_id").and_then(Value::as_str);
    // A local shell's calls went by their own ids first.
    let shell = kind(block).starts_with("local_shell_call");
    let own = || block.get("id").and_then(Value::as_str).filter(|_| shell);
    match id.or_else(own) {
        None if !is_output(block) || text(block, "execution") == "server" => None,
        Some("") if text(block, "execution") == "server" => None,
        id => Some(id.unwrap_or_default()),
    }
}

/// What a transcript has a place of its own for.
fn is_paired_elsewhere(block: &Value) -> bool {
    matches!(
        kind(block),
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking"
    )
}

/// All blocks that are somebody's own, and in whose message.
fn blocks(messages: &[Message]) -> impl Iterator<Item = (At, &'static str, &Opaque)> {
    messages.iter().enumerate().flat_map(|(index, message)| {
        let role = match message {
            Message::Assistant { .. } => "assistant",
            Message::ToolResult(_) => "tool",
            Message::System { .. } => "system",
            _ => "user",
        };
        let parts = message.parts().iter().enumerate();
        parts.filter_map(move |(at, part)| match part {
            Part::Opaque(opaque) => Some(((index, at), role, opaque)),
            _ => None,
        })
    })
}

/// The block, where it is of the wire that the transcript is for; others are left out anyway.
fn block_of(opaque: &Opaque, target: &Target) -> Option<Value> {
    let origin = match target {
        Target::Chat(_) => openai_chat::ORIGIN,
        Target::Responses(_) => openai_responses::ORIGIN,
        Target::Messages(_) => anthropic::ORIGIN,
    };
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

fn finding(at: At, rule: Rule, kind: &str, why: &str, words: Option<String>) -> Finding {
    Finding {
        at: at.0,
        rule: Some(rule),
        done: format!("left out its block `{kind}`: {why}"),
        words,
    }
}

fn kind(block: &Value) -> &str {
    text(block, "type")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
