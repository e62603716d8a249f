//! Tables of single rules: commands, outcomes, files, statements, rules and the form of the text.

use std::ops::RangeInclusive;

use serde_json::json;

use super::calls::{Act, TranscriptCall};
use super::files::{FileList, FileRecord};
use super::format::{Section, SectionItem, read, without_frames, write};
use super::outcome::{Outcome, outcome};
use super::rules;
use super::sentences::{one_line, sentences};
use super::state::WorkState;
use super::statements::{open_question, statements};

#[test]
fn a_written_text_is_read_back() {
    let text = "first\n\n» quoted\n## State\n- a\n  indented\n[handover 00000000]";
    let items = [
        (Section::Transcript, SectionItem::user("never X")),
        (Section::Transcript, SectionItem::user(text)),
        (Section::Transcript, SectionItem::note("ran a")),
        (Section::Files, SectionItem::note("a.rs (read 1): b, c")),
    ];
    let text = write(&items);
    assert_eq!(read(&text).unwrap(), items);
    assert_eq!(read(text.trim()).unwrap(), items);
    assert_eq!(text.matches("\n## State\n").count(), 0, "{text}");
    for changed in [
        text.replace("never", "always"),
        format!("{text}- more\n"),
        text.replace("[handover ", "[Handover "),
        "## State\n- x".to_owned(),
    ] {
        assert_eq!(read(&changed), None, "{changed}");
    }
}

#[test]
fn frames_in_a_text_are_no_frames() {
    for (text, plain) in [
        ("[End of the summary. x]", "(End of the summary. x]"),
        (
            "see [Summary of earlier messages]",
            "see (Summary of earlier messages]",
        ),
        (
            "[4 messages were removed here; recall m1 to m4]",
            "(4 messages were removed here; recall m1 to m4]",
        ),
        (
            "4 messages were removed here",
            "4 messages were removed here",
        ),
        ("[a] list", "[a] list"),
    ] {
        assert_eq!(without_frames(text), plain);
    }
}

#[test]
fn sentences_cover_the_text() {
    for (text, cuts) in [
        ("", &[][..]),
        (
            "See a.rs. Then b!  Done",
            &["See a.rs. ", "Then b!  ", "Done"],
        ),
        ("a\n\n  b\n", &["a\n\n  ", "b\n"]),
        ("不要。必须！", &["不要。", "必须！"]),
    ] {
        let found: Vec<&str> = sentences(text)
            .into_iter()
            .map(|at| text.get(at).unwrap())
            .collect();
        assert_eq!(found, cuts);
    }
    assert_eq!(sentences(&"x".repeat(10_000)).len(), 9);
    assert_eq!(one_line(" a\n\tb\u{7}c ", 10), "a b c");
    let cut = one_line(&"語 ".repeat(100), 20);
    assert!(cut.len() <= 20 && cut.ends_with('…'), "{cut}");
}

#[test]
fn commands_are_readers_or_tests() {
    for (command, is_reader, test) in [
        ("cargo test -p a 2>&1 | tail -5", false, "cargo test a"),
        ("cd /x && RUST_LOG=1 cargo build", false, "cargo build"),
        ("git log --oneline -3", true, ""),
        ("grep -rn 'error; make test' src | head", true, ""),
        ("cat a.txt; npm run lint", false, "npm run lint"),
        ("python3 run.py", false, ""),
        (
            "python tests/test_lexer.py -v",
            false,
            "python tests/test_lexer.py",
        ),
        ("uv run python -m pytest tests/", false, "pytest tests/"),
        ("python tests/test_lexer.py --help", false, ""),
        ("git add tests/test_lexer.py", false, ""),
        ("git commit -m \"test\"", false, ""),
        ("command -v cargo", true, ""),
    ] {
        let call = TranscriptCall::new("", command);
        assert_eq!(
            (call.is_reader(), call.test().join(" ")),
            (is_reader, test.to_owned()),
            "{command}"
        );
    }
}

