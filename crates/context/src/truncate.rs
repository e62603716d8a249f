//! Shortens texts: head and tail are kept, and a [`Marker`] between them says exactly how much is
//! missing. All text is shortened here. Stages decide which texts are shortened, and how far.
//!
//! Guarantees of every function here, for any text:
//! - a result is within the given bound, and smaller than the text. If that is impossible, there is
//!   no result, and the text must be kept unchanged;
//! - a result is valid UTF-8, and JSON if the text was JSON and the bound allows it;
//! - a text within the bound is unchanged, so shortening is idempotent;
//! - a marker of an earlier cut is merged, so N is the number of bytes missing from the *original*.

mod json;
mod marker;

use crate::counter::TokenCounter;
use crate::tokens::{Bytes, Tokens};

pub use marker::{Marker, NOTE_MAX};

use marker::{Hole, find_central};

/// Minimum size of head and of tail beside a marker: a few words. Longer than any escape sequence
/// of a JSON string (`\ud83e\udd80`).
pub const MIN_SIDE: Bytes = Bytes(16);
/// A cut is moved to a line end that is within this fraction of its side.
const NEAR: usize = 8;
/// How often a bound in tokens is approximated in proportion before it is halved. Each try counts
/// its result, so this limits the work to a few times the bound.
const TRIES: u32 = 8;
/// A result that fills this percentage of a bound in tokens is good enough.
const FULL: u64 = 92;

/// Returns the longest prefix of `text` with at most `max` bytes that ends between two characters.
/// It keeps no tail and has no marker, for bounds that must hold in any case.
#[must_use]
pub fn clip(text: &str, max: Bytes) -> &str {
    let max = usize::try_from(max.0).unwrap_or(usize::MAX);
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// Shortens with [`Marker::head_tail`] and the plain marker.
#[must_use]
pub fn head_tail(text: &str, max: Bytes) -> Option<String> {
    Marker::default().head_tail(text, max)
}

/// Shortens with [`Marker::head_tail_tokens`] and the plain marker.
#[must_use]
pub fn head_tail_tokens(text: &str, max: Tokens, counter: &dyn TokenCounter) -> Option<String> {
    Marker::default().head_tail_tokens(text, max, counter)
}

/// Shortens with [`Marker::shorten`] and the plain marker.
#[must_use]
pub fn shorten(text: &str, max: Tokens, counter: &dyn TokenCounter) -> Option<String> {
    Marker::default().shorten(text, max, counter)
}

/// Shortens with [`Marker::shorten_bytes`] and the plain marker.
#[must_use]
pub fn shorten_bytes(text: &str, max: Bytes) -> Option<String> {
    Marker::default().shorten_bytes(text, max)
}

impl Marker {
    /// Returns head and tail of `text` around this marker, at most `max` bytes in all. JSON is
    /// treated as plain lines.
    ///
    /// Returns `None` if the text is within the bound already, or if `max` has no space for the
    /// marker and [`MIN_SIDE`] bytes on each side of it.
    #[must_use]
    pub fn head_tail(&self, text: &str, max: Bytes) -> Option<String> {
        cut(text, usize::try_from(max.0).ok()?, self, Script::Lines)
    }

    /// Shortens like [`Marker::head_tail`], to at most `max` tokens as counted by `counter`.
    #[must_use]
    pub fn head_tail_tokens(
        &self,
        text: &str,
        max: Tokens,
        counter: &dyn TokenCounter,
    ) -> Option<String> {
        let total = counter.text(text);
        approach(text, total, max, counter, |bytes| {
            cut(text, bytes, self, Script::Lines)
        })
    }

    /// Shortens `text` to at most `max` tokens as counted by `counter`.
    ///
    /// A JSON list or object remains one: long strings in it are shortened to head and tail, and
    /// whole items are removed from its middle. If that is impossible, and for any other text,
    /// works like [`Marker::head_tail_tokens`]. Returns `None` if the text is small enough already,
    /// or cannot be shortened enough.
    #[must_use]
    pub fn shorten(&self, text: &str, max: Tokens, counter: &dyn TokenCounter) -> Option<String> {
        let total = counter.text(text);
        let json = json::Document::read(text).and_then(|document| {
            approach(text, total, max, counter, |bytes| {
                document.shrink(bytes, self)
            })
        });
        json.or_else(|| {
            approach(text, total, max, counter, |bytes| {
                cut(text, bytes, self, Script::Lines)
            })
        })
    }

    /// Shortens like [`Marker::shorten`], to at most `max` bytes.
    #[must_use]
    pub fn shorten_bytes(&self, text: &str, max: Bytes) -> Option<String> {
        let bytes = usize::try_from(max.0).ok()?;
        if text.len() <= bytes {
            return None;
        }
        json::Document::read(text)
            .and_then(|document| document.shrink(bytes, self))
            .or_else(|| self.head_tail(text, max))
    }
}

/// The syntax of a text. It determines the possible positions of cuts and the text beside the
/// marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Lines of plain text.
    Lines,
    /// The inside of a JSON string, with its escapes.
    JsonString,
}

