//! The outcome of a tool call: whether it failed, and the line that says why.
//!
//! An error flag of the provider is trusted. Without one, the exit code decides, then the typical
//! output at the end of a failed program. Searches, logs and the contents of files never count as
//! failures.

use serde_json::Value;

use crate::calls::{CallKind, TranscriptCall};
use crate::sentences::{one_line, without_escapes};

/// The maximum length of an outcome, in bytes.
const OUTCOME_MAX: usize = 100;
/// The maximum length of an error, in bytes.
const ERROR_MAX: usize = 240;
/// The maximum length of a result that may be an unflagged error message, in bytes. A longer result
/// counts as content, unless the call changes a file.
const MESSAGE_MAX: usize = 1_500;
/// The number of lines at the end of an output in which a test summary is searched.
const SUMMARY_LINES: usize = 15;
/// The maximum length of a line of text; a longer line is data.
const LINE_MAX: usize = 1_000;

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The call failed; the line that says why.
    Failed(String),
    /// The call succeeded; a short form of its output.
    Done(String),
    /// The call succeeded; the number of lines of an output that has no short form.
    Lines(usize),
}

/// Determines the outcome from a result.
pub(crate) fn outcome(call: Option<&TranscriptCall>, text: &str, is_error: bool) -> Outcome {
    let plain = without_escapes(text);
    let text = plain.trim();
    let failed = match call.map(|call| &call.kind) {
        _ if is_error => true,
        Some(CallKind::Command(command)) => {
            let fails = |code: i64| match code {
                0 => !command.is_reader && tests_failed(text),
                // `grep` and `diff` report an empty or a differing result with this code.
                1 => !command.is_reader,
                _ => true,
            };
            exit_code(text).map_or_else(
                || {
                    let is_failed =
                        tests_failed(text) || program_failed(text) || text.starts_with("error: ");
                    (is_failed && !command.is_reader) || shell_failed(text)
                },
                fails,
            )
        }
        Some(CallKind::Search) => false,
        Some(CallKind::File | CallKind::Other) | None => {
            let bare = bare(text);
            // The result of a change is no content: a refusal may repeat the whole text.
            let is_message =
                bare.len() <= MESSAGE_MAX || call.is_some_and(TranscriptCall::is_change);
            is_message && (is_failure_text(bare) || is_failure_json(bare))
        }
    };
    if failed {
        return Outcome::Failed(error_line(text));
    }
    match call.map(|call| &call.kind) {
        // The contents of a file are no outcome.
        Some(CallKind::File) => Outcome::Done(String::new()),
        Some(CallKind::Command(command)) if command.is_test => {
            test_summary(text).map_or_else(|| short_form(text), Outcome::Done)
        }
        _ => short_form(text),
    }
}

/// Returns an output without the wrappers of hosts.
fn bare(text: &str) -> &str {
    let text = text.strip_prefix("<tool_use_error>").unwrap_or(text);
    let text = text.strip_suffix("</tool_use_error>").unwrap_or(text);
    let text = text.strip_prefix("OBSERVATION:").unwrap_or(text);
    let code = text.strip_prefix("<returncode>");
    let text = code
        .and_then(|code| code.split_once("</returncode>"))
        .map_or(text, |(_, text)| text);
    let text = text.trim().strip_prefix("<output>").unwrap_or(text);
    text.strip_suffix("</output>").unwrap_or(text).trim()
}

/// Returns the exit code that a host or a shell reports.
fn exit_code(text: &str) -> Option<i64> {
    if text.starts_with('{')
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        let at = |value: &Value| {
            value
                .get("exit_code")
                .or_else(|| value.get("exitCode"))
                .and_then(Value::as_i64)
        };
        return at(&value).or_else(|| value.get("metadata").and_then(at));
    }
    let ends = text.lines().take(2).chain(text.lines().rev().take(4));
    ends.filter(|line| line.len() <= LINE_MAX).find_map(|line| {
        let low = line.to_lowercase();
        EXIT_CODES.split('|').find_map(|mark| {
            let (_, behind) = low.split_once(mark)?;
            let behind = behind.trim_start_matches([':', ' ', '=', '"', '>']);
            let end = behind
                .find(|c: char| !(c.is_ascii_digit() || c == '-'))
                .unwrap_or(behind.len());
            behind.get(..end)?.parse().ok()
        })
    })
}

/// Returns `true` if an output ends with the summary of a failed build or test. The last summary
/// decides, not earlier log lines of the program.
fn tests_failed(text: &str) -> bool {
    let ends = text.lines().rev().filter(|line| line.len() <= LINE_MAX);
    ends.take(SUMMARY_LINES)
        .find_map(|line| {
            let fails = line.starts_with("error: ")
                || line.starts_with("error[")
                || TEST_FAILURES
                    .lines()
                    .any(|mark| !mark.is_empty() && line.contains(mark))
                || counts_failures(line);
            let trimmed = line.trim();
            let passes = ["0 fail", "0 failed", "0 failures", "0 errors", "OK"].contains(&trimmed)
                || trimmed.starts_with("test result: ok")
                || trimmed.starts_with("OK (");
            (fails || passes).then_some(fails)
        })
        .unwrap_or(false)
}

