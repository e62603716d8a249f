//! [`ExecutionTracker`]: a run's usage of its limits, and the limits that are reached or near.
//!
//! It has no clock: the caller passes the time. The run decides how to react.

use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{Bytes, Money, Ppm, Tokens};
use serde::{Deserialize, Serialize};

use crate::limits::{CountTokens, ExecutionLimits};
use crate::outcome::EndReason;
use crate::spend::Cost;

/// The share of a limit at which the model is warned.
pub const NEAR: Ppm = Ppm(700_000);
/// The model is warned again when this many turns or tool calls remain.
pub const FEW: u64 = 3;
/// Smaller limits of turns or tool calls are always near, so the model is not told in advance.
const WORTH_TELLING: u64 = 10;
/// The divisor of the time limit for the time reserved for the last answer, up to [`LAST_ANSWER`].
const LAST_SHARE: u32 = 10;
/// Maximum time reserved for the last answer.
pub const LAST_ANSWER: Duration = Duration::from_secs(30);

/// A run's usage of its limits.
///
/// ```
/// use std::time::Duration;
/// use plimsoll_agent::{EndReason, ExecutionLimits, ExecutionTracker};
/// let limits = ExecutionLimits::turns(3);
/// let mut tracker = ExecutionTracker::new(limits, Duration::ZERO);
/// tracker.turns = 3;
/// assert_eq!(tracker.check_limits(Duration::ZERO), Some(EndReason::MaxTurns { limit: 3 }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionTracker {
    /// The limits; shared, because a run reads them at every step.
    pub limits: Arc<ExecutionLimits>,
    /// Answered model calls.
    pub turns: u64,
    /// Tokens, as the limits count them.
    pub tokens_used: Tokens,
    /// The cost of the calls.
    pub cost_accumulated: Cost,
    /// Executed tool calls.
    pub tool_calls: u64,
    /// The memory of the run's messages.
    pub memory: Bytes,
    /// The start of the run, on the same clock as `now`.
    pub started_at: Duration,
}

/// A kind of limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// `max_turns`.
    Turns,
    /// `max_tool_calls`.
    ToolCalls,
    /// `max_total_tokens`.
    Tokens,
    /// `max_cost`.
    Cost,
    /// `max_duration`.
    Duration,
}

impl fmt::Display for LimitKind {
    /// Formats what is limited, such as "tool calls".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Turns => "turns",
            Self::ToolCalls => "tool calls",
            Self::Tokens => "tokens",
            Self::Cost => "dollars",
            Self::Duration => "seconds",
        })
    }
}

/// How near a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nearness {
    /// 70 % is used.
    Most,
    /// Three turns or tool calls are left.
    Few,
}

/// The estimated usage of one or more future model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextCall {
    /// Tokens, as the limits count them.
    pub tokens: Tokens,
    /// Their cost.
    pub cost: Money,
}

impl Add for NextCall {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens + other.tokens,
            cost: self.cost + other.cost,
        }
    }
}

impl ExecutionTracker {
    /// Creates a tracker without any usage.
    #[must_use]
    pub fn new(limits: impl Into<Arc<ExecutionLimits>>, started_at: Duration) -> Self {
        Self {
            limits: limits.into(),
            turns: 0,
            tokens_used: Tokens::ZERO,
            cost_accumulated: Cost::default(),
            tool_calls: 0,
            memory: Bytes(0),
            started_at,
        }
    }

    /// Returns the limit that is reached, if any: no further model call may be made.
    ///
    /// `max_tool_calls` and `max_memory` are reached when they are used up; a last call without tools
    /// may follow then.
    #[must_use]
    pub fn check_limits(&self, now: Duration) -> Option<EndReason> {
        self.spent(now).or_else(|| self.used_up())
    }

    /// Returns the limit that does not even allow a last answer, if any.
    #[must_use]
    pub fn spent(&self, now: Duration) -> Option<EndReason> {
        let limits = &self.limits;
        if self.turns >= limits.max_turns() {
            return Some(EndReason::MaxTurns {
                limit: limits.max_turns(),
            });
        }
        if let Some(limit) = limits.max_total_tokens
            && self.tokens_used >= limit
        {
            return Some(self.out_of_tokens(limit));
        }
        if let Some(limit) = limits.max_cost
            && self.cost_accumulated.known >= limit
        {
            return Some(self.out_of_money(limit));
        }
        let elapsed = now.saturating_sub(self.started_at);
        let limit = limits.max_duration.filter(|limit| elapsed >= *limit);
        limit.map(|limit| EndReason::MaxDuration {
            limit_ms: millis(limit),
        })
    }

    /// Returns the limit that only allows a last answer, if any.
    #[must_use]
    pub fn used_up(&self) -> Option<EndReason> {
        self.tool_calls_used_up().or_else(|| self.memory_used_up())
    }