impl Script {
    fn separator(self) -> &'static str {
        match self {
            Self::Lines => "\n",
            Self::JsonString => "\\n",
        }
    }

    /// Returns the end of a head of at most `max` bytes.
    fn head_end(self, text: &str, max: usize) -> usize {
        match self {
            Self::Lines => {
                let end = text.floor_char_boundary(max);
                let near = text.floor_char_boundary(end - end / NEAR);
                let line = text.get(near..end).and_then(|near| near.rfind('\n'));
                line.map_or(end, |line| near + line)
            }
            Self::JsonString => {
                let (mut end, mut line) = (0, None);
                for unit in units(text).take_while(|unit| unit.end <= max) {
                    end = unit.end;
                    if unit.start >= max - max / NEAR && text.get(unit.clone()) == Some("\\n") {
                        line = Some(unit.start);
                    }
                }
                line.unwrap_or(end)
            }
        }
    }

    /// Returns the beginning of a tail of at most `max` bytes.
    fn tail_start(self, text: &str, max: usize) -> usize {
        let earliest = text.len().saturating_sub(max);
        match self {
            Self::Lines => {
                let start = text.ceil_char_boundary(earliest);
                let near = text.ceil_char_boundary(start + (text.len() - start) / NEAR);
                let line = text.get(start..near).and_then(|near| near.find('\n'));
                line.map_or(start, |line| start + line + 1)
            }
            Self::JsonString => {
                let mut tail = units(text)
                    .skip_while(|unit| unit.start < earliest)
                    .peekable();
                let start = tail.peek().map_or(text.len(), |unit| unit.start);
                tail.take_while(|unit| unit.end <= earliest + max / NEAR)
                    .find(|unit| text.get(unit.clone()) == Some("\\n"))
                    .map_or(start, |unit| unit.end)
            }
        }
    }
}

/// Returns head, marker and tail. Both sides get half of the available bytes. A side that an
/// earlier cut left shorter is unchanged, so head and tail remain about equal and the next cut
/// recognises the marker.
fn cut(text: &str, max: usize, marker: &Marker, script: Script) -> Option<String> {
    if text.len() <= max {
        return None;
    }
    let separator = script.separator();
    let earlier = find_central(text, separator);
    let (front, back, hidden) = match &earlier {
        Some((range, hole)) => (text.get(..range.start)?, text.get(range.end..)?, hole.bytes),
        None => (text, text, 0),
    };
    let shown = text.len() - earlier.as_ref().map_or(0, |(range, _)| range.len());

    // The number is only known after the cut; its largest value has the most digits.
    let most = Hole {
        bytes: hidden + shown as u64,
        items: None,
    };
    let reserve = marker_len(marker, most, script) + 2 * separator.len();
    let side = max.checked_sub(reserve)? / 2;
    if (side as u64) < MIN_SIDE.0 {
        return None;
    }
    let head = if front.len() <= side {
        front
    } else {
        front.get(..script.head_end(front, side))?
    };
    let tail = if back.len() <= side {
        back
    } else {
        back.get(script.tail_start(back, side)..)?
    };
    let hole = Hole {
        bytes: hidden + (shown - head.len() - tail.len()) as u64,
        items: None,
    };
    let words = script_words(marker, hole, script);
    Some([head, separator, &words, separator, tail].concat())
}

fn script_words(marker: &Marker, hole: Hole, script: Script) -> String {
    let words = marker.words(hole);
    match script {
        Script::Lines => words,
        Script::JsonString => json::escaped(&words),
    }
}

fn marker_len(marker: &Marker, hole: Hole, script: Script) -> usize {
    script_words(marker, hole, script).len()
}

/// Brings `text`, which has `total` tokens, within `max` tokens: cuts it to a number of bytes in
/// proportion, counts the result, and corrects the proportion.
fn approach(
    text: &str,
    total: Tokens,
    max: Tokens,
    counter: &dyn TokenCounter,
    cut: impl Fn(usize) -> Option<String>,
) -> Option<String> {
    if total <= max {
        return None;
    }
    let scaled = |bytes: usize, by: Tokens, of: Tokens| {
        let scaled = bytes as u128 * u128::from(by.0) / u128::from(of.0.max(1));
        usize::try_from(scaled).unwrap_or(usize::MAX)
    };
    let mut best = None;
    let (mut fits, mut exceeds) = (0, text.len());
    let mut bytes = scaled(text.len(), max, total);
    let mut tries = 0;
    while fits < bytes && bytes < exceeds {
        let Some(short) = cut(bytes) else { break };
        let weight = counter.text(&short);
        tries += 1;
        if weight <= max {
            let full = u128::from(weight.0) * 100 >= u128::from(max.0) * u128::from(FULL);
            // The next try is based on the actual result, which may be smaller than requested.
            let step = scaled(short.len(), max, weight);
            best = Some(short);
            fits = bytes;
            if full || tries >= TRIES {
                break;
            }
            bytes = step.clamp(fits + 1, fits + 1 + (exceeds - fits) / 2);
        } else {
            exceeds = bytes;
            let step = match tries < TRIES {
                // Slightly below the proportion, or the bound would be approached from above.
                true => scaled(bytes, max, weight) * 98 / 100,
                false if best.is_some() => break,
                false => bytes / 2,
            };
            bytes = step.max(fits + (exceeds - fits) / 8);
        }
    }
    best
}

/// Returns the characters of the inside of a JSON string. An escape (or a surrogate pair) counts as
/// one.
fn units(raw: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let start = raw.len() - rest.len();
        let first = rest.chars().next()?;
        let len = if first != '\\' {
            first.len_utf8()
        } else if !rest.starts_with("\\u") {
            2
        } else if is_high_surrogate(rest) && rest.get(6..8) == Some("\\u") {
            12
        } else {
            6
        };
        rest = rest.get(len..).unwrap_or("");
        Some(start..start + len)
    })
}

fn is_high_surrogate(escape: &str) -> bool {
    escape
        .get(2..6)
        .and_then(|digits| u16::from_str_radix(digits, 16).ok())
        .is_some_and(|unit| (0xD800..0xDC00).contains(&unit))
}

#[cfg(test)]
#[path = "truncate/tests.rs"]
mod tests;
