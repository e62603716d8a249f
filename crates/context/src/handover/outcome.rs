//! The outcome of a tool call: whether it failed, the line that says why, and the names and numbers
//! that it made.
//!
//! An error flag of the provider is trusted. Without one, the exit code decides, then the typical
//! output at the end of a failed program. Searches, logs and the contents of files never count as
//! failures. Of a long result only the beginning and the end are read.

use std::borrow::Cow;

use serde_json::Value;

use super::calls::{CallKind, TranscriptCall};
use super::names;
use super::replies;
use super::sentences::{clip, one_line, without_escapes};

/// The maximum length of an outcome, in bytes.
const OUTCOME_MAX: usize = 100;
/// The maximum length of an error, in bytes.
const ERROR_MAX: usize = 240;
/// The parts of a long result that are read, in bytes.
const HEAD: usize = 2_000;
const TAIL: usize = 4_000;
/// The maximum length of a result that may be an unflagged error message, in bytes. A longer result
/// counts as content, unless the call changes a file.
const MESSAGE_MAX: usize = 1_500;
/// The number of lines at the end of an output in which a test summary is searched.
const SUMMARY_LINES: usize = 15;
/// The maximum length of a line of text; a longer line is data.
const LINE_MAX: usize = 1_000;
/// The maximum number of names that a call made.
const MADE_MAX: usize = 3;
/// Words before a test's counts.
const PASS_WORDS: [&str; 4] = ["pass", "passed", "passing", "ok"];

const OUTCOMES: &str = include_str!("words/outcomes.txt");
const TEST_FAILURES: &str = include_str!("words/test_failures.txt");
const FAILURE_OPENINGS: &str = include_str!("words/failure_openings.txt");

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The call failed; the line that says why.
    Failed(String),
    /// The call succeeded; a short form of its output, or nothing.
    Done(String),
}

/// Returns the entries of a list of `words/outcomes.txt`.
fn list(name: &str) -> impl Iterator<Item = &'static str> {
    let heading = format!("[{name}]");
    let mut lines = OUTCOMES.lines().skip_while(move |line| *line != heading);
    lines.nth(1).unwrap_or_default().split('|')
}

/// Determines the outcome from a result.
pub(crate) fn outcome(call: &TranscriptCall, text: &str, is_error: bool) -> Outcome {
    let ends = ends(text);
    let plain = without_escapes(&ends);
    let text = plain.trim();
    // A chat without error flags: the reason is no proof of the user's words, but the call failed.
    if !call.is_reader() && replies::is_refusal(text) {
        let reason = text.lines().next_back().unwrap_or_default();
        return Outcome::Failed(one_line(reason, ERROR_MAX));
    }
    let failed = is_error || is_failure(call, text);
    if failed {
        return Outcome::Failed(error_line(text));
    }
    Outcome::Done(match &call.kind {
        // The contents of a file are no outcome.
        CallKind::File => String::new(),
        CallKind::Command(command) if command.is_test => {
            test_summary(text).unwrap_or_else(|| short_form(call, text))
        }
        _ => short_form(call, text),
    })
}

/// Returns the beginning and the end of a long result.
fn ends(text: &str) -> Cow<'_, str> {
    if text.len() <= HEAD + TAIL {
        return Cow::Borrowed(text);
    }
    let tail = text.get(text.ceil_char_boundary(text.len() - TAIL)..);
    Cow::Owned(format!(
        "{}\n{}",
        clip(text, HEAD),
        tail.unwrap_or_default()
    ))
}

fn is_failure(call: &TranscriptCall, text: &str) -> bool {
    match &call.kind {
        CallKind::Command(command) => match exit_code(text) {
            Some(0) => !command.is_reader && tests_failed(text),
            // `grep` and `diff` report an empty or a differing result with this code.
            Some(1) => !command.is_reader,
            Some(_) => true,
            None => {
                let is_failed =
                    tests_failed(text) || program_failed(text) || text.starts_with("error: ");
                (is_failed && !command.is_reader) || shell_failed(text)
            }
        },
        CallKind::Search => false,
        CallKind::File | CallKind::Other => {
            let bare = bare(text);
            // The result of a change is no content: a refusal may repeat the whole text.
            let is_message = bare.len() <= MESSAGE_MAX || !call.is_reader();
            let mut openings = FAILURE_OPENINGS.lines().filter(|line| !line.is_empty());
            is_message
                && (openings.any(|opening| bare.starts_with(opening)) || is_failure_json(bare))
        }
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
    // Codex writes a head of several lines before the output.
    let text = text.split_once("\nOutput:\n").map_or(text, |(head, rest)| {
        if head.lines().count() <= 6 {
            rest
        } else {
            text
        }
    });
    text.strip_suffix("</output>").unwrap_or(text).trim()
}

/// Returns the exit code that a host or a shell reports.
fn exit_code(text: &str) -> Option<i64> {
    if text.starts_with('{')
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        let at = |value: &Value| {
            let code = value.get("exit_code").or_else(|| value.get("exitCode"));
            code.and_then(Value::as_i64)
        };
        return at(&value).or_else(|| value.get("metadata").and_then(at));
    }
    let ends = text.lines().take(4).chain(text.lines().rev().take(4));
    ends.filter(|line| line.len() <= LINE_MAX).find_map(|line| {
        let low = line.to_lowercase();
        list("exit_codes").find_map(|mark| {
            let (_, behind) = low.split_once(mark)?;
            let behind = behind.trim_start_matches([':', ' ', '=', '"', '>']);
            let end = behind.find(|c: char| !(c.is_ascii_digit() || c == '-'));
            behind.get(..end.unwrap_or(behind.len()))?.parse().ok()
        })
    })
}

