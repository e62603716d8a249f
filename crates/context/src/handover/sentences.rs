//! Splits texts into sentences, knows them by their phrases (`words/cues.txt`), and formats texts as
//! one line.

use std::borrow::Cow;

/// The length above which a sentence is cut at blanks, because long lines may have no full stops.
const PIECE_MAX: usize = 600;

/// Returns the sentences of `text`. Together they are the text: each includes the blanks and line
/// ends after it.
///
/// A sentence ends at a line end, after `.`, `!` and `?` between a word and whitespace, and after their
/// CJK forms.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    let mut last = ' ';
    while let Some((at, c)) = chars.next() {
        let mut end = at + c.len_utf8();
        let next = chars.peek().map(|(_, next)| *next);
        let stops = match c {
            '\n' | '。' | '！' | '？' => true,
            // `git checkout . now`
            '.' | '!' | '?' => !last.is_whitespace() && next.is_none_or(char::is_whitespace),
            _ => end - start >= PIECE_MAX && (c == ' ' || end - start >= 2 * PIECE_MAX),
        };
        last = c;
        if stops {
            while let Some((at, blank)) = chars.next_if(|(_, next)| next.is_whitespace()) {
                end = at + blank.len_utf8();
            }
            found.extend(text.get(start..end));
            start = end;
        }
    }
    found.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    found
}

/// Returns the sentences of a text without marks of lists. Headings, tables and code are left out.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    sentences(text).into_iter().filter_map(move |sentence| {
        let sentence = sentence.trim();
        is_code ^= sentence.starts_with("```");
        let is_row = sentence.starts_with(['#', '|', '<', '`', '=', '─', '│', '┌', '└', '├']);
        let words = sentence.trim_start_matches(['-', '*', '•', '>', ' ', '✅']);
        (!is_code && !is_row && !words.is_empty()).then_some(words)
    })
}

/// Returns a sentence in the form in which phrases are searched: its words in lower case, each between
/// blanks.
pub(crate) fn words_of(sentence: &str) -> String {
    let plain = sentence.to_lowercase().replace('’', "'");
    let is_end = |c: char| !(c.is_alphanumeric() || c == '\'');
    let words = plain.split(is_end).filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |words, word| words + word + " ")
}

/// Returns `true` if the line was written by a machine rather than a person: a log, a stack trace,
/// code.
pub(crate) fn is_machine(line: &str) -> bool {
    let line = line.trim();
    let is_sign = |c: &char| !c.is_alphanumeric() && !c.is_whitespace();
    let signs = line.chars().filter(is_sign).count();
    signs * 4 > line.chars().count().max(24)
        || line.starts_with("at ")
        || line.starts_with("File \"")
        || line.ends_with(['{', ';', '}', '('])
        || line.ends_with(',') && line.contains(": ")
        || line.starts_with("@@")
        || line.starts_with(['<', '{', '}', '|', '$', '+'])
}

/// Returns `text` on one line of at most `max` bytes. Whitespace and control characters become
/// single blanks, terminal colours are removed, and `…` marks a cut end.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    // Text far beyond the limit does not affect the result.
    let near = clip(text, 8 * max + 64);
    let plain = without_escapes(near);
    let words = plain.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.len() <= max && near.len() == text.len() {
        return line;
    }
    format!("{}…", clip(&line, max.saturating_sub('…'.len_utf8())))
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
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Parameters, then one letter.
        let rest = part.strip_prefix('[').map_or(part, |sequence| {
            let letter = sequence.split_once(|c: char| c.is_ascii_alphabetic());
            letter.map_or("", |(_, rest)| rest)
        });
        plain.push_str(rest);
    }
    Cow::Owned(plain)
}
