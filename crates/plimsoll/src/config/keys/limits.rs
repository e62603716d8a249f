//! Keys for the limits of a run.

use plimsoll_agent::{AtLimit, CountTokens};
use plimsoll_context::Bytes;

use super::super::key::{Preset, SettingKey, key};
use super::super::kind::SettingKind;
use super::AGENT;

pub(super) const ROWS: &[SettingKey] = &[
    key(
        AGENT,
        "max_turns",
        SettingKind::Whole(1, |s, turns| s.limits.max_turns = turns),
        Preset::Value("50"),
        "Maximum number of model calls in a run.",
    )
    .flag("max-turns")
    .method("max_turns"),
    key(
        AGENT,
        "max_total_tokens",
        SettingKind::TokensOrNone(|s, tokens| s.limits.max_total_tokens = tokens),
        Preset::Value("\"none\""),
        "Maximum number of tokens in a run. `count_tokens` decides which tokens count.",
    )
    .flag("max-total-tokens")
    .method("max_total_tokens"),
    key(
        AGENT,
        "count_tokens",
        SettingKind::Choice(&["processed", "growth"], |s, name| {
            s.limits.count_tokens = match name {
                "growth" => CountTokens::Growth,
                _ => CountTokens::Processed,
            };
        }),
        Preset::Value("\"processed\""),
        "Tokens that count toward `max_total_tokens`: all tokens of each call, or only new ones.",
    )
    .method("count_tokens"),
    key(
        AGENT,
        "max_duration",
        SettingKind::TimeOrNone(|s, time| s.limits.max_duration = time),
        Preset::Value("\"none\""),
        "Maximum duration of a run, in seconds. Running calls, tools and hooks are cancelled.",
    )
    .flag("max-duration")
    .method("max_duration"),
    key(
        AGENT,
        "max_cost",
        SettingKind::Dollars(|s, money| s.limits.max_cost = Some(money)),
        Preset::Words("no limit"),
        "Maximum cost of a run in dollars, including summaries and sub-agents.",
    )
    .flag("max-cost")
    .method("max_cost"),
    key(
        AGENT,
        "max_tool_calls",
        SettingKind::Whole(0, |s, calls| s.limits.max_tool_calls = Some(calls)),
        Preset::Words("no limit"),
        "Maximum number of executed tool calls in a run.",
    )
    .flag("max-tool-calls")
    .method("max_tool_calls"),
    key(
        AGENT,
        "max_calls_per_tool",
        SettingKind::Counts(|s, calls| s.limits.max_calls_per_tool = calls),
        Preset::Value("{}"),
        "Maximum number of executed calls in a run, per tool name.",
    )
    .method("max_calls_per_tool"),
    key(
        AGENT,
        "max_identical_tool_calls",
        SettingKind::Whole(1, |s, times| {
            s.limits.max_identical_tool_calls = Some(times)
        }),
        Preset::Words("no limit; 4 with `tool_call_history_size`; 3 for our local models"),
        "How often the model may repeat the same tool calls with the same results.",
    )
    .flag("max-identical-tool-calls")
    .method("max_identical_tool_calls"),
    key(
        AGENT,
        "tool_call_history_size",
        SettingKind::Count(1, |s, size| s.limits.tool_call_history_size = Some(size)),
        Preset::Words("10, or one more than `max_identical_tool_calls`"),
        "Number of tool-call batches that loop detection remembers. Setting it enables loop detection.",
    )
    .method("tool_call_history_size"),
    key(
        AGENT,
        "max_memory",
        SettingKind::Whole(1, |s, bytes| s.limits.max_memory = Some(Bytes(bytes))),
        Preset::Words("no limit"),
        "Maximum memory for the messages of a run, in bytes.",
    )
    .method("max_memory"),
    key(
        AGENT,
        "at_limit",
        SettingKind::Choice(&["finalize", "stop", "rollback"], |s, name| {
            s.limits.at_limit = match name {
                "stop" => AtLimit::Stop,
                "rollback" => AtLimit::Rollback,
                _ => AtLimit::Finalize,
            };
        }),
        Preset::Value("\"finalize\""),
        "What happens at a limit: the model writes a final answer, the run stops, or the run's \
         messages are removed from the view.",
    )
    .flag("at-limit")
    .method("at_limit"),
    key(
        AGENT,
        "max_parallel_tools",
        SettingKind::Count(1, |s, calls| s.max_parallel_tools = Some(calls)),
        Preset::Value("1"),
        "Maximum number of tool calls that run at the same time.",
    )
    .flag("max-parallel-tools")
    .method("max_parallel_tools"),
    key(
        AGENT,
        "tool_execution",
        SettingKind::Execution(|s, execution| s.tool_execution = Some(execution)),
        Preset::Value("\"sequential\""),
        "How the tool calls of one message run: sequential, parallel or batched(N).",
    )
    .flag("tool-execution")
    .method("tool_execution"),
    key(
        AGENT,
        "max_step_result_size",
        SettingKind::Whole(1, |s, bytes| s.max_step_result = Bytes(bytes)),
        Preset::Value("8192"),
        "Maximum size of a tool result in the run's list of steps, in bytes.",
    )
    .method("max_step_result_size"),
    key(
        AGENT,
        "tool_retries",
        SettingKind::Whole(0, |s, retries| {
            s.tool_retries = u32::try_from(retries).unwrap_or(u32::MAX);
        }),
        Preset::Value("3"),
        "Number of retries after a tool call times out. Only idempotent tools are retried.",
    )
    .method("tool_retries"),
    key(
        AGENT,
        "gate_timeout",
        SettingKind::TimeOrNone(|s, time| s.gate_timeout = time),
        Preset::Value("\"none\""),
        "Time after which an unanswered question about a tool call counts as no, in seconds.",
    )
    .method("gate_timeout"),
    key(
        AGENT,
        "hook_timeout",
        SettingKind::Time(|s, time| s.hook_timeout = time),
        Preset::Value("30"),
        "Time limit of a hook, in seconds.",
    )
    .method("hook_timeout"),
];
