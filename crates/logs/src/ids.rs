//! [`Ids`]: generates ids for the entries of a copy. They are not random, but derived from the
//! caller's seed.

/// A sequence of ids.
#[derive(Debug, Clone)]
pub struct Ids {
    seed: blake3::Hash,
    count: u64,
}

impl Ids {
    /// Creates the sequence for a seed. Different seeds give different ids.
    #[must_use]
    pub fn new(seed: &[u8]) -> Self {
        Self {
            seed: blake3::hash(seed),
            count: 0,
        }
    }

    fn next<const LEN: usize>(&mut self) -> [u8; LEN] {
        self.count += 1;
        let mut bytes = [0; LEN];
        blake3::Hasher::new_keyed(self.seed.as_bytes())
            .update(&self.count.to_le_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        bytes
    }

    /// Returns the next id as hexadecimal digits, at most 64.
    pub fn hex(&mut self, digits: usize) -> String {
        let hex = blake3::Hash::from_bytes(self.next()).to_hex();
        hex.as_str().chars().take(digits).collect()
    }

    /// Returns the next id in the form of a random UUID (version 4).
    pub fn uuid(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.next())
            .into_uuid()
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_the_seed_alone_and_do_not_repeat() {
        let (mut one, mut same) = (Ids::new(b"a"), Ids::new(b"a"));
        let first = one.uuid();
        assert_eq!(first, same.uuid());
        assert_ne!(first, one.uuid());
        assert_ne!(first, Ids::new(b"b").uuid());
        assert_eq!(first.len(), 36);
        assert_eq!(first.get(14..15), Some("4"));
        assert_eq!(one.hex(8).len(), 8);
    }
}
