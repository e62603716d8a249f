//! [`Entry`]: one line of a session's log. The log is only ever appended to, and folding it gives
//! the state byte for byte. Not what a person is shown; that is an event.

use std::sync::Arc;

use plimsoll_context::tagged::FirstTag;
use plimsoll_context::{
    CallId, Fingerprint, Message, Money, Part, Pin, Plan, Seq, StopReason, Tokens, Usage,
};
use serde::{Deserialize, Deserializer, Serialize};

use crate::branches::BranchRecord;
use crate::loop_record::LoopConfigSnapshot;
use crate::outcome::Outcome;
use crate::spend::Spend;
use crate::tracker::{LimitKind, Nearness};

/// The version of the log's format, in its first entry and again where an older log is carried on.
/// 2: summaries, pins and plans that can be recalled. 3: prices, queued messages, roll-backs, forks.
/// 4: requests that the provider has weighed. 5: keys of requests.
pub const LOG_FORMAT: u32 = 5;

/// Where a learned window comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lesson {
    /// The provider named it.
    #[default]
    Told,
    /// It is less than what was refused or cut, or what a rate limit lets through; good for this
    /// session, and no longer.
    Inferred,
}

impl Lesson {
    /// Whether the provider named it.
    #[must_use]
    pub fn is_told(&self) -> bool {
        *self == Self::Told
    }
}

/// For when a message waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// For the next model call.
    Steer,
    /// For the end of the run.
    FollowUp,
}

/// One line of a session's log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Entry {
    /// The log begins.
    Opened {
        /// See [`LOG_FORMAT`].
        format: u32,
    },
    /// A run begins, or goes on after a crash: what every request carries besides the view.
    Started {
        /// The run's number in its session, from 1; the same again where it goes on.
        run: u64,
        /// The model, as `provider/name`.
        model: String,
        /// The system prompt.
        system: Arc<str>,
        /// The names of the tools that requests declare, in the order in which they are sent.
        tools: Vec<String>,
        /// The names of those that requests declare as well once a plan has been applied.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        later: Vec<String>,
        /// What else it was configured as. Boxed, since it is large.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<Box<LoopConfigSnapshot>>,
    },
    /// Somebody said something; it enters the view.
    Said {
        /// What was said.
        message: Arc<Message>,
        /// The message of the queue that it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<u64>,
    },
    /// A request that has a key was taken: the message that it says comes next, unless a filter rejects
    /// it. A request with the same key is the same one, sent again, and is not taken again.
    Accepted {
        /// The key, which the sender has chosen.
        key: String,
    },
    /// A message waits for the run that is under way.
    Queued {
        /// Its number in the session, from 1.
        id: u64,
        /// For when.
        kind: Waiting,
        /// What it says.
        parts: Vec<Part>,
    },
    /// Messages that waited were not delivered, and never will be.
    Undelivered {
        /// Their numbers.
        ids: Vec<u64>,
    },
    /// The model was told that a limit is near.
    Warned {
        /// Which.
        limit: LimitKind,
        /// How near.
        near: Nearness,
    },
    /// The model answered; its message enters the view unless it is empty.
    Replied {
        /// The assistant's message.
        message: Arc<Message>,
        /// Why the model stopped.
        stop: StopReason,
        /// What the call used, where the provider said.
        usage: Option<Usage>,
        /// The request's weight by our counter, to calibrate with.
        counted: Tokens,
        /// What the call cost, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Money>,
    },
    /// A tool call is about to run. Where its result is missing after a crash, it may have run.
    Began {
        /// The call.
        call: CallId,
    },
    /// A tool call has its result; results enter the view in call order.
    Returned {
        /// The result, as a `Message::ToolResult`.
        message: Arc<Message>,
        /// What the tool wants pinned; said and pinned once the whole batch has its results.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pins: Vec<String>,
        /// What the tool used, as a sub-agent does.
        #[serde(default, skip_serializing_if = "Spend::is_nothing")]
        spent: Spend,
    },
    /// A plan was applied to the view.
    Planned {
        /// The plan.
        plan: Plan,
    },
    /// A model was asked for a summary. What it wrote is in the plan that used it.
    Summarized {
        /// Of what.
        of: Fingerprint,
        /// Model calls.
        calls: u64,
        /// What they used.
        usage: Usage,
        /// What they cost, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Money>,
        /// Why there is no summary, where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// An item of the view, or a part of it, must stay.
    Pinned {
        /// The item.
        seq: Seq,
        /// What of it, with the proof.
        pin: Pin,
    },
    /// An item need not stay any longer.
    Unpinned {
        /// The item.
        seq: Seq,
    },
    /// The provider refused a request as too long, and told or taught the window.
    Learned {
        /// The window from now on.
        window: Tokens,
        /// The refused request by our counter and by the provider's, where it said.
        used: Option<(Tokens, Tokens)>,
        /// Whether the provider named it.
        #[serde(default, skip_serializing_if = "Lesson::is_told")]
        lesson: Lesson,
    },
    /// The provider has said what a request weighs that it was not sent, to calibrate with.
    Measured {
        /// By our counter.
        counted: Tokens,
        /// By the provider's.
        reported: Tokens,
    },
    /// A call was answered, but its answer is no answer to what was asked, and not used.
    Wasted {
        /// What it used.
        usage: Usage,
        /// What it cost, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Money>,
    },
    /// The view is as it was before a run began, and the runs since are undone.
    RolledBack {
        /// The run.
        run: u64,
    },
    /// From here on it is another session, that began as this log's first entries. A run that was
    /// under way has ended; everything else is as it was.
    Forked {
        /// The session that the entries before this one are of, by the host's name for it.
        from: String,
        /// How many of them the two share.
        entries: u64,
    },
    /// Several agents have run the same prompt, each in a fork of this session. What the chosen one
    /// has said comes next, as entries of this log.
    Branched {
        /// By what one was chosen.
        strategy: String,
        /// The branches, in the order in which they were given.
        branches: Vec<BranchRecord>,
        /// The chosen one; `None` where none answered, or where the answer is made of several.
        winner: Option<usize>,
        /// What choosing has used.
        #[serde(default, skip_serializing_if = "Spend::is_nothing")]
        judged: Spend,
    },
    /// The run ended.
    Ended {
        /// How.
        outcome: Outcome,
    },
}

