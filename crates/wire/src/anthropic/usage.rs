//! The API's usage, converted to Plimsoll's definition. Cache entries that live for an hour cost more
//! than those for five minutes, so they are counted separately.

use plimsoll_context::{Tokens, Usage};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Usage in the API's format. `input_tokens` only counts fresh input. A number of the wrong type counts
/// as absent, because a reply must not fail because of a count.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    /// Input that was neither read from nor written to the cache.
    #[serde(deserialize_with = "count")]
    pub(super) input_tokens: Option<u64>,
    /// All output, including thinking.
    #[serde(deserialize_with = "count")]
    pub(super) output_tokens: Option<u64>,
    /// Input written to the cache.
    #[serde(deserialize_with = "count")]
    pub(super) cache_creation_input_tokens: Option<u64>,
    /// Input read from the cache.
    #[serde(deserialize_with = "count")]
    pub(super) cache_read_input_tokens: Option<u64>,
    /// Input written to the cache, by lifetime.
    pub(super) cache_creation: Option<CacheCreation>,
    /// All other keys.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// Input written to the cache, by lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct CacheCreation {
    /// For five minutes.
    #[serde(deserialize_with = "count")]
    pub(super) ephemeral_5m_input_tokens: Option<u64>,
    /// For an hour.
    #[serde(deserialize_with = "count")]
    pub(super) ephemeral_1h_input_tokens: Option<u64>,
}

impl WireUsage {
    /// Returns the usage in Plimsoll's definition, or `None` if no counts were reported.
    #[must_use]
    pub(super) fn normalized(&self) -> Option<Usage> {
        if self.input_tokens.is_none() && self.output_tokens.is_none() {
            return None;
        }
        let tokens = |count: Option<u64>| Tokens(count.unwrap_or_default());
        let output = tokens(self.output_tokens);
        Some(Usage {
            input: tokens(self.input_tokens),
            output,
            reasoning: tokens(self.reasoning()).min(output),
            cache_read: tokens(self.cache_read_input_tokens),
            cache_write: tokens(self.cache_write()),
            cache_write_longer: tokens(self.for_an_hour()).min(tokens(self.cache_write())),
        })
    }

    /// Merges a later report of the same reply into this one. Its counts are totals, and replace
    /// earlier ones. Some gateways report 0 for unknown counts in one of the two reports, so 0 never
    /// replaces a count.
    #[must_use]
    pub(super) fn with_later(self, later: Self) -> Self {
        let newest =
            |old: Option<u64>, new: Option<u64>| new.filter(|new| *new > 0).or(old).or(new);
        let mut extra = self.extra;
        extra.extend(later.extra);
        Self {
            input_tokens: newest(self.input_tokens, later.input_tokens),
            output_tokens: newest(self.output_tokens, later.output_tokens),
            cache_creation_input_tokens: newest(
                self.cache_creation_input_tokens,
                later.cache_creation_input_tokens,
            ),
            cache_read_input_tokens: newest(
                self.cache_read_input_tokens,
                later.cache_read_input_tokens,
            ),
            cache_creation: later.cache_creation.or(self.cache_creation),
            extra,
        }
    }

    fn cache_write(&self) -> Option<u64> {
        let parts = self.cache_creation.map(|parts| {
            let short = parts.ephemeral_5m_input_tokens.unwrap_or_default();
            short.saturating_add(parts.ephemeral_1h_input_tokens.unwrap_or_default())
        });
        self.cache_creation_input_tokens.max(parts)
    }

    fn for_an_hour(&self) -> Option<u64> {
        self.cache_creation?.ephemeral_1h_input_tokens
    }

    /// Returns the reasoning tokens. The API itself does not report them, but some compatible servers
    /// do.
    fn reasoning(&self) -> Option<u64> {
        let details = self.extra.get("output_tokens_details")?;
        let mut keys = ["thinking_tokens", "reasoning_tokens"].iter();
        keys.find_map(|key| details.get(key)?.as_u64())
    }
}

/// Reads a count. Anything else counts as absent.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(from)?.as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> WireUsage {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn nothing_counts_twice() {
        let usage = read(
            r#"{"input_tokens":200,"cache_creation_input_tokens":300,"cache_read_input_tokens":500,
                "cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},
                "output_tokens":50,"service_tier":"standard"}"#,
        );
        let usage = usage.normalized().unwrap();
        assert_eq!(usage.processed(), Tokens(1_000));
        assert_eq!(usage.total_tokens(), Tokens(1_050));
        assert_eq!(usage.cache_write, Tokens(300));
        assert_eq!(usage.cache_write_longer, Tokens(200));
        assert!((usage.cache_hit_rate() - 0.5).abs() < 1e-12);
        // The API accepts only one of the two spellings.
        let parts = read(r#"{"input_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":7}}"#);
        let parts = parts.normalized().unwrap();
        assert_eq!(
            (parts.cache_write, parts.cache_write_longer),
            (Tokens(7), Tokens(7))
        );
        let odd = read(r#"{"input_tokens":"many","output_tokens":null}"#);
        assert_eq!(odd.normalized(), None);
    }

    #[test]
    fn a_later_report_goes_before_an_earlier_one() {
        let start = read(r#"{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":1}"#);
        let end = read(r#"{"output_tokens":25}"#);
        let usage = start.with_later(end).normalized().unwrap();
        assert_eq!((usage.input, usage.output), (Tokens(10), Tokens(25)));
        assert_eq!(usage.cache_read, Tokens(90));
        let start = read(r#"{"input_tokens":0,"output_tokens":0}"#);
        let end = read(r#"{"input_tokens":12,"output_tokens":0}"#);
        let usage = start.with_later(end).normalized().unwrap();
        assert_eq!((usage.input, usage.output), (Tokens(12), Tokens(0)));
    }
}
