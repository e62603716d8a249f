//! [`replace_half_characters`]: JSON with escapes of half characters.
//!
//! JavaScript cuts a text between the two halves of a character such as an emoji, and `JSON.stringify` writes the
//! half that is left as an escape: `\ud83d`. No provider accepts it, and no message with it can be read.

use memchr::memmem;

use crate::repair::Repair;

/// The number of bytes of an escape such as `\ud83d`.
const ESCAPE: usize = 6;
const REPLACEMENT: &[u8; ESCAPE] = b"\\ufffd";

/// The escapes of half characters that were replaced in a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfCharacters {
    /// The position of the first one, in bytes.
    pub first: usize,
    /// Their number.
    pub count: usize,
}

impl HalfCharacters {
    /// Returns the repair, for a report.
    #[must_use]
    pub fn repair(self, place: String) -> Repair {
        let done = match self.count {
            1 => "replaced half a character with U+FFFD".to_owned(),
            count => format!("replaced {count} halves of characters with U+FFFD"),
        };
        Repair {
            place,
            fix: "shapes",
            done,
        }
    }
}

/// Replaces each escape of half a character with that of U+FFFD, which has the same length. Returns `None` if
/// there is none. Everything else keeps its bytes and its place.
///
/// ```
/// # use plimsoll_foreign::replace_half_characters;
/// let mut json = br#"["\ud83d\ude00 \ud83d cut"]"#.to_vec();
/// assert_eq!(replace_half_characters(&mut json).map(|halves| halves.first), Some(15));
/// assert_eq!(json, br#"["\ud83d\ude00 \ufffd cut"]"#);
/// ```
pub fn replace_half_characters(json: &mut [u8]) -> Option<HalfCharacters> {
    // Nearly all texts have no such escape, which this finds out quickly in every build.
    let is_half = |at: usize| matches!(json.get(at + 2), Some(b'd' | b'D'));
    memmem::find_iter(json, b"\\u").find(|at| is_half(*at))?;
    let mut first = None;
    let mut count = 0;
    let mut at = 0;
    while let Some(found) = json.get(at..)?.iter().position(|byte| *byte == b'\\') {
        at += found;
        at += match (escaped(json, at), escaped(json, at + ESCAPE)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE,
            (Some(0xd800..=0xdfff), _) => {
                json.get_mut(at..at + ESCAPE)?.copy_from_slice(REPLACEMENT);
                first.get_or_insert(at);
                count += 1;
                ESCAPE
            }
            // The escaped character may be a backslash.
            _ => 2,
        };
        if at >= json.len() {
            break;
        }
    }
    first.map(|first| HalfCharacters { first, count })
}

/// Replaces the halves of characters in a chat. Returns the repair, with the line and the column of the first one.
#[must_use]
pub fn without_half_characters(text: String) -> (String, Option<Repair>) {
    let mut json = text.into_bytes();
    let halves = replace_half_characters(&mut json);
    let repair = halves.map(|halves| {
        let before = json.get(..halves.first).unwrap_or_default();
        let lines = before.split(|byte| *byte == b'\n');
        let column = lines.clone().next_back().map_or(0, <[u8]>::len) + 1;
        halves.repair(format!("line {}, column {column}", lines.count()))
    });
    // Only ASCII was replaced by ASCII.
    (String::from_utf8(json).unwrap_or_default(), repair)
}

/// Returns the number of an escape such as `\ud83d`.
fn escaped(json: &[u8], at: usize) -> Option<u16> {
    let digits = json
        .get(at..at.checked_add(ESCAPE)?)?
        .strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(json: &str) -> (String, usize) {
        let mut bytes = json.as_bytes().to_vec();
        let count = replace_half_characters(&mut bytes).map_or(0, |halves| halves.count);
        (String::from_utf8(bytes).unwrap(), count)
    }

    #[test]
    fn only_half_characters_are_replaced() {
        for same in [
            "",
            "\\",
            r"[1]",
            r#""\ud83d\ude00""#,
            r#""\uD83D\uDE00 \n \u00e9 \\ud83d \\\\ud83d""#,
            r#""\ud83"#,
            r#""\u+83d""#,
            "\"\u{1f600}\"",
        ] {
            assert_eq!(replaced(same), (same.to_owned(), 0));
        }
        for (json, expected, count) in [
            (r#""\ud83d""#, r#""\ufffd""#, 1),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#, 2),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#, 1),
            (r#""\\\ud83d\n""#, r#""\\\ufffd\n""#, 1),
            (r"\ud83d", r"\ufffd", 1),
        ] {
            assert_eq!(replaced(json), (expected.to_owned(), count));
        }
    }
}
