//! [`Setup`]: what a run is given and does not change. Not its state.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_context::{
    CacheConfig, CacheRetention, Economy, HostedTool, Line, Policy, PriceSheet, Recall,
    SessionPruneConfig, TOOL_OVERHEAD, TokenCounter, Tokens, ToolSpec,
};

use crate::call_target::TargetOf;
use crate::event::TurnTrigger;
use crate::filters::InputFilters;
use crate::inbox::QueueMode;
use crate::limits::{ExecutionLimits, MAX_TURNS};
use crate::loop_id::DEFAULT_CONFIG;
use crate::moment::HookPoint;
use crate::permission::Permissions;
use crate::request::Sampling;

/// What the request's frame weighs besides all counted parts: the start of the reply.
pub(crate) const REQUEST_OVERHEAD: Tokens = Tokens(3);

/// What a run is given.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The model, as `provider/name`; for the log.
    pub model: String,
    /// The system prompt; may be empty.
    pub system: Arc<str>,
    /// What belongs after the history of each request and is not part of it.
    pub dynamic_context: Option<Arc<str>>,
    /// The tools, in the order in which they are sent.
    pub tools: Vec<KnownTool>,
    /// The provider's own tools, which run there and of which nobody is asked.
    pub hosted_tools: Arc<[HostedTool]>,
    /// Weighs messages.
    pub counter: Arc<dyn TokenCounter>,
    /// Where the view must stop.
    pub line: Line,
    /// When plans are due.
    pub economy: Economy,
    /// What the model costs; `None` where nobody knows.
    pub sheet: Option<PriceSheet>,
    /// How the provider's prompt cache is used.
    pub cache: CacheConfig,
    /// How long entries of that cache are asked to be kept.
    pub retention: CacheRetention,
    /// Asked for a plan before every request.
    pub policy: Policy,
    /// Asked where a request was refused as too long. It needs no model.
    pub recovery: Policy,
    /// Who writes summaries, where the policy asks for any; `None` leaves it to `extract`.
    pub summary_model: Option<SummaryModel>,
    /// Whether what leaves the view can be recalled; then it is kept before it leaves.
    pub recall: Recall,
    /// Whether the host is asked before a plan is applied.
    pub leave: Leave,
    /// Whether the provider is asked what a request weighs.
    pub measure: Measure,
    /// How long the run may be.
    pub limits: Arc<ExecutionLimits>,
    /// Where the host has hooks.
    pub hooks: BTreeSet<HookPoint>,
    /// Which tool calls may run; where no rule matches, [`KnownTool::asks`] says whether a person is
    /// asked.
    pub permissions: Permissions,
    /// What looks at what a person says.
    pub input_filters: InputFilters,
    /// How steers are delivered.
    pub steering: QueueMode,
    /// How follow-ups are delivered.
    pub follow_ups: QueueMode,
    /// The session's name, for loop ids.
    pub session: Arc<str>,
    /// The configuration's id, for loop ids.
    pub config_id: String,
    /// What the first turn of a run answers.
    pub first_turn_trigger: TurnTrigger,
    /// Tool calls that run at once, at most; at least 1.
    pub max_parallel_tools: usize,
    /// Tokens of one answer, at most.
    pub max_output: Option<Tokens>,
    /// How the model samples.
    pub sampling: Sampling,
}

/// A model that writes summaries.
#[derive(Debug, Clone)]
pub struct SummaryModel {
    /// The model, as `provider/name`; for events.
    pub model: String,
    /// Its window; `None` takes the window of the run's own model.
    pub window: Option<Tokens>,
    /// What it is told.
    pub prompt: Arc<str>,
    /// What it costs; `None` where nobody knows.
    pub sheet: Option<PriceSheet>,
}

/// Whether the host is asked before a plan is applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leave {
    /// It is not: what leaves is in the log, and nobody keeps it elsewhere.
    #[default]
    Freely,
    /// It is, with what is about to leave: see [`Step::Leave`](crate::Step::Leave).
    Asked,
}

/// Whether the provider is asked what a request weighs before it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Measure {
    /// It is not: our own counter is believed until usage is reported.
    #[default]
    Never,
    /// It is, where nothing has calibrated the counter yet and the request is near the line: see
    /// [`Step::Measure`](crate::Step::Measure) and [`MEASURE_FROM`](crate::MEASURE_FROM).
    NearTheLine,
}

