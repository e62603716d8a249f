//! Builds an agent from the command-line arguments, for every command that runs one, and the agents that
//! it calls, each with its own model or the caller's.

use std::sync::Arc;
use std::time::Duration;

use plimsoll::config::{AgentConfig, AgentModel, AgentSettings, ConfigError, MakeAgent};
use plimsoll::providers::ServerLocation;
use plimsoll::store::{Retention, SessionReader, SqliteStore, StoreError};
use plimsoll::tools::SandboxMode;
use plimsoll::tools::mcp::McpServers;
use plimsoll::{Agent, AgentBuilder, Gate, Observer, PermissionMode, SessionStore};

use crate::answer_schema::AnswerSchema;
use crate::error::CliError;
use crate::local;
use crate::mcp;
use crate::model_choice::{self, ModelChoice};
use crate::paths;
use crate::sandbox;
use crate::settings::{ResolvedSettings, Sources};
use crate::terminal::text::counted;
use crate::trust;

/// The built-in system prompt.
const SYSTEM: &str = include_str!("../prompts/system.md");
/// The system prompt for local models. Small models work better with one call at a time.
const LOCAL_SYSTEM: &str = include_str!("../prompts/system_local.md");
/// The timeout of a summary on this machine, because local models read slowly.
const LOCAL_SUMMARY: Duration = Duration::from_secs(300);

/// The side of a session that faces the user.
#[derive(Clone)]
pub(crate) struct UserSide {
    /// Asks the user about tool calls, also those of sub-agents.
    pub(crate) gate: Arc<dyn Gate>,
    /// Shows the events of runs.
    pub(crate) observer: Arc<dyn Observer>,
    /// The schema that answers must match.
    pub(crate) schema: Option<AnswerSchema>,
}

/// An agent with its parts.
pub(crate) struct ReadyAgent {
    pub(crate) agent: Agent,
    /// The configuration, adapted to the model.
    pub(crate) config: AgentConfig,
    pub(crate) user: UserSide,
    /// Keeps Plimsoll's own model server running.
    pub(crate) choice: ModelChoice,
    /// The connected MCP servers.
    pub(crate) mcp: Arc<McpServers>,
}

/// An agent that calls others, which inherit its properties unless they have their own.
struct CallingAgent {
    settings: AgentSettings,
    model: AgentModel,
    place: ServerLocation,
    gate: Arc<dyn Gate>,
    mcp: Arc<McpServers>,
}

