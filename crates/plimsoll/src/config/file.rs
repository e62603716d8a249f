//! [`Config`]: a whole `plimsoll.toml`. All of its faults are reported at once. For one agent, see
//! [`AgentConfig`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_context::{HostedTool, nearest};
use plimsoll_core::Retention;
use plimsoll_providers::{ModelBook, Origin};
use plimsoll_tools::project_files::CONFIG_FILE;

use super::agent::AgentConfig;
use super::agent_file::MAX_AGENT_FILES;
use super::document::{self, Node, Table, TableEntry, WrittenValue};
use super::fault::{ConfigError, ConfigFault, Faults};
use super::fields::Fields;
use super::guards::Guards;
use super::kind::SettingValue;
use super::layer::{Layer, Owner, TableReader};
use super::mcp::{MCP_FIELDS, McpServer};
use super::overrides::Overrides;
use super::provider::{PROVIDER_FIELDS, ProviderSettings};
use super::resolve::MergedSettings;
use super::retention::{self, SESSION_FIELDS};

/// Maximum size of a configuration file. Catches mistakes such as a disk image.
pub const MAX_CONFIG_FILE: u64 = 4 * 1024 * 1024;
/// Maximum number of agents in one file. Each is checked, and more are a mistake.
pub const MAX_AGENTS: usize = 1_000;

/// The content of a configuration file.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub(crate) path: Option<PathBuf>,
    pub(crate) shared: Arc<SharedSettings>,
    pub(super) warnings: Vec<ConfigFault>,
}

/// The settings that all agents of a file share.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedSettings {
    pub(crate) mcp: Vec<McpServer>,
    pub(crate) providers: BTreeMap<String, ProviderSettings>,
    /// How long sessions are kept.
    pub(crate) retention: Retention,
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
    pub(crate) line: usize,
    pub(crate) layer: Layer,
    /// Whether it is a file of its own, which the others may call.
    pub(crate) is_file: bool,
}

