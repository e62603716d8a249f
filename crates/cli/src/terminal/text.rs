//! Cleans text for a terminal, measures it in columns and breaks it into rows.

use std::fmt::Display;

use console::{AnsiCodeIterator, measure_text_width};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Replacement for a tab, whose width depends on its column.
const TAB: &str = "    ";
/// Maximum length of a text that is shown on one line, in columns.
const LINE: usize = 100;
/// Separates the parts of a line.
pub(crate) const SEPARATOR: &str = " │ ";
/// Maximum width of a line that is made of parts. It fits a terminal of 80 columns, whose last
/// column is left free.
pub(super) const COLUMNS: usize = 79;
/// Escape sequence that ends all colours.
const RESET: &str = "\u{1b}[0m";
/// Letters and marks that are blank.
const BLANK: [char; 8] = [
    '\u{34f}', '\u{115f}', '\u{1160}', '\u{17b4}', '\u{17b5}', '\u{2800}', '\u{3164}', '\u{ffa0}',
];

/// Breaks one line into rows, between words if possible. The blanks there are dropped. The first row
/// begins with `first`, the others with `rest`. Colours continue on the next row.
pub(crate) fn wrap(line: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut prefix, mut line) = (first, line);
    let mut colours = String::new();
    loop {
        let free = width.saturating_sub(measure_text_width(prefix));
        let (text, more) = first_row(line, free);
        let mut row = format!("{prefix}{colours}{text}");
        for (code, _) in AnsiCodeIterator::new(text).filter(|(_, is_escape)| *is_escape) {
            if code == RESET {
                colours.clear();
            } else {
                colours.push_str(code);
            }
        }
        if !colours.is_empty() {
            row.push_str(RESET);
        }
        rows.push(row);
        if more.is_empty() {
            return rows;
        }
        (prefix, line) = (rest, more);
    }
}

/// Returns the beginning of a line that fits a row, and the rest without the blanks before it. A word
/// that is wider than a row is broken.
fn first_row(line: &str, free: usize) -> (&str, &str) {
    let (mut end, mut wide) = (0, 0);
    // The end of the last whole word.
    let mut words = None;
    let mut is_blank = true;
    for (piece, is_escape) in AnsiCodeIterator::new(line) {
        if is_escape {
            end += piece.len();
            continue;
        }
        for c in piece.chars() {
            if c == ' ' && !is_blank {
                words = Some(end);
            }
            is_blank = c == ' ';
            let width = measure_text_width(c.encode_utf8(&mut [0; 4]));
            // A character that is wider than the terminal still gets a row.
            if wide > 0 && wide + width > free {
                let (row, rest) = line.split_at(words.unwrap_or(end));
                return (row, rest.trim_start_matches(' '));
            }
            wide += width;
            end += c.len_utf8();
        }
    }
    (line.trim_end_matches(' '), "")
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
            wrap(line, width, "", &rest)
        })
        .collect()
}

/// Cuts a text to the width of one row.
pub(crate) fn clip(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}

/// Makes foreign text safe to print on a terminal.
///
/// Control characters, which could move the cursor, colour the screen or ring the bell, are
/// replaced by U+FFFD. [Invisible](is_invisible) characters are shown as escapes such as `\u{202e}`,
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

/// Checks whether a character can change the meaning of a text without being seen: a format character,
/// such as U+202E, which turns the direction, and U+200B, which has no width; a separator of lines or
/// paragraphs; or a [letter that is blank](BLANK).
fn is_invisible(c: char) -> bool {
    use GeneralCategory::{Format, LineSeparator, ParagraphSeparator};
    let is_hidden = matches!(
        c.general_category(),
        Format | LineSeparator | ParagraphSeparator
    );
    !c.is_ascii() && (is_hidden || BLANK.contains(&c))
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

/// Returns the first clause of an error as one clean line, without the advice behind it.
pub(crate) fn first_clause(error: &str) -> String {
    one_line(error.split("; ").next().unwrap_or(error))
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
        let item = wrap("one two three", 9, "• ", "  ");
        assert_eq!(item, ["• one two", "  three"]);
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
    fn nouns_agree_with_their_numbers() {
        assert_eq!(counted(1_u64, "turn"), "1 turn");
        assert_eq!(counted(0_usize, "tool call"), "0 tool calls");
        assert_eq!(counted(2_u64, "entry"), "2 entries");
    }

    #[test]
    fn long_text_is_one_short_line() {
        assert_eq!(one_line("a\n b\t c"), "a b c");
        assert_eq!(first_clause("no\nserver; start it; or not"), "no server");
        assert_eq!(one_line("a\u{1b}[2Jb\r\n c"), "a\u{fffd}[2Jb c");
        assert_eq!(
            one_line(&"x".repeat(200)),
            format!("{}…", "x".repeat(LINE - 1))
        );
    }
}
