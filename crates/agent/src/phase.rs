//! [`Phase`]: the current activity of the machine, with the data of that activity, and [`CurrentRun`], the
//! facts that begin anew with each run.

use std::sync::Arc;

use plimsoll_context::{Plan, ReadySummary, Seq, StopReason, Tokens, Usage};

use crate::failure::Failure;
use crate::hook_input::HookPoint;
use crate::setup::{Setup, TurnTrigger};
use crate::step::UserMessage;
use crate::summary_writer::SummaryWriter;
use crate::tool_queue::ToolQueue;

/// The current activity of the machine.
///
/// A turn goes from `TurnDue` to `Preparing` and `Calling`, and to `Working` if the model calls tools.
/// `Summarizing` and the decision about a plan interrupt `Preparing`.
#[derive(Debug)]
pub(crate) enum Phase {
    /// No run is in progress.
    Idle,
    /// The next turn is due.
    TurnDue,
    /// The turn has begun, and its request is due.
    Preparing {
        /// The host has vetoed a plan for it, so it is sent without one.
        is_vetoed: bool,
    },
    /// Waiting for a summary that the next plan needs.
    Summarizing(Box<SummaryWriter>, PlanFor),
    /// Waiting for a model call.
    Calling(ModelCallFacts),
    /// Running tool calls.
    Working(ToolQueue),
    /// Waiting for a decision of the host.
    Deciding(HostDecision),
    /// The plan of a compaction that the user asked for is due.
    Compacting {
        /// Information that a summary by a model must keep above all.
        focus: Option<Arc<str>>,
    },
}

/// The purpose of a plan. It is carried out once the plan is applied.
#[derive(Debug)]
pub(crate) enum PlanFor {
    /// The request of the turn.
    Request,
    /// A smaller version of a request that was refused as too long, as a step of the recovery ladder.
    Retry { failure: Failure, rung: u32 },
    /// A compaction that the user asked for between two runs, with its focus.
    Compaction(Option<Arc<str>>),
}

/// The properties of a model call that matter if it is refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelCallFacts {
    /// The request's size by our counter.
    pub(crate) counted: Tokens,
    /// The requested maximum number of tokens of the answer.
    pub(crate) max_output: Option<Tokens>,
    /// How often the request was refused as too long before.
    pub(crate) rung: u32,
}

/// A decision of the host.
#[derive(Debug)]
pub(crate) enum HostDecision {
    /// Whether the first run of a session may start.
    Task(RunOpening),
    /// Whether a run may start.
    Loop(RunOpening),
    /// Whether a turn may start.
    Turn,
    /// Whether there is more to do.
    FollowUp,
    /// Whether a plan may be applied.
    Plan(Box<(Plan, PlanFor)>),
}

impl HostDecision {
    /// Returns the point of the hook that decides.
    pub(crate) fn point(&self) -> HookPoint {
        match self {
            Self::Task(_) => HookPoint::BeforeTask,
            Self::Loop(_) => HookPoint::BeforeLoop,
            Self::Turn => HookPoint::BeforeTurn,
            Self::FollowUp => HookPoint::FollowUp,
            Self::Plan(_) => HookPoint::BeforeCompactionStart,
        }
    }
}

/// The way in which a run starts.
#[derive(Debug)]
pub(crate) enum RunOpening {
    /// With a message of the user.
    Message(UserMessage),
    /// As a continuation of the last run.
    Continuation { crashed: bool },
}

/// The facts of the current run that are not in the log.
#[derive(Debug, Default)]
pub(crate) struct CurrentRun {
    /// Consecutive empty answers.
    pub(crate) empty_replies: u32,
    /// The first message of this run has at least this number.
    pub(crate) began: Seq,
    /// So does its question, after rules and messages that waited.
    pub(crate) asked_at: Seq,
    /// The reason for the next turn.
    pub(crate) cause: TurnTrigger,
    /// The reason why the newest answer is incomplete, if it is.
    pub(crate) cut_off: Option<StopReason>,
    /// The turn whose call is answered and whose tools may still be running.
    pub(crate) turn_end: Option<TurnAnswer>,
    /// The run was accepted and announced.
    pub(crate) opened: bool,
    /// The limit of the answer that requests state, if there is one. The recovery ladder lowers it if
    /// the provider allows less.
    pub(crate) max_output: Option<Tokens>,
    /// A limit of the answer is stated even if none is configured.
    pub(crate) needs_limit: bool,
    /// A summary by a model, which the next plan may use.
    pub(crate) summary: Option<ReadySummary>,
    /// No model is asked for summaries any more, because one has failed or the time is nearly over.
    pub(crate) skips_summaries: bool,
}

impl CurrentRun {
    /// Returns the facts at the start of a run or of a compaction, whose messages begin at `began`.
    pub(crate) fn new(setup: &Setup, began: Seq) -> Self {
        Self {
            began,
            asked_at: began,
            max_output: setup.max_output,
            ..Self::default()
        }
    }
}

/// A turn whose model call is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnAnswer {
    pub(crate) turn: u64,
    pub(crate) stop: StopReason,
    pub(crate) usage: Option<Usage>,
}

impl Phase {
    /// A request is due for which no plan was vetoed.
    pub(crate) const PREPARING: Self = Self::Preparing { is_vetoed: false };

    /// Returns `true` between the start of a turn and the answer to its request.
    pub(crate) fn is_in_turn(&self) -> bool {
        use Phase::{Calling, Deciding, Preparing, Summarizing};
        let may_be = matches!(
            self,
            Preparing { .. } | Summarizing(..) | Deciding(HostDecision::Plan(_)) | Calling(_)
        );
        may_be && !self.is_compaction()
    }

    /// Returns `true` during a compaction that the user asked for.
    pub(crate) fn is_compaction(&self) -> bool {
        match self {
            Self::Compacting { .. } => true,
            Self::Summarizing(_, what) => matches!(what, PlanFor::Compaction(_)),
            Self::Deciding(HostDecision::Plan(pending)) => {
                matches!(pending.1, PlanFor::Compaction(_))
            }
            _ => false,
        }
    }

    /// Returns `true` if an activity is in progress that can be aborted for the last answer.
    pub(crate) fn is_cuttable(&self) -> bool {
        matches!(
            self,
            Self::Calling(_) | Self::Working(_) | Self::Summarizing(..)
        )
    }
}
