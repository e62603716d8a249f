//! Parses a summary as its reader sees it: sections, the user's lines and the reporting lines.

use plimsoll_context::ToolCall;
use regex::Regex;

/// The mark of the user's lines.
const USER: &str = "» ";
/// The mark of a reporting line.
const DASH: &str = "- ";

/// The headings. A line of the user that looks like another heading is not a heading.
const SECTIONS: [&str; 5] = [
    "Earlier summary",
    "Transcript",
    "State",
    "Rules from files and notes",
    "Files",
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
            let begun = match (line.strip_prefix(USER), line.strip_prefix(DASH)) {
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
                        Some(item) => item.lines.push(line),
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

    /// Checks whether a line reports that `call` failed: with one of `words`. Words of the call's own arguments do not count.
    pub(super) fn reports_failure(&self, call: &ToolCall, words: &Regex) -> bool {
        let mut own: Vec<String> = super::measure::plain(&call.arguments)
            .lines()
            .map(super::measure::normal)
            .filter(|line| words.is_match(line))
            .collect();
        own.sort_by_key(|line| std::cmp::Reverse(line.len()));
        self.of_kind(SummaryItemKind::Report).any(|item| {
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
    fn items_are_read() {
        let text = "[handover 00000000] head\n» never X\n  - second line\n- ran `bash`: failed\n";
        let summary = Summary::of(text);
        let user: Vec<_> = summary.of_kind(SummaryItemKind::User).collect();
        assert_eq!(user.len(), 1);
        assert_eq!(user[0].lines.len(), 2);
        assert_eq!(summary.of_kind(SummaryItemKind::Report).count(), 1);
    }
}
