//! Builds an agent from the command-line arguments, for every command that runs one, and the agents that
//! it calls, each with its own model or the caller's. The command adds the gate and the observers.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll::config::{
    AgentConfig, AgentModel, AgentSettings, ConfigError, Instructions, MakeAgent,
};
use plimsoll::permissions::{Answer, DenyAll, Question};
use plimsoll::store::{Retention, SessionReader, SqliteStore, StoreError};
use plimsoll::tools::{SandboxMode, Skills};
use plimsoll::{
    Agent, AgentBuilder, Gate, Observer, PermissionMode, Session, SessionId, SessionStore, Tokens,
    Tool, Window,
};

use crate::error::CliError;
use crate::mcp::Mcp;
use crate::model_choice::{self, ModelChoice, ModelLimits};
use crate::outcome::stop_of;
use crate::paths;
use crate::sandbox;
use crate::settings::{ResolvedSettings, Sources};
use crate::terminal::Verbosity;
use crate::terminal::text::{counted, lines_of};
use crate::trust;

/// The built-in system prompt.
pub(crate) const SYSTEM: &str = include_str!("../prompts/system.md");
/// The system prompt for local models. Small models work better with one call at a time.
pub(crate) const LOCAL_SYSTEM: &str = include_str!("../prompts/system_local.md");
/// Maximum size of a task or a system prompt. Catches mistakes such as a disk image.
pub(crate) const TEXT_LIMIT: u64 = 16 * 1024 * 1024;
/// The timeout of a summary on this machine, because local models read slowly.
const LOCAL_SUMMARY: Duration = Duration::from_secs(300);

/// An agent without its gate and its observers.
pub(crate) struct PreparedAgent {
    /// The configuration, adapted to the model.
    pub(crate) config: AgentConfig,
    pub(crate) builder: AgentBuilder,
    pub(crate) choice: ModelChoice,
    tools: Vec<Arc<dyn Tool>>,
    /// The gate of called agents, unless they use the gate of this agent. Must be set.
    pub(crate) asked: DeferredGate,
    mcp: Mcp,
}

/// An agent with its parts.
pub(crate) struct ReadyAgent {
    pub(crate) agent: Agent,
    pub(crate) config: AgentConfig,
    /// Keeps Plimsoll's own model server running.
    pub(crate) choice: ModelChoice,
    /// The connected MCP servers.
    pub(crate) mcp: Mcp,
}

/// The gate of called agents. Until it is set, all questions are denied.
#[derive(Clone, Default)]
pub(crate) struct DeferredGate(Arc<OnceLock<Arc<dyn Gate>>>);

/// The caller's properties that a called agent inherits unless it has its own.
pub(crate) struct CallerSettings {
    pub(crate) model: AgentModel,
    /// The name of the caller's model. Agents with the same model name share its connection.
    pub(crate) name: Option<String>,
    pub(crate) fit: ModelLimits,
    /// The caller's permission mode. An agent may be stricter.
    pub(crate) mode: PermissionMode,
    pub(crate) sandbox: SandboxMode,
    pub(crate) asked: DeferredGate,
    pub(crate) mcp: Mcp,
}

impl PreparedAgent {
    /// Builds the agent with a gate and the observers of its events.
    pub(crate) fn build(
        self,
        gate: Arc<dyn Gate>,
        observers: impl IntoIterator<Item = Arc<dyn Observer>>,
    ) -> Result<ReadyAgent, CliError> {
        let Self {
            config,
            choice,
            tools,
            ..
        } = self;
        self.asked.set(Arc::clone(&gate));
        let builder = self.builder.shared_gate(gate);
        let builder = observers
            .into_iter()
            .fold(builder, AgentBuilder::shared_observer);
        let agent = builder.build();
        Ok(ReadyAgent {
            agent: agent.map_err(|error| {
                let make =
                    |config: &AgentConfig| config.builder_with(choice.model.clone(), tools.clone());
                CliError::usage(config.place(&error, &make))
            })?,
            config,
            choice,
            mcp: self.mcp,
        })
    }
}

impl ReadyAgent {
    /// Opens a session.
    pub(crate) async fn session(&self, id: SessionId) -> Result<Session, CliError> {
        let session = self.agent.session(id).await;
        session.map_err(|error| stop_of(&error))
    }
}

