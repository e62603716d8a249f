//! The units [`Tokens`], [`Bytes`] and [`Ppm`]. Counters are in `counter.rs`.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// A number of tokens. Arithmetic saturates: a size is never negative and never wraps.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Tokens(pub u64);

/// A number of bytes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self(0);
    /// More than any window.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns `self - other`, or zero if `other` is larger.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns `self · ppm / 1,000,000`, rounded down.
    #[must_use]
    pub const fn share(self, ppm: Ppm) -> Self {
        let wide = self.0 as u128 * ppm.0 as u128 / Ppm::ONE.0 as u128;
        Self(if wide > u64::MAX as u128 {
            u64::MAX
        } else {
            wide as u64
        })
    }

    /// Returns `self` divided by a share, rounded down, or the maximum for a share of zero.
    #[must_use]
    pub(crate) fn whole_of(self, share: Ppm) -> Self {
        let wide = u128::from(self.0) * u128::from(Ppm::ONE.0);
        let whole = wide.checked_div(u128::from(share.0));
        whole.map_or(Self::MAX, |whole| {
            Self(u64::try_from(whole).unwrap_or(u64::MAX))
        })
    }

    /// Returns `self · n`.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl Add for Tokens {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A ratio in parts per million. Ratios are converted to integers once, when they are loaded, so
/// every comparison is exact and the same on every machine.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Ppm(pub u64);

impl Ppm {
    /// The ratio 1.
    pub const ONE: Self = Self(1_000_000);

    /// Converts a fraction such as `0.8`. Returns `None` unless it is finite and within
    /// `0.0..=1.0`.
    #[must_use]
    pub fn from_fraction(fraction: f64) -> Option<Self> {
        (fraction.is_finite() && (0.0..=1.0).contains(&fraction))
            .then(|| Self((fraction * Self::ONE.0 as f64).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Tokens::MAX + Tokens(1), Tokens::MAX);
        assert_eq!(Tokens(1).minus(Tokens(2)), Tokens::ZERO);
        assert_eq!(Tokens::MAX.share(Ppm(2_000_000)), Tokens::MAX);
        assert_eq!(Tokens(95_999).share(Ppm(700_000)), Tokens(67_199));
    }

    #[test]
    fn fractions_outside_the_unit_interval_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, -0.1, 1.1] {
            assert_eq!(Ppm::from_fraction(bad), None);
        }
        assert_eq!(Ppm::from_fraction(0.8), Some(Ppm(800_000)));
    }
}