#[test]
fn calls_name_their_files() {
    let patch = r#"{"input": "*** Begin Patch\n*** Update File: d.rs\n@@\n*** Delete File: e.rs"}"#;
    for (name, arguments, shown, files) in [
        (
            "Edit",
            r#"{"file_path": "a.rs", "old_string": "x"}"#,
            "edit a.rs",
            &[(Act::Edited, "a.rs")][..],
        ),
        (
            "str_replace_editor",
            r#"{"command": "view", "path": "/a"}"#,
            "read /a",
            &[(Act::Read, "/a")],
        ),
        (
            "str_replace_editor",
            r#"{"command": "create", "path": "/a"}"#,
            "write /a",
            &[(Act::Written, "/a")],
        ),
        (
            "bash",
            r#"{"command": "cat > b.py <<'EOF'\nrm c.py\nEOF"}"#,
            "cat > b.py",
            &[(Act::Written, "b.py")],
        ),
        (
            "bash",
            r#"{"command": "cd /x && cat ./b.py | head; sed -n '1,9p' src/c.py"}"#,
            "cat ./b.py | head; sed -n '1,9p' src/c.py",
            &[],
        ),
        (
            "bash",
            r#"{"command": "sed -i 's/a/b/' src/c.py && rm -rf old/ 'x.py'"}"#,
            "sed -i 's/a/b/' src/c.py && rm -rf old/ 'x.py'",
            &[
                (Act::Edited, "src/c.py"),
                (Act::Removed, "old"),
                (Act::Removed, "x.py"),
            ],
        ),
        (
            "bash",
            r#"{"command": "git mv a.py b.py; git checkout -- c.py"}"#,
            "git mv a.py b.py; git checkout -- c.py",
            &[
                (Act::Removed, "a.py"),
                (Act::Written, "b.py"),
                (Act::Restored, "c.py"),
            ],
        ),
        (
            "bash",
            r#"{"command": "git -C /x/y rm -rf . && git -C x mv a.py b.py"}"#,
            "git -C /x/y rm -rf . && git -C x mv a.py b.py",
            &[
                (Act::Removed, "/x/y"),
                (Act::Removed, "x/a.py"),
                (Act::Written, "x/b.py"),
            ],
        ),
        // Quoted text and the commands of other machines are not run here.
        (
            "bash",
            r#"{"command": "git commit -m 'drop it; rm a.py' && ssh host \"cd /x && rm b.py\"; echo 'x > c.py'"}"#,
            "git commit",
            &[],
        ),
        (
            "bash",
            r#"{"command": "cd /x && rm 'my notes.py' && cd y && mv ../a.py /z && cat > b.py"}"#,
            "rm 'my notes.py'",
            &[
                (Act::Removed, "/x/my notes.py"),
                (Act::Removed, "/x/y/../a.py"),
                (Act::Written, "/x/y/b.py"),
            ],
        ),
        (
            "delete_lines",
            r#"{"path": "a.py", "start": 1}"#,
            "delete_lines",
            &[],
        ),
        (
            "delete_file",
            r#"{"path": "a.py"}"#,
            "remove a.py",
            &[(Act::Removed, "a.py")],
        ),
        (
            "bash",
            r#"{"command": "git restore -S a.py"}"#,
            "git restore",
            &[],
        ),
        // These remove nothing, or ask first.
        (
            "bash",
            r#"{"command": "git rm --cached a.py; git rm -rn b; git rm --dry-run c.py; git mv -n a.py b.py"}"#,
            "git rm --cached a.py",
            &[],
        ),
        (
            "bash",
            r#"{"command": "rm -ri old; mv -i a.py b.py; mv -n c.py d.py; if x; then rm e.py; fi"}"#,
            "rm -ri old",
            &[
                (Act::PerhapsRemoved, "old"),
                (Act::PerhapsRemoved, "a.py"),
                (Act::PerhapsRemoved, "c.py"),
                (Act::PerhapsRemoved, "e.py"),
            ],
        ),
        (
            "apply_patch",
            patch,
            "apply_patch",
            &[(Act::Edited, "d.rs"), (Act::Removed, "e.rs")],
        ),
        ("Grep", r#"{"pattern": "x", "path": "src"}"#, "Grep", &[]),
    ] {
        let call = TranscriptCall::new(name, arguments);
        let found: Vec<(Act, &str)> = call
            .files
            .iter()
            .map(|(act, path)| (*act, path.as_str()))
            .collect();
        assert_eq!(found, files, "{arguments}");
        assert!(call.signature.starts_with(shown), "{}", call.signature);
    }
}

#[test]
fn outcomes_are_told_from_contents() {
    for (name, arguments, text, is_error, expected) in [
        (
            "Grep",
            r#"{"pattern": "Error"}"#,
            "src/a.rs:12: return Err(anyhow!(\"failed to open\"))",
            false,
            None,
        ),
        (
            "Bash",
            r#"{"command": "git log --oneline -3"}"#,
            "ab12cd3 fix: error in crane timeout",
            false,
            None,
        ),
        (
            "Bash",
            r#"{"command": "cat build.log"}"#,
            "error: could not compile `x`",
            false,
            None,
        ),
        (
            "Bash",
            r#"{"command": "cargo test"}"#,
            "thread 'main' panicked at src/crane.rs:88: index out of bounds\ntest result: FAILED. 1 passed; 1 failed",
            false,
            Some("thread 'main' panicked at src/crane.rs:88: index out of bounds"),
        ),
        (
            "Bash",
            r#"{"command": "python3 run.py"}"#,
            "Traceback (most recent call last)\n  File x\nValueError: no berth",
            false,
            Some("ValueError: no berth"),
        ),
        (
            "Edit",
            r#"{"file_path": "a.rs"}"#,
            "<tool_use_error>String to replace not found in file.</tool_use_error>",
            false,
            Some("String to replace not found in file."),
        ),
        ("Edit", r#"{"file_path": "a.rs"}"#, "ok", true, Some("ok")),
        (
            "Edit",
            r#"{"file_path": "a.rs"}"#,
            "The user doesn't want to proceed with this tool use. The user said:\nPut it into b.rs.",
            false,
            Some("Put it into b.rs."),
        ),
        (
            "mcp__browser__upload",
            "{}",
            "### Error\nError: no such file: a.txt",
            true,
            Some("Error: no such file: a.txt"),
        ),
    ] {
        let call = TranscriptCall::new(name, arguments);
        let found = match outcome(&call, text, is_error) {
            Outcome::Failed(line) => Some(line),
            Outcome::Done(_) => None,
        };
        assert_eq!(found.as_deref(), expected, "{text}");
    }
}

#[test]
fn names_and_numbers_that_a_call_made_are_told() {
    let filler = "The pre-commit hook has checked all of the staged files.\n".repeat(4);
    for (command, result, expected) in [
        (
            "git commit -m 'Drop it'",
            "[next d4c16f87] Drop it\n 1 file changed, 90 deletions(-)",
            "[next d4c16f87] Drop it; 1 file changed, 90 deletions(-)",
        ),
        (
            "gh pr create --fill",
            "Creating a draft\nhttps://github.com/acme/quay/pull/412",
            "https://github.com/acme/quay/pull/412",
        ),
        (
            "npm run dev",
            "ready\nLocal: http://localhost:5173/app",
            "Local: http://localhost:5173/app",
        ),
    ] {
        let call = TranscriptCall::new("", command);
        let outcome = outcome(&call, &format!("{filler}{result}"), false);
        assert_eq!(outcome, Outcome::Done(expected.to_owned()), "{command}");
    }
}

fn files_after(acts: &[(Act, &str)]) -> Vec<String> {
    let mut files = FileList::default();
    for (at, (act, path)) in acts.iter().enumerate() {
        files.note(*act, path, (at, 0));
    }
    files.all.iter().map(FileRecord::words).collect()
}

#[test]
fn the_list_of_files_is_that_of_the_end() {
    let words = files_after(&[
        (Act::Read, "/quay/src/a.rs"),
        (Act::Edited, "src/a.rs"),
        (Act::Written, "old/x.py"),
        (Act::Written, "old/y.py"),
        (Act::Removed, "old"),
        (Act::Written, "tmp_1.py"),
        (Act::Removed, "tmp_*.py"),
        (Act::Edited, "src/b.rs"),
        (Act::Restored, "src/b.rs"),
        (Act::Removed, "never_seen.rs"),
        (Act::Written, "back.rs"),
        (Act::Removed, "back.rs"),
        (Act::Written, "back.rs"),
        (Act::Written, "last.rs"),
        (Act::PerhapsRemoved, "last.rs"),
        (Act::PerhapsRemoved, "never_seen_either.rs"),
        (Act::Read, "gone.rs"),
        (Act::Removed, "gone.rs"),
        (Act::Restored, "gone.rs"),
    ]);
    assert_eq!(
        words,
        [
            "/quay/src/a.rs (edited 1)",
            "old/x.py (removed)",
            "old/y.py (removed)",
            "tmp_1.py (written 1, perhaps removed)",
            "src/b.rs (changes undone)",
            "never_seen.rs (removed)",
            "back.rs (written 2)",
            "last.rs (written 1, perhaps removed)",
            "gone.rs (changes undone)",
        ]
    );
}

#[test]
fn only_the_same_path_is_certainly_removed() {
    for (known, removed, words) in [
        ("src/a.rs", "src/a.rs", "removed"),
        ("src/a.rs", "src", "removed"),
        ("/quay/src/a.rs", "src/a.rs", "edited 1, perhaps removed"),
        ("src/a.rs", "/quay/src/a.rs", "edited 1, perhaps removed"),
        ("src/a.rs", "/quay/src", "edited 1, perhaps removed"),
        ("/quay/src/a.rs", "src", "edited 1, perhaps removed"),
        (
            "web/config.json",
            "config.json",
            "edited 1, perhaps removed",
        ),
        ("src/a.rs", "src/*.rs", "edited 1, perhaps removed"),
        ("src/a.rs", ".", "edited 1, perhaps removed"),
        ("src/deep/a.rs", "src/*.rs", "edited 1"),
        ("src/a.rs", "a", "edited 1"),
    ] {
        let mut files = FileList::default();
        files.note(Act::Edited, known, (1, 0));
        files.note(Act::Removed, removed, (2, 0));
        let expected = format!("{known} ({words})");
        assert_eq!(files.all[0].words(), expected, "{removed}");
        assert_eq!(
            files.untested((0, 0)).is_empty(),
            words == "removed",
            "{removed}"
        );
    }
}

#[test]
fn a_failure_is_settled_by_the_same_test_or_a_larger_one() {
    for (failed, passed, is_open) in [
        ("pytest tests/a.py", "pytest tests/b.py", true),
        ("pytest tests/a.py", "pytest tests/a.py -v", false),
        ("pytest tests/a.py", "python -m pytest", false),
        ("cargo test", "cargo build", true),
        ("cargo test | tail -5", "cargo test 2>&1 | tail -9", false),
        ("npm test", "npm run lint", true),
        ("cd api && cargo test", "cd web && cargo test", true),
        ("cd /x/api && cargo test", "cd /x/web && cargo test", true),
        ("cd /x && cargo test", "cargo test", false),
        ("pytest a.py::t", "pytest a.py", false),
        ("go test ./a", "go test ./...", false),
        ("pytest a.py", "pytest a.pyx", true),
    ] {
        let mut state = WorkState::default();
        state.fail(&TranscriptCall::new("", failed), "error: x");
        state.succeeded(&TranscriptCall::new("", passed));
        assert_eq!(!state.items(&[]).is_empty(), is_open, "{failed}, {passed}");
    }
}

#[test]
fn an_edit_counts_as_made_only_if_nothing_speaks_against_it() {
    for text in [
        "old_str not found in src/tide.rs. No changes made.",
        "The old_string was not found in the file.",
        r#"{"status":"error","message":"no match"}"#,
        "Edit rejected: file is read-only",
        "Found 3 matches of old_string, but replace_all is false. Nothing was changed.",
        "Permission denied: src/tide.rs",
        "PermissionError: [Errno 13]",
        "User declined the change.",
        "Patch failed: hunk #1 does not apply",
        "aborted: this call has no result",
    ] {
        let call = TranscriptCall::new("Edit", r#"{"file_path": "src/tide.rs"}"#);
        let outcome = outcome(&call, text, false);
        assert!(matches!(outcome, Outcome::Failed(_)), "{text}");
    }
    for text in [
        "The file src/error.rs has been updated. Here is the part:\n12 return Err(error)",
        "Edited /h/src/error.rs",
        "Successfully replaced 1 line; 0 errors, 2 warnings",
        "ok",
    ] {
        let call = TranscriptCall::new("Edit", r#"{"file_path": "src/error.rs"}"#);
        assert_eq!(
            outcome(&call, text, false),
            Outcome::Done(String::new()),
            "{text}"
        );
    }
}

#[test]
fn counts_of_failed_tests_are_failures() {
    for (text, is_failed) in [
        ("2 passing\n1 failing", true),
        ("5 examples, 1 failure", true),
        ("1 fail", true),
        ("Failed!  - Failed: 1, Passed: 3", true),
        ("FAILED (failures=1)", true),
        ("12 passed; 0 failed", false),
        ("Tests: 0 failed, 5 passed", false),
    ] {
        let call = TranscriptCall::new("", "npm test");
        let outcome = outcome(&call, text, false);
        assert_eq!(matches!(outcome, Outcome::Failed(_)), is_failed, "{text}");
    }
}

#[test]
fn results_and_decisions_are_statements() {
    for text in [
        "Let me check the file.",
        "Now I'll fix the bug.",
        "The changes are:",
        "| a | b |",
        "## Summary",
        "Done.",
        "Three of the tests still fail because of that.",
        "让我检查一下问题。",
    ] {
        assert!(statements(text, false).is_empty(), "{text}");
    }
    for text in [
        "The root cause is that parse_header trusts raw_length.",
        "We decided to keep the old lexer because macros need it.",
        "All 12 tests pass and the build has succeeded.",
    ] {
        assert_eq!(statements(text, false), [text]);
    }
    let passing = "Three of the tests still fail.";
    assert_eq!(statements(passing, true), [passing]);
}

#[test]
fn a_question_is_told_with_its_options() {
    for (text, question) in [
        ("I have read it. Shall I ship it?", Some("Shall I ship it?")),
        (
            "Which one?\n1. SQLite\n2. Postgres",
            Some("Which one? 1. SQLite 2. Postgres"),
        ),
        (
            "- SQLite\n- Postgres\nWhich one do you want?",
            Some("- SQLite - Postgres Which one do you want?"),
        ),
        ("Why? Because of the lexer.", None),
        ("Is it so?\nYes, it is so.", None),
    ] {
        assert_eq!(open_question(text).as_deref(), question, "{text}");
    }
}

#[test]
fn rules_are_told_with_their_source() {
    assert_eq!(rules::source("/quay/docs/POLICY.md"), Some("POLICY.md"));
    assert_eq!(rules::source("src/policy.rs"), None);
    let text = "   12→- Never push to main.\nThe harbour is calm.\n必须先运行测试。";
    assert_eq!(
        rules::of_file("POLICY.md", text),
        [
            "POLICY.md: Never push to main.",
            "POLICY.md: 必须先运行测试。"
        ]
    );
    // Only whole sentences are rules: no headings, lead-ins, code, or halves of wrapped lines.
    let text = "# Always-Read Rules\n\nIt only carries the basics. You must read the\n\
        guide of the berth before\n  you start. Then always do:\n\n- Stage explicit paths only, and\n  \
        **never** push to main.\n```\nnever = true\n```\nonly a torn sentence.";
    assert_eq!(
        rules::of_file("AGENTS.md", text),
        [
            "AGENTS.md: You must read the guide of the berth before you start.",
            "AGENTS.md: Stage explicit paths only, and never push to main.",
        ]
    );
    assert!(rules::of_agent("I must have read the wrong file.").is_empty());
    assert_eq!(
        rules::of_agent("Memory loaded. I must keep the port at 8431. It is calm."),
        ["agent's note: I must keep the port at 8431."]
    );
}

#[test]
fn the_state_is_written_and_read_back() {
    let mut state = WorkState::default();
    let list = r#"{"todos": [{"content": "parse", "status": "completed"}, {"content": "print", "status": "in_progress"}, {"content": "ship", "status": "pending"}]}"#;
    state.call(&TranscriptCall::new("TodoWrite", list), "");
    state.ask(Some("Shall I ship it?"));
    state.fail(&TranscriptCall::new("", "cargo test -p a"), "error: x");
    let items = state.items(&["b.rs", "a.rs"]);
    let lines: Vec<&str> = items.iter().map(String::as_str).collect();
    assert_eq!(
        lines,
        [
            "Last failure: cargo test -p a → failed: error: x",
            "Open question: Shall I ship it?",
            "Todo: #2 print (in progress); #3 ship",
            "Changed, not tested since: b.rs, a.rs",
        ]
    );
    let mut again = WorkState::default();
    let untested: Vec<&str> = lines.iter().filter_map(|line| again.carry(line)).collect();
    assert_eq!(untested, ["b.rs, a.rs"]);
    assert_eq!(again.items(&["b.rs", "a.rs"]), items);
    for update in [
        r#"{"taskId": "2", "status": "completed"}"#,
        r#"{"taskId": "3", "subject": "ship it"}"#,
    ] {
        again.call(&TranscriptCall::new("TaskUpdate", update), "");
    }
    again.succeeded(&TranscriptCall::new("", "cargo test"));
    again.ask(None);
    let items = again.items(&[]);
    assert_eq!(items, ["Todo: #3 ship it"]);
}

#[test]
fn changed_files_are_told_until_a_test_ran() {
    let mut files = FileList::default();
    let changed = ["a.rs", "notes.md", "/tmp/x.py", "old/c.rs", "b.rs"];
    for (at, path) in changed.into_iter().enumerate() {
        files.note(Act::Edited, path, (at + 1, 0));
    }
    assert_eq!(files.untested((0, 0)), ["b.rs", "old/c.rs", "a.rs"]);
    files.note(Act::Removed, "old", (7, 0));
    assert_eq!(files.untested((0, 0)), ["b.rs", "a.rs"]);
    assert_eq!(files.untested((1, 0)), ["b.rs"]);
}

/// The last line of a state, after the tasks `from..=to` were created and those of `done` completed.
fn tasks(
    state: &mut WorkState,
    created: RangeInclusive<usize>,
    done: RangeInclusive<usize>,
) -> Option<String> {
    for task in created {
        let arguments = json!({ "subject": format!("task {task}") }).to_string();
        let result = format!("Task #{task} created successfully: task {task}");
        state.call(&TranscriptCall::new("TaskCreate", &arguments), &result);
    }
    for task in done {
        let arguments = json!({ "taskId": task.to_string(), "status": "completed" }).to_string();
        state.call(
            &TranscriptCall::new("TaskUpdate", &arguments),
            "Updated task",
        );
    }
    state.items(&[]).pop()
}

#[test]
fn tasks_keep_their_numbers_over_a_compaction() {
    let mut first = WorkState::default();
    let line = tasks(&mut first, 1..=3, 1..=2).unwrap();
    assert_eq!(line, "Todo: #3 task 3");
    let mut second = WorkState::default();
    second.carry(&line);
    let line = tasks(&mut second, 4..=4, 3..=3).unwrap();
    assert_eq!(line, "Todo: #4 task 4");
    assert_eq!(tasks(&mut second, 5..=5, 4..=5), None);
}

#[test]
fn the_newest_of_many_tasks_are_told() {
    let mut state = WorkState::default();
    tasks(&mut state, 1..=40, 1..=40);
    assert_eq!(
        tasks(&mut state, 41..=45, 41..=43).as_deref(),
        Some("Todo: #44 task 44; #45 task 45")
    );
}
