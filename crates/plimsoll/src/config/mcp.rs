//! [`McpServer`]: the configuration of a tool server, from `[[mcp]]`. The client is the crate
//! `plimsoll-mcp`, available with the feature `mcp`.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_providers::Secret;
use serde::Deserialize;

use super::document::Located;
use super::fault::Faults;
use super::layer::Layer;
use super::provider::{check_variable, keys_of};
use super::show::masked;

/// The default timeout for a server's answers.
pub const MCP_TIMEOUT: Duration = Duration::from_secs(30);

/// The configuration of a tool server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct McpServer {
    /// The name.
    pub name: String,
    /// How it is reached.
    #[serde(flatten)]
    pub reach: McpReach,
    /// The timeout for each of its answers.
    #[serde(default = "usual_timeout")]
    pub timeout: Duration,
    /// The environment variable with its bearer token.
    pub bearer_env: Option<String>,
    /// Trust its hints about its tools. Without that, each call needs approval.
    #[serde(default, rename = "trust")]
    pub trusted: bool,
    /// Let a run fail without it.
    #[serde(default)]
    pub required: bool,
}

const fn usual_timeout() -> Duration {
    MCP_TIMEOUT
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum McpReach {
    /// By URL.
    Url {
        /// The URL.
        url: String,
        /// Headers of every request.
        #[serde(default)]
        headers: BTreeMap<String, Secret>,
    },
    /// As a child process, by its standard input and output.
    Command {
        /// The program.
        #[serde(default)]
        command: String,
        /// The arguments.
        #[serde(default)]
        args: Vec<String>,
        /// Environment variables.
        #[serde(default)]
        env: BTreeMap<String, Secret>,
    },
}

impl McpServer {
    /// Describes how it is reached in a few words, without secrets.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.reach {
            McpReach::Command { command, .. } => command.clone(),
            McpReach::Url { url, .. } => masked(url),
        }
    }

    /// Returns the program and its arguments.
    pub(super) fn words(&self) -> impl Iterator<Item = &String> {
        let words = match &self.reach {
            McpReach::Command { command, args, .. } => Some(std::iter::once(command).chain(args)),
            McpReach::Url { .. } => None,
        };
        words.into_iter().flatten()
    }

    /// Returns the client for the server. A command is started in `root` with the `inherited`
    /// variables of this process. The token is looked up with `variables`.
    ///
    /// # Errors
    /// If the variable of its token is not set.
    #[cfg(feature = "mcp")]
    pub fn client(
        &self,
        root: &std::path::Path,
        variables: &dyn Fn(&str) -> Option<String>,
        inherited: &plimsoll_core::process::InheritedVariables,
    ) -> Result<plimsoll_mcp::McpServer, plimsoll_mcp::McpError> {
        use plimsoll_mcp::McpServer as Client;
        let mut client = match &self.reach {
            McpReach::Command { command, args, env } => {
                let command = plimsoll_core::process::Command::new(command);
                let command = command.args(args).cwd(root).inherit(inherited);
                let command = env.iter().fold(command, |command, (name, value)| {
                    command.env(name, value.expose())
                });
                let client = Client::command(&self.name, command);
                let secrets = env.values().map(Secret::expose);
                secrets.fold(client, Client::secret)
            }
            McpReach::Url { url, headers } => {
                let client = Client::url(&self.name, url);
                headers.iter().fold(client, |client, (name, value)| {
                    client.header(name, value.expose())
                })
            }
        };
        if let Some(name) = &self.bearer_env {
            let token = variables(name).filter(|token| !token.trim().is_empty());
            let token = token.ok_or_else(|| plimsoll_mcp::McpError {
                server: self.name.clone(),
                why: format!("it needs the variable {name}, which is not set"),
            })?;
            client = client.bearer(token.trim());
        }
        if self.trusted {
            client = client.trusted();
        }
        if self.required {
            client = client.required();
        }
        Ok(client.timeout(self.timeout))
    }

    /// Returns its keys, if they are set: the token, and the headers and variables whose names
    /// suggest keys.
    pub(crate) fn secrets(&self, variables: &dyn Fn(&str) -> Option<String>) -> Vec<Secret> {
        let (McpReach::Command { env: named, .. } | McpReach::Url { headers: named, .. }) =
            &self.reach;
        keys_of(self.bearer_env.as_deref(), named, variables)
    }

    /// Reads a server, and reports its faults. Returns `None` if it has no name.
    pub(crate) fn of(given: &Located, faults: &mut Faults) -> Option<Self> {
        let table = Layer::of_table("[[mcp]]", given, faults);
        let mut fault = |key: &str, text: &str| faults.push(given.origin_of(key), text);
        let has = |key: &str| given.get(key).is_some();
        if !has("command") && !has("url") {
            let text = "[[mcp]] needs a `command` to start, or the `url` of a server";
            fault("", text);
        }
        let (others, why): (&[&str], _) = match has("url") {
            true => (
                &["command", "args", "env"],
                "is of a server that is started, and this one has a `url`",
            ),
            false => (&["headers", "bearer_env"], "is of a server with a `url`"),
        };
        for name in others.iter().filter(|name| has(name)) {
            fault(name, &format!("`{name}` {why}"));
        }
        let server: Self = serde_json::from_value(table.object()).ok()?;
        let name = &server.name;
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !name.chars().all(good) {
            let text = format!("`{name}` cannot name a server; use letters, digits, `_` or `-`");
            fault("name", &text);
        }
        if let McpReach::Url { url, .. } = &server.reach
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            // It may contain a key.
            fault("url", "`url` must start with http:// or https://");
        }
        check_variable(server.bearer_env.as_deref(), "bearer_env", given, faults);
        Some(server)
    }
}
