//! [`Marker`]: writes and parses the text that replaces removed text. The cuts are in `truncate.rs`
//! and `json.rs`.

use std::fmt::Write;
use std::ops::Range;

use crate::prominent_names::prominent_names;

/// The maximum length of a marker's note, in bytes.
pub const NOTE_MAX: usize = 120;

/// The text before the names in a marker.
const NAMES: &str = "names: ";
/// The beginning of every marker.
pub(super) const OPENING: &str = "[pruned: ";
/// The maximum number in a marker, larger than any text that was ever cut. A text with a larger
/// number is no marker.
const PLAUSIBLE: u64 = 1 << 50;
/// The maximum length of a marker: the opening, two numbers of 16 digits with their words, and a
/// note in which a JSON string escapes every byte as six.
const MARKER_MAX: usize = 64 + 6 * NOTE_MAX;

/// The text that replaces removed text: `[pruned: N bytes]`. N is the exact number of bytes of the
/// original that are missing there, regardless of the number of cuts.
///
/// In a JSON list or object: `[pruned: N bytes, M items]`. With a note: `[pruned: N bytes; note]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marker {
    note: String,
}

/// The amount of missing text that a marker states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) bytes: u64,
    pub(super) items: Option<u64>,
}

impl Marker {
    /// Creates a marker with a note, for example about recalling the original. Brackets and control
    /// characters become blanks, and the note is clipped to [`NOTE_MAX`] bytes.
    #[must_use]
    pub fn with_note(note: &str) -> Self {
        let plain = |c: char| {
            if c.is_control() || c == '[' || c == ']' {
                ' '
            } else {
                c
            }
        };
        let note: String = note.trim().chars().map(plain).collect();
        Self {
            note: super::clip(&note, crate::tokens::Bytes(NOTE_MAX as u64)).to_owned(),
        }
    }

    /// Returns the marker with the most prominent names of a text that is about to be cut to `max`
    /// bytes: `[pruned: N bytes; names: parse_line, readConfig; note]`.
    ///
    /// They take at most a third of the bytes. Names that head and tail show anyway are omitted.
    pub(crate) fn with_names(&self, text: &str, max: crate::tokens::Bytes) -> Self {
        let max = usize::try_from(max.0).unwrap_or(usize::MAX);
        let side = max / 6;
        let head = text
            .get(..text.floor_char_boundary(side))
            .unwrap_or_default();
        let tail = text.len().saturating_sub(side);
        let tail = text
            .get(text.ceil_char_boundary(tail)..)
            .unwrap_or_default();
        let most = (max / 3).min(NOTE_MAX.saturating_sub(self.note.len() + NAMES.len() + 2));
        let names = prominent_names(text, &[head, tail], most);
        match (names.is_empty(), self.note.is_empty()) {
            (true, _) => self.clone(),
            (false, true) => Self::with_note(&format!("{NAMES}{names}")),
            (false, false) => Self::with_note(&format!("{NAMES}{names}; {}", self.note)),
        }
    }

    /// Returns the text of the marker for `hole`.
    pub(super) fn words(&self, hole: Hole) -> String {
        let mut words = format!("{OPENING}{} bytes", hole.bytes);
        // Writing to a String cannot fail.
        if let Some(items) = hole.items {
            let _ = write!(words, ", {items} items");
        }
        if !self.note.is_empty() {
            let _ = write!(words, "; {}", self.note);
        }
        words.push(']');
        words
    }
}

impl Hole {
    /// Parses a text that consists of one marker.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (hole, rest) = read_opening(text)?;
        rest.is_empty().then_some(hole)
    }
}

/// Finds the marker between head and tail of a text that was cut before, with the line ends around
/// it.
///
/// Among all matching texts, it takes the most central one, provided that head and tail are about
/// equally long, as a cut leaves them. A match at another position belongs to the text itself.
pub(super) fn find_central(text: &str) -> Option<(Range<usize>, Hole)> {
    let skew = |range: &Range<usize>| range.start.abs_diff(text.len() - range.end);
    let candidates = text.match_indices(OPENING).filter_map(|(at, _)| {
        let start = at.checked_sub(1)?;
        let (hole, rest) = read_opening(text.get(start..)?.strip_prefix('\n')?)?;
        let rest = rest.strip_prefix('\n')?;
        Some((start..text.len() - rest.len(), hole))
    });
    let (range, hole) = candidates.min_by_key(|(range, _)| skew(range))?;
    let longer = range.start.max(text.len() - range.end);
    (skew(&range) <= longer / 4 + 16).then_some((range, hole))
}