impl DeferredGate {
    /// Sets the gate. Only the first call has an effect.
    pub(crate) fn set(&self, gate: Arc<dyn Gate>) {
        let _ = self.0.set(gate);
    }
}

#[async_trait]
impl Gate for DeferredGate {
    async fn decide(&self, question: &Question) -> Answer {
        match self.0.get() {
            Some(gate) => gate.decide(question).await,
            None => DenyAll.decide(question).await,
        }
    }
}

impl CallerSettings {
    /// Returns the builder of a called agent.
    pub(crate) fn make(&self, config: &AgentConfig) -> Result<AgentBuilder, ConfigError> {
        let mut config = config.clone();
        let model = config.model_beside(self.name.as_deref(), &self.model)?;
        let built_in = if Arc::ptr_eq(&model.provider, &self.model.provider) {
            adapt(config.settings_mut(), self.fit);
            self.fit.system
        } else {
            SYSTEM
        };
        let system = config.system()?;
        let settings = config.settings_mut();
        settings.system = Some(system.as_deref().unwrap_or(built_in).trim_end().to_owned());
        let own = settings.permission_mode.unwrap_or(self.mode);
        settings.permission_mode = Some(own.min(self.mode));
        settings.sandbox = settings.sandbox.min(self.sandbox);
        trust::project(&config.settings().root).add_skills(&mut config);
        let mut tools = config.tools()?;
        tools.extend(self.mcp.tools(&config, &tools));
        Ok(config.builder_with(model, tools)?.gate(self.asked.clone()))
    }
}

/// Opens the store of sessions.
pub(crate) async fn store() -> Result<Arc<SqliteStore>, CliError> {
    #[cfg(not(feature = "restate"))]
    crate::sessions::open_store::no_database()?;
    let store = SqliteStore::open(paths::data()?).await;
    Ok(Arc::new(store.map_err(CliError::failed)?))
}

/// Deletes, after a run, the sessions that `[sessions]` in the configuration does not keep, and prints their
/// number unless `is_quiet`. An error is printed but does not fail the run.
pub(crate) async fn prune(store: &SqliteStore, retention: Retention, is_quiet: bool) {
    if retention == Retention::default() {
        return;
    }
    let pruned = async {
        let pruned = store.prune(&store.outdated(&retention).await?).await;
        if !pruned.deleted.is_empty() {
            store.shrink().await?;
        }
        Ok::<_, StoreError>(pruned.deleted.len())
    };
    match pruned.await {
        Ok(count) if count == 0 || is_quiet => {}
        Ok(count) => note!(
            "deleted {} that the configuration does not keep ([sessions])",
            counted(count, "session")
        ),
        Err(error) => say!("{error}"),
    }
}

