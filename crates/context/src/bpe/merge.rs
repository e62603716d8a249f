//! [`Merger`]: counts the tokens of one piece of a text.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smart_default::SmartDefault;

use super::vocabulary::Vocabulary;

/// The number of pieces whose counts are cached. A new piece replaces an older one.
const KNOWN: usize = 8_192;
/// An odd number without a regular bit pattern.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// Merges the bytes of a piece into tokens.
///
/// Of all neighbouring parts that together form a token, the pair with the lowest rank is merged
/// first. Among equal ranks, the first pair is merged first. Takes `n log n` steps for `n` bytes.
#[derive(SmartDefault)]
pub(super) struct Merger {
    /// The parts of the piece, indexed by the first byte of each part. An entry contains the end of
    /// the part, the beginning of the part before it, and the rank of the part together with the
    /// next one.
    parts: Vec<MergePart>,
    /// Neighbouring parts that form a token, by rank and position. Outdated entries are skipped.
    found: BinaryHeap<Reverse<(u32, u32)>>,
    /// Counts of short pieces, by the hash of their bytes.
    #[default(vec![CachedCount::default(); KNOWN])]
    known: Vec<CachedCount>,
}

/// A cached piece with its count.
#[derive(Clone, Copy, Default)]
struct CachedCount {
    piece: u128,
    count: u64,
}

#[derive(Clone, Copy)]
struct MergePart {
    end: u32,
    before: u32,
    rank: Option<u32>,
}

impl Merger {
    /// Returns the number of tokens of a piece.
    pub(super) fn count(&mut self, piece: &[u8], vocabulary: &Vocabulary) -> u64 {
        let Some(key) = key(piece) else {
            return self.merged(piece, vocabulary);
        };
        let hash = (key as u64 ^ (key >> 64) as u64).wrapping_mul(MIX);
        let at = (hash >> 32) as usize % KNOWN;
        if let Some(known) = self.known.get(at)
            && known.piece == key
        {
            return known.count;
        }
        let count = self.merged(piece, vocabulary);
        if let Some(known) = self.known.get_mut(at) {
            *known = CachedCount { piece: key, count };
        }
        count
    }

    fn merged(&mut self, piece: &[u8], vocabulary: &Vocabulary) -> u64 {
        if vocabulary.rank(piece).is_some() {
            return 1;
        }
        self.parts.clear();
        self.found.clear();
        let mut found = std::mem::take(&mut self.found).into_vec();
        for (at, _) in (0_u32..).zip(piece) {
            let rank = rank(piece, at, at as usize + 2, vocabulary);
            found.extend(rank.map(|rank| Reverse((rank, at))));
            self.parts.push(MergePart {
                end: at + 1,
                before: at.saturating_sub(1),
                rank,
            });
        }
        self.found = BinaryHeap::from(found);
        let mut count = piece.len() as u64;
        while let Some(Reverse((rank, at))) = self.found.pop() {
            let Some(part) = self.part(at).filter(|part| part.rank == Some(rank)) else {
                continue;
            };
            let Some(next) = self.part(part.end) else {
                continue;
            };
            count -= 1;
            if let Some(merged) = self.parts.get_mut(part.end as usize) {
                merged.rank = None;
            }
            if let Some(part) = self.parts.get_mut(at as usize) {
                part.end = next.end;
            }
            if let Some(behind) = self.parts.get_mut(next.end as usize) {
                behind.before = at;
            }
            self.look(at, piece, vocabulary);
            if at > 0 {
                self.look(part.before, piece, vocabulary);
            }
        }
        count
    }

    fn part(&self, at: u32) -> Option<MergePart> {
        self.parts.get(at as usize).copied()
    }

    /// Looks up the rank of a part joined with the next part.
    fn look(&mut self, at: u32, piece: &[u8], vocabulary: &Vocabulary) {
        let end = self.part(at).and_then(|part| self.part(part.end));
        let rank = end.and_then(|next| rank(piece, at, next.end as usize, vocabulary));
        self.found.extend(rank.map(|rank| Reverse((rank, at))));
        if let Some(part) = self.parts.get_mut(at as usize) {
            part.rank = rank;
        }
    }
}

fn rank(piece: &[u8], start: u32, end: usize, vocabulary: &Vocabulary) -> Option<u32> {
    vocabulary.rank(piece.get(start as usize..end)?)
}

/// Returns the bytes of a short piece and its length as a number, or `None` if the piece is longer.
#[inline]
fn key(piece: &[u8]) -> Option<u128> {
    let mut key = [0; 16];
    let (length, bytes) = key.split_last_mut()?;
    bytes.get_mut(..piece.len())?.copy_from_slice(piece);
    *length = piece.len() as u8;
    Some(u128::from_le_bytes(key))
}
