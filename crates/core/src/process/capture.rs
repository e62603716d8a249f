//! [`Capture`]: keeps the beginning and the end of a stream in limited memory. [`CapturedOutput`]
//! is the result, as text.

use std::collections::VecDeque;

use plimsoll_context::Bytes;

/// A buffer that keeps the first and the newest bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    total: u64,
}

/// A child's output as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedOutput {
    /// The complete output or its beginning. What is no text (invalid UTF-8, or NUL) is replaced by
    /// U+FFFD, here and in the tail.
    pub head: String,
    /// The end of the output, if some of it is missing.
    pub tail: String,
    /// Exact number of bytes missing between head and tail.
    pub missing: Bytes,
}

impl Capture {
    /// Creates a capture of `max` bytes, half from the beginning and half from the end.
    pub(super) fn new(max: Bytes) -> Self {
        let max = usize::try_from(max.0).unwrap_or(usize::MAX);
        Self {
            head_max: max - max / 2,
            tail_max: max / 2,
            ..Self::default()
        }
    }

    /// Creates a capture of the newest `max` bytes.
    pub(super) fn newest(max: Bytes) -> Self {
        Self {
            tail_max: usize::try_from(max.0).unwrap_or(usize::MAX),
            ..Self::default()
        }
    }

    /// Adds the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let room = self.head_max - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        // Only the newest bytes of a long rest can stay, so the ring never grows past its bound.
        let (_, newest) = rest.split_at(rest.len().saturating_sub(self.tail_max));
        let over = (self.tail.len() + newest.len()).saturating_sub(self.tail_max);
        self.tail.drain(..over);
        self.tail.extend(newest);
    }

    /// Returns the output kept so far. A character that was cut at the gap counts as missing.
    pub(super) fn so_far(&self) -> CapturedOutput {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let whole = [&self.head[..], &tail].concat();
        if whole.len() as u64 == self.total {
            return CapturedOutput {
                head: readable(&whole),
                ..CapturedOutput::default()
            };
        }
        let (head, tail) = (whole_end(&self.head), whole_start(&tail));
        CapturedOutput {
            head: readable(head),
            tail: readable(tail),
            missing: Bytes(self.total - head.len() as u64 - tail.len() as u64),
        }
    }
}

/// Converts bytes to text.
fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

/// Returns `bytes` without an incomplete character at the end.
fn whole_end(bytes: &[u8]) -> &[u8] {
    let last = bytes.utf8_chunks().last();
    let parted = last.map_or(0, |chunk| chunk.invalid().len());
    let (whole, _) = bytes.split_at(bytes.len() - parted);
    whole
}

/// Returns `bytes` without an incomplete character at the start.
fn whole_start(bytes: &[u8]) -> &[u8] {
    let inside = |byte: &&u8| matches!(**byte, 0x80..=0xbf);
    let parted = bytes.iter().take(3).take_while(inside).count();
    let (_, whole) = bytes.split_at(parted);
    whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(max: u64, pieces: &[&[u8]]) -> CapturedOutput {
        let mut capture = Capture::new(Bytes(max));
        for piece in pieces {
            capture.push(piece);
        }
        capture.so_far()
    }

    #[test]
    fn head_and_tail_stay_and_the_gap_is_counted_exactly() {
        for (max, text, head, tail, missing) in [
            (10, "", "", "", 0),
            (10, "0123456789", "0123456789", "", 0),
            (10, "0123456789a", "01234", "6789a", 1),
            (5, "0123456789", "012", "89", 5),
            (1, "0123456789", "0", "", 9),
            (0, "0123456789", "", "", 10),
            // The gap cuts a crab on both sides: eight bytes less are shown.
            (12, "1234🦀-----🦀1234", "1234", "1234", 13),
            (12, "12é4🦀-----🦀1é34", "12é4", "1é34", 13),
        ] {
            let got = captured(max, &[text.as_bytes()]);
            assert_eq!((got.head.as_str(), got.tail.as_str()), (head, tail));
            assert_eq!(got.missing, Bytes(missing));
        }
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        let got = captured(100, &[b"a\xff\xfe\xe2\x82b\0c"]);
        assert_eq!(got.head, "a\u{fffd}\u{fffd}\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn a_flood_stays_in_its_space() {
        let mut capture = Capture::new(Bytes(1_000));
        for _ in 0..10_000 {
            capture.push(&[b'x'; 5_000]);
            assert!(capture.head.capacity() + capture.tail.capacity() <= 4_000);
        }
        let captured = capture.so_far();
        assert_eq!(captured.missing, Bytes(50_000_000 - 1_000));
        assert_eq!((captured.head.len(), captured.tail.len()), (500, 500));
    }

    #[test]
    fn the_newest_is_kept_of_a_log() {
        let mut log = Capture::newest(Bytes(4));
        log.push(b"abc");
        assert_eq!(log.so_far().head, "abc");
        log.push(b"defgh");
        assert_eq!(log.so_far().tail, "efgh");
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(
            text in "\\PC{0,60}", max in 0..80u64, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let got = captured(max, &pieces);
            prop_assert_eq!(&got, &captured(max, &[bytes]));
            let shown = got;
            prop_assert!(text.starts_with(&shown.head) && text.ends_with(&shown.tail));
            prop_assert_eq!(shown.head.len() + shown.tail.len() + shown.missing.0 as usize, text.len());
        }
    }
}
