//! [`AgentConfig`]: the configuration of one agent, with the origin of each setting. `build_agent.rs`
//! converts it to the settings of a builder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_context::PriceSheet;
use plimsoll_core::Tool;
use plimsoll_core::process::InheritedVariables;
use plimsoll_providers::{
    ModelBook, ModelClient, ModelClientBuilder, ModelFacts, ModelRef, Secret,
};
use plimsoll_tools::{Root, Sandbox, SandboxMode, Skills, Toolbox};
use plimsoll_wire::openai_chat::Dialect;

use super::fault::{ConfigError, ConfigFault, Origin};
use super::file::{Config, MAX_PROMPT, SharedSettings, text};
use super::layer::Layer;
use super::settings::AgentSettings;

/// The configuration of one agent, or the settings that apply to all agents.
#[derive(Debug, Clone, Default)]
pub struct AgentConfig {
    pub(super) settings: AgentSettings,
    /// The settings that were set, each with its origin.
    pub(super) layer: Layer,
    /// The file, with the warnings of this agent.
    pub(super) config: Config,
    /// The settings of the command line and the environment, whose restrictions hold for agents that it calls.
    pub(super) over: Layer,
    /// Files that are changed only after approval.
    pub(super) protected: Vec<PathBuf>,
    /// The program, with its first arguments, that enters the sandbox of `bash`.
    pub(super) sandbox_launcher: Vec<OsString>,
}

impl AgentConfig {
    /// Returns the settings, merged from all layers.
    #[must_use]
    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// Returns the settings, to be changed by a program. Their origins stay the same.
    pub fn settings_mut(&mut self) -> &mut AgentSettings {
        &mut self.settings
    }

    /// Returns the warnings for the author of the settings.
    #[must_use]
    pub fn warnings(&self) -> &[ConfigFault] {
        &self.config.faults.warnings
    }

    /// Returns the origin of a setting by the key's full name, or `None` if the default applies.
    #[must_use]
    pub fn origin(&self, path: &str) -> Option<&Origin> {
        self.layer.0.get(path).map(|found| &found.origin)
    }

    pub(super) fn shared(&self) -> &SharedSettings {
        &self.config.shared
    }

    /// Returns the facts about a model, from this configuration and the built-in table.
    #[must_use]
    pub fn facts(&self, model: &ModelRef) -> ModelFacts {
        let book = ModelBook::built_in().clone();
        book.overlay(self.shared().models.clone()).facts(model)
    }

    /// Returns the prices of a model, from this configuration or the built-in table.
    #[must_use]
    pub fn prices(&self, model: &ModelRef) -> Option<PriceSheet> {
        self.facts(model).sheet()
    }

    /// Returns the facts about models that the configuration sets.
    #[must_use]
    pub fn own_models(&self) -> &ModelBook {
        &self.shared().models
    }

