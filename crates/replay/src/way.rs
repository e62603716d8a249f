//! [`Way`]: how a context is kept small. Only names; `simulate.rs`, `rivals.rs` and `hindsight.rs`
//! do what they say.

use plimsoll_context::{
    ContextStrategy, Economy, Ppm, SessionPruneConfig, SummaryConfig, Threshold,
};

/// How a context is kept small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Way {
    /// Our own policies, by the code that runs live.
    Plimsoll(PlimsollSettings),
    /// Whatever is oldest is dropped, before each request, until it fits; the task too.
    Fifo,
    /// The system prompt, the task and the newest exchanges that fit, chosen before each request.
    SlidingWindow {
        /// The window's size, as a share of the limit.
        size: Ppm,
    },
    /// At the trigger, all but the newest is replaced by a summary that a model writes.
    Summarize {
        /// What stays beside it.
        keep: Keep,
        /// How its writer reads what it sums up.
        reads: Reads,
    },
    /// The cheapest schedule of dropping the oldest exchanges, chosen by one who knows the whole
    /// session; what must stay for us stays for it, and it drops no more than we would.
    Hindsight,
}

/// The settings of one of our own policies.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PlimsollSettings {
    /// The preset.
    pub policy: ContextStrategy,
    /// When its plans are due.
    pub economy: Economy,
    /// Where a plan is due, if not at the usual trigger.
    pub trigger: Option<Threshold>,
    /// Where a plan ends, if not at the usual target.
    pub target: Option<Threshold>,
    /// How large its summaries may be.
    pub summary: SummaryConfig,
    /// How old results are shortened, if the preset does not say.
    pub prune: Option<SessionPruneConfig>,
}

/// What a summary leaves as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// As many of the newest exchanges as fit into the target beside the summary.
    Target,
    /// The newest messages, this many, stepped back to the beginning of an exchange.
    Messages(usize),
}

/// How the writer of a summary reads what it sums up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// In a call of its own, as fresh input: the usual way.
    Fresh,
    /// In a call that goes on from the last request, which the cache holds.
    Cached,
}

impl Default for Way {
    fn default() -> Self {
        Self::Plimsoll(PlimsollSettings::default())
    }
}