/// Resolves the arguments and finds the model. `mcp` are servers that are connected already.
pub(crate) async fn prepare(
    sources: &Sources,
    said: Verbosity,
    store: Arc<dyn SessionStore>,
    mcp: Option<Mcp>,
) -> Result<PreparedAgent, CliError> {
    sources.name_config();
    trust::ask(&sources.root()).await?;
    let ResolvedSettings { mut agent, notes } = sources.resolve()?;
    // The configuration may set another root.
    trust::ask(&agent.settings().root).await?;
    for note in notes.iter().filter(|_| said == Verbosity::Everything) {
        crate::say(note);
    }
    agent.check_tools().map_err(CliError::usage)?;
    let settings = agent.settings_mut();
    settings.permission_mode = settings.permission_mode.or(Some(PermissionMode::Ask));
    // The data directory contains the permanent approvals.
    agent.protect(paths::data()?);
    let is_held = agent.settings().sandbox != SandboxMode::Off;
    match sandbox::launcher() {
        // An agent that this one calls may be in a sandbox.
        Ok(launcher) => agent.sandbox_launcher(launcher),
        Err(stop) if is_held => return Err(stop),
        Err(_) => {}
    }
    let project = trust::project(&agent.settings().root);
    project.add_skills(&mut agent);
    let skills = agent.skills();
    let mut tools = agent.tools().map_err(CliError::usage)?;
    let instructions = Instructions::read(&agent, &project).map_err(CliError::usage)?;
    if said == Verbosity::Everything {
        let files = instructions.files().map(|path| path.display().to_string());
        let files: Vec<String> = files.collect();
        if !files.is_empty() {
            note!("instructions from {}", files.join(", "));
        }
        for note in skill_notes(&agent, &skills) {
            crate::note(&note);
        }
    }
    let choice = model_choice::choose(&agent, said).await;
    let choice = choice.map_err(|stop| match &sources.resumed {
        Some(resumed) => resumed.explain(stop),
        None => stop,
    })?;
    adapt(agent.settings_mut(), choice.fit);
    let mcp = match mcp {
        Some(mcp) => mcp,
        None => Mcp::connect(&agent, said).await?,
    };
    tools.extend(mcp.tools(&agent, &tools));
    let asked = DeferredGate::default();
    let built_in = match choice.fit.system {
        SYSTEM => format!("{}\n{}", SYSTEM.trim_end(), project.surroundings()),
        other => other.to_owned(),
    };
    instructions.apply(&mut agent, &built_in);
    let called = CallerSettings {
        model: choice.model.clone(),
        name: agent.settings().model.clone(),
        fit: choice.fit,
        mode: agent.settings().permission_mode(),
        sandbox: agent.settings().sandbox,
        asked: asked.clone(),
        mcp: mcp.clone(),
    };
    let make: MakeAgent = Arc::new(move |config| called.make(config));
    tools.extend(agent.sub_agents(&make).map_err(CliError::usage)?);
    let builder = agent.builder_with(choice.model.clone(), tools.clone());
    let builder = builder.map_err(CliError::usage)?.store(store);
    Ok(PreparedAgent {
        config: agent,
        builder,
        choice,
        tools,
        asked,
        mcp,
    })
}

/// Adapts settings that are not configured to the chosen model.
pub(crate) fn adapt(settings: &mut AgentSettings, fit: ModelLimits) {
    settings.builder.max_tokens = settings.builder.max_tokens.or(fit.max_tokens.map(Tokens));
    let identical = &mut settings.builder.limits.max_identical_tool_calls;
    *identical = identical.or(fit.max_identical_tool_calls);
    // A server that answers one call at a time takes longer for a summary.
    if fit.one_at_a_time && settings.summarizer.is_none() {
        settings.builder.driver.summary_timeout = settings
            .builder
            .driver
            .summary_timeout
            .or(Some(LOCAL_SUMMARY));
    }
}

/// Formats the headline: `m in DIR │ window 8192 tokens, from the server │ session …`.
pub(crate) fn headline(
    settings: &AgentSettings,
    choice: &ModelChoice,
    session: &Session,
) -> String {
    let known = match choice.model.window {
        Window::Known(tokens) => Some(tokens),
        _ => None,
    };
    let window = match session.window() {
        Some(window) if session.view().learned_window() == Some(window) => {
            format!("{window} tokens, from an error of the provider")
        }
        // The note above gives the reason.
        Some(window) if known != Some(window) => format!("{window} tokens"),
        Some(window) => format!("{window} tokens, {}", choice.window_from),
        None => choice.window_from.to_owned(),
    };
    lines_of(&[
        format!(
            "{} in {}",
            choice.model.provider.model(),
            settings.root.display()
        ),
        format!("window {window}"),
        format!("session {}", session.id()),
    ])
}

/// Describes the reason why a text cannot be read, and the cure.
pub(crate) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData => "it is not UTF-8; save it as UTF-8 text".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory; name a file".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns lines about the available skills, the ignored skills, and the agents that the agent may
/// call.
fn skill_notes(agent: &AgentConfig, skills: &Skills) -> Vec<String> {
    let names: Vec<&str> = skills.names().collect();
    let agents = &agent.settings().sub_agents;
    let found = (!names.is_empty()).then(|| format!("skills: {}", names.join(", ")));
    let called = (!agents.is_empty()).then(|| format!("agents: {}", agents.join(", ")));
    let left_out = skills.notes().to_vec();
    found.into_iter().chain(called).chain(left_out).collect()
}
