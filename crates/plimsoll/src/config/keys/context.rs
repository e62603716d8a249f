//! Keys for limiting the context.

use plimsoll_context::{Author, Economy, LEAST_ARGUMENT_CHARS, LEAST_SUMMARY};
use plimsoll_core::Archive;

use super::super::key::{Preset, SettingKey, key};
use super::super::kind::SettingKind;
use super::AGENT;

const CONTEXT: &str = "context";
const COMPACTION: &str = "compaction";
const SUMMARY: &str = "summary";
const PRUNE: &str = "session_prune";

pub(super) const ROWS: &[SettingKey] = &[
    key(
        AGENT,
        "context_strategy",
        SettingKind::Choice(
            &[
                "evict",
                "summarize",
                "extract",
                "sliding_window",
                "unlimited",
            ],
            |s, name| s.strategy = Some(name),
        ),
        Preset::Words("`extract`, or `summarize` if `summary.model` is set"),
        "What gives way when the context becomes too large.",
    )
    .flag("policy")
    .method("context_strategy"),
    key(
        AGENT,
        "trigger",
        SettingKind::Size(|s, size| s.trigger = Some(size)),
        Preset::Words("when it saves money, at the latest at 0.95 of the available tokens"),
        "Size above which the context is compacted: tokens of the whole request, or a share of the available tokens.",
    )
    .flag("trigger")
    .method("trigger"),
    key(
        AGENT,
        "target",
        SettingKind::Size(|s, size| s.target = Some(size)),
        Preset::Words("0.26 of the available tokens, but 4,000 to 40,000 and at most 0.6 of them; 0.7 of a trigger in tokens"),
        "Size that a compaction aims for: tokens of the whole request, or a share of the available tokens.",
    )
    .method("target"),
    key(
        AGENT,
        "economy",
        SettingKind::Choice(&Economy::NAMES, |s, name| s.economy = Economy::named(name)),
        Preset::Words("priced; fixed if a trigger is set"),
        "When to compact: when it saves money or the limit is near (priced), at the trigger (fixed), or on every turn above the trigger (eager).",
    )
    .flag("economy")
    .method("economy"),
    key(
        AGENT,
        "max_result",
        SettingKind::Tokens(1, |s, tokens| s.max_result = Some(tokens)),
        Preset::Words("8,000 or a quarter of the available tokens, whichever is smaller"),
        "Maximum size of one tool result in the context, in tokens.",
    )
    .method("max_result"),
    key(
        AGENT,
        "keep_recent",
        SettingKind::Count(1, |s, exchanges| s.keep_recent = exchanges),
        Preset::Value("1"),
        "Number of newest complete exchanges that are kept.",
    )
    .method("keep_recent"),
    key(
        AGENT,
        "max_history_messages",
        SettingKind::Count(1, |s, messages| s.max_history = Some(messages)),
        Preset::Words("no limit"),
        "Maximum number of messages in the context. Whole exchanges are evicted.",
    )
    .method("max_history_messages"),
    key(
        AGENT,
        "argument_digest",
        SettingKind::Flag(|s, on| s.has_digest = on),
        Preset::Value("false"),
        "Replace long texts in the arguments of old tool calls by digests when compacting.",
    )
    .method("argument_digest"),
    key(
        "argument_digest",
        "over_chars",
        SettingKind::Count(LEAST_ARGUMENT_CHARS, |s, chars| {
            s.has_digest = true;
            s.digest.over_chars = chars;
        }),
        Preset::Words("2,000"),
        "Length in characters above which an argument is replaced. Enables `argument_digest`.",
    )
    .method("argument_digest"),
    key(
        AGENT,
        "summarization",
        SettingKind::Flag(|s, on| s.summarization = on.into()),
        Preset::Value("true"),
        "Summarize evicted messages. If false, triggers of summaries have no effect.",
    )
    .method("summarization"),
    key(
        AGENT,
        "archive",
        SettingKind::Flag(|s, on| {
            s.archive = match on {
                true => Archive::On,
                false => Archive::Off,
            };
        }),
        Preset::Value("true"),
        "Archive evicted messages, so that the model can recall them.",
    )
    .flag("no-archive")
    .method("archive"),
    key(
        AGENT,
        "counter",
        SettingKind::Choice(&["o200k", "cl100k", "estimate", "chars4"], |s, name| {
            s.counter = name;
        }),
        Preset::Value("\"o200k\""),
        "The token counter.",
    )
    .method("counter"),
    key(
        SUMMARY,
        "max_summary_tokens",
        SettingKind::Tokens(LEAST_SUMMARY.0, |s, tokens| {
            s.summary.max_summary_tokens = tokens;
        }),
        Preset::Value("2000"),
        "Maximum size of a summary in tokens. A summary without a model is by default as large as the user's words need.",
    )
    .method("summary_config"),
    key(
        SUMMARY,
        "share",
        SettingKind::Share(|s, share| s.summary.share = share),
        Preset::Value("0.25"),
        "Largest share of the target that a summary may take. The default without a model is 0.6.",
    )
    .method("summary_config"),
    key(
        SUMMARY,
        "soft_mark",
        SettingKind::Share(|s, share| s.soft_mark = Some(share)),
        Preset::Words("0.85, if the server handles parallel calls"),
        "Share of the trigger at which a summary is started in the background.",
    )
    .method("summary_config"),
    key(
        SUMMARY,
        "author",
        SettingKind::Choice(&["model", "extract"], |s, name| {
            s.summary.author = match name {
                "extract" => Author::Extract,
                _ => Author::Model,
            };
        }),
        Preset::Value("\"model\""),
        "Who writes summaries: a model, or `extract`, which needs no model and keeps the user's words.",
    )
    .method("summary_config"),
    key(
        SUMMARY,
        "model",
        SettingKind::Text(|s, text| s.summarizer = Some(text)),
        Preset::Words("the run's own"),
        "The model that writes summaries, as PROVIDER/NAME.",
    )
    .trusted()
    .flag("summarizer")
    .method("summarizer"),
    key(
        SUMMARY,
        "prompt_file",
        SettingKind::Path(|s, path| s.summary_prompt = Some(path)),
        Preset::Words("the built-in prompt"),
        "File with the summarizer's instructions.",
    )
    .trusted()
    .flag("summary-prompt")
    .method("summary_prompt"),
    key(
        SUMMARY,
        "timeout",
        SettingKind::Time(|s, time| s.summary_timeout = Some(time)),
        Preset::Words("120, or 300 on this machine"),
        "Time limit of one summarizer call, in seconds.",
    )
    .method("summary_timeout"),
    key(
        PRUNE,
        "keep_recent_n",
        SettingKind::Count(0, |s, exchanges| {
            s.prune.get_or_insert_default().keep_recent_n = exchanges
        }),
        Preset::Value("2"),
        "Number of newest exchanges whose tool results are not pruned.",
    )
    .method("session_prune"),
    key(
        PRUNE,
        "pruned_tool_result_max_bytes",
        SettingKind::Whole(
            plimsoll_context::SessionPruneConfig::LEAST_BYTES.0,
            |s, bytes| {
                s.prune.get_or_insert_default().pruned_tool_result_max_bytes =
                    plimsoll_context::Bytes(bytes);
            },
        ),
        Preset::Value("200"),
        "Maximum size of a pruned result in bytes, including its marker.",
    )
    .method("session_prune"),
    key(
        PRUNE,
        "preserve_task",
        SettingKind::Flag(|s, on| s.prune.get_or_insert_default().preserve_task = on),
        Preset::Value("true"),
        "Never prune the first user message.",
    )
    .method("session_prune"),
    key(
        PRUNE,
        "eager",
        SettingKind::Flag(|s, on| s.prune.get_or_insert_default().eager = on),
        Preset::Value("false"),
        "Prune before every request instead of only when compacting.",
    )
    .method("session_prune"),
    key(
        CONTEXT,
        "max_context_tokens",
        SettingKind::Tokens(1, |s, tokens| s.context.max_context_tokens = tokens),
        Preset::Value("100000"),
        "Maximum size of a request in tokens, if the model's window is not smaller.",
    )
    .method("context_config"),
    key(
        CONTEXT,
        "system_prompt_tokens",
        SettingKind::Tokens(0, |s, tokens| s.context.system_prompt_tokens = tokens),
        Preset::Value("4000"),
        "Tokens reserved for the system prompt.",
    )
    .method("context_config"),
    key(
        COMPACTION,
        "compact_at_pct",
        SettingKind::Share(|s, share| s.context.compaction.compact_at_pct = share),
        Preset::Value("0.9"),
        "Share of the context at which compaction starts.",
    )
    .method("compaction_config"),
    key(
        COMPACTION,
        "compact_budget_threshold_pct",
        SettingKind::Share(|s, share| s.context.compaction.compact_budget_threshold_pct = share),
        Preset::Value("0.05"),
        "Share of the context kept free below `compact_at_pct`.",
    )
    .method("compaction_config"),
    key(
        COMPACTION,
        "compaction_scope",
        SettingKind::Earlier(|s, scope| s.context.compaction.compaction_scope = scope),
        Preset::Value("{ fixed_count = 3 }"),
        "Number of earlier runs of the session that the summary covers.",
    )
    .method("compaction_config"),
    key(
        COMPACTION,
        "keep_first_turns",
        SettingKind::Count(0, |s, turns| s.context.compaction.keep_first_turns = turns),
        Preset::Value("2"),
        "Number of turns kept from the start of the newest run.",
    )
    .method("compaction_config"),
    key(
        COMPACTION,
        "keep_recent_turns",
        SettingKind::Count(1, |s, turns| s.context.compaction.keep_recent_turns = turns),
        Preset::Value("10"),
        "Number of turns kept from its end, each with all results.",
    )
    .method("compaction_config"),
    key(
        COMPACTION,
        "tool_output_max_lines",
        SettingKind::Count(1, |s, lines| {
            s.context.compaction.tool_output_max_lines = lines
        }),
        Preset::Value("50"),
        "Maximum number of lines per tool result in the kept newest turns.",
    )
    .method("compaction_config"),
    key(
        COMPACTION,
        "trigger",
        SettingKind::Tokens(1, |s, tokens| s.context.compaction.trigger = Some(tokens)),
        Preset::Words("the two shares"),
        "Request size in tokens at which to compact. Replaces the two shares.",
    )
    .method("compaction_config"),
    key(
        COMPACTION,
        "target",
        SettingKind::Tokens(1, |s, tokens| s.context.compaction.target = Some(tokens)),
        Preset::Words("0.70 of the trigger"),
        "Request size in tokens that a compaction aims for.",
    )
    .method("compaction_config"),
];
