//! [`ArgumentDigest`]: shortens long texts in the arguments of old calls to head and tail, and
//! keeps the JSON around them.
//!
//! It is off unless configured. It never changes the newest batch, nor a loop with a signed
//! thought, because the provider would refuse the changed message.

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::budget::Budget;
use crate::draft::Draft;
use crate::exchange::{Exchange, ExchangeKind};
use crate::item::Item;
use crate::message::{Message, Part, ToolCall};
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::tokens::Bytes;
use crate::truncate::Marker;

/// The default length from which on a text in an argument becomes a digest, in characters.
pub const ARGUMENT_CHARS: usize = 2_000;
/// The maximum size of a digest. It is well below the smallest bound, so a digest is never
/// shortened again.
const DIGEST: Bytes = Bytes(400);
/// The smallest allowed bound: below it, a digest would hardly be shorter.
pub const LEAST_ARGUMENT_CHARS: usize = 500;
/// The tools with which a model manages its context. Their arguments are few and influence the run.
const OWN_TOOLS: [&str; 4] = [
    "recall",
    "recall_search",
    "get_tool_response",
    "context_summarize",
];

/// Shortens texts of more than `over_chars` characters in the arguments of old calls once a plan is
/// due. The result is head and tail around a marker that says how much is missing and how to recall
/// it.
///
/// All old calls are shortened at once, since the provider reads everything after the first edit
/// again anyway.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArgumentDigest {
    /// Longer texts become digests. Default [`ARGUMENT_CHARS`]; at least [`LEAST_ARGUMENT_CHARS`].
    #[default(ARGUMENT_CHARS)]
    pub over_chars: usize,
}

impl Stage for ArgumentDigest {
    fn name(&self) -> &str {
        "digest"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        if !draft.is_due(budget) {
            return;
        }
        for at in old_calls(draft) {
            let Some((Message::Assistant { parts }, _)) = draft.current(at) else {
                continue;
            };
            if let Some(parts) = digested(parts, self.over_chars, &draft.marker(at)) {
                draft.shrink(at, Message::Assistant { parts });
            }
        }
    }
}

impl ArgumentDigest {
    /// Returns the error in the settings, if there is one.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        (self.over_chars < LEAST_ARGUMENT_CHARS).then(|| {
            format!(
                "argument_digest begins at {} characters; choose at least {LEAST_ARGUMENT_CHARS}",
                self.over_chars
            )
        })
    }
}

/// Returns the positions of assistant messages whose calls are all answered and read, except the
/// newest batch and loops with a signed thought.
fn old_calls(draft: &Draft<'_>) -> Vec<usize> {
    let exchanges = draft.exchanges();
    let is_batch = |exchange: &Exchange| {
        exchange.kind == ExchangeKind::Pending
            || (exchange.kind == ExchangeKind::Complete && exchange.at.len() > 1)
    };
    let newest = exchanges.iter().rposition(is_batch).unwrap_or(0);
    let unsent = draft.first_unsent();
    let loops = exchanges.split(|exchange| exchange.kind == ExchangeKind::User);
    let mut old = Vec::new();
    let mut index = 0;
    for turns in loops {
        let signed = turns.iter().any(|turn| is_signed(draft.items(), turn));
        for turn in turns {
            let complete = turn.kind == ExchangeKind::Complete && turn.at.len() > 1;
            if complete && !signed && index < newest && turn.at.end <= unsent {
                old.push(turn.at.start);
            }
            index += 1;
        }
        // Skip the user message between two loops.
        index += 1;
    }
    old
}

fn is_signed(items: &[Item], exchange: &Exchange) -> bool {
    let items = items.get(exchange.at.clone()).unwrap_or_default();
    let mut parts = items.iter().flat_map(|item| item.message.parts());
    parts.any(|part| match part {
        Part::Thinking(thinking) => thinking.opaque.is_some(),
        Part::ToolCall(call) => call.opaque.is_some(),
        _ => false,
    })
}

