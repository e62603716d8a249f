//! [`Ledger`]: the usage of a run. Only here is it compared with the run's limits.
//!
//! It has no clock: the caller passes the time. The run decides how to react.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{Bytes, Ppm, Tokens, Usage};
use strum::VariantArray;

use crate::limits::{CountTokens, ExecutionLimits, LimitKind, millis};
use crate::outcome::EndReason;
use crate::spend::{Cost, Spend};

/// The share of a limit at which the model is warned.
pub const NEAR: Ppm = Ppm(700_000);
/// Smaller limits of turns or tool calls are always near, so the model is not told in advance.
const WORTH_TELLING: u64 = 10;
/// The divisor of the time limit for the time reserved for the last answer, up to [`LAST_ANSWER`].
const LAST_SHARE: u32 = 10;
/// Maximum time reserved for the last answer.
pub const LAST_ANSWER: Duration = Duration::from_secs(30);

/// The usage of a run, with its limits.
///
/// ```
/// use std::time::Duration;
/// use plimsoll_agent::{EndReason, ExecutionLimits, ExecutionTracker, LimitKind};
/// let limits = ExecutionLimits::turns(3);
/// let mut tracker = ExecutionTracker::new(limits, Duration::ZERO);
/// tracker.turns = 3;
/// let reached = EndReason::Limit { kind: LimitKind::MaxTurns, used: 3, limit: 3 };
/// assert_eq!(tracker.check_limits(Duration::ZERO), Some(reached));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The limits; shared, because a run reads them at every step.
    pub limits: Arc<ExecutionLimits>,
    /// The start of the run, on the same clock as `now`.
    pub started_at: Duration,
    /// Answered model calls.
    pub turns: u64,
    /// Tokens, as the limits count them. Estimated if the provider reported none.
    pub tokens_used: Tokens,
    /// The cost of all calls, including summaries and the calls of tools.
    pub cost_accumulated: Cost,
    /// Executed tool calls, including those of sub-agents.
    pub tool_calls: u64,
    /// The memory of the run's messages.
    pub memory: Bytes,
    /// The reported usage, including summaries and tools.
    pub usage: Usage,
    /// The part of it that belongs to summaries.
    pub summary_usage: Usage,
    /// Estimated usage of the calls for which the provider reported none. Not part of `usage`.
    pub estimated: Usage,
    /// The usage of tools, for example of sub-agents. Included in all sums above but `turns`.
    pub of_tools: Spend,
    /// Applied compactions.
    pub plans: u64,
    /// Tokens freed by them.
    pub freed: Tokens,
    /// The limits about which the model was warned.
    pub(crate) warned: Vec<LimitKind>,
    /// Tokens that the newest call has read and written.
    pub(crate) newest: Tokens,
}

/// The name of [`Ledger`] in phi-core.
pub type ExecutionTracker = Ledger;

impl Ledger {
    /// Creates a ledger without any usage.
    #[must_use]
    pub fn new(limits: impl Into<Arc<ExecutionLimits>>, started_at: Duration) -> Self {
        Self {
            limits: limits.into(),
            started_at,
            ..Self::default()
        }
    }

    /// Begins the next run of the session.
    pub(crate) fn begin_run(&mut self) {
        *self = Self {
            newest: self.newest,
            ..Self::new(Arc::clone(&self.limits), self.started_at)
        };
    }

    /// Returns how much the input of a call adds to the counted tokens: everything, or only the tokens
    /// that the call before had neither read nor written.
    pub(crate) fn counts(&self, processed: Tokens) -> Tokens {
        match self.limits.count_tokens() {
            CountTokens::Processed => processed,
            CountTokens::Growth => processed.minus(self.newest),
        }
    }

    /// Returns the usage without that of tools, and its tokens as the limits count them.
    #[must_use]
    pub fn own(&self) -> (Spend, Tokens) {
        let all = Spend {
            usage: self.usage,
            estimated: self.estimated,
            cost: self.cost_accumulated,
            turns: self.turns.saturating_add(self.of_tools.turns),
            tool_calls: self.tool_calls,
        };
        let of_tools = Tokens(self.of_tools.of(LimitKind::MaxTokens));
        (all.without(self.of_tools), self.tokens_used.minus(of_tools))
    }

    /// Returns the limit that is reached, if any: no further model call may be made.
    ///
    /// `max_tool_calls` and `max_memory` are reached when they are used up; a last call without tools
    /// may follow then.
    #[must_use]
    pub fn check_limits(&self, now: Duration) -> Option<EndReason> {
        let mut kinds = LimitKind::VARIANTS.iter();
        kinds.find_map(|kind| self.used_up(*kind, now))
    }

