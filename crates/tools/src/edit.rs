//! `edit`: replaces one passage of a file by another.
//!
//! The passage must match exactly. If it does not, the error shows the most similar text.

use std::fmt::Write;
use std::fs;

use plimsoll_context::{Bytes, clip};
use plimsoll_core::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::change::PlannedChange;
use crate::file;
use crate::scope::Scope;
use crate::similar::nearest;

/// The description of the tool for the model.
pub(crate) const DESCRIPTION: &str =
    "Replaces `old` by `new` in a file. `old` must match exactly and only once.";
/// Maximum size of an edited file. The file is held in memory twice.
pub const EDIT_MAX: Bytes = Bytes(16 * 1024 * 1024);
/// Maximum number of listed places if `old` occurs more than once.
const PLACES: usize = 5;
/// Maximum size of the most similar text in an error.
const HINT: Bytes = Bytes(600);
/// Maximum number of lines that are compared to find the most similar one, at some microseconds each.
const COMPARED: usize = 20_000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct EditInput {
    #[serde(alias = "file", alias = "file_path", alias = "filename")]
    path: String,
    #[serde(alias = "old_string", alias = "old_str", alias = "old_text")]
    old: String,
    #[serde(alias = "new_string", alias = "new_str", alias = "new_text")]
    new: String,
    #[serde(default)]
    replace_all: bool,
}

/// Plans the change of a call.
pub(crate) fn plan(scope: &Scope, input: &EditInput) -> Result<PlannedChange, ToolError> {
    let EditInput { path, old, new, .. } = input;
    if old.is_empty() {
        return Err(ToolError::new(
            "`old` is empty; give the text to replace, or use write for a new file",
        ));
    }
    if old == new {
        return Err(ToolError::new(
            "`old` and `new` are equal, so there is nothing to do",
        ));
    }
    let file = scope.existing(path)?;
    let shown = scope.shown(&file);
    let text = file::read_text(scope, path, &file, EDIT_MAX)?;
    if fs::metadata(&file.real).is_ok_and(|metadata| metadata.permissions().readonly()) {
        return Err(ToolError(format!(
            "`{shown}` is read-only; leave it, or change its permissions with bash"
        )));
    }
    let (old, new) = if has_crlf_only(&text) {
        (with_crlf(old), with_crlf(new))
    } else {
        (old.clone(), new.clone())
    };
    let places = places(&text, &old);
    let replaced = match (places.as_slice(), input.replace_all) {
        ([], _) => return Err(not_found(&shown, &text, &old)),
        ([_], _) => text.replacen(&old, &new, 1),
        (_, true) => text.replace(&old, &new),
        (several, false) => return Err(not_unique(&shown, &text, several)),
    };
    if replaced.len() as u64 > EDIT_MAX.0 {
        return Err(ToolError(format!(
            "`{shown}` would grow beyond {EDIT_MAX} bytes; use bash"
        )));
    }
    let first = places.first().map_or(1, |at| line_of(&text, *at));
    Ok(PlannedChange {
        told: match text.matches(&old).count() {
            1 => format!("replaced in `{shown}`, line {first}"),
            times => format!("replaced {times} times in `{shown}`, first in line {first}"),
        },
        file,
        shown,
        before: Some(text.into_bytes()),
        after: replaced.into_bytes(),
    })
}

/// Returns `true` if all lines end in `\r\n`. `read` shows them as line feeds, so a model writes line
/// feeds.
fn has_crlf_only(text: &str) -> bool {
    let feeds = text.matches('\n').count();
    feeds > 0 && text.matches("\r\n").count() == feeds
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Returns the places of `old` in `text`, including overlapping ones: `aa` occurs twice in `aaa`, and
/// the intended place is unknown.
fn places(text: &str, old: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(old)) {
        found.push(from + at);
        from += at + step;
    }
    found
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    1 + before.matches('\n').count()
}

fn not_unique(shown: &str, text: &str, places: &[usize]) -> ToolError {
    let lines = places.iter().take(PLACES);
    let lines: Vec<String> = lines.map(|at| line_of(text, *at).to_string()).collect();
    let more = if places.len() > PLACES { ", …" } else { "" };
    ToolError(format!(
        "`old` stands {} times in `{shown}` (lines {}{more}); add lines around it until it is \
         unique, or set replace_all",
        places.len(),
        lines.join(", ")
    ))
}

fn not_found(shown: &str, text: &str, old: &str) -> ToolError {
    let mut told = format!("`old` is not in `{shown}`");
    let lines: Vec<&str> = text.lines().collect();
    // Writing to a String cannot fail.
    let _ = if let Some((first, last)) = but_for_blanks(&lines, old) {
        let range = lines.get(first..=last).unwrap_or_default().join("\n");
        let (first, last) = (first + 1, last + 1);
        let range = clip(&range, HINT);
        write!(
            told,
            "; lines {first}-{last} differ only in white space:\n{range}"
        )
    } else if let Some((line, near)) = nearest_line(&lines, old) {
        let near = clip(near, HINT);
        write!(told, "; the nearest is line {line}:\n{near}")
    } else {
        write!(told, "; read it again and copy the text exactly")
    };
    ToolError(told)
}

/// Returns the first and last line of the passage that equals `old` except for white space around its
/// lines, if there is exactly one.
fn but_for_blanks(lines: &[&str], old: &str) -> Option<(usize, usize)> {
    let wanted: Vec<&str> = old.trim().lines().map(str::trim).collect();
    let equal = |passage: &[&str]| {
        passage
            .iter()
            .map(|line| line.trim())
            .eq(wanted.iter().copied())
    };
    let mut found = lines
        .windows(wanted.len().max(1))
        .enumerate()
        .filter(|(_, passage)| equal(passage));
    let (first, _) = found.next()?;
    found
        .next()
        .is_none()
        .then(|| (first, first + wanted.len() - 1))
}

