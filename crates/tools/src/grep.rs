//! `grep`: searches for lines that match a regular expression.
//!
//! Results have the form `path:line: text`, so that each line remains usable if the result is
//! shortened. Binary and ignored files are skipped.

use std::io::Read;
use std::path::Path;

use plimsoll_context::{Bytes, counted};
use plimsoll_core::{ToolError, ToolOutput};
use regex::bytes::{Match, Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::{self, SNIFFED};
use crate::file_tool::Stop;
use crate::output_page::OutputPage;
use crate::safe_open;
use crate::scope::{Scope, left_out};
use crate::walk::{self, Pattern, WalkEnd};

/// The description of the tool for the model.
pub(crate) const DESCRIPTION: &str =
    "Searches files for a regular expression; `(?i)` ignores case.";
/// Maximum number of matching lines in a result. For more, the model needs a narrower pattern.
pub const GREP_MATCHES: usize = 200;
/// Maximum length of a shown line. A longer line is shown in part, around its match.
pub const GREP_LINE_MAX: Bytes = Bytes(300);
/// Maximum size of a searched file. One file at a time is held in memory.
pub const GREP_FILE_MAX: Bytes = Bytes(64 * 1024 * 1024);
/// Number of bytes that are shown before the match in a long line.
const BEFORE: usize = 60;
/// Maximum memory of a compiled pattern.
const PATTERN_MAX: usize = 4 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GrepInput {
    #[serde(alias = "regex", alias = "query")]
    pattern: String,
    /// File or directory
    #[serde(default, alias = "file", alias = "dir", alias = "directory")]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Only such files: `*.rs`
    #[serde(default, alias = "include")]
    #[schemars(with = "String")]
    glob: Option<String>,
}

pub(crate) fn work(scope: &Scope, input: GrepInput, stop: &Stop) -> Result<ToolOutput, ToolError> {
    let regex = compile(&input.pattern)?;
    let base = walk::base(scope, input.path.as_deref())?.real;
    let glob = input.glob.filter(|glob| !glob.is_empty());
    let glob = glob.map(|glob| Pattern::new(&glob, scope));
    let glob = glob.transpose()?;
    let root = scope.root().path();
    let mut search = Search {
        scope,
        regex,
        page: OutputPage::new(GREP_MATCHES),
        files: 0,
        found: 0,
        no_text: 0,
        too_large: 0,
        hidden: 0,
    };
    let walked = walk::files(&base, stop, |path| {
        let fits = |glob: &Pattern| path == base || glob.fits(path, &base, root);
        if !glob.as_ref().is_none_or(fits) {
        } else if scope.may_search(path, &base) {
            search.file(path, stop);
        } else {
            search.hidden += 1;
        }
    });
    Ok(search.result(walked).into())
}

fn compile(pattern: &str) -> Result<Regex, ToolError> {
    let regex = RegexBuilder::new(pattern)
        .size_limit(PATTERN_MAX)
        .dfa_size_limit(PATTERN_MAX)
        .build();
    regex.map_err(|error| {
        // The library's message has several lines; the last one states the error.
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default();
        let why = why.trim_start_matches("error: ");
        ToolError(format!(
            "`pattern` is not a regular expression: {why}; write \\ before characters that are \
             meant as they stand, such as \\( or \\["
        ))
    })
}

/// A search in progress, with its results.
struct Search<'a> {
    scope: &'a Scope,
    regex: Regex,
    page: OutputPage,
    files: usize,
    found: usize,
    no_text: usize,
    too_large: usize,
    hidden: usize,
}

impl Search<'_> {
    fn file(&mut self, path: &Path, stop: &Stop) {
        // Unreadable files are skipped, as usual for shell tools.
        let root = self.scope.root();
        let Some(Ok(file)) = path
            .strip_prefix(root.path())
            .ok()
            .map(|path| safe_open::open(root.path(), path))
        else {
            return;
        };
        if file.metadata().is_ok_and(|it| it.len() > GREP_FILE_MAX.0) {
            self.too_large += 1;
            return;
        }
        let mut bytes = Vec::new();
        if file.take(GREP_FILE_MAX.0).read_to_end(&mut bytes).is_err() {
            return;
        }
        if file::not_text(bytes.get(..SNIFFED).unwrap_or(&bytes)).is_some() {
            self.no_text += 1;
            return;
        }
        self.files += 1;
        let shown = root.shown(path);
        if bytes.is_empty() {
            return;
        }
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(found) = self.regex.find(line) else {
                continue;
            };
            self.found += 1;
            self.page
                .push(&format!("{shown}:{number}: {}", clipped(line, found)));
            if self.found.is_multiple_of(GREP_MATCHES) && stop.now() {
                return;
            }
        }
    }

    fn result(self, walked: WalkEnd) -> String {
        let (shown, found) = (self.page.lines(), self.found);
        let mut notes = Vec::new();
        if found == 0 {
            notes.push(format!(
                "no match in {}",
                counted(self.files as u64, "file")
            ));
        } else if shown < found {
            notes.push(format!(
                "{shown} of {found} matching lines; narrow pattern, path or glob"
            ));
        }
        // These files only matter if nothing was found elsewhere.
        if found == 0 && self.no_text > 0 {
            notes.push(format!("{} not text, not searched", self.no_text));
        }
        if self.too_large > 0 {
            notes.push(format!(
                "{} over {GREP_FILE_MAX} bytes, not searched: use bash",
                self.too_large
            ));
        }
        notes.extend(left_out(self.hidden));
        if walked == WalkEnd::Part {
            notes.push("the search was stopped early: narrow `path`".to_owned());
        }
        self.page.close(&notes.join("; "))
    }
}

