//! Configuration from the file `plimsoll.toml`, the environment and the command line.
//!
//! All faults are reported at once, each with its line. The result is the settings of an
//! `AgentBuilder`.
//!
//! Every setting is one field of one structure, [`AgentSettings`]. Its names, documentation and default are
//! a row of `data/settings.toml`, which [`keys`] lists; parsing, flags, environment variables, the schema
//! for editors, the documentation and the tests follow from the row.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use plimsoll::config::Config;
//!
//! let config = Config::read("plimsoll.toml")?;
//! let agent = config.agent("reviewer")?.builder()?.build()?;
//! let output = agent.run("Review the last commit.").await?;
//! # Ok(())
//! # }
//! ```

mod agent;
mod agent_file;
mod build_agent;
mod check;
mod document;
mod fault;
mod file;

mod found;
mod guards;
mod import;
mod instructions;
mod key;
mod kind;
mod layer;
mod mcp;
mod merge;
mod overrides;
mod permission;
mod place;
mod project;
mod provider;
mod schema;
mod settings;
mod show;
mod trust;

pub use agent::AgentConfig;
pub use agent_file::AgentFileForm;
pub use build_agent::{AgentModel, MakeAgent};
pub use fault::{ConfigError, ConfigFault, Origin, Place};
pub use file::{Config, MAX_CONFIG_FILE, MAX_PROMPT};
pub use found::FoundFiles;
pub use import::{Import, ImportedSetting};
pub use key::{SettingKey, key, keys};
pub use kind::{SettingKind, parse_tokens};
pub use mcp::{MCP_TIMEOUT, McpServer};
pub use overrides::Overrides;
pub use permission::Rule;
pub use plimsoll_tools::project_files::CONFIG_FILE;
pub use project::ProjectFiles;
pub use provider::ProviderSettings;
pub use schema::schema;
pub use settings::{AgentSettings, COUNTERS, token_counter};
pub use show::Effective;
pub use trust::{TRUST_FILE, TrustStore};

/// A `plimsoll.toml` to begin with, in which each setting is a comment.
pub const TEMPLATE: &str = include_str!("template.toml");

#[cfg(test)]
mod guard_tests;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod whole_tests;