    /// Returns the limit that does not even allow a last answer, if any.
    #[must_use]
    pub fn spent(&self, now: Duration) -> Option<EndReason> {
        let kinds = LimitKind::VARIANTS.iter();
        let mut kinds =
            kinds.filter(|kind| !matches!(kind, LimitKind::ToolLimit | LimitKind::MaxMemory));
        kinds.find_map(|kind| self.used_up(*kind, now))
    }

    /// Returns the limit of this kind if it is used up.
    #[must_use]
    pub fn used_up(&self, kind: LimitKind, now: Duration) -> Option<EndReason> {
        let (used, limit) = self.measure(kind, now)?;
        (used >= limit).then_some(EndReason::Limit { kind, used, limit })
    }

    /// Returns the limit on turns or time that only allows one more call, if any.
    #[must_use]
    pub fn is_last(&self, now: Duration) -> Option<EndReason> {
        // The only turn of a run keeps its tools.
        if self.turns == 0 {
            return None;
        }
        if self.turns.saturating_add(1) >= self.limits.max_turns() {
            return Some(self.reason(LimitKind::MaxTurns, now));
        }
        let (last_answer, _) = self.deadlines()?;
        (now >= last_answer).then(|| self.reason(LimitKind::MaxDuration, now))
    }

    /// Returns the limit on tokens or money that these calls would exceed, if any.
    #[must_use]
    pub fn exceeded_by(&self, calls: &Spend) -> Option<EndReason> {
        let exceeds =
            |kind: &LimitKind| self.left(*kind).is_some_and(|left| calls.of(*kind) > left);
        let mut kinds = [LimitKind::MaxTokens, LimitKind::MaxCost].into_iter();
        let kind = kinds.find(exceeds)?;
        Some(self.reason(kind, self.started_at))
    }

    /// Returns how much of a limit on tokens or money is left. `None` if there is no such limit.
    pub(crate) fn left(&self, kind: LimitKind) -> Option<u64> {
        let (used, limit) = self.measure(kind, self.started_at)?;
        Some(limit.saturating_sub(used))
    }

    /// Returns two points in time on the clock of `started_at`: the time at which current activity is
    /// aborted for the last answer, and the time at which the last answer is aborted.
    #[must_use]
    pub fn deadlines(&self) -> Option<(Duration, Duration)> {
        let limit = self.limits.max_duration?;
        let end = self.started_at.saturating_add(limit);
        let kept = (limit / LAST_SHARE).min(LAST_ANSWER);
        Some((end.saturating_sub(kept), end))
    }

    /// Returns the limits that are 70 % used and that the model was not told about yet.
    #[must_use]
    pub fn near(&self, now: Duration) -> Vec<LimitKind> {
        let is_near = |kind: LimitKind| {
            let (used, limit) = self.measure(kind, now).unwrap_or((0, u64::MAX));
            let is_told = match kind {
                LimitKind::MaxTurns | LimitKind::ToolLimit => limit >= WORTH_TELLING,
                // A plan may free it.
                LimitKind::MaxMemory => false,
                _ => true,
            };
            let (used, limit) = (u128::from(used), u128::from(limit));
            is_told && used * u128::from(Ppm::ONE.0) >= limit * u128::from(NEAR.0)
        };
        let kinds = LimitKind::VARIANTS.iter().copied();
        kinds
            .filter(|kind| !self.warned.contains(kind) && is_near(*kind))
            .collect()
    }

    /// Returns the used amount and the limit. `None` if there is no limit of this kind.
    fn measure(&self, kind: LimitKind, now: Duration) -> Option<(u64, u64)> {
        let used = match kind {
            LimitKind::MaxTurns => return Some((self.turns, self.limits.max_turns())),
            LimitKind::MaxTokens => self.tokens_used.0,
            LimitKind::MaxCost => self.cost_accumulated.known.0,
            LimitKind::MaxDuration => millis(now.saturating_sub(self.started_at)),
            LimitKind::ToolLimit => self.tool_calls,
            LimitKind::MaxMemory => self.memory.0,
        };
        Some((used, self.limits.of(kind)?))
    }

    /// Returns the reason of a run that ends at a limit of this kind.
    pub(crate) fn reason(&self, kind: LimitKind, now: Duration) -> EndReason {
        let (used, limit) = self.measure(kind, now).unwrap_or_default();
        EndReason::Limit { kind, used, limit }
    }
}
