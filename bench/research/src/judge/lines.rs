//! Finds clutter and meaningless names in a summary, by the form of its lines.

use plimsoll_context::TokenCounter;
use regex::Regex;

use super::measure::{Share, pattern};
use super::text::{Item, Summary, SummaryItemKind};
use crate::error::Error;

/// Number of symbols after a file that count as meaningful.
const SYMBOLS: usize = 6;
/// Number of consecutive names that form a bare list.
const RUN: usize = 5;
/// Maximum length of an announcement, in characters.
const ANNOUNCEMENT_MAX: usize = 120;

/// Filler words before an announcement.
const FILLER: &str = r"^(?:(?:ok(?:ay)?|great|perfect|good|excellent|nice|now|alright|sure|right|yes|so|and|then|next|first|finally|also|interesting|hmm|wait|done|好的|はい)\b[\s,.!:;—-]*)+";
/// The beginnings of announcements.
const ANNOUNCEMENT: &str = r"^(?:let me|let's|let us|i'll|i will|i am going to|i'm going to|i need to|i should|i want to|we need to|we should|we'll|time to|going to|checking|running|reading|looking|searching|updating|fixing|verifying|让我|我来|接下来|まず)";
/// The outline of a table.
const TABLE: &str = r"^\||\|$|^:?-{3,}:?\s*\|";
/// The beginnings of sentences that depend on the one before.
const DANGLING: &str = r"^(?:it|its|this|that|they|them|these|those|both|which|he|she|but|so|and|or|also|then|no|wait|ah)\b[,' ]";
/// A file name with the actions on it.
const ACTS: &str =
    r"^(?P<path>.+?) \((?P<acts>(?:[a-z]+ [0-9]+(?:, )?)+[^)]*)\)(?::? ?(?P<rest>.*))?$";
/// A word that occurs only in code: a path, snake_case, camelCase, a file name, a hash.
const NAME: &str = r"^[`\x22']?(?:[\w.~@-]*/[\w./@~-]+|\w+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[\w-]+\.[a-z]{1,5}|[0-9a-f]{7,40})[`\x22'(),;:]*$";
/// A number without a unit.
const NUMBER: &str = r"^[-+#~]?[0-9][0-9.,:%xX]*$";
/// Remains of escapes and colours: half a surrogate, a colour code or the letter of an escaped
/// newline joined to a word, a raw escape.
const DEBRIS: &str = r"\bu[dD][89a-fA-F][0-9a-fA-F]{2}\b|\bu(?:00|20|25)[0-9a-f]{2}\b|\[[0-9]{1,3}(?:;[0-9]{1,3})*m|\b[0-9]{1,3}m[A-Z][a-z]+|\b[nt](?:Let|Now|The|This|That|If|In|It|You|Use|We|For|Note|And|But|Please|Run|See|Error|Test|File)\b|\x1b";

/// Shares of a summary's reporting lines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clutter {
    pub(super) announcements: Share,
    pub(super) lead_ins: Share,
    pub(super) torn_rows: Share,
    /// Lines with at least one of these faults.
    pub(super) any: Share,
    /// Lines that begin in the middle of a thought ("It relies on …"). Not clutter by itself: the
    /// line before may name the subject.
    pub(super) dangling: Share,
}

/// Shares of a summary's tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Names {
    pub(super) bare: Share,
    pub(super) numbers: Share,
    pub(super) debris: Share,
}

/// Finds clutter and names.
pub(super) struct LineScanner {
    filler: Regex,
    announcement: Regex,
    table: Regex,
    dangling: Regex,
    acts: Regex,
    name: Regex,
    number: Regex,
    debris: Regex,
}

impl Clutter {
    pub(super) fn add(&mut self, other: Self) {
        self.announcements.add(other.announcements);
        self.lead_ins.add(other.lead_ins);
        self.torn_rows.add(other.torn_rows);
        self.any.add(other.any);
        self.dangling.add(other.dangling);
    }
}

impl Names {
    pub(super) fn add(&mut self, other: Self) {
        self.bare.add(other.bare);
        self.numbers.add(other.numbers);
        self.debris.add(other.debris);
    }
}

impl LineScanner {
    pub(super) fn new() -> Result<Self, Error> {
        Ok(Self {
            filler: pattern(FILLER)?,
            announcement: pattern(ANNOUNCEMENT)?,
            table: pattern(TABLE)?,
            dangling: pattern(DANGLING)?,
            acts: pattern(ACTS)?,
            name: pattern(NAME)?,
            number: pattern(NUMBER)?,
            debris: pattern(DEBRIS)?,
        })
    }

    /// Counts the clutter among the reporting lines. `fault` is called with each such line.
    pub(super) fn clutter(&self, summary: &Summary<'_>, mut fault: impl FnMut(&str)) -> Clutter {
        let mut clutter = Clutter::default();
        let told = summary.of_kind(SummaryItemKind::Report).filter(|item| {
            let section = item.section;
            !is_names(section) && !is_files(section) && section != "Tool calls"
        });
        for item in told {
            let text = item.lines.join("\n");
            let is_announcement = self.announces(&text);
            // The result of a call may end with any character.
            let is_call = text.contains(" → ");
            let is_lead_in = !is_call && text.trim_end().ends_with([':', '：']);
            let mut lines = item.lines.iter().map(|line| line.trim());
            let is_torn = !is_call && lines.any(|line| self.table.is_match(line));
            let any = is_announcement || is_lead_in || is_torn;
            clutter.announcements.count(is_announcement);
            clutter.lead_ins.count(is_lead_in);
            clutter.torn_rows.count(is_torn);
            clutter.any.count(any);
            let first = text.trim_start().to_lowercase();
            clutter.dangling.count(self.dangling.is_match(&first));
            if any {
                fault(&text);
            }
        }
        clutter
    }

