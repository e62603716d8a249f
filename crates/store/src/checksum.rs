//! Checksums of entries and archived items, to detect changes made outside Plimsoll, and the hashes
//! that stand for names in tables.

/// Returns the first 8 bytes of BLAKE3 over an entry's number, its time and its JSON.
pub(crate) fn of_entry(n: i64, at: i64, json: &[u8]) -> i64 {
    of(&[n, at], json)
}

/// Returns the first 8 bytes of BLAKE3 over an archived item's number and its JSON.
pub(crate) fn of_item(seq: i64, json: &[u8]) -> i64 {
    of(&[seq], json)
}

/// Returns the first 8 bytes of BLAKE3 over the first line of a session in an export.
pub(crate) fn of_header(json: &[u8]) -> i64 {
    of(&[], json)
}

/// Returns the first 8 bytes of BLAKE3 over a checkpoint: the key of its session, the number of entries
/// that it covers, the checksum of the last of them, and its state.
pub(crate) fn of_checkpoint(numbers: [i64; 3], state: &[u8]) -> i64 {
    of(&numbers, state)
}

/// Returns the first 16 bytes of the BLAKE3 hash of a name, as a lookup key.
pub(crate) fn of_name(name: &str) -> [u8; 16] {
    let mut key = [0; 16];
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.as_bytes());
    hasher.finalize_xof().fill(&mut key);
    key
}

fn of(numbers: &[i64], json: &[u8]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for number in numbers {
        hasher.update(&number.to_be_bytes());
    }
    hasher.update(json);
    let mut sum = [0; 8];
    hasher.finalize_xof().fill(&mut sum);
    i64::from_be_bytes(sum)
}