/// Parses the marker at the beginning of `text`, and returns it with the rest of the text.
pub(super) fn read_opening(text: &str) -> Option<(Hole, &str)> {
    let (bytes, rest) = read_number(text.strip_prefix(OPENING)?)?;
    let rest = rest.strip_prefix(" bytes")?;
    let (items, rest) = match rest.strip_prefix(", ").and_then(read_number) {
        Some((items, rest)) => (Some(items), rest.strip_prefix(" items")?),
        None => (None, rest),
    };
    let rest = match rest.strip_prefix("; ") {
        Some(note) => {
            let end = note
                .bytes()
                .take(MARKER_MAX)
                .position(|b| b == b']' || b == b'\n')?;
            note.get(end..)?
        }
        None => rest,
    };
    Some((Hole { bytes, items }, rest.strip_prefix(']')?))
}

fn read_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    // Markers are written without sign and leading zeros.
    if number.len() > 1 && number.starts_with('0') {
        return None;
    }
    let number = number.parse().ok()?;
    (number <= PLAUSIBLE).then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let hole = |bytes, items| Hole { bytes, items };
        for (marker, hole, words) in [
            (Marker::default(), hole(9_800, None), "[pruned: 9800 bytes]"),
            (
                Marker::default(),
                hole(7, Some(2)),
                "[pruned: 7 bytes, 2 items]",
            ),
            (
                Marker::with_note(" recall(\"a[1]\")\n"),
                hole(0, None),
                "[pruned: 0 bytes; recall(\"a 1 \")]",
            ),
        ] {
            assert_eq!(marker.words(hole), words);
            assert_eq!(Hole::read(words), Some(hole));
        }
    }

    #[test]
    fn a_likeness_is_not_read() {
        for text in [
            "",
            "[pruned: bytes]",
            "[pruned: 01 bytes]",
            "[pruned: +1 bytes]",
            "[pruned: -1 bytes]",
            "[pruned: 1 bytes",
            "[pruned: 1 bytes] ",
            "[pruned: 1 bytes, x items]",
            "[pruned: 1 bytes, 2 bytes]",
            "[pruned: 1 bytes; two\nlines]",
            "[pruned: 99999999999999999999999 bytes]",
            "[pruned: 18446744073709551615 bytes]",
        ] {
            assert_eq!(Hole::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_note_is_bounded() {
        let marker = Marker::with_note(&"é".repeat(1_000));
        assert_eq!(marker.note.len(), NOTE_MAX);
    }

    #[test]
    fn a_marker_lists_the_names_of_what_is_left_out() {
        let max = crate::tokens::Bytes(200);
        let plain = "nothing but words here. ".repeat(40);
        let text = format!("head_name {plain} parse_line calls readConfig, parse_line {plain}");
        let marker = Marker::with_note("recall m12").with_names(&text, max);
        let short = marker.shorten_bytes(&text, max).unwrap();
        let listed = "; names: parse_line, readConfig; recall m12]";
        assert!(short.contains(listed) && short.len() <= 200, "{short}");
        let again = marker.shorten_bytes(&short, max);
        assert_eq!(again, None, "it is short enough");
        assert_eq!(Marker::default().with_names(&plain, max), Marker::default());
        let many: String = (0..500).map(|n| format!("name_{n:04} ")).collect();
        let short = Marker::default().with_names(&many, max);
        let short = short.shorten_bytes(&many, max).unwrap();
        assert!(short.len() <= 200, "{short}");
    }

    #[test]
    fn only_a_central_marker_is_ours() {
        let side = "x".repeat(100);
        let ours = format!("{side}\n[pruned: 5 bytes]\n{side}");
        let (range, hole) = find_central(&ours).unwrap();
        assert_eq!(
            (range.start, ours.len() - range.end, hole.bytes),
            (100, 100, 5)
        );
        for text in [
            format!("{side}{side}\n[pruned: 5 bytes]\n{side}"),
            format!("{side} [pruned: 5 bytes] {side}"),
            format!("\n[pruned: 5 bytes]\n{side}"),
            side.clone(),
        ] {
            assert_eq!(find_central(&text), None, "{text}");
        }
    }
}