/// Returns the line that is most similar to the first non-empty line of `old`.
fn nearest_line<'a>(lines: &[&'a str], old: &str) -> Option<(usize, &'a str)> {
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    let compared = lines.iter().take(COMPARED);
    let near = nearest(wanted, compared.map(|line| line.trim()))?;
    let at = lines.iter().position(|line| line.trim() == near)?;
    Some((at + 1, near))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::Workspace as Files;

    /// Edits a file with the content `text`. Returns the tool result and the new content.
    fn edit(text: &str, old: &str, new: &str, all: bool) -> (Result<String, String>, String) {
        let files = Files::new();
        files.put("f", text);
        let arguments =
            serde_json::json!({ "path": "f", "old": old, "new": new, "replace_all": all });
        let told = files.call("edit", &arguments.to_string());
        (told, fs::read_to_string(files.path("f")).unwrap())
    }

    #[test]
    fn passages_are_replaced() {
        for (text, old, new, all, told, after) in [
            (
                "a\nb\nc\n",
                "b",
                "x\ny",
                false,
                "replaced in `f`, line 2",
                "a\nx\ny\nc\n",
            ),
            (
                "a b a",
                "a",
                "é",
                true,
                "replaced 2 times in `f`, first in line 1",
                "é b é",
            ),
            (
                "aaaa",
                "aa",
                "b",
                true,
                "replaced 2 times in `f`, first in line 1",
                "bb",
            ),
            ("a\nb\n", "b\n", "", false, "replaced in `f`, line 2", "a\n"),
            (
                "$1 .*",
                ".*",
                "$0",
                false,
                "replaced in `f`, line 1",
                "$1 $0",
            ),
            // Windows line ends are kept, although the model writes line feeds.
            (
                "a\r\nb\r\nc\r\n",
                "a\nb",
                "x\ny",
                false,
                "replaced in `f`, line 1",
                "x\r\ny\r\nc\r\n",
            ),
            (
                "a\r\nb\r\n",
                "b",
                "x\ny",
                false,
                "replaced in `f`, line 2",
                "a\r\nx\r\ny\r\n",
            ),
            (
                "a\r\nb\r\n",
                "a\r\nb",
                "x\r\ny",
                false,
                "replaced in `f`, line 1",
                "x\r\ny\r\n",
            ),
            // A mixture is kept unchanged.
            (
                "a\r\nb\nc",
                "b\nc",
                "x\ny",
                false,
                "replaced in `f`, line 2",
                "a\r\nx\ny",
            ),
        ] {
            let got = edit(text, old, new, all);
            assert_eq!(got, (Ok(told.to_owned()), after.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_plain_is_refused_and_changes_nothing() {
        let code = "fn main() {\n    let total = 1;\n    run(total);\n}\n";
        for (text, old, told) in [
            (
                "a",
                "",
                "`old` is empty; give the text to replace, or use write for a new file",
            ),
            (
                "new",
                "new",
                "`old` and `new` are equal, so there is nothing to do",
            ),
            (
                "a\nb\na\n",
                "a",
                "`old` stands 2 times in `f` (lines 1, 3); add lines around it until it is \
                 unique, or set replace_all",
            ),
            (
                "aaa",
                "aa",
                "`old` stands 2 times in `f` (lines 1, 1); add lines around it until it is \
                 unique, or set replace_all",
            ),
            (
                "a\na\na\na\na\na\n",
                "a",
                "`old` stands 6 times in `f` (lines 1, 2, 3, 4, 5, …); add lines around it until \
                 it is unique, or set replace_all",
            ),
            (
                code,
                "let total = 1;\nrun(total);\n",
                "`old` is not in `f`; lines 2-3 differ only in white space:\n    let total = 1;\n    \
                 run(total);",
            ),
            (
                code,
                "    let totals = 1;\n",
                "`old` is not in `f`; the nearest is line 2:\nlet total = 1;",
            ),
            (
                code,
                "zebra",
                "`old` is not in `f`; read it again and copy the text exactly",
            ),
            (
                "",
                "a",
                "`old` is not in `f`; read it again and copy the text exactly",
            ),
            (
                "\n\n",
                "\n \n\t",
                "`old` is not in `f`; read it again and copy the text exactly",
            ),
        ] {
            let (got, after) = edit(text, old, "new", false);
            assert_eq!(got, Err(told.to_owned()), "{text:?}");
            assert_eq!(after, text);
        }
    }

    #[test]
    fn what_is_no_text_file_is_refused() {
        let files = Files::new();
        files.put("latin1", b"caf\xe9");
        files.put("bin", b"a\0b");
        files.put("dir/x", "x");
        for (path, refusal) in [
            ("latin1", "not UTF-8"),
            ("bin", "binary data"),
            ("dir", "is a directory"),
            ("latin2", "did you mean `latin1`?"),
            ("../x", "outside the workspace root"),
        ] {
            let arguments = serde_json::json!({ "path": path, "old": "a", "new": "b" });
            let error = files.call("edit", &arguments.to_string()).unwrap_err();
            assert!(error.contains(refusal), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ab \n\r語]{0,40}", old in "[ab \n\r語]{1,6}") {
            let found = places(&text, &old);
            prop_assert_eq!(found.is_empty(), !text.contains(&old));
            if found.is_empty() {
                let told = not_found("f", &text, &old).0;
                prop_assert!(told.starts_with("`old` is not in `f`; "));
            }
        }
    }
}
