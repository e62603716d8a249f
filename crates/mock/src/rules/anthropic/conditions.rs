//! The conditions of `rules/anthropic.txt` that are code.

use std::collections::BTreeSet;

use plimsoll_wire::__internals::anthropic::family_of;
use plimsoll_wire::__internals::is_word;
use plimsoll_wire::anthropic::{MIN_BUDGET, MessagesProfile};
use serde_json::Value;

use super::thinking::is_thinking;
use crate::rules::table::{Flag, content, entries, kind, role, text};

/// The longest name of a tool.
const MAX_NAME: usize = 128;
/// The prefix of the beta header that announces thinking between tool calls.
const INTERLEAVED: &str = "interleaved-thinking-";

/// All conditions by name.
pub(super) const ALL: [(&str, Flag<MessagesProfile>); 19] = [
    ("positive", |_, _, max| {
        max.and_then(Value::as_u64).is_some_and(|max| max > 0)
    }),
    ("over-output", |check, _, max| {
        let max = max.and_then(Value::as_u64).zip(check.profile.max_output);
        max.is_some_and(|(max, limit)| max > limit)
    }),
    ("up-to-1", |_, _, value| {
        let value = value.and_then(Value::as_f64);
        value.is_some_and(|value| (0.0..=1.0).contains(&value))
    }),
    // With thinking between tool calls, the budget covers all replies of a loop together, so it may
    // exceed the limit of one reply.
    ("all-thinking", |check, request, max| {
        let max = max.filter(|max| !max.is_null());
        let max = max.map(|max| max.as_u64().unwrap_or(0));
        let budget = budget(request.get("thinking")).filter(|budget| *budget >= MIN_BUDGET);
        let fits = budget.zip(max).is_none_or(|(budget, max)| budget < max);
        let mut betas = check.betas.split(',').map(str::trim);
        !fits && !betas.any(|beta| beta.starts_with(INTERLEAVED))
    }),
    ("budgeted", |_, _, thinking| budget(thinking).is_some()),
    ("small-budget", |_, _, thinking| {
        budget(thinking).is_some_and(|budget| budget < MIN_BUDGET)
    }),
    ("blank-stop", |_, request, _| {
        let mut stops = entries(request, "stop_sequences").iter();
        stops.any(|stop| stop.as_str().is_some_and(|stop| stop.trim().is_empty()))
    }),
    ("repeated", |_, request, _| {
        let names = entries(request, "tools")
            .iter()
            .map(|tool| text(tool, "name"));
        let mut known = BTreeSet::new();
        let mut names = names.filter(|name| !name.is_empty());
        names.any(|name| !known.insert(name))
    }),
    ("family", |_, tool, _| family_of(kind(tool)).is_some()),
    ("named-tools", |_, request, _| {
        has_tool(request, |name| !name.is_empty())
    }),
    ("known-tool", |_, request, choice| {
        let chosen = choice.map_or("", |choice| text(choice, "name"));
        has_tool(request, |name| !name.is_empty() && name == chosen)
    }),
    ("out-of-order", |check, edit, _| {
        let management = check.request.get("context_management");
        let edits = management.map(|management| entries(management, "edits"));
        let mut earlier = edits.unwrap_or_default().iter().take(check.entry.0);
        kind(edit).starts_with("clear_thinking")
            && earlier.any(|edit| kind(edit).starts_with("clear_tool_uses"))
    }),
    ("compacts", |_, edit, _| kind(edit).starts_with("compact")),
    ("word", |_, _, id| {
        id.and_then(Value::as_str).is_some_and(is_word)
    }),
    ("tool-name", |_, _, name| {
        let name = name.and_then(Value::as_str);
        name.is_some_and(|name| is_word(name) && name.len() <= MAX_NAME)
    }),
    ("later-system", |check, _, _| {
        check.profile.later_system && check.entry.0 > 0
    }),
    // The last message, if it is the assistant's.
    ("prefill", |check, message, _| {
        let (index, count) = check.entry;
        role(message) == "assistant" && index + 1 == count
    }),
    ("ends-thinking", |_, message, _| {
        content(message).last().is_some_and(is_thinking)
    }),
    // Blocks of the provider's own tools, which are passed through.
    ("provider", |_, block, _| {
        kind(block).ends_with("_tool_use") || kind(block).ends_with("_tool_result")
    }),
];

fn budget(thinking: Option<&Value>) -> Option<u64> {
    thinking?.get("budget_tokens")?.as_u64()
}

fn has_tool(request: &Value, is_meant: impl Fn(&str) -> bool) -> bool {
    let mut tools = entries(request, "tools").iter();
    tools.any(|tool| is_meant(text(tool, "name")))
}
