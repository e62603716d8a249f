//! [`Agent`]: a model, its tools and its limits, checked once. Not a session; one agent opens many.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_agent::{Entry, KnownTool, Leave, Measure, Run, Setup, State, TargetOf};
use plimsoll_context::{
    Calibration, Chars4, ContextConfig, ContextStrategy, FALLBACK_WINDOW, Fingerprint, MAX_RESULT,
    Message, Recall, Tokens,
};

use crate::archive::RecallTools;
use crate::context;
use crate::driver::Parts;
use crate::error::Error;
use crate::session::{AgentOutput, Session};
use crate::store::{Lease, SessionId, SessionStore, StoreError};
use crate::tool::Tool;
use crate::window::{self, Window};

/// How long one call of the summariser may take, its retries included: the run waits for it.
pub const SUMMARY_TIMEOUT: Duration = Duration::from_secs(120);
/// Recall is offered in windows of this size and more: its two tools take about 180 tokens of every
/// request from the first plan on, more than a small window can spare.
pub const RECALL_LEAST_WINDOW: Tokens = Tokens(8_192);
/// A key that a provider's cache is found by has at most this many characters; OpenAI refuses more.
const MAX_CACHE_KEY: usize = 64;

/// The tools that recall, those by which we call it first.
pub(crate) const RECALL_TOOLS: [&str; 3] = ["recall", "recall_search", "get_tool_response"];

/// A model, its tools and its limits.
#[derive(Clone)]
pub struct Agent {
    pub(crate) setup: Setup,
    pub(crate) context: Option<ContextConfig>,
    pub(crate) window: Window,
    pub(crate) archive: Archive,
    pub(crate) recall_names: RecallNames,
    pub(crate) pins: Vec<String>,
    /// What a person should know of how it was built.
    pub(crate) notes: Vec<String>,
    pub(crate) parts: Arc<Parts>,
}

/// What one session of an agent works with.
pub(crate) struct Fittings {
    pub(crate) parts: Arc<Parts>,
    pub(crate) endpoint: String,
    pub(crate) cache_key: Option<Arc<str>>,
    pub(crate) archives: bool,
    /// Those that recall what has left the session.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) pins: Vec<String>,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
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
    /// If the task is empty, the log cannot be written, or the model cannot be called
    /// ([`Error::Failed`]). A run that a limit, a person or a hook ended is no error: see
    /// [`AgentOutput::reason`].
    pub async fn run(&self, task: &str) -> Result<AgentOutput, Error> {
        self.session(new_session_id()).await?.run(task).await
    }

    /// Opens a session, new or old, and becomes its one writer.
    ///
    /// # Errors
    /// Where another process writes to it, or its log cannot be read.
    pub async fn session(&self, id: SessionId) -> Result<Session, Error> {
        let store = &self.parts.store;
        let lease = store.acquire(&id).await?;
        let log = store.load(&id).await?;
        let idle = store.idle(&id).await;
        self.open(lease, &log, idle).await
    }

    /// Opens a session as [`Self::session`] does, for [`Session::run_journaled`] to come next: the log is kept
    /// in memory until then, and not read again.
    ///
    /// # Errors
    /// As [`Self::session`].
    pub async fn session_to_journal(&self, id: SessionId) -> Result<Session, Error> {
        let store = &self.parts.store;
        let lease = store.acquire(&id).await?;
        let log = store.load(&id).await?;
        let idle = store.idle(&id).await;
        let (mut session, fittings) = self.unfitted(lease, &log, idle).await?;
        session.log = Some(log);
        session.fit_out(fittings).await?;
        Ok(session)
    }

    /// Opens a session whose log is at hand.
    pub(crate) async fn open(
        &self,
        lease: Lease,
        log: &[Entry],
        idle: Option<Duration>,
    ) -> Result<Session, Error> {
        let (mut session, fittings) = self.unfitted(lease, log, idle).await?;
        session.fit_out(fittings).await?;
        Ok(session)
    }

    async fn unfitted(
        &self,
        lease: Lease,
        log: &[Entry],
        idle: Option<Duration>,
    ) -> Result<(Session, Fittings), Error> {
        let parts = Arc::clone(&self.parts);
        let (setup, fittings) = self.prepare(parts, &lease, log).await?;
        let run = Run::resume(log, setup)?;
        let mut session = Session::new(run, lease, Arc::clone(&fittings.parts));
        session.found = idle.map(|idle| (idle, Instant::now()));
        Ok((session, fittings))
    }

