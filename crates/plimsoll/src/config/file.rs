//! [`Config`]: a whole `plimsoll.toml`. All of its faults are reported at once. For one agent, see
//! [`AgentConfig`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_providers::{ModelBook, Origin as ModelOrigin};
use serde::de::DeserializeOwned;
use toml::Table;

use super::agent::AgentConfig;
use super::document::{Located, describe};
use super::fault::{ConfigError, ConfigFault, Faults, Origin, no_such};
use super::layer::{Layer, TABLES, tables};
use super::mcp::McpServer;
use super::overrides::Overrides;
use super::provider::ProviderSettings;
use super::settings::AgentSettings;

/// Maximum size of a configuration file. Catches mistakes such as a disk image.
pub const MAX_CONFIG_FILE: u64 = 1024 * 1024;
/// Maximum size of a prompt file.
pub const MAX_PROMPT: u64 = 16 * 1024 * 1024;

/// The content of a configuration file.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub(super) path: Option<PathBuf>,
    pub(super) shared: Arc<SharedSettings>,
    pub(super) faults: Faults,
}

/// The settings that all agents of a file share.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedSettings {
    pub(crate) mcp: Vec<McpServer>,
    pub(crate) providers: BTreeMap<String, ProviderSettings>,
    /// The facts about models that the file sets.
    pub(crate) models: ModelBook,
    /// The settings for all agents.
    pub(crate) defaults: Layer,
    /// The settings of the user's own file, which apply to all agents unless overridden.
    pub(crate) users: Layer,
    pub(crate) agents: Vec<AgentPart>,
}

/// One of `[[agents]]`.
#[derive(Debug, Clone)]
pub(crate) struct AgentPart {
    pub(crate) name: String,
    pub(crate) layer: Layer,
    /// Whether it is a file of its own, which the others may call.
    pub(crate) is_file: bool,
}

impl AgentPart {
    /// Returns an agent with these settings, if it has a name.
    pub(super) fn of(layer: Layer, is_file: bool) -> Option<Self> {
        let name = layer.get("name")?;
        Some(Self {
            name,
            layer,
            is_file,
        })
    }
}

