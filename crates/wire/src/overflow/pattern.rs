//! Patterns with placeholders for numbers, to find in error texts. They only contain literals, numbers
//! and gaps, which is sufficient for providers' sentences.

/// The maximum length of a gap in bytes: one sentence or the next.
const GAP: usize = 300;
/// The maximum number of positions that one search tries, to bound its time.
const MAX_STEPS: usize = 20_000;

/// The numbers found in a text, by the names of their placeholders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MatchedNumbers {
    pub(super) used: Option<u64>,
    pub(super) tool: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) total: Option<u64>,
    pub(super) window: Option<u64>,
    pub(super) excess: Option<u64>,
    pub(super) limit: Option<u64>,
    pub(super) requested: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum PatternPiece<'p> {
    Literal(&'p str),
    Number(&'p str),
    Gap,
}

/// Finds a pattern in a lower-case text. `{name}` is a number, `*` a gap of at most [`GAP`] bytes, and
/// everything else is literal.
pub(super) fn find(pattern: &str, text: &str) -> Option<MatchedNumbers> {
    let pieces = pieces(pattern);
    let mut search = Search {
        text,
        steps: MAX_STEPS,
    };
    let mut from = 0;
    // A leading number or gap has no anchor; patterns begin with a literal.
    let Some(PatternPiece::Literal(first)) = pieces.first().copied() else {
        return None;
    };
    while let Some(at) = text.get(from..)?.find(first) {
        let mut numbers = MatchedNumbers::default();
        if search.rest(&pieces, from + at, &mut numbers) {
            return Some(numbers);
        }
        from = from + at + first.chars().next().map_or(1, char::len_utf8);
    }
    None
}

struct Search<'t> {
    text: &'t str,
    steps: usize,
}

impl Search<'_> {
    /// Returns `true` if the pieces match at this position.
    fn rest(
        &mut self,
        pieces: &[PatternPiece<'_>],
        at: usize,
        numbers: &mut MatchedNumbers,
    ) -> bool {
        let Some((piece, rest)) = pieces.split_first() else {
            return true;
        };
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            return false;
        }
        let Some(here) = self.text.get(at..) else {
            return false;
        };
        match piece {
            PatternPiece::Literal(literal) => {
                here.starts_with(literal) && self.rest(rest, at + literal.len(), numbers)
            }
            PatternPiece::Number(name) => match number(here) {
                Some((value, length)) => {
                    numbers.set(name, value);
                    self.rest(rest, at + length, numbers)
                }
                None => false,
            },
            PatternPiece::Gap => self.gap(rest, at, numbers),
        }
    }

    fn gap(&mut self, rest: &[PatternPiece<'_>], at: usize, numbers: &mut MatchedNumbers) -> bool {
        for skip in 0..=GAP {
            let Some(here) = self.text.get(at + skip..) else {
                // Inside a character, or beyond the end.
                if at + skip > self.text.len() {
                    return false;
                }
                continue;
            };
            let plausible = match rest.first() {
                Some(PatternPiece::Literal(literal)) => here.starts_with(literal),
                _ => true,
            };
            let mut trial = *numbers;
            if plausible && self.rest(rest, at + skip, &mut trial) {
                *numbers = trial;
                return true;
            }
        }
        false
    }
}

impl MatchedNumbers {
    fn set(&mut self, name: &str, value: u64) {
        let hole = match name {
            "used" => &mut self.used,
            "tool" => &mut self.tool,
            "output" => &mut self.output,
            "total" => &mut self.total,
            "window" => &mut self.window,
            "excess" => &mut self.excess,
            "limit" => &mut self.limit,
            "requested" => &mut self.requested,
            _ => return,
        };
        *hole = Some(value);
    }
}

fn pieces(pattern: &str) -> Vec<PatternPiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(['{', '*']) {
        let (literal, hole) = rest.split_at(at);
        if !literal.is_empty() {
            pieces.push(PatternPiece::Literal(literal));
        }
        rest = match hole.strip_prefix('{').and_then(|hole| hole.split_once('}')) {
            Some((name, after)) => {
                pieces.push(PatternPiece::Number(name));
                after
            }
            None => {
                pieces.push(PatternPiece::Gap);
                hole.get(1..).unwrap_or_default()
            }
        };
    }
    if !rest.is_empty() {
        pieces.push(PatternPiece::Literal(rest));
    }
    pieces
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
        assert_eq!(numbers.window, Some(131_072));
        assert_eq!(numbers.used, Some(10535));
        assert_eq!(numbers.output, Some(9));
    }

    #[test]
    fn a_pattern_is_whole_or_not_there() {
        assert_eq!(find("a {used} b", "a x b"), None);
        assert_eq!(find("a*b", &format!("a{}b", " ".repeat(GAP + 1))), None);
        assert!(find("a*b", &format!("a{}b", " ".repeat(GAP))).is_some());
        assert!(find("a*b", "ä a🦀b").is_some());
        assert_eq!(find("aa{used}", "aaa5").and_then(|n| n.used), Some(5));
    }

    #[test]
    fn no_text_makes_it_slow() {
        let text = "a1".repeat(30_000);
        assert_eq!(find("a*{used}*{used}*{used}*z", &text), None);
    }
}
