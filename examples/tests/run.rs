//! Every example is run, and what it prints is looked at.

use std::process::Command;

/// What each example prints; a line that ends with `…` only begins so.
const EXAMPLES: [(&str, &[&str]); 9] = [
    ("loop", &["Land! (2 turns)"]),
    ("one_turn", &["a request of 1 messages", "42"]),
    (
        "tools",
        &[
            "compass: 270 degrees",
            "steer: there are 360 degrees",
            "drop_anchor: …",
            "The course stays.",
        ],
    ),
    ("streaming", &["turn 1: … tokens", "Land, and a harbour."]),
    (
        "sessions",
        &[
            "Where to? East. (1 messages were sent)",
            "And then? Home. (3 messages were sent)",
            "… entries in the log",
        ],
    ),
    (
        "limits",
        &[
            "5 turns, 4 tool calls",
            "ended by: …",
            "is an answer: false",
        ],
    ),
    (
        "machines",
        &["DATABASE_URL is not set: it says where the database is"],
    ),
    (
        "context_policy",
        &["oldest_first: …", "oldest_first: …", "It is a log book."],
    ),
    (
        "clear_tool_uses",
        &["It is a log book.", "… results were cleared"],
    ),
];

/// Where each is.
fn program(name: &str) -> &'static str {
    match name {
        "loop" => env!("CARGO_BIN_EXE_loop"),
        "one_turn" => env!("CARGO_BIN_EXE_one_turn"),
        "tools" => env!("CARGO_BIN_EXE_tools"),
        "streaming" => env!("CARGO_BIN_EXE_streaming"),
        "sessions" => env!("CARGO_BIN_EXE_sessions"),
        "machines" => env!("CARGO_BIN_EXE_machines"),
        "limits" => env!("CARGO_BIN_EXE_limits"),
        "context_policy" => env!("CARGO_BIN_EXE_context_policy"),
        "clear_tool_uses" => env!("CARGO_BIN_EXE_clear_tool_uses"),
        other => panic!("{other}"),
    }
}

#[test]
fn every_example_prints_what_it_says() {
    for (name, expected) in EXAMPLES {
        let run = Command::new(program(name))
            .env_remove("DATABASE_URL")
            .output()
            .unwrap();
        let said = String::from_utf8(run.stdout).unwrap();
        let why = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{name}: {said}{why}");
        assert_eq!(said.lines().count(), expected.len(), "{name}: {said}");
        for (line, expected) in said.lines().zip(expected) {
            let fits = match expected.split_once('…') {
                Some((first, last)) => line.starts_with(first) && line.ends_with(last),
                None => line == *expected,
            };
            assert!(fits, "{name}: `{line}` is not `{expected}`");
        }
    }
}

#[test]
fn no_example_is_left_out() {
    let mut names: Vec<String> = std::fs::read_dir(env!("CARGO_MANIFEST_DIR"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    // README's needs a key: it is only built.
    let mut known = vec!["readme"];
    known.extend(EXAMPLES.iter().map(|(name, _)| *name));
    names.sort();
    known.sort_unstable();
    assert_eq!(names, known);
}

#[test]
fn the_readme_shows_an_example_as_it_is_built() {
    let readme = include_str!("../../README.md");
    let (_, program) = include_str!("../readme.rs").split_once("\n\n").unwrap();
    let shown = format!("```rust,no_run\n{program}```\n");
    assert!(
        readme.contains(&shown),
        "README shows another program than readme.rs"
    );
    let lines: Vec<&str> = readme.lines().collect();
    let begin = lines
        .iter()
        .position(|line| *line == "[dependencies]")
        .unwrap();
    let end = begin
        + lines[begin..]
            .iter()
            .position(|line| *line == "```")
            .unwrap();
    let tutorial = include_str!("../../crates/plimsoll/src/lib.rs");
    for line in &lines[begin..end] {
        assert!(tutorial.contains(&format!("//! {line}\n")), "{line}");
    }
}
