//! Random numbers that a seed decides, for histories that are too long for proptest.

/// The random histories of a test in an everyday run.
pub const ROUNDS: u64 = 300;

/// Returns the number of random histories of a test: that of the variable `PLIMSOLL_HISTORIES`, or
/// of `PROPTEST_CASES`, which `cargo xtask soak` sets, or [`ROUNDS`].
pub fn rounds() -> u64 {
    ["PLIMSOLL_HISTORIES", "PROPTEST_CASES"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok())
        .unwrap_or(ROUNDS)
}

/// A generator of random numbers (SplitMix64). Equal seeds give equal numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates a generator. Neighboring seeds give unrelated numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "the sequence has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// Returns `true` with a probability of `percent` in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns a number between two sizes, each order of magnitude as likely as any other.
    pub fn log_uniform(&mut self, low: u64, high: u64) -> u64 {
        let unit = self.next() as f64 / u64::MAX as f64;
        let (low, high) = (low as f64, high as f64);
        (low * (high / low).powf(unit)) as u64
    }

    /// Returns a size of up to `digits` digits, each number of digits as likely as any other.
    pub fn size(&mut self, digits: u32) -> usize {
        let digits = 1 + self.below(u64::from(digits)) as u32;
        1 + self.below(10_u64.pow(digits)) as usize
    }

    /// Returns a repeated word of some script, about as long as [`Self::size`] says.
    pub fn text(&mut self, digits: u32) -> String {
        let word = ["word ", "汉字", "🦀", "e\u{301} ", "x\n"][self.below(5) as usize];
        let size = self.size(digits);
        word.repeat(size.div_ceil(word.len()))
    }
}
