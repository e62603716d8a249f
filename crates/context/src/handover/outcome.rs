//! The outcome of a tool call: whether it failed, and the line that says why, or the last lines of
//! its output.
//!
//! An error flag of the provider is trusted. Without one, the exit code decides, then the typical
//! output at the end of a failed program. Searches, logs and the contents of files never count as
//! failures. Of a long result only the beginning and the end are read. The forms are data, in
//! `words/outcomes.txt`.

use std::borrow::Cow;

use super::calls::TranscriptCall;
use super::names::has_extension;
use super::sentences::{clip, clip_start, is_machine, one_line, without_escapes};
use super::words::{any_in, behind, behind_form, is_in, list, until};

/// The maximum length of an outcome, in bytes.
const OUTCOME_MAX: usize = 100;
/// The maximum length of an error, in bytes.
const ERROR_MAX: usize = 240;
/// The parts of a long result that are read, in bytes.
const HEAD: usize = 2_000;
const TAIL: usize = 4_000;
const EDGES_MAX: usize = HEAD + TAIL;
/// The parts of a result in which an exit code is searched, in bytes.
const EDGE: usize = 240;
/// The maximum length of a result that may be an unflagged error message, in bytes. A longer result
/// counts as content, unless the call changes a file.
const MESSAGE_MAX: usize = 1_500;
/// The number of lines at the end of an output in which its summary is searched.
const SUMMARY_LINES: usize = 15;
/// The maximum number of lines of an output that only says that a program did not run.
const ERROR_LINES: usize = 3;
/// The maximum length of a line of text; a longer line is data.
const LINE_MAX: usize = 1_000;

/// The outcome of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) is_failed: bool,
    /// The line that says why the call failed, or a short form of its output, or nothing.
    pub(crate) line: String,
    /// Whether the output says that tests have passed.
    pub(crate) passes: bool,
    /// Whether the program has not run at all.
    pub(crate) has_not_run: bool,
}

/// Returns the id of a command that goes on, which may be empty, if a result says so.
pub(crate) fn still_runs(text: &str) -> Option<&str> {
    let text = clip(text.trim(), EDGE);
    let (_, behind) = list("not_ended").find_map(|form| text.split_once(form))?;
    let is_of_id = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let id = behind.trim_start_matches([':', ' ']);
    id.split(|c| !is_of_id(c)).next()
}

/// Determines the outcome from a result.
pub(crate) fn outcome(call: &TranscriptCall, text: &str, is_error: bool) -> Outcome {
    let ends = match text.len() {
        0..=EDGES_MAX => Cow::Borrowed(text),
        _ => Cow::Owned(format!("{}\n{}", clip(text, HEAD), clip_start(text, TAIL))),
    };
    let text = without_escapes(&ends);
    let text = text.trim();
    let output = bare(text);
    let is_failed = is_error || is_failure(call, text, output);
    let line = match is_failed {
        true => error_line(call, output),
        false => short_form(call, output),
    };
    Outcome {
        is_failed,
        passes: !call.tests.is_empty() && !is_failed && says_success(output),
        has_not_run: is_failed && any_in("not_run", &line) && !tells_of_tests(output),
        line,
    }
}

/// Returns `true` if a line of an output tells of tests or builds that ran.
fn tells_of_tests(text: &str) -> bool {
    let tells =
        |line| counts_failures(line) || any_in("passed", line) || any_in("test_failures", line);
    text.lines().any(tells)
}

/// Returns `true` if the last lines of an output say that tests have passed, and none that one has failed.
fn says_success(text: &str) -> bool {
    let ends = || text.lines().rev().take(SUMMARY_LINES);
    ends().any(|line| any_in("passed", line))
        && !ends().any(|line| any_in("test_failures", line) || counts_failures(line))
}

fn is_failure(call: &TranscriptCall, text: &str, output: &str) -> bool {
    let acts = !call.is_reader;
    let is_refused = acts && behind("refusal_openings", text).is_some();
    if is_refused || behind("tool_errors", text).is_some() {
        return true;
    }
    if call.is_command {
        return match exit_code(text) {
            Some(0) => acts && !call.returns && has_failed(call, output),
            // `grep` and `diff` report an empty or a differing result with this code.
            Some(code) => acts || code != 1,
            None => acts && has_failed(call, output) || did_not_run(output),
        };
    }
    let json = Some(clip(output, MESSAGE_MAX)).filter(|json| json.starts_with('{'));
    let json: String = json.unwrap_or_default().split_whitespace().collect();
    let opening = if json.is_empty() { output } else { &json };
    let begins = behind("failure_openings", opening).is_some();
    let says_failure = begins || any_in("json_failures", &json);
    // The result of a change is no content: a refusal may repeat the whole text.
    says_failure && (acts || output.len() <= MESSAGE_MAX)
        || acts && call.is_of_files() && was_not_changed(output)
}

/// Returns `true` if the first line of a result tells that a file was not changed. The file may be
/// `error.rs`, and a success may count errors.
fn was_not_changed(text: &str) -> bool {
    let line = clip(text.lines().next().unwrap_or_default(), ERROR_MAX);
    let words = line.split(' ').filter(|word| {
        let name = word.trim_matches(['.', ',', ':', '"', '`']);
        !word.contains(['/', '\\']) && !has_extension(name)
    });
    let line = words.collect::<Vec<_>>().join(" ").to_lowercase();
    any_in("refusal_words", &line)
        || any_in("error_words", &line) && !any_in("success_words", &line)
}

