//! [`Agent`]: a model, its tools and its limits, validated once. One agent opens many sessions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_agent::{KnownTool, PermissionMode, Run, Setup, State, TargetOf};
use plimsoll_context::{
    Calibration, ContextConfig, ContextStrategy, Fingerprint, MAX_RESULT, Message, Policy, Recall,
    Tokens, ViewLimits,
};

use crate::context_limits::context_limits;
use crate::error::Error;
use crate::output::AgentOutput;
use crate::parts::Parts;
use crate::recall_tools::RecallTools;
use crate::session::Session;
use crate::settings::BuilderSettings;
use crate::store::{Lease, SessionId, idle, new_session_id};
use crate::tool::Tool;
use crate::window::Window;

/// The smallest window in which the recall tools are offered.
///
/// The two tools add about 180 tokens to every request. A smaller window
/// cannot spare them.
pub const RECALL_LEAST_WINDOW: Tokens = Tokens(8_192);
/// The maximum length of a prompt cache key, in characters. OpenAI rejects longer keys.
const MAX_CACHE_KEY: usize = 64;

/// Names of the recall tools. The first two are offered by default.
pub(crate) const RECALL_TOOLS: [&str; 3] = ["recall", "recall_search", "get_tool_response"];

/// A model, its tools and its limits.
#[derive(Clone)]
pub struct Agent {
    pub(crate) setup: Setup,
    pub(crate) settings: BuilderSettings,
    /// The preset policy, if the context is compacted by one.
    pub(crate) strategy: Option<ContextStrategy>,
    pub(crate) context: Option<ContextConfig>,
    /// Warnings from building the agent, for the user.
    pub(crate) notes: Vec<String>,
    pub(crate) parts: Arc<Parts>,
}

impl Agent {
    /// Returns the preset policy. `None` with a [`ContextConfig`] or a policy of the program.
    #[must_use]
    pub fn context_strategy(&self) -> Option<ContextStrategy> {
        self.strategy
    }

    /// Returns the context that is limited by its size, if one is configured.
    #[must_use]
    pub fn context_config(&self) -> Option<&ContextConfig> {
        self.context.as_ref()
    }

    /// Returns the policy with the stages of all settings.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.setup.policy
    }

    /// Returns the limits of the view, before a session finds the window.
    #[must_use]
    pub fn view_limits(&self) -> ViewLimits {
        self.setup.line
    }

    /// Returns the warnings about settings that its model or provider does not have. Each session reports
    /// them.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Runs a task in a new session.
    ///
    /// # Errors
    /// If the task is empty, the log cannot be written, or the model cannot be called or has too small
    /// a window for what must be sent (both [`Error::Failed`]). A run that ends because of a limit, a
    /// user or a hook is not an error; see [`Outcome::reason`](plimsoll_agent::Outcome::reason).
    pub async fn run(&self, task: &str) -> Result<AgentOutput, Error> {
        self.session(new_session_id()).await?.run(task).await
    }

    /// Opens a new or existing session and becomes its only writer.
    ///
    /// # Errors
    /// If another process writes to the session, or its log cannot be read.
    pub async fn session(&self, id: SessionId) -> Result<Session, Error> {
        let store = &self.parts.store;
        let lease = store.acquire(&id).await?;
        let idle = idle(store.as_ref(), &id).await;
        self.open(lease, idle).await
    }

    /// Opens a session that this process may write to.
    pub(crate) async fn open(
        &self,
        lease: Lease,
        idle: Option<Duration>,
    ) -> Result<Session, Error> {
        let parts = Arc::clone(&self.parts);
        let (run, entries, tools) = self.prepare(&parts, lease.session()).await?;
        let mut session = Session::new(run, entries, lease, parts);
        session.answered = idle.map(|idle| (idle, Instant::now()));
        session.fit_out(self, tools).await?;
        Ok(session)
    }

    /// Returns the run of a stored session and the number of its entries, and the recall tools if they
    /// are offered.
    pub(crate) async fn prepare(
        &self,
        parts: &Parts,
        id: &SessionId,
    ) -> Result<(Run, u64, Vec<Arc<dyn Tool>>), Error> {
        let log = parts.store.load(id).await?;
        let mut state = State::for_setup(&self.setup);
        log.iter().try_for_each(|entry| state.absorb(entry))?;
        let mut setup = self.setup.clone();
        setup.session = id.as_str().into();
        let limit = setup.limits.max_duration;
        setup.line.window = self.settings.window.find(&*parts.provider, limit).await;
        if let (Some(model), Some(summarizer)) = (&mut setup.summary_model, &parts.summarizer) {
            model.window = Window::Discover.find(&**summarizer, limit).await;
        }
        let window = setup.line.window;
        if let Some(config) = &self.context {
            setup.line = context_limits(config, setup.line, setup.system_tokens())
                .map_err(|fault| Error::Build(vec![fault]))?;
        }
        // The `unlimited` strategy ignores the reported window and sends everything.
        if !setup.policy.is_limited() {
            setup.line = ContextStrategy::Unlimited {}.line(setup.line);
        }
        let mut tools = Vec::new();
        let named = self.settings.get_tool_response;
        if self.settings.recall && offers_recall(&setup, named, window, &state) {
            setup.recall = Recall::Offered;
            // A page must not exceed the result limit, or it would be shortened as well.
            let budget = setup
                .line
                .budget(setup.overhead(), Tokens::ZERO, Calibration::default());
            let most = budget.map_or(MAX_RESULT, |budget| budget.max_result);
            let recall = RecallTools::new(Arc::clone(&parts.store), id.clone());
            let recall = recall.for_results(most);
            tools = recall.tools();
            if named {
                tools.push(recall.get_tool_response());
            }
        }
        setup.tools.extend(tools.iter().map(known));
        Ok((Run::of_state(state, setup), log.len() as u64, tools))
    }

    /// Returns the size of the system prompt and the tools in each request, in tokens of the
    /// counter.
    #[must_use]
    pub fn overhead(&self) -> Tokens {
        self.setup.overhead()
    }
}

