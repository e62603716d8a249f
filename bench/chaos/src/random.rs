//! Pseudorandom numbers from a seed (SplitMix64). Not for secrets.

/// A generator. The same seed and path give the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates the generator for one purpose, such as the plan of session 7. Its numbers do not
    /// depend on those drawn for other purposes.
    pub(crate) fn new(seed: u64, path: &[u64]) -> Self {
        let mut random = Self(seed);
        for part in path {
            let mixed = random.next() ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93);
            random = Self(mixed);
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `least` to `most`, inclusive.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        let span = most.saturating_sub(least).saturating_add(1).max(1);
        least + self.next() % span
    }

    /// Returns `true` in `percent` of 100 cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_path_does_not() {
        let numbers = |seed, path: &[u64]| {
            let mut random = Random::new(seed, path);
            [(); 4].map(|()| random.between(0, 1_000_000))
        };
        assert_eq!(numbers(1, &[2, 3]), numbers(1, &[2, 3]));
        assert_ne!(numbers(1, &[2, 3]), numbers(1, &[3, 2]));
        assert_ne!(numbers(1, &[2, 3]), numbers(2, &[2, 3]));
        let mut random = Random::new(7, &[]);
        assert!((0..1_000).all(|_| (3..=5).contains(&random.between(3, 5))));
    }
}
