//! How a `ContextConfig` is read, and its thresholds.

use serde_json::{Value, json};

use super::*;

fn load(json: &Value) -> Result<crate::settings::Loaded<ContextConfig>, String> {
    ContextConfig::load(json).map_err(|error| error.to_string())
}

fn read(json: &Value) -> ContextConfig {
    load(json).unwrap().value
}

fn compaction(json: &Value) -> CompactionConfig {
    read(&json!({ "compaction": json })).compaction
}

#[test]
fn nothing_said_is_the_default_and_it_comes_back() {
    assert_eq!(read(&json!({})), ContextConfig::default());
    assert_eq!(read(&json!({"compaction": {}})), ContextConfig::default());
    let written = serde_json::to_value(ContextConfig::default()).unwrap();
    assert_eq!(
        written,
        json!({
            "max_context_tokens": 100_000,
            "system_prompt_tokens": 4_000,
            "compaction": {
                "compact_at_pct": 0.9,
                "compact_budget_threshold_pct": 0.05,
                "compaction_scope": {"fixed_count": 3},
                "keep_first_turns": 2,
                "keep_recent_turns": 10,
                "max_summary_tokens": 2_000,
                "tool_output_max_lines": 50,
                "summarization": true,
            }
        })
    );
    assert_eq!(read(&written), ContextConfig::default());
}

#[test]
fn every_key_is_read_by_all_its_names() {
    let default = ContextConfig::default();
    let context = |max: u64, system: u64| ContextConfig {
        max_context_tokens: Tokens(max),
        system_prompt_tokens: Tokens(system),
        ..default
    };
    for key in [
        "max_context_tokens",
        "maxContextTokens",
        "context_size",
        "contextSize",
        "context_window",
        "contextWindow",
        "window",
    ] {
        assert_eq!(
            read(&json!({ key: 50_000 })),
            context(50_000, 4_000),
            "{key}"
        );
    }
    assert_eq!(read(&json!({"systemPromptTokens": 9})), context(100_000, 9));
    let default = CompactionConfig::default();
    type Change = fn(&mut CompactionConfig);
    let rows: [(&[&str], Value, Change); 12] = [
        (&["compact_at_pct", "compactAtPct"], json!(0.8), |c| {
            c.compact_at_pct = Ppm(800_000)
        }),
        (
            &["compact_budget_threshold_pct", "compactBudgetThresholdPct"],
            json!(0.1),
            |c| c.compact_budget_threshold_pct = Ppm(100_000),
        ),
        (
            &[
                "keep_first_turns",
                "keepFirstTurns",
                "keep_first",
                "keepFirst",
            ],
            json!(0),
            |c| c.keep_first_turns = 0,
        ),
        (
            &["keep_recent_turns", "keepRecentTurns", "keep_recent"],
            json!(4),
            |c| c.keep_recent_turns = 4,
        ),
        (
            &[
                "max_summary_tokens",
                "summary_token_limit",
                "summaryTokenLimit",
            ],
            json!(700),
            |c| c.max_summary_tokens = Tokens(700),
        ),
        (
            &["tool_output_max_lines", "toolOutputMaxLines"],
            json!(9),
            |c| c.tool_output_max_lines = 9,
        ),
        (
            &[
                "trigger",
                "max_token",
                "maxToken",
                "max_tokens",
                "max_safe_tokens",
                "threshold",
            ],
            json!(9_000),
            |c| c.trigger = Some(Tokens(9_000)),
        ),
        (
            &["target", "context_token_limit", "contextTokenLimit"],
            json!(9_000),
            |c| c.target = Some(Tokens(9_000)),
        ),
        (&["summarization"], json!(false), |c| {
            c.summarization = Summarization::Off;
        }),
        (
            &["compaction_scope", "compactionScope"],
            json!("TokenBudget"),
            |c| c.compaction_scope = CompactionScope::TokenBudget,
        ),
        (&["compaction_scope"], json!({"FixedCount": 7}), |c| {
            c.compaction_scope = CompactionScope::FixedCount(7)
        }),
        (&["compaction_scope"], json!("FixedCount(7)"), |c| {
            c.compaction_scope = CompactionScope::FixedCount(7)
        }),
    ];
    for (names, value, change) in rows {
        let mut wanted = default;
        change(&mut wanted);
        for name in names {
            assert_eq!(compaction(&json!({ *name: value })), wanted, "{name}");
        }
    }
    for scope in [json!("token_budget"), json!("tokenBudget")] {
        let read: CompactionScope = serde_json::from_value(scope).unwrap();
        assert_eq!(read, CompactionScope::TokenBudget);
    }
}

