//! [`RetryConfig`]: when failed model calls are retried. Whether a failure can be retried depends on the
//! failure itself.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use plimsoll_agent::Failure;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// Maximum number of attempts after failures that waiting seldom cures: a malformed answer, a server
/// that cannot be reached, a response that is cut.
pub const FEW_ATTEMPTS: u32 = 3;

/// Maximum deviation of a wait from the backoff, as a fraction.
const JITTER: f64 = 0.2;

/// Exponential backoff with jitter. A provider's Retry-After can make a wait longer, never shorter.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// Maximum number of attempts, including the first. Default 3; at least 1. After failures that
    /// waiting seldom cures, at most [`FEW_ATTEMPTS`].
    #[default(3)]
    pub max_attempts: u32,
    /// The first wait. Default 1 s.
    #[default(Duration::from_secs(1))]
    pub initial: Duration,
    /// Growth factor of the wait between attempts. Default 2.
    #[default(2)]
    pub factor: u32,
    /// The longest wait that the provider did not ask for, before the jitter of 20 %. Default 30 s.
    #[default(Duration::from_secs(30))]
    pub cap: Duration,
    /// The longest wait that a provider may ask for. Beyond it, the call fails. Default 120 s.
    #[default(Duration::from_secs(120))]
    pub retry_after_cap: Duration,
}

impl RetryConfig {
    /// Returns a configuration without retries.
    #[must_use]
    pub fn never() -> Self {
        Self {
            max_attempts: 1,
            ..Self::default()
        }
    }

    /// Returns how long to wait after attempt number `attempt` (from 1) has failed. `None` if there
    /// is no further attempt.
    #[must_use]
    pub fn wait(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        if attempt >= self.attempts(failure) || !failure.is_retryable() {
            return None;
        }
        let (shortest, longest) = self.range(attempt, retry_after(failure))?;
        // A fresh hasher is random enough.
        let share = RandomState::new().hash_one(attempt) % 1001;
        Some(shortest + (longest - shortest).mul_f64(share as f64 / 1000.0))
    }

    fn attempts(&self, failure: &Failure) -> u32 {
        match failure {
            Failure::Garbled { .. } | Failure::Transient { status: None, .. } => {
                self.max_attempts.min(FEW_ATTEMPTS)
            }
            _ => self.max_attempts,
        }
    }

    /// Returns the shortest and the longest wait. A random wait between them keeps many agents from
    /// retrying at the same time. `None` if the provider asks for a longer wait than is allowed.
    fn range(&self, attempt: u32, wanted: Option<Duration>) -> Option<(Duration, Duration)> {
        let factor = self.factor.max(1).saturating_pow(attempt.saturating_sub(1));
        let backoff = self.initial.saturating_mul(factor).min(self.cap);
        match wanted {
            Some(wanted) if wanted > self.retry_after_cap => None,
            // Never sooner than requested. A server that answers "at once" sends that to all
            // clients.
            Some(wanted) => {
                let wait = wanted.max(backoff);
                Some((wait, wait.mul_f64(1.0 + JITTER)))
            }
            None => Some((backoff.mul_f64(1.0 - JITTER), backoff.mul_f64(1.0 + JITTER))),
        }
    }

    /// Returns the final failure, which says so if the provider asked for too long a wait.
    pub(crate) fn given_up(&self, attempt: u32, mut failure: Failure) -> Failure {
        let wanted = retry_after(&failure).filter(|wanted| *wanted > self.retry_after_cap);
        if let Some(wanted) = wanted.filter(|_| attempt < self.attempts(&failure))
            && let Failure::RateLimited { message, .. } | Failure::Transient { message, .. } =
                &mut failure
        {
            *message += &format!(
                "; it asks to wait {} s, and no more than {} s is waited for (retry.retry_after_cap)",
                wanted.as_secs(),
                self.retry_after_cap.as_secs_f64()
            );
        }
        failure
    }
}