/// Returns an output without the texts of hosts around it.
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
    let edges = [clip(text, EDGE), clip_start(text, EDGE)].map(str::to_lowercase);
    let codes = edges.iter().flat_map(|edge| {
        let behind = list("exit_codes").filter_map(|mark| edge.split_once(mark));
        behind.map(|(_, behind)| behind.trim_start_matches([':', ' ', '=', '"', '>']))
    });
    let is_digit = |c: char| c.is_ascii_digit() || c == '-';
    let mut codes = codes.map(|text| text.split(|c| !is_digit(c)).next());
    codes.find_map(|code| code?.parse().ok())
}

/// Returns `true` if an output ends as that of a failed program. The last summary decides, not
/// earlier log lines.
fn has_failed(call: &TranscriptCall, text: &str) -> bool {
    let ends = text.lines().rev().filter(|line| line.len() <= LINE_MAX);
    let mut ends = ends.take(SUMMARY_LINES).enumerate();
    let verdict = ends.find_map(|(n, line)| {
        let fails = any_in("test_failures", line)
            || behind("error_lines", line).is_some()
            || !call.tests.is_empty() && counts_failures(line)
            || n == 0 && is_exception(line);
        let passes = is_in("successes", line.trim()) || behind("success_lines", line).is_some();
        (fails || passes).then_some(fails)
    });
    behind("output_failures", text).is_some() || verdict.unwrap_or(false)
}

/// Returns `true` for `3 failed`, `1 tests failed`, `Found 2 errors`, `failures=1` and `Failed: 1`, but
/// not for `0 failed`.
fn counts_failures(line: &str) -> bool {
    let low = line.to_lowercase().replace([':', '='], "= ");
    let words = low.split(|c: char| !(c.is_ascii_alphanumeric() || c == '='));
    let words = words.filter(|word| !matches!(*word, "" | "test" | "tests"));
    let words: Vec<&str> = words.collect();
    let counts = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
    let is_failed = |word: &str| is_in("failure_counts", word);
    words.windows(2).any(|pair| match pair {
        [a, b] if counts(b) => a.strip_suffix('=').is_some_and(is_failed),
        [a, b] => counts(a) && is_failed(b),
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
fn did_not_run(text: &str) -> bool {
    let is_error = |line: &str| line.len() <= LINE_MAX && any_in("shell_failures", line);
    text.lines().count() <= ERROR_LINES && text.lines().any(is_error)
}

/// Returns a line without the signs that test runners draw around it.
fn without_rules(line: &str) -> &str {
    line.trim_matches(['=', '_', '*', ' ', '\t', '\r'])
}

/// Returns the line of a failed result that says why: of a refusal the reason, of a test the assertion,
/// else the last exception, since a traceback ends with it, or the first error.
fn error_line(call: &TranscriptCall, text: &str) -> String {
    if behind("refusal_openings", text).is_some() {
        let reason = until("ends_of_reasons", text).lines().next_back();
        return one_line(reason.unwrap_or_default(), ERROR_MAX);
    }
    if text.starts_with('{') {
        return one_line(text, ERROR_MAX);
    }
    let lines = text.lines().map(without_rules).filter(|line| {
        let is_code = line.to_lowercase().starts_with("exit code");
        !line.is_empty() && line.len() <= LINE_MAX && !is_code
    });
    let lines: Vec<&str> = lines.collect();
    // "ERROR:" and "### Error" alone are useless, and "$ lint --error" is an echo.
    let is_error = |line: &&&str| {
        let words = line.split(' ').filter(|word| !word.starts_with('#'));
        let is_told = words.count() > 1 && !line.starts_with('>') && !is_machine(line);
        is_told && any_in("error_words", &line.to_lowercase())
    };
    let mut assertions = list("assertions").filter(|_| !call.tests.is_empty());
    let found = assertions
        .find_map(|mark| lines.iter().find(|line| line.contains(mark)))
        .or_else(|| lines.iter().rfind(|line| is_exception(line)))
        .or_else(|| lines.iter().find(is_error))
        .or(lines.first());
    let found = found.copied().unwrap_or("no output");
    one_line(found.trim_end_matches(['|', ':', ' ']), ERROR_MAX)
}

/// Returns a short form of a successful call's output: the whole of a short one; of a long one, the last
/// short line with a number.
fn short_form(call: &TranscriptCall, text: &str) -> String {
    // The contents of a file are no outcome.
    if call.is_of_files() || matches!(text, "ok" | "(no output)") {
        return String::new();
    }
    if text.len() <= OUTCOME_MAX {
        // A trailing colon or bracket does not introduce anything here.
        let text = text.trim_end_matches([':', '{', '(', '|', ' ']);
        return one_line(text, OUTCOME_MAX);
    }
    let lines = text.lines().rev().filter(|_| !call.is_reader);
    let mut lines = lines.take(SUMMARY_LINES).map(without_rules);
    let told =
        lines.find(|line| line.len() <= OUTCOME_MAX && line.contains(|c: char| c.is_ascii_digit()));
    told.unwrap_or_default().to_owned()
}
