//! Checks whether tool calls and tool messages answer each other: OC1, OC2, OC3, OC7's count, V3 and
//! V4. Part of the validator.

use std::collections::HashMap;

use plimsoll_wire::openai_chat::ErrorStyle;
use serde_json::Value;

use super::validate::{ChatCheck, calls, role};

/// Judges a list of messages.
pub(super) fn check(check: &mut ChatCheck<'_>, messages: &[Value]) {
    let mut rest = messages.iter().enumerate().peekable();
    while let Some((index, message)) = rest.next() {
        if role(message) == "tool" {
            orphan(check, index, message, messages);
            continue;
        }
        let ids = ids(message);
        if ids.is_empty() {
            continue;
        }
        let mut batch = Batch::of(ids);
        while let Some((index, tool)) = rest.next_if(|(_, message)| role(message) == "tool") {
            batch.answer(check, index, tool);
        }
        batch.end(check, index, rest.peek().copied());
    }
}

/// The calls of a message, and the number of calls and results for each id. The counts are kept in maps
/// because a message may have thousands of calls.
struct Batch<'m> {
    call_ids: Vec<&'m str>,
    of: HashMap<&'m str, CallCounts>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CallCounts {
    calls: usize,
    results: usize,
}

impl<'m> Batch<'m> {
    fn of(call_ids: Vec<&'m str>) -> Self {
        let mut of: HashMap<&'m str, CallCounts> = HashMap::with_capacity(call_ids.len());
        for id in &call_ids {
            of.entry(id).or_default().calls += 1;
        }
        Self { call_ids, of }
    }

    /// Takes a result. Results are paired by their ids, in any order.
    fn answer(&mut self, check: &mut ChatCheck<'_>, index: usize, tool: &Value) {
        let place = format!("messages[{index}].tool_call_id");
        let id = tool.get("tool_call_id").and_then(Value::as_str);
        let id = id.unwrap_or_default();
        match self.of.get_mut(id) {
            Some(counted) if counted.results < counted.calls => counted.results += 1,
            Some(_) => {
                check.report("second-result", place, &[&id]);
            }
            None => unknown_call(check, place, id),
        }
    }

    /// Returns the calls without a result, in their order. If two calls have the same id, the first one
    /// is answered first.
    fn open(&self) -> Vec<&'m str> {
        let answered = self.of.iter().map(|(id, counted)| (*id, counted.results));
        let mut answered: HashMap<&str, usize> = answered.collect();
        let mut take_result = |id: &&'m str| {
            let left = answered.entry(id).or_default();
            *left = left.checked_sub(1)?;
            Some(())
        };
        let mut call_ids = self.call_ids.clone();
        call_ids.retain(|id| take_result(id).is_none());
        call_ids
    }

    fn end(self, check: &mut ChatCheck<'_>, index: usize, next: Option<(usize, &Value)>) {
        let place = format!("messages[{index}].tool_calls");
        let all = self.call_ids.len();
        if self.of.len() < all {
            check.report("duplicate-call", place.clone(), &[]);
        }
        let open = self.open();
        if open.is_empty() {
            return;
        }
        let open_ids = open.join(", ");
        if check.profile.voice == ErrorStyle::Mistral {
            check.report("count", place.clone(), &[]);
        } else {
            check.report("open-calls", place.clone(), &[&open_ids]);
        }
        if let Some((index, message)) = next
            && matches!(role(message), "user" | "system" | "developer")
        {
            check.report(
                "message-before-results",
                format!("messages[{index}]"),
                &[&open_ids],
            );
        }
        if open.len() < all {
            check.report("part-of-batch", place, &[]);
        }
    }
}

fn ids(message: &Value) -> Vec<&str> {
    calls(message)
        .iter()
        .filter_map(|call| call.get("id").and_then(Value::as_str))
        .collect()
}

/// Reports a tool message that does not follow an assistant message with calls.
fn orphan(check: &mut ChatCheck<'_>, index: usize, message: &Value, messages: &[Value]) {
    let place = format!("messages[{index}].role");
    if check.profile.voice == ErrorStyle::Mistral {
        let previous = index.checked_sub(1).and_then(|at| messages.get(at));
        let previous = previous.map_or("none", role);
        check.unexpected(place, "tool", previous);
        return;
    }
    let id = message.get("tool_call_id").and_then(Value::as_str);
    unknown_call(check, place, id.unwrap_or_default());
}

fn unknown_call(check: &mut ChatCheck<'_>, place: String, id: &str) {
    if check.profile.voice == ErrorStyle::Mistral {
        check.report("unknown-call-id", place, &[&id]);
        return;
    }
    check.report("orphan", place, &[]);
}
