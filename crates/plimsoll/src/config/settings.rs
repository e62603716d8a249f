//! [`AgentSettings`]: the settings of one agent, merged from all layers. They become the settings
//! of an [`AgentBuilder`]. The origins of the values are in the `Layer`s.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::PermissionMode;
use plimsoll_context::{Bpe, Chars4, Estimate, Memo, TokenCounter};
use plimsoll_core::{AgentBuilder, BuilderSettings, CommandHook, HOOK_TIMEOUT, Retention};
use plimsoll_providers::Timeouts;
use plimsoll_tools::SandboxMode;
use plimsoll_wire::openai_chat::ToolStyle;
use serde::Deserialize;
use serde_json::json;
use smart_default::SmartDefault;

use super::fault::{Faults, Origin};
use super::layer::Layer;
use super::permission::Rule;

/// The names of the token counters.
pub const COUNTERS: [&str; 4] = ["o200k", "cl100k", "estimate", "chars4"];

/// Returns the token counter of this name, or `None` if it is not one of [`COUNTERS`].
#[must_use]
pub fn token_counter(name: &str) -> Option<Arc<dyn TokenCounter>> {
    Some(match name {
        "o200k" => Arc::new(Memo::new(Bpe::o200k())),
        "cl100k" => Arc::new(Memo::new(Bpe::cl100k())),
        "estimate" => Arc::new(Estimate),
        "chars4" => Arc::new(Chars4),
        _ => return None,
    })
}

/// The settings of one agent. Settings that are not configured have their defaults.
#[derive(Debug, Clone, SmartDefault, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// The settings that a builder takes as they are.
    #[default(builder_settings())]
    pub builder: BuilderSettings,
    /// The name, if any.
    pub name: Option<String>,
    /// The purpose of the agent, as told to agents that may call it.
    pub description: Option<String>,
    /// The model, as PROVIDER/NAME.
    pub model: Option<String>,
    /// The server's address, if it is not the vendor's.
    pub base_url: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// A file with the system prompt.
    pub system_file: Option<PathBuf>,
    /// Names of tools, or `all` or `none`.
    #[default(vec!["all".to_owned()])]
    pub tools: Vec<String>,
    /// How the model calls tools.
    pub tool_style: Option<ToolStyle>,
    /// The directory that file tools must not leave.
    #[default(PathBuf::from("."))]
    pub root: PathBuf,
    /// Agents of the same file that it may call.
    pub sub_agents: Vec<String>,
    /// Folders with skills; `None` for the program's default folders.
    pub skills: Option<Vec<PathBuf>>,
    /// The tool servers that it uses; `None` for all.
    pub mcp: Option<Vec<String>>,
    /// The model that writes summaries.
    pub summarizer: Option<String>,
    /// A file with the summarizer's prompt.
    pub summary_prompt: Option<PathBuf>,
    /// The name of the token counter.
    #[default(COUNTERS[0].to_owned())]
    pub counter: String,
    /// Permission rules.
    pub permissions: Vec<Rule>,
    /// The treatment of calls that no rule matches, if set.
    pub permission_mode: Option<PermissionMode>,
    /// The files and the network that commands may access.
    #[default(SandboxMode::Off)]
    pub sandbox: SandboxMode,
    /// Commands that are run on events of a run.
    pub hooks: Vec<CommandHook>,
    /// The timeout of a hook.
    #[default(HOOK_TIMEOUT)]
    pub hook_timeout: Duration,
    /// How long to wait for connections, and while a server is silent.
    pub timeouts: Timeouts,
    /// How long sessions are kept. By default, all are kept.
    pub retention: Retention,
}

/// Attempts of a model call of an agent with a configuration: an overloaded server gets about two and a
/// half minutes.
const ATTEMPTS: u32 = 10;

/// Returns the settings of a builder with a configuration.
fn builder_settings() -> BuilderSettings {
    let mut settings = BuilderSettings::default();
    settings.driver.retry.max_attempts = ATTEMPTS;
    settings
}

impl AgentSettings {
    /// Returns the settings of a layer, and the defaults of all others.
    pub(crate) fn of(layer: &Layer, faults: &mut Faults) -> Self {
        let retry = json!({ "max_attempts": ATTEMPTS });
        let mut settings = json!({ "builder": { "driver": { "retry": retry } } });
        for found in layer.0.values() {
            found.key.set(&mut settings, found.value());
        }
        Self::deserialize(settings).unwrap_or_else(|error| {
            faults.push(&Origin::Default, error.to_string());
            Self::default()
        })
    }

    /// Returns the treatment of calls that no rule matches. Default: [`PermissionMode::AutoEdit`].
    #[must_use]
    pub fn permission_mode(&self) -> PermissionMode {
        self.permission_mode.unwrap_or_default()
    }

    /// Returns the token counter.
    #[must_use]
    pub fn counter(&self) -> Arc<dyn TokenCounter> {
        token_counter(&self.counter).unwrap_or_else(|| Arc::new(Memo::new(Bpe::o200k())))
    }

    /// Applies all of these settings to a builder, except those created elsewhere: the model, the
    /// system prompt, the tools, the permission rules and the store. Settings of [`Self::builder`] that
    /// the builder had are replaced.
    pub fn apply(&self, builder: AgentBuilder) -> AgentBuilder {
        let mut settings = self.builder.clone();
        // The name distinguishes its runs from those of another agent in the same session.
        let name = self.name.as_ref().filter(|name| !name.is_empty());
        settings.config_id = settings.config_id.or_else(|| name.cloned());
        let builder = builder
            .settings(settings)
            .counter(self.counter())
            .hook_timeout(self.hook_timeout);
        let hooks = self.hooks.iter().cloned();
        hooks.fold(builder, AgentBuilder::command_hook)
    }
}
