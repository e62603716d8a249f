//! [`CacheMonitor`]: compares the expected reads from the prompt cache with the actual ones, and
//! names the edits that explain a difference.
//!
//! It compares sums and item numbers, not bytes: O(1) per call.

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::item::{Item, Seq};
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheMonitor {
    frame: Option<Frame>,
    left: Option<CacheState>,
    /// Whether the provider has ever reported reading or writing a cache. Without such a report, no
    /// misses are counted.
    reports: bool,
    tally: CacheTally,
    /// Read at once or not at all, so it is not stored.
    #[serde(skip)]
    miss: Option<CacheMiss>,
}

/// A call that read clearly less from the cache than the previous call should have left there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheMiss {
    /// Tokens of the previous request.
    pub expected: Tokens,
    /// Tokens of the previous request that Plimsoll's own edits left unchanged.
    pub left: Tokens,
    /// Tokens read from the cache.
    pub read: Tokens,
    /// The causes of the miss, Plimsoll's own edits first.
    pub why: Vec<CacheBreak>,
}

/// A cause of a changed or lost cache prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "break", rename_all = "snake_case")]
pub enum CacheBreak {
    /// A plan rewrote part of the prefix.
    Plan {
        /// The plan's stages.
        stages: Vec<String>,
        /// The first item that the plan rewrote.
        first: Seq,
    },
    /// The tools have changed.
    Tools,
    /// The system prompt has changed.
    System,
    /// The dynamic context has changed, and a dialect or a server did not keep it after the
    /// history.
    DynamicContext,
    /// The tool choice has changed; some providers cache messages separately for each tool choice.
    ToolChoice,
    /// The host rewrote the request before it was sent.
    Host,
    /// The request is unchanged, but more time has passed than cache entries live.
    Expired,
    /// The request is unchanged, but the provider's cache was cold, or the entry was evicted.
    Provider,
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

/// The part of a request before the messages, as recorded in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Frame {
    model: String,
    system: Fingerprint,
    tools: Vec<String>,
}

/// The state of the cache after the last call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CacheState {
    /// Tokens of the last request, as reported.
    sent: Tokens,
    /// How many of these tokens are still unchanged.
    still: Tokens,
    /// The size of the same request by our counter, and the part of this size that is not messages.
    counted: Tokens,
    overhead: Tokens,
    broke: Vec<CacheBreak>,
}

impl CacheMonitor {
    /// Records the model, system prompt and tools that every request of a run carries.
    pub fn started(&mut self, model: &str, system: &str, tools: &[String]) {
        let frame = Frame {
            model: model.to_owned(),
            system: Fingerprint::of([&Message::system(system)]),
            tools: tools.to_vec(),
        };
        if let Some(old) = &self.frame {
            if old.model != frame.model {
                self.left = None;
                self.reports = false;
            } else if old.tools != frame.tools {
                self.broke(CacheBreak::Tools, Tokens::ZERO);
            } else if old.system != frame.system {
                self.broke(CacheBreak::System, Tokens::ZERO);
            }
        }
        self.frame = Some(frame);
    }

    /// Resets the tally at the beginning of a run.
    pub fn begin(&mut self) {
        self.tally = CacheTally::default();
    }

    /// Records an applied plan; `items` is the view after it.
    pub fn planned(&mut self, plan: &Plan, items: &[Item]) {
        let (Some(first), Some(left)) = (plan.rewrites_from, &self.left) else {
            return;
        };
        let before = items.iter().take_while(|item| item.seq < first);
        let before = left.overhead + before.map(|item| item.tokens).sum();
        let scale = u128::from(left.sent.0) * u128::from(before.0);
        let still = scale / u128::from(left.counted.0.max(1));
        let still = Tokens(u64::try_from(still).unwrap_or(u64::MAX));
        let stages = plan.stages.clone();
        self.broke(CacheBreak::Plan { stages, first }, still);
    }

    /// Records that further tools are declared from the next request on.
    pub fn declared(&mut self, tools: &[String]) {
        if let Some(frame) = &mut self.frame {
            frame.tools = tools.to_vec();
        }
        self.broke(CacheBreak::Tools, Tokens::ZERO);
    }

    /// Records that the view was restored to an earlier state: the next call has no expected reads.
    pub fn rewound(&mut self) {
        self.left = None;
    }

