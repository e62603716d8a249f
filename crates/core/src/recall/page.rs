//! Parts of a recalled text: a page of its bytes, or the lines that match a pattern.
//!
//! Each part contains its position in the whole text and the offset to continue from.

use plimsoll_context::Bytes;
use regex::Regex;

/// Maximum number of matching lines. To get more, use a narrower pattern or continue at the next
/// offset.
pub const RECALL_MATCHES: usize = 100;
/// Longer lines are shortened to the part around the match. In bytes.
const LINE: usize = 300;
/// How much of a long line to show before the match, in bytes.
const BEFORE: usize = 60;
/// A part of a text with its note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextExcerpt {
    /// The position in the whole text and how to continue.
    pub note: String,
    /// The part of the text.
    pub text: String,
    /// Whether this is a page that reaches the end of the text.
    pub is_last: bool,
}

/// Returns at most `limit` bytes from an offset on, cut between characters. Reading pages by their
/// `next offset` yields the whole text, byte for byte.
///
/// # Errors
/// If the offset is past the end.
pub fn page(text: &str, offset: u64, limit: Bytes) -> Result<TextExcerpt, String> {
    let (whole, limit) = (text.len(), usize::try_from(limit.0).unwrap_or(usize::MAX));
    let from = usize::try_from(offset).ok().filter(|from| *from <= whole);
    let past_end = || format!("offset {offset} is past its end: it has {whole} bytes");
    let from = text.floor_char_boundary(from.ok_or_else(past_end)?);
    // A page has at least one character, so that paging terminates.
    let next = text.ceil_char_boundary(from.saturating_add(1));
    let to = text
        .floor_char_boundary(from.saturating_add(limit))
        .max(next);
    let piece = text.get(from..to).unwrap_or_default();
    let note = if (from, to) == (0, whole) {
        format!("all {whole} bytes")
    } else if to < whole {
        format!("bytes {from}-{to} of {whole}; next offset {to}")
    } else {
        format!("bytes {from}-{to} of {whole}: to its end")
    };
    Ok(TextExcerpt {
        note,
        text: piece.to_owned(),
        is_last: to == whole,
    })
}

/// Returns the lines that match a pattern, as `line:offset: text`, up to `limit` bytes.
///
/// # Errors
/// If the pattern is too large even as plain text.
pub fn matches(text: &str, pattern: &str, limit: Bytes) -> Result<TextExcerpt, String> {
    let most = usize::try_from(limit.0).unwrap_or(usize::MAX);
    let (regex, is_literal) = compile(pattern)?;
    let (mut rows, mut count, mut at) = (String::new(), 0, 0);
    let mut more = "";
    'lines: for (line, number) in text.split('\n').zip(1..) {
        let mut seen = 0;
        for hit in regex.find_iter(line) {
            if hit.start() < seen {
                continue;
            }
            let (begin, end) = window(line, hit.start());
            let shown = line.get(begin..end).unwrap_or_default();
            let shown = shown.trim_end_matches('\r');
            let before = if begin > 0 { "…" } else { "" };
            let after = if end < line.len() { "…" } else { "" };
            let row = format!("{number}:{}: {before}{shown}{after}\n", at + begin);
            let fits = rows.len() + row.len() <= most || count == 0;
            if !fits || count == RECALL_MATCHES {
                more = "; there are more: use a longer pattern";
                break 'lines;
            }
            rows.push_str(&row);
            count += 1;
            // Skip further matches in the text that was just shown.
            seen = end;
        }
        at += line.len() + 1;
    }
    let as_read = if is_literal {
        " (as plain text: it cannot be used as a regular expression)"
    } else {
        ""
    };
    let note = match count {
        0 => format!("no line matches{as_read}"),
        1 => format!("1 match{as_read}, as line:offset: text{more}"),
        _ => format!("{count} matches{as_read}, as line:offset: text{more}"),
    };
    Ok(TextExcerpt {
        note,
        text: rows,
        is_last: false,
    })
}

/// Compiles a pattern. Returns `true` with it if it is no regular expression or takes too much memory,
/// and is searched for literally: models paste code.
fn compile(pattern: &str) -> Result<(Regex, bool), String> {
    let literal = || Regex::new(&regex::escape(pattern)).map_err(|error| error.to_string());
    Regex::new(pattern).map_or_else(|_| Ok((literal()?, true)), |regex| Ok((regex, false)))
}

