//! [`Entry`]: one line of a session's log.
//!
//! Entries are only ever appended. Folding the log restores the state byte for byte.

use std::sync::Arc;

use plimsoll_context::{
    CallId, Fingerprint, Message, Money, Part, Pin, Plan, Seq, StopReason, Tokens, Usage,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;
use crate::limits::LimitKind;
use crate::outcome::{EndReason, Outcome};
use crate::setup::RunConfigSnapshot;
use crate::spend::{Cost, Spend, is_default};

/// The version of the log's format, recorded in the first entry.
pub const LOG_FORMAT: u32 = 1;

impl Entry {
    /// Returns the message that the entry adds to the session, whole.
    #[must_use]
    pub fn message(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Message { message, .. }
            | Self::Reply { message, .. }
            | Self::PartialReply { message, .. }
            | Self::ToolResult { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Returns what the entry adds to the usage of its run. Model calls of sub-agents are not turns of the
    /// run.
    #[must_use]
    pub fn spend(&self) -> Spend {
        let none = Spend::default();
        match self {
            Self::Reply {
                usage,
                estimated,
                cost,
                ..
            } => Spend {
                usage: usage.unwrap_or_default(),
                estimated: *estimated,
                cost: Cost::of(*cost),
                turns: 1,
                ..none
            },
            Self::ToolStarted { .. } => Spend {
                tool_calls: 1,
                ..none
            },
            Self::ToolResult { spent, .. } => Spend { turns: 0, ..*spent },
            Self::Summarized { usage, cost, .. } => Spend {
                usage: *usage,
                cost: Cost::of(*cost),
                ..none
            },
            Self::PartialReply {
                usage,
                estimated,
                cost,
                ..
            } => Spend {
                usage: *usage,
                estimated: *estimated,
                cost: Cost::of(*cost),
                ..none
            },
            _ => none,
        }
    }
}

impl Ledger {
    /// Adds the usage of an entry.
    pub(crate) fn add(&mut self, entry: &Entry, spend: Spend) {
        self.usage = self.usage.combine(spend.usage);
        self.estimated = self.estimated.combine(spend.estimated);
        self.cost_accumulated = self.cost_accumulated.combine(spend.cost);
        self.turns += spend.turns;
        self.tool_calls = self.tool_calls.saturating_add(spend.tool_calls);
        let all = spend.usage.combine(spend.estimated);
        match entry {
            Entry::Reply { .. } => {
                self.tokens_used += self.counts(all.processed()) + all.output;
                self.newest = all.total_tokens();
                return;
            }
            Entry::ToolResult { spent, .. } => self.of_tools = self.of_tools.combine(*spent),
            Entry::Summarized { usage, .. } => {
                self.summary_usage = self.summary_usage.combine(*usage);
            }
            _ => {}
        }
        // Beside the run's own answered calls, each token counts in full.
        self.tokens_used += all.total_tokens();
    }
}

/// When a queued message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Before the next model call.
    Steer,
    /// At the end of the run.
    FollowUp,
}

/// One branch: a run of the same prompt by another agent, in a fork of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchRecord {
    /// The name of the forked session. Its log contains everything that the branch did.
    pub session: String,
    /// The id of the agent's configuration.
    pub config: String,
    /// The model, as `provider/name`.
    pub model: String,
    /// The result in one word: the reason why the run ended, or `died`.
    pub outcome: String,
    /// The reason why the branch did not answer, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The usage of the branch.
    pub spent: Spend,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

/// One line of a session's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The first entry of a log.
    Opened {
        /// See [`LOG_FORMAT`].
        format: u32,
    },
    /// A run began, or continued after a crash. Contains the parts of every request other than the
    /// view.
    RunStarted {
        /// The run's number in its session, from 1; unchanged if the run continues.
        run: u64,
        /// The model, as `provider/name`.
        model: String,
        /// The system prompt.
        system: Arc<str>,
        /// The names of the declared tools, in the order in which they are sent.
        tools: Vec<String>,
        /// The rest of the configuration. Boxed, since it is large.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<Box<RunConfigSnapshot>>,
    },
    /// A message of the user or the host entered the view.
    Message {
        /// The message.
        message: Arc<Message>,
        /// The number of the queued message that was delivered, if it had waited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<u64>,
    },
    /// A request with a key was accepted. Its message is the next entry, unless a filter rejects it.
    ///
    /// A later request with the same key is a repetition and is not accepted again.
    Accepted {
        /// The key, chosen by the sender.
        key: String,
    },
    /// A message was queued for the current run.
    Queued {
        /// The message's number in the session, from 1.
        id: u64,
        /// When to deliver it.
        kind: Waiting,
        /// The content of the message.
        parts: Vec<Part>,
    },
    /// Queued messages were dropped without having been delivered.
    Undelivered {
        /// The numbers of the messages.
        ids: Vec<u64>,
    },
    /// The model was warned that a limit is near.
    Warned {
        /// The limit.
        limit: LimitKind,
    },
    /// The model was asked for a last answer, after which the run ends.
    Finalizing {
        /// The reason why it ends.
        reason: EndReason,
    },
    /// The model answered; its message enters the view unless it is empty.
    Reply {
        /// The assistant's message.
        message: Arc<Message>,
        /// Why the model stopped.
        stop: StopReason,
        /// The usage of the call, if the provider reported it.
        usage: Option<Usage>,
        /// Our own count, if the provider reported no usage.
        #[serde(default, skip_serializing_if = "is_default")]
        estimated: Usage,
        /// The request's size by our counter, for calibration.
        counted: Tokens,
        /// The cost of the call, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Money>,
    },
    /// A tool call is about to run. If its result is missing after a crash, the tool may have run.
    ToolStarted {
        /// The call.
        call: CallId,
    },
    /// A tool call has a result. Results enter the view in the order of the calls.
    ToolResult {
        /// The result, as a `Message::ToolResult`.
        message: Arc<Message>,
        /// Usage of the tool itself, for example of a sub-agent.
        #[serde(default, skip_serializing_if = "Spend::is_nothing")]
        spent: Spend,
    },
    /// A plan was applied to the view.
    PlanApplied {
        /// The plan.
        plan: Plan,
    },
    /// A model was asked for a summary. Its text is part of the plan that used it.
    Summarized {
        /// The fingerprint of the summarized messages.
        of: Fingerprint,
        /// Number of model calls.
        calls: u64,
        /// The usage of these calls, by our own count if the provider reported none.
        usage: Usage,
        /// The cost of these calls, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Money>,
        /// The reason why there is no summary, if the model failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// An item of the view was pinned.
    Pinned {
        /// The item.
        seq: Seq,
        /// The pin, with a proof of the content.
        pin: Pin,
    },
    /// An item was unpinned.
    Unpinned {
        /// The item.
        seq: Seq,
    },
    /// The provider refused a request as too long, and Plimsoll learned the window from it.
    WindowLearned {
        /// The window from now on.
        window: Tokens,
        /// The size of the refused request by our counter and by the provider's, if reported.
        used: Option<(Tokens, Tokens)>,
        /// `true` if the provider did not report it: it is smaller than a request that was refused or cut,
        /// or it follows from a rate limit. It is valid for this session only, until another window is set.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inferred: bool,
        /// The window that was set or assumed before. An inferred window replaces only this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assumed: Option<Tokens>,
    },
    /// A model call was billed, but its answer is incomplete or was discarded.
    PartialReply {
        /// The text that had arrived; it enters the view unless it is empty. A notice that the answer
        /// was cut off follows.
        message: Arc<Message>,
        /// The usage of the call, as reported by the provider.
        usage: Usage,
        /// Our own count, if the provider reported no usage.
        #[serde(default, skip_serializing_if = "is_default")]
        estimated: Usage,
        /// The cost of the call, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Money>,
    },
    /// The view was restored to its state before a run; this run and later ones are undone.
    RolledBack {
        /// The first undone run.
        run: u64,
    },
    /// The entries from here on belong to another session, which began as a copy of the entries above.
    ///
    /// A run that was in progress has ended; everything else is unchanged.
    Forked {
        /// The original session, by the host's name for it.
        from: String,
        /// The number of entries that both sessions share.
        entries: u64,
    },
    /// Several agents have run the same prompt, each in a fork of this session. The messages of the
    /// chosen one follow as entries of this log.
    Branched {
        /// The strategy that chose the winner.
        strategy: String,
        /// The branches, in the order in which they were started.
        branches: Vec<BranchRecord>,
        /// The chosen branch; `None` if no branch answered, or if the answer combines several.
        winner: Option<usize>,
        /// The usage of the choice itself.
        #[serde(default, skip_serializing_if = "Spend::is_nothing")]
        judged: Spend,
    },
    /// The run ended.
    RunEnded {
        /// The outcome.
        outcome: Outcome,
    },
}
