//! [`Money`], [`Rates`] and [`PriceSheet`]: the prices of a model, as far as they are known.
//!
//! The prices themselves are data of the providers. The cost of a plan is computed in `plan_price.rs`.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::CacheRetention;
use crate::tokens::Tokens;
use crate::usage::Usage;

/// An amount of money in billionths of a dollar. Integers keep sums exact.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Money(pub u64);

/// The prices of a million tokens. An unknown price is `None`, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// The price of fresh input.
    pub input: Money,
    /// The price of output, including reasoning.
    pub output: Money,
    /// The price of input read from the cache.
    pub cache_read: Option<Money>,
    /// The price of input written to the cache with the usual lifetime.
    pub cache_write: Option<Money>,
}

/// The prices of a model, and the properties of its prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceSheet {
    /// The prices of tokens.
    pub rates: Rates,
    /// How long a cache entry lives after its last use; `None` if unknown.
    pub cache_lives: Option<Duration>,
    /// A longer cache lifetime at an extra price, if the provider offers one.
    pub longer: Option<LongerCache>,
    /// The minimum size of a cached prefix. A shorter prefix is charged as fresh input every time.
    /// `None` if unknown.
    pub min_cacheable: Option<Tokens>,
    /// The prices of requests with a long prompt, if they are higher.
    #[serde(default)]
    pub long: Option<LongPrompt>,
    /// The requested retention of cache entries. It determines the price of writes and the
    /// lifetime.
    #[serde(default)]
    pub retention: CacheRetention,
}

/// A longer lifetime of cache entries, with its own price for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongerCache {
    /// How long an entry lives after its last use.
    pub lives: Duration,
    /// The price of a million tokens written.
    pub cache_write: Money,
}

/// The prices of requests with a long prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongPrompt {
    /// A prompt with more tokens is long.
    pub above: Tokens,
    /// The prices of all its tokens.
    pub rates: Rates,
}

/// A number that is no amount of money.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is no amount of money; give dollars, such as 0.50")]
pub struct InvalidMoney(
    /// The number.
    pub f64,
);

impl Money {
    /// Converts dollars to money.
    ///
    /// # Errors
    /// If the amount is negative or not finite.
    pub fn from_dollars(dollars: f64) -> Result<Self, InvalidMoney> {
        if dollars.is_finite() && dollars >= 0.0 {
            Ok(Self((dollars * 1e9).round() as u64))
        } else {
            Err(InvalidMoney(dollars))
        }
    }

    /// Returns `self - other`, or zero if `other` is larger.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the cost of `tokens` if `self` is the price of a million.
    #[must_use]
    pub fn of(self, tokens: Tokens) -> Self {
        Self::from_millionths(u128::from(tokens.0) * u128::from(self.0))
    }

    fn from_millionths(millionths: u128) -> Self {
        Self(u64::try_from(millionths / 1_000_000).unwrap_or(u64::MAX))
    }
}

impl Rates {
    /// The rates of a model that costs nothing, such as a local one.
    pub const FREE: Self = Self {
        input: Money(0),
        output: Money(0),
        cache_read: Some(Money(0)),
        cache_write: Some(Money(0)),
    };

    /// Sets unknown prices to the highest ones of any provider: a read from the cache costs no more than
    /// fresh input, and a write at most twice as much.
    #[must_use]
    pub fn at_most(self) -> Self {
        let most = Some(Money(self.input.0.saturating_mul(2)));
        Self {
            cache_read: self.cache_read.or(Some(self.input)),
            cache_write: self.cache_write.or(most),
            ..self
        }
    }
}

impl PriceSheet {
    /// Creates a sheet from rates alone, without further data about the cache.
    #[must_use]
    pub const fn of(rates: Rates) -> Self {
        Self {
            rates,
            cache_lives: None,
            longer: None,
            min_cacheable: None,
            long: None,
            retention: CacheRetention::Usual,
        }
    }

    /// Sets the requested retention of cache entries.
    #[must_use]
    pub const fn kept(self, retention: CacheRetention) -> Self {
        Self { retention, ..self }
    }

    /// Sets unknown prices to twice the price of fresh input, the highest price of any provider.
    #[must_use]
    pub fn at_most(self) -> Self {
        let most = LongerCache {
            lives: Duration::ZERO,
            cache_write: Money(self.rates.input.0.saturating_mul(2)),
        };
        Self {
            rates: self.rates.at_most(),
            longer: Some(self.longer.unwrap_or(most)),
            long: self.long.map(|long| LongPrompt {
                rates: long.rates.at_most(),
                ..long
            }),
            ..self
        }
    }

