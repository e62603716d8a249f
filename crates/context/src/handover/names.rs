//! Names in texts: identifiers, hashes, paths, file names, and numbers beside a sign.

use super::words::is_in;

/// The minimum and maximum length of a name, in bytes.
const NAME_MIN: usize = 3;
const NAME_MAX: usize = 120;
/// The minimum length of a hash, in digits.
const HASH_MIN: usize = 7;

/// Calls `tell` with every name in a text, in order, until it returns `false`: `snake_case`,
/// `camelCase`, hashes, paths, file names, and numbers beside a sign (`#412`, `port=8431`), but not those
/// of lines (`a.rs:120`).
pub fn each_name<'t>(text: &'t str, tell: &mut dyn FnMut(&'t str) -> bool) {
    for line in text.lines() {
        // At the beginning of a line and behind a file, a number is that of a line.
        let (mut sign, mut is_place) = (' ', true);
        let pieces = line.split_inclusive(|c: char| !is_of_run(c));
        let mut pieces = pieces.peekable();
        while let Some(piece) = pieces.next() {
            let next = pieces.peek().copied().unwrap_or_default();
            // A key in JSON is no name.
            let is_key = piece.ends_with('"') && next.starts_with(':');
            let run = piece.trim_end_matches(|c: char| !is_of_run(c));
            // In a JSON text, `\nfoo` means `foo` and `\u003efoo` means `>foo`. `</foo>` is no path.
            let is_code = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
            let escape = match run.as_bytes() {
                [b'u', code @ ..] if sign == '\\' && code.get(..4).is_some_and(is_code) => 5,
                _ => usize::from(sign == '\\' || sign == '<' && run.starts_with('/')),
            };
            let run = run.get(escape..).unwrap_or_default();
            let run = run.trim_start_matches("//").trim_matches(['.', '-']);
            let is_beside = !sign.is_whitespace() || !piece.ends_with(char::is_whitespace);
            let is_of_line = is_place && !piece.ends_with(',');
            let is_number = is_beside && !is_of_line && run.bytes().all(|b| b.is_ascii_digit());
            let is_id = is_hash(run) || is_issue(run);
            let is_whole = is_number || is_id || run.contains('/') || has_extension(run);
            let mut words = run.split(|c| !is_whole && (c == '.' || c == '-'));
            let is_told =
                |word: &str| !is_key && is_of_size(word) && (is_number || is_id || is_name(word));
            if !words.all(|word| !is_told(word) || tell(word)) {
                return;
            }
            sign = piece.chars().next_back().unwrap_or(' ');
            is_place = is_place && run.is_empty() || has_extension(run) && sign == ':';
        }
    }
}

/// Returns `true` for characters that may stand in a name or a path.
fn is_of_run(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-')
}

fn is_of_size(word: &str) -> bool {
    (NAME_MIN..=NAME_MAX).contains(&word.len())
}

fn is_name(word: &str) -> bool {
    let is_path = word.bytes().filter(|b| *b == b'/').count() >= 2
        && word.bytes().any(|b| b.is_ascii_alphabetic());
    is_path || has_extension(word) || is_identifier(word) || is_hash(word)
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

/// Returns `true` for the number of an issue with its project (`QUAY-412`).
fn is_issue(word: &str) -> bool {
    let is_of_key = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-';
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    word.contains('-')
        && word.bytes().all(is_of_key)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
}

/// Returns `true` for the digits of a commit or an id, and for a UUID.
fn is_hash(word: &str) -> bool {
    let is_hex = |b: u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f' | b'-');
    word.len() >= HASH_MIN
        && word.bytes().all(is_hex)
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Checks whether a name ends with a known file extension.
pub(crate) fn has_extension(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && is_in("extensions", extension))
}