impl CallingAgent {
    /// Returns the builder of a called agent.
    fn make(&self, config: &AgentConfig) -> Result<AgentBuilder, ConfigError> {
        let mut config = config.clone();
        // Agents with the same model name share its connection.
        let model = config.model_beside(self.settings.model.as_deref(), &self.model)?;
        let built_in = if Arc::ptr_eq(&model.provider, &self.model.provider) {
            adapt(config.settings_mut(), self.place);
            built_in(self.place)
        } else {
            SYSTEM
        };
        let system = config.system()?;
        let system = system.as_deref().unwrap_or(built_in).trim_end().to_owned();
        config.settings_mut().system = Some(system);
        trust::project(&config.settings().root).add_skills(&mut config);
        let mut tools = config.tools()?;
        tools.extend(self.mcp.tools_of(|name| config.uses_mcp(name), &tools));
        Ok(config
            .builder_with(model, tools)?
            .shared_gate(Arc::clone(&self.gate)))
    }
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

/// Resolves the arguments, after asking whether the files of the project are to be trusted.
pub(crate) async fn resolve(sources: &Sources, is_quiet: bool) -> Result<AgentConfig, CliError> {
    sources.name_config();
    trust::ask(&sources.root()).await?;
    let ResolvedSettings { mut agent, notes } = sources.resolve()?;
    // The configuration may set another root.
    trust::ask(&agent.settings().root).await?;
    for note in notes.iter().filter(|_| !is_quiet) {
        crate::say(note);
    }
    agent.check_run()?;
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
    Ok(agent)
}

/// Finds the model and builds the agent. `mcp` are servers that are connected already.
pub(crate) async fn build(
    mut agent: AgentConfig,
    sources: &Sources,
    user: UserSide,
    is_quiet: bool,
    store: Arc<dyn SessionStore>,
    mcp: Option<Arc<McpServers>>,
) -> Result<ReadyAgent, CliError> {
    let project = trust::project(&agent.settings().root);
    project.add_skills(&mut agent);
    let skills = agent.skills();
    let mut tools = agent.tools()?;
    if !is_quiet {
        let found: Vec<&str> = skills.names().collect();
        let called = &agent.settings().sub_agents;
        for (kind, names) in [("skills", found.join(", ")), ("agents", called.join(", "))] {
            if !names.is_empty() {
                note!("{kind}: {names}");
            }
        }
        skills.notes().iter().for_each(|note| crate::note(note));
    }
    let choice = model_choice::choose(&agent, is_quiet).await;
    let choice = choice.map_err(|stop| match &sources.resumed {
        Some(resumed) => CliError {
            text: format!("{resumed}: {}", stop.text),
            ..stop
        },
        None => stop,
    })?;
    adapt(agent.settings_mut(), choice.place);
    let mcp = match mcp {
        Some(mcp) => mcp,
        None => Arc::new(mcp::connect(&agent, &agent.mcp(), is_quiet).await?),
    };
    tools.extend(mcp.tools_of(|name| agent.uses_mcp(name), &tools));
    let built_in = match built_in(choice.place) {
        SYSTEM => format!("{}\n{}", SYSTEM.trim_end(), project.surroundings()),
        other => other.to_owned(),
    };
    let files = project.instruct(&mut agent, &built_in)?;
    if !is_quiet && !files.is_empty() {
        let files: Vec<String> = files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        note!("instructions from {}", files.join(", "));
    }
    let caller = CallingAgent {
        settings: agent.settings().clone(),
        model: choice.model.clone(),
        place: choice.place,
        gate: Arc::clone(&user.gate),
        mcp: Arc::clone(&mcp),
    };
    let make: MakeAgent = Arc::new(move |config| caller.make(config));
    tools.extend(agent.sub_agents(&make)?);
    let builder = agent.builder_with(choice.model.clone(), tools)?;
    let builder = builder.store(store).shared_gate(Arc::clone(&user.gate));
    let mut builder = builder.shared_observer(Arc::clone(&user.observer));
    if let Some(schema) = user.schema.clone() {
        builder = builder.check_answer(move |answer: String| schema.check(&answer).map(drop));
    }
    let built = builder.build();
    Ok(ReadyAgent {
        agent: built.map_err(|error| CliError::usage(agent.place(&error)))?,
        config: agent,
        user,
        choice,
        mcp,
    })
}

/// Adapts settings that are not configured to the place of the model's server.
fn adapt(settings: &mut AgentSettings, place: ServerLocation) {
    let builder = &mut settings.builder;
    if place == ServerLocation::Ours {
        builder.max_tokens.get_or_insert(local::MAX_TOKENS);
        let identical = &mut builder.limits.max_identical_tool_calls;
        identical.get_or_insert(local::MAX_IDENTICAL);
    }
    // A server on this machine answers one call at a time, so a summary takes longer.
    let is_here = matches!(place, ServerLocation::Ours | ServerLocation::ThisMachine);
    if is_here && settings.summarizer.is_none() {
        let timeout = &mut builder.driver.summary_timeout;
        timeout.get_or_insert(LOCAL_SUMMARY);
    }
}

/// Returns the built-in system prompt, without the surroundings.
fn built_in(place: ServerLocation) -> &'static str {
    match place {
        ServerLocation::Ours => LOCAL_SYSTEM,
        _ => SYSTEM,
    }
}
