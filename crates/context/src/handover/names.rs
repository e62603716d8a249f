//! Names in texts: identifiers, hashes, numbers of issues, ports.

use foldhash::HashMap;

use super::calls::is_in;
use super::sentences::clip;

/// The length up to which a line is read, in bytes: longer lines are repetitive or not text.
const LINE_MAX: usize = 4_000;
/// The length up to which a shown file is read, in bytes.
const SEEN_MAX: usize = 16_000;
/// The maximum length of a name; longer runs are base64, for example.
const WORD_MAX: usize = 64;
/// The minimum and maximum length of a name in the result of a call, in bytes.
const NAME_MIN: usize = 3;
const PATH_MAX: usize = 120;
/// The maximum length of a line with a made name, in bytes.
const MADE_MAX: usize = 90;
/// The minimum length of a hash, in digits.
const HASH_MIN: usize = 7;

/// A name that the agent has read or written.
#[derive(Debug, Clone, Copy)]
struct Name {
    /// The position in the transcript of the last mention by the agent, or of the result that first
    /// showed the name.
    last: usize,
    /// The number of the file in which the name was last seen.
    file: usize,
}

/// The names in files that the agent has read or changed.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, Name>);

impl Names {
    /// Records the names that a tool has shown from a file.
    pub(crate) fn seen(&mut self, text: &str, at: usize, file: usize) {
        each_identifier(clip(text, SEEN_MAX), &mut |word| {
            if !self.0.contains_key(word) {
                self.0.insert(word.to_owned(), Name { last: at, file });
            }
        });
    }

    /// Records the names in the text of a call for a file.
    pub(crate) fn read(&mut self, text: &str, at: usize, file: usize) {
        self.seen(text, at, file);
        self.mention(text, at);
        each_identifier(text, &mut |word| {
            if let Some(name) = self.0.get_mut(word) {
                name.file = file;
            }
        });
    }

    /// Records that the agent mentioned names that it knows from a file.
    pub(crate) fn mention(&mut self, text: &str, at: usize) {
        each_identifier(text, &mut |word| {
            if let Some(name) = self.0.get_mut(word) {
                name.last = at;
            }
        });
    }

    /// Returns the names: the position of the last use, the name, and the number of its file.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &str, usize)> {
        let names = self.0.iter();
        names.map(|(word, name)| (name.last, word.as_str(), name.file))
    }
}

/// Returns `true` for characters that may stand in a name or a path.
fn is_of_run(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-')
}

/// Calls `tell` with every identifier of a text, in order: `snake_case`, `camelCase`, and hashes.
fn each_identifier(text: &str, tell: &mut dyn FnMut(&str)) {
    for line in text.lines() {
        let words = clip(line, LINE_MAX).split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.len() >= NAME_MIN && word.len() <= WORD_MAX) {
            if is_identifier(word) || is_hash(word) {
                tell(word);
            }
        }
    }
}

/// Calls `tell` with every name in the result of a call, in order: identifiers, hashes, paths, file
/// names, and numbers beside a sign (`a.rs:120`, `#412`, `port=8431`), not those of columns.
pub(crate) fn each_of_result(text: &str, tell: &mut dyn FnMut(&str)) {
    for line in clip(text, SEEN_MAX).lines() {
        let mut before = None;
        for piece in clip(line, LINE_MAX).split_inclusive(|c: char| !is_of_run(c)) {
            let word = piece.trim_end_matches(|c: char| !is_of_run(c));
            let belongs = before.is_some_and(|c: char| !c.is_whitespace())
                || !piece.ends_with(char::is_whitespace);
            before = piece.chars().next_back();
            let word = word.trim_matches(['.', '-']);
            let bytes = word.as_bytes();
            let is_number = belongs && bytes.iter().all(u8::is_ascii_digit);
            let is_path = bytes.iter().filter(|b| **b == b'/').count() >= 2
                && bytes.iter().any(u8::is_ascii_alphabetic);
            let is_name =
                is_number || is_path || has_extension(word) || is_identifier(word) || is_hash(word);
            if (NAME_MIN..=PATH_MAX).contains(&word.len()) && is_name {
                tell(word);
            }
        }
    }
}

fn is_identifier(word: &str) -> bool {
    let bytes = word.as_bytes();
    let is_snake = word.trim_matches('_').contains('_');
    let hump =
        |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let is_word = bytes.first().is_some_and(|first| !first.is_ascii_digit());
    let letters = bytes.iter().filter(|b| b.is_ascii_lowercase()).count();
    is_word && letters >= 2 && (is_snake || bytes.windows(2).any(hump))
}

/// Returns `true` for the digits of a commit or an id.
fn is_hash(word: &str) -> bool {
    let is_hex = |b: &u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
    let bytes = word.as_bytes();
    word.len() >= HASH_MIN
        && bytes.iter().all(is_hex)
        && bytes.iter().any(u8::is_ascii_digit)
        && bytes.iter().any(u8::is_ascii_alphabetic)
}

/// Returns the lines of a result with hashes, addresses and numbers that are not in the call: what
/// it made or found.
pub(crate) fn made<'t>(result: &'t str, call: &str) -> Vec<&'t str> {
    let is_made = |line: &&str| {
        let mut words = line.split(|c: char| !is_of_run(c) && c != '#' && c != ':');
        words.any(|word| {
            let word = word.trim_end_matches(['.', ':']);
            is_made_name(word) && !call.contains(word)
        })
    };
    let lines = result.lines().map(str::trim);
    let lines = lines.filter(|line| line.len() <= MADE_MAX);
    lines.filter(is_made).collect()
}

/// Returns `true` for a hash, a number of an issue (`#12`, `/pull/12`), or a port (`host:8431`).
fn is_made_name(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let issue = word.strip_prefix('#').is_some_and(is_number);
    let page = word
        .rsplit_once('/')
        .is_some_and(|(page, number)| is_number(number) && page.contains('/'));
    let is_port = |(at, _): (usize, &str)| {
        let (host, behind) = word.split_at(at);
        let behind = behind.trim_start_matches(':');
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let is_end = behind
            .get(digits..)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        (4..=5).contains(&digits) && is_end && !has_extension(host)
    };
    let port = word.match_indices(':').any(is_port);
    issue || page || port || is_hash(word)
}

/// Checks whether a name ends with a known file extension.
pub(crate) fn has_extension(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && is_in("extensions", extension))
}
