//! Patterns with placeholders for numbers, to find in error texts. They only contain literals, numbers
//! and gaps, which is sufficient for providers' sentences.

/// The maximum length of a gap in bytes: one sentence or the next.
const GAP: usize = 300;

/// The numbers found in a text, with the names of their placeholders. Of a name that occurs twice, the last
/// one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MatchedNumbers(Vec<(&'static str, u64)>);

impl MatchedNumbers {
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        let mut found = self.0.iter().rev().filter(|(of, _)| *of == name);
        found.next().map(|(_, value)| *value)
    }
}

/// Finds a pattern in a lower-case text. `{name}` is a number, `*` a gap of at most [`GAP`] bytes, and
/// everything else is literal. A pattern begins with a literal.
pub(super) fn find(pattern: &'static str, text: &str) -> Option<MatchedNumbers> {
    let mut segments = pattern.split('*');
    let first = segments.next()?;
    let literal = first.split('{').next().filter(|begin| !begin.is_empty())?;
    text.match_indices(literal).find_map(|(at, _)| {
        let mut numbers = MatchedNumbers::default();
        let mut rest = behind(first, text.get(at..)?, &mut numbers)?;
        for segment in segments.clone() {
            // The first place counts, even if the next segment is not found behind it.
            rest = (0..=GAP).find_map(|skip| behind(segment, rest.get(skip..)?, &mut numbers))?;
        }
        Some(numbers)
    })
}

/// Returns the text behind a segment, if it begins with one.
fn behind<'t>(
    segment: &'static str,
    text: &'t str,
    numbers: &mut MatchedNumbers,
) -> Option<&'t str> {
    let Some((literal, hole)) = segment.split_once('{') else {
        return text.strip_prefix(segment);
    };
    let (name, segment) = hole.split_once('}')?;
    let text = text.strip_prefix(literal)?;
    let (value, length) = number(text)?;
    numbers.0.push((name, value));
    behind(segment, text.get(length..)?, numbers)
}

/// Returns the number at the beginning of a text, with `,` between groups of digits, and its length.
fn number(text: &str) -> Option<(u64, usize)> {
    let mut value: u64 = 0;
    let mut length = 0;
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        let next_is_digit = bytes.peek().is_some_and(|(_, next)| next.is_ascii_digit());
        match byte {
            b'0'..=b'9' => {
                value = value
                    .saturating_mul(10)
                    .saturating_add(u64::from(byte - b'0'));
                length = at + 1;
            }
            b',' if length > 0 && next_is_digit => {}
            _ => break,
        }
    }
    (length > 0).then_some((value, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_take_numbers_and_gaps_take_anything() {
        let numbers = find(
            "is {window} tokens*{used} of text*{output} in the output",
            "max is 131,072 tokens. you asked for 141607 (10535 of text input, 9 in the output)",
        )
        .unwrap();
        assert_eq!(numbers.get("window"), Some(131_072));
        assert_eq!(numbers.get("used"), Some(10535));
        assert_eq!(numbers.get("output"), Some(9));
    }

    #[test]
    fn a_pattern_is_whole_or_not_there() {
        assert_eq!(find("a {used} b", "a x b"), None);
        assert_eq!(find("a*b", &format!("a{}b", " ".repeat(GAP + 1))), None);
        assert!(find("a*b", &format!("a{}b", " ".repeat(GAP))).is_some());
        assert!(find("a*b", "ä a🦀b").is_some());
    }

    #[test]
    fn no_text_makes_it_slow() {
        let text = "a1".repeat(30_000);
        assert_eq!(find("a*{used}*{used}*{used}*z", &text), None);
    }
}
