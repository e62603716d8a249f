//! Keys for the limits of a run.

use plimsoll_context::Bytes;

use super::super::key::{
    Preset::{Value, Words},
    SettingKey, key,
};
use super::super::kind::SettingKind::*;
use super::choose;

pub(super) const ROWS: &[SettingKey] = &[
    key(
        "max_turns",
        Whole(1, |s, turns| s.builder.limits.max_turns = turns),
        Value("50"),
        "Maximum number of model calls in a run.",
    )
    .flag("max-turns"),
    key(
        "max_total_tokens",
        TokensOrNone(|s, tokens| s.builder.limits.max_total_tokens = tokens),
        Value("\"none\""),
        "Maximum number of tokens in a run. `count_tokens` decides which tokens count.",
    )
    .flag("max-total-tokens"),
    key(
        "count_tokens",
        Choice(&["processed", "growth"], |s, name| {
            choose(&mut s.builder.limits.count_tokens, name);
        }),
        Value("\"processed\""),
        "Tokens that count toward `max_total_tokens`: all tokens of each call, or only new ones.",
    ),
    key(
        "max_duration",
        TimeOrNone(|s, time| s.builder.limits.max_duration = time),
        Value("\"none\""),
        "Maximum duration of a run, in seconds. Running calls, tools and hooks are cancelled.",
    )
    .flag("max-duration"),
    key(
        "max_cost",
        Dollars(|s, money| s.builder.limits.max_cost = Some(money)),
        Words("no limit"),
        "Maximum cost of a run in dollars, including summaries and sub-agents.",
    )
    .flag("max-cost"),
    key(
        "max_tool_calls",
        Whole(0, |s, calls| s.builder.limits.max_tool_calls = Some(calls)),
        Words("no limit"),
        "Maximum number of executed tool calls in a run.",
    )
    .flag("max-tool-calls"),
    key(
        "max_calls_per_tool",
        Counts(|s, calls| s.builder.limits.max_calls_per_tool = calls),
        Value("{}"),
        "Maximum number of executed calls in a run, per tool name.",
    ),
    key(
        "max_identical_tool_calls",
        Whole(1, |s, times| {
            s.builder.limits.max_identical_tool_calls = Some(times)
        }),
        Words("no limit; 4 with `tool_call_history_size`; 3 for our local models"),
        "How often the model may repeat the same tool calls with the same results.",
    )
    .flag("max-identical-tool-calls"),
    key(
        "tool_call_history_size",
        Count(1, |s, size| {
            s.builder.limits.tool_call_history_size = Some(size)
        }),
        Words("10, or one more than `max_identical_tool_calls`"),
        "Number of tool-call batches that loop detection remembers. Setting it enables loop detection.",
    ),
    key(
        "max_memory",
        Whole(1, |s, bytes| {
            s.builder.limits.max_memory = Some(Bytes(bytes))
        }),
        Words("no limit"),
        "Maximum memory for the messages of a run, in bytes.",
    ),
    key(
        "at_limit",
        Choice(&["finalize", "stop", "rollback"], |s, name| {
            choose(&mut s.builder.limits.at_limit, name);
        }),
        Value("\"finalize\""),
        "What happens at a limit: the model writes a final answer, the run stops, or the run's \
         messages are removed from the view.",
    )
    .flag("at-limit"),
    key(
        "max_parallel_tools",
        Count(1, |s, calls| s.builder.max_parallel_tools = Some(calls)),
        Value("1"),
        "Maximum number of tool calls that run at the same time.",
    )
    .flag("max-parallel-tools"),
    key(
        "tool_execution",
        Execution(|s, execution| s.builder.tool_execution = Some(execution)),
        Value("\"sequential\""),
        "How the tool calls of one message run: sequential, parallel or batched(N).",
    )
    .flag("tool-execution"),
    key(
        "max_step_result_size",
        Whole(1, |s, bytes| {
            s.builder.driver.max_step_result = Bytes(bytes)
        }),
        Value("8192"),
        "Maximum size of a tool result in the run's list of steps, in bytes.",
    ),
    key(
        "tool_retries",
        Whole(0, |s, retries| {
            s.builder.driver.tool_retries = u32::try_from(retries).unwrap_or(u32::MAX);
        }),
        Value("3"),
        "Number of retries after a tool call times out. Only idempotent tools are retried.",
    ),
    key(
        "gate_timeout",
        TimeOrNone(|s, time| s.builder.driver.gate_timeout = time),
        Value("\"none\""),
        "Time after which an unanswered question about a tool call counts as no, in seconds.",
    ),
    key(
        "hook_timeout",
        Time(|s, time| s.hook_timeout = time),
        Value("30"),
        "Time limit of a hook, in seconds.",
    ),
];
