//! [`Setup`]: the fixed configuration of a run, and [`DeclaredTools`], those of the next request.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_context::{
    CacheConfig, CacheRetention, HostedTool, Money, Policy, PriceSheet, Recall, SessionPruneConfig,
    TOOL_OVERHEAD, TokenCounter, Tokens, ToolSpec, Usage, ViewLimits,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call_target::TargetOf;
use crate::filters::InputFilters;
use crate::hook_input::HookPoint;
use crate::limits::ExecutionLimits;
use crate::permission::Permissions;
use crate::request::{Sampling, ThinkingLevel};
use crate::run_id::DEFAULT_CONFIG;

/// Tokens that every request has in addition to all counted parts: the start of the reply.
pub(crate) const REQUEST_OVERHEAD: Tokens = Tokens(3);

/// The configuration of a run.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The model, as `provider/name`; for the log.
    pub model: String,
    /// The system prompt; may be empty.
    pub system: Arc<str>,
    /// Text that is appended to the history of each request without becoming part of it.
    pub dynamic_context: Option<Arc<str>>,
    /// The tools, in the order in which they are sent.
    pub tools: Vec<KnownTool>,
    /// Tools that the provider runs itself. They never need approval.
    pub hosted_tools: Arc<[HostedTool]>,
    /// The token counter.
    pub counter: Arc<dyn TokenCounter>,
    /// The limits of the view.
    pub line: ViewLimits,
    /// The model's prices; `None` if unknown.
    pub sheet: Option<PriceSheet>,
    /// How the provider's prompt cache is used.
    pub cache: CacheConfig,
    /// How long the provider is asked to keep entries of that cache.
    pub retention: CacheRetention,
    /// The policy that is consulted before every request.
    pub policy: Policy,
    /// The policy for requests that were refused as too long. It needs no model.
    pub recovery: Policy,
    /// The model that writes summaries if the policy asks for one; `None` uses `extract`.
    pub summary_model: Option<SummaryModel>,
    /// Whether removed messages can be recalled from the log, so that markers may offer it.
    pub recall: Recall,
    /// The limits of the run.
    pub limits: Arc<ExecutionLimits>,
    /// The points at which the host has hooks.
    pub hooks: BTreeSet<HookPoint>,
    /// The rules for tool calls. If no rule matches, [`KnownTool::asks`] decides whether a call needs
    /// approval.
    pub permissions: Arc<Permissions>,
    /// Filters that check the user's input.
    pub input_filters: InputFilters,
    /// The session's name, for run ids.
    pub session: Arc<str>,
    /// The configuration's id, for run ids.
    pub config_id: String,
    /// The reason for the first turn of a run.
    pub first_turn_trigger: TurnTrigger,
    /// Maximum number of tool calls that run at the same time; at least 1.
    pub max_parallel_tools: usize,
    /// Maximum number of tokens of one answer.
    pub max_output: Option<Tokens>,
    /// How the model samples.
    pub sampling: Sampling,
}

/// A model that writes summaries.
#[derive(Debug, Clone)]
pub struct SummaryModel {
    /// The model, as `provider/name`; for events.
    pub model: String,
    /// The model's window; `None` uses the window of the run's own model.
    pub window: Option<Tokens>,
    /// The system prompt for summaries.
    pub prompt: Arc<str>,
    /// The model's prices; `None` if unknown.
    pub sheet: Option<PriceSheet>,
}

/// A tool as the state machine knows it.
#[derive(Debug, Clone)]
pub struct KnownTool {
    /// The name, description and input schema that are sent to the model.
    pub spec: ToolSpec,
    /// `true` if running the tool twice has the same effect as running it once.
    pub idempotent: bool,
    /// `true` if each call needs approval.
    pub asks: bool,
    /// `true` if calls change files of the workspace.
    pub edits_files: bool,
    /// The files or commands that calls act on.
    pub target: TargetOf,
}

/// The reason for a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnTrigger {
    /// A message of the user.
    #[default]
    User,
    /// A request of another agent.
    SubAgent,
    /// A run was continued.
    Continue,
    /// Tool results.
    ToolResults,
    /// A message that arrived during the run.
    Steer,
    /// A message that was queued for the end of the run.
    FollowUp,
    /// A notice of the run itself.
    Notice,
}

/// The part of a run's configuration that affects its behaviour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunConfigSnapshot {
    /// The configuration's id. Default: [`DEFAULT_CONFIG`].
    pub config_id: String,
    /// The model, as `provider/name`.
    pub model: String,
    /// The thinking effort, if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// Temperature, if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Seed, if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Maximum number of tokens of one answer, if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<Tokens>,
    /// The limits of the run.
    pub limits: ExecutionLimits,
    /// Maximum number of tool calls that run at the same time.
    pub max_parallel_tools: usize,
    /// The names of the policy's stages, in order.
    pub policy: Vec<String>,
    /// The names of the enabled tools that the provider runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosted_tools: Vec<String>,
}

