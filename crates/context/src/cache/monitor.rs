//! [`CacheMonitor`]: compares expected with actual reads from the prompt cache.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::item::Item;
use crate::message::Message;
use crate::plan::Plan;
use crate::tokens::{Ppm, Tokens};
use crate::usage::Usage;

/// The share of the expected tokens below which a read counts as a miss. Providers cache in steps
/// of about a hundred tokens, so a slightly shorter read is no miss.
pub const CLEARLY_SHORT: Ppm = Ppm(800_000);
/// The smallest prefix that is expected to be cached: most providers do not cache shorter ones.
pub const LEAST_EXPECTED: Tokens = Tokens(1_024);

/// Compares the tokens that each call read from the cache with the tokens that the previous call
/// should have left there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheMonitor {
    model: String,
    /// The system prompt and the tools of the last run.
    head: Option<Fingerprint>,
    left: Option<CacheState>,
    /// Whether the provider has ever reported reading or writing a cache. Without such a report, no
    /// misses are counted.
    reports: bool,
    tally: CacheTally,
}

/// A call that read clearly less from the cache than the previous call should have left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheMiss {
    /// Tokens of the previous request that Plimsoll has not rewritten since.
    pub expected: Tokens,
    /// Tokens read from the cache.
    pub read: Tokens,
}

/// The expected and the actual cache reads of a run's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheTally {
    /// Calls that were expected to read from the cache.
    pub calls: u64,
    /// Tokens that these calls were expected to read.
    pub expected: Tokens,
    /// Tokens that they read.
    pub read: Tokens,
    /// Calls that read clearly less than expected.
    pub misses: u64,
}

/// The state of the cache after the last call.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CacheState {
    /// Tokens of the last request, as reported.
    sent: Tokens,
    /// How many of these tokens are still unchanged.
    still: Tokens,
    /// The size of the same request by our counter, and the part of this size that is not messages.
    counted: Tokens,
    overhead: Tokens,
}

impl CacheMonitor {
    /// Records the model, system prompt and tools that every request of a run carries. Nothing is
    /// expected of the next call if one of them has changed.
    pub fn started(&mut self, model: &str, system: &str, tools: &[String]) {
        let tools = Message::system(tools.join("\n"));
        let head = Some(Fingerprint::of([&Message::system(system), &tools]));
        if self.head != head {
            self.left = None;
        }
        if self.model != model {
            (self.left, self.reports) = (None, false);
        }
        (self.model, self.head) = (model.to_owned(), head);
    }

    /// Resets the tally at the beginning of a run.
    pub fn begin(&mut self) {
        self.tally = CacheTally::default();
    }

    /// Records an applied plan; `items` is the view after it.
    pub fn planned(&mut self, plan: &Plan, items: &[Item]) {
        if let (Some(first), Some(left)) = (plan.rewrites_from, &mut self.left) {
            let before = items.iter().take_while(|item| item.seq < first);
            let before = left.overhead + before.map(|item| item.tokens).sum();
            let scale = u128::from(left.sent.0) * u128::from(before.0);
            let still = scale / u128::from(left.counted.0.max(1));
            let still = Tokens(u64::try_from(still).unwrap_or(u64::MAX));
            left.still = left.still.min(still);
        }
    }

    /// Records that the next request shares no prefix with the last one, for example because
    /// further tools are declared or the view was restored to an earlier state.
    pub fn rewound(&mut self) {
        self.left = None;
    }

    /// Records an answered call: its size by our counter, the size of the view in it, and the usage
    /// that the provider reported. Returns the miss, if it was one.
    pub fn answered(
        &mut self,
        counted: Tokens,
        view: Tokens,
        usage: Option<&Usage>,
    ) -> Option<CacheMiss> {
        let left = self.left.take();
        let usage = usage?;
        let read = usage.cache_read;
        self.reports |= read + usage.cache_write > Tokens::ZERO;
        self.left = Some(CacheState {
            sent: usage.processed(),
            still: usage.processed(),
            counted,
            overhead: counted.minus(view),
        });
        let expected = left.map_or(Tokens::ZERO, |left| left.still);
        if expected < LEAST_EXPECTED || !self.reports {
            return None;
        }
        self.tally.calls += 1;
        self.tally.expected += expected;
        self.tally.read += read;
        if read >= expected.share(CLEARLY_SHORT) {
            return None;
        }
        self.tally.misses += 1;
        Some(CacheMiss { expected, read })
    }

    /// Returns how many tokens the next call can read from the cache if the provider still has the
    /// entry of the last call. Returns zero for a provider that reports no cache.
    #[must_use]
    pub fn readable(&self) -> Tokens {
        let left = self.left.as_ref().filter(|_| self.reports);
        let still = left.map(|left| left.still).unwrap_or_default();
        if still >= LEAST_EXPECTED {
            still
        } else {
            Tokens::ZERO
        }
    }