impl Config {
    /// Reads a file that the user has named, or that the program knows.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault and its line: invalid TOML, unknown keys with a suggestion,
    /// values out of range, duplicate settings, and contradicting settings of each agent.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::draft(path.as_ref()).checked()
    }

    /// Reads a file whose faults are reported later, together with those of its agents.
    #[must_use]
    pub fn draft(path: &Path) -> Self {
        let text = config_text(path);
        let mut config = Self::of(text.as_deref().unwrap_or_default(), Some(path));
        if let Err(error) = text {
            config.faults.add(error);
        }
        config
    }

    /// Reads a text.
    ///
    /// ```
    /// let config = plimsoll::config::Config::parse(
    ///     r#"
    ///     max_turns = 20
    ///     [[agents]]
    ///     name = "assistant"
    ///     context_strategy = "sliding_window"
    ///     trigger = 100_000
    ///     "#,
    /// )?;
    /// let agent = config.agent("assistant")?;
    /// assert_eq!(agent.settings().builder.limits.max_turns, Some(20));
    ///
    /// let error = plimsoll::config::Config::parse("max_trns = 20").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `max_turns`?"));
    /// # Ok::<(), plimsoll::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::of(text, None).checked()
    }

    /// Reports the faults of a [draft](Self::draft), and those of each agent's settings taken together.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn checked(mut self) -> Result<Self, ConfigError> {
        let agents = self.all_agents(|_, _| {})?;
        let first = agents.into_iter().next();
        self.faults.warnings = first.map_or_else(Vec::new, |all| all.config.faults.warnings);
        Ok(self)
    }

    /// Returns the settings for all agents, and each of the [agents](Self::agents), if a run could begin with
    /// them.
    ///
    /// # Errors
    /// As [`Config::read`], together with the faults of [`AgentConfig::check_run`].
    pub fn check_runs(&self) -> Result<Vec<AgentConfig>, ConfigError> {
        self.all_agents(|agent, faults| {
            agent.check_models(faults);
            agent.check_files(faults);
        })
    }

    /// Returns the settings for all agents, and each agent, after a check and a further one. Agents that are
    /// files were checked when they were added.
    fn all_agents(
        &self,
        check_more: impl Fn(&AgentConfig, &mut Faults),
    ) -> Result<Vec<AgentConfig>, ConfigError> {
        let mut faults = self.faults.clone();
        let agents = self.shared.agents.iter().filter(|agent| !agent.is_file);
        let parts = std::iter::once(None).chain(agents.map(Some));
        let agents = parts.map(|part| self.agent_of(&[], part, &mut faults));
        let mut agents: Vec<AgentConfig> = agents.collect();
        let idle = agents.iter().map(|agent| agent.check(&mut faults));
        let idle: Vec<Vec<ConfigFault>> = idle.collect();
        agents
            .iter()
            .for_each(|agent| check_more(agent, &mut faults));
        // A setting for all agents needs an effect on one of them. The user's own file is for others, too.
        let path = self.path.as_deref().unwrap_or(Path::new(""));
        let own = |fault: &&ConfigFault| fault.origin.path() == Some(path);
        for ConfigFault { origin, text } in idle.iter().flatten().filter(own) {
            let is_idle = |idle: &&Vec<_>| idle.iter().any(|it: &ConfigFault| it.origin == *origin);
            let is_set = |it: &&AgentConfig| it.layer.0.values().any(|it| it.origin == *origin);
            if idle.iter().filter(is_idle).count() == agents.iter().filter(is_set).count() {
                faults.push(origin, text);
            }
        }
        let warnings = faults.check()?;
        for agent in &mut agents {
            agent.config.faults.warnings.clone_from(&warnings);
        }
        Ok(agents)
    }

    /// Merges this configuration with the user's own, whose settings apply if this one does not set
    /// them. Tool servers, providers, models and agents of both are available; if two have the same
    /// name, this configuration takes precedence.
    #[must_use]
    pub fn over(mut self, users: Self) -> Self {
        self.faults.extend(users.faults);
        let mut theirs = Arc::unwrap_or_clone(users.shared);
        let shared = Arc::make_mut(&mut self.shared);
        add_new(&mut shared.mcp, theirs.mcp, |server| &server.name);
        add_new(&mut shared.agents, theirs.agents, |agent| &agent.name);
        theirs.providers.append(&mut shared.providers);
        shared.providers = theirs.providers;
        shared.models = theirs.models.overlay(std::mem::take(&mut shared.models));
        shared.users = theirs.defaults;
        self
    }

    /// Returns the names of its agents, in their order. Those that are [files](Config::file_agents)
    /// are not included.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        let agents = self.shared.agents.iter().filter(|agent| !agent.is_file);
        agents.map(|agent| agent.name.as_str())
    }

    /// Returns its tool servers.
    #[must_use]
    pub fn mcp(&self) -> &[McpServer] {
        &self.shared.mcp
    }

    /// Returns the warnings for its author, for example about an API key in the file.
    #[must_use]
    pub fn warnings(&self) -> &[ConfigFault] {
        &self.faults.warnings
    }

    /// Returns the prompt files named by its agents, each once.
    pub(crate) fn prompts(&self) -> BTreeSet<PathBuf> {
        let prompts = ["system_file", "summary.prompt_file"];
        prompts
            .iter()
            .flat_map(|path| self.shared.found(path))
            .collect()
    }

    /// Returns the file that it was read from.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns one of its agents.
    ///
    /// # Errors
    /// If there is no agent of this name. The error suggests the most similar name.
    pub fn agent(&self, name: &str) -> Result<AgentConfig, ConfigError> {
        self.resolve(Some(name), &Overrides::default())
    }

    /// Returns the settings for all agents, as an agent without a name.
    ///
    /// # Errors
    /// If the settings contradict each other. This cannot happen after successful parsing.
    pub fn defaults(&self) -> Result<AgentConfig, ConfigError> {
        self.resolve(None, &Overrides::default())
    }

    /// Returns an agent, or the settings for all agents, with flags and environment variables.
    /// Flags override the environment, which overrides the file.
    ///
    /// # Errors
    /// If there is no such agent, or if the flags, the variables, or all settings together are
    /// invalid.
    pub fn resolve(
        &self,
        name: Option<&str>,
        over: &Overrides,
    ) -> Result<AgentConfig, ConfigError> {
        let mut faults = self.faults.clone();
        faults.extend(over.faults.clone());
        let part = name.map(|name| self.shared.agent(name));
        let part = part.transpose().unwrap_or_else(|error| {
            faults.add(error);
            None
        });
        let layers = [&over.flags, &over.variables];
        let mut agent = self.agent_of(&layers, part, &mut faults);
        agent.over = Layer::merged(&layers, &mut Faults::default());
        // Idle settings of the file were judged when it was read. Flags and variables are for other runs, too.
        agent.check(&mut faults);
        agent.check_models(&mut faults);
        agent.config.faults.warnings = faults.check()?;
        Ok(agent)
    }

    /// Returns an agent, or the settings for all agents, with its settings below the layers `over`.
    pub(super) fn agent_of(
        &self,
        over: &[&Layer],
        part: Option<&AgentPart>,
        faults: &mut Faults,
    ) -> AgentConfig {
        let shared = &self.shared;
        let mut layers = over.to_vec();
        layers.extend(part.map(|part| &part.layer));
        layers.extend([&shared.defaults, &shared.users]);
        let layer = Layer::merged(&layers, faults);
        let mut settings = AgentSettings::of(&layer, faults);
        let is_called = part.is_some_and(|part| part.is_file);
        let has_tools = settings.tools.iter().any(|name| name != "none");
        if has_tools && !is_called && !layer.0.contains_key("sub_agents") {
            settings.sub_agents = self.file_agents().map(str::to_owned).collect();
        }
        AgentConfig {
            settings,
            layer,
            config: Self {
                path: self.path.clone(),
                shared: Arc::clone(shared),
                faults: Faults::default(),
            },
            ..AgentConfig::default()
        }
    }

    /// Parses the text of a file to a draft.
    pub(super) fn of(text: &str, path: Option<&Path>) -> Self {
        let mut faults = Faults::default();
        let document = Located::parse(text, path, &mut faults);
        let shared = document.map(|document| SharedSettings::read(&document, &mut faults));
        Self {
            path: path.map(Path::to_owned),
            shared: shared.unwrap_or_default().into(),
            faults,
        }
    }
}

