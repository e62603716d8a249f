//! [`Money`], [`Rates`] and [`PriceSheet`]: what a model costs, as far as it is known. Not which
//! model costs what, which is data of the providers; not what a plan costs, which is `economy.rs`.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::CacheRetention;
use crate::tokens::{Ppm, Tokens};
use crate::usage::Usage;

/// Money in billionths of a dollar: integers, so that sums are exact.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Money(pub u64);

/// What a million tokens cost. What is not known is `None`, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Of fresh input.
    pub input: Money,
    /// Of output, reasoning included.
    pub output: Money,
    /// Of input read from the cache.
    pub cache_read: Option<Money>,
    /// Of input written to the cache, for its usual lifetime.
    pub cache_write: Option<Money>,
}

/// What a model costs, and how its prompt cache behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceSheet {
    /// What tokens cost.
    pub rates: Rates,
    /// How long an entry of the cache lives after it was last used; `None` where nobody says.
    pub cache_lives: Option<Duration>,
    /// A longer lifetime that can be bought, where there is one.
    pub longer: Option<LongerCache>,
    /// The least that can be cached; a shorter prefix is fresh input every time. `None` where it is
    /// not known.
    pub min_cacheable: Option<Tokens>,
    /// How long entries are asked to be kept: what is written then costs and lives accordingly.
    #[serde(default)]
    pub retention: CacheRetention,
}

/// A longer lifetime of cache entries, with its own price of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongerCache {
    /// How long an entry lives after it was last used.
    pub lives: Duration,
    /// Of a million tokens written.
    pub cache_write: Money,
}

impl Money {
    /// From dollars; `None` unless they are finite and not negative.
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (dollars.is_finite() && dollars >= 0.0).then(|| Self((dollars * 1e9).round() as u64))
    }

    /// `self - other`, or zero where `other` is larger.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// What `tokens` cost where this is the price of a million.
    #[must_use]
    pub fn of(self, tokens: Tokens) -> Self {
        Self::from_millionths(u128::from(tokens.0) * u128::from(self.0))
    }

    fn from_millionths(millionths: u128) -> Self {
        Self(u64::try_from(millionths / 1_000_000).unwrap_or(u64::MAX))
    }
}

impl Rates {
    /// Of a model that costs nothing, such as one on this machine.
    pub const FREE: Self = Self {
        input: Money(0),
        output: Money(0),
        cache_read: Some(Money(0)),
        cache_write: Some(Money(0)),
    };

    /// The same with what is not known at twice the price of fresh input, the most that any provider
    /// asks for it.
    #[must_use]
    pub fn at_most(self) -> Self {
        let most = Some(Money(self.input.0.saturating_mul(2)));
        Self {
            cache_read: self.cache_read.or(most),
            cache_write: self.cache_write.or(most),
            ..self
        }
    }
}

impl PriceSheet {
    /// A sheet of rates alone: nothing is known of the cache but what it costs.
    #[must_use]
    pub const fn of(rates: Rates) -> Self {
        Self {
            rates,
            cache_lives: None,
            longer: None,
            min_cacheable: None,
            retention: CacheRetention::Usual,
        }
    }

    /// The same where entries are asked to be kept so long.
    #[must_use]
    pub const fn kept(self, retention: CacheRetention) -> Self {
        Self { retention, ..self }
    }

    /// The same with what is not known at twice the price of fresh input, the most that any provider
    /// asks for it.
    #[must_use]
    pub fn at_most(self) -> Self {
        let most = LongerCache {
            lives: Duration::ZERO,
            cache_write: Money(self.rates.input.0.saturating_mul(2)),
        };
        Self {
            rates: self.rates.at_most(),
            longer: Some(self.longer.unwrap_or(most)),
            ..self
        }
    }

    /// What usage costs: each token is billed once, as what it was, and what was written to be kept
    /// longer at the price of that. `None` where it holds tokens of a kind whose price is not known.
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
    /// assert_eq!(sheet.cost(usage), None, "what longer costs is not known");
    /// sheet.longer = Some(LongerCache {
    ///     lives: Duration::from_secs(3_600),
    ///     cache_write: dollars(6.0),
    /// });
    /// assert_eq!(sheet.cost(usage), Some(dollars(0.6 * 3.75 + 0.4 * 6.0)));
    /// ```
    #[must_use]
    pub fn cost(&self, usage: Usage) -> Option<Money> {
        let longer = self.longer.map(|longer| longer.cache_write);
        usage.cost(&self.rates, longer)
    }

    /// What writing a million tokens of messages to the cache costs, as they are asked to be kept.
    #[must_use]
    pub fn rewrite(&self) -> Option<Money> {
        match self.retention {
            CacheRetention::Long => self.longer.map(|longer| longer.cache_write),
            CacheRetention::Usual | CacheRetention::Head => self.rates.cache_write,
        }
    }

    /// How long messages live in the cache, as they are asked to be kept.
    #[must_use]
    pub fn lives(&self) -> Option<Duration> {
        match self.retention {
            CacheRetention::Long => self.longer.map(|longer| longer.lives),
            CacheRetention::Usual | CacheRetention::Head => self.cache_lives,
        }
    }

    /// The chance that the cache is cold `age` after the last call: all or nothing, and nothing
    /// where age or lifetime is not known.
    ///
    /// ```
    /// use std::time::Duration;
    /// use plimsoll_context::{Ppm, PriceSheet, Rates};
    /// let mut sheet = PriceSheet::of(Rates::FREE);
    /// let age = Some(Duration::from_secs(301));
    /// assert_eq!(sheet.cold_after(age), Ppm(0), "its lifetime is not known");
    /// sheet.cache_lives = Some(Duration::from_secs(300));
    /// assert_eq!(sheet.cold_after(age), Ppm::ONE);
    /// assert_eq!(sheet.cold_after(None), Ppm(0));
    /// ```
    #[must_use]
    pub fn cold_after(&self, age: Option<Duration>) -> Ppm {
        match (age, self.lives()) {
            (Some(age), Some(lives)) if age >= lives => Ppm::ONE,
            _ => Ppm(0),
        }
    }
}

impl Usage {
    /// What this usage costs at these rates: each token is billed once, as what it was. `None`
    /// where it holds tokens of a kind whose price is not known: so of what was written to be kept
    /// longer, whose price a [`PriceSheet`] has.
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

    fn dollars(dollars: f64) -> Money {
        Money::from_dollars(dollars).unwrap()
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
        assert_eq!(Money::from_dollars(-1.0), None);
        assert_eq!(Money::from_dollars(f64::NAN), None);
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