/// Returns `true` for `3 failed`, `Found 2 errors` and `failures=1`, but not for `0 failed`.
fn counts_failures(line: &str) -> bool {
    let words: Vec<&str> = line
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let count = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
    let is_summary = words.iter().any(|word| {
        [
            "passed", "total", "Tests", "tests", "Found", "FAILED", "failures",
        ]
        .contains(word)
    }) || line.starts_with("===");
    words.windows(2).any(|pair| match pair {
        [a, "failed" | "failing" | "failures"] if count(a) => is_summary,
        [a, "error" | "errors"] if count(a) => {
            words.contains(&"Found") || words.contains(&"generated")
        }
        ["failures" | "errors", b] if count(b) => line.contains('='),
        _ => false,
    })
}

/// Returns `true` if the last lines are those of a program that ended with an exception.
fn program_failed(text: &str) -> bool {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let Some(last) = last.filter(|line| line.len() <= LINE_MAX) else {
        return false;
    };
    let head = last.split(':').next().unwrap_or_default();
    let is_exception = (head.ends_with("Error") || head.ends_with("Exception"))
        && !head.contains(char::is_whitespace)
        && text.contains("Traceback (most recent call last)");
    is_exception
        || last.contains("panicked at ")
        || text.starts_with("Traceback (most recent call last)")
}

/// Returns `true` if the shell could not run the command: a short output with a known error
/// message.
fn shell_failed(text: &str) -> bool {
    let text = bare(text);
    let lines = text.lines().count();
    lines <= 3
        && text.lines().any(|line| {
            line.len() <= LINE_MAX
                && (SHELL_FAILURES.split('|').any(|mark| line.contains(mark))
                    || line.starts_with("fatal: "))
        })
}

fn is_failure_text(text: &str) -> bool {
    FAILURE_OPENINGS
        .lines()
        .any(|opening| !opening.is_empty() && text.starts_with(opening))
}

fn is_failure_json(text: &str) -> bool {
    if !text.starts_with('{') {
        return false;
    }
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    let is_set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    map.get("error").is_some_and(is_set)
        || map.get("isError").is_some_and(is_set)
        || map.get("success") == Some(&Value::Bool(false))
}

/// Returns the line of a failed result that says why.
fn error_line(text: &str) -> String {
    let text = bare(text);
    let lines = || {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && line.len() <= LINE_MAX)
            .filter(|line| !line.to_lowercase().starts_with("exit code"))
    };
    // An exception is in the last lines; of compiler errors, the first one matters.
    let exception = text
        .contains("Traceback (most recent call last)")
        .then(|| {
            lines().rfind(|line| {
                line.split(':')
                    .next()
                    .is_some_and(|head| head.ends_with("Error") || head.ends_with("Exception"))
            })
        })
        .flatten();
    let is_error = |line: &&str| {
        let low = line.to_lowercase();
        ERROR_WORDS.split('|').any(|word| low.contains(word))
    };
    let found = exception
        .or_else(|| lines().find(is_error))
        .or_else(|| lines().next());
    let found = found.unwrap_or("no output");
    // "ERROR:" alone is useless; the next line has the message.
    if found.split_whitespace().count() < 2
        && let Some(next) = lines().skip_while(|line| *line != found).nth(1)
    {
        return one_line(&format!("{found} {next}"), ERROR_MAX);
    }
    one_line(found.trim_end_matches(['|', ':', ' ']), ERROR_MAX)
}

/// Returns the last line near the end of a long output that counts what passed: programs print
/// other lines after it.
fn test_summary(text: &str) -> Option<String> {
    let text = bare(text);
    if text.len() <= OUTCOME_MAX {
        return None;
    }
    let counts = |line: &&str| {
        let low = line.to_lowercase();
        let mut words = low.split(|c: char| !c.is_ascii_alphanumeric());
        line.len() <= OUTCOME_MAX
            && line.bytes().any(|byte| byte.is_ascii_digit())
            && words.any(|word| PASS_WORDS.contains(&word))
    };
    let mut lines = text.lines().rev().take(SUMMARY_LINES).map(str::trim);
    lines.find(counts).map(|line| one_line(line, OUTCOME_MAX))
}

/// Returns a short form of a successful call's output.
fn short_form(text: &str) -> Outcome {
    let text = bare(text);
    if text.is_empty() {
        return Outcome::Done("ok".to_owned());
    }
    if text.len() <= OUTCOME_MAX {
        // A trailing colon or bracket does not introduce anything here.
        let text = text.trim_end_matches([':', '{', '(', '|', ' ']);
        return Outcome::Done(one_line(text, OUTCOME_MAX));
    }
    // Tests and builds report their result at the end.
    let last = text.lines().next_back().unwrap_or_default();
    let low = last.to_lowercase();
    if last.len() <= OUTCOME_MAX && END_WORDS.split('|').any(|word| low.contains(word)) {
        return Outcome::Done(one_line(last, OUTCOME_MAX));
    }
    match text.lines().count() {
        1 => Outcome::Done(String::new()),
        lines => Outcome::Lines(lines),
    }
}

