//! Cutting prose into sentences, and words on one line. Not what a sentence is worth.

use std::ops::Range;

use crate::tokens::Bytes;
use crate::truncate::clip;

/// A sentence longer than this is cut at blanks: one-line giants have no stops.
const PIECE_MAX: usize = 600;

/// Where the sentences of `text` are. Together they are all of it: each takes along the blanks and
/// line ends behind it. They end at line ends and behind `.`, `!`, `?` before whitespace, and their
/// CJK forms.
pub(super) fn pieces(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let next = chars.peek().map(|(_, next)| *next);
        let stops = match c {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            _ => end - start >= PIECE_MAX && (c == ' ' || end - start >= 2 * PIECE_MAX),
        };
        if !stops {
            continue;
        }
        // Blanks behind a stop belong to it, so that pieces side by side are the text itself.
        let mut end = end;
        while let Some((at, blank)) = chars.next_if(|(_, next)| next.is_whitespace()) {
            end = at + blank.len_utf8();
        }
        found.push(start..end);
        start = end;
    }
    if start < text.len() {
        found.push(start..text.len());
    }
    found
}

/// `text` on one line of at most `max` bytes: whitespace and control characters become single
/// blanks, and `…` stands for what is cut off its end.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    // What is far behind the bound cannot matter.
    let near = clip(text, Bytes(8 * max as u64 + 64));
    for word in near.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > max {
            break;
        }
    }
    if line.len() <= max && near.len() == text.len() {
        return line;
    }
    let mut cut = clip(&line, Bytes(max.saturating_sub('…'.len_utf8()) as u64)).to_owned();
    cut.push('…');
    cut
}

/// `text` in lower case with single blanks, to compare by.
pub(super) fn normal(text: &str) -> String {
    // `str::to_lowercase` is much quicker on ASCII than going by characters.
    let low = text.to_lowercase();
    let mut normal = String::with_capacity(low.len());
    for word in low.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.push_str(word);
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole() {
        for (text, cuts) in [
            ("", &[][..]),
            ("one", &["one"]),
            (
                "See a.rs. Then b!  Done",
                &["See a.rs. ", "Then b!  ", "Done"],
            ),
            ("a\n\n  b\n", &["a\n\n  ", "b\n"]),
            ("不要。必须！", &["不要。", "必须！"]),
        ] {
            let found: Vec<&str> = pieces(text)
                .into_iter()
                .map(|at| text.get(at).unwrap())
                .collect();
            assert_eq!(found, cuts);
        }
        let giant = "x".repeat(10_000);
        assert_eq!(pieces(&giant).len(), 9);
    }

    #[test]
    fn a_line_is_one_line_within_its_bound() {
        assert_eq!(one_line(" a\n\tb\u{7}c ", 10), "a b c");
        let cut = one_line(&"語 ".repeat(100), 20);
        assert!(cut.len() <= 20 && cut.ends_with('…'), "{cut}");
    }
}
