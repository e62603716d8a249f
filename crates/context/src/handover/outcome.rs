//! The outcome of a tool call: whether it failed, and the line that says why, or the last lines of
//! its output.
//!
//! An error flag of the provider is trusted. Without one, the exit code decides, then the typical
//! output at the end of a failed program. Searches, logs and the contents of files never count as
//! failures. Of a long result only the beginning and the end are read.

use std::borrow::Cow;

use super::calls::{CallKind, TranscriptCall};
use super::replies;
use super::sentences::{clip, clip_start, one_line, without_escapes};
use super::words::{any_in, behind, behind_form, is_in, list};

/// The maximum length of an outcome, in bytes.
const OUTCOME_MAX: usize = 100;
/// The maximum length of an error, in bytes.
const ERROR_MAX: usize = 240;
/// The parts of a long result that are read, in bytes.
const HEAD: usize = 2_000;
const TAIL: usize = 4_000;
/// The parts of a result in which an exit code is searched, in bytes.
const EDGE: usize = 240;
/// The maximum length of a result that may be an unflagged error message, in bytes. A longer result
/// counts as content, unless the call changes a file.
const MESSAGE_MAX: usize = 1_500;
/// The number of lines at the end of an output in which its summary is searched.
const SUMMARY_LINES: usize = 15;
/// The number of lines of a long output that the handover repeats.
const LINES_TOLD: usize = 2;
/// The maximum length of a line of text; a longer line is data.
const LINE_MAX: usize = 1_000;
const TRACEBACK: &str = "Traceback (most recent call last)";

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The call failed; the line that says why.
    Failed(String),
    /// The call succeeded; a short form of its output, or nothing.
    Done(String),
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
    if is_error || is_failure(call, text) {
        return Outcome::Failed(error_line(bare(text)));
    }
    Outcome::Done(short_form(call, bare(text)))
}

/// Returns the beginning and the end of a long result.
fn ends(text: &str) -> Cow<'_, str> {
    if text.len() <= HEAD + TAIL {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}\n{}", clip(text, HEAD), clip_start(text, TAIL)))
}

fn is_failure(call: &TranscriptCall, text: &str) -> bool {
    let is_reader = call.is_reader();
    match &call.kind {
        CallKind::Command(_) => match exit_code(text) {
            Some(0) => !is_reader && output_failed(call, text),
            // `grep` and `diff` report an empty or a differing result with this code.
            Some(1) => !is_reader,
            Some(_) => true,
            None => !is_reader && output_failed(call, text) || shell_failed(bare(text)),
        },
        CallKind::Search => false,
        CallKind::File | CallKind::Other => {
            let bare = bare(text);
            // The result of a change is no content: a refusal may repeat the whole text.
            let is_message = bare.len() <= MESSAGE_MAX || !is_reader;
            is_message && behind("failure_openings", bare).is_some()
                || call.kind == CallKind::File && !is_reader && says_failure(call, bare)
        }
    }
}

/// Returns `true` if the first line of a result tells of a failure. The file may be `error.rs`, and a
/// success may count errors.
fn says_failure(call: &TranscriptCall, text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let mut line = clip(line, ERROR_MAX).to_owned();
    for (_, path) in &call.files {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        line = line.replace(path.as_str(), "").replace(name, "");
    }
    let low = line.to_lowercase();
    any_in("refusal_words", &low) || any_in("error_words", &low) && !any_in("success_words", &low)
}

/// Returns an output without the wrappers of hosts.
pub(crate) fn bare(text: &str) -> &str {
    let mut text = text;
    for (begin, end) in list("wrappers_of_results").filter_map(|row| row.split_once('|')) {
        if let Some(inner) = behind_form(begin, text) {
            let inner = inner.trim();
            text = inner.strip_suffix(end).unwrap_or(inner).trim();
        }
    }
    // Codex writes a head of several lines before the output.
    let output = text.split_once("\nOutput:\n");
    let output = output.filter(|(head, _)| head.lines().count() <= 6);
    output.map_or(text, |(_, output)| output.trim())
}

/// Returns the exit code that a host or a shell reports.
fn exit_code(text: &str) -> Option<i64> {
    [clip(text, EDGE), clip_start(text, EDGE)]
        .iter()
        .find_map(|edge| {
            let low = edge.to_lowercase();
            list("exit_codes").find_map(|mark| {
                let (_, behind) = low.split_once(mark)?;
                let behind = behind.trim_start_matches([':', ' ', '=', '"', '>']);
                let end = behind.find(|c: char| !(c.is_ascii_digit() || c == '-'));
                behind.get(..end.unwrap_or(behind.len()))?.parse().ok()
            })
        })
}

