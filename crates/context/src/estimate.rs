//! [`Estimate`]: a counter that needs no vocabulary.
//!
//! A text is read as runs of one kind of character. The size of a run depends on its kind and its
//! length, as measured with the vocabulary o200k: within a tenth for prose, code and JSON, and
//! within a fifth for other scripts.

use crate::counter::TokenCounter;
use crate::tokens::Tokens;

/// The minimum length of letters and digits that may be base64 or hexadecimal, in characters.
const RANDOM_MIN: usize = 24;

/// A script-aware estimate: Latin words by length, digits, signs, blanks, Chinese, Japanese and
/// Korean by character, other alphabets by word, emoji, and long random runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Estimate;

/// A kind of character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    Blank,
    LineEnd,
    Sign,
    /// Chinese, Japanese and Korean, whose words are not separated.
    Cjk,
    /// Letters of other alphabets.
    Other,
    Emoji,
}

impl TokenCounter for Estimate {
    fn name(&self) -> &str {
        "estimate"
    }

    fn text(&self, text: &str) -> Tokens {
        let mut hundredths = 0;
        let mut at = 0;
        // The end of the letters and digits that are known not to be random.
        let mut plain_to = 0;
        while let Some((first, rest)) = first_of(text, at) {
            if at >= plain_to {
                let (len, size) = random(rest);
                if let Some(size) = size {
                    (hundredths, at) = (hundredths + size, at + len);
                    continue;
                }
                plain_to = at + len;
            }
            let kind = Kind::of(first);
            let len = rest.find(|c| Kind::of(c) != kind).unwrap_or(rest.len());
            let (run, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
            hundredths += kind.hundredths(run, after.chars().next());
            at += len;
        }
        Tokens(hundredths.div_ceil(100).max(u64::from(!text.is_empty())))
    }
}

fn first_of(text: &str, at: usize) -> Option<(char, &str)> {
    let rest = text.get(at..)?;
    Some((rest.chars().next()?, rest))
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            ' ' | '\t' => Self::Blank,
            '\n' | '\r' => Self::LineEnd,
            '\0'..='\u{7F}' => Self::Sign,
            '\u{3000}'..='\u{30FF}'
            | '\u{3400}'..='\u{9FFF}'
            | '\u{AC00}'..='\u{D7A3}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{FF00}'..='\u{FFEF}' => Self::Cjk,
            '\u{2000}'..='\u{2BFF}' | '\u{FE00}'..='\u{FE0F}' | '\u{10000}'.. => Self::Emoji,
            _ => Self::Other,
        }
    }

    /// Returns the size of a run of this kind before the character `next`, in hundredths of a token.
    fn hundredths(self, run: &str, next: Option<char>) -> u64 {
        let chars = run.chars().count() as u64;
        let is_before = |kind| next.is_some_and(|next| Self::of(next) == kind);
        match self {
            Self::Letter => words(run),
            Self::Digit => 100 * chars.div_ceil(3),
            // A single blank belongs to the word after it, but not to a number.
            Self::Blank if chars == 1 && !is_before(Self::Digit) => 0,
            Self::Blank => 99 + chars,
            Self::LineEnd => 20 + 5 * chars,
            // A single sign often belongs to the word after it.
            Self::Sign if chars == 1 && is_before(Self::Letter) => 55,
            Self::Sign if run.chars().all(|c| run.starts_with(c)) => 92 + chars,
            Self::Sign => 55 + 25 * chars,
            Self::Cjk => 40 + 73 * chars,
            Self::Other => 50 + 24 * chars,
            Self::Emoji => 185 * chars,
        }
    }
}

/// Returns the size of a run of letters. A capital after a small letter begins a word. Capitals
/// after a capital count twice, since few words of capitals are in a vocabulary.
fn words(run: &str) -> u64 {
    let word = |weight: u64| 100 + 10 * weight.saturating_sub(6);
    let (mut sum, mut weight, mut before) = (0, 0, 'A');
    for c in run.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            sum += word(weight);
            weight = 0;
        }
        let is_capital = weight > 1 && c.is_ascii_uppercase();
        weight += if is_capital { 2 } else { 1 };
        before = c;
    }
    sum + word(weight)
}

/// Returns the length of the base64 characters at the beginning of a text, at least 1, and their
/// size if they are random: every third character changes between capitals, small letters and
/// digits.
fn random(text: &str) -> (usize, Option<u64>) {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let len = text.bytes().take_while(is_part).count();
    let run = text.as_bytes().get(..len).unwrap_or_default();
    if len < RANDOM_MIN {
        return (len.max(1), None);
    }
    let class = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let pairs = run.iter().zip(run.iter().skip(1));
    let changes = pairs.filter(|(one, other)| class(**one) != class(**other));
    let is_hex = !run.iter().any(u8::is_ascii_uppercase);
    let size = len as u64 * if is_hex { 57 } else { 68 };
    (len, (changes.count() * 3 >= len).then_some(size))
}

#[cfg(test)]
#[path = "estimate/tests.rs"]
mod tests;
