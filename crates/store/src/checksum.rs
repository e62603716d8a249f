//! The checksum of an entry: what of it is altered outside Plimsoll is noticed when it is read.

/// Returns the first 8 bytes of BLAKE3 over an entry's number, its time and its JSON.
pub(crate) fn of_entry(n: i64, at: i64, json: &[u8]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&n.to_be_bytes());
    hasher.update(&at.to_be_bytes());
    hasher.update(json);
    let mut sum = [0; 8];
    hasher.finalize_xof().fill(&mut sum);
    i64::from_be_bytes(sum)
}