/// Returns `true` if an output ends with the summary of a failed build or test. The last summary
/// decides, not earlier log lines of the program.
fn tests_failed(text: &str) -> bool {
    let ends = text.lines().rev().filter(|line| line.len() <= LINE_MAX);
    let verdict = ends.take(SUMMARY_LINES).find_map(|line| {
        let mut marks = TEST_FAILURES.lines().filter(|mark| !mark.is_empty());
        let fails = line.starts_with("error: ")
            || line.starts_with("error[")
            || marks.any(|mark| line.contains(mark))
            || counts_failures(line);
        let trimmed = line.trim();
        let passes = ["0 fail", "0 failed", "0 failures", "0 errors", "OK"].contains(&trimmed)
            || trimmed.starts_with("test result: ok")
            || trimmed.starts_with("OK (");
        (fails || passes).then_some(fails)
    });
    verdict.unwrap_or(false)
}

/// Returns `true` for `3 failed`, `Found 2 errors` and `failures=1`, but not for `0 failed`.
fn counts_failures(line: &str) -> bool {
    let words: Vec<&str> = line
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let count = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
    let is_of_tests = |word: &&str| {
        let words = [
            "passed", "total", "Tests", "tests", "Found", "FAILED", "failures",
        ];
        words.contains(word)
    };
    let is_summary = words.iter().any(is_of_tests) || line.starts_with("===");
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
    let last = last.unwrap_or_default();
    let is_traceback = text.contains("Traceback (most recent call last)");
    (is_traceback && is_exception(last))
        || last.contains("panicked at ")
        || text.starts_with("Traceback (most recent call last)")
}

/// Returns `true` for a line such as `ValueError: no berth`.
fn is_exception(line: &str) -> bool {
    let head = line.split(':').next().unwrap_or_default();
    let is_error = head.ends_with("Error") || head.ends_with("Exception");
    is_error && !head.contains(char::is_whitespace)
}

/// Returns `true` if the shell could not run the command: a short output with a known error
/// message.
fn shell_failed(text: &str) -> bool {
    let text = bare(text);
    let is_error = |line: &str| {
        line.len() <= LINE_MAX
            && (list("shell_failures").any(|mark| line.contains(mark))
                || line.starts_with("fatal: "))
    };
    text.lines().count() <= 3 && text.lines().any(is_error)
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
            // A heading such as `### Error` says no more than its word.
            .map(|line| line.trim().trim_start_matches(['#', ' ']))
            .filter(|line| !line.is_empty() && line.len() <= LINE_MAX)
            .filter(|line| !line.to_lowercase().starts_with("exit code"))
    };
    let is_error = |line: &&str| {
        let low = line.to_lowercase();
        list("error_words").any(|word| low.contains(word))
    };
    // An exception is in the last lines; of compiler errors, the first one matters.
    let exception = lines()
        .rfind(|line| is_exception(line))
        .filter(|_| text.contains("Traceback (most recent call last)"));
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

/// Returns a short form of a successful call's output: the whole of a short one, or the names and
/// numbers that the call made.
fn short_form(call: &TranscriptCall, text: &str) -> String {
    let text = bare(text);
    if text.len() <= OUTCOME_MAX {
        if matches!(text, "ok" | "(no output)") {
            return String::new();
        }
        // A trailing colon or bracket does not introduce anything here.
        let text = text.trim_end_matches([':', '{', '(', '|', ' ']);
        return one_line(text, OUTCOME_MAX);
    }
    if matches!(call.kind, CallKind::Search) {
        return String::new();
    }
    let made = names::made(text, &call.text);
    let made: Vec<&str> = made.into_iter().take(MADE_MAX).collect();
    made.join("; ")
}