#[test]
fn old_places_are_read_with_a_warning_and_never_as_nothing() {
    let loaded = load(&json!({"keep_recent": 4, "keepFirst": 1, "tool_output_max_lines": 9}));
    let loaded = loaded.unwrap();
    let compaction = loaded.value.compaction;
    assert_eq!(
        (
            compaction.keep_recent_turns,
            compaction.keep_first_turns,
            compaction.tool_output_max_lines
        ),
        (4, 1, 9)
    );
    assert_eq!(loaded.warnings.len(), 3);
    assert!(loaded.warnings[0].contains("`keep_first_turns` in [compaction]"));
    // The other setting keeps its default.
    let one = load(&json!({"keep_recent": 4})).unwrap();
    assert_eq!(one.value.compaction.keep_first_turns, 2);
    assert_eq!(one.warnings.len(), 1);
}

#[test]
fn two_settings_of_one_thing_name_both() {
    for (json, first, second) in [
        (
            json!({"max_context_tokens": 9_000, "context_size": 9_000}),
            "`max_context_tokens`",
            "`context_size`",
        ),
        (
            json!({"keep_recent": 4, "compaction": {"keep_recent_turns": 4}}),
            "`keep_recent` in [context]",
            "`keep_recent_turns` in [compaction]",
        ),
        (
            json!({"compaction": {"keep_recent": 4, "keepRecentTurns": 5}}),
            "`keep_recent`",
            "`keepRecentTurns`",
        ),
        (
            json!({"compaction": {"trigger": 9_000, "compact_at_pct": 0.8}}),
            "`trigger`",
            "`compact_at_pct`",
        ),
        (
            json!({"max_token": 9_000, "compaction": {"max_safe_tokens": 9_000}}),
            "`trigger` in [context]",
            "`trigger` in [compaction]",
        ),
    ] {
        let error = load(&json).unwrap_err();
        for part in [first, second, "are two settings of one thing"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}

#[test]
fn bad_values_are_refused_with_their_numbers_all_at_once() {
    for (json, wanted) in [
        (json!({"compaction": {"compact_at_pct": 1.2}}), vec!["1.2"]),
        (
            json!({"compaction": {"compact_at_pct": -0.1}}),
            vec!["-0.1"],
        ),
        (
            json!({"compaction": {"compact_at_pct": 0}}),
            vec!["compact_at_pct is 0"],
        ),
        (
            json!({"compaction": {"compact_at_pct": 0.05, "compact_budget_threshold_pct": 0.9}}),
            vec!["(0.05)", "(0.9)"],
        ),
        (
            json!({"compaction": {"trigger": 20_000, "target": 30_000}}),
            vec!["(20000)", "(30000)"],
        ),
        (
            json!({"compaction": {"trigger": 20_000, "target": 20_000}}),
            vec!["(20000)"],
        ),
        (
            json!({"compaction": {"target": 81_000}}),
            vec!["the trigger (81000) is not above the target (81000)"],
        ),
        (
            json!({"compaction": {"trigger": 200_000}}),
            vec!["(200000)", "(100000)"],
        ),
        (
            json!({"max_context_tokens": 4_000}),
            vec!["3400 of max_context_tokens (4000)", "(4000) takes it all"],
        ),
        (
            json!({"max_context_tokens": 0}),
            vec!["max_context_tokens is 0"],
        ),
        (json!({"max_context_tokens": -5}), vec!["-5"]),
        (json!({"max_context_tokens": "many"}), vec!["\"many\""]),
        (
            json!({"compaction": {"keep_recent_turns": 0, "max_summary_tokens": 0,
                   "tool_output_max_lines": 0, "trigger": 0, "keep_frist_turns": 1}}),
            vec![
                "keep_recent_turns is 0",
                "max_summary_tokens is 0",
                "tool_output_max_lines is 0",
                "trigger is 0",
                "there is no `keep_frist_turns` in [context.compaction]; did you mean `keep_first_turns`?",
            ],
        ),
        (
            json!({"compaction": {"compaction_scope": "some"}}),
            vec!["\"some\"", "token_budget"],
        ),
        (
            json!({"max_contxt_tokens": 1}),
            vec!["did you mean `max_context_tokens`?"],
        ),
        (json!([1]), vec!["[context] is a list"]),
    ] {
        let error = load(&json).unwrap_err();
        for part in wanted {
            assert!(error.contains(part), "{json}: {error}");
        }
    }
    // A value that JSON cannot express.
    let config = ContextConfig {
        compaction: CompactionConfig {
            compact_at_pct: Ppm(1_200_000),
            ..CompactionConfig::default()
        },
        ..ContextConfig::default()
    };
    assert_eq!(config.faults().len(), 1, "{:?}", config.faults());
    assert!(config.faults()[0].contains("1.2"));
}

#[test]
fn every_setting_of_when_moves_the_threshold() {
    let at = |json: Value, system: u64, window: Option<u64>| {
        let thresholds = read(&json).thresholds(Tokens(system), window.map(Tokens));
        (
            thresholds.fires_above.0,
            thresholds.ends_at.0,
            thresholds.counts,
        )
    };
    use Counts::{All, AllButSystem};
    for (json, system, window, wanted) in [
        (json!({}), 0, None, (81_000, 56_700, AllButSystem)),
        // The system prompt counts with its own size if that is larger than the tokens set aside.
        (json!({}), 4_001, None, (80_999, 56_699, AllButSystem)),
        (json!({}), 90_000, None, (0, 0, AllButSystem)),
        // A smaller window overrides the maximum, a larger one does not.
        (json!({}), 0, Some(50_000), (38_500, 26_950, AllButSystem)),
        (json!({}), 0, Some(500_000), (81_000, 56_700, AllButSystem)),
        (
            json!({"max_context_tokens": 200_000}),
            0,
            None,
            (166_000, 116_200, AllButSystem),
        ),
        (
            json!({"system_prompt_tokens": 0}),
            0,
            None,
            (85_000, 59_500, AllButSystem),
        ),
        (
            json!({"compaction": {"compact_at_pct": 0.8}}),
            0,
            None,
            (71_000, 49_700, AllButSystem),
        ),
        (
            json!({"compaction": {"compact_budget_threshold_pct": 0.1}}),
            0,
            None,
            (76_000, 53_200, AllButSystem),
        ),
        (
            json!({"compaction": {"target": 40_000}}),
            0,
            None,
            (81_000, 40_000, AllButSystem),
        ),
        (
            json!({"maxToken": 30_000}),
            900,
            None,
            (30_000, 21_000, All),
        ),
        (
            json!({"maxToken": 30_000, "contextTokenLimit": 9_000}),
            900,
            None,
            (30_000, 9_000, All),
        ),
        // Without summaries, the trigger meant for them is ignored.
        (
            json!({"maxToken": 30_000, "summarization": false}),
            0,
            None,
            (81_000, 56_700, AllButSystem),
        ),
    ] {
        assert_eq!(at(json.clone(), system, window), wanted, "{json}");
    }
}

#[test]
fn the_boundary_is_exact_whatever_the_system_prompt_weighs() {
    let calibration = crate::Calibration::default();
    // The sizes of the system prompt and of the schemas, and the size of the view that triggers a
    // compaction.
    for (system, schemas, fires_above) in [
        (0, 0, 81_000),
        (900, 0, 81_000),
        (900, 1_000, 80_000),
        (4_000, 1_000, 80_000),
        (10_000, 1_000, 74_000),
    ] {
        let line = Line {
            window: Some(Tokens(200_000)),
            ..Line::default()
        };
        let line = ContextConfig::default().line(line, Tokens(system));
        let budget = line
            .budget(Tokens(system + schemas), Tokens::ZERO, calibration)
            .unwrap();
        assert_eq!(budget.trigger, Tokens(fires_above), "{system} {schemas}");
        assert!(budget.target < budget.trigger);
        // The mark is no limit. The limit is the context less the answer.
        assert_eq!(budget.limit, Tokens(95_904 - system - schemas));
    }
    // An explicit trigger is a limit.
    let explicit = read(&json!({"maxToken": 30_000}));
    let budget = explicit.line(Line::default(), Tokens(900));
    let budget = budget
        .budget(Tokens(1_000), Tokens::ZERO, calibration)
        .unwrap();
    assert_eq!(
        (budget.limit, budget.trigger, budget.target),
        (Tokens(29_000), Tokens(29_000), Tokens(20_000))
    );
}
