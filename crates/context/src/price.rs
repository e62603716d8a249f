//! [`Rates`] and [`Money`]: what usage costs. Not a price sheet; which model costs what is data of
//! the providers.

use std::fmt;
use std::ops::Add;

use serde::{Deserialize, Serialize};

use crate::tokens::Tokens;
use crate::usage::Usage;

/// Money in billionths of a dollar: integers, so that sums are exact.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(pub u64);

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Of fresh input.
    pub input: Money,
    /// Of output, reasoning included.
    pub output: Money,
    /// Of input read from the cache.
    pub cache_read: Money,
    /// Of input written to the cache.
    pub cache_write: Money,
}

impl Money {
    /// From dollars; `None` unless they are finite and not negative.
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (dollars.is_finite() && dollars >= 0.0).then(|| Self((dollars * 1e9).round() as u64))
    }
}

impl Usage {
    /// What this usage costs at these rates: each token is billed once, as what it was.
    #[must_use]
    pub fn estimated_cost(&self, rates: &Rates) -> Money {
        let part = |tokens: Tokens, rate: Money| u128::from(tokens.0) * u128::from(rate.0);
        let sum = part(self.input, rates.input)
            + part(self.output, rates.output)
            + part(self.cache_read, rates.cache_read)
            + part(self.cache_write, rates.cache_write);
        Money(u64::try_from(sum / 1_000_000).unwrap_or(u64::MAX))
    }
}

impl Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Money {
    /// Dollars, with four digits behind the point below one dollar and two above.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.0 as f64 / 1e9;
        if dollars < 1.0 {
            write!(f, "${dollars:.4}")
        } else {
            write!(f, "${dollars:.2}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_billed_twice() {
        let dollars = |dollars| Money::from_dollars(dollars).unwrap();
        let rates = Rates {
            input: dollars(2.5),
            output: dollars(10.0),
            cache_read: dollars(1.25),
            cache_write: dollars(2.5),
        };
        let usage = Usage {
            input: Tokens(200_000),
            output: Tokens(100_000),
            reasoning: Tokens(60_000),
            cache_read: Tokens(800_000),
            cache_write: Tokens(0),
        };
        assert_eq!(usage.estimated_cost(&rates), dollars(0.5 + 1.0 + 1.0));
        assert_eq!(usage.estimated_cost(&rates).to_string(), "$2.50");
        assert_eq!(dollars(0.00123).to_string(), "$0.0012");
        assert_eq!(Money::from_dollars(-1.0), None);
        assert_eq!(Money::from_dollars(f64::NAN), None);
    }
}