    /// Returns the prices of a request with a prompt of this length.
    ///
    /// ```
    /// use plimsoll_context::{LongPrompt, Money, PriceSheet, Rates, Tokens, Usage};
    /// let rates = |input| Rates { input: Money(input), ..Rates::FREE };
    /// let sheet = PriceSheet {
    ///     long: Some(LongPrompt { above: Tokens(200_000), rates: rates(2_000_000) }),
    ///     ..PriceSheet::of(rates(1_000_000))
    /// };
    /// let cost = |input| sheet.cost(Usage { input: Tokens(input), ..Usage::default() });
    /// assert_eq!(cost(200_000), Some(Money(200_000)));
    /// assert_eq!(cost(200_001), Some(Money(400_002)));
    /// ```
    #[must_use]
    pub fn at(&self, prompt: Tokens) -> Self {
        let Some(long) = self.long.filter(|long| prompt > long.above) else {
            return *self;
        };
        let raised = |price: Money| {
            let price = u128::from(price.0) * u128::from(long.rates.input.0);
            let price = price / u128::from(self.rates.input.0).max(1);
            Money(u64::try_from(price).unwrap_or(u64::MAX))
        };
        Self {
            rates: long.rates,
            longer: self.longer.map(|longer| LongerCache {
                cache_write: raised(longer.cache_write),
                ..longer
            }),
            long: None,
            ..*self
        }
    }

    /// Returns the cost of a usage, or `None` if the price of some of its tokens is unknown.
    ///
    /// Each token is billed once, at the price of its kind. Tokens written with longer retention
    /// have their own price.
    ///
    /// ```
    /// use std::time::Duration;
    /// use plimsoll_context::{LongerCache, Money, PriceSheet, Rates, Tokens, Usage};
    /// let dollars = |dollars| Money::from_dollars(dollars).unwrap();
    /// let mut sheet = PriceSheet::of(Rates {
    ///     input: dollars(3.0),
    ///     output: dollars(15.0),
    ///     cache_read: Some(dollars(0.3)),
    ///     cache_write: Some(dollars(3.75)),
    /// });
    /// let usage = Usage {
    ///     cache_write: Tokens(1_000_000),
    ///     cache_write_longer: Tokens(400_000),
    ///     ..Usage::default()
    /// };
    /// assert_eq!(sheet.cost(usage), None, "the price of a longer cache is unknown");
    /// sheet.longer = Some(LongerCache {
    ///     lives: Duration::from_secs(3_600),
    ///     cache_write: dollars(6.0),
    /// });
    /// assert_eq!(sheet.cost(usage), Some(dollars(0.6 * 3.75 + 0.4 * 6.0)));
    /// ```
    #[must_use]
    pub fn cost(&self, usage: Usage) -> Option<Money> {
        let sheet = self.at(usage.processed());
        let longer = sheet.longer.map(|longer| longer.cache_write);
        usage.cost(&sheet.rates, longer)
    }

    /// Returns the price of writing a million message tokens to the cache with the requested
    /// retention.
    #[must_use]
    pub fn rewrite(&self) -> Option<Money> {
        match self.retention {
            CacheRetention::Long => self.longer.map(|longer| longer.cache_write),
            CacheRetention::Usual | CacheRetention::Head => self.rates.cache_write,
        }
    }

    /// Returns how long messages live in the cache with the requested retention.
    #[must_use]
    pub fn lives(&self) -> Option<Duration> {
        match self.retention {
            CacheRetention::Long => self.longer.map(|longer| longer.lives),
            CacheRetention::Usual | CacheRetention::Head => self.cache_lives,
        }
    }

    /// Returns `true` if the cache has expired `age` after the last call. Returns `false` if the
    /// age or the lifetime is unknown.
    ///
    /// ```
    /// use std::time::Duration;
    /// use plimsoll_context::{PriceSheet, Rates};
    /// let mut sheet = PriceSheet::of(Rates::FREE);
    /// let age = Some(Duration::from_secs(301));
    /// assert!(!sheet.is_cold_after(age), "its lifetime is not known");
    /// sheet.cache_lives = Some(Duration::from_secs(300));
    /// assert!(sheet.is_cold_after(age) && !sheet.is_cold_after(None));
    /// ```
    #[must_use]
    pub fn is_cold_after(&self, age: Option<Duration>) -> bool {
        let expired = age.zip(self.lives()).map(|(age, lives)| age >= lives);
        expired.unwrap_or(false)
    }
}