impl Config {
    /// Reads a file that the user has named, or that the program knows.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault and its line: invalid TOML, unknown keys with a suggestion,
    /// values out of range, duplicate settings, and contradicting settings of each agent.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        Self::of(&text(path)?, Some(path))
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
    /// assert_eq!(agent.settings().builder.limits.max_turns, 20);
    ///
    /// let error = plimsoll::config::Config::parse("max_trns = 20").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `max_turns`?"));
    /// # Ok::<(), plimsoll::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::of(text, None)
    }

    /// Merges this configuration with the user's own, whose settings apply if this one does not set
    /// them. Tool servers, providers, models and agents of both are available; if two have the same
    /// name, this configuration takes precedence.
    ///
    /// # Errors
    /// If settings of the two contradict each other.
    pub fn over(mut self, users: Self) -> Result<Self, ConfigError> {
        let told = users.warnings.iter().map(|warning| ConfigFault {
            line: None,
            text: warning.in_file(users.path.as_deref()),
        });
        self.warnings.extend(told);
        let theirs = Arc::unwrap_or_clone(users.shared);
        let mut shared = Arc::unwrap_or_clone(self.shared);
        let new = theirs.mcp.into_iter();
        let new = new.filter(|other| shared.mcp.iter().all(|had| had.name != other.name));
        shared.mcp.extend(new.collect::<Vec<_>>());
        for (name, provider) in theirs.providers {
            shared.providers.entry(name).or_insert(provider);
        }
        let new = theirs.agents.into_iter();
        let new = new.filter(|other| shared.agents.iter().all(|had| had.name != other.name));
        shared.agents.extend(new.collect::<Vec<_>>());
        shared.retention = Retention {
            max_age: shared.retention.max_age.or(theirs.retention.max_age),
            max_bytes: shared.retention.max_bytes.or(theirs.retention.max_bytes),
        };
        shared.models = theirs.models.overlay(shared.models);
        shared.users = theirs.defaults;
        self.shared = Arc::new(shared);
        let (mut faults, mut warnings) = (Faults::default(), Faults::default());
        self.check(&mut faults, &mut warnings);
        faults.check(self.path.as_deref())?;
        Ok(self)
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
        &self.warnings
    }

    /// Returns the prompt files named by its agents, each once.
    pub(crate) fn prompts(&self) -> BTreeSet<PathBuf> {
        let layers = self.shared.agents.iter().map(|agent| &agent.layer);
        let layers = layers.chain([&self.shared.defaults]);
        let found = layers.flat_map(|layer| &layer.found);
        let prompts = found.filter_map(|found| match (found.key.name, &found.value) {
            ("system_file" | "prompt_file", SettingValue::Path(path)) => Some(path.clone()),
            _ => None,
        });
        prompts.collect()
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
        over: &Overrides<'_>,
    ) -> Result<AgentConfig, ConfigError> {
        let path = self.path.as_deref();
        let mut faults = Faults::default();
        let mut warnings = Faults(self.warnings.clone());
        let (flags, variables) = over.layers(&mut faults);
        let agent = match name {
            None => None,
            Some(name) => {
                let found = self.shared.agents.iter().find(|agent| agent.name == name);
                if found.is_none() {
                    faults.push(None, self.no_such(name));
                }
                found
            }
        };
        let over = [&flags, &variables];
        let resolved = self
            .shared
            .resolve(&over, agent, &mut faults, &mut warnings);
        let mut agent = AgentConfig::new(resolved, Arc::clone(&self.shared), path, warnings.0);
        agent.guards = Guards::of(&over);
        agent.check(&mut faults);
        faults.check(path)?;
        Ok(agent)
    }

    fn no_such(&self, name: &str) -> String {
        let names: Vec<&str> = self.agents().chain(self.file_agents()).collect();
        if names.is_empty() {
            return format!("there is no agent `{name}`: the configuration has no [[agents]]");
        }
        let near = nearest(name, names.iter().copied());
        let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        format!(
            "there is no agent `{name}`; {near}there is: {}",
            names.join(", ")
        )
    }

    /// Parses the text of a file.
    pub(super) fn of(text: &str, path: Option<&Path>) -> Result<Self, ConfigError> {
        let (mut faults, mut warnings) = (Faults::default(), Faults::default());
        let mut table = document::parse(text).map_err(|faults| faults.error(path))?;
        let here = path.unwrap_or_else(|| Path::new(CONFIG_FILE));
        let mut reader = TableReader {
            path: here,
            faults: &mut faults,
            warnings: &mut warnings,
        };
        let mut shared = SharedSettings::read(&mut table, &mut reader);
        let agents = agents(&mut table, &mut reader);
        shared.agents = agents;
        shared.defaults = reader.layer(Owner::All, table);
        let mut config = Self {
            path: path.map(Path::to_owned),
            shared: Arc::new(shared),
            warnings: Vec::new(),
        };
        config.check(&mut faults, &mut warnings);
        config.warnings = warnings.0;
        faults.check(path)?;
        Ok(config)
    }

    /// Adds an agent that is a file, unless its name is taken, there are too many already, or it is
    /// faulty together with the agents that may call it.
    pub(super) fn with(&self, part: AgentPart, faults: &mut Faults) -> Self {
        if self
            .shared
            .agents
            .iter()
            .any(|agent| agent.name == part.name)
        {
            return self.clone();
        }
        if self.file_agents().count() == MAX_AGENT_FILES {
            faults.push(
                None,
                format!("there are {MAX_AGENT_FILES} such agents already"),
            );
            return self.clone();
        }
        let mut with = self.clone();
        Arc::make_mut(&mut with.shared).agents.push(part);
        with.check_some(
            [None, with.shared.agents.last()],
            faults,
            &mut Faults::default(),
        );
        if faults.0.is_empty() {
            with
        } else {
            self.clone()
        }
    }

    /// Reports the faults of each agent's settings taken together.
    fn check(&self, faults: &mut Faults, warnings: &mut Faults) {
        let agents = self.shared.agents.iter().map(Some);
        self.check_some(std::iter::once(None).chain(agents), faults, warnings);
    }

    fn check_some<'a>(
        &'a self,
        agents: impl IntoIterator<Item = Option<&'a AgentPart>>,
        faults: &mut Faults,
        warnings: &mut Faults,
    ) {
        let path = self.path.as_deref();
        for own in agents {
            let resolved = self.shared.resolve(&[], own, faults, warnings);
            let agent = AgentConfig::new(resolved, Arc::clone(&self.shared), path, Vec::new());
            agent.check(faults);
        }
    }
}