impl RunConfigSnapshot {
    /// Returns the configuration of a run with this setup.
    #[must_use]
    pub fn of(setup: &Setup) -> Self {
        let stages = setup.policy.stages().iter();
        Self {
            config_id: setup.config_id.clone(),
            model: setup.model.clone(),
            thinking_level: setup.sampling.thinking,
            temperature: setup.sampling.temperature,
            seed: setup.sampling.seed,
            max_tokens: setup.max_output,
            limits: setup.limits.filled(),
            max_parallel_tools: setup.max_parallel_tools,
            policy: stages.map(|stage| stage.name().to_owned()).collect(),
            hosted_tools: setup
                .hosted_tools
                .iter()
                .map(|tool| tool.name().to_owned())
                .collect(),
        }
    }
}

impl SummaryModel {
    /// The default system prompt for summaries.
    pub const PROMPT: &'static str = include_str!("../prompts/summarize.md");
}

impl Setup {
    /// Creates a setup for a model without tools. All other fields have their default values.
    #[must_use]
    pub fn new(model: impl Into<String>, counter: Arc<dyn TokenCounter>, policy: Policy) -> Self {
        Self {
            model: model.into(),
            system: "".into(),
            dynamic_context: None,
            tools: Vec::new(),
            hosted_tools: Arc::default(),
            counter,
            line: ViewLimits::default(),
            sheet: None,
            cache: CacheConfig::default(),
            retention: CacheRetention::default(),
            policy,
            recovery: Policy::recovery(SessionPruneConfig::default(), None),
            summary_model: None,
            recall: Recall::None,
            limits: Arc::new(ExecutionLimits::default()),
            hooks: BTreeSet::new(),
            permissions: Arc::default(),
            input_filters: InputFilters::default(),
            session: "".into(),
            config_id: DEFAULT_CONFIG.to_owned(),
            first_turn_trigger: TurnTrigger::default(),
            max_parallel_tools: 1,
            max_output: None,
            sampling: Sampling::default(),
        }
    }

    /// Returns the size of a request without the view.
    #[must_use]
    pub fn overhead(&self) -> Tokens {
        self.overhead_beside(self.tools_tokens())
    }

    /// Returns the size of a request without the view, beside tools of this size.
    pub(crate) fn overhead_beside(&self, tools: Tokens) -> Tokens {
        let context = self.dynamic_context.as_deref();
        let context = context.map_or(Tokens::ZERO, |context| self.message(context));
        REQUEST_OVERHEAD + self.system_tokens() + tools + context
    }

    /// Returns the size of the system prompt.
    #[must_use]
    pub fn system_tokens(&self) -> Tokens {
        self.message(&self.system)
    }

    /// Returns the size of the declarations of all tools.
    fn tools_tokens(&self) -> Tokens {
        let tools = self.tools.iter().map(|tool| self.counter.tool(&tool.spec));
        let hosted = self.hosted_tools.iter();
        let hosted = hosted.map(|tool| TOOL_OVERHEAD + self.counter.text(&tool.json()));
        tools.chain(hosted).sum()
    }

    /// Returns the names of the tools. The provider's own tools come last.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        let own = self.tools.iter().map(|tool| tool.spec.name.as_str());
        let hosted = self.hosted_tools.iter().map(HostedTool::name);
        own.chain(hosted).map(str::to_owned).collect()
    }

    /// Returns the cost of some usage. If there is a limit on money, tokens of an unknown price count
    /// at the highest price.
    pub(crate) fn cost(&self, usage: Usage, sheet: Option<PriceSheet>) -> Option<Money> {
        let sheet = sheet?;
        let known = sheet.cost(usage);
        match self.limits.max_cost {
            Some(_) => known.or_else(|| sheet.at_most().cost(usage)),
            None => known,
        }
    }

    fn message(&self, text: &str) -> Tokens {
        if text.is_empty() {
            return Tokens::ZERO;
        }
        plimsoll_context::MESSAGE_OVERHEAD + self.counter.text(text)
    }
}

/// The tools that requests declare, and the sizes of all parts of a request beside the view. They are counted once,
/// and not again for each request.
#[derive(Debug, Default)]
pub(crate) struct DeclaredTools {
    pub(crate) specs: Arc<[ToolSpec]>,
    /// The size of the declarations, including the provider's own tools.
    pub(crate) tokens: Tokens,
    /// The size of the system prompt.
    pub(crate) system: Tokens,
    /// The size of a request without the view.
    pub(crate) overhead: Tokens,
}

impl DeclaredTools {
    pub(crate) fn new(setup: &Setup) -> Self {
        let tokens = setup.tools_tokens();
        Self {
            specs: setup.tools.iter().map(|tool| tool.spec.clone()).collect(),
            tokens,
            system: setup.system_tokens(),
            overhead: setup.overhead_beside(tokens),
        }
    }
}