impl Usage {
    /// Returns the cost of this usage at these rates, or `None` if the price of some of its tokens
    /// is unknown.
    ///
    /// Each token is billed once, at the price of its kind. The price of tokens written with longer
    /// retention is only known to a [`PriceSheet`], so the result is `None` for these.
    #[must_use]
    pub fn estimated_cost(&self, rates: &Rates) -> Option<Money> {
        self.cost(rates, None)
    }

    fn cost(&self, rates: &Rates, longer: Option<Money>) -> Option<Money> {
        let usual = self.cache_write.minus(self.cache_write_longer);
        let part = |tokens: Tokens, rate: Option<Money>| match rate {
            _ if tokens == Tokens::ZERO => Some(0),
            rate => rate.map(|rate| u128::from(tokens.0) * u128::from(rate.0)),
        };
        let sum = part(self.input, Some(rates.input))?
            + part(self.output, Some(rates.output))?
            + part(self.cache_read, rates.cache_read)?
            + part(usual, rates.cache_write)?
            + part(self.cache_write.minus(usual), longer)?;
        Some(Money::from_millionths(sum))
    }
}

impl Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Money {
    /// Formats the amount in dollars, with four decimals below one dollar and two above. A smaller
    /// amount has as many as it needs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.0 as f64 / 1e9;
        if self.0 > 0 && dollars < 0.0001 {
            write!(f, "${}", format!("{dollars:.9}").trim_end_matches('0'))
        } else if dollars < 1.0 {
            write!(f, "${dollars:.4}")
        } else {
            write!(f, "${dollars:.2}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(dollars: f64) -> Money {
        Money::from_dollars(dollars).unwrap()
    }

    #[test]
    fn an_unknown_price_of_the_cache_is_bounded() {
        let rates = Rates {
            input: dollars(2.0),
            output: dollars(10.0),
            cache_read: None,
            cache_write: None,
        };
        let at_most = rates.at_most();
        assert_eq!(at_most.cache_read, Some(dollars(2.0)));
        assert_eq!(at_most.cache_write, Some(dollars(4.0)));
    }

    #[test]
    fn no_amount_is_shown_as_nothing() {
        for (money, shown) in [
            (Money(0), "$0.0000"),
            (Money(1), "$0.000000001"),
            (Money(10_000), "$0.00001"),
            (Money(100_000), "$0.0001"),
            (Money(123_456_789), "$0.1235"),
            (dollars(2.0), "$2.00"),
        ] {
            assert_eq!(money.to_string(), shown);
        }
    }

    #[test]
    fn nothing_is_billed_twice() {
        let rates = Rates {
            input: dollars(2.5),
            output: dollars(10.0),
            cache_read: Some(dollars(1.25)),
            cache_write: Some(dollars(2.5)),
        };
        let usage = Usage {
            input: Tokens(200_000),
            output: Tokens(100_000),
            reasoning: Tokens(60_000),
            cache_read: Tokens(800_000),
            cache_write: Tokens(0),
            ..Usage::default()
        };
        let cost = usage.estimated_cost(&rates).unwrap();
        assert_eq!(cost, dollars(0.5 + 1.0 + 1.0));
        assert_eq!(cost.to_string(), "$2.50");
        assert_eq!(dollars(0.00123).to_string(), "$0.0012");
        for number in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = Money::from_dollars(number).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("{number} is no amount of money; give dollars, such as 0.50")
            );
        }
    }

    #[test]
    fn the_unknown_stays_unknown_and_is_never_nothing() {
        let rates = Rates {
            input: dollars(1.0),
            output: dollars(2.0),
            cache_read: None,
            cache_write: None,
        };
        let fresh = Usage {
            input: Tokens(1_000_000),
            ..Usage::default()
        };
        assert_eq!(fresh.estimated_cost(&rates), Some(dollars(1.0)));
        let cached = Usage {
            cache_read: Tokens(1),
            ..fresh
        };
        assert_eq!(cached.estimated_cost(&rates), None);
        let most = Usage {
            output: Tokens::MAX,
            ..fresh
        };
        assert_eq!(most.estimated_cost(&rates).unwrap(), Money(u64::MAX));
    }
}
