//! Cleans text for a terminal, measures it in columns and breaks it into rows.

use std::fmt::Display;

use console::{AnsiCodeIterator, measure_text_width};

/// Replacement for a tab, whose width depends on its column.
const TAB: &str = "    ";
/// Maximum length of a text that is shown on one line, in columns.
const LINE: usize = 100;
/// Separates the parts of a line.
pub(crate) const SEPARATOR: &str = " │ ";
/// Maximum width of a line that is made of parts. It fits a terminal of 80 columns, whose last
/// column is left free.
const COLUMNS: usize = 79;
/// Escape sequence that ends all colours.
const RESET: &str = "\u{1b}[0m";

/// The places at which a row may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// Between words. The blanks there are dropped.
    Words,
    /// Anywhere. All blanks are kept, for code.
    Anywhere,
}

/// Breaks one line into rows. The first row begins with `first`, the others with `rest`. Colours
/// continue on the next row.
pub(crate) fn wrap(line: &str, width: usize, first: &str, rest: &str, at: Break) -> Vec<String> {
    let mut rows = Rows::new(width, first, rest);
    if at == Break::Anywhere {
        rows.chars(line);
    } else {
        let mut blanks = 0;
        for word in line.split_inclusive(' ') {
            blanks =
                rows.word(word.trim_end_matches(' '), blanks) + usize::from(word.ends_with(' '));
        }
    }
    rows.done.push(rows.row);
    rows.done
}

/// Breaks every line of a text between words. Continuation rows are indented like the text of the
/// first row.
pub(crate) fn rows_of(text: &str, width: usize) -> Vec<String> {
    let lines = text.split('\n');
    lines
        .flat_map(|line| {
            let plain = console::strip_ansi_codes(line);
            let text = plain.trim_start_matches(['·', ' ']);
            let indent = measure_text_width(&plain) - measure_text_width(text);
            let rest = " ".repeat(if indent < width / 2 { indent } else { 0 });
            wrap(line, width, "", &rest, Break::Words)
        })
        .collect()
}

/// Cuts a text to the width of one row.
pub(crate) fn clip(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}

/// Rows that are being filled.
struct Rows<'a> {
    width: usize,
    rest: &'a str,
    done: Vec<String>,
    row: String,
    /// Free columns in the row.
    free: usize,
    /// Whether the row has more than its prefix.
    is_filled: bool,
    /// The escape sequences of the current colours.
    colours: String,
}

impl<'a> Rows<'a> {
    fn new(width: usize, first: &str, rest: &'a str) -> Self {
        Self {
            width,
            rest,
            done: Vec::new(),
            row: first.to_owned(),
            free: width.saturating_sub(measure_text_width(first)),
            is_filled: false,
            colours: String::new(),
        }
    }

    /// Adds a word after some blanks, or on the next row without them. Returns the number of blanks
    /// that are still to be added, if the word is empty.
    fn word(&mut self, word: &str, blanks: usize) -> usize {
        if word.is_empty() {
            return blanks;
        }
        let wide = measure_text_width(word);
        if blanks + wide > self.free && self.is_filled {
            self.end_row();
        } else {
            self.chars(&" ".repeat(blanks.min(self.free)));
        }
        if wide <= self.free {
            self.push(word, wide);
        } else {
            self.chars(word);
        }
        0
    }

    /// Adds a text that may be broken anywhere.
    fn chars(&mut self, text: &str) {
        for (piece, is_escape) in AnsiCodeIterator::new(text) {
            if is_escape {
                self.push(piece, 0);
                continue;
            }
            for c in piece.chars() {
                let c = c.to_string();
                let wide = measure_text_width(&c);
                // A character that is wider than the terminal still gets a row.
                if wide > self.free && self.is_filled {
                    self.end_row();
                }
                self.push(&c, wide);
            }
        }
    }

    /// Adds a text that fits the row.
    fn push(&mut self, text: &str, wide: usize) {
        self.row.push_str(text);
        self.free = self.free.saturating_sub(wide);
        self.is_filled |= wide > 0;
        for (code, _) in AnsiCodeIterator::new(text).filter(|(_, is_escape)| *is_escape) {
            if code == RESET {
                self.colours.clear();
            } else {
                self.colours.push_str(code);
            }
        }
    }

    fn end_row(&mut self) {
        if !self.colours.is_empty() {
            self.row.push_str(RESET);
        }
        let next = format!("{}{}", self.rest, self.colours);
        self.done.push(std::mem::replace(&mut self.row, next));
        self.free = self.width.saturating_sub(measure_text_width(self.rest));
        self.is_filled = false;
    }
}

/// Invisible characters that can change the meaning of a text: format characters (category Cf of
/// Unicode 17, such as U+202E, which turns the direction, and U+200B, which has no width), the
/// line and paragraph separators U+2028 and U+2029, and letters that are blank.
const INVISIBLE: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
];

/// Makes foreign text safe to print on a terminal.
///
/// Control characters, which could move the cursor, colour the screen or ring the bell, are
/// replaced by U+FFFD. [Invisible](INVISIBLE) characters are shown as escapes such as `\u{202e}`,
/// so that a person reads what would run. Tabs become blanks, and carriage returns are removed.
/// Joiners stay where languages such as Persian and Hindi, and emoji, need them.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        match c {
            '\u{200c}' | '\u{200d}' if joins(before, chars.peek().copied()) => clean.push(c),
            '\n' => clean.push(c),
            '\t' => clean.push_str(TAB),
            '\r' => {}
            c if c.is_control() => clean.push('\u{fffd}'),
            c if is_invisible(c) => clean.extend(c.escape_unicode()),
            c => clean.push(c),
        }
        before = Some(c);
    }
    clean
}