    /// Returns a model's name and a client builder with the settings of its provider: the key, the
    /// address and the headers of `[providers.NAME]`, the facts of `[models]`, and the agent's
    /// timeouts and style of tool calls.
    ///
    /// # Errors
    /// If there is no such provider, or if its key is missing.
    pub fn chat(
        &self,
        model: &str,
        variables: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(ModelRef, ModelClientBuilder), ConfigError> {
        let (provider, name) = model.split_once('/').unwrap_or((model, ""));
        let made = match self.shared().providers.get(provider) {
            Some(own) => own.chat(name, variables),
            None => ModelRef::parse(model)
                .map(|model| (model.clone(), ModelClient::builder(model)))
                .map_err(|error| error.to_string()),
        };
        let (model, mut chat) = made.map_err(|fault| self.fault(fault))?;
        if let Some(tools) = self.settings.tool_style {
            let dialect = model.vendor().dialect();
            chat = chat.dialect(Dialect { tools, ..dialect });
        }
        let facts = self.facts(&model);
        Ok((model, chat.facts(facts).timeouts(self.settings.timeouts)))
    }

    /// Returns the keys that the configuration knows, so that they can be removed from tool
    /// results: those of all its providers and tool servers, with the variables that it names.
    #[must_use]
    pub fn secrets(&self, variables: &dyn Fn(&str) -> Option<String>) -> Vec<Secret> {
        let providers = self.shared().providers.values();
        let servers = self.shared().mcp.iter();
        let secrets = providers.flat_map(|provider| provider.secrets(variables));
        let secrets = secrets.chain(servers.flat_map(|server| server.secrets(variables)));
        secrets.collect()
    }

    /// Returns the environment variables that commands, hooks and MCP servers inherit: all except
    /// those that look like keys or are named as one here, plus those named in `pass_env`.
    #[must_use]
    pub fn inherited_variables(
        &self,
        variables: &dyn Fn(&str) -> Option<String>,
    ) -> InheritedVariables {
        let secrets = self.secrets(variables);
        let named = secrets.iter().filter_map(Secret::name).map(str::to_owned);
        InheritedVariables::new(self.settings.builder.pass_env.iter().cloned(), named)
    }

    /// Adds a file that `write` and `edit` change only after approval, for this agent and those
    /// that it calls. The configuration, its prompts and the files named in its commands are always
    /// protected.
    pub fn protect(&mut self, path: impl Into<PathBuf>) {
        self.protected.push(path.into());
    }

    /// Sets the program, with its first arguments, that enters the sandbox of `bash`, for this
    /// agent and those that it calls. See [`Sandbox::new`].
    pub fn sandbox_launcher(&mut self, words: impl IntoIterator<Item = impl Into<OsString>>) {
        self.sandbox_launcher = words.into_iter().map(Into::into).collect();
    }

    /// Returns the files whose content this configuration makes Plimsoll obey or run.
    fn protected_paths(&self) -> Vec<PathBuf> {
        let (settings, own) = (&self.settings, &self.config.path);
        let files = [own, &settings.system_file, &settings.summary_prompt];
        let files = files.into_iter().flatten().chain(&self.protected);
        let servers = self.shared().mcp.iter();
        let words = servers.flat_map(|server| std::iter::once(&server.command).chain(&server.args));
        let words = words.chain(settings.hooks.iter().flat_map(|hook| &hook.command));
        let commands = words.map(|word| settings.root.join(word));
        let commands = commands.filter(|path| path.is_file());
        files.cloned().chain(commands).collect()
    }

    /// Returns the configured tools, in the agent's root, and the tool that loads its skills.
    ///
    /// # Errors
    /// If the root is not a directory, or a tool does not exist.
    pub fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, ConfigError> {
        let mut toolbox = Toolbox::new(self.root()?).protect(self.protected_paths());
        if self.settings.sandbox != SandboxMode::Off {
            let launcher = &self.sandbox_launcher;
            if launcher.is_empty() {
                let why =
                    "`sandbox` needs a launcher; name one with `AgentConfig::sandbox_launcher`";
                return Err(self.fault_of("sandbox", why));
            }
            let sandbox = Sandbox::new(self.settings.sandbox, launcher);
            toolbox = toolbox.sandbox(sandbox.map_err(|error| self.fault_of("sandbox", error))?);
        }
        let names = match self.settings.tools.as_slice() {
            [] => "none".to_owned(),
            names => names.join(","),
        };
        let tools = toolbox.select(&names);
        let mut tools = tools.map_err(|error| self.fault_of("tools", error))?;
        tools.extend(self.skills().tool());
        Ok(tools)
    }

    /// Returns the directory that file tools must not leave.
    pub(super) fn root(&self) -> Result<Root, ConfigError> {
        let root = Root::new(&self.settings.root);
        root.map_err(|error| self.fault_of("root", error))
    }

    /// Finds the agent's skills. An agent without tools has none.
    #[must_use]
    pub fn skills(&self) -> Skills {
        let has_tools = self.settings.tools.iter().any(|name| name != "none");
        Skills::find(self.skill_folders().filter(|_| has_tools).cloned())
    }

    /// Returns the folders with skills that the settings name.
    pub(super) fn skill_folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.settings.skills.iter().flatten()
    }

    /// Returns the configured system prompt.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn system(&self) -> Result<Option<String>, ConfigError> {
        let path = self.settings.system_file.as_deref();
        match &self.settings.system {
            Some(text) => Ok(Some(text.clone())),
            None => self.prompt("system_file", path, "the system prompt"),
        }
    }

    /// Returns the configured prompt for summaries.
    pub(super) fn summary_prompt(&self) -> Result<Option<String>, ConfigError> {
        let path = self.settings.summary_prompt.as_deref();
        self.prompt("summary.prompt_file", path, "a summary prompt")
    }

    /// Returns the text of a prompt file, which the setting `key` names.
    fn prompt(
        &self,
        key: &str,
        path: Option<&Path>,
        what: &str,
    ) -> Result<Option<String>, ConfigError> {
        let text = path.map(|path| text(path, MAX_PROMPT, what));
        text.transpose().map_err(|fault| self.fault_of(key, fault))
    }

    /// Creates an error about a setting.
    fn fault_of(&self, key: &str, text: impl ToString) -> ConfigError {
        let origin = self.origin(key).unwrap_or(&Origin::Default);
        ConfigError::of(origin, text.to_string())
    }

    /// Creates an error about the agent that belongs to no line.
    #[must_use]
    pub fn fault(&self, text: impl ToString) -> ConfigError {
        ConfigError::of(&Origin::Default, text.to_string())
    }
}