    /// Records an answered call: its size by our counter, the size of the view in it, and the usage
    /// that the provider reported. [`Self::take_miss`] returns the miss, if there was one.
    pub fn answered(&mut self, counted: Tokens, view: Tokens, usage: Option<&Usage>) {
        self.miss = None;
        let left = self.left.take();
        let Some(usage) = usage else {
            return;
        };
        let read = usage.cache_read;
        self.reports |= read + usage.cache_write > Tokens::ZERO;
        if let Some(left) = left.filter(|left| left.sent >= LEAST_EXPECTED)
            && self.reports
        {
            self.tally.calls += 1;
            self.tally.expected += left.sent;
            self.tally.read += read;
            if read < left.sent.share(CLEARLY_SHORT) {
                self.tally.misses += 1;
                self.miss = Some(left.missed(read));
            }
        }
        self.left = Some(CacheState {
            sent: usage.processed(),
            still: usage.processed(),
            counted,
            overhead: counted.minus(view),
            broke: Vec::new(),
        });
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

    /// Takes the miss of the last call, if there was one.
    pub fn take_miss(&mut self) -> Option<CacheMiss> {
        self.miss.take()
    }

    /// Returns the expected and the actual reads of this run's calls.
    #[must_use]
    pub fn tally(&self) -> CacheTally {
        self.tally
    }

    fn broke(&mut self, what: CacheBreak, still: Tokens) {
        if let Some(left) = &mut self.left {
            left.still = left.still.min(still);
            left.broke.push(what);
        }
    }
}

impl CacheState {
    fn missed(self, read: Tokens) -> CacheMiss {
        let mut why = self.broke;
        let not_ours = read < self.still.share(CLEARLY_SHORT) && self.still >= LEAST_EXPECTED;
        if not_ours || why.is_empty() {
            why.push(CacheBreak::Provider);
        }
        CacheMiss {
            expected: self.sent,
            left: self.still,
            read,
            why,
        }
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

impl CacheMiss {
    /// Returns `true` if plans, together with tools declared because of them, fully explain the
    /// miss. The cost of a plan has already been reported.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        let planned = |why: &CacheBreak| matches!(why, CacheBreak::Plan { .. });
        let expected = |why: &CacheBreak| planned(why) || *why == CacheBreak::Tools;
        self.why.iter().any(planned) && self.why.iter().all(expected)
    }
}

impl std::fmt::Display for CacheMiss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { expected, read, .. } = self;
        write!(f, "read {read} of {expected} tokens from the cache")?;
        for (at, why) in self.why.iter().enumerate() {
            write!(f, "{} {why}", if at == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl std::fmt::Display for CacheBreak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plan { stages, first } => {
                write!(
                    f,
                    "a plan ({}) rewrote it from {first} on",
                    stages.join(", ")
                )
            }
            Self::Tools => f.write_str("the tools are others than before"),
            Self::System => f.write_str("the system prompt is another than before"),
            Self::DynamicContext => f.write_str("the dynamic context has changed"),
            Self::ToolChoice => f.write_str("whether tools may be called has changed"),
            Self::Host => f.write_str("the host rewrote the request on its way"),
            Self::Expired => f.write_str(
                "the request is unchanged; more time has passed than the cache keeps it",
            ),
            Self::Provider => {
                f.write_str("the request is unchanged; the provider's cache was cold or evicted")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::Chars4;
    use crate::plan::{Edit, Rendition, Trigger};
    use crate::removal_marker::Gap;
    use crate::transcript::Transcript;
    use std::sync::Arc;

    fn usage(input: u64, read: u64) -> Usage {
        Usage {
            input: Tokens(input),
            cache_read: Tokens(read),
            ..Usage::default()
        }
    }

    fn evicts_from(first: u64) -> Plan {
        Plan {
            why: Trigger::Request,
            stages: vec!["evict".into()],
            edits: vec![Edit::Drop {
                first: Seq(first),
                last: Seq(first),
                marker: Rendition {
                    message: Arc::new(
                        Gap {
                            messages: 1,
                            recall: None,
                        }
                        .message(),
                    ),
                    tokens: Tokens::ZERO,
                },
            }],
            before: Tokens(0),
            frees: Tokens(1),
            rewrites_from: Some(Seq(first)),
            recall: crate::plan::Recall::None,
            price: None,
        }
    }

    /// Returns a monitor that has recorded a call of 10,000 tokens to a provider with a working
    /// cache.
    fn seen() -> CacheMonitor {
        let mut monitor = CacheMonitor::default();
        monitor.started("p/m", "Be brief.", &["read".into()]);
        monitor.answered(Tokens(9_000), Tokens(8_000), Some(&usage(10_000, 0)));
        monitor.answered(Tokens(9_000), Tokens(8_000), Some(&usage(200, 9_800)));
        assert_eq!(monitor.take_miss(), None);
        monitor
    }

    fn why(mut monitor: CacheMonitor, read: u64) -> Vec<CacheBreak> {
        let used = usage(11_000 - read, read);
        monitor.answered(Tokens(10_000), Tokens(9_000), Some(&used));
        monitor.take_miss().map_or(Vec::new(), |miss| miss.why)
    }

    #[test]
    fn who_broke_it_is_named() {
        assert_eq!(why(seen(), 9_900), []);
        assert_eq!(why(seen(), 8_000), [], "no more than a fifth is missing");
        assert_eq!(why(seen(), 7_999), [CacheBreak::Provider]);

        let view = Transcript::new(Arc::new(Chars4));
        let plan = CacheBreak::Plan {
            stages: vec!["evict".into()],
            first: Seq(1),
        };
        let planned = || {
            let mut monitor = seen();
            monitor.planned(&evicts_from(1), view.items());
            monitor
        };
        let mut monitor = seen();
        monitor.answered(Tokens(10_000), Tokens(9_000), Some(&usage(11_000, 0)));
        let miss = monitor.take_miss().unwrap();
        assert!(!miss.is_planned());
        assert_eq!(
            miss.to_string(),
            "read 0 of 10000 tokens from the cache: the request is unchanged; the provider's cache was cold \
             or evicted"
        );
        // The part before the messages is a ninth of the 10,000 tokens.
        assert_eq!(why(planned(), 1_024), std::slice::from_ref(&plan));
        assert_eq!(why(planned(), 0), [plan.clone(), CacheBreak::Provider]);
        // Tools that were declared with the plan explain why nothing could be read.
        let mut joined = planned();
        joined.declared(&["read".into(), "recall".into()]);
        joined.answered(Tokens(10_000), Tokens(9_000), Some(&usage(11_000, 0)));
        let miss = joined.take_miss().unwrap();
        assert_eq!(miss.why, [plan, CacheBreak::Tools]);
        assert!(miss.is_planned());
        joined.started("p/m", "Be brief.", &["read".into(), "recall".into()]);
        assert_eq!(why(joined, 10_900), []);

        let mut system = seen();
        system.started("p/m", "Be long.", &["read".into()]);
        assert_eq!(why(system, 0), [CacheBreak::System]);
        let mut tools = seen();
        tools.started("p/m", "Be brief.", &["write".into()]);
        assert_eq!(why(tools, 0), [CacheBreak::Tools]);
        let mut other = seen();
        other.started("p/other", "Be brief.", &["read".into()]);
        assert_eq!(why(other, 0), [], "nothing is expected of another model");
        let mut same = seen();
        same.started("p/m", "Be brief.", &["read".into()]);
        assert_eq!(why(same, 0), [CacheBreak::Provider]);
    }

    #[test]
    fn a_provider_without_a_cache_misses_nothing() {
        let mut monitor = CacheMonitor::default();
        for _ in 0..5 {
            monitor.answered(Tokens(9_000), Tokens(8_000), Some(&usage(10_000, 0)));
            assert_eq!(monitor.take_miss(), None);
        }
        assert!(monitor.tally().is_empty());
        monitor.answered(Tokens(9_000), Tokens(8_000), None);
        monitor.answered(Tokens(9_000), Tokens(8_000), Some(&usage(100, 9_900)));
        assert!(monitor.tally().is_empty(), "nothing was known to expect");
    }

    #[test]
    fn a_run_is_measured() {
        let mut monitor = seen();
        monitor.begin();
        monitor.answered(Tokens(9_000), Tokens(8_000), Some(&usage(0, 10_000)));
        monitor.answered(Tokens(9_000), Tokens(8_000), Some(&usage(10_000, 0)));
        let tally = monitor.tally();
        assert_eq!((tally.calls, tally.misses), (2, 1));
        assert_eq!(tally.share(), Some(Ppm(500_000)));
    }
}