impl SharedSettings {
    /// Returns the settings of an agent, or of all agents, below the layers `over`.
    pub(crate) fn resolve(
        &self,
        over: &[&Layer],
        agent: Option<&AgentPart>,
        faults: &mut Faults,
        warnings: &mut Faults,
    ) -> MergedSettings {
        let own = agent.map(|agent| &agent.layer);
        let layers = over
            .iter()
            .copied()
            .chain(own)
            .chain([&self.defaults, &self.users]);
        let mut resolved = MergedSettings::of(&layers.collect::<Vec<_>>(), faults, warnings);
        let is_called = agent.is_some_and(|agent| agent.is_file);
        let has_tools = resolved.settings.tools.iter().any(|name| name != "none");
        if has_tools && !is_called && !resolved.found.contains_key("sub_agents") {
            let files = self.agents.iter().filter(|agent| agent.is_file);
            resolved.settings.sub_agents = files.map(|agent| agent.name.clone()).collect();
        }
        resolved
    }

    /// Returns the hosted tools of all agents.
    pub(crate) fn hosted_tools(&self) -> impl Iterator<Item = &HostedTool> {
        let layers = self.agents.iter().map(|agent| &agent.layer);
        let found = layers
            .chain([&self.defaults])
            .flat_map(|layer| &layer.found);
        found.flat_map(|found| match &found.value {
            SettingValue::Hosted(tools) => tools.as_slice(),
            _ => &[],
        })
    }

    fn read(table: &mut Table, reader: &mut TableReader<'_>) -> Self {
        let mut shared = Self::default();
        if let Some(entry) = table.take("mcp") {
            for node in list("[[mcp]]", entry, reader.faults) {
                let fields =
                    Fields::read(MCP_FIELDS, "[[mcp]]", node.line, node.value, reader.faults);
                let Some(server) = McpServer::of(&fields, reader.faults) else {
                    continue;
                };
                if shared.mcp.iter().any(|other| other.name == server.name) {
                    let text = format!("two servers are named `{}`; rename one", server.name);
                    reader.faults.at(fields.line_of("name"), text);
                }
                shared.mcp.push(server);
            }
        }
        if let Some(entry) = table.take("providers") {
            for entry in table_of("[providers]", entry, reader.faults) {
                let place = format!("[providers.{}]", entry.key);
                let (line, given) = (entry.line, entry.node.value);
                let fields = Fields::read(PROVIDER_FIELDS, &place, line, given, reader.faults);
                let settings =
                    ProviderSettings::of(&entry.key, &fields, reader.faults, reader.warnings);
                shared.providers.insert(entry.key, settings);
            }
        }
        if let Some(entry) = table.take("sessions") {
            let (line, given) = (entry.line, entry.node.value);
            let fields = Fields::read(SESSION_FIELDS, "[sessions]", line, given, reader.faults);
            shared.retention = retention::of(&fields);
        }
        if let Some(entry) = table.take("models") {
            shared.models(entry, reader.faults);
        }
        shared
    }

    /// Parses each model by itself, so that every fault is reported: `vendor.model` or
    /// `"vendor/model"`.
    fn models(&mut self, entry: TableEntry, faults: &mut Faults) {
        for vendor in table_of("[models]", entry, faults) {
            if vendor.key.contains('/') {
                self.model(None, vendor, faults);
                continue;
            }
            let place = format!("[models.{}]", vendor.key);
            let of = vendor.key.clone();
            for model in table_of(&place, vendor, faults) {
                self.model(Some(&of), model, faults);
            }
        }
    }

