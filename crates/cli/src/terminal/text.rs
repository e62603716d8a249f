//! Cleans text for a terminal, measures it in columns and breaks it into rows.

use std::fmt::Display;

use console::measure_text_width;

/// Replacement for a tab, whose width depends on its column.
const TAB: &str = "    ";
/// Maximum length of a text that is shown on one line, in characters.
const LINE: usize = 100;
/// Maximum length of a word that is left out as a whole, in characters. A longer word is cut.
const LONGEST_CUT: usize = 15;
/// Separates the parts of a line.
pub(crate) const SEPARATOR: &str = " │ ";
/// Maximum width of a line that is made of parts. It fits a terminal of 80 columns, whose last
/// column is left free.
const COLUMNS: usize = 79;
/// Escape sequence that ends all colours.
pub(crate) const RESET: &str = "\u{1b}[0m";

/// The places at which a row may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// Between words. The blanks there are dropped.
    Completer,
    /// Anywhere. All blanks are kept, for code.
    Anywhere,
}

/// Breaks one line into rows. The first row begins with `first`, the others with `rest`. Colours
/// continue on the next row.
pub(crate) fn wrap(line: &str, width: usize, first: &str, rest: &str, at: Break) -> Vec<String> {
    let mut rows = Rows::new(width, first, rest);
    for piece in pieces(line) {
        match piece {
            LinePart::Escape(code) => rows.escape(code),
            LinePart::Blanks(blanks) => rows.blanks(blanks, at),
            LinePart::Word(word) => rows.word(word, at),
        }
    }
    rows.end()
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
            wrap(line, width, "", &rest, Break::Completer)
        })
        .collect()
}

/// Returns the width of a text without escape sequences, in columns.
fn columns(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        measure_text_width(text)
    }
}

/// Cuts a text to the width of one row.
pub(crate) fn clip(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}

/// A part of a line.
enum LinePart<'a> {
    /// An escape sequence such as `ESC [ 1 m`.
    Escape(&'a str),
    Blanks(&'a str),
    Word(&'a str),
}

fn pieces(line: &str) -> impl Iterator<Item = LinePart<'_>> {
    let mut left = line;
    std::iter::from_fn(move || {
        let first = left.chars().next()?;
        let end = match first {
            '\u{1b}' => left.find('m').map(|at| at + 1),
            ' ' => left.find(|c| c != ' '),
            _ => left.find([' ', '\u{1b}']),
        };
        let (piece, rest) = left.split_at_checked(end.unwrap_or(left.len()))?;
        left = rest;
        Some(match first {
            '\u{1b}' => LinePart::Escape(piece),
            ' ' => LinePart::Blanks(piece),
            _ => LinePart::Word(piece),
        })
    })
}

/// Rows that are being filled.
struct Rows<'a> {
    width: usize,
    rest: &'a str,
    done: Vec<String>,
    row: String,
    /// Free columns in the row.
    left: usize,
    /// Whether the row has more than its prefix.
    filled: bool,
    /// Blanks that are written before the next word, if that fits.
    blanks: usize,
    /// The escape sequence of the current colours.
    colours: String,
}

impl<'a> Rows<'a> {
    fn new(width: usize, first: &str, rest: &'a str) -> Self {
        Self {
            width,
            rest,
            done: Vec::new(),
            row: first.to_owned(),
            left: width.saturating_sub(measure_text_width(first)),
            filled: false,
            blanks: 0,
            colours: String::new(),
        }
    }

    fn escape(&mut self, code: &str) {
        self.give_blanks();
        self.row.push_str(code);
        self.colours.clear();
        if code != RESET {
            self.colours.push_str(code);
        }
    }

    fn blanks(&mut self, blanks: &str, at: Break) {
        match at {
            Break::Completer => self.blanks += blanks.len(),
            Break::Anywhere => self.chars(blanks),
        }
    }

    fn word(&mut self, word: &str, at: Break) {
        let wide = columns(word);
        if at == Break::Anywhere {
            return self.chars(word);
        }
        if self.blanks + wide > self.left && self.filled {
            self.blanks = 0;
            self.turn();
        }
        self.give_blanks();
        if wide <= self.left {
            self.push(word, wide)
        } else {
            self.chars(word)
        }
    }

    /// Writes the pending blanks, as far as they fit.
    fn give_blanks(&mut self) {
        let blanks = std::mem::take(&mut self.blanks).min(self.left);
        self.push(&" ".repeat(blanks), blanks);
    }

    /// Writes a text that may be broken anywhere.
    fn chars(&mut self, text: &str) {
        for c in text.chars() {
            let mut buffer = [0; 4];
            let c: &str = c.encode_utf8(&mut buffer);
            let wide = columns(c);
            // A character that is wider than the terminal still gets a row.
            if wide > self.left && self.filled {
                self.turn();
            }
            self.push(c, wide);
        }
    }

    fn push(&mut self, text: &str, wide: usize) {
        self.row.push_str(text);
        self.left = self.left.saturating_sub(wide);
        self.filled |= !text.is_empty();
    }

    /// Begins the next row.
    fn turn(&mut self) {
        if !self.colours.is_empty() {
            self.row.push_str(RESET);
        }
        let next = format!("{}{}", self.rest, self.colours);
        self.done.push(std::mem::replace(&mut self.row, next));
        self.left = self.width.saturating_sub(measure_text_width(self.rest));
        self.filled = false;
    }

    fn end(mut self) -> Vec<String> {
        self.done.push(self.row);
        self.done
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
    let mut lines = String::new();
    let mut columns = 0;
    for part in parts {
        let separator = measure_text_width(SEPARATOR);
        let wide = measure_text_width(part);
        match columns {
            0 => columns = wide,
            _ if columns + separator + wide <= COLUMNS => {
                lines.push_str(SEPARATOR);
                columns += separator + wide;
            }
            _ => {
                lines.push('\n');
                columns = wide;
            }
        }
        lines.push_str(part);
    }
    lines
}

/// Returns the first words of a text as one clean line.
pub(crate) fn one_line(text: &str) -> String {
    // No line takes more of a text than this.
    let text: String = text.chars().take(LINE * 4).collect();
    let text = clean(&text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let Some((end, _)) = line.char_indices().nth(LINE) else {
        return line;
    };
    let cut = line.get(..end).unwrap_or_default();
    // End after a whole word if the last word is short.
    match cut.rsplit_once(' ') {
        Some((words, last)) if last.chars().count() <= LONGEST_CUT => format!("{words} …"),
        _ => format!("{cut}…"),
    }
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

/// Returns the width of each column of a table: that of its widest cell.
pub(crate) fn widths<const N: usize>(table: &[[String; N]]) -> [usize; N] {
    let mut widths = [0; N];
    for row in table {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = measure_text_width(cell).max(*widest);
        }
    }
    widths
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
        let item = wrap("one two three", 9, "• ", "  ", Break::Completer);
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
        assert_eq!(one_line(&"x".repeat(200)).chars().count(), LINE + 1);
        let words = format!("{} is there anything?", "x".repeat(90));
        assert_eq!(one_line(&words), format!("{} is there …", "x".repeat(90)));
    }
}