/// The variants of [`Entry`], for its way from JSON: what serde derives for a tagged enum takes twice as long,
/// and logs are long. The compiler sees that they are the same; that none is missing, in tests.
#[derive(Deserialize)]
#[cfg_attr(test, derive(Serialize))]
#[serde(remote = "Entry", rename_all = "snake_case")]
enum EntryFields {
    Opened {
        format: u32,
    },
    Started {
        run: u64,
        model: String,
        system: Arc<str>,
        tools: Vec<String>,
        #[serde(default)]
        later: Vec<String>,
        #[serde(default)]
        config: Option<Box<LoopConfigSnapshot>>,
    },
    Said {
        message: Arc<Message>,
        #[serde(default)]
        queued: Option<u64>,
    },
    Accepted {
        key: String,
    },
    Queued {
        id: u64,
        kind: Waiting,
        parts: Vec<Part>,
    },
    Undelivered {
        ids: Vec<u64>,
    },
    Warned {
        limit: LimitKind,
        near: Nearness,
    },
    Replied {
        message: Arc<Message>,
        stop: StopReason,
        usage: Option<Usage>,
        counted: Tokens,
        #[serde(default)]
        cost: Option<Money>,
    },
    Began {
        call: CallId,
    },
    Returned {
        message: Arc<Message>,
        #[serde(default)]
        pins: Vec<String>,
        #[serde(default)]
        spent: Spend,
    },
    Planned {
        plan: Plan,
    },
    Summarized {
        of: Fingerprint,
        calls: u64,
        usage: Usage,
        #[serde(default)]
        cost: Option<Money>,
        #[serde(default)]
        failure: Option<String>,
    },
    Pinned {
        seq: Seq,
        pin: Pin,
    },
    Unpinned {
        seq: Seq,
    },
    Learned {
        window: Tokens,
        used: Option<(Tokens, Tokens)>,
        #[serde(default)]
        lesson: Lesson,
    },
    Measured {
        counted: Tokens,
        reported: Tokens,
    },
    Wasted {
        usage: Usage,
        #[serde(default)]
        cost: Option<Money>,
    },
    RolledBack {
        run: u64,
    },
    Forked {
        from: String,
        entries: u64,
    },
    Branched {
        strategy: String,
        branches: Vec<BranchRecord>,
        winner: Option<usize>,
        #[serde(default)]
        judged: Spend,
    },
    Ended {
        outcome: Outcome,
    },
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        EntryFields::deserialize(FirstTag::new(deserializer, "entry"))
    }
}
