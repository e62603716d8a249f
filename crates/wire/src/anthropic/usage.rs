//! The API's usage, converted to Plimsoll's definition. Cache entries that live for an hour cost more
//! than those for five minutes, so they are counted separately.

use plimsoll_context::{Tokens, Usage};
use serde_json::{Map, Value};

/// The usage as the API reports it. A number of the wrong type counts as absent.
#[derive(Debug, Clone, Default)]
pub(super) struct WireUsage(Map<String, Value>);

impl WireUsage {
    /// Merges a later report of the same reply into this one. Its counts are totals, and replace
    /// earlier ones. Some gateways report 0 for unknown counts in one of the two reports, so 0 never
    /// replaces a count.
    pub(super) fn take(&mut self, later: Map<String, Value>) {
        for (key, value) in later {
            let is_told = match &value {
                Value::Number(count) => count.as_u64().is_some_and(|count| count > 0),
                Value::Object(_) => true,
                _ => continue,
            };
            if is_told || !self.0.contains_key(&key) {
                self.0.insert(key, value);
            }
        }
    }

    /// Returns the usage in Plimsoll's definition, or `None` if no counts were reported.
    pub(super) fn normalized(&self) -> Option<Usage> {
        let count = |key: &str| self.0.get(key).and_then(Value::as_u64);
        let of = |key: &str, inner: &str| self.0.get(key)?.get(inner)?.as_u64();
        let (input, output) = (count("input_tokens"), count("output_tokens"));
        if input.is_none() && output.is_none() {
            return None;
        }
        let short = of("cache_creation", "ephemeral_5m_input_tokens").unwrap_or_default();
        let hour = of("cache_creation", "ephemeral_1h_input_tokens").unwrap_or_default();
        let written = count("cache_creation_input_tokens").unwrap_or_default();
        let written = written.max(short.saturating_add(hour));
        // The API itself does not report the reasoning tokens, but some compatible servers do.
        let reasoning = of("output_tokens_details", "thinking_tokens")
            .or_else(|| of("output_tokens_details", "reasoning_tokens"));
        let output = Tokens(output.unwrap_or_default());
        Some(Usage {
            input: Tokens(input.unwrap_or_default()),
            output,
            reasoning: Tokens(reasoning.unwrap_or_default()).min(output),
            cache_read: Tokens(count("cache_read_input_tokens").unwrap_or_default()),
            cache_write: Tokens(written),
            cache_write_longer: Tokens(hour.min(written)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> WireUsage {
        read_all([json])
    }

    fn read_all<const N: usize>(reports: [&str; N]) -> WireUsage {
        let mut usage = WireUsage::default();
        for report in reports {
            usage.take(serde_json::from_str(report).unwrap());
        }
        usage
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
        let start = r#"{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":1}"#;
        let end = r#"{"output_tokens":25}"#;
        let usage = read_all([start, end]).normalized().unwrap();
        assert_eq!((usage.input, usage.output), (Tokens(10), Tokens(25)));
        assert_eq!(usage.cache_read, Tokens(90));
        let start = r#"{"input_tokens":0,"output_tokens":0}"#;
        let end = r#"{"input_tokens":12,"output_tokens":0}"#;
        let usage = read_all([start, end]).normalized().unwrap();
        assert_eq!((usage.input, usage.output), (Tokens(12), Tokens(0)));
    }
}
