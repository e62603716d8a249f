//! Keys for the length of a run, and for running its tools.

use std::time::Duration;

use plimsoll::model::ToolChoice;

use super::KeyEffect;
use super::scene::{Scene, text_of};

const NO_TOOLS: &str = "tools = \"none\"\n";
const PRICED: &str =
    "tools = \"none\"\nmodels.openai.\"gpt-9\" = { input = 100.0, output = 100.0 }\n";

pub(super) const ROWS: &[KeyEffect] = &[
    KeyEffect {
        key: "max_turns",
        base: NO_TOOLS,
        set: "max_turns = 2",
        scene: Scene::Work(6),
        shows: |without, with| {
            assert_eq!((without.turns().len(), with.turns().len()), (7, 2));
            assert_eq!(with.end(), "max_turns");
        },
    },
    KeyEffect {
        key: "max_total_tokens",
        base: NO_TOOLS,
        set: "max_total_tokens = 9000",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(without.output().tokens_used.total_tokens().0 > 9_000);
            assert!(with.turns().len() < without.turns().len());
            assert_ne!(with.end(), without.end());
        },
    },
    KeyEffect {
        key: "count_tokens",
        base: "tools = \"none\"\nmax_total_tokens = 16_000\n",
        set: "count_tokens = \"growth\"",
        scene: Scene::Work(8),
        shows: |without, with| {
            assert!(without.turns().len() < with.turns().len());
            assert_eq!(with.end(), "answered");
        },
    },
    KeyEffect {
        key: "max_duration",
        base: "tools = \"none\"\nmax_duration = 500\n",
        set: "!tools = \"none\"\nmax_duration = 5\n",
        scene: Scene::Hangs,
        shows: |without, with| {
            assert!(without.elapsed > Duration::from_secs(400));
            assert!(with.elapsed < Duration::from_secs(10));
            assert_eq!(with.end(), "max_duration");
        },
    },
    KeyEffect {
        key: "max_cost",
        base: PRICED,
        set: "max_cost = 0.9",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert!(with.turns().len() < without.turns().len());
            assert_ne!(with.end(), without.end());
        },
    },
    KeyEffect {
        key: "max_tool_calls",
        base: NO_TOOLS,
        set: "max_tool_calls = 2",
        scene: Scene::Work(6),
        shows: |without, with| assert_eq!((without.calls, with.calls), (6, 2)),
    },
    KeyEffect {
        key: "max_identical_tool_calls",
        base: "tools = \"none\"\nmax_turns = 20\n",
        set: "max_identical_tool_calls = 3",
        scene: Scene::Same,
        shows: |without, with| {
            assert!(without.calls > 15 && with.calls == 2, "{}", with.calls);
            assert_eq!(with.end(), "doom_loop");
        },
    },
    KeyEffect {
        key: "tool_call_history_size",
        base: "tools = \"none\"\nmax_turns = 20\n",
        set: "tool_call_history_size = 10",
        scene: Scene::Same,
        shows: |without, with| {
            assert!(without.calls > 15 && with.calls == 3, "{}", with.calls);
            assert_eq!(with.end(), "doom_loop");
        },
    },
    KeyEffect {
        key: "max_memory",
        base: NO_TOOLS,
        set: "max_memory = 20_000",
        scene: Scene::Work(12),
        shows: |without, with| {
            assert_eq!(without.end(), "answered");
            assert!(with.calls < 12, "{}", with.calls);
        },
    },
    KeyEffect {
        key: "at_limit",
        base: "tools = \"none\"\nmax_turns = 2\n",
        set: "at_limit = \"stop\"",
        scene: Scene::Work(6),
        shows: |without, with| {
            assert_eq!(without.last().tool_choice, ToolChoice::None);
            assert_eq!(with.last().tool_choice, ToolChoice::Auto);
            assert!(with.output().text.contains("[Agent stopped: "));
        },
    },
    KeyEffect {
        key: "max_parallel_tools",
        base: NO_TOOLS,
        set: "max_parallel_tools = 2",
        scene: Scene::Batches,
        shows: |without, with| assert_eq!((without.at_once, with.at_once), (1, 2)),
    },
    KeyEffect {
        key: "tool_execution",
        base: NO_TOOLS,
        set: "tool_execution = { batched = 2 }",
        scene: Scene::Batches,
        shows: |without, with| assert_eq!((without.at_once, with.at_once), (1, 2)),
    },
    KeyEffect {
        key: "max_step_result_size",
        base: NO_TOOLS,
        set: "max_step_result_size = 300",
        scene: Scene::Work(1),
        shows: |without, with| {
            let kept =
                |seen: &super::scene::SceneOutcome| format!("{:?}", seen.output().steps).len();
            assert!(kept(without) > 2_000 && kept(with) < 1_000);
        },
    },
    KeyEffect {
        key: "tool_retries",
        base: NO_TOOLS,
        set: "tool_retries = 1",
        scene: Scene::Stuck,
        shows: |without, with| assert_eq!((without.calls, with.calls), (4, 2)),
    },
    KeyEffect {
        key: "gate_timeout",
        base: "tools = \"none\"\nmax_duration = 900\n",
        set: "gate_timeout = 20",
        scene: Scene::Asks,
        shows: |without, with| {
            assert!(without.elapsed > Duration::from_secs(800));
            assert!(with.elapsed < Duration::from_secs(30));
            assert_eq!((with.calls, with.end()), (0, "answered"));
            assert!(text_of(with.last()).contains("ask"));
        },
    },
    KeyEffect {
        key: "hook_timeout",
        base: NO_TOOLS,
        set: "hook_timeout = 3",
        scene: Scene::Hooked,
        shows: |without, with| {
            assert!(without.elapsed >= Duration::from_secs(30));
            assert!(with.elapsed < Duration::from_secs(10));
        },
    },
];
