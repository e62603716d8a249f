//! The checksums of entries and of archived items: a byte of them that is altered outside Plimsoll is
//! noticed when they are read.

/// Returns the first 8 bytes of BLAKE3 over an entry's number, its time and its JSON.
pub(crate) fn of_entry(n: i64, at: i64, json: &[u8]) -> i64 {
    of(&[n, at], json)
}

/// Returns the first 8 bytes of BLAKE3 over an archived item's number and its JSON.
pub(crate) fn of_item(seq: i64, json: &[u8]) -> i64 {
    of(&[seq], json)
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
