//! [`replace_half_characters`]: JSON with escapes of half characters.
//!
//! JavaScript cuts a text between the two halves of a character such as an emoji, and `JSON.stringify` writes the
//! half that is left as an escape: `\ud83d`. No provider accepts it, and no message with it can be read.

use memchr::memmem;

use crate::repair::Repair;

/// The number of bytes of an escape such as `\ud83d`.
const ESCAPE: usize = 6;
const REPLACEMENT: &[u8; ESCAPE] = b"\\ufffd";

/// Returns the repair of halves of characters, for a report. `None` if there were none.
#[must_use]
pub fn half_characters_repair(count: usize, place: impl Into<String>) -> Option<Repair> {
    let done = match count {
        0 => return None,
        1 => "replaced half a character with U+FFFD".to_owned(),
        count => format!("replaced {count} halves of characters with U+FFFD"),
    };
    let place = place.into();
    Some(Repair {
        place,
        fix: "shapes",
        done,
    })
}

/// Replaces each escape of half a character with that of U+FFFD, which has the same length. Returns their number.
/// Everything else keeps its bytes and its place.
///
/// ```
/// # use plimsoll_foreign::replace_half_characters;
/// let mut json = br#"["\ud83d\ude00 \ud83d cut"]"#.to_vec();
/// assert_eq!(replace_half_characters(&mut json), 1);
/// assert_eq!(json, br#"["\ud83d\ude00 \ufffd cut"]"#);
/// ```
pub fn replace_half_characters(json: &mut [u8]) -> usize {
    let mut halves: Vec<usize> = Vec::new();
    let mut before = None;
    for at in memmem::find_iter(json, b"\\u") {
        let number = escaped(json, at);
        let is_behind = before.is_some_and(|before| before + ESCAPE == at);
        before = None;
        match number {
            Some(0xdc00..=0xdfff) if is_behind => drop(halves.pop()),
            Some(0xdc00..=0xdfff) => halves.push(at),
            Some(0xd800..=0xdbff) => {
                halves.push(at);
                before = Some(at);
            }
            _ => {}
        }
    }
    for at in &halves {
        if let Some(escape) = json.get_mut(*at..at + ESCAPE) {
            escape.copy_from_slice(REPLACEMENT);
        }
    }
    halves.len()
}

/// Replaces the halves of characters in a chat. Returns the repair, if there is one.
#[must_use]
pub fn without_half_characters(text: String) -> (String, Option<Repair>) {
    let mut json = text.into_bytes();
    let count = replace_half_characters(&mut json);
    // Only ASCII was replaced by ASCII.
    let text = String::from_utf8(json).unwrap_or_default();
    (text, half_characters_repair(count, "the text"))
}

/// Returns the number of an escape such as `\ud83d`. `None` if its backslash is escaped.
fn escaped(json: &[u8], at: usize) -> Option<u16> {
    let before = json.get(..at)?.iter().rev();
    let is_escaped = before.take_while(|byte| **byte == b'\\').count() % 2 == 1;
    let digits = json.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    let is_number = digits.iter().all(u8::is_ascii_hexdigit) && !is_escaped;
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(json: &str) -> (String, usize) {
        let mut bytes = json.as_bytes().to_vec();
        let count = replace_half_characters(&mut bytes);
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