/// Returns `true` if an output ends as that of a failed program. The last summary decides, not
/// earlier log lines.
fn output_failed(call: &TranscriptCall, text: &str) -> bool {
    let has_traceback = text.contains(TRACEBACK);
    if behind("output_failures", bare(text)).is_some() {
        return true;
    }
    let ends = text.lines().rev().filter(|line| line.len() <= LINE_MAX);
    let verdict = ends.take(SUMMARY_LINES).enumerate().find_map(|(n, line)| {
        let fails = line.starts_with("error: ")
            || line.starts_with("error[")
            || any_in("test_failures", line)
            || call.is_test() && counts_failures(line)
            || n == 0 && has_traceback && is_exception(line);
        let trimmed = line.trim();
        let passes = ["0 fail", "0 failed", "0 failures", "0 errors", "OK"].contains(&trimmed)
            || trimmed.starts_with("test result: ok")
            || trimmed.starts_with("OK (");
        (fails || passes).then_some(fails)
    });
    verdict.unwrap_or(false)
}

/// Returns `true` for `3 failed`, `1 tests failed`, `Found 2 errors`, `failures=1` and `Failed: 1`, but
/// not for `0 failed`.
fn counts_failures(line: &str) -> bool {
    let low = one_line(&line.to_lowercase(), LINE_MAX);
    let words = low.split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.filter(|word| !matches!(*word, "" | "test" | "tests"));
    let words: Vec<&str> = words.collect();
    let count = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
    words.windows(2).any(|pair| match pair {
        [a, b] if count(a) => is_in("failure_counts", b),
        [a, b] if count(b) && is_in("failure_counts", a) => {
            low.contains(&format!("{a}={b}")) || low.contains(&format!("{a}: {b}"))
        }
        _ => false,
    })
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
    let is_error = |line: &str| {
        line.len() <= LINE_MAX && (any_in("shell_failures", line) || line.starts_with("fatal: "))
    };
    text.lines().count() <= 3 && text.lines().any(is_error)
}

/// Returns a line without the signs that test runners draw around it.
fn without_rules(line: &str) -> &str {
    line.trim_matches(['=', '_', '*', ' ', '\t', '\r'])
}

/// Returns the line of a failed result that says why.
fn error_line(text: &str) -> String {
    let lines = text.lines().map(without_rules);
    let lines = lines.filter(|line| !line.is_empty() && line.len() <= LINE_MAX);
    let lines: Vec<&str> = lines
        .filter(|line| !line.to_lowercase().starts_with("exit code"))
        .collect();
    let is_error = |line: &str| any_in("error_words", &line.to_lowercase());
    // "ERROR:" and "### Error" alone are useless.
    let mut told = lines.iter().filter(|line| {
        let mut words = line
            .split_whitespace()
            .filter(|word| !word.starts_with('#'));
        words.nth(1).is_some()
    });
    // An exception is in the last lines; of compiler errors, the first one matters.
    let exception = lines.iter().rfind(|line| is_exception(line));
    let found = exception
        .filter(|_| text.contains(TRACEBACK))
        .or_else(|| told.find(|line| is_error(line)))
        .or(lines.first());
    let found = found.copied().unwrap_or("no output");
    one_line(found.trim_end_matches(['|', ':', ' ']), ERROR_MAX)
}

/// Returns a short form of a successful call's output: the whole of a short one; of a long one, the last
/// lines with a number.
fn short_form(call: &TranscriptCall, text: &str) -> String {
    // The contents of a file are no outcome.
    if call.kind == CallKind::File || matches!(text, "ok" | "(no output)") {
        return String::new();
    }
    if text.len() <= OUTCOME_MAX {
        // A trailing colon or bracket does not introduce anything here.
        return one_line(
            text.trim_end_matches([':', '{', '(', '|', ' ']),
            OUTCOME_MAX,
        );
    }
    if call.is_reader() {
        return String::new();
    }
    let lines = text.lines().rev().take(SUMMARY_LINES).map(without_rules);
    let is_told = |line: &&str| {
        let has = |is: fn(&u8) -> bool| line.as_bytes().iter().any(is);
        line.len() <= OUTCOME_MAX && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    };
    let mut lines: Vec<&str> = lines.filter(is_told).take(LINES_TOLD).collect();
    lines.reverse();
    lines.join("; ")
}
