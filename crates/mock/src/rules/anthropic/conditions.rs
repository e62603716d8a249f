//! The conditions of `rules/anthropic.txt` that are code.

use std::collections::BTreeSet;

use plimsoll_wire::__internals::anthropic::{family_of, goes_on_from};
use plimsoll_wire::anthropic::{MIN_BUDGET, MessagesProfile};
use serde_json::Value;

use crate::rules::table::{Flag, content, entries, kind, text};

/// The prefix of the beta header that announces thinking between tool calls.
const INTERLEAVED: &str = "interleaved-thinking-";

/// All conditions by name.
pub(super) const ALL: [(&str, Flag<MessagesProfile>); 6] = [
    ("over-output", |check, _, max| {
        let max = max.and_then(Value::as_u64).zip(check.profile.max_output);
        max.is_some_and(|(max, limit)| max > limit)
    }),
    // With thinking between tool calls, the budget covers all replies of a loop together, so it may
    // exceed the limit of one reply.
    ("all-thinking", |check, request, max| {
        let max = max.filter(|max| !max.is_null());
        let max = max.map(|max| max.as_u64().unwrap_or(0));
        let budget = request.pointer("/thinking/budget_tokens");
        let budget = budget.and_then(Value::as_u64);
        let budget = budget.filter(|budget| *budget >= MIN_BUDGET);
        let fits = budget.zip(max).is_none_or(|(budget, max)| budget < max);
        let mut betas = check.betas.split(',').map(str::trim);
        !fits && !betas.any(|beta| beta.starts_with(INTERLEAVED))
    }),
    ("repeated", |_, request, _| {
        let tools = entries(request, "tools").iter();
        let mut names = tools
            .map(|tool| text(tool, "name"))
            .filter(|name| !name.is_empty());
        let mut known = BTreeSet::new();
        names.any(|name| !known.insert(name))
    }),
    ("paused", |_, message, _| {
        let last = content(message).last();
        last.is_some_and(|block| goes_on_from(kind(block)))
    }),
    ("family", |_, tool, _| family_of(kind(tool)).is_some()),
    ("out-of-order", |check, edit, _| {
        let management = check.request.get("context_management");
        let edits = management.map(|management| entries(management, "edits"));
        let mut earlier = edits.unwrap_or_default().iter().take(check.entry);
        kind(edit).starts_with("clear_thinking")
            && earlier.any(|edit| kind(edit).starts_with("clear_tool_uses"))
    }),
];
