//! [`Diff`]: a change of a file as a unified diff, and [`Previews`], which show the change that a tool call
//! would make, once, before the user answers a question about it. Their sizes are bounded.

use std::path::Path;
use std::time::Duration;

use plimsoll::tools::{FileChange, Root, Toolbox};
use serde::Serialize;
use similar::TextDiff;

use crate::terminal::style::{DIM, GREEN, RED, diff_line, paint};
use crate::terminal::text::{clean, counted};

/// Maximum size of the compared files, both together, in bytes.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// The time after which a diff is no longer the smallest one.
const PATIENCE: Duration = Duration::from_millis(500);
/// Unchanged lines around a change.
const AROUND: usize = 2;
/// Maximum length of a line, in characters.
const MAX_LINE: usize = 300;
/// Maximum number of lines shown of a completed change.
pub(crate) const SHOWN: usize = 16;
/// Maximum number of lines shown of a change that needs approval.
pub(crate) const ASKED: usize = 300;

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Diff {
    added: usize,
    removed: usize,
    #[serde(rename = "new")]
    is_new: bool,
    /// The lines of a unified diff, without the names of the file.
    #[serde(skip)]
    lines: Vec<String>,
}

/// The changes of the calls of one workspace.
pub(crate) struct Previews {
    /// `None` if the workspace does not exist.
    toolbox: Option<Toolbox>,
}

impl Diff {
    /// Compares the contents of a file before and after; there is none if the file does not exist.
    /// Returns `None` if they are not text or too large.
    pub(crate) fn of(old: Option<&[u8]>, new: Option<&[u8]>) -> Option<Self> {
        let before = str::from_utf8(old.unwrap_or_default()).ok()?;
        let after = str::from_utf8(new.unwrap_or_default()).ok()?;
        if before.len() + after.len() > MAX_BYTES {
            return None;
        }
        let mut diff = TextDiff::configure();
        let diff = diff.timeout(PATIENCE);
        let diff = diff.diff_lines(before, after);
        let mut unified = diff.unified_diff();
        unified.context_radius(AROUND).missing_newline_hint(false);
        let lines = unified.to_string();
        let lines = lines.lines().map(|line| {
            let line: String = line.chars().take(MAX_LINE).collect();
            clean(&line)
        });
        let lines: Vec<String> = lines.collect();
        let count = |mark| lines.iter().filter(|line| line.starts_with(mark)).count();
        Some(Self {
            added: count('+'),
            removed: count('-'),
            is_new: old.is_none(),
            lines,
        })
    }

    /// Formats the size of the change, for example "+12 −3".
    pub(crate) fn summary(&self) -> String {
        let added = paint(GREEN, &format!("+{}", self.added));
        if self.is_new {
            return format!("new file {added}");
        }
        let removed = paint(RED, &format!("−{}", self.removed));
        format!("{added} {removed}")
    }

    /// Formats at most `most` lines.
    pub(crate) fn lines(&self, most: usize) -> Vec<String> {
        let lines = self.lines.iter().take(most);
        let lines = lines.map(|line| format!("  {}", diff_line(line)));
        let more = self.lines.len().saturating_sub(most);
        let more = (more > 0).then(|| format!("  … {}", counted(more, "more line")));
        lines.chain(more.map(|more| paint(DIM, &more))).collect()
    }
}

impl Previews {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            toolbox: Root::new(root).ok().map(Toolbox::new),
        }
    }

    /// Returns the change that a call would make to a file, if any.
    pub(crate) fn change(&self, tool: &str, arguments: &str) -> Option<FileChange> {
        let arguments = serde_json::from_str(arguments).ok()?;
        self.toolbox.as_ref()?.preview(tool, &arguments)?.ok()
    }

    /// Returns that change as a diff.
    pub(crate) fn diff(&self, tool: &str, arguments: &str) -> Option<Diff> {
        let FileChange { before, after, .. } = self.change(tool, arguments)?;
        Diff::of(before.as_deref().map(str::as_bytes), Some(after.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: Option<&str>, after: &str) -> Diff {
        Diff::of(before.map(str::as_bytes), Some(after.as_bytes())).unwrap()
    }

    #[test]
    fn a_change_is_shown_with_what_stands_around_it() {
        let before: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let after = before
            .replace("line 3\n", "third\nand more\n")
            .replace("line 18\n", "");
        let diff = diff(Some(&before), &after);
        assert_eq!(diff.summary(), "+2 −2");
        let expected = "  @@ -1,5 +1,6 @@\n   line 1\n   line 2\n  -line 3\n  +third\n  +and more\n   line 4\n   \
            line 5\n  @@ -16,5 +17,4 @@\n   line 16\n   line 17\n  -line 18\n   line 19\n   line 20";
        assert_eq!(diff.lines(ASKED).join("\n"), expected);
        let short = diff.lines(3);
        assert_eq!(short.last().map(String::as_str), Some("  … 11 more lines"));
    }

    #[test]
    fn a_new_file_and_a_large_one_are_bounded() {
        let new = diff(None, &"x\n".repeat(1_000));
        assert_eq!(new.summary(), "new file +1000");
        let lines = new.lines(SHOWN);
        assert_eq!(lines.len(), SHOWN + 1);
        assert_eq!(lines.last().map(String::as_str), Some("  … 985 more lines"));
        assert_eq!(Diff::of(None, Some(&vec![b'x'; MAX_BYTES + 1])), None);
        assert_eq!(Diff::of(Some(b"\xff"), None), None);
        assert_eq!(new.lines(usize::MAX).len(), 1_001);
    }
}