    /// Counts the tokens of consecutive names, of isolated numbers and of debris. `fault` is called
    /// with each such text.
    pub(super) fn names(
        &self,
        text: &str,
        counter: &dyn TokenCounter,
        mut fault: impl FnMut(&str),
    ) -> Names {
        let of = usize::try_from(counter.text(text).0).unwrap_or(usize::MAX);
        let tokens = |text: &str| usize::try_from(counter.text(text).0).unwrap_or(usize::MAX);
        let mut names = Names::default();
        for share in [&mut names.bare, &mut names.numbers, &mut names.debris] {
            share.of = of;
        }
        for item in Summary::of(text).of_kind(SummaryItemKind::Report) {
            let (bare, numbers) = self.lists(item);
            let joined = bare.join(", ");
            if bare.len() > 1 {
                names.bare.kept += tokens(&joined);
                fault(&joined);
            }
            for number in numbers {
                names.numbers.kept += tokens(number);
                fault(number);
            }
        }
        for found in self.debris.find_iter(text) {
            names.debris.kept += tokens(found.as_str());
            fault(found.as_str());
        }
        names
    }

    /// Returns the text without bare lists: sections of names, and the symbols after a file from
    /// the seventh on.
    pub(super) fn without_lists(&self, text: &str) -> String {
        let mut kept = String::new();
        for item in Summary::of(text).items {
            if item.kind == SummaryItemKind::Report && is_names(item.section) {
                continue;
            }
            for line in &item.lines {
                let is_file = item.kind == SummaryItemKind::Report && is_files(item.section);
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

    /// Returns the consecutive names of an item, and the isolated numbers.
    fn lists<'t>(&self, item: &Item<'t>) -> (Vec<&'t str>, Vec<&'t str>) {
        let mut bare = Vec::new();
        let mut numbers = Vec::new();
        let (is_names, is_files) = (is_names(item.section), is_files(item.section));
        for line in &item.lines {
            let line: &'t str = line;
            let rest = if is_files {
                let found = self.acts.captures(line);
                found
                    .and_then(|found| found.name("rest"))
                    .map_or("", |rest| rest.as_str())
            } else {
                line
            };
            let parts: Vec<&str> = rest
                .split([',', '，', '、'])
                .map(|part| part.trim().trim_matches('`'))
                .filter(|part| !part.is_empty())
                .collect();
            let is_number = |part: &str| self.number.is_match(part);
            if is_names || is_files {
                let free = if is_files { SYMBOLS } else { 0 };
                numbers.extend(parts.iter().copied().filter(|part| is_number(part)));
                let others = parts.iter().copied().filter(|part| !is_number(part));
                bare.extend(others.skip(free));
                continue;
            }
            let is_name = |part: &str| self.name.is_match(part) || is_number(part);
            for run in parts.chunk_by(|a, b| is_name(a) == is_name(b)) {
                if run.len() >= RUN && run.first().is_some_and(|part| is_name(part)) {
                    numbers.extend(run.iter().copied().filter(|part| is_number(part)));
                    bare.extend(run.iter().copied().filter(|part| !is_number(part)));
                }
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.len() >= RUN && words.iter().all(|word| is_name(word)) {
                bare.extend(words);
            } else if is_number(line.trim()) {
                numbers.push(line.trim());
            }
        }
        (bare, numbers)
    }
}

/// Checks for a section that only lists names.
pub(super) fn is_names(section: &str) -> bool {
    section.starts_with("Names") || section == "Also seen"
}

fn is_files(section: &str) -> bool {
    section.starts_with("Files")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::Bpe;

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
            assert_eq!(clutter.any.kept, usize::from(is_clutter), "{line}");
        }
    }

    #[test]
    fn lists_numbers_and_debris_are_found() {
        let lines = LineScanner::new().unwrap();
        let counter = Bpe::o200k();
        for (text, bare, numbers, debris) in [
            (told("- a.rs, b.rs, c_d, eF, src/g.rs"), true, false, false),
            (told("- edited a.rs, b.rs and c_d"), false, false, false),
            (told("## Names\n- alpha, b_c, 4711, 92"), true, true, false),
            (
                told("## Files\n- src/a.rs (read 2, edited 1): one, two"),
                false,
                false,
                false,
            ),
            (
                told("## Files\n- src/a.rs (read 2): a, b, c, d, e, f, g, h"),
                true,
                false,
                false,
            ),
            (told("- uD83D 31mTest nLet"), false, false, true),
        ] {
            let names = lines.names(&text, &counter, |_| {});
            let found = [names.bare, names.numbers, names.debris].map(|share| share.kept > 0);
            assert_eq!(found, [bare, numbers, debris], "{text}");
        }
    }

    #[test]
    fn lists_can_be_left_out() {
        let lines = LineScanner::new().unwrap();
        let text =
            told("- found x\n## Files\n- a.rs (read 2): a, b, c, d, e, f, g\n## Names\n- y, z");
        assert_eq!(
            lines.without_lists(&text),
            "found x\na.rs (read 2): a, b, c, d, e, f\n"
        );
    }

    #[test]
    fn what_was_done_to_a_file_is_read() {
        let lines = LineScanner::new().unwrap();
        assert_eq!(
            lines.file("src/a.rs (read 2, edited 1): one"),
            Some(("src/a.rs", "read 2, edited 1"))
        );
        assert_eq!(lines.file("src/a.rs (edited)"), None);
    }
}
