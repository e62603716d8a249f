//! [`CacheMonitor`]: what the cache should have given, what it gave, and which edit is to blame for
//! the difference. It compares sums and numbers of items, never bytes: O(1) a call.

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::item::{Item, Seq};
use crate::message::Message;
use crate::plan::Plan;
use crate::tokens::{Ppm, Tokens};
use crate::usage::Usage;

/// What was read is clearly short of what was expected below this share of it: providers cache in
/// steps of a hundred tokens or so, which is no miss.
pub const CLEARLY_SHORT: Ppm = Ppm(800_000);
/// Nothing is expected of a shorter prefix: most providers do not cache it.
pub const LEAST_EXPECTED: Tokens = Tokens(1_024);

/// Compares what each call read from the cache with what the call before it should have left there.
#[derive(Debug, Clone, Default)]
pub struct CacheMonitor {
    frame: Option<Frame>,
    left: Option<Left>,
    /// The provider has reported reading or writing a cache: one that never does is never late.
    reports: bool,
    tally: CacheTally,
    miss: Option<CacheMiss>,
}

/// A call that read clearly less from the cache than the call before it should have left there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheMiss {
    /// What the call before this one had sent.
    pub expected: Tokens,
    /// How much of that our own edits had left as it was.
    pub left: Tokens,
    /// What was read from the cache.
    pub read: Tokens,
    /// What broke the prefix, ours first.
    pub why: Vec<CacheBreak>,
}

/// What breaks a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "break", rename_all = "snake_case")]
pub enum CacheBreak {
    /// A plan rewrote it.
    Plan {
        /// The plan's stages.
        stages: Vec<String>,
        /// The first item that it rewrote.
        first: Seq,
    },
    /// The tools are others.
    Tools,
    /// The system prompt is another.
    System,
    /// The dynamic context is another, and a dialect or a server did not keep it behind the history.
    DynamicContext,
    /// Whether tools may be called has changed; some providers cache messages apart by it.
    ToolChoice,
    /// The host rewrote the request on its way.
    Host,
    /// Nothing of ours: more time has passed than entries of the cache live.
    Expired,
    /// Nothing of ours: the provider's cache was cold, or had evicted it.
    Provider,
}

/// What the calls of a run expected of the cache, and what they read from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CacheTally {
    /// Calls that something was expected of.
    pub calls: u64,
    /// What they should have found there.
    pub expected: Tokens,
    /// What they read.
    pub read: Tokens,
    /// Calls that read clearly less.
    pub misses: u64,
}

/// What stands before the messages, as a log says it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    model: String,
    system: Fingerprint,
    tools: Vec<String>,
}

/// What the last call has left in the cache.
#[derive(Debug, Clone)]
struct Left {
    /// What it had sent, as reported.
    sent: Tokens,
    /// How much of that is still as it was sent.
    still: Tokens,
    /// The same request by our counter, and the part of it that is no message.
    counted: Tokens,
    overhead: Tokens,
    broke: Vec<CacheBreak>,
}

impl CacheMonitor {
    /// Notes what every request of a run carries before its messages.
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

    /// A run begins: its tally does.
    pub fn begin(&mut self) {
        self.tally = CacheTally::default();
    }

    /// Notes a plan that was applied; `items` is the view after it.
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

    /// Notes that further tools are declared from the next request on.
    pub fn declared(&mut self, tools: &[String]) {
        if let Some(frame) = &mut self.frame {
            frame.tools = tools.to_vec();
        }
        self.broke(CacheBreak::Tools, Tokens::ZERO);
    }

    /// Notes that the view was put back to what it was: nothing is expected of the next call.
    pub fn rewound(&mut self) {
        self.left = None;
    }

    /// Notes a call that was answered: its weight by our counter, that of the view in it, and what
    /// the provider says that it used. What it missed is in [`Self::take_miss`].
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
        self.left = Some(Left {
            sent: usage.processed(),
            still: usage.processed(),
            counted,
            overhead: counted.minus(view),
            broke: Vec::new(),
        });
    }

    /// Returns how much the next call can read from the cache if the provider still has what the last
    /// call has left there and plans have not changed. Zero for a provider that reports no cache.
    #[must_use]
    pub fn readable(&self) -> Tokens {
        let left = self.left.as_ref().filter(|_| self.reports);
        let still = left.map(|left| left.still).unwrap_or_default();
        match still >= LEAST_EXPECTED {
            true => still,
            false => Tokens::ZERO,
        }
    }

    /// What the last call has missed, once.
    pub fn take_miss(&mut self) -> Option<CacheMiss> {
        self.miss.take()
    }

    /// What the calls of this run expected, and what they read.
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

impl Left {
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
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What was read of what was expected; `None` where nothing was.
    #[must_use]
    pub fn share(&self) -> Option<Ppm> {
        let million = u128::from(Ppm::ONE.0);
        let share = (u128::from(self.read.0) * million).checked_div(u128::from(self.expected.0))?;
        Some(Ppm(u64::try_from(share).unwrap_or(u64::MAX)))
    }
}

impl CacheMiss {
    /// Returns `true` if plans alone explain it, with the tools that joined because of one; their price
    /// has been told already.
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
    use crate::plan::{Edit, Trigger};
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
                marker: None,
            }],
            before: Tokens(0),
            frees: Tokens(1),
            rewrites_from: Some(Seq(first)),
            recall: crate::means::Recall::None,
            price: None,
        }
    }

    /// A monitor that has seen a call of 10,000 tokens, with a cache that works.
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
        let mut told = seen();
        told.answered(Tokens(10_000), Tokens(9_000), Some(&usage(11_000, 0)));
        let miss = told.take_miss().unwrap();
        assert!(!miss.is_planned());
        assert_eq!(
            miss.to_string(),
            "read 0 of 10000 tokens from the cache: the request is unchanged; the provider's cache was cold \
             or evicted"
        );
        // What stands before the messages is a ninth of 10,000.
        assert_eq!(why(planned(), 1_024), std::slice::from_ref(&plan));
        assert_eq!(why(planned(), 0), [plan.clone(), CacheBreak::Provider]);
        // Tools that joined with the plan explain that nothing is left.
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