    /// What a session of this agent works with, whose log is `log`.
    pub(crate) async fn prepare(
        &self,
        parts: Arc<Parts>,
        lease: &Lease,
        log: &[Entry],
    ) -> Result<(Setup, Fittings), Error> {
        let id = lease.session();
        let mut notes = self.notes.clone();
        let mut setup = self.setup.clone();
        setup.session = id.as_str().into();
        setup.measure = Measure::NearTheLine;
        let found = self.window.find(&*parts.provider, &*parts.store).await;
        notes.extend(found.note);
        setup.line.window = found.window;
        if let (Some(model), true) = (&mut setup.summary_model, parts.asks_summarizer) {
            let said = window::said(&*parts.summarizer).await;
            model.window = Some(said.unwrap_or(FALLBACK_WINDOW));
        }
        let window = setup.line.window;
        if let Some(config) = &self.context {
            setup.line = context::line(config, setup.line, setup.system_tokens())
                .map_err(|fault| Error::Build(vec![fault]))?;
        }
        // `unlimited` sends whatever there is, however large the window is said to be.
        if !setup.policy.is_limited() {
            setup.line = ContextStrategy::Unlimited {}.line(setup.line);
        }
        let archives = match self.archive {
            Archive::Off => false,
            Archive::On => match archives(&*parts.store, lease, log).await? {
                Ok(()) => true,
                Err(StoreError::NoArchive) => false,
                Err(error) => {
                    notes.push(error.to_string());
                    false
                }
            },
        };
        let mut tools = Vec::new();
        if archives {
            setup.leave = Leave::Asked;
            if offers_recall(&setup, self.recall_names, window, log) {
                setup.recall = Recall::Offered;
                // A page that is larger than a result may be would be shortened in its turn.
                let budget =
                    setup
                        .line
                        .budget(setup.overhead(), Tokens::ZERO, Calibration::default());
                let most = budget.map_or(MAX_RESULT, |budget| budget.max_result);
                let recall = RecallTools::new(Arc::clone(&parts.store), id.clone());
                let recall = recall.for_results(most);
                tools = recall.tools();
                if self.recall_names == RecallNames::Both {
                    tools.push(recall.get_tool_response());
                }
            }
        }
        let joining = tools.iter().map(|tool| KnownTool {
            after_plan: true,
            ..known(tool)
        });
        setup.tools.extend(joining);
        let fittings = Fittings {
            parts,
            endpoint: found.endpoint,
            cache_key: setup
                .cache
                .is_on()
                .then(|| cache_key(root(log).unwrap_or(id.as_str()))),
            archives,
            tools,
            pins: self.pins.clone(),
            notes,
        };
        Ok((setup, fittings))
    }

    /// Returns the bytes that all runs of this agent hold that are under way: see
    /// [`Session::current_query_memory_usage`]. O(1).
    #[must_use]
    pub fn current_query_memory_usage(&self) -> usize {
        self.parts.held.load(Ordering::Relaxed)
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
        edits_files: tool.edits_files(),
        after_plan: false,
        target: {
            let tool = Arc::clone(tool);
            TargetOf::new(move |arguments| tool.target(arguments))
        },
    }
}

/// Whether the tools that recall are worth what they take of the window, in every request from the
/// first plan on; an agent that was given no tools gets none of ours. Where the model has called them
/// before, they stay: a provider may refuse calls of tools that are not declared.
fn offers_recall(setup: &Setup, names: RecallNames, window: Option<Tokens>, log: &[Entry]) -> bool {
    let ours = RECALL_TOOLS.iter().take(match names {
        RecallNames::Ours => 2,
        RecallNames::Both => RECALL_TOOLS.len(),
    });
    let is_ours = |tool: &KnownTool| ours.clone().any(|name| *name == tool.spec.name);
    let learned = learned(log, &setup.model);
    let room = window
        .is_some_and(|window| window.min(learned.unwrap_or(Tokens::MAX)) >= RECALL_LEAST_WINDOW);
    let wanted = room && !setup.tools.is_empty();
    (wanted || has_recalled(log)) && !setup.tools.iter().any(is_ours)
}

/// Whether the model has called the tools that recall.
fn has_recalled(log: &[Entry]) -> bool {
    log.iter().any(|entry| match entry {
        Entry::Replied { message, .. } | Entry::Said { message, .. } => message
            .calls()
            .any(|call| RECALL_TOOLS.contains(&call.name.as_str())),
        _ => false,
    })
}

/// Whether the archive can be used. What it has of a log that is gone is taken away first; where that
/// fails it cannot be used, so that nothing of it is found.
async fn archives(
    store: &dyn SessionStore,
    lease: &Lease,
    log: &[Entry],
) -> Result<Result<(), StoreError>, Error> {
    if let Err(error) = store.archives().await {
        return Ok(Err(error));
    }
    // What the log weighs is of no interest here, so it is weighed the quickest way.
    let state = State::fold(Arc::new(Chars4), log)?;
    let next = state.transcript().next_seq();
    Ok(store.archive_up_to(lease, next).await)
}

/// The session that a log began in, where that is another: what a provider has of the one is the
/// beginning of the other, too.
fn root(log: &[Entry]) -> Option<&str> {
    log.iter().find_map(|entry| match entry {
        Entry::Forked { from, .. } => Some(from.as_str()),
        _ => None,
    })
}

/// The window that this model has taught in a session, if it was the last to run there.
fn learned(log: &[Entry], model: &str) -> Option<Tokens> {
    let of = log.iter().rev().find_map(|entry| match entry {
        Entry::Learned { window, .. } => Some(Some(*window)),
        Entry::Started { model: of, .. } if of != model => Some(None),
        _ => None,
    });
    of.flatten()
}

/// What providers that route by a key are told of a session: its name, or a hash of a long one.
fn cache_key(name: &str) -> Arc<str> {
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
