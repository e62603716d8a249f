//! Every rule of the providers, and the place that enforces it: a validator, with a request that breaks it
//! in `tests/cases/rules`, or, if no single request can break it, a test that is named here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use plimsoll_mock::rules::Rule;

/// How many rules there are of each kind.
const RULES: [(&str, usize); 7] = [
    ("V", 11),
    ("OC", 9),
    ("OR", 6),
    ("AM", 14),
    ("GM", 5),
    ("BR", 6),
    ("T", 6),
];

/// Rules that no single request breaks, or not only: what holds them is a test, named by its file
/// below `crates` and its name.
const HELD_BY_TESTS: [(&str, &str, &str); 29] = [
    (
        "V1",
        "context/tests/context/stages.rs",
        "the_same_history_twice_gives_the_same_bytes",
    ),
    (
        "V1",
        "mock/tests/rules/properties.rs",
        "every_server_accepts_every_view",
    ),
    (
        "V2",
        "mock/tests/rules/properties.rs",
        "older_requests_are_prefixes_of_newer_ones",
    ),
    (
        "V2",
        "mock/tests/rules/openai_responses_properties.rs",
        "older_requests_are_prefixes_of_newer_ones",
    ),
    (
        "V2",
        "mock/tests/rules/anthropic_properties.rs",
        "older_requests_are_prefixes_of_newer_ones",
    ),
    (
        "V4",
        "mock/tests/rules/anthropic_thinking.rs",
        "a_change_before_bound_thinking_removes_it_from_the_whole_loop",
    ),
    (
        "V5",
        "context/tests/context/stages.rs",
        "evict_never_touches_pending_calls",
    ),
    (
        "V5",
        "context/tests/context/properties.rs",
        "evict_keeps_every_request_whole_and_under_the_line",
    ),
    (
        "V6",
        "agent/tests/agent/pins.rs",
        "pins_survive_every_policy_byte_for_byte",
    ),
    (
        "V6",
        "context/tests/context/compaction.rs",
        "five_compactions_leave_one_summary_and_the_task_once",
    ),
    (
        "V6",
        "context/tests/context/stages.rs",
        "prune_may_take_the_task_but_never_the_newest_question",
    ),
    (
        "V7",
        "context/tests/context/properties.rs",
        "recovery_makes_every_refused_request_whole_and_smaller",
    ),
    (
        "V7",
        "context/tests/context/properties.rs",
        "summaries_that_fail_lie_and_overflow_keep_every_request_whole_and_under_the_line",
    ),
    (
        "V7",
        "context/tests/context/stages.rs",
        "prune_never_grows_a_text",
    ),
    (
        "V8",
        "agent/tests/agent/ladder.rs",
        "the_ladder_steps_down_and_ends_with_the_providers_error",
    ),
    (
        "V8",
        "context/tests/context/stages.rs",
        "what_cannot_fit_is_a_typed_error",
    ),
    (
        "V9",
        "agent/tests/agent/moments.rs",
        "undo_puts_the_view_back_run_by_run",
    ),
    (
        "V9",
        "agent/tests/agent/compacting.rs",
        "a_run_can_be_undone_over_a_plan",
    ),
    (
        "V10",
        "context/src/truncate/tests.rs",
        "head_tail_keeps_its_word",
    ),
    (
        "V10",
        "context/src/truncate/tests.rs",
        "cutting_again_counts_what_the_original_lost",
    ),
    (
        "V11",
        "core/tests/core/compaction.rs",
        "a_model_that_follows_a_marker_gets_the_exact_bytes",
    ),
    (
        "V11",
        "store/tests/store/recall.rs",
        "every_byte_comes_back_whatever_it_is",
    ),
    (
        "V11",
        "store/tests/store/recall.rs",
        "no_page_is_larger_than_a_result_may_be_whatever_is_asked_for",
    ),
    (
        "OC9",
        "mock/tests/rules/cache.rs",
        "a_dialect_without_words_for_it_says_nothing",
    ),
    (
        "OC9",
        "mock/tests/rules/cache.rs",
        "cached_messages_are_sent_unchanged",
    ),
    (
        "OC9",
        "mock/tests/rules/cache.rs",
        "a_setting_of_the_user_stands_above_the_key",
    ),
    (
        "AM10",
        "mock/tests/rules/anthropic_thinking.rs",
        "thinking_goes_back_through_many_loops",
    ),
    (
        "AM12",
        "mock/tests/rules/anthropic_render.rs",
        "a_long_turn_has_a_breakpoint_where_the_request_before_it_ended",
    ),
    (
        "T6",
        "core/tests/core/windows.rs",
        "a_request_that_was_cut_at_the_known_window_is_made_again_and_smaller",
    ),
];