impl SharedSettings {
    /// Returns the values of a setting, for all agents and for each.
    pub(crate) fn found<T: DeserializeOwned>(&self, path: &str) -> impl Iterator<Item = T> {
        let layers = self.agents.iter().map(|agent| &agent.layer);
        let layers = layers.chain([&self.defaults]);
        layers.filter_map(move |layer| layer.get(path))
    }

    /// Returns an agent.
    pub(crate) fn agent(&self, name: &str) -> Result<&AgentPart, ConfigError> {
        let agent = self.agents.iter().find(|agent| agent.name == name);
        agent.ok_or_else(|| {
            let known: Vec<&str> = self.agent_names().collect();
            ConfigError::of(&Origin::Default, no_such("agent", name, &known))
        })
    }

    /// Returns the names of all agents.
    pub(crate) fn agent_names(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().map(|agent| agent.name.as_str())
    }

    fn read(document: &Located, faults: &mut Faults) -> Self {
        let mut shared = Self::default();
        let list = |name: &str, faults: &mut Faults| {
            let given = document.get(name);
            given.map_or_else(Vec::new, |given| tables(name, &given, faults))
        };
        let servers = list("mcp", faults);
        let servers = servers.iter().map(|given| McpServer::of(given, faults));
        shared.mcp = servers.collect();
        for (name, given) in entries("providers", document, faults) {
            let settings = ProviderSettings::of(&name, &given, faults);
            shared.providers.insert(name, settings);
        }
        let models = document.get("models").unwrap_or_default();
        let rows = Table::try_from(&models.value).unwrap_or_default();
        let (book, errors) = ModelBook::of(&rows, ModelOrigin::Configuration);
        shared.models = book;
        for error in errors {
            let place = error.place.iter();
            let given = place.fold(models.clone(), |it, name| it.get(name).unwrap_or(it));
            faults.push(given.origin(), error.to_string());
        }
        for given in list("agents", faults) {
            let layer = Layer::of(given.entries().into_iter().flatten(), true, faults);
            if given.get("name").is_none() {
                faults.push(given.origin(), "[[agents]] needs a `name`");
            }
            shared.agents.extend(AgentPart::of(layer, false));
        }
        let own = document.entries().into_iter().flatten();
        let own = own.filter(|(name, _)| !TABLES.contains(name));
        shared.defaults = Layer::of(own, false, faults);
        shared
    }
}

/// Adds the items whose names are new.
fn add_new<T>(own: &mut Vec<T>, others: Vec<T>, name: fn(&T) -> &str) {
    for other in others {
        if own.iter().all(|had| name(had) != name(&other)) {
            own.push(other);
        }
    }
}

/// Returns the entries of a table, if there is one.
fn entries(name: &str, document: &Located, faults: &mut Faults) -> Vec<(String, Located)> {
    let given = document.get(name);
    if let Some(given) = given.iter().find(|given| !given.value.is_object()) {
        let text = format!("[{name}] is {}; give a table", describe(&given.value));
        faults.push(given.origin(), text);
    }
    let entries = given.iter().filter_map(Located::entries).flatten();
    entries
        .map(|(name, given)| (name.to_owned(), given))
        .collect()
}

/// Reads a configuration.
pub(super) fn config_text(path: &Path) -> Result<String, ConfigError> {
    let text = text(path, MAX_CONFIG_FILE, "a configuration");
    text.map_err(|fault| ConfigError::of(&Origin::Default, fault))
}

/// Reads a text file of at most so many bytes. Faults call its content `what`.
pub(super) fn text(path: &Path, most: u64, what: &str) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_string(&mut text));
    let name = format!("name a file with {what}");
    let why = match read.map_err(|error| (error.kind(), error)) {
        Ok(bytes) if bytes as u64 <= most => return Ok(text),
        Ok(_) => format!("it is larger than {} MiB; {name}", most / (1024 * 1024)),
        Err((ErrorKind::NotFound, _)) => format!("it does not exist; {name}"),
        Err((ErrorKind::InvalidData, _)) => {
            "it is not text in UTF-8; save it as UTF-8 text".to_owned()
        }
        Err((ErrorKind::IsADirectory, _)) => format!("it is a directory; {name}"),
        Err((_, error)) => error.to_string(),
    };
    Err(format!("{} cannot be read: {why}", path.display()))
}
