//! Keys for limiting the context.

use plimsoll_context::{LEAST_ARGUMENT_CHARS, LEAST_SUMMARY};

use super::super::key::{
    Preset::{Value, Words},
    SettingKey, SettingTable, key,
};
use super::super::kind::SettingKind::*;
use super::super::settings::COUNTERS;
use super::choose;

const CONTEXT: SettingTable = SettingTable("context", "context_config");
const COMPACTION: SettingTable = SettingTable("compaction", "compaction_config");
const SUMMARY: SettingTable = SettingTable("summary", "summary_config");
const DIGEST: SettingTable = SettingTable("argument_digest", "argument_digest");
const PRUNE: SettingTable = SettingTable("session_prune", "session_prune");

pub(super) const ROWS: &[SettingKey] = &[
    key(
        "context_strategy",
        Choice(
            &[
                "evict",
                "summarize",
                "extract",
                "sliding_window",
                "unlimited",
            ],
            |s, name| s.strategy = Some(name),
        ),
        Words("`extract`, or `summarize` if `summary.model` is set"),
        "How the context is compacted when it becomes too large.",
    )
    .flag("policy"),
    key(
        "trigger",
        Size(|s, size| s.trigger = Some(size)),
        Words("half of the available tokens, but at most 60,000"),
        "Size above which the context is compacted: tokens of the whole request, or a share of the available tokens.",
    )
    .flag("trigger"),
    key(
        "target",
        Size(|s, size| s.builder.target = Some(size)),
        Words("0.26 of the available tokens, but 4,000 to 40,000 and at most 0.6 of them; 0.7 of a trigger in tokens"),
        "Size that a compaction aims for: tokens of the whole request, or a share of the available tokens.",
    ),
    key(
        "max_result",
        Tokens(1, |s, tokens| s.builder.max_result = Some(tokens)),
        Words("8,000 or a quarter of the available tokens, whichever is smaller"),
        "Maximum size of one tool result in the context, in tokens.",
    ),
    key(
        "keep_recent",
        Count(1, |s, exchanges| s.builder.keep_recent = exchanges),
        Value("1"),
        "Number of newest complete exchanges that are kept.",
    ),
    key(
        "max_history_messages",
        Count(1, |s, messages| s.builder.max_history_messages = Some(messages)),
        Words("no limit"),
        "Maximum number of messages in the context. Whole exchanges are evicted.",
    ),
    key(
        "argument_digest",
        Flag(|s, on| s.has_digest = on),
        Value("false"),
        "Replace long texts in the arguments of old tool calls by digests when compacting.",
    ),
    key(
        "over_chars",
        Count(LEAST_ARGUMENT_CHARS, |s, chars| {
            s.has_digest = true;
            s.digest.over_chars = chars;
        }),
        Words("2,000"),
        "Length in characters above which an argument is replaced. Enables `argument_digest`.",
    )
    .of(DIGEST),
    key(
        "summarization",
        Flag(|s, on| s.builder.summarization = on),
        Value("true"),
        "Summarize evicted messages. If false, triggers of summaries have no effect.",
    ),
    key(
        "recall",
        Flag(|s, on| s.builder.recall = on),
        Value("true"),
        "Offer the model tools to recall evicted messages.",
    )
    .flag("no-recall"),
    key(
        "counter",
        Choice(&COUNTERS, |s, name| s.counter = name),
        Value("\"o200k\""),
        "The token counter.",
    ),
    key(
        "max_summary_tokens",
        Tokens(LEAST_SUMMARY.0, |s, tokens| {
            s.builder.summary.max_summary_tokens = tokens;
        }),
        Value("2000"),
        "Maximum size of a summary in tokens. A summary without a model is by default as large as the user's words need.",
    )
    .of(SUMMARY),
    key(
        "share",
        Share(|s, share| s.builder.summary.share = share),
        Value("0.25"),
        "Largest share of the target that a summary may take. The default without a model is 0.6.",
    )
    .of(SUMMARY),
    key(
        "author",
        Choice(&["model", "extract"], |s, name| {
            choose(&mut s.builder.summary.author, name);
        }),
        Value("\"model\""),
        "What writes summaries: a model, or `extract`, which needs no model and keeps the user's \
         words.",
    )
    .of(SUMMARY),
    key(
        "model",
        Text(|s, text| s.summarizer = Some(text)),
        Words("the run's own"),
        "The model that writes summaries, as PROVIDER/NAME.",
    )
    .of(SUMMARY)
    .not_portable()
    .flag("summarizer")
    .method("summarizer"),
    key(
        "prompt_file",
        Path(|s, path| s.summary_prompt = Some(path)),
        Words("the built-in prompt"),
        "File with the summarizer's instructions.",
    )
    .of(SUMMARY)
    .not_portable()
    .flag("summary-prompt")
    .method("summary_prompt"),
    key(
        "timeout",
        Time(|s, time| s.builder.driver.summary_timeout = Some(time)),
        Words("120, or 300 on this machine"),
        "Time limit of one summarizer call, in seconds.",
    )
    .of(SUMMARY)
    .method("summary_timeout"),
    key(
        "keep_recent_n",
        Count(0, |s, exchanges| {
            s.builder.session_prune.get_or_insert_default().keep_recent_n = exchanges
        }),
        Value("2"),
        "Number of newest exchanges whose tool results are not pruned.",
    )
    .of(PRUNE),
    key(
        "pruned_tool_result_max_bytes",
        Whole(
            plimsoll_context::SessionPruneConfig::LEAST_BYTES.0,
            |s, bytes| {
                s.builder.session_prune.get_or_insert_default().pruned_tool_result_max_bytes =
                    plimsoll_context::Bytes(bytes);
            },
        ),
        Value("200"),
        "Maximum size of a pruned result in bytes, including its marker.",
    )
    .of(PRUNE),
    key(
        "preserve_task",
        Flag(|s, on| s.builder.session_prune.get_or_insert_default().preserve_task = on),
        Value("true"),
        "Never prune the first user message.",
    )
    .of(PRUNE),
    key(
        "eager",
        Flag(|s, on| s.builder.session_prune.get_or_insert_default().eager = on),
        Value("false"),
        "Prune before every request instead of only when compacting.",
    )
    .of(PRUNE),
    key(
        "max_context_tokens",
        Tokens(1, |s, tokens| s.context.max_context_tokens = tokens),
        Value("100000"),
        "Maximum size of a request in tokens, if the model's window is not smaller.",
    )
    .of(CONTEXT),
    key(
        "system_prompt_tokens",
        Tokens(0, |s, tokens| s.context.system_prompt_tokens = tokens),
        Value("4000"),
        "Tokens reserved for the system prompt.",
    )
    .of(CONTEXT),
    key(
        "compact_at_pct",
        Share(|s, share| s.context.compaction.compact_at_pct = share),
        Value("0.9"),
        "Share of the context at which compaction starts.",
    )
    .of(COMPACTION),
    key(
        "compact_budget_threshold_pct",
        Share(|s, share| s.context.compaction.compact_budget_threshold_pct = share),
        Value("0.05"),
        "Share of the context kept free below `compact_at_pct`.",
    )
    .of(COMPACTION),
    key(
        "compaction_scope",
        Earlier(|s, scope| s.context.compaction.compaction_scope = scope),
        Value("{ fixed_count = 3 }"),
        "Number of earlier runs of the session that the summary covers.",
    )
    .of(COMPACTION),
    key(
        "keep_first_turns",
        Count(0, |s, turns| s.context.compaction.keep_first_turns = turns),
        Value("2"),
        "Number of turns kept from the start of the newest run.",
    )
    .of(COMPACTION),
    key(
        "keep_recent_turns",
        Count(1, |s, turns| s.context.compaction.keep_recent_turns = turns),
        Value("10"),
        "Number of turns kept from its end, each with all results.",
    )
    .of(COMPACTION),
    key(
        "tool_output_max_lines",
        Count(1, |s, lines| {
            s.context.compaction.tool_output_max_lines = lines
        }),
        Value("50"),
        "Maximum number of lines per tool result in the kept newest turns.",
    )
    .of(COMPACTION),
    key(
        "trigger",
        Tokens(1, |s, tokens| s.context.compaction.trigger = Some(tokens)),
        Words("the two shares"),
        "Request size in tokens at which to compact. Replaces the two shares.",
    )
    .of(COMPACTION),
    key(
        "target",
        Tokens(1, |s, tokens| s.context.compaction.target = Some(tokens)),
        Words("0.70 of the trigger"),
        "Request size in tokens that a compaction aims for.",
    )
    .of(COMPACTION),
];