/// The rules of the validators that no single request breaks.
pub(crate) const HELD_BY_TESTS_ALONE: [&str; 1] = ["AM12"];

fn ids() -> Vec<String> {
    let all = RULES.iter();
    let all = all.flat_map(|(kind, count)| (1..=*count).map(move |n| format!("{kind}{n}")));
    all.collect()
}

#[test]
fn the_rules_of_the_validators_are_those_of_the_providers() {
    let ids = ids();
    let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    for name in names {
        assert!(name == "shape" || ids.iter().any(|id| id == name), "{name}");
    }
}

#[test]
fn every_rule_is_held_by_a_validator_or_by_a_test_that_is_there() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (rule, file, test) in HELD_BY_TESTS {
        let source = fs::read_to_string(crates.join(file)).unwrap_or_default();
        let there = source.contains(&format!("fn {test}("));
        assert!(there, "{rule} names {test} in {file}, which is not there");
    }
    let judged = Rule::ALL.iter().map(|rule| rule.name());
    let named = HELD_BY_TESTS.iter().map(|(rule, ..)| *rule);
    let held: BTreeSet<&str> = judged.chain(named).collect();
    for id in ids() {
        assert!(held.contains(id.as_str()), "{id} is held by nothing");
    }
}

#[test]
fn every_refusal_of_the_tables_is_used_and_every_used_one_is_there() {
    let mock = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &Path| fs::read_to_string(file).unwrap();
    for (protocol, elsewhere) in [
        ("anthropic", Some("src/messages/admission.rs")),
        ("bedrock", None),
        ("gemini", None),
        ("openai_chat", None),
        ("openai_responses", Some("src/responses/stored.rs")),
    ] {
        let table = read(&mock.join(format!("rules/{protocol}.txt")));
        let (_, refusals) = table.split_once("[refusals]\n").unwrap();
        let lines = refusals.lines().take_while(|line| !line.starts_with('['));
        let names = lines.filter_map(|line| line.split_once(" => ")?.0.split(' ').next());
        let names: BTreeSet<&str> = names.collect();
        let folder = fs::read_dir(mock.join("src/rules").join(protocol)).unwrap();
        let files = folder.map(|file| file.unwrap().path());
        let files = files.chain(elsewhere.map(|file| mock.join(file)));
        let code: String = files.map(|file| read(&file)).collect();
        let code: String = code.split_whitespace().collect();
        for name in &names {
            assert!(
                code.contains(&format!("\"{name}\"")),
                "{protocol}: {name} is not used"
            );
        }
        for call in [".report(\"", "TABLE.fault(\""] {
            let used = code
                .split(call)
                .skip(1)
                .filter_map(|rest| rest.split('"').next());
            for name in used {
                assert!(names.contains(name), "{protocol}: there is no {name}");
            }
        }
    }
}

#[test]
fn there_are_no_other_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let shared = root.unwrap().join("../shared/providers.md");
    let Ok(text) = fs::read_to_string(shared) else {
        println!("skipped: the list of rules is not here");
        return;
    };
    let marked = text.split("**").skip(1).step_by(2);
    let is_rule = |word: &&str| {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
        digits.len() < word.len()
            && !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let written: BTreeSet<&str> = marked.filter(is_rule).collect();
    let ids = ids();
    let known: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(written, known);
}