    /// Returns the expected and the actual reads of this run's calls.
    #[must_use]
    pub fn tally(&self) -> CacheTally {
        self.tally
    }
}

impl CacheTally {
    /// Returns `true` if nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the share of the expected tokens that was read, or `None` if none were expected.
    #[must_use]
    pub fn share(&self) -> Option<Ppm> {
        let million = u128::from(Ppm::ONE.0);
        let share = (u128::from(self.read.0) * million).checked_div(u128::from(self.expected.0))?;
        Some(Ppm(u64::try_from(share).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for CacheMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, read } = self;
        write!(f, "read {read} of {expected} tokens from the cache")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Seq;
    use crate::plan::{Recall, Trigger};

    fn usage(input: u64, read: u64) -> Usage {
        Usage {
            input: Tokens(input),
            cache_read: Tokens(read),
            ..Usage::default()
        }
    }

    fn rewriting_from(first: u64) -> Plan {
        Plan {
            why: Trigger::Request,
            stages: vec!["evict".into()],
            edits: Vec::new(),
            before: Tokens(0),
            frees: Tokens(1),
            rewrites_from: Some(Seq(first)),
            recall: Recall::None,
            price: None,
        }
    }

    fn start(monitor: &mut CacheMonitor, model: &str, system: &str, tool: &str) {
        monitor.started(model, system, &[tool.to_owned()]);
    }

    fn answer(monitor: &mut CacheMonitor, usage: &Usage) -> Option<CacheMiss> {
        monitor.answered(Tokens(9_000), Tokens(8_000), Some(usage))
    }

    /// Returns a monitor that has recorded a call of 10,000 tokens to a provider with a working
    /// cache.
    fn seen() -> CacheMonitor {
        let mut monitor = CacheMonitor::default();
        start(&mut monitor, "p/m", "Be brief.", "read");
        answer(&mut monitor, &usage(10_000, 0));
        assert_eq!(answer(&mut monitor, &usage(200, 9_800)), None);
        monitor
    }

    #[test]
    fn a_read_is_compared_with_what_plimsoll_left_unchanged() {
        type Change = fn(&mut CacheMonitor);
        let nothing: Change = |_| ();
        // The part before the messages is a ninth of the 10,000 tokens.
        let plan: Change = |monitor| monitor.planned(&rewriting_from(1), &[]);
        let cases: [(&str, Change, u64, Option<u64>); 10] = [
            ("all was read", nothing, 9_900, None),
            ("no more than a fifth is missing", nothing, 8_000, None),
            ("more than a fifth is missing", nothing, 7_999, Some(10_000)),
            ("the head was read", plan, 1_024, None),
            ("the head was not read", plan, 0, Some(1_111)),
            ("the view was restored", CacheMonitor::rewound, 0, None),
            (
                "the system prompt changed",
                |it| start(it, "p/m", "Be long.", "read"),
                0,
                None,
            ),
            (
                "the tools changed",
                |it| start(it, "p/m", "Be brief.", "write"),
                0,
                None,
            ),
            (
                "the model changed",
                |it| start(it, "p/o", "Be brief.", "read"),
                0,
                None,
            ),
            (
                "nothing changed",
                |it| start(it, "p/m", "Be brief.", "read"),
                0,
                Some(10_000),
            ),
        ];
        for (case, change, read, expected) in cases {
            let mut monitor = seen();
            change(&mut monitor);
            let miss = answer(&mut monitor, &usage(11_000 - read, read));
            assert_eq!(miss.map(|miss| miss.expected.0), expected, "{case}");
        }
        let text = answer(&mut seen(), &usage(11_000, 0)).unwrap().to_string();
        assert_eq!(text, "read 0 of 10000 tokens from the cache");
    }

    #[test]
    fn a_provider_without_a_cache_misses_nothing() {
        let mut monitor = CacheMonitor::default();
        for _ in 0..5 {
            assert_eq!(answer(&mut monitor, &usage(10_000, 0)), None);
        }
        assert!(monitor.tally().is_empty());
        monitor.answered(Tokens(9_000), Tokens(8_000), None);
        answer(&mut monitor, &usage(100, 9_900));
        assert!(monitor.tally().is_empty(), "nothing was known to expect");
    }

    #[test]
    fn a_run_is_measured() {
        let mut monitor = seen();
        monitor.begin();
        answer(&mut monitor, &usage(0, 10_000));
        answer(&mut monitor, &usage(10_000, 0));
        let tally = monitor.tally();
        assert_eq!((tally.calls, tally.misses), (2, 1));
        assert_eq!(tally.share(), Some(Ppm(500_000)));
    }
}
