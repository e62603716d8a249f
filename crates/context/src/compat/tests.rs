//! How a `ContextConfig` is read, and its thresholds.

use serde_json::{Value, json};

use super::*;

fn read(json: &Value) -> ContextConfig {
    serde_json::from_value(json.clone()).unwrap()
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
fn a_key_has_one_name() {
    for json in [
        json!({"maxContextTokens": 9_000}),
        json!({"context_size": 9_000}),
        json!({"keep_recent": 4}),
        json!({"compaction": {"max_token": 9_000}}),
        json!({"compaction": {"compaction_scope": "TokenBudget"}}),
        json!({"compaction": {"compact_at_pct": 1.2}}),
        json!({"compaction": {"compact_at_pct": -0.1}}),
        json!({"max_context_tokens": -5}),
    ] {
        let read: Result<ContextConfig, _> = serde_json::from_value(json.clone());
        assert!(read.is_err(), "{json}");
    }
    let scope = json!({"compaction": {"compaction_scope": {"fixed_count": 7}}});
    let seven = CompactionScope::FixedCount(7);
    assert_eq!(read(&scope).compaction.compaction_scope, seven);
}

#[test]
fn bad_values_are_refused_with_their_numbers_all_at_once() {
    for (json, wanted) in [
        (
            json!({"compaction": {"compact_at_pct": 0}}),
            vec!["compact_at_pct is 0"],
        ),
        (
            json!({"compaction": {"compact_at_pct": 0.05, "compact_budget_threshold_pct": 0.9}}),
            vec!["compact_at_pct is 0.05", "compact_budget_threshold_pct 0.9"],
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
        (
            json!({"compaction": {"keep_recent_turns": 0, "max_summary_tokens": 0,
                   "tool_output_max_lines": 0, "trigger": 0}}),
            vec![
                "keep_recent_turns is 0",
                "max_summary_tokens is 0",
                "tool_output_max_lines is 0",
                "trigger is 0",
            ],
        ),
    ] {
        let error = read(&json).faults();
        let error = format!("{error:?}");
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
    assert!(config.faults()[0].text.contains("1.2"));
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
            json!({"compaction": {"trigger": 30_000}}),
            900,
            None,
            (30_000, 21_000, All),
        ),
        (
            json!({"compaction": {"trigger": 30_000, "target": 9_000}}),
            900,
            None,
            (30_000, 9_000, All),
        ),
        // Without summaries, the trigger meant for them is ignored.
        (
            json!({"compaction": {"trigger": 30_000, "summarization": false}}),
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
        let line = ViewLimits {
            window: Some(Tokens(200_000)),
            ..ViewLimits::default()
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
    let explicit = read(&json!({"compaction": {"trigger": 30_000}}));
    let budget = explicit.line(ViewLimits::default(), Tokens(900));
    let budget = budget
        .budget(Tokens(1_000), Tokens::ZERO, calibration)
        .unwrap();
    assert_eq!(
        (budget.limit, budget.trigger, budget.target),
        (Tokens(29_000), Tokens(29_000), Tokens(20_000))
    );
}