fn retry_after(failure: &Failure) -> Option<Duration> {
    failure.retry_after_ms().map(Duration::from_millis)
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

    fn range(config: &RetryConfig, attempt: u32, asked_ms: Option<u64>) -> (u128, u128) {
        let asked = asked_ms.map(Duration::from_millis);
        let (shortest, longest) = config.range(attempt, asked).unwrap();
        (shortest.as_millis(), longest.as_millis())
    }

    #[test]
    fn backs_off_with_jitter_and_a_cap() {
        let config = RetryConfig {
            max_attempts: 9,
            ..RetryConfig::default()
        };
        for (attempt, expected) in [
            (1, (800, 1_200)),
            (2, (1_600, 2_400)),
            (3, (3_200, 4_800)),
            (6, (24_000, 36_000)),
            (8, (24_000, 36_000)),
        ] {
            assert_eq!(range(&config, attempt, None), expected, "{attempt}");
        }
    }

    #[test]
    fn failures_that_waiting_seldom_cures_are_retried_less() {
        let config = RetryConfig {
            max_attempts: 10,
            ..RetryConfig::default()
        };
        let transient = |status| Failure::Transient {
            status,
            retry_after_ms: None,
            message: String::new(),
        };
        let garbled = Failure::Garbled {
            message: String::new(),
        };
        for (failure, most) in [
            (transient(Some(529)), 10),
            (limited(None), 10),
            (transient(None), 3),
            (garbled, 3),
        ] {
            assert!(config.wait(most - 1, &failure).is_some(), "{failure:?}");
            assert_eq!(config.wait(most, &failure), None, "{failure:?}");
        }
    }

    #[test]
    fn every_wait_is_within_its_range() {
        let config = RetryConfig::default();
        for (attempt, asked_ms) in [(1, None), (2, None), (1, Some(0)), (2, Some(7_001))] {
            let (shortest, longest) = config
                .range(attempt, asked_ms.map(Duration::from_millis))
                .unwrap();
            for _ in 0..1_000 {
                let wait = config.wait(attempt, &limited(asked_ms)).unwrap();
                assert!((shortest..=longest).contains(&wait), "{wait:?}");
            }
        }
    }

    #[test]
    fn the_provider_is_asked_first() {
        let config = RetryConfig::default();
        // Never sooner than requested, and never sooner than without a Retry-After.
        for (attempt, asked_ms, expected) in [
            (1, 7_000, (7_000, 8_400)),
            (1, 0, (1_000, 1_200)),
            (2, 0, (2_000, 2_400)),
            (2, 1_500, (2_000, 2_400)),
            (1, 120_000, (120_000, 144_000)),
        ] {
            assert_eq!(
                range(&config, attempt, Some(asked_ms)),
                expected,
                "{attempt} {asked_ms}"
            );
        }
        let waits = (0..64).map(|_| config.wait(1, &limited(Some(7_000))));
        let different: std::collections::HashSet<_> = waits.collect();
        assert!(different.len() > 1, "all come back at once");
        assert_eq!(
            config.wait(1, &limited(Some(3_600_000))),
            None,
            "an hour is not waited for"
        );
        assert_eq!(config.wait(1, &limited(Some(u64::MAX))), None);
        assert_eq!(config.wait(3, &limited(None)), None, "three tries in all");
        let says = |attempt, asked| config.given_up(attempt, limited(asked)).to_string();
        let hour = says(1, Some(3_600_000));
        let told = "; it asks to wait 3600 s, and no more than 120 s is waited for (retry.retry_after_cap)";
        assert!(hour.ends_with(told), "{hour}");
        // It would have waited if an attempt had been left.
        assert!(!says(3, Some(7_000)).contains("asks to wait"));
        assert!(!says(3, Some(3_600_000)).contains("asks to wait"));
        let refused = Failure::Auth {
            message: String::new(),
        };
        assert_eq!(config.wait(1, &refused), None);
    }
}