    fn model(&mut self, vendor: Option<&str>, entry: TableEntry, faults: &mut Faults) {
        let line = entry.line;
        let mut rows = toml::Table::new();
        rows.insert(entry.key, value(entry.node.value));
        if let Some(vendor) = vendor {
            let row = std::mem::take(&mut rows);
            rows.insert(vendor.to_owned(), toml::Value::Table(row));
        }
        match ModelBook::of(&rows, Origin::Configuration) {
            Ok(book) => self.models = std::mem::take(&mut self.models).overlay(book),
            Err(error) => faults.at(line, error.to_string()),
        }
    }
}

/// Returns the tables of a list of tables.
fn list(name: &str, entry: TableEntry, faults: &mut Faults) -> Vec<Node> {
    match entry.node.value {
        WrittenValue::List(nodes) => nodes,
        given => {
            faults.at(
                entry.line,
                format!("{name} is {given}; give a list of tables, each {name}"),
            );
            Vec::new()
        }
    }
}

fn table_of(name: &str, entry: TableEntry, faults: &mut Faults) -> Vec<TableEntry> {
    match entry.node.value {
        WrittenValue::Table(table) => table.0,
        given => {
            faults.at(entry.line, format!("{name} is {given}; give a table"));
            Vec::new()
        }
    }
}

fn agents(table: &mut Table, reader: &mut TableReader<'_>) -> Vec<AgentPart> {
    let mut agents: Vec<AgentPart> = Vec::new();
    if let Some(entry) = table.take("agents") {
        let mut nodes = list("[[agents]]", entry, reader.faults);
        if nodes.len() > MAX_AGENTS {
            let line = nodes.get(MAX_AGENTS).map_or(1, |node| node.line);
            let text = format!(
                "there are {} agents; {MAX_AGENTS} may be in one file",
                nodes.len()
            );
            reader.faults.at(line, text);
            nodes.truncate(MAX_AGENTS);
        }
        for node in nodes {
            let line = node.line;
            let WrittenValue::Table(own) = node.value else {
                let text = format!("an agent is {}; give [[agents]] with a `name`", node.value);
                reader.faults.at(line, text);
                continue;
            };
            let layer = reader.layer(Owner::OneAgent, own);
            let name = layer.found.iter().find(|found| found.key.name == "name");
            let Some(name) = name else {
                reader.faults.at(line, "[[agents]] needs a `name`");
                continue;
            };
            let (at, name) = (
                name.line().unwrap_or(line),
                super::kind::as_text(&name.value),
            );
            if name.trim().is_empty() {
                reader.faults.at(at, "an agent's `name` is empty; give one");
            }
            if let Some(other) = agents.iter().find(|agent| agent.name == name) {
                let text = format!(
                    "two agents are named `{name}` (the other is on line {}); rename one",
                    other.line
                );
                reader.faults.at(at, text);
            }
            agents.push(AgentPart {
                name,
                line,
                layer,
                is_file: false,
            });
        }
    }
    agents
}

fn value(written: WrittenValue) -> toml::Value {
    match written {
        WrittenValue::Flag(flag) => flag.into(),
        WrittenValue::Whole(Some(whole)) => whole.into(),
        WrittenValue::Whole(None) => f64::INFINITY.into(),
        WrittenValue::Number(number) => number.into(),
        WrittenValue::Text(text) | WrittenValue::Date(text) => text.into(),
        WrittenValue::Code => String::new().into(),
        WrittenValue::List(nodes) => nodes
            .into_iter()
            .map(|node| value(node.value))
            .collect::<Vec<_>>()
            .into(),
        WrittenValue::Table(table) => {
            let entries = table.0.into_iter();
            let table = entries.map(|entry| (entry.key, value(entry.node.value)));
            toml::Value::Table(table.collect())
        }
    }
}

pub(super) fn text(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |what: String| {
        let mut faults = Faults::default();
        faults.push(None, format!("{} cannot be read: {what}", path.display()));
        faults.error(Some(path))
    };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAX_CONFIG_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAX_CONFIG_FILE {
        let most = MAX_CONFIG_FILE / (1024 * 1024);
        return Err(unreadable(format!(
            "it is larger than {most} MiB, and no configuration is"
        )));
    }
    String::from_utf8(bytes).map_err(|_| unreadable("it is not text in UTF-8".to_owned()))
}