/// Returns a line, or the part around its match if the line is long.
fn clipped(line: &[u8], found: Match<'_>) -> String {
    let max = usize::try_from(GREP_LINE_MAX.0).unwrap_or(usize::MAX);
    if line.len() <= max {
        return readable(line);
    }
    let from = found.start().saturating_sub(BEFORE).min(line.len() - max);
    let (_, rest) = line.split_at(from);
    let (part, after) = rest.split_at(max.min(rest.len()));
    let part = readable(part);
    // Removes the incomplete characters at either end.
    let part = part.trim_matches(char::REPLACEMENT_CHARACTER);
    let sign = |cut: bool| if cut { "…" } else { "" };
    format!("{}{part}{}", sign(from > 0), sign(!after.is_empty()))
}

fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use crate::testing::Workspace as Files;

    fn tree() -> Files {
        let files = Files::new();
        files.put("src/main.rs", "fn main() {\n    run();\n}\n");
        files.put("src/run.rs", "pub fn run() {}\r\n// Run.\r\n");
        files.put("notes.md", "run\n\ncaf\u{e9} run");
        files.put("bin", b"run\0run");
        files.put("latin1", b"caf\xe9 run\n");
        files.put("skip/x.rs", "run");
        files.put(".gitignore", "skip\n");
        files.put("empty", "");
        files
    }

    #[test]
    fn lines_are_found() {
        let files = tree();
        for (arguments, found) in [
            (
                r#"{"pattern":"run"}"#,
                "latin1:1: caf\u{fffd} run\nnotes.md:1: run\nnotes.md:3: café run\n\
                 src/main.rs:2:     run();\nsrc/run.rs:1: pub fn run() {}\n",
            ),
            (
                r#"{"pattern":"(?i)RUN","path":"src"}"#,
                "src/main.rs:2:     run();\nsrc/run.rs:1: pub fn run() {}\nsrc/run.rs:2: // Run.\n",
            ),
            (r#"{"pattern":"^run$","glob":"*.md"}"#, "notes.md:1: run\n"),
            (
                r#"{"pattern":"\\brun\\(\\)","path":"src/run.rs"}"#,
                "src/run.rs:1: pub fn run() {}\n",
            ),
            (
                r#"{"pattern":"run$","path":"src","glob":"src/*.rs"}"#,
                "[no match in 2 files]",
            ),
            // A file that is named by the call is searched even if it is ignored.
            (
                r#"{"pattern":"run","path":"skip/x.rs"}"#,
                "skip/x.rs:1: run\n",
            ),
            (
                r#"{"pattern":"absent"}"#,
                "[no match in 6 files; 1 not text, not searched]",
            ),
            (r#"{"pattern":"^$","path":"empty"}"#, "[no match in 1 file]"),
        ] {
            let got = files.call("grep", arguments);
            assert_eq!(got.as_deref(), Ok(found), "{arguments}");
        }
    }

    #[test]
    fn bad_input_is_said() {
        let files = tree();
        for (arguments, told) in [
            (
                r#"{"pattern":"run("}"#,
                "`pattern` is not a regular expression: unclosed group; write \\ before characters \
                 that are meant as they stand, such as \\( or \\[",
            ),
            (
                r#"{"pattern":"a{1000}{1000}{1000}"}"#,
                "`pattern` is not a regular expression",
            ),
            (
                r#"{"pattern":"x","path":"/etc"}"#,
                "outside the workspace root",
            ),
            (
                r#"{"pattern":"x","glob":"a[b"}"#,
                "the pattern `a[b` cannot be read",
            ),
        ] {
            let error = files.call("grep", arguments).unwrap_err();
            assert!(error.contains(told) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn long_lines_are_clipped_around_the_match() {
        let files = Files::new();
        let long = format!("{}needle{}", "語".repeat(70_000), "x".repeat(200_000));
        files.put("long", format!("{long}\nshort needle\n"));
        let got = files.call("grep", r#"{"pattern":"needle"}"#).unwrap();
        let (first, rest) = got.split_once('\n').unwrap();
        assert!(first.starts_with("long:1: …語"), "{first}");
        assert!(first.contains("語needlexxx") && first.ends_with("x…"));
        assert!(first.len() < 330 && !first.contains(char::REPLACEMENT_CHARACTER));
        assert_eq!(rest, "long:2: short needle\n");
    }

    #[test]
    fn many_matches_are_counted_and_the_first_are_shown() {
        let files = Files::new();
        for n in 0..30 {
            files.put(&format!("f{n:02}"), "hit\n".repeat(100));
        }
        let got = files.call("grep", r#"{"pattern":"hit"}"#).unwrap();
        assert!(got.starts_with("f00:1: hit\nf00:2: hit\n"));
        assert!(
            got.ends_with(
                "f01:100: hit\n[200 of 3000 matching lines; narrow pattern, path or glob]"
            )
        );
    }
}
