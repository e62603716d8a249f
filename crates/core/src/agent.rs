//! [`Agent`]: a model, its tools and its limits, checked once. Not a session; one agent opens many.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_agent::{Entry, Event, KnownTool, Leave, Run, Setup};
use plimsoll_context::{
    Calibration, ContextConfig, ContextStrategy, FALLBACK_WINDOW, Fingerprint, MAX_RESULT, Message,
    Recall, Tokens,
};

use crate::archive::RecallTools;
use crate::context;
use crate::driver::Parts;
use crate::error::Error;
use crate::session::{AgentOutput, Session};
use crate::store::{SessionId, StoreError};
use crate::tool::Tool;
use crate::window::Window;

/// How long one call of the summariser may take, its retries included: the run waits for it.
pub const SUMMARY_TIMEOUT: Duration = Duration::from_secs(120);
/// Recall is offered in windows of this size and more: its two tools take about 180 tokens of every
/// request, more than a small window can spare.
pub const RECALL_LEAST_WINDOW: Tokens = Tokens(8_192);
/// A key that a provider's cache is found by has at most this many characters; OpenAI refuses more.
const MAX_CACHE_KEY: usize = 64;
/// Tool calls at once, at most, whatever is asked for.
pub const MAX_PARALLEL_TOOLS: usize = 64;

/// A model, its tools and its limits.
#[derive(Clone)]
pub struct Agent {
    pub(crate) setup: Setup,
    pub(crate) context: Option<ContextConfig>,
    pub(crate) window: Window,
    pub(crate) archive: Archive,
    pub(crate) recall_names: RecallNames,
    pub(crate) pins: Vec<String>,
    pub(crate) parts: Arc<Parts>,
}

/// By which names a model recalls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum RecallNames {
    /// By `recall`.
    #[default]
    Ours,
    /// By `get_tool_response` too.
    Both,
}

/// Whether what leaves the view is archived, where the store has an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Archive {
    /// It is, and the model can recall it where the window has room for the tools that do.
    #[default]
    On,
    /// It is not; the log has it all the same.
    Off,
}

impl Agent {
    /// Runs a task in a session of its own.
    ///
    /// # Errors
    /// Where the task is empty or the log cannot be written. A run that ends badly is no error:
    /// see [`AgentOutput::reason`].
    pub async fn run(&self, task: &str) -> Result<AgentOutput, Error> {
        self.session(new_session_id()).await?.run(task).await
    }

    /// Opens a session, new or old, and becomes its one writer.
    ///
    /// # Errors
    /// Where another process writes to it, or its log cannot be read.
    pub async fn session(&self, id: SessionId) -> Result<Session, Error> {
        let parts = &self.parts;
        let lease = self.parts.store.acquire(&id).await?;
        let log = self.parts.store.load(&id).await?;
        let idle = self.parts.store.idle(&id).await;
        let mut setup = self.setup.clone();
        let found = self.window.find(&*parts.provider, &*parts.store).await;
        setup.line.window = found.window;
        if let (Some(model), true) = (&mut setup.summary_model, parts.asks_summarizer) {
            model.window = Some(parts.summarizer.window().await.unwrap_or(FALLBACK_WINDOW));
        }
        let window = setup.line.window;
        if let Some(config) = &self.context {
            setup.line = context::line(config, setup.line, setup.system_tokens())
                .map_err(|fault| Error::Build(vec![fault]))?;
        }
        // `unlimited` sends whatever there is, however large the window is said to be.
        if setup.policy.stages().is_empty() {
            setup.line = ContextStrategy::Unlimited {}.line(setup.line);
        }
        let archive = match self.archive {
            Archive::Off => Err(None),
            Archive::On => parts.store.archives().await.map_err(|error| match error {
                StoreError::NoArchive => None,
                error => Some(error.to_string()),
            }),
        };
        let mut tools = Vec::new();
        if archive.is_ok() {
            setup.leave = Leave::Asked;
            if offers_recall(&setup, self.recall_names, window, &log) {
                setup.recall = Recall::Offered;
                // A page that is larger than a result may be would be shortened in its turn.
                let budget = setup.line.budget(setup.overhead(), Calibration::default());
                let most = budget.map_or(MAX_RESULT, |budget| budget.max_result);
                let recall = RecallTools::new(Arc::clone(&parts.store), id);
                let recall = recall.for_results(most);
                tools = recall.tools();
                if self.recall_names == RecallNames::Both {
                    tools.push(recall.get_tool_response());
                }
            }
        }
        setup.tools.extend(tools.iter().map(known));
        let cached = setup.cache.is_on();
        let run = Run::resume(&log, setup)?;
        let mut session = Session::new(run, lease, Arc::clone(parts));
        session.found = idle.map(|idle| (idle, Instant::now()));
        session.endpoint = found.endpoint;
        session.cache_key = cached.then(|| cache_key(session.id()));
        if let Some(text) = found.note {
            parts.tell(&Event::Warning { text });
        }
        session.archives = archive.is_ok();
        if session.archives {
            let next = session.run.state().transcript().next_seq();
            let kept = parts.store.archive_up_to(&session.lease, next).await;
            if let Err(error) = kept {
                parts.tell(&Event::Warning {
                    text: error.to_string(),
                });
            }
        }
        let named = tools
            .into_iter()
            .map(|tool| (tool.spec().name.clone(), tool));
        session.tools = named.collect();
        if let Err(Some(why)) = archive {
            parts.tell(&Event::Warning { text: why });
        }
        for rule in &self.pins {
            session.pin_rule(rule).await?;
        }
        Ok(session)
    }

    /// What each request carries besides the messages: system prompt and tools, in the counter's
    /// tokens.
    #[must_use]
    pub fn overhead(&self) -> Tokens {
        self.setup.overhead()
    }
}

pub(crate) fn known(tool: &Arc<dyn Tool>) -> KnownTool {
    KnownTool {
        spec: tool.spec().clone(),
        idempotent: tool.idempotent(),
        asks: tool.asks(),
    }
}

/// Whether the tools that recall are worth what they take of the window, in every request; an agent
/// that was given no tools gets none of ours.
fn offers_recall(setup: &Setup, names: RecallNames, window: Option<Tokens>, log: &[Entry]) -> bool {
    let ours: &[&str] = match names {
        RecallNames::Ours => &["recall", "recall_search"],
        RecallNames::Both => &["recall", "recall_search", "get_tool_response"],
    };
    let is_ours = |tool: &KnownTool| ours.contains(&tool.spec.name.as_str());
    let learned = log.iter().rev().find_map(|entry| match entry {
        Entry::Learned { window, .. } => Some(*window),
        _ => None,
    });
    let room = window
        .is_some_and(|window| window.min(learned.unwrap_or(Tokens::MAX)) >= RECALL_LEAST_WINDOW);
    room && !setup.tools.is_empty() && !setup.tools.iter().any(is_ours)
}

/// What providers that route by a key are told of a session: its name, or a hash of a long one.
fn cache_key(id: &SessionId) -> Arc<str> {
    let name = id.as_str();
    match name.len() <= MAX_CACHE_KEY {
        true => name.into(),
        false => Fingerprint::of([&Message::user(name)]).to_string().into(),
    }
}

/// A session's name that has not been used: the time in milliseconds and a few random digits.
#[must_use]
pub fn new_session_id() -> SessionId {
    use std::hash::BuildHasher;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let random = std::collections::hash_map::RandomState::new().hash_one(now) % 0x1_0000;
    SessionId::timed(now.as_millis(), random)
}