/// Checks whether a joiner between these characters is part of a word or an emoji. A text may be a
/// piece of a stream, so its edges fit any joiner.
fn joins(before: Option<char>, after: Option<char>) -> bool {
    let fits = |c: char| !c.is_ascii() && !is_invisible(c);
    before.is_none_or(fits) && after.is_none_or(fits)
}

/// Like [`clean`], for a text that a person approves. Shows joiners and variation selectors as
/// well, which an ordinary text needs for words and emoji.
pub(crate) fn clean_strictly(text: &str) -> String {
    let mut strict = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '\u{200c}'
            | '\u{200d}'
            | '\u{180b}'..='\u{180f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0100}'..='\u{e01ef}' => {
                strict.extend(c.escape_unicode());
            }
            c => strict.push(c),
        }
    }
    strict
}

fn is_invisible(c: char) -> bool {
    !c.is_ascii()
        && INVISIBLE
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&c))
}

/// Joins parts to lines that fit a terminal of 80 columns. A part is never broken.
pub(crate) fn lines_of(parts: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if measure_text_width(line) + measure_text_width(part) + 3 <= COLUMNS => {
                line.push_str(SEPARATOR);
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines.join("\n")
}

/// Returns the first words of a text as one clean line.
pub(crate) fn one_line(text: &str) -> String {
    // No line takes more of a text than this.
    let text: String = text.chars().take(LINE * 4).collect();
    let text = clean(&text);
    let words: Vec<&str> = text.split_whitespace().collect();
    clip(&words.join(" "), LINE)
}

/// Encloses a text in a Markdown code fence that no line of the text closes.
pub(crate) fn fenced(text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or_default().max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Returns a number with its noun, for example "1 turn", "2 turns" or "2 entries".
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return format!("{count} {noun}");
    }
    match noun.strip_suffix("ry") {
        Some(stem) => format!("{count} {stem}ries"),
        None => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_block_is_closed_by_its_own_fence_only() {
        assert_eq!(fenced("a\n"), "```\na\n```");
        assert_eq!(fenced("```\nb\n```"), "````\n```\nb\n```\n````");
    }

    #[test]
    fn rows_break_between_words_and_count_columns() {
        for (text, width, rows) in [
            ("one two three", 8, vec!["one two", "three"]),
            ("one two", 8, vec!["one two"]),
            ("abcdefghij", 4, vec!["abcd", "efgh", "ij"]),
            ("汉字汉字", 5, vec!["汉字", "汉字"]),
            ("a\n\nb", 8, vec!["a", "", "b"]),
            ("汉", 1, vec!["汉"]),
            ("x   y", 3, vec!["x", "y"]),
            ("ab cde fg", 6, vec!["ab cde", "fg"]),
            ("  ab cde", 8, vec!["  ab cde"]),
            ("  ab cde", 6, vec!["  ab", "  cde"]),
            ("· ab cde", 6, vec!["· ab", "  cde"]),
            (
                "\u{1b}[2mab cd\u{1b}[0m",
                3,
                vec!["\u{1b}[2mab\u{1b}[0m", "\u{1b}[2mcd\u{1b}[0m"],
            ),
        ] {
            assert_eq!(rows_of(text, width), rows, "{text}");
        }
        let item = wrap("one two three", 9, "• ", "  ", Break::Words);
        assert_eq!(item, ["• one two", "  three"]);
        let code = wrap("a  b  c", 4, "", "", Break::Anywhere);
        assert_eq!(code, ["a  b", "  c"]);
    }

    #[test]
    fn nothing_a_model_says_reaches_the_terminal_as_a_command() {
        assert_eq!(clean("a\u{1b}[2Jb\u{7}\r\n\tc"), "a�[2Jb�\n    c");
        assert_eq!(
            clean("rm \u{202e}x\u{2066}\u{200b}\u{2028}é"),
            r"rm \u{202e}x\u{2066}\u{200b}\u{2028}é"
        );
    }

    #[test]
    fn joiners_stay_in_words_and_emoji_only() {
        for text in ["می\u{200c}خواهم", "क्\u{200d}ष", "👩\u{200d}👩\u{200d}👧"]
        {
            assert_eq!(clean(text), text);
        }
        assert_eq!(clean("r\u{200d}m -r"), r"r\u{200d}m -r");
        assert_eq!(clean("é\u{200d}\u{200d}é"), r"é\u{200d}\u{200d}é");
    }

    #[test]
    fn every_format_character_is_invisible() {
        // An unassigned character between two blocks of them is treated like its neighbours.
        let blank = r"\u{34f}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{2065}\u{2800}\u{3164}\u{ffa0}";
        let pattern = [r"^[\p{Cf}\p{Zl}\p{Zp}", blank, "]$"].concat();
        let pattern = regex::Regex::new(&pattern).unwrap();
        for c in '\0'..=char::MAX {
            assert_eq!(
                pattern.is_match(c.encode_utf8(&mut [0; 4])),
                is_invisible(c),
                "{c:?}"
            );
        }
    }

    #[test]
    fn nouns_agree_with_their_numbers() {
        assert_eq!(counted(1_u64, "turn"), "1 turn");
        assert_eq!(counted(0_usize, "tool call"), "0 tool calls");
        assert_eq!(counted(2_u64, "entry"), "2 entries");
    }

    #[test]
    fn long_text_is_one_short_line() {
        assert_eq!(one_line("a\n b\t c"), "a b c");
        assert_eq!(one_line("a\u{1b}[2Jb\r\n c"), "a\u{fffd}[2Jb c");
        assert_eq!(
            one_line(&"x".repeat(200)),
            format!("{}…", "x".repeat(LINE - 1))
        );
    }
}
