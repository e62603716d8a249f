//! The table of providers' error codes and texts, with their meanings, from `data/overflow.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The meaning of a code or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OverflowMeaning {
    Overflow,
    /// The output limit alone is too large; `{limit}` is the largest.
    Output,
    /// The tokens allowed per minute. They are too few for the request if `{requested}` > `{limit}`.
    PerMinute,
    Body,
    RateLimited,
    Quota,
    Auth,
    NotFound,
    Invalid,
    Transient,
}

/// A code or a text, and its meaning.
#[derive(Debug, Clone, Copy)]
pub(super) struct OverflowRow {
    pub(super) pattern: &'static str,
    pub(super) meaning: OverflowMeaning,
}

/// The sections of the file, by their titles.
#[derive(Debug, Default)]
pub(super) struct OverflowTable(BTreeMap<&'static str, Vec<OverflowRow>>);

pub(super) static TABLE: LazyLock<OverflowTable> =
    LazyLock::new(|| OverflowTable::parse(include_str!("../../data/overflow.txt")).0);

impl OverflowTable {
    /// Returns the rows of a section.
    pub(super) fn rows(&self, section: &str) -> &[OverflowRow] {
        self.0.get(section).map(Vec::as_slice).unwrap_or_default()
    }

    /// Parses a file. Also returns the lines that cannot be read; a test checks that there are none.
    fn parse(text: &'static str) -> (Self, Vec<&'static str>) {
        let (mut table, mut section, mut unread) = (Self::default(), "", Vec::new());
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for line in lines.filter(|line| !line.is_empty()) {
            if line.starts_with('[') {
                section = line;
                continue;
            }
            match OverflowRow::parse(line) {
                Some(row) => table.0.entry(section).or_default().push(row),
                None => unread.push(line),
            }
        }
        (table, unread)
    }
}

impl OverflowRow {
    fn parse(line: &'static str) -> Option<Self> {
        let (meaning, pattern) = line.split_once(' ')?;
        let meaning = serde_json::from_value(meaning.into()).ok()?;
        Some(Self { pattern, meaning })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_can_be_read() {
        let (table, unread) = OverflowTable::parse(include_str!("../../data/overflow.txt"));
        assert_eq!(unread, [""; 0]);
        let sections = ["[codes]", "[lookalikes]", "[providers]", "[general]"];
        let sections = sections.map(|section| table.rows(section).len());
        assert_eq!(sections, [65, 53, 71, 13]);
    }
}
