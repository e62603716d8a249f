//! Which configuration a command has, and which of its agents: settings are resolved here, once,
//! for all that is done with them.

use std::path::PathBuf;

use clap::Args;
use plimsoll::config::{AgentConfig, CONFIG_FILE, Config, ConfigError, Fault, Overrides};

use crate::exit::Stop;
use crate::flags::SettingFlags;
use crate::resume::Resumed;

/// Variables of ours that are no settings.
const OTHER_VARIABLES: [&str; 4] = [
    "PLIMSOLL_HOME",
    "PLIMSOLL_AGENT",
    "PLIMSOLL_CONFIG",
    "PLIMSOLL_LOG",
];

/// Where settings come from.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Sources {
    /// The agent, as the configuration names it [default: its only one]
    #[arg(long, env = "PLIMSOLL_AGENT", value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The configuration [default: plimsoll.toml in the root, where there is one]
    #[arg(long, env = "PLIMSOLL_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Heed no plimsoll.toml that is merely there
    #[arg(long, conflicts_with = "config")]
    pub(crate) no_config: bool,
    /// Flags of settings.
    #[command(flatten)]
    pub(crate) flags: SettingFlags,
    /// Whose model it is, if that of a continued session.
    #[arg(skip)]
    pub(crate) resumed: Option<Resumed>,
}

/// Settings, resolved.
pub(crate) struct Resolved {
    /// The agent, or what holds for all.
    pub(crate) agent: AgentConfig,
    /// What to tell the user.
    pub(crate) notes: Vec<String>,
}

impl Sources {
    /// Reads and resolves everything.
    pub(crate) fn resolve(&self) -> Result<Resolved, Stop> {
        let wrong = |error: ConfigError| Stop::usage(error);
        let (config, mut notes) = self.file().map_err(wrong)?;
        let name = self.name(&config, &mut notes)?;
        let variables = &plimsoll::providers::environment;
        let over = self.flags.overrides()?.environment(variables);
        let agent = config.resolve(name.as_deref(), &over).map_err(wrong)?;
        let path = config.path();
        notes.extend(agent.warnings().iter().map(|warning| warning.in_file(path)));
        let names: Vec<String> = std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .collect();
        let names = names.iter().map(String::as_str);
        notes.extend(Overrides::strange(names, &OTHER_VARIABLES));
        Ok(Resolved { agent, notes })
    }

    /// Whether both read the same configuration for the same agent.
    pub(crate) fn is_configured_as(&self, other: &Self) -> bool {
        (&self.config, self.no_config, &self.agent)
            == (&other.config, other.no_config, &other.agent)
    }

    /// The file that was named, else one that is there.
    fn file(&self) -> Result<(Config, Vec<String>), ConfigError> {
        if let Some(path) = &self.config {
            return Ok((Config::read(path)?, Vec::new()));
        }
        let root = self.flags.text("root").map(PathBuf::from);
        let root = root.or_else(|| std::env::var_os("PLIMSOLL_ROOT").map(PathBuf::from));
        let path = root.unwrap_or_default().join(CONFIG_FILE);
        if self.no_config || !path.is_file() {
            return Ok((Config::default(), Vec::new()));
        }
        let note = format!(
            "settings of {}, which is here; --no-config leaves them out",
            path.display()
        );
        Ok((Config::read_found(&path)?, vec![note]))
    }

    fn name(&self, config: &Config, notes: &mut Vec<String>) -> Result<Option<String>, Stop> {
        let names: Vec<&str> = config.agents().collect();
        match (&self.agent, names.as_slice()) {
            (Some(name), _) => Ok(Some(name.clone())),
            (None, []) => Ok(None),
            (None, [only]) => {
                notes.push(format!("agent {only}, the only one of the configuration"));
                Ok(Some((*only).to_owned()))
            }
            (None, many) => Err(Stop::usage(format!(
                "the configuration has several agents; name one with --agent: {}",
                many.join(", ")
            ))),
        }
    }
}

/// What is worth knowing of a file, with its place.
pub(crate) fn notes_of(config: &Config) -> Vec<String> {
    let in_file = |fault: &Fault| fault.in_file(config.path());
    config.warnings().iter().map(in_file).collect()
}