/// A tool as the machine knows it.
#[derive(Debug, Clone)]
pub struct KnownTool {
    /// What the model is told.
    pub spec: ToolSpec,
    /// Whether running it twice does no harm.
    pub idempotent: bool,
    /// Whether a person is asked before it runs.
    pub asks: bool,
    /// Whether its calls change files of the workspace.
    pub edits_files: bool,
    /// Whether it is declared only once a plan has been applied.
    pub after_plan: bool,
    /// What its calls act on.
    pub target: TargetOf,
}

impl SummaryModel {
    /// What a model is told that writes summaries, where nothing else is said.
    pub const PROMPT: &'static str = include_str!("../prompts/summarize.md");
}

impl Setup {
    /// A model without tools under a policy; everything else is as it is where nothing is said.
    #[must_use]
    pub fn new(model: impl Into<String>, counter: Arc<dyn TokenCounter>, policy: Policy) -> Self {
        Self {
            model: model.into(),
            system: "".into(),
            dynamic_context: None,
            tools: Vec::new(),
            hosted_tools: Arc::default(),
            counter,
            line: Line::default(),
            economy: Economy::default(),
            sheet: None,
            cache: CacheConfig::default(),
            retention: CacheRetention::default(),
            policy,
            recovery: Policy::recovery(SessionPruneConfig::default(), None),
            summary_model: None,
            recall: Recall::None,
            leave: Leave::Freely,
            measure: Measure::Never,
            limits: Arc::new(ExecutionLimits::turns(MAX_TURNS)),
            hooks: BTreeSet::new(),
            permissions: Permissions::default(),
            input_filters: InputFilters::default(),
            steering: QueueMode::default(),
            follow_ups: QueueMode::default(),
            session: "".into(),
            config_id: DEFAULT_CONFIG.to_owned(),
            first_turn_trigger: TurnTrigger::default(),
            max_parallel_tools: 1,
            max_output: None,
            sampling: Sampling::default(),
        }
    }

    /// What is sent besides the view, as long as no plan has been applied.
    #[must_use]
    pub fn overhead(&self) -> Tokens {
        self.overhead_after(false)
    }

    /// What is sent besides the view, before or after the first plan.
    pub(crate) fn overhead_after(&self, planned: bool) -> Tokens {
        let context = self.dynamic_context.as_deref();
        let context = context.map_or(Tokens::ZERO, |context| self.message(context));
        let (tools, system) = self.head(planned);
        REQUEST_OVERHEAD + system + tools + context
    }

    /// What the system prompt weighs.
    #[must_use]
    pub fn system_tokens(&self) -> Tokens {
        self.message(&self.system)
    }

    /// The tools that requests declare, before or after the first plan. Those that join with it come
    /// last.
    pub(crate) fn declared(&self, planned: bool) -> impl Iterator<Item = &KnownTool> {
        let first = self.tools.iter().filter(|tool| !tool.after_plan);
        first.chain(self.joining().filter(move |_| planned))
    }

    /// The tools that join with the first plan.
    pub(crate) fn joining(&self) -> impl Iterator<Item = &KnownTool> {
        self.tools.iter().filter(|tool| tool.after_plan)
    }

    /// Returns what the declarations of these tools weigh.
    pub(crate) fn weight_of<'a>(&self, tools: impl Iterator<Item = &'a KnownTool>) -> Tokens {
        tools.map(|tool| self.counter.tool(&tool.spec)).sum()
    }

    /// What is sent before the view, before or after the first plan: the tools and the system prompt.
    pub(crate) fn head(&self, planned: bool) -> (Tokens, Tokens) {
        let tools = self.weight_of(self.declared(planned));
        let hosted = self.hosted_tools.iter();
        let hosted = hosted.map(|tool| TOOL_OVERHEAD + self.counter.text(&tool.json()));
        (tools + hosted.sum(), self.message(&self.system))
    }

    /// The names of the tools that requests declare, the provider's own last.
    pub(crate) fn tool_names(&self, planned: bool) -> Vec<String> {
        let own = self.declared(planned).map(|tool| tool.spec.name.as_str());
        let hosted = self.hosted_tools.iter().map(HostedTool::name);
        own.chain(hosted).map(str::to_owned).collect()
    }

    fn message(&self, text: &str) -> Tokens {
        if text.is_empty() {
            return Tokens::ZERO;
        }
        plimsoll_context::MESSAGE_OVERHEAD + self.counter.text(text)
    }
}
