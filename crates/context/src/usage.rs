//! [`Usage`]: the tokens that model calls used, with the same meaning for every provider. Prices
//! are in `price.rs`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::tokens::Tokens;

/// The tokens used by one model call or by several.
///
/// `processed = input + cache_read + cache_write`; `total_tokens = processed + output`; `reasoning`
/// is a part of `output`, `cache_write_longer` of `cache_write`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Fresh input: neither read from a cache nor written to one.
    pub input: Tokens,
    /// All tokens that the model wrote, including reasoning.
    pub output: Tokens,
    /// The part of `output` that was reasoning.
    pub reasoning: Tokens,
    /// Input read from the provider's prompt cache.
    pub cache_read: Tokens,
    /// Input written to the provider's prompt cache.
    pub cache_write: Tokens,
    /// The part of `cache_write` with a longer retention than usual, at its own price.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cache_write_longer: Tokens,
}

impl fmt::Display for Usage {
    /// Formats the tokens that were read and written, such as "read 9120 (71 % cached), wrote 310".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (read, wrote) = (self.processed(), self.output);
        let cached = self.cache_hit_rate() * 100.0;
        write!(f, "read {read} ({cached:.0} % cached), wrote {wrote}")
    }
}

/// The largest usage of one call that is believed. No model has a window of this size.
pub const MAX_USAGE: Tokens = Tokens(100_000_000);

impl Usage {
    /// Returns `true` if one call can have used this.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        self.total_tokens() <= MAX_USAGE
    }

    /// Returns the number of tokens that the model read.
    #[must_use]
    pub fn processed(&self) -> Tokens {
        self.input + self.cache_read + self.cache_write
    }

    /// Returns the number of tokens that the model read and wrote.
    #[must_use]
    pub fn total_tokens(&self) -> Tokens {
        self.processed() + self.output
    }

    /// Returns the share of the input that was read from the cache, `0.0..=1.0`; 0 if there was no
    /// input.
    #[must_use]
    pub fn cache_hit_rate(&self) -> f64 {
        let processed = self.processed().0;
        if processed == 0 {
            return 0.0;
        }
        self.cache_read.0 as f64 / processed as f64
    }

    /// Returns the difference of two usages; no field is less than zero.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            input: self.input.minus(part.input),
            output: self.output.minus(part.output),
            reasoning: self.reasoning.minus(part.reasoning),
            cache_read: self.cache_read.minus(part.cache_read),
            cache_write: self.cache_write.minus(part.cache_write),
            cache_write_longer: self.cache_write_longer.minus(part.cache_write_longer),
        }
    }

    /// Returns the sum of two usages.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            reasoning: self.reasoning + other.reasoning,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            cache_write_longer: self.cache_write_longer + other.cache_write_longer,
        }
    }
}

fn is_none(tokens: &Tokens) -> bool {
    *tokens == Tokens::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_work_counts_the_same() {
        let openai = Usage {
            input: Tokens(200),
            cache_read: Tokens(800),
            ..Usage::default()
        };
        assert_eq!(openai.processed(), Tokens(1000));
        assert!((openai.cache_hit_rate() - 0.8).abs() < 1e-12);
        assert_eq!(Usage::default().cache_hit_rate(), 0.0);
        let twice = openai.combine(Usage {
            output: Tokens(5),
            reasoning: Tokens(3),
            ..openai
        });
        assert_eq!(twice.total_tokens(), Tokens(2005));
    }
}
