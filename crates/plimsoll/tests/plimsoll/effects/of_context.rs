//! Keys for keeping the context small.

use std::time::Duration;

use super::KeyEffect;
use super::scene::{Scene, SceneOutcome, text_of};

const NO_TOOLS: &str = "tools = \"none\"\n";
const EVICT: &str = "tools = \"none\"\ntrigger = 6000\n";
/// By its size, with summaries that no model writes.
const CONTEXT: &str = "tools = \"none\"\nsummary.author = \"extract\"\ncontext.max_context_tokens = 12_000\ncontext.system_prompt_tokens = 1_000\ncompaction.keep_recent_turns = 3\n";
/// Under it, summed up by a model.
const SUMMARIZE: &str = "tools = \"none\"\ncontext_strategy = \"summarize\"\ntrigger = 8_000\n";

/// How many results of looks a request holds whole.
fn whole(seen: &SceneOutcome) -> Vec<usize> {
    let text = text_of(seen.last());
    let held =
        (0..400).filter(|at| text.contains(&format!("at {at}: wave {at} rolls by; wave {at}")));
    held.collect()
}

/// Whether arguments became digests.
fn digests(seen: &SceneOutcome) -> bool {
    let digest = |stage: &String| stage == "digest";
    seen.plans().iter().any(|plan| plan.3.iter().any(digest))
}

/// The longest text between a heading of a summary and its end.
fn summary_of(seen: &SceneOutcome) -> usize {
    let requests = seen.turns();
    let messages = requests.iter().flat_map(|request| request.messages.iter());
    let summaries =
        messages.filter(|message| matches!(***message, plimsoll::Message::Summary { .. }));
    summaries
        .map(|message| super::scene::said(message).len())
        .max()
        .unwrap_or_default()
}

