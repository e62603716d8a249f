//! [`Now`]: the facts of the moment at which an input arrives.
//!
//! The machine has no clock and sees no traffic. The driver reports both with each input.

use std::collections::HashMap;
use std::time::Duration;

use plimsoll_context::{CallId, Usage};

use crate::spend::Spend;

/// The facts of the moment at which an input arrives. They are valid until the next input.
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// The duration of the run so far. During a run, a smaller value than before is ignored.
    pub elapsed: Duration,
    /// The time since the provider was last called, if known. If the provider's prompt cache may have
    /// expired by now, a plan costs nothing.
    pub since_call: Option<Duration>,
    /// The usage so far of the run's own call without a reply. It is counted if this input ends the
    /// attempt.
    pub call_usage: Option<Usage>,
    /// The same of a call for a summary.
    pub summary_usage: Option<Usage>,
    /// The usage so far of running tool calls. It is counted if this input aborts the call.
    pub tool_usage: HashMap<CallId, Spend>,
}

impl Now {
    /// Returns the moment at which a run has taken this long. Nothing else is known.
    #[must_use]
    pub fn after(elapsed: Duration) -> Self {
        Self {
            elapsed,
            ..Self::default()
        }
    }

    /// Returns the facts at the next input. A clock never runs backwards during a run.
    pub(crate) fn followed_by(&self, next: Self, is_running: bool) -> Self {
        let elapsed = if is_running {
            next.elapsed.max(self.elapsed)
        } else {
            next.elapsed
        };
        Self { elapsed, ..next }
    }
}
