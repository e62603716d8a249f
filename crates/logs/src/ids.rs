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

    fn next(&mut self) -> blake3::Hash {
        self.count += 1;
        blake3::keyed_hash(self.seed.as_bytes(), &self.count.to_le_bytes())
    }

    /// Returns the next id as hexadecimal digits, at most 64.
    pub fn hex(&mut self, digits: usize) -> String {
        self.next().to_hex().chars().take(digits).collect()
    }

    /// Returns the next id in the form of a random UUID (version 4).
    pub fn uuid(&mut self) -> String {
        let random = self.next().as_bytes().first_chunk().copied();
        let id = uuid::Builder::from_random_bytes(random.unwrap_or_default());
        id.into_uuid().to_string()
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
