//! [`RetryConfig`]: when a failed model call is made again. Not what is retried; a failure says
//! that itself.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use plimsoll_agent::Failure;
use serde::{Deserialize, Serialize};

/// Exponential backoff with jitter. A provider's Retry-After goes before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// Calls in all, the first one included. Default 3; at least 1.
    pub max_attempts: u32,
    /// The first wait. Default 1 s.
    pub initial: Duration,
    /// Each wait is this many times the one before. Default 2.
    pub factor: u32,
    /// No wait of our own is longer. Default 30 s.
    pub cap: Duration,
    /// A provider that asks to wait longer is not waited for. Default 120 s.
    pub retry_after_cap: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial: Duration::from_secs(1),
            factor: 2,
            cap: Duration::from_secs(30),
            retry_after_cap: Duration::from_secs(120),
        }
    }
}

impl RetryConfig {
    /// No second try.
    #[must_use]
    pub fn never() -> Self {
        Self {
            max_attempts: 1,
            ..Self::default()
        }
    }

    /// How long to wait before the next try after try number `attempt` (from 1) failed; `None`
    /// where there is none.
    #[must_use]
    pub fn wait(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        if attempt >= self.max_attempts || !failure.is_retryable() {
            return None;
        }
        if let Some(asked) = failure.retry_after_ms().map(Duration::from_millis) {
            return (asked <= self.retry_after_cap).then_some(asked);
        }
        let factor = self.factor.max(1).saturating_pow(attempt.saturating_sub(1));
        let wait = self.initial.saturating_mul(factor).min(self.cap);
        // ± 20 %, so that many agents do not come back at once. A fresh hasher is random enough.
        let jitter = RandomState::new().hash_one(attempt) % 401;
        Some(wait.mul_f64((800 + jitter) as f64 / 1000.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(retry_after_ms: Option<u64>) -> Failure {
        Failure::RateLimited {
            retry_after_ms,
            message: String::new(),
        }
    }

    #[test]
    fn backs_off_with_jitter_and_a_cap() {
        let config = RetryConfig {
            max_attempts: 9,
            ..RetryConfig::default()
        };
        for (attempt, secs) in [(1, 1.0), (2, 2.0), (3, 4.0), (6, 30.0), (8, 30.0)] {
            let wait = config.wait(attempt, &limited(None)).unwrap().as_secs_f64();
            assert!(
                (secs * 0.799..=secs * 1.201).contains(&wait),
                "{attempt}: {wait}"
            );
        }
    }

    #[test]
    fn the_provider_is_asked_first() {
        let config = RetryConfig::default();
        assert_eq!(
            config.wait(1, &limited(Some(7_000))),
            Some(Duration::from_secs(7))
        );
        assert_eq!(
            config.wait(1, &limited(Some(3_600_000))),
            None,
            "an hour is not waited for"
        );
        assert_eq!(config.wait(3, &limited(None)), None, "three tries in all");
        let refused = Failure::Auth {
            message: String::new(),
        };
        assert_eq!(config.wait(1, &refused), None);
    }
}
