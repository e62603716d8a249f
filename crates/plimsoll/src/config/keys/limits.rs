//! Keys for the limits of a run.

use super::super::kind::SettingKind::{Choice, Dollars, OrNone, Time, Tokens, Whole, Written};

fields! {
    /// The limits of a run.
    "Limits", "" {
        /// Maximum number of model calls in a run. Default: `50`.
        max_turns: Whole(1) => builder.limits.max_turns, flag = Some("max-turns");
        /// Maximum number of tokens in a run. `count_tokens` decides which tokens count. Default:
        /// `"none"`.
        max_total_tokens: OrNone(&Tokens(1)) => builder.limits.max_total_tokens, flag = Some("max-total-tokens");
        /// Tokens that count toward `max_total_tokens`: all tokens of each call, or only new
        /// ones. Default: `"processed"`.
        count_tokens: Choice(&["processed", "growth"]) => builder.limits.count_tokens;
        /// Maximum duration of a run, in seconds. Running calls, tools and hooks are cancelled.
        /// Default: `"none"`.
        max_duration: OrNone(&Time) => builder.limits.max_duration, flag = Some("max-duration");
        /// Maximum cost of a run in dollars, including summaries and sub-agents. Default: no
        /// limit.
        max_cost: Dollars => builder.limits.max_cost, flag = Some("max-cost");
        /// Maximum number of executed tool calls in a run. Default: no limit.
        max_tool_calls: Whole(0) => builder.limits.max_tool_calls, flag = Some("max-tool-calls");
        /// How often the model may repeat the same tool calls with the same results. Default: no
        /// limit; 4 with `tool_call_history_size`; 3 for our local models.
        max_identical_tool_calls: Whole(1) => builder.limits.max_identical_tool_calls, flag = Some("max-identical-tool-calls");
        /// Number of tool-call batches that loop detection remembers. Setting it enables loop
        /// detection. Default: 10, or one more than `max_identical_tool_calls`.
        tool_call_history_size: Whole(1) => builder.limits.tool_call_history_size;
        /// Maximum memory for the messages of a run, in bytes. Default: no limit.
        max_memory: Whole(1) => builder.limits.max_memory;
        /// What happens at a limit: the model writes a final answer, the run stops, or the run's
        /// messages are removed from the view. Default: `"finalize"`.
        at_limit: Choice(&["finalize", "stop", "rollback"]) => builder.limits.at_limit, flag = Some("at-limit");
        /// Maximum number of tool calls that run at the same time. Default: `1`.
        max_parallel_tools: Whole(1) => builder.max_parallel_tools, flag = Some("max-parallel-tools");
        /// How the tool calls of one message run: one after the other, all at the
        /// same time, or N at the same time. Default: `"sequential"`.
        tool_execution: Written("\"sequential\", \"parallel\" or `{ batched = 4 }`")
            => builder.tool_execution, flag = Some("tool-execution");
        /// Maximum size of a tool result in the run's list of steps, in bytes. Default: `8192`.
        max_step_result_size: Whole(1) => builder.driver.max_step_result;
        /// Number of retries after a tool call times out. Only idempotent tools are retried.
        /// Default: `3`.
        tool_retries: Whole(0) => builder.driver.tool_retries;
        /// Time after which an unanswered question about a tool call counts as no, in seconds.
        /// Default: `"none"`.
        gate_timeout: OrNone(&Time) => builder.driver.gate_timeout;
        /// Time limit of a hook, in seconds. Default: `30`.
        hook_timeout: Time => hook_timeout;
    }
}