/// Returns a warning if no call of some tools can ever run, because nobody can approve it.
pub(crate) fn nobody_to_ask(setup: &Setup, parts: &Parts) -> Option<String> {
    let permissions = &setup.permissions;
    let asks = matches!(
        permissions.mode(),
        PermissionMode::AutoEdit | PermissionMode::Ask
    );
    if parts.gate.is_some() || !permissions.is_empty() || !asks {
        return None;
    }
    let asking = setup.tools.iter().filter(|tool| tool.asks);
    let names: Vec<String> = asking.map(|tool| format!("`{}`", tool.spec.name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "calls of {} require approval, and there is nobody to ask, so they are refused; set a gate \
             or permissions",
            names.join(", ")
        )
    })
}

pub(crate) fn known(tool: &Arc<dyn Tool>) -> KnownTool {
    KnownTool {
        spec: tool.spec().clone(),
        idempotent: tool.idempotent(),
        asks: tool.asks(),
        edits_files: tool.edits_files(),
        target: {
            let tool = Arc::clone(tool);
            TargetOf::new(move |arguments| tool.target(arguments))
        },
    }
}

/// Checks whether to offer the recall tools.
///
/// They take space in every request, and an agent without tools of its own does not get them. While the
/// view contains calls of them, they stay: a provider may reject calls of undeclared tools.
fn offers_recall(
    setup: &Setup,
    get_tool_response: bool,
    window: Option<Tokens>,
    state: &State,
) -> bool {
    let ours = RECALL_TOOLS.iter().take(2 + usize::from(get_tool_response));
    let is_ours = |tool: &KnownTool| ours.clone().any(|name| *name == tool.spec.name);
    // A learned window is valid for one model only.
    let learned = state.learned_window();
    let learned = learned.filter(|_| state.model() == setup.model);
    let room = window
        .is_some_and(|window| window.min(learned.unwrap_or(Tokens::MAX)) >= RECALL_LEAST_WINDOW);
    let wanted = room && !setup.tools.is_empty();
    let has_recalled = || state.has_called(|call| RECALL_TOOLS.contains(&call.name.as_str()));
    (wanted || has_recalled()) && !setup.tools.iter().any(is_ours)
}

/// Returns the cache key of a session: its id, or a hash if the id is too long.
pub(crate) fn cache_key(name: &str) -> Arc<str> {
    if name.len() <= MAX_CACHE_KEY {
        name.into()
    } else {
        Fingerprint::of([&Message::user(name)]).to_string().into()
    }
}
