//! Formats a tool call as one line with its result. The details below it are bounded.

use std::time::Duration;

use plimsoll::events::ToolPhase;
use serde_json::{Map, Value};

use crate::terminal::text::{clean, clean_strictly, counted, first_clause, one_line};

/// The most informative arguments. The first one that is present is shown.
const MAIN: &str = "command cmd script pattern query path file file_path filename directory dir folder url uri \
    name id task prompt text rule";
/// Arguments that name the place of a search.
const PLACES: [&str; 4] = ["path", "file", "dir", "directory"];
/// Lines of output that are shown below a call.
const SHOWN: usize = 3;
/// Lines of output that are shown of a failed command. Its last lines explain the failure.
const SHOWN_OF_FAILED: usize = 8;
/// Maximum length of a call in a question to the user, in characters.
const ASKED: usize = 2_000;
/// The time of a shorter call is not shown.
const LONG: Duration = Duration::from_secs(1);

/// The result of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CallResult {
    /// A few words.
    pub(crate) summary: String,
    /// Lines of the output, possibly folded.
    pub(crate) details: Vec<String>,
}

/// Returns the most informative argument of a call, such as the command, the path or the query.
pub(crate) fn argument(tool: &str, arguments: &str) -> String {
    let Ok(Value::Object(object)) = serde_json::from_str(arguments) else {
        return one_line(arguments);
    };
    let mut names = MAIN.split(' ').chain(object.keys().map(String::as_str));
    let Some(main) = names.find_map(|name| scalar(&object, name)) else {
        let is_empty = object.is_empty();
        return one_line(if is_empty { "" } else { arguments });
    };
    let main = one_line(&main);
    let place = PLACES.iter().find_map(|name| scalar(&object, name));
    match (tool, place) {
        ("grep" | "glob", Some(place)) if place != main && place != "." && !place.is_empty() => {
            format!("{main} in {}", one_line(&place))
        }
        _ => main,
    }
}

/// Returns a call with all its arguments, for a question to the user.
pub(crate) fn in_full(tool: &str, arguments: &str) -> String {
    let text = match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => spelled_out(&object),
        _ => arguments.to_owned(),
    };
    let text = clean_strictly(&text);
    let mut shown: String = text.chars().take(ASKED).collect();
    if shown.len() < text.len() {
        let more = text.len() - shown.len();
        shown.push_str(&format!("… and {more} bytes more"));
    }
    format!("{tool} {shown}").trim_end().to_owned()
}

/// Returns the main argument, and the other arguments below it.
fn spelled_out(object: &Map<String, Value>) -> String {
    let mut names = MAIN.split(' ');
    let main = names.find_map(|name| Some((name, scalar(object, name)?)));
    let (main, mut text) = main.unwrap_or_default();
    for (name, value) in object.iter().filter(|(name, _)| *name != main) {
        let value = match value {
            Value::String(value) => value.clone(),
            value => value.to_string(),
        };
        text.push_str(&format!("\n  {name}: {value}"));
    }
    text
}