    /// Returns `max_tool_calls` if it is used up.
    pub(crate) fn tool_calls_used_up(&self) -> Option<EndReason> {
        let limit = self.limits.max_tool_calls?;
        (self.tool_calls >= limit).then_some(EndReason::ToolLimit { limit })
    }

    /// Returns `max_memory` if it is used up.
    pub(crate) fn memory_used_up(&self) -> Option<EndReason> {
        let limit = self.limits.max_memory?;
        (self.memory >= limit).then_some(EndReason::MaxMemory {
            limit,
            used: self.memory,
        })
    }

    /// Returns the limit on turns or time that only allows one more call, if any.
    #[must_use]
    pub fn is_last(&self, now: Duration) -> Option<EndReason> {
        let limits = &self.limits;
        // The only turn of a run keeps its tools.
        if self.turns == 0 {
            return None;
        }
        if self.turns.saturating_add(1) >= limits.max_turns() {
            return Some(EndReason::MaxTurns {
                limit: limits.max_turns(),
            });
        }
        let elapsed = now.saturating_sub(self.started_at);
        let limit = limits.max_duration?;
        (elapsed >= limit.saturating_sub(kept(limit))).then_some(EndReason::MaxDuration {
            limit_ms: millis(limit),
        })
    }

    /// Returns the limit on tokens or money that these calls would exceed, if any.
    #[must_use]
    pub fn exceeded_by(&self, calls: NextCall) -> Option<EndReason> {
        if let Some(limit) = self.limits.max_total_tokens
            && self.tokens_used + calls.tokens > limit
        {
            return Some(self.out_of_tokens(limit));
        }
        let limit = self.limits.max_cost?;
        let exceeds = self.cost_accumulated.known + calls.cost > limit;
        exceeds.then(|| self.out_of_money(limit))
    }

    /// Returns two points in time on the clock of `started_at`: the time at which current activity is
    /// aborted for the last answer, and the time at which the last answer is aborted.
    #[must_use]
    pub fn deadlines(&self) -> Option<(Duration, Duration)> {
        let limit = self.limits.max_duration?;
        let end = self.started_at.saturating_add(limit);
        Some((end.saturating_sub(kept(limit)), end))
    }

    /// Returns the limits that are near.
    #[must_use]
    pub fn near(&self, now: Duration) -> Vec<(LimitKind, Nearness)> {
        let limits = &self.limits;
        let mut near = Vec::new();
        let mut share = |kind, used: u128, limit: u128| {
            if used.saturating_mul(u128::from(Ppm::ONE.0))
                >= limit.saturating_mul(u128::from(NEAR.0))
            {
                near.push((kind, Nearness::Most));
            }
        };
        if let Some(limit) = limits.max_total_tokens {
            share(LimitKind::Tokens, self.tokens_used.0.into(), limit.0.into());
        }
        if let Some(limit) = limits.max_cost {
            let used = self.cost_accumulated.known;
            share(LimitKind::Cost, used.0.into(), limit.0.into());
        }
        if let Some(limit) = limits.max_duration {
            let elapsed = now.saturating_sub(self.started_at);
            share(LimitKind::Duration, elapsed.as_nanos(), limit.as_nanos());
        }
        let mut count = |kind, used: u64, limit: u64| {
            if limit < WORTH_TELLING {
                return;
            }
            share(kind, used.into(), limit.into());
        };
        count(LimitKind::Turns, self.turns, limits.max_turns());
        if let Some(limit) = limits.max_tool_calls {
            count(LimitKind::ToolCalls, self.tool_calls, limit);
        }
        let mut few = |kind, used: u64, limit: u64| {
            if limit >= WORTH_TELLING && limit.saturating_sub(used) <= FEW {
                near.push((kind, Nearness::Few));
            }
        };
        few(LimitKind::Turns, self.turns, limits.max_turns());
        if let Some(limit) = limits.max_tool_calls {
            few(LimitKind::ToolCalls, self.tool_calls, limit);
        }
        near
    }

    /// Returns how much a call adds to the counted tokens: everything, or only the tokens that the call
    /// before had neither read nor written.
    #[must_use]
    pub fn counted(
        count: CountTokens,
        before: Tokens,
        processed: Tokens,
        output: Tokens,
    ) -> Tokens {
        match count {
            CountTokens::Processed => processed + output,
            CountTokens::Growth => processed.minus(before) + output,
        }
    }

    fn out_of_tokens(&self, limit: Tokens) -> EndReason {
        EndReason::MaxTokens {
            limit,
            used: self.tokens_used,
        }
    }

    fn out_of_money(&self, limit: Money) -> EndReason {
        EndReason::MaxCost {
            limit,
            used: self.cost_accumulated.known,
        }
    }
}

/// Returns the time reserved for the last answer.
fn kept(limit: Duration) -> Duration {
    (limit / LAST_SHARE).min(LAST_ANSWER)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
