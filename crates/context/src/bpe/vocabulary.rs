//! [`Vocabulary`]: the ranks of the tokens of an encoding, read from a file in `data/`.

use std::io::Read;

use flate2::read::ZlibDecoder;
use foldhash::{HashMap, HashMapExt};

/// The tokens of an encoding, with their ranks.
pub(super) struct Vocabulary(HashMap<&'static [u8], u32>);

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
        let (lengths, mut bytes) = rest.split_at_checked(count).unwrap_or_default();
        let mut ranks = HashMap::with_capacity(count);
        for (rank, length) in (0_u32..).zip(lengths) {
            let (token, rest) = bytes
                .split_at_checked(usize::from(*length))
                .unwrap_or_default();
            ranks.insert(token, rank);
            bytes = rest;
        }
        Self(ranks)
    }

    /// Returns the rank of a token, or `None` if the bytes are no token.
    #[inline]
    pub(super) fn rank(&self, bytes: &[u8]) -> Option<u32> {
        self.0.get(bytes).copied()
    }
}