/// Replaces long texts in the parts by digests. Returns `None` if there are none.
fn digested(parts: &[Part], over: usize, marker: &Marker) -> Option<Vec<Part>> {
    let mut changed = false;
    let digested = parts
        .iter()
        .map(|part| match part {
            Part::ToolCall(call) if !OWN_TOOLS.contains(&call.name.as_str()) => {
                match digest(&call.arguments, over, marker) {
                    Some(arguments) => {
                        changed = true;
                        Part::ToolCall(ToolCall {
                            arguments,
                            ..call.clone()
                        })
                    }
                    None => part.clone(),
                }
            }
            _ => part.clone(),
        })
        .collect();
    changed.then_some(digested)
}

/// Replaces the string values of more than `over` characters in JSON by digests, and keeps all
/// other bytes. Returns `None` if there are no such values, or if the text is not JSON.
fn digest(json: &str, over: usize, marker: &Marker) -> Option<String> {
    // A character has at least one byte.
    if json.len() <= over {
        return None;
    }
    serde_json::from_str::<serde::de::IgnoredAny>(json).ok()?;
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(start) = json.get(at..)?.find('"').map(|found| at + found) {
        let end = end_of_string(json, start)?;
        let literal = json.get(start..end)?;
        let is_key = json.get(end..)?.trim_start().starts_with(':');
        if literal.len() > over && !is_key {
            let text: String = serde_json::from_str(literal).ok()?;
            let short = marker.head_tail(&text, DIGEST);
            if let Some(short) = short.filter(|_| text.chars().count() > over) {
                out.push_str(json.get(copied..start)?);
                out.push_str(&serde_json::to_string(&short).ok()?);
                copied = end;
            }
        }
        at = end;
    }
    out.push_str(json.get(copied..)?);
    (copied > 0).then_some(out)
}

/// Returns the end of the string that begins at `start`, including its closing quote.
fn end_of_string(json: &str, start: usize) -> Option<usize> {
    let inside = json.get(start + 1..)?;
    let mut escaped = false;
    let end = inside.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    Some(start + 1 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(json: &str) -> Option<String> {
        digest(json, ARGUMENT_CHARS, &Marker::default())
    }

    #[test]
    fn only_long_string_values_change() {
        let long = "l".repeat(2_001);
        let same = "s".repeat(2_000);
        let crabs = "🦀".repeat(2_000);
        let quotes = "\\\"".repeat(2_500);
        let key = "k".repeat(3_000);
        for (json, digests) in [
            (String::new(), 0),
            ("not json".repeat(400), 0),
            (format!("{{\"a\": \"{same}\"}}"), 0),
            (format!("{{\"a\": \"{crabs}\"}}"), 0),
            (format!("{{\"{key}\" : 1}}"), 0),
            (format!("{{\"a\": \"{long}\""), 0),
            (format!("{{\"a\": \"{long}\"}}"), 1),
            (format!("\"{long}\""), 1),
            (
                format!(
                    "{{ \"n\" : 1.50 , \"{key}\":[\"{long}\",{{\"b\":\"{quotes}\"}},true, 12345678901234567890]}}"
                ),
                2,
            ),
            (format!("{{\"a\":\"{long}\",\"a\":\"{long}\"}}"), 2),
        ] {
            let short = short(&json);
            assert_eq!(short.is_some(), digests > 0, "{json:.60}");
            let Some(short) = short else { continue };
            assert_eq!(short.matches("[pruned: ").count(), digests);
            serde_json::from_str::<serde_json::Value>(&short).unwrap();
            assert!(short.len() < json.len());
            assert_eq!(
                super::digest(&short, ARGUMENT_CHARS, &Marker::default()),
                None
            );
            if json.contains("1.50") {
                assert!(short.starts_with("{ \"n\" : 1.50 , "));
                assert!(short.ends_with(",true, 12345678901234567890]}"));
            }
        }
    }

    #[test]
    fn a_digest_says_what_is_missing() {
        let text = format!("begin {} end", "x".repeat(5_000));
        let json = serde_json::json!({"text": text, "path": "a.rs"}).to_string();
        let short = digest(&json, ARGUMENT_CHARS, &Marker::with_note("recall m3")).unwrap();
        let value: serde_json::Value = serde_json::from_str(&short).unwrap();
        let digest = value["text"].as_str().unwrap();
        assert!(digest.starts_with("begin x") && digest.ends_with("x end"));
        assert!(digest.contains("; recall m3]"));
        assert!(digest.len() <= 400);
        assert_eq!(value["path"], "a.rs");
    }
}