const EXIT_CODES: &str =
    "exit code|exited with code|exit status|returncode|return code|exit_code|exited with status";
const TEST_FAILURES: &str = include_str!("words/test_failures.txt");
const FAILURE_OPENINGS: &str = include_str!("words/failure_openings.txt");
const SHELL_FAILURES: &str = "command not found|No such file or directory|Permission denied|Is a directory|\
    cannot access|Operation not permitted";
const ERROR_WORDS: &str = "error|fail|exception|panicked|not found|no such|denied|cannot|can't|unable|invalid|错误|エラー|\
    오류";
const END_WORDS: &str =
    "pass|ok|done|success|finished|complete|built|compiled|up to date|created|updated|total";

const PASS_WORDS: [&str; 4] = ["pass", "passed", "passing", "ok"];

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(name: &str, arguments: &str, text: &str, is_error: bool) -> bool {
        let call = TranscriptCall::new(name, arguments);
        matches!(outcome(Some(&call), text, is_error), Outcome::Failed(_))
    }

    #[test]
    fn contents_are_no_failures() {
        for (name, arguments, text) in [
            (
                "Grep",
                r#"{"pattern": "Error"}"#,
                "src/a.rs:12: return Err(anyhow!(\"failed to open\"))",
            ),
            (
                "Bash",
                r#"{"command": "git log --oneline -3"}"#,
                "ab12cd3 fix: error in crane timeout",
            ),
            (
                "Bash",
                r#"{"command": "cat build.log"}"#,
                "error: could not compile `x`",
            ),
            (
                "Read",
                r#"{"file_path": "a.rs"}"#,
                "1\tthrow new Error('failed')",
            ),
            (
                "Bash",
                r#"{"command": "cargo test"}"#,
                "test result: ok. 12 passed; 0 failed; 0 ignored",
            ),
            ("Bash", r#"{"command": "grep x a"}"#, "Exit code 1"),
        ] {
            assert!(!failed(name, arguments, text, false), "{text}");
        }
    }

    #[test]
    fn long_test_output_is_told_by_its_totals() {
        let log = "(pass) parser reads a header\n".repeat(20);
        let done = |text: &str| Outcome::Done(text.to_owned());
        for (end, expected) in [
            (
                " 1241 pass\n 0 fail\n 2684 expect() calls",
                done("1241 pass"),
            ),
            (
                "OK (skipped=4)\nDestroying test database",
                done("OK (skipped=4)"),
            ),
            (
                "Tests: 5 passed, 5 total\nRan all test suites.",
                done("Tests: 5 passed, 5 total"),
            ),
            ("Checked 274 files.", Outcome::Lines(21)),
        ] {
            let call = TranscriptCall::new("bash", r#"{"command": "npm test"}"#);
            let found = outcome(Some(&call), &format!("{log}{end}"), false);
            assert_eq!(found, expected, "{end}");
        }
    }

    #[test]
    fn failures_are_known_by_flag_code_and_summary() {
        for (name, arguments, text, is_error) in [
            ("Write", r#"{"file_path": "a"}"#, "ok, written", true),
            (
                "Bash",
                r#"{"command": "cargo test"}"#,
                "test result: FAILED. 1 passed; 1 failed",
                false,
            ),
            (
                "bash",
                r#"{"command": "pytest"}"#,
                "==== 2 failed, 3 passed in 1s ====",
                false,
            ),
            (
                "bash",
                r#"{"command": "make"}"#,
                "gcc x\nExit code: 2",
                false,
            ),
            (
                "bash",
                r#"{"command": "./x"}"#,
                "bash: ./x: No such file or directory",
                false,
            ),
            (
                "bash",
                r#"{"command": "python a.py"}"#,
                "Traceback (most recent call last):\n  File\nValueError: x",
                false,
            ),
            (
                "shell",
                r#"{"command": ["bash", "-lc", "make"]}"#,
                r#"{"output": "x", "metadata": {"exit_code": 1}}"#,
                false,
            ),
            ("get_user", r#"{"id": "x"}"#, "Error: user not found", false),
            (
                "get_user",
                r#"{"id": "x"}"#,
                r#"{"error": "user not found"}"#,
                false,
            ),
            (
                "edit",
                r#"{"path": "a"}"#,
                "String to replace not found in file.",
                false,
            ),
            (
                "edit",
                r#"{"path": "a", "old_string": "x"}"#,
                &format!(
                    "ERROR:\nNo replacement was performed: {}",
                    "x".repeat(4_000)
                ),
                false,
            ),
        ] {
            assert!(failed(name, arguments, text, is_error), "{text}");
        }
        let call = TranscriptCall::new("bash", r#"{"command": "python a.py"}"#);
        let text = "Traceback (most recent call last):\n  File \"a\"\nValueError: x";
        assert_eq!(
            outcome(Some(&call), text, false),
            Outcome::Failed("ValueError: x".into())
        );
    }
}
