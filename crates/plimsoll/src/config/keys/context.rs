//! Keys for limiting the context.

use plimsoll_context::{LEAST_SUMMARY, SessionPruneConfig};

use super::super::kind::SettingKind::{
    Choice, Digest, Flag, Path, Share, Size, Strategy, Text, Time, Tokens, Whole, Written,
};
use super::super::settings::COUNTERS;

fields! {
    /// How the context is compacted.
    "Context", "" {
        /// How the context is compacted when it becomes too large. Default: `extract`, or
        /// `summarize` if `summary.model` is set.
        context_strategy: Strategy => builder.context_strategy, flag = Some("policy");
        /// Size above which the context is compacted: tokens of the whole request, or a share of
        /// the available tokens. Default: half of the available tokens, but at most 60,000; or the
        /// target divided by 0.7 if that is more.
        trigger: Size => builder.trigger, flag = Some("trigger");
        /// Size that a compaction aims for: tokens of the whole request, or a share of the
        /// available tokens. Default: 0.26 of the available tokens, but 4,000 to 40,000 and at
        /// most 0.6 of them; 0.7 of a trigger in tokens.
        target: Size => builder.target;
        /// Maximum size of one tool result in the context, in tokens. Default: 8,000 or a quarter
        /// of the available tokens, whichever is smaller.
        max_result: Tokens(1) => builder.max_result;
        /// Number of newest complete exchanges that are kept. Default: `1`.
        keep_recent: Whole(1) => builder.keep_recent;
        /// Maximum number of messages in the context. Whole exchanges are evicted. Default: no
        /// limit.
        max_history_messages: Whole(1) => builder.max_history_messages;
        /// Replace long texts in the arguments of old tool calls by digests when compacting: those
        /// of more than `over_chars` characters, 2,000 if true. Default: `false`.
        argument_digest: Digest => builder.argument_digest;
        /// Summarize evicted messages. If false, triggers of summaries have no effect. Default:
        /// `true`.
        summarization: Flag => builder.summarization;
        /// Offer the model tools to recall evicted messages. Default: `true`.
        recall: Flag => builder.recall, flag = Some("no-recall");
        /// The token counter. Default: `"o200k"`.
        counter: Choice(&COUNTERS) => counter;
    }

    /// The summaries of evicted messages.
    "Context", "summary" {
        /// Maximum size of a summary in tokens. A summary without a model is by default as large
        /// as the user's words need. Default: `2000`.
        max_summary_tokens: Tokens(LEAST_SUMMARY.0) => builder.summary.max_summary_tokens;
        /// Largest share of the target that a summary may take. The default without a model is
        /// 0.6. Default: `0.25`.
        share: Share => builder.summary.share;
        /// What writes summaries: a model, or `extract`, which needs no model and keeps the
        /// user's words. Default: `"model"`.
        author: Choice(&["model", "extract"]) => builder.summary.author;
        /// The model that writes summaries, as PROVIDER/NAME. Default: the run's own.
        model: Text => summarizer, flag = Some("summarizer");
        /// File with the summarizer's instructions. Default: the built-in prompt.
        prompt_file: Path => summary_prompt, flag = Some("summary-prompt");
        /// Time limit of one summarizer call, in seconds. Default: 120, or 300 on this machine.
        timeout: Time => builder.driver.summary_timeout;
    }

    /// How old tool results are shortened.
    "Context", "session_prune" {
        /// Number of newest exchanges whose tool results are not pruned. Default: `2`.
        keep_recent_n: Whole(0)
            => builder.session_prune[get_or_insert_default].keep_recent_n;
        /// Maximum size of a pruned result in bytes, including its marker. Default: `200`.
        pruned_tool_result_max_bytes: Whole(SessionPruneConfig::LEAST_BYTES.0)
            => builder.session_prune[get_or_insert_default].pruned_tool_result_max_bytes;
        /// Never prune the first user message. Default: `true`.
        preserve_task: Flag => builder.session_prune[get_or_insert_default].preserve_task;
        /// Prune before every request instead of only when compacting. Default: `false`.
        eager: Flag => builder.session_prune[get_or_insert_default].eager;
    }

    /// A context limited by its size.
    "Context", "context" {
        /// Maximum size of a request in tokens, if the model's window is not smaller. Default:
        /// `100000`.
        max_context_tokens: Tokens(1) => builder.context_config[get_or_insert_default].max_context_tokens;
        /// Tokens reserved for the system prompt. Default: `4000`.
        system_prompt_tokens: Tokens(0) => builder.context_config[get_or_insert_default].system_prompt_tokens;
    }

    /// When and how a context limited by its size is compacted.
    "Context", "compaction" {
        /// Share of the context at which compaction starts. Default: `0.9`.
        compact_at_pct: Share => builder.context_config[get_or_insert_default].compaction.compact_at_pct;
        /// Share of the context kept free below `compact_at_pct`. Default: `0.05`.
        compact_budget_threshold_pct: Share => builder.context_config[get_or_insert_default].compaction.compact_budget_threshold_pct;
        /// Number of earlier runs of the session that the summary covers. Default: `{ fixed_count
        /// = 3 }`.
        compaction_scope: Written("`{ fixed_count = 3 }` or \"token_budget\"")
            => builder.context_config[get_or_insert_default].compaction.compaction_scope;
        /// Number of turns kept from the start of the newest run. Default: `2`.
        keep_first_turns: Whole(0) => builder.context_config[get_or_insert_default].compaction.keep_first_turns;
        /// Number of turns kept from its end, each with all results. Default: `10`.
        keep_recent_turns: Whole(1) => builder.context_config[get_or_insert_default].compaction.keep_recent_turns;
        /// Maximum number of lines per tool result in the kept newest turns. Default: `50`.
        tool_output_max_lines: Whole(1) => builder.context_config[get_or_insert_default].compaction.tool_output_max_lines;
        /// Request size in tokens at which to compact. Replaces the two shares. Default: the two
        /// shares.
        trigger: Tokens(1) => builder.context_config[get_or_insert_default].compaction.trigger;
        /// Request size in tokens that a compaction aims for. Default: 0.70 of the trigger.
        target: Tokens(1) => builder.context_config[get_or_insert_default].compaction.target;
    }
}