pub(super) const ROWS: &[KeyEffect] = &[
    KeyEffect {
        key: "context_strategy",
        base: EVICT,
        set: "context_strategy = \"sliding_window\"",
        scene: Scene::Work(12),
        shows: |without, with| {
            let stages = |seen: &SceneOutcome| seen.plans()[0].3.join(" ");
            assert!(stages(without).contains("prune") && !stages(with).contains("prune"));
        },
    },
    KeyEffect {
        key: "trigger",
        base: NO_TOOLS,
        set: "trigger = 6000",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(without.largest() > 10_000 && with.largest() <= 6_000);
        },
    },
    KeyEffect {
        key: "target",
        base: EVICT,
        set: "target = 3000",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(without.plans().iter().all(|plan| plan.1 > 3_000));
            assert!(with.plans().iter().all(|plan| plan.1 <= 3_000));
        },
    },
    KeyEffect {
        key: "max_result",
        base: NO_TOOLS,
        set: "max_result = 300",
        scene: Scene::Work(2),
        shows: |without, with| {
            assert!(text_of(with.last()).len() < text_of(without.last()).len() / 2);
        },
    },
    KeyEffect {
        key: "keep_recent",
        base: "tools = \"none\"\ncontext_strategy = \"sliding_window\"\ntrigger = 8_000\ntarget = 1_500\n",
        set: "keep_recent = 4",
        scene: Scene::Work(9),
        shows: |without, with| {
            let left = |seen: &SceneOutcome| seen.planned().messages.len();
            assert!(
                left(with) > left(without),
                "{} {}",
                left(with),
                left(without)
            );
        },
    },
    KeyEffect {
        key: "max_history_messages",
        base: NO_TOOLS,
        set: "max_history_messages = 6",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(without.last().messages.len() > 20);
            assert!(
                with.turns()
                    .iter()
                    .all(|request| request.messages.len() <= 6)
            );
        },
    },
    KeyEffect {
        key: "argument_digest",
        base: "tools = \"none\"\ntrigger = 3500\n",
        set: "argument_digest = true",
        scene: Scene::Notes(14),
        shows: |without, with| assert!(!digests(without) && digests(with)),
    },
    KeyEffect {
        key: "argument_digest",
        base: "tools = \"none\"\ntrigger = 3500\nargument_digest = { over_chars = 5_000 }\n",
        set: "!tools = \"none\"\ntrigger = 3500\nargument_digest = { over_chars = 1_000 }\n",
        scene: Scene::Notes(14),
        shows: |without, with| assert!(!digests(without) && digests(with)),
    },
    KeyEffect {
        key: "summarization",
        base: SUMMARIZE,
        // Without its trigger, which would have no effect.
        set: "!tools = \"none\"\ncontext_strategy = \"summarize\"\nsummarization = false\n",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(!without.summaries().is_empty() && with.summaries().is_empty());
            assert!(with.largest() > 8_000, "it is not summarized at 8,000");
        },
    },
    KeyEffect {
        key: "recall",
        base: EVICT,
        set: "recall = false",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(without.last_tools().contains(&"recall"));
            assert_eq!(with.last_tools(), ["look"]);
        },
    },
    KeyEffect {
        key: "counter",
        base: NO_TOOLS,
        set: "counter = \"chars4\"",
        scene: Scene::Work(3),
        shows: |without, with| assert_ne!(without.largest(), with.largest()),
    },
    KeyEffect {
        key: "summary.author",
        base: SUMMARIZE,
        set: "summary.author = \"extract\"",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(!without.summaries().is_empty() && with.summaries().is_empty());
            assert!(text_of(with.last()).contains("[handover "));
        },
    },
    KeyEffect {
        key: "summary.max_summary_tokens",
        base: SUMMARIZE,
        set: "summary.max_summary_tokens = 200",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(summary_of(with) > 0 && summary_of(with) < summary_of(without) / 2);
        },
    },
    KeyEffect {
        key: "summary.share",
        base: SUMMARIZE,
        set: "summary.share = 0.05",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(summary_of(with) > 0 && summary_of(with) < summary_of(without) / 2);
        },
    },
    KeyEffect {
        key: "summary.prompt_file",
        base: SUMMARIZE,
        set: "summary.prompt_file = \"prompt.md\"",
        scene: Scene::Work(12),
        shows: |without, with| {
            let told = |seen: &SceneOutcome| {
                let first = seen.summaries()[0];
                format!("{}\n{}", first.system, text_of(first)).contains("A prompt from a file.")
            };
            assert!(!told(without) && told(with));
        },
    },
    KeyEffect {
        key: "summary.timeout",
        base: SUMMARIZE,
        set: "summary.timeout = 7",
        scene: Scene::SlowSummary,
        shows: |without, with| {
            assert!(
                without.elapsed > Duration::from_secs(100),
                "{:?}",
                without.elapsed
            );
            assert!(with.elapsed < Duration::from_secs(60), "{:?}", with.elapsed);
        },
    },
    KeyEffect {
        key: "session_prune.keep_recent_n",
        base: "tools = \"none\"\ntrigger = 8_000\ntarget = 3_000\n",
        set: "session_prune.keep_recent_n = 6",
        scene: Scene::Work(9),
        shows: |without, with| {
            let pruned = |seen: &SceneOutcome| text_of(seen.planned()).matches("[pruned: ").count();
            assert!(
                pruned(with) < pruned(without),
                "{} {}",
                pruned(with),
                pruned(without)
            );
        },
    },
    KeyEffect {
        key: "session_prune.pruned_tool_result_max_bytes",
        base: EVICT,
        set: "session_prune.pruned_tool_result_max_bytes = 900",
        scene: Scene::Work(8),
        shows: |without, with| {
            let text = |seen: &SceneOutcome| text_of(seen.last());
            assert!(text(without).contains("[pruned: ") && text(with).contains("[pruned: "));
            assert_ne!(text(without), text(with));
        },
    },
    KeyEffect {
        key: "session_prune.preserve_task",
        base: "tools = \"none\"\ntrigger = 6_000\ntarget = 2_000\n",
        set: "session_prune.preserve_task = false",
        scene: Scene::Runs(6),
        shows: |without, with| {
            let task =
                |seen: &SceneOutcome| text_of(seen.last()).matches("Mind the rocks.").count();
            assert_eq!(task(without), 60);
            assert!(task(with) < 40, "{}", task(with));
        },
    },
    KeyEffect {
        key: "session_prune.eager",
        base: NO_TOOLS,
        set: "session_prune.eager = true",
        scene: Scene::Work(8),
        shows: |without, with| {
            assert_eq!(without.output().plans, 0);
            assert!(with.output().plans > 2);
        },
    },
    KeyEffect {
        key: "context.max_context_tokens",
        base: "tools = \"none\"\ncontext.system_prompt_tokens = 4_000\n",
        set: "context.max_context_tokens = 50_000",
        scene: Scene::Talk,
        shows: |without, with| {
            assert_eq!(with.trigger() - 38_500, without.trigger() - 81_000);
        },
    },
    KeyEffect {
        key: "context.system_prompt_tokens",
        base: "tools = \"none\"\ncontext.max_context_tokens = 100_000\n",
        set: "context.system_prompt_tokens = 9_000",
        scene: Scene::Talk,
        shows: |without, with| assert_eq!(without.trigger() - with.trigger(), 5_000),
    },
    KeyEffect {
        key: "compaction.compact_at_pct",
        base: "tools = \"none\"\ncontext.max_context_tokens = 100_000\n",
        set: "compaction.compact_at_pct = 0.5",
        scene: Scene::Talk,
        shows: |without, with| assert_eq!(without.trigger() - with.trigger(), 40_000),
    },
    KeyEffect {
        key: "compaction.compact_budget_threshold_pct",
        base: "tools = \"none\"\ncontext.max_context_tokens = 100_000\n",
        set: "compaction.compact_budget_threshold_pct = 0.15",
        scene: Scene::Talk,
        shows: |without, with| assert_eq!(without.trigger() - with.trigger(), 10_000),
    },
    KeyEffect {
        key: "compaction.trigger",
        base: "tools = \"none\"\ncontext.max_context_tokens = 100_000\n",
        set: "compaction.trigger = 30_000",
        scene: Scene::Talk,
        shows: |_, with| {
            assert!(
                (29_000..=30_000).contains(&with.trigger()),
                "{}",
                with.trigger()
            )
        },
    },
    KeyEffect {
        key: "compaction.target",
        base: CONTEXT,
        set: "compaction.target = 3_500",
        scene: Scene::Work(14),
        shows: |without, with| {
            assert!(with.plans()[0].1 < without.plans()[0].1);
        },
    },
    KeyEffect {
        key: "compaction.keep_first_turns",
        base: CONTEXT,
        set: "compaction.keep_first_turns = 0",
        scene: Scene::Work(14),
        shows: |without, with| {
            assert_eq!(whole(without)[..2], [0, 1]);
            assert!(!whole(with).contains(&0));
        },
    },
    KeyEffect {
        key: "compaction.keep_recent_turns",
        base: "tools = \"none\"\nsummary.author = \"extract\"\ncontext.max_context_tokens = 12_000\ncontext.system_prompt_tokens = 1_000\ncompaction.keep_first_turns = 0\n",
        set: "compaction.keep_recent_turns = 2",
        scene: Scene::Work(10),
        shows: |without, with| assert!(whole(with).len() < whole(without).len()),
    },
    KeyEffect {
        key: "compaction.compaction_scope",
        base: "tools = \"none\"\nsummary.author = \"extract\"\ncontext.max_context_tokens = 9_000\ncontext.system_prompt_tokens = 1_000\ncompaction.keep_recent_turns = 2\n",
        set: "compaction.compaction_scope = { fixed_count = 0 }",
        scene: Scene::Runs(5),
        shows: |without, with| assert_ne!(summary_of(without), summary_of(with)),
    },
    KeyEffect {
        key: "compaction.tool_output_max_lines",
        base: CONTEXT,
        set: "compaction.tool_output_max_lines = 10",
        scene: Scene::Lines(40),
        shows: |without, with| {
            let lines = |seen: &SceneOutcome| text_of(seen.last()).matches("line ").count();
            assert!(
                lines(with) < lines(without),
                "{} {}",
                lines(with),
                lines(without)
            );
        },
    },
];
