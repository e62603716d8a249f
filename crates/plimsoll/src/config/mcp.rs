//! [`McpServer`]: the configuration of a tool server, from `[[mcp]]`. The client is the crate
//! `plimsoll-mcp`, available with the feature `mcp`.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_providers::{BaseUrl, Secret};
use serde::Deserialize;
use smart_default::SmartDefault;

use super::document::Located;
use super::fault::Faults;
use super::layer::Layer;
use super::provider::keys_of;

/// The default timeout for a server's answers.
pub const MCP_TIMEOUT: Duration = Duration::from_secs(30);

/// The configuration of a tool server: one with a URL, or a command that is started.
#[derive(Debug, Clone, SmartDefault, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct McpServer {
    /// The name.
    pub name: String,
    /// The program, as a child process that is reached by its standard input and output.
    pub command: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// Environment variables of the program.
    pub env: BTreeMap<String, Secret>,
    /// The URL, in place of a program.
    pub url: Option<String>,
    /// Headers of every request to the URL.
    pub headers: BTreeMap<String, Secret>,
    /// The environment variable with the bearer token for the URL.
    pub bearer_env: Option<String>,
    /// The timeout for each of its answers.
    #[default(MCP_TIMEOUT)]
    pub timeout: Duration,
    /// Trust its hints about its tools. Without that, each call needs approval.
    #[serde(rename = "trust")]
    pub trusted: bool,
    /// Let a run fail without it.
    pub required: bool,
}

impl McpServer {
    /// Describes how it is reached in a few words, without secrets.
    #[must_use]
    pub fn place(&self) -> String {
        let url = self.url.as_deref().map(BaseUrl::masked);
        url.unwrap_or_else(|| self.command.clone())
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
        let mut client = match &self.url {
            Some(url) => Client::url(&self.name, url),
            None => {
                let command = plimsoll_core::process::Command::new(&self.command);
                let command = command.args(&self.args).cwd(root).inherit(inherited);
                let env = self.env.iter();
                let command = env.fold(command, |it, (name, value)| it.env(name, value.expose()));
                Client::command(&self.name, command)
            }
        };
        for value in self.env.values() {
            client = client.secret(value.expose());
        }
        for (name, value) in &self.headers {
            client = client.header(name, value.expose());
        }
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
        let mut keys = keys_of(self.bearer_env.as_deref(), &self.env, variables);
        keys.extend(keys_of(None, &self.headers, variables));
        keys
    }

    /// Reads a server, and reports its faults.
    pub(crate) fn of(given: &Located, faults: &mut Faults) -> Self {
        let table = Layer::of_table("[[mcp]]", given, faults);
        let mut fault = |key: &str, text: &str| faults.push(given.origin_of(key), text);
        if given.get("command").or(given.get("url")).is_none() {
            let text = "[[mcp]] needs a `command` to start, or the `url` of a server";
            fault("", text);
        }
        let server: Self = serde_json::from_value(table.object()).unwrap_or_default();
        let name = &server.name;
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !name.chars().all(good) {
            let text = format!("`{name}` cannot name a server; use letters, digits, `_` or `-`");
            fault("name", &text);
        }
        let is_http = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if server.url.as_ref().is_some_and(|url| !is_http(url)) {
            // It may contain a key.
            fault("url", "`url` must start with http:// or https://");
        }
        server
    }
}
