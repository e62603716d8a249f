//! [`Way`]: the simulated ways of compacting a context. They are implemented in `simulate.rs`,
//! `rivals.rs` and `hindsight.rs`.

use plimsoll_context::{ContextStrategy, Ppm, SessionPruneConfig, SummaryConfig, Threshold};

/// A way of compacting a context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Way {
    /// Plimsoll's own policies, with the same code as in live runs.
    Plimsoll(PlimsollSettings),
    /// Drops the oldest messages, including the task, before each request until it fits.
    Fifo,
    /// Keeps the system prompt, the task and the newest exchanges that fit, chosen before each
    /// request.
    SlidingWindow {
        /// Size of the window, as a share of the limit.
        size: Ppm,
    },
    /// Replaces all but the newest messages at the trigger by a summary that a model writes.
    Summarize {
        /// The messages that are kept besides the summary.
        keep: Keep,
        /// How the summarizer reads the messages.
        reads: Reads,
    },
    /// The cheapest schedule of dropping the oldest exchanges, chosen with knowledge of the whole
    /// session. It must keep the same messages as our own policies and drops no more than they
    /// would.
    Hindsight,
}

/// The settings of one of Plimsoll's own policies.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PlimsollSettings {
    /// The preset policy.
    pub policy: ContextStrategy,
    /// The trigger, if not the preset's.
    pub trigger: Option<Threshold>,
    /// The target, if not the preset's.
    pub target: Option<Threshold>,
    /// Size limits of summaries.
    pub summary: SummaryConfig,
    /// How old results are shortened, if the preset does not define it.
    pub prune: Option<SessionPruneConfig>,
}

/// The messages that a summary does not replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// As many of the newest exchanges as fit into the target besides the summary.
    Target,
    /// This many newest messages, extended back to the beginning of an exchange.
    Messages(usize),
}

/// How the summarizer reads the messages to summarize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// In a separate call, as new input: the usual way.
    Fresh,
    /// In a call that extends the last request, which is cached.
    Cached,
}

impl Default for Way {
    fn default() -> Self {
        Self::Plimsoll(PlimsollSettings::default())
    }
}