/// Returns the part of a line to show around a match that begins at `hit`.
fn window(line: &str, hit: usize) -> (usize, usize) {
    if line.len() <= LINE {
        return (0, line.len());
    }
    let begin = line.floor_char_boundary(hit.saturating_sub(BEFORE));
    let end = line.floor_char_boundary(begin.saturating_add(LINE));
    (begin, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note_and_text(piece: Result<TextExcerpt, String>) -> (String, String) {
        let piece = piece.unwrap();
        (piece.note, piece.text)
    }

    fn shown(text: &str, offset: u64, limit: u64) -> (String, String) {
        note_and_text(page(text, offset, Bytes(limit)))
    }

    /// Follows the pages by their notes, as a model would.
    fn all_pages(text: &str, limit: u64) -> String {
        let mut whole = String::new();
        let mut offset = 0;
        loop {
            let (note, piece) = shown(text, offset, limit);
            whole.push_str(&piece);
            match note.split_once("next offset ") {
                Some((_, next)) => {
                    let next = next.parse().unwrap();
                    assert!(next > offset);
                    offset = next;
                }
                None => return whole,
            }
        }
    }

    #[test]
    fn a_page_says_where_it_stands() {
        let table = [
            ("hello", 0, 10, "all 5 bytes", "hello"),
            ("hello", 0, 2, "bytes 0-2 of 5; next offset 2", "he"),
            ("hello", 2, 10, "bytes 2-5 of 5: to its end", "llo"),
            ("hello", 5, 10, "bytes 5-5 of 5: to its end", ""),
            ("", 0, 10, "all 0 bytes", ""),
            ("0", 0, 10, "all 1 bytes", "0"),
            ("é🦀", 1, 3, "bytes 0-2 of 6; next offset 2", "é"),
            ("🦀🦀", 0, 1, "bytes 0-4 of 8; next offset 4", "🦀"),
            ("🦀🦀", 5, 0, "bytes 4-8 of 8: to its end", "🦀"),
        ];
        for (text, offset, limit, note, piece) in table {
            let is = shown(text, offset, limit);
            assert_eq!(
                is,
                (note.to_owned(), piece.to_owned()),
                "{text} {offset} {limit}"
            );
        }
        let error = page("hello", 6, Bytes(1)).unwrap_err().to_string();
        assert_eq!(error, "offset 6 is past its end: it has 5 bytes");
        assert!(page("", u64::MAX, Bytes(1)).is_err());
    }

    #[test]
    fn two_megabytes_come_back_page_by_page() {
        let line = "0123456789 é文🦀 \u{0}\r\n";
        let text = line.repeat((2 << 20) / line.len() + 1);
        for limit in [7_999, 8_000, 32_000] {
            assert_eq!(all_pages(&text, limit), text);
        }
    }

    proptest! {
        #[test]
        fn pages_of_any_text_are_the_text(text in ".{0,80}", limit in 0_u64..20) {
            prop_assert_eq!(all_pages(&text, limit), text);
        }

        #[test]
        fn no_pattern_breaks_it(text in ".{0,80}", pattern in ".{0,20}") {
            let _ = matches(&text, &pattern, Bytes(100));
        }
    }

    fn grep(text: &str, pattern: &str, limit: u64) -> (String, String) {
        note_and_text(matches(text, pattern, Bytes(limit)))
    }

    #[test]
    fn matching_lines_have_their_number_and_offset() {
        let text = "one\ntwo 22\nthree\r\ntwo 2";
        let (note, found) = grep(text, "two \\d+$", 1_000);
        assert_eq!(note, "2 matches, as line:offset: text");
        assert_eq!(found, "2:4: two 22\n4:18: two 2\n");
        let (note, found) = grep(text, "three", 1_000);
        assert_eq!(note, "1 match, as line:offset: text");
        assert_eq!(found, "3:11: three\n");
        assert_eq!(grep(text, "four", 1_000).0, "no line matches");
        let (note, found) = grep("f(x) + g[", "g[", 1_000);
        assert!(note.contains("as plain text"), "{note}");
        assert_eq!(found, "1:0: f(x) + g[\n");
    }

    #[test]
    fn more_matches_than_fit_are_said() {
        let text: String = (0..1_000).map(|n| format!("line {n:04}\n")).collect();
        let (note, found) = grep(&text, "line", 500);
        assert!(
            found.len() <= 500 && found.starts_with("1:0: line 0000\n"),
            "{found}"
        );
        assert!(note.contains("there are more"), "{note}");
        let (note, found) = grep(&text, "line", 1_000_000);
        assert_eq!(found.lines().count(), RECALL_MATCHES);
        assert!(note.contains("there are more"), "{note}");
    }

    #[test]
    fn a_giant_line_is_shown_around_each_match() {
        let filler = "é".repeat(50_000);
        let text = format!("{filler}needle{filler}needle");
        let (note, found) = grep(&text, "needle", 8_000);
        assert_eq!(note, "2 matches, as line:offset: text");
        assert!(found.len() < 1_000);
        assert_eq!(found.matches("needle").count(), 2);
    }

    #[test]
    fn a_pattern_that_would_eat_memory_is_plain_text() {
        let pattern = "(\\w{1000}){1000}";
        let (note, found) = grep(&format!("1\n{pattern}"), pattern, 100);
        assert!(note.starts_with("1 match (as plain text: "), "{note}");
        assert_eq!(found, format!("2:2: {pattern}\n"));
    }
}
