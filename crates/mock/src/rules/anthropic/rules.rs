//! [`TABLE`]: the rules for single values, and the conditions of these rules that are code.

use std::sync::LazyLock;

use plimsoll_wire::__internals::is_word;
use plimsoll_wire::anthropic::{
    EffortSupport, MIN_BUDGET, MessagesProfile, NoThinking, ThinkingStyle,
};
use serde_json::Value;

use super::validate::is_thinking;
use super::validate_settings::INTERLEAVED;
use crate::rules::table::{Table, content, entries, role, text};

/// The longest name of a tool.
const MAX_NAME: usize = 128;

/// The rules for single values.
pub(crate) static TABLE: LazyLock<Table<MessagesProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/anthropic.txt"),
        &[
            ("positive", |_, _, max| {
                max.and_then(Value::as_u64).is_some_and(|max| max > 0)
            }),
            ("up-to-1", |_, _, value| {
                let value = value.and_then(Value::as_f64);
                value.is_some_and(|value| (0.0..=1.0).contains(&value))
            }),
            ("always-thinks", |check, _, _| {
                check.profile.no_thinking == NoThinking::Refused
            }),
            ("never-thinks", |check, _, _| {
                check.profile.thinking == ThinkingStyle::None
            }),
            ("by-budget", |check, _, _| {
                check.profile.thinking == ThinkingStyle::Budget
            }),
            ("by-effort", |check, _, _| {
                check.profile.thinking == ThinkingStyle::Adaptive
            }),
            // With thinking between tool calls, the budget covers all replies of a loop together, so it
            // may exceed the limit of one reply.
            ("all-thinking", |check, request, max| {
                let max = max.filter(|max| !max.is_null());
                let max = max.map(|max| max.as_u64().unwrap_or(0));
                let budget = budget(request.get("thinking")).filter(|budget| *budget >= MIN_BUDGET);
                let fits = budget.zip(max).is_none_or(|(budget, max)| budget < max);
                !fits && !check.announces(INTERLEAVED)
            }),
            ("budgeted", |_, _, thinking| budget(thinking).is_some()),
            ("small-budget", |_, _, thinking| {
                budget(thinking).is_some_and(|budget| budget < MIN_BUDGET)
            }),
            ("unsampled", |check, _, _| !check.profile.temperature),
            ("one-sampler", |check, _, _| {
                check.profile.temperature && !check.profile.both_samplers
            }),
            ("no-effort", |check, _, _| {
                check.profile.effort == EffortSupport::Refused
            }),
            ("blank-stop", |_, _, stops| {
                let blank = |stop: &Value| stop.as_str().is_some_and(|stop| stop.trim().is_empty());
                stops
                    .and_then(Value::as_array)
                    .is_some_and(|stops| stops.iter().any(blank))
            }),
            ("unforced", |check, _, _| !check.profile.forced_tools),
            ("named-tools", |_, request, _| {
                has_tool(request, |name| !name.is_empty())
            }),
            ("known-tool", |_, request, choice| {
                let chosen = choice.map_or("", |choice| text(choice, "name"));
                has_tool(request, |name| !name.is_empty() && name == chosen)
            }),
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
                let kind = text(block, "type");
                kind.ends_with("_tool_use") || kind.ends_with("_tool_result")
            }),
        ],
    )
});

fn budget(thinking: Option<&Value>) -> Option<u64> {
    thinking?.get("budget_tokens")?.as_u64()
}

fn has_tool(request: &Value, is_meant: impl Fn(&str) -> bool) -> bool {
    let mut tools = entries(request, "tools").iter();
    tools.any(|tool| is_meant(text(tool, "name")))
}
