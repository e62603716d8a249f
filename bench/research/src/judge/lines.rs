//! Finds clutter and bare lists in a summary, by the form of its lines.

use regex::Regex;

use super::measure::{Share, pattern};
use super::summary::{Summary, SummaryItemKind};
use crate::error::Error;

/// The section of files.
const FILES: &str = "Files";
/// Number of symbols after a file that count as meaningful.
const SYMBOLS: usize = 6;
/// Maximum length of an announcement, in characters.
const ANNOUNCEMENT_MAX: usize = 120;

/// Filler words before an announcement.
const FILLER: &str = r"^(?:(?:ok(?:ay)?|great|perfect|good|excellent|nice|now|alright|sure|right|yes|so|and|then|next|first|finally|also|interesting|hmm|wait|done|好的|はい)\b[\s,.!:;—-]*)+";
/// The beginnings of announcements.
const ANNOUNCEMENT: &str = r"^(?:let me|let's|let us|i'll|i will|i am going to|i'm going to|i need to|i should|i want to|we need to|we should|we'll|time to|going to|checking|running|reading|looking|searching|updating|fixing|verifying|让我|我来|接下来|まず)";
/// The outline of a table.
const TABLE: &str = r"^\||\|$|^:?-{3,}:?\s*\|";
/// A file name with the actions on it.
const ACTS: &str = r"^(?P<path>.+?) \((?P<acts>(?:edited|written|read|removed|perhaps)[^)]*)\)(?::? ?(?P<rest>.*))?$";

/// Finds clutter and actions on files.
pub(super) struct LineScanner {
    filler: Regex,
    announcement: Regex,
    table: Regex,
    acts: Regex,
}

impl LineScanner {
    pub(super) fn new() -> Result<Self, Error> {
        Ok(Self {
            filler: pattern(FILLER)?,
            announcement: pattern(ANNOUNCEMENT)?,
            table: pattern(TABLE)?,
            acts: pattern(ACTS)?,
        })
    }

    /// Counts the clutter among the reporting lines. `fault` is called with each such line.
    pub(super) fn clutter(&self, summary: &Summary<'_>, mut fault: impl FnMut(&str)) -> Share {
        let mut clutter = Share::default();
        let told = summary.of_kind(SummaryItemKind::Report);
        for item in told.filter(|item| item.section != FILES) {
            let text = item.lines.join("\n");
            // The result of a call may end with any character.
            let is_call = text.contains(" → ");
            let is_lead_in = !is_call && text.trim_end().ends_with([':', '：']);
            let mut lines = item.lines.iter().map(|line| line.trim());
            let is_torn = !is_call && lines.any(|line| self.table.is_match(line));
            let is_clutter = self.announces(&text) || is_lead_in || is_torn;
            clutter.count(is_clutter);
            if is_clutter {
                fault(&text);
            }
        }
        clutter
    }

    /// Returns the text without bare lists: the symbols after a file from the seventh on.
    pub(super) fn without_lists(&self, text: &str) -> String {
        let mut kept = String::new();
        for item in Summary::of(text).items {
            for line in &item.lines {
                let is_file = item.kind == SummaryItemKind::Report && item.section == FILES;
                let found = self.acts.captures(line).filter(|_| is_file);
                match found.and_then(|found| found.name("rest")) {
                    Some(rest) => {
                        let symbols: Vec<&str> = rest.as_str().split(", ").take(SYMBOLS).collect();
                        kept.push_str(line.get(..rest.start()).unwrap_or_default());
                        kept.push_str(&symbols.join(", "));
                    }
                    None => kept.push_str(line),
                }
                kept.push('\n');
            }
        }
        kept
    }

    /// Returns the path and the actions in brackets if `line` reports actions on a file.
    pub(super) fn file<'l>(&self, line: &'l str) -> Option<(&'l str, &'l str)> {
        let found = self.acts.captures(line)?;
        Some((found.name("path")?.as_str(), found.name("acts")?.as_str()))
    }

    /// Checks whether every sentence only announces an action.
    fn announces(&self, text: &str) -> bool {
        if text.chars().count() > ANNOUNCEMENT_MAX {
            return false;
        }
        let lower = text.to_lowercase().replace('’', "'");
        let sentences = lower.split_inclusive(['.', '!', '?', '\n', '。']);
        let mut sentences = sentences.map(str::trim).filter(|one| !one.is_empty());
        let mut any = false;
        let all = sentences.all(|sentence| {
            let rest = self.filler.replace(sentence, "");
            any |= !rest.is_empty();
            rest.is_empty() || self.announcement.is_match(&rest)
        });
        // "Great!" alone announces nothing, but it reports nothing either.
        all && (any || !lower.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &str) -> String {
        format!("[handover 00000000] head\n## Transcript\n{lines}")
    }

    #[test]
    fn announcements_lead_ins_and_torn_rows_are_clutter() {
        let lines = LineScanner::new().unwrap();
        for (line, is_clutter) in [
            ("- Let me check.", true),
            ("- Great! Now let me run the tests.", true),
            ("- I'll fix it: the crane has two locks", true),
            ("- The crane has two locks.", false),
            ("- Let me check. The crane has two locks.", false),
            ("- Here is what I found:", true),
            ("- | crane | 4 |", true),
            ("- ran `a | grep b`: 4 lines", false),
            ("- grep class → class A:", false),
        ] {
            let text = told(line);
            let clutter = lines.clutter(&Summary::of(&text), |_| {});
            assert_eq!(clutter.kept, usize::from(is_clutter), "{line}");
        }
    }

    #[test]
    fn lists_can_be_left_out() {
        let lines = LineScanner::new().unwrap();
        let text = told("- found x\n## Files\n- a.rs (read): a, b, c, d, e, f, g");
        assert_eq!(
            lines.without_lists(&text),
            "found x\na.rs (read): a, b, c, d, e, f\n"
        );
    }

    #[test]
    fn what_was_done_to_a_file_is_read() {
        let lines = LineScanner::new().unwrap();
        assert_eq!(
            lines.file("src/a.rs (edited, perhaps undone): one"),
            Some(("src/a.rs", "edited, perhaps undone"))
        );
        assert_eq!(lines.file("src/a.rs (old)"), None);
    }
}
