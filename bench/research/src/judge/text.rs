//! Parses a summary as its reader sees it: sections, the user's lines and the reporting lines.
//!
//! Two forms are parsed, so that both can be measured by the same rules: the chronological form,
//! with `»! ` before the user's rules, and the older form, which put the user's words under their
//! own headings.

use plimsoll_context::ToolCall;
use regex::Regex;

/// The marks of the user's lines. The first one marks a rule.
const USER: [&str; 2] = ["»! ", "» "];
/// The mark of a reporting line.
const DASH: &str = "- ";

/// The headings of both forms. A line of the user that looks like another heading is not a heading.
const SECTIONS: [&str; 13] = [
    "Transcript",
    "State",
    "Rules from files and notes",
    "Files",
    "Names",
    "Also seen",
    "Earlier summary",
    "User's rules",
    "User said",
    "Decisions and findings",
    "Errors met",
    "Tool calls",
    "Names seen",
];

/// A summary, split into items.
pub(super) struct Summary<'t> {
    pub(super) items: Vec<Item<'t>>,
}

/// An item of a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item<'t> {
    /// The heading above it, without `## `.
    pub(super) section: &'t str,
    pub(super) kind: SummaryItemKind,
    /// Its lines without the marks. The first one is the line of the mark.
    pub(super) lines: Vec<&'t str>,
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummaryItemKind {
    /// Marked as the user's words.
    User,
    /// Reports an action or a finding.
    Report,
}

impl<'t> Summary<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let mut section = "";
        let mut items: Vec<Item<'t>> = Vec::new();
        // Our first line is the sealed head.
        for line in text.lines().skip(usize::from(text.starts_with('['))) {
            let heading = line.strip_prefix("## ");
            if let Some(heading) = heading.filter(|heading| SECTIONS.contains(heading)) {
                section = heading;
                continue;
            }
            let quoted_section = section.starts_with("User");
            let user = USER.iter().find_map(|mark| line.strip_prefix(mark));
            let dash = line.strip_prefix(DASH).filter(|_| !quoted_section);
            let begun = match (user, dash) {
                (Some(text), _) => Some((SummaryItemKind::User, text)),
                (None, Some(text)) => Some((SummaryItemKind::Report, text)),
                (None, None) => None,
            };
            match begun {
                Some((kind, text)) => items.push(Item {
                    section,
                    kind,
                    lines: vec![text],
                }),
                None => {
                    // A line before the first item of a section is an item of its own.
                    match items.last_mut().filter(|item| item.section == section) {
                        Some(item) => item.lines.push(line.strip_prefix('\\').unwrap_or(line)),
                        None => items.push(Item {
                            section,
                            kind: SummaryItemKind::Report,
                            lines: vec![line],
                        }),
                    }
                }
            }
        }
        Self { items }
    }

    pub(super) fn of_kind(&self, kind: SummaryItemKind) -> impl Iterator<Item = &Item<'t>> {
        self.items.iter().filter(move |item| item.kind == kind)
    }

    /// Checks whether a line reports that `call` failed: with one of `words`, or under the older
    /// form's heading for errors. Words of the call's own arguments do not count.
    pub(super) fn reports_failure(&self, call: &ToolCall, words: &Regex) -> bool {
        let mut own: Vec<String> = super::measure::plain(&call.arguments)
            .lines()
            .map(super::measure::normal)
            .filter(|line| words.is_match(line))
            .collect();
        own.sort_by_key(|line| std::cmp::Reverse(line.len()));
        self.of_kind(SummaryItemKind::Report).any(|item| {
            if item.section == "Errors met" {
                return true;
            }
            let mut text = super::measure::normal(&item.lines.join(" "));
            for line in &own {
                text = text.replace(line.as_str(), "");
            }
            words.is_match(&text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let old = "[handover 00000000] head\n## User's rules\n» never X\n- a list of the user\n## Context\n## Tool calls\n- bash: failed\n";
        let new = "[handover 00000000] head\n»! never X\n  - second line\n- ran `bash`: failed\n";
        for (text, lines) in [(old, 3), (new, 2)] {
            let summary = Summary::of(text);
            let user: Vec<_> = summary.of_kind(SummaryItemKind::User).collect();
            assert_eq!(user.len(), 1);
            assert_eq!(user[0].lines.len(), lines);
            assert_eq!(summary.of_kind(SummaryItemKind::Report).count(), 1);
        }
    }
}
