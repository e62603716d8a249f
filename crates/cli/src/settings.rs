//! Resolves the configuration, the agent and the settings of a command.

use std::path::PathBuf;
use std::sync::Once;

use clap::Args;
use plimsoll::config::{
    AgentConfig, CONFIG_FILE, Config, ConfigError, McpServer, Overrides, TRUST_FILE,
};

use crate::error::CliError;
use crate::flags::SettingFlags;
use crate::paths;
use crate::trust;

/// Variables of Plimsoll that are not settings.
const OTHER_VARIABLES: [&str; 6] = [
    "PLIMSOLL_HOME",
    "PLIMSOLL_AGENT",
    "PLIMSOLL_CONFIG",
    "PLIMSOLL_LOG",
    "PLIMSOLL_STORE",
    "PLIMSOLL_CALL_KEY",
];

/// Where settings come from.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Sources {
    /// Run this agent of the configuration [default: the only one]
    #[arg(long, env = "PLIMSOLL_AGENT", value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The configuration file [default: plimsoll.toml in the root, if there is one]
    #[arg(long, env = "PLIMSOLL_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Ignore every plimsoll.toml: the one in the root and your own
    #[arg(long, conflicts_with = "config")]
    pub(crate) no_config: bool,
    /// Flags of settings.
    #[command(flatten)]
    pub(crate) flags: SettingFlags,
    /// Whose model it is, if that of a continued session.
    #[arg(skip)]
    pub(crate) resumed: Option<String>,
    /// The folder that it is run in, if not that of this process.
    #[arg(skip)]
    pub(crate) folder: Option<PathBuf>,
    /// Servers of tools besides those of the configuration.
    #[arg(skip)]
    pub(crate) mcp_servers: Vec<McpServer>,
}

/// Resolved settings.
pub(crate) struct ResolvedSettings {
    /// The agent, or the settings for all agents.
    pub(crate) agent: AgentConfig,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

impl Sources {
    /// Reads the configuration and resolves all settings.
    pub(crate) fn resolve(&self) -> Result<ResolvedSettings, CliError> {
        let wrong = |error: ConfigError| CliError::usage(error);
        let config = self.read().map_err(wrong)?;
        if self.config.is_none() && config.path().is_some() {
            announce(&config);
        }
        let mut notes = Vec::new();
        let name = self.name(&config, &mut notes)?;
        let variables = &plimsoll::providers::environment;
        let over = self.flags.overrides().environment(variables);
        let mut agent = config.resolve(name.as_deref(), &over).map_err(wrong)?;
        for name in agent.add_mcp(self.mcp_servers.iter().cloned()) {
            notes.push(format!(
                "there is an MCP server {name} already, so that one is used"
            ));
        }
        // Protected regardless of the root: no agent may trust a file in the user's name.
        if let Ok(data) = paths::data() {
            agent.protect(data.join(TRUST_FILE));
        }
        if let Some(users) = users_file() {
            agent.protect(users);
        }
        notes.extend(agent.warnings().iter().map(ToString::to_string));
        let names: Vec<String> = std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .collect();
        let names = names.iter().map(String::as_str);
        notes.extend(Overrides::strange(names, &OTHER_VARIABLES));
        Ok(ResolvedSettings { agent, notes })
    }

    /// Leaves the configuration of the project out if another one is named, or none.
    pub(crate) fn name_config(&self) {
        if self.config.is_some() || self.no_config {
            trust::leave_config_out();
        }
    }

    /// Reads the configuration that was named, otherwise the one in the root. Merges it over the
    /// user's own one, and adds the agents that are defined in files of their own.
    pub(crate) fn read(&self) -> Result<Config, ConfigError> {
        self.draft().checked()
    }

    /// Like [`Self::read`]; the faults are reported later.
    pub(crate) fn draft(&self) -> Config {
        self.name_config();
        if self.no_config {
            return Config::default();
        }
        let project = trust::project(&self.root());
        let config = match &self.config {
            Some(path) => Config::draft(path),
            None => project.config().unwrap_or_default(),
        };
        let users = users_file().filter(|path| path.is_file());
        project.add_agents(match users {
            Some(users) => config.over(Config::draft(&users)),
            None => config,
        })
    }

    /// Returns the root of the workspace, unless a configuration sets another. Empty for the
    /// current directory.
    pub(crate) fn root(&self) -> PathBuf {
        let root = self.flags.text("root").map(PathBuf::from);
        let root = root.or_else(|| std::env::var_os("PLIMSOLL_ROOT").map(PathBuf::from));
        root.unwrap_or_default()
    }

    /// Returns the path of the configuration that applies if none is named. It need not exist.
    pub(crate) fn found(&self) -> PathBuf {
        self.root().join(CONFIG_FILE)
    }

    fn name(&self, config: &Config, notes: &mut Vec<String>) -> Result<Option<String>, CliError> {
        let names: Vec<&str> = config.agents().collect();
        match (&self.agent, names.as_slice()) {
            (Some(name), _) => Ok(Some(name.clone())),
            (None, []) => Ok(None),
            (None, [only]) => {
                notes.push(format!("agent {only}, the only one of the configuration"));
                Ok(Some((*only).to_owned()))
            }
            (None, many) => Err(CliError::usage(format!(
                "the configuration has several agents; name one with --agent: {}",
                many.join(", ")
            ))),
        }
    }
}

/// Returns the path of the user's own configuration, for all directories. It need not exist.
pub(crate) fn users_file() -> Option<PathBuf> {
    Some(paths::config().ok()?.join(CONFIG_FILE))
}

/// Prints once, even with --quiet, that settings come from a file that the user did not name.
fn announce(config: &Config) {
    static ANNOUNCED: Once = Once::new();
    let path = config.path().unwrap_or(CONFIG_FILE.as_ref()).display();
    ANNOUNCED.call_once(|| {
        say!("using the settings of {path}, which you trust; --no-config ignores them");
    });
}