fn scalar(object: &Map<String, Value>, name: &str) -> Option<String> {
    match object.get(name)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Describes the result of a call that has ended.
pub(crate) fn result(phase: ToolPhase, tool: &str, text: &str, time: Duration) -> CallResult {
    let is_error = phase == ToolPhase::Error;
    let is_reading = matches!(tool, "read" | "list" | "glob" | "grep");
    let (body, note) = match is_error || is_reading || tool == "bash" {
        true => split_note(text),
        false => (text, None),
    };
    let is_shown = |line: &&str| !is_error || !line.trim().is_empty();
    let lines: Vec<&str> = body.lines().filter(is_shown).collect();
    let mut details = Vec::new();
    let summary = match (phase, note, lines.as_slice()) {
        (ToolPhase::Skipped, ..) => {
            let has_verb = text.starts_with("skipped: ") || text.starts_with("stopped ");
            let verb = if has_verb { "" } else { "skipped: " };
            format!("{verb}{}", one_line(text))
        }
        (ToolPhase::Success, Some(note), _) if is_reading => first_clause(note),
        (ToolPhase::Success, None, lines) if is_reading => counted(lines.len(), "line"),
        // These tools describe their result in words; the change itself is shown as a diff.
        (ToolPhase::Success, ..) if matches!(tool, "write" | "edit") => {
            one_line(&text.replace('`', ""))
        }
        (_, Some(note), lines) => {
            let is_failed = is_error || !note.starts_with("exit 0");
            details = if is_failed { last(lines) } else { first(lines) };
            let time =
                (time >= LONG && !is_error).then(|| format!(" · {:.1} s", time.as_secs_f64()));
            one_line(note) + &time.unwrap_or_default()
        }
        (ToolPhase::Error, None, []) => String::new(),
        (_, None, []) => "no output".to_owned(),
        (_, None, [line]) => one_line(line),
        (ToolPhase::Error, None, [line, rest @ ..]) => {
            details = first(rest);
            one_line(line)
        }
        (_, None, lines) => {
            details = first(lines);
            counted(lines.len(), "line")
        }
    };
    CallResult { summary, details }
}

/// Returns the first lines, and the number of further ones.
fn first(lines: &[&str]) -> Vec<String> {
    let (shown, more) = lines.split_at(lines.len().min(SHOWN));
    let shown = shown.iter().map(|line| cut(line));
    shown.chain(hidden(more)).collect()
}

/// Returns the number of earlier lines, and the last lines.
fn last(lines: &[&str]) -> Vec<String> {
    let (more, shown) = lines.split_at(lines.len().saturating_sub(SHOWN_OF_FAILED));
    let shown = shown.iter().map(|line| cut(line));
    hidden(more).into_iter().chain(shown).collect()
}

/// Returns the number of lines that are not shown, if there are any.
fn hidden(lines: &[&str]) -> Option<String> {
    (!lines.is_empty()).then(|| format!("… {}", counted(lines.len(), "more line")))
}

/// Returns a line of output with its blanks.
fn cut(line: &str) -> String {
    let line: String = line.chars().take(2_000).collect();
    clean(&line)
}

/// Splits off the note of a built-in tool: the last line, in brackets.
fn split_note(text: &str) -> (&str, Option<&str>) {
    let text = text.trim_end_matches('\n');
    let (body, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let note = last
        .strip_prefix('[')
        .and_then(|note| note.strip_suffix(']'));
    match note {
        Some(note) => (body, Some(note)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_shows_what_is_blank() {
        let blank = "ls\u{3164}\u{115f}\u{34f}\u{fe0f}\u{202e}x";
        let arguments = serde_json::json!({ "command": blank }).to_string();
        assert_eq!(
            in_full("bash", &arguments),
            r"bash ls\u{3164}\u{115f}\u{34f}\u{fe0f}\u{202e}x"
        );
    }

    #[test]
    fn a_call_is_told_by_what_it_is_about() {
        for (tool, arguments, expected) in [
            (
                "read",
                r#"{"path":"docs/context.md","offset":3}"#,
                "docs/context.md",
            ),
            (
                "bash",
                r#"{"timeout":5,"command":"cargo test\n  -p x"}"#,
                "cargo test -p x",
            ),
            ("grep", r#"{"path":"src","pattern":"a b"}"#, "a b in src"),
            ("grep", r#"{"path":".","pattern":"a"}"#, "a"),
            ("github_search", r#"{"limit":5,"query":"tokio"}"#, "tokio"),
            ("vote", r#"{"yes":true,"count":3}"#, "3"),
            ("now", "{}", ""),
            ("odd", "not json", "not json"),
            ("odd", r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        ] {
            assert_eq!(argument(tool, arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn a_question_hides_nothing() {
        for (arguments, expected) in [
            (r#"{"command":"ls\nrm x"}"#, "bash ls\nrm x"),
            (
                r#"{"timeout":5,"cmd":"ls","command":""}"#,
                "bash ls\n  timeout: 5\n  command: ",
            ),
            (r#"{"a":{"b":1}}"#, "bash \n  a: {\"b\":1}"),
            ("", "bash"),
        ] {
            assert_eq!(
                in_full("bash", arguments),
                expected.trim_end(),
                "{arguments}"
            );
        }
        let long = in_full("bash", &format!(r#"{{"command":"{}"}}"#, "x".repeat(3_000)));
        assert!(long.ends_with("x… and 1000 bytes more"), "{long}");
    }

    #[test]
    fn results_are_told_in_a_few_words() {
        for (tool, text, summary) in [
            ("read", "a\nb\n", "2 lines"),
            (
                "read",
                "a\n[lines 1-1 of 9; continue with offset 2]",
                "lines 1-1 of 9",
            ),
            ("list", "a/\nb (3 bytes)\n", "2 lines"),
            ("list", "[empty directory]", "empty directory"),
            ("glob", "a\nb\n[2 files]", "2 files"),
            ("grep", "a:1: x", "1 line"),
            ("bash", "[exit 0; no output]", "exit 0; no output"),
            ("edit", "replaced in `f`, line 2", "replaced in f, line 2"),
            ("mcp_x", "{\"ok\":true}", "{\"ok\":true}"),
            ("mcp_x", "", "no output"),
        ] {
            assert_eq!(
                result(ToolPhase::Success, tool, text, Duration::ZERO).summary,
                summary,
                "{text}"
            );
        }
        let slow = result(
            ToolPhase::Success,
            "bash",
            "x\n[exit 3]",
            Duration::from_millis(3_210),
        );
        assert_eq!(slow.summary, "exit 3 · 3.2 s");
    }

    #[test]
    fn a_skipped_call_says_so_once() {
        let stopped = result(
            ToolPhase::Skipped,
            "bash",
            "stopped while it was running",
            Duration::ZERO,
        );
        assert_eq!(stopped.summary, "stopped while it was running");
        for text in ["skipped: no call is left", "no call is left"] {
            let skipped = result(ToolPhase::Skipped, "bash", text, Duration::ZERO);
            assert_eq!(skipped.summary, "skipped: no call is left");
        }
    }

    #[test]
    fn long_output_is_folded() {
        let lines: Vec<String> = (1..=10).map(|n| format!("line {n}")).collect();
        let text = |end: &str| format!("{}\n[{end}]", lines.join("\n"));
        let passed = result(ToolPhase::Success, "bash", &text("exit 0"), Duration::ZERO).details;
        assert_eq!(passed, ["line 1", "line 2", "line 3", "… 7 more lines"]);
        let failed = result(ToolPhase::Success, "bash", &text("exit 1"), Duration::ZERO).details;
        assert_eq!(failed.first().map(String::as_str), Some("… 2 more lines"));
        assert_eq!(failed.last().map(String::as_str), Some("line 10"));
        let stopped = result(
            ToolPhase::Error,
            "bash",
            &text("stopped after 1 s"),
            Duration::ZERO,
        );
        assert_eq!(stopped.summary, "stopped after 1 s");
        assert_eq!(stopped.details.len(), 9);
        assert_eq!(
            result(
                ToolPhase::Success,
                "bash",
                "1\n2\n3\n4\n[exit 0]",
                Duration::ZERO
            )
            .details
            .len(),
            4
        );
    }
}
