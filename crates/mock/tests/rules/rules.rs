//! Every rule of the providers, and the place that enforces it: a validator, with a request that breaks it
//! in `tests/cases/rules`, or, if no single request can break it, a test that is named in
//! `tests/cases/held_by_tests.txt`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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

/// The files with the rules of the validators, which explain each at their beginning.
const FILES: [&str; 5] = [
    include_str!("../../rules/anthropic.txt"),
    include_str!("../../rules/bedrock.txt"),
    include_str!("../../rules/gemini.txt"),
    include_str!("../../rules/openai_chat.txt"),
    include_str!("../../rules/openai_responses.txt"),
];

/// Returns the rules that the files explain.
pub(crate) fn of_validators() -> BTreeSet<&'static str> {
    let lines = FILES.iter().flat_map(|file| file.lines());
    let words = lines.filter_map(|line| line.strip_prefix("# ")?.split(' ').next());
    words.filter(|word| is_rule(word)).collect()
}

/// Returns `true` for capital letters and a number.
fn is_rule(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    digits.len() < word.len() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Rules that no single request breaks, or not only, and the tests that hold them.
const HELD_BY_TESTS: &str = include_str!("../cases/held_by_tests.txt");

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
    let explained = of_validators();
    for name in &explained {
        assert!(ids.iter().any(|id| id == name), "{name}");
    }
    // The rules of refusals stand among the conditions, or behind the name of a refusal.
    let lines = FILES.iter().flat_map(|file| file.lines());
    let heads = lines.filter_map(|line| Some(line.split_once(" => ")?.0));
    for name in heads
        .flat_map(|head| head.split(' '))
        .filter(|word| is_rule(word))
    {
        assert!(explained.contains(name), "{name}");
    }
}

#[test]
fn every_rule_is_held_by_a_validator_or_by_a_test_that_is_there() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut held = of_validators();
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    for row in HELD_BY_TESTS.lines().filter(is_row) {
        let [rule, file, test] = row.split(' ').collect::<Vec<_>>()[..] else {
            panic!("no row: {row}");
        };
        held.insert(rule);
        let source = fs::read_to_string(crates.join(file)).unwrap_or_default();
        let there = source.contains(&format!("fn {test}("));
        assert!(there, "{rule} names {test} in {file}, which is not there");
    }
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
    let written: BTreeSet<&str> = marked.filter(|word| is_rule(word)).collect();
    let ids = ids();
    let known: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(written, known);
}
