//! [`Vocabulary`]: the ranks of the tokens of an encoding, read from a file in `data/`.

use std::io::Read;

use flate2::read::ZlibDecoder;

/// The longest token that a slot stores directly, in bytes.
const INLINE_MAX: usize = 8;
/// The rank in a table if the bytes are no token.
const NONE: u32 = u32::MAX;
/// An odd number without a regular bit pattern.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// The tokens of an encoding.
pub(super) struct Vocabulary {
    /// The bytes of all tokens, concatenated.
    bytes: &'static [u8],
    /// The position in `bytes` at which the token of each rank begins.
    starts: Vec<u32>,
    /// The ranks of one-byte and two-byte tokens, indexed by these bytes.
    singles: Vec<u32>,
    pairs: Vec<u32>,
    /// A hash table of the tokens of three bytes and more. Its size is a power of two, and at most
    /// half full.
    slots: Vec<Slot>,
}

/// A token of three bytes or more. The slot is empty if the length is 0.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// The bytes of a short token, or the hash of a longer one.
    key: u64,
    rank: u32,
    length: u32,
}

impl Vocabulary {
    /// Reads such a file, which `tests/context/data_files.rs` describes. It is kept until the process
    /// ends, since each encoding is read once.
    pub(super) fn read(packed: &[u8]) -> Self {
        let mut file = Vec::new();
        // What cannot be unpacked is missing; the test of the files unpacks them whole.
        let _ = ZlibDecoder::new(packed).read_to_end(&mut file);
        let file: &'static [u8] = file.leak();
        let (count, rest) = file.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let count = u32::from_le_bytes(*count) as usize;
        let (lengths, bytes) = rest.split_at_checked(count).unwrap_or_default();
        let mut vocabulary = Self {
            bytes,
            starts: Vec::with_capacity(count),
            singles: vec![NONE; 1 << 8],
            pairs: vec![NONE; 1 << 16],
            slots: vec![Slot::default(); (2 * count).next_power_of_two()],
        };
        let mut start = 0;
        for (rank, length) in (0_u32..).zip(lengths) {
            vocabulary.starts.push(start);
            start += u32::from(*length);
            vocabulary.insert(rank, usize::from(*length));
        }
        vocabulary
    }

    fn insert(&mut self, rank: u32, length: usize) {
        let token = self.token(rank, length);
        let stored = match *token {
            [] => None,
            [a] => self.singles.get_mut(usize::from(a)),
            [a, b] => self.pairs.get_mut(pair(a, b)),
            _ => {
                let (key, hash) = key_of(token);
                let mask = self.slots.len() - 1;
                let mut at = hash as usize & mask;
                while self.slots.get(at).is_some_and(|slot| slot.length > 0) {
                    at = (at + 1) & mask;
                }
                if let Some(slot) = self.slots.get_mut(at) {
                    *slot = Slot {
                        key,
                        rank,
                        length: length as u32,
                    };
                }
                None
            }
        };
        if let Some(stored) = stored {
            *stored = rank;
        }
    }

    fn token(&self, rank: u32, length: usize) -> &'static [u8] {
        let start = self.starts.get(rank as usize).copied().unwrap_or_default() as usize;
        self.bytes.get(start..start + length).unwrap_or_default()
    }

    /// Returns the rank of a token, or `None` if these bytes are no token.
    #[inline]
    pub(super) fn rank(&self, bytes: &[u8]) -> Option<u32> {
        let rank = match *bytes {
            [] => None,
            [a] => self.singles.get(usize::from(a)).copied(),
            [a, b] => self.pairs.get(pair(a, b)).copied(),
            _ => return self.rank_of_long(bytes),
        };
        rank.filter(|rank| *rank != NONE)
    }

    #[inline]
    fn rank_of_long(&self, bytes: &[u8]) -> Option<u32> {
        let (key, hash) = key_of(bytes);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots.get(at)?;
            if slot.length == 0 {
                return None;
            }
            if slot.key == key
                && slot.length as usize == bytes.len()
                && (bytes.len() <= INLINE_MAX || self.token(slot.rank, bytes.len()) == bytes)
            {
                return Some(slot.rank);
            }
            at = (at + 1) & mask;
        }
    }
}

fn pair(a: u8, b: u8) -> usize {
    usize::from(a) << 8 | usize::from(b)
}

/// Returns the key of a token's slot, and the hash at which the search for the slot begins.
#[inline]
fn key_of(bytes: &[u8]) -> (u64, u64) {
    if bytes.len() <= INLINE_MAX {
        let key = word(bytes);
        return (key, mixed(key ^ (bytes.len() as u64) << 61));
    }
    let (words, rest) = bytes.as_chunks::<INLINE_MAX>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| {
        mixed(hash ^ u64::from_le_bytes(*word))
    });
    let hash = mixed(hash ^ word(rest));
    (hash, hash)
}

/// Returns up to eight bytes as a number.
#[inline]
pub(super) fn word(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // Both halves. They overlap if there are fewer than eight bytes.
        (Some(head), Some(tail)) => {
            let head = u64::from(u32::from_le_bytes(*head));
            let tail = u64::from(u32::from_le_bytes(*tail));
            head | tail << (8 * (bytes.len() - 4))
        }
        _ => match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(a) | u64::from(b) << 8,
            [a, b, c] => u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16,
            _ => 0,
        },
    }
}

/// Spreads the information of a number over all its bits.
#[inline]
pub(super) fn mixed(word: u64) -> u64 {
    let product = word.wrapping_mul(MIX);
    product ^ product >> 29
}
