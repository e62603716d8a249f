//! Splits texts into sentences, and formats texts as one line.

use std::borrow::Cow;
use std::ops::Range;

/// The length above which a sentence is cut at blanks, because long lines may have no full stops.
const PIECE_MAX: usize = 600;

/// Returns the ranges of the sentences of `text`. Together they cover the text: each includes the
/// blanks and line ends after it.
///
/// A sentence ends at a line end, after `.`, `!` and `?` before whitespace, and after their CJK
/// forms.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
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
        // Blanks after a full stop belong to the sentence, so that joined sentences give the text
        // itself.
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

/// Returns `text` on one line of at most `max` bytes. Whitespace and control characters become
/// single blanks, terminal colours are removed, and `…` marks a cut end.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    // Text far beyond the limit does not affect the result.
    let plain = without_escapes(clip(text, 8 * max + 64));
    let near = plain.as_ref();
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
    if line.len() <= max && text.len() <= 8 * max + 64 {
        return line;
    }
    let mut cut = clip(&line, max.saturating_sub('…'.len_utf8())).to_owned();
    cut.push('…');
    cut
}

/// Returns the beginning of `text`, at most `max` bytes.
pub(crate) fn clip(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// Returns the end of `text`, at most `max` bytes.
pub(crate) fn clip_start(text: &str, max: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max));
    text.get(start..).unwrap_or(text)
}

/// Returns `text` without the escape sequences of a terminal.
pub(crate) fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = match escape.strip_prefix('[') {
            // Parameters, then one letter.
            Some(sequence) => {
                let letter = sequence.find(|c: char| c.is_ascii_alphabetic());
                letter
                    .and_then(|at| sequence.get(at + 1..))
                    .unwrap_or_default()
            }
            None => escape,
        };
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}
